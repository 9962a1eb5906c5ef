/* Where things lie in the emulated machine's memory: agreed between rom.S and mkdisk.c. Plain numbers, read by the assembler too. */
#ifndef EMULATE_LAYOUT_H
#define EMULATE_LAYOUT_H

#define HEADER_ADDRESS 0x8000 /* the disk's first sector: u32 entry, u32 count, count times {u32 address, u32 sectors} */

/* One extent, "low": */
#define BOOT_PARAMS_ADDRESS  0x10000 /* struct boot_params, one page */
#define COMMAND_LINE_ADDRESS 0x11000
#define PML4_ADDRESS         0x12000 /* 4-level page tables that map the first GiB and the last 2 MiB of the 4 to themselves */
#define PDPT_ADDRESS         0x13000
#define PD_ADDRESS           0x14000
#define ROM_PD_ADDRESS       0x15000
#define LOW_END              0x16000

#endif
