#!/bin/bash
# Runs a static x86-64 Linux program on an emulated processor with AVX-512 (F, BW, DQ, VL, VNNI), for machines without it:
#
#     tests/emulate/run_avx512.sh [-c CACHE] [-f FILE] ... PROGRAM [ARGUMENT ...]
#
# for example
#
#     cmake -B build-static -DCMAKE_EXE_LINKER_FLAGS=-static && cmake --build build-static --target checkkernels
#     tests/emulate/run_avx512.sh build-static/tests/checkkernels
#
# The program runs in a root folder that has the FILEs (relative paths) and no others. Prints what the program printed (both streams,
# on stdout) and exits with its status, 128 + N if signal N ended it, 70 if the machine did not come to an end (its console is then on
# stderr), 77 if a package is missing, which it names. Nothing is installed; everything lies in CACHE (default
# $XDG_CACHE_HOME/minfer-emulate, else ~/.cache/minfer-emulate).
#
# How: Bochs starts our own ROM (rom.S), which loads Debian's cloud kernel (`apt-get download`, once) and an initramfs with init.c
# and the program from a disk written by mkdisk.c: no BIOS, no boot loader. Start-up takes about 13 s of CPU with Debian's Bochs, 4 s with one
# built with --enable-all-optimizations and without the debugger.
#
# Environment:
#   BOCHS             the emulator (bochs). Bochs 2.7 has AVX-512 VNNI; AVX-VNNI and AMX take a later one, built with --enable-x86-64
#                     --enable-avx --enable-evex --enable-amx --enable-all-optimizations --with-nogui
#   EMULATE_CPU       Bochs' processor model (sapphire_rapids where there is one, else corei7_icelake_u)
#   EMULATE_AMX       1 leaves AMX on. Linux then needs an emulator with IA32_XFD and IA32_XFD_ERR (Bochs as of August 2026 has
#                     neither, and its TDPBSSD, TDPBSUD and TDPBUSD take signed bytes for unsigned)
#   EMULATE_MEMORY    MiB of memory (512, at most 1024)
#   EMULATE_TIMEOUT   seconds (900)
#   EMULATE_KERNEL    a vmlinuz to use in place of Debian's
#   EMULATE_DISPLAY   Bochs' display library (nogui; rfb with Debian's build, which has no nogui: it listens for VNC meanwhile)
#   EMULATE_CONSOLE   1 shows the kernel's console on stderr
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/minfer-emulate
if [ "${1:-}" = -c ]; then
    cache=${2:?-c needs a folder}
    shift 2
fi
files=()
while [ "${1:-}" = -f ]; do
    files+=(-f "${2:?-f needs a file}")
    shift 2
done
if [ $# -lt 1 ] || [ ! -f "$1" ]; then
    sed -n '2,5s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
bochs=${BOCHS:-bochs}
memory=${EMULATE_MEMORY:-512}
ips=50000000

need() { # TOOL PACKAGE
    command -v "$1" >/dev/null || {
        echo "run_avx512: $1 is missing (Debian package $2)" >&2
        exit 77
    }
}

skip() {
    echo "run_avx512: $*" >&2
    exit 77
}

u32_at() { # FILE OFFSET
    od -An -tu4 -j "$2" -N 4 "$1" | tr -d ' '
}

fetch_kernel() { # prints the vmlinuz' path
    if [ -n "${EMULATE_KERNEL:-}" ]; then
        echo "$EMULATE_KERNEL"
        return
    fi
    if ! compgen -G "$cache/kernel/boot/vmlinuz-*" >/dev/null; then
        need apt-get apt
        need dpkg-deb dpkg
        local package
        package=$(apt-cache depends linux-image-cloud-amd64 2>/dev/null | awk '/Depends: linux-image-[0-9]/ {print $2; exit}')
        [ -n "$package" ] || skip "apt knows no linux-image-cloud-amd64 (apt-get update; or set EMULATE_KERNEL)"
        rm -rf "$cache/download" && mkdir -p "$cache/download"
        (cd "$cache/download" && apt-get download "$package" >&2) || skip "cannot download $package"
        dpkg-deb -x "$cache"/download/*.deb "$cache/kernel"
        rm -rf "$cache/download" "$cache/kernel/lib" "$cache/kernel/usr"
    fi
    compgen -G "$cache/kernel/boot/vmlinuz-*" | tail -n 1
}

# The bzImage's payload is the compressed ELF file, followed by its size in 4 bytes (for gzip these are gzip's own).
unpack_kernel() { # VMLINUZ VMLINUX
    local setup offset length magic
    setup=$(od -An -tu1 -j 497 -N 1 "$1" | tr -d ' ')
    [ "$setup" != 0 ] || setup=4
    offset=$(((setup + 1) * 512 + $(u32_at "$1" 584)))
    length=$(u32_at "$1" 588)
    magic=$(od -An -tx1 -j "$offset" -N 4 "$1" | tr -d ' ')
    payload() { head -c $((offset + $2)) "$1" | tail -c "$2"; }
    case $magic in
        02214c18) need lz4 lz4 && payload "$1" $((length - 4)) | lz4 -dc ;;
        28b52ffd) need zstd zstd && payload "$1" $((length - 4)) | zstd -dcq ;;
        fd377a58) need xz xz-utils && payload "$1" $((length - 4)) | xz -dc ;;
        1f8b*) need gzip gzip && payload "$1" "$length" | gzip -dc ;;
        *) skip "$1: unknown compression $magic" ;;
    esac >"$2.part"
    mv "$2.part" "$2"
}

build() {
    cc -O2 -std=c17 -D_GNU_SOURCE -o "$work/mkdisk" "$here/mkdisk.c"
    cc -Os -std=c17 -D_GNU_SOURCE -static -s -o "$work/init" "$here/init.c"
    cc -m32 -c -o "$work/rom.o" "$here/rom.S"
    ld -m elf_i386 -Ttext=0xffff0000 --oformat=binary -e 0xffff0000 -o "$work/rom.bin" "$work/rom.o"
}

[ "$(uname -m)" = x86_64 ] || skip "the helpers are built by the machine's own compiler: x86-64 only"
need cc gcc
need ld binutils
need "$bochs" bochs
mkdir -p "$cache"
exec 9>"$cache/lock" # two runs at once: one makes the kernel's file, the other waits
flock 9
kernel=$(fetch_kernel)
if [ ! "$cache/vmlinux" -nt "$kernel" ] || [ "$(cat "$cache/vmlinux.from" 2>/dev/null)" != "$kernel" ]; then
    unpack_kernel "$kernel" "$cache/vmlinux"
    touch "$cache/vmlinux"
    echo "$kernel" >"$cache/vmlinux.from"
fi
exec 9>&-

work=$(mktemp -d -p "$cache")
trap 'rm -rf "$work"' EXIT
build

models=$("$bochs" --help cpu 2>&1 || true)
case ${EMULATE_CPU:-}$models in
    *sapphire_rapids*) model=${EMULATE_CPU:-sapphire_rapids} ;;
    *) model=${EMULATE_CPU:-corei7_icelake_u} ;;
esac

# Off: what a BIOS would have set up (memmove's fsrm variant without erms), what Bochs 2.7 describes wrongly in CPUID leaf 0xd
# (pku, xsaves, xsavec), and AMX.
without=fsrm
[ "${EMULATE_AMX:-0}" = 1 ] || without=fsrm,pku,xsaves,xsavec,amx_tile
# Initcalls that take time and give nothing here; the hardware is a processor, its memory, a timer and two serial ports.
unneeded=load_system_certificate_list,cubictcp_register,trace_eval_init,init_kprobe_trace,slab_sysfs_init
quiet=quiet
[ "${EMULATE_CONSOLE:-0}" != 1 ] || quiet=ignore_loglevel
command_line="console=ttyS0,115200 $quiet acpi=off pci=off noapic nolapic nolapic_timer nosmp mitigations=off lsm= \
tsc=reliable tsc_early_khz=$((ips / 1000)) lpj=$((ips / 250)) random.trust_cpu=on cryptomgr.notests panic=-1 \
clearcpuid=$without initcall_blacklist=$unneeded"

cylinders=$("$work/mkdisk" "$work/disk" "$cache/vmlinux" "$memory" "$command_line" "$work/init" "${files[@]}" "$@")

# Debian's Bochs has its debugger compiled in and waits for commands, has sound and no "nogui".
display=nogui
options=()
settings=
if "$bochs" --help 2>&1 | grep -e '-rc filename' >/dev/null; then
    display='rfb, options="timeout=0"'
    printf 'continue\nquit\n' >"$work/commands"
    options=(-rc "$work/commands")
    settings=$'speaker: enabled=0\nsound: waveoutdrv=dummy'
fi
cat >"$work/bochsrc" <<END
config_interface: textconfig
display_library: ${EMULATE_DISPLAY:-$display}
megs: $memory
cpu: model=$model, count=1, ips=$ips
romimage: file=$work/rom.bin
vgaromimage: file=${BXSHARE:-/usr/share/bochs}/VGABIOS-lgpl-latest
clock: sync=none, time0=1
ata0-master: type=disk, path=$work/disk, mode=flat, cylinders=$cylinders, heads=16, spt=63
boot: disk
com1: enabled=1, mode=file, dev=$work/console
com2: enabled=1, mode=file, dev=$work/output
$settings
log: $work/log
panic: action=fatal
error: action=ignore
info: action=ignore
END
timeout "${EMULATE_TIMEOUT:-900}" "$bochs" -q -f "$work/bochsrc" "${options[@]}" </dev/null >"$work/stdout" 2>&1 || true

[ "${EMULATE_CONSOLE:-0}" != 1 ] || cat "$work/console" >&2
last=$(tail -n 1 "$work/output" 2>/dev/null || true)
case $last in
    "emulated: "*) ;;
    *)
        cat "$work/output" 2>/dev/null || true
        echo "run_avx512: the machine did not come to an end" >&2
        tail -n 40 "$work/console" "$work/stdout" "$work/log" >&2 || true
        exit 70
        ;;
esac
head -c -$((${#last} + 2)) "$work/output"
number=${last##* }
case $last in
    *" exit "*) exit "$number" ;;
    *" signal "*)
        echo "run_avx512: ended by signal $number" >&2
        exit $((128 + number))
        ;;
    *)
        echo "run_avx512: $last" >&2
        exit 70
        ;;
esac
