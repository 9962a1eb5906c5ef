/* Writes the disk that rom.S loads (run_avx512.sh):
 *     mkdisk DISK VMLINUX MEMORY_MIB COMMAND_LINE INIT [-f FILE ...] PROGRAM [ARGUMENT ...]
 * The first sector lists the extents, the extents follow: the low block (struct boot_params, command line, page tables), each
 * loadable segment of the uncompressed kernel VMLINUX (ELF64) and an initramfs of /init, /program, /args and each FILE (a relative path)
 * under its path. The disk is padded to
 * whole cylinders of 16 heads and 63 sectors; their number is printed. Struct boot_params and the entry state follow Linux'
 * Documentation/arch/x86/{boot,zero-page}.rst, the initramfs its Documentation/driver-api/early-userspace/buffer-format.rst. */
#include <elf.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layout.h"

enum {
    SECTOR = 512,
    CYLINDER = 16 * 63 * SECTOR,
    MAX_EXTENTS = 32,
    PAGE = 4096
};

typedef struct {
    unsigned char *data;
    size_t size, capacity;
} buffer;

typedef struct {
    FILE *disk;
    uint32_t header[SECTOR / 4];
    uint64_t sectors;
} image;

static _Noreturn void die(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("mkdisk: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(1);
}

static void append(buffer *b, const void *data, size_t size) {
    if (b->size + size > b->capacity) {
        b->capacity = 2 * (b->size + size);
        b->data = realloc(b->data, b->capacity);
        if (b->data == NULL) die("out of memory at %zu bytes", b->capacity);
    }
    if (size > 0) memcpy(b->data + b->size, data, size);
    b->size += size;
}

static void pad(buffer *b, size_t multiple) {
    static const char zeros[PAGE];
    while (b->size % multiple != 0) append(b, zeros, multiple - b->size % multiple);
}

static buffer read_file(const char *path) {
    buffer b = {0};
    FILE *f = fopen(path, "rb");
    if (f == NULL) die("cannot open %s", path);
    char piece[65536];
    for (size_t n; (n = fread(piece, 1, sizeof piece, f)) > 0;) append(&b, piece, n);
    if (ferror(f)) die("cannot read %s", path);
    fclose(f);
    return b;
}

static void put32(unsigned char *p, uint32_t value) { memcpy(p, &value, 4); }

static void put64(unsigned char *p, uint64_t value) { memcpy(p, &value, 8); }

static void write_extent(image *im, uint64_t address, const unsigned char *data, size_t size) {
    static const char zeros[SECTOR];
    uint32_t count = im->header[1];
    uint64_t sectors = (size + SECTOR - 1) / SECTOR;
    if (count == MAX_EXTENTS || address + sectors * SECTOR > UINT32_MAX)
        die("extent %u at 0x%llx does not fit", count, (unsigned long long)address);
    im->header[2 + 2 * count] = (uint32_t)address;
    im->header[3 + 2 * count] = (uint32_t)sectors;
    im->header[1] = count + 1;
    im->sectors += sectors;
    if (fwrite(data, 1, size, im->disk) != size ||
        fwrite(zeros, 1, sectors * SECTOR - size, im->disk) != sectors * SECTOR - size)
        die("cannot write the disk");
}

/* Writes the kernel's segments, sets the entry and returns the first address above them. */
static uint64_t write_kernel(image *im, const char *path) {
    buffer b = read_file(path);
    Elf64_Ehdr elf;
    if (b.size < sizeof elf || memcmp(b.data, ELFMAG, SELFMAG) != 0 || b.data[EI_CLASS] != ELFCLASS64)
        die("%s is not an ELF64 file", path);
    memcpy(&elf, b.data, sizeof elf);
    im->header[0] = (uint32_t)elf.e_entry;
    uint64_t end = 0;
    for (unsigned i = 0; i < elf.e_phnum; i++) {
        Elf64_Phdr segment;
        uint64_t at = elf.e_phoff + (uint64_t)i * sizeof segment;
        if (at > b.size - sizeof segment) die("%s is cut off", path);
        memcpy(&segment, b.data + at, sizeof segment);
        if (segment.p_type != PT_LOAD) continue;
        if (segment.p_offset > b.size || segment.p_filesz > b.size - segment.p_offset) die("%s is cut off", path);
        write_extent(im, segment.p_paddr, b.data + segment.p_offset, segment.p_filesz);
        if (segment.p_paddr + segment.p_memsz > end) end = segment.p_paddr + segment.p_memsz;
    }
    free(b.data);
    return end;
}

/* One member of a cpio archive in the "newc" format. */
static void add_member(buffer *archive, unsigned inode, const char *name, unsigned mode, const unsigned char *data,
                       size_t size) {
    char header[111];
    snprintf(header, sizeof header, "070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X", inode, mode, 0u, 0u, 1u,
             0u, (unsigned)size, 0u, 0u, 0u, 0u, (unsigned)strlen(name) + 1, 0u);
    append(archive, header, 110);
    append(archive, name, strlen(name) + 1);
    pad(archive, 4);
    append(archive, data, size);
    pad(archive, 4);
}

/* A file under its path, behind the folders on the way; the kernel passes over those that are there. */
static void add_file(buffer *archive, unsigned inode, const char *path) {
    char folder[256];
    if (path[0] == '/' || strlen(path) >= sizeof folder) die("%s is not a short relative path", path);
    for (const char *slash = strchr(path, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
        add_member(archive, inode, folder, 0040755, NULL, 0);
    }
    buffer file = read_file(path);
    add_member(archive, inode, path, 0100644, file.data, file.size);
    free(file.data);
}

static void add_as(buffer *archive, unsigned inode, const char *name, const char *path) {
    buffer file = read_file(path);
    add_member(archive, inode, name, 0100755, file.data, file.size);
    free(file.data);
}

/* words: [-f FILE ...] PROGRAM [ARGUMENT ...] */
static buffer make_initramfs(const char *init, int count, char **words) {
    buffer archive = {0}, arguments = {0};
    unsigned inode = 4;
    add_as(&archive, 1, "init", init);
    for (; count > 2 && strcmp(words[0], "-f") == 0; count -= 2, words += 2) add_file(&archive, inode++, words[1]);
    add_as(&archive, 2, "program", words[0]);
    append(&arguments, "/program", 9);
    for (int i = 1; i < count; i++) append(&arguments, words[i], strlen(words[i]) + 1);
    add_member(&archive, 3, "args", 0100644, arguments.data, arguments.size);
    add_member(&archive, inode, "TRAILER!!!", 0, NULL, 0);
    free(arguments.data);
    return archive;
}

static void put_e820(unsigned char *params, uint64_t address, uint64_t size) {
    unsigned char *entry = params + 0x2d0 + 20 * params[0x1e8]++;
    put64(entry, address);
    put64(entry + 8, size);
    put32(entry + 16, 1); /* RAM */
}

static void write_low(image *im, uint64_t memory, const char *command_line, uint64_t initramfs, size_t initramfs_size) {
    unsigned char *low = calloc(1, LOW_END - BOOT_PARAMS_ADDRESS), *params = low;
    if (low == NULL || strlen(command_line) >= PML4_ADDRESS - COMMAND_LINE_ADDRESS)
        die("the command line is longer than %d bytes", PML4_ADDRESS - COMMAND_LINE_ADDRESS);
    put32(params + 0x1fe, 0xaa55);
    memcpy(params + 0x202, "HdrS", 4);
    put32(params + 0x206, 0x20c);
    params[0x210] = 0xff; /* type_of_loader: none known */
    params[0x211] = 1;    /* loaded high */
    put32(params + 0x218, (uint32_t)initramfs);
    put32(params + 0x21c, (uint32_t)initramfs_size);
    put32(params + 0x228, COMMAND_LINE_ADDRESS);
    put32(params + 0x230, 0x200000); /* kernel_alignment */
    put32(params + 0x238, (uint32_t)strlen(command_line));
    put_e820(params, 0, 0x9fc00);
    put_e820(params, 0x100000, memory - 0x100000);
    memcpy(low + COMMAND_LINE_ADDRESS - BOOT_PARAMS_ADDRESS, command_line, strlen(command_line) + 1);
    put64(low + PML4_ADDRESS - BOOT_PARAMS_ADDRESS, PDPT_ADDRESS | 3);
    put64(low + PDPT_ADDRESS - BOOT_PARAMS_ADDRESS, PD_ADDRESS | 3);
    put64(low + PDPT_ADDRESS + 3 * 8 - BOOT_PARAMS_ADDRESS, ROM_PD_ADDRESS | 3);
    put64(low + ROM_PD_ADDRESS + 511 * 8 - BOOT_PARAMS_ADDRESS, 0xffe00000 | 0x83);
    for (uint64_t i = 0; i < 512; i++) put64(low + PD_ADDRESS - BOOT_PARAMS_ADDRESS + 8 * i, i << 21 | 0x83);
    write_extent(im, BOOT_PARAMS_ADDRESS, low, LOW_END - BOOT_PARAMS_ADDRESS);
    free(low);
}

int main(int argc, char **argv) {
    if (argc < 7) die("usage: mkdisk DISK VMLINUX MEMORY_MIB COMMAND_LINE INIT [-f FILE ...] PROGRAM [ARGUMENT ...]");
    uint64_t memory = strtoull(argv[3], NULL, 10) << 20;
    image im = {.disk = fopen(argv[1], "wb"), .sectors = 1};
    if (im.disk == NULL || fseek(im.disk, SECTOR, SEEK_SET) != 0) die("cannot write %s", argv[1]);
    uint64_t initramfs_at = (write_kernel(&im, argv[2]) + PAGE - 1) / PAGE * PAGE;
    buffer initramfs = make_initramfs(argv[5], argc - 6, argv + 6);
    if (initramfs_at + 3 * initramfs.size > memory || memory > 1u << 30)
        die("%s MiB of memory: too few for the program or more than 1024", argv[3]);
    write_extent(&im, initramfs_at, initramfs.data, initramfs.size);
    write_low(&im, memory, argv[4], initramfs_at, initramfs.size);
    uint64_t cylinders = (im.sectors * SECTOR + CYLINDER - 1) / CYLINDER;
    if (fseek(im.disk, (long)(cylinders * CYLINDER) - 1, SEEK_SET) != 0 || fputc(0, im.disk) == EOF ||
        fseek(im.disk, 0, SEEK_SET) != 0 || fwrite(im.header, 1, SECTOR, im.disk) != SECTOR || fclose(im.disk) != 0)
        die("cannot write %s", argv[1]);
    free(initramfs.data);
    printf("%llu\n", (unsigned long long)cylinders);
    return 0;
}
