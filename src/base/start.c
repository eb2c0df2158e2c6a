/*
 * The entry point of static, position-independent programs. Such a program first relocates its tables, and each page of them would
 * cost a page fault of its own, the dearest part of a small start. So the kernel is asked to populate all of them with one call; where
 * it cannot (before Linux 5.14), the faults come one by one. The same for ten pages of the stack, of which exec makes 32, and for the
 * code and constants: a start runs through all of them, so faults, which map 16 pages each, would map nearly as much, by 27 exceptions.
 * `pinfold exec` needs less of them, and what it does not need takes 0.2 ms to map and to unmap, a fifth of that command. Then the C
 * library's _start runs. This is assembly because nothing is relocated yet.
 */

/* madvise(from the first page with addresses, to the end of initialised data, MADV_POPULATE_WRITE); then 40 KiB of stack; then
   madvise(from the ELF header, to the first page with addresses, MADV_POPULATE_READ), unless argv[1] is "exec": after the texts of
   arguments others follow, so four bytes of each can be read */
#if defined __x86_64__
__asm__(".pushsection .text.program_start,\"ax\",@progbits\n"
        ".globl program_start\n"
        ".hidden program_start\n"
        ".hidden __init_array_start\n"
        ".hidden __ehdr_start\n"
        ".hidden _edata\n"
        ".type program_start, @function\n"
        "program_start:\n"
        "    lea __init_array_start(%rip), %rdi\n"
        "    and $-4096, %rdi\n"
        "    lea _edata(%rip), %rsi\n"
        "    sub %rdi, %rsi\n"
        "    mov $23, %edx\n"
        "    mov $28, %eax\n"
        "    syscall\n"
        "    lea -40960(%rsp), %rdi\n"
        "    and $-4096, %rdi\n"
        "    mov $40960, %esi\n"
        "    mov $28, %eax\n"
        "    syscall\n"
        "    cmpq $2, (%rsp)\n"
        "    jl 1f\n"
        "    mov 16(%rsp), %rax\n"
        "    cmpl $0x63657865, (%rax)\n"
        "    jne 1f\n"
        "    cmpb $0, 4(%rax)\n"
        "    je 2f\n"
        "1:  lea __ehdr_start(%rip), %rdi\n"
        "    lea __init_array_start(%rip), %rsi\n"
        "    and $-4096, %rsi\n"
        "    sub %rdi, %rsi\n"
        "    mov $22, %edx\n"
        "    mov $28, %eax\n"
        "    syscall\n"
        "2:  jmp _start\n"
        ".size program_start, . - program_start\n"
        ".popsection\n");
#elif defined __aarch64__
__asm__(".pushsection .text.program_start,\"ax\",@progbits\n"
        ".globl program_start\n"
        ".hidden program_start\n"
        ".hidden __init_array_start\n"
        ".hidden __ehdr_start\n"
        ".hidden _edata\n"
        ".type program_start, @function\n"
        "program_start:\n"
        "    adrp x0, __init_array_start\n"
        "    adrp x1, _edata\n"
        "    add x1, x1, :lo12:_edata\n"
        "    sub x1, x1, x0\n"
        "    mov x2, #23\n"
        "    mov x8, #233\n"
        "    svc #0\n"
        "    sub x0, sp, #40960\n"
        "    and x0, x0, #-4096\n"
        "    mov x1, #40960\n"
        "    mov x2, #23\n"
        "    svc #0\n"
        "    ldr x0, [sp]\n"
        "    cmp x0, #2\n"
        "    b.lt 1f\n"
        "    ldr x1, [sp, #16]\n"
        "    ldr w2, [x1]\n"
        "    movz w3, #0x7865\n"
        "    movk w3, #0x6365, lsl #16\n"
        "    cmp w2, w3\n"
        "    b.ne 1f\n"
        "    ldrb w2, [x1, #4]\n"
        "    cbz w2, 2f\n"
        "1:  adrp x0, __ehdr_start\n"
        "    adrp x1, __init_array_start\n"
        "    sub x1, x1, x0\n"
        "    mov x2, #22\n"
        "    mov x8, #233\n"
        "    svc #0\n"
        "2:  b _start\n"
        ".size program_start, . - program_start\n"
        ".popsection\n");
#endif

typedef int start_is_assembly; /* ISO C has no empty translation unit */
