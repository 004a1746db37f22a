/* A guest of one boot sector (docs/migration.md). It fills its memory from 1 to 63 MB, each word by its address. Then it
 * adds 1 to the first word of each page from 1 to 17 MB, for ever, and writes a '.' to the serial line after each round. */
    .globl _start
_start:
    .code16
    cli
    inb $0x92, %al          /* The 21st address line. */
    orb $2, %al
    outb %al, $0x92
    xorw %ax, %ax
    movw %ax, %ds
    lgdtl segments_at
    movl %cr0, %eax
    orb $1, %al
    movl %eax, %cr0
    ljmpl $8, $protected

    .code32
protected:
    movw $16, %ax
    movw %ax, %ds
    movl $0x100000, %edi
fill:
    imull $2654435761, %edi, %eax
    movl %eax, (%edi)
    addl $4, %edi
    cmpl $0x3f00000, %edi
    jb fill
round:
    movl $0x100000, %edi
page:
    incl (%edi)
    addl $4096, %edi
    cmpl $0x1100000, %edi
    jb page
    movb $'.', %al
    movw $0x3f8, %dx
    outb %al, %dx
    jmp round

    .align 8
segments:                   /* Flat ones: code at 8, data at 16. */
    .quad 0, 0x00cf9a000000ffff, 0x00cf92000000ffff
segments_at:
    .word . - segments - 1
    .long segments
    .org 510
    .word 0xaa55
