/* The boot ROM of the emulated machine (run_avx512.sh). It takes the place of a BIOS and a boot loader: from the reset vector it
 * enters protected mode, reads the extents of the disk that mkdisk.c wrote into memory through ATA PIO (primary master, LBA28)
 * and enters the kernel by the 64-bit Linux boot protocol (Documentation/arch/x86/boot.rst).
 *
 * Linked at 0xffff0000, 64 KiB, the reset vector 16 bytes before the end. */

#include "layout.h"

#define ATA_DATA 0x1f0
#define ATA_COUNT 0x1f2
#define ATA_LBA0 0x1f3
#define ATA_LBA1 0x1f4
#define ATA_LBA2 0x1f5
#define ATA_DRIVE 0x1f6
#define ATA_COMMAND 0x1f7
#define ATA_READ_SECTORS 0x20
#define ATA_BUSY 0x80
#define ATA_DRQ 0x08

    .code16
    .text
rom_start:
start16:
    cli
    movb $0x02, %al /* fast A20 gate */
    outb %al, $0x92
    lgdtl %cs:(gdt_pointer - rom_start)
    movl %cr0, %eax
    andl $0x9fffffff, %eax /* caches on */
    orl $1, %eax
    movl %eax, %cr0
    ljmpl $0x08, $start32

    .code32
start32:
    movw $0x18, %ax
    movw %ax, %ds
    movw %ax, %es
    movw %ax, %ss
    movl $HEADER_ADDRESS, %esp
    cld
    cmpl $0, HEADER_ADDRESS /* a restart: the kernel has panicked */
    jne stop

    xorl %ebx, %ebx /* ebx: the next sector */
    movl $HEADER_ADDRESS, %edi
    movl $1, %ebp
    call read_sectors

    movl $HEADER_ADDRESS, %esi
    movl 4(%esi), %ecx
    addl $8, %esi
next_extent:
    pushl %ecx
    movl (%esi), %edi
    movl 4(%esi), %ebp
    addl $8, %esi
    pushl %esi
    call read_sectors
    popl %esi
    popl %ecx
    loop next_extent

    movl $PML4_ADDRESS, %eax
    movl %eax, %cr3
    movl %cr4, %eax
    orl $0x20, %eax /* PAE */
    movl %eax, %cr4
    movl $0xc0000080, %ecx /* EFER.LME */
    rdmsr
    orl $0x100, %eax
    wrmsr
    movl %cr0, %eax
    orl $0x80000000, %eax
    movl %eax, %cr0
    ljmpl $0x10, $start64

/* Reads ebp sectors from sector ebx on to edi; moves all three on. */
read_sectors:
    movl $256, %ecx
    cmpl %ecx, %ebp
    cmovbl %ebp, %ecx
    pushl %ecx
    movw $ATA_COUNT, %dx
    movb %cl, %al /* 256 is written as 0 */
    outb %al, %dx
    movl %ebx, %eax
    movw $ATA_LBA0, %dx
    outb %al, %dx
    shrl $8, %eax
    movw $ATA_LBA1, %dx
    outb %al, %dx
    shrl $8, %eax
    movw $ATA_LBA2, %dx
    outb %al, %dx
    shrl $8, %eax
    orb $0xe0, %al
    movw $ATA_DRIVE, %dx
    outb %al, %dx
    movw $ATA_COMMAND, %dx
    movb $ATA_READ_SECTORS, %al
    outb %al, %dx
    popl %ecx
    addl %ecx, %ebx
    subl %ecx, %ebp
1:  movw $ATA_COMMAND, %dx
2:  inb %dx, %al
    andb $(ATA_BUSY | ATA_DRQ), %al
    cmpb $ATA_DRQ, %al
    jne 2b
    pushl %ecx
    movw $ATA_DATA, %dx
    movl $128, %ecx
    rep insl
    popl %ecx
    loop 1b
    testl %ebp, %ebp
    jnz read_sectors
    ret

/* Ends Bochs. */
stop:
    movl $stop_word, %esi
    movl $8, %ecx
    movw $0x8900, %dx
    rep outsb
1:  hlt
    jmp 1b
stop_word:
    .ascii "Shutdown"

    .code64
start64:
    movl $BOOT_PARAMS_ADDRESS, %esi
    movl HEADER_ADDRESS, %eax /* the kernel's entry */
    jmp *%rax

    .balign 8
gdt: /* the accessed bits are set: the processor cannot write here */
    .quad 0
    .quad 0x00cf9b000000ffff /* 0x08: 32-bit code */
    .quad 0x00af9b000000ffff /* 0x10: 64-bit code, __BOOT_CS */
    .quad 0x00cf93000000ffff /* 0x18: data, __BOOT_DS */
gdt_end:
gdt_pointer:
    .word gdt_end - gdt - 1
    .long gdt

    .org 0xfff0
    .code16
    jmp start16
    .org 0x10000
