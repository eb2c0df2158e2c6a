/*
 * Where a static, position-independent program begins. Its first act is to move every address in its tables to where the kernel
 * has put it, and each page of these is then a fault of its own, the dearest part of a small start. So the kernel is asked for
 * all of them at once; one that cannot (before Linux 5.14) says no, and they come one by one. Then the C library's own
 * beginning. Nothing may be relocated here, so this is no C.
 */

/* madvise(from the first page with addresses, to the end of initialised data, MADV_POPULATE_WRITE) */
#if defined __x86_64__
__asm__(".pushsection .text.program_start,\"ax\",@progbits\n"
        ".globl program_start\n"
        ".hidden program_start\n"
        ".hidden __init_array_start\n"
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
        "    jmp _start\n"
        ".size program_start, . - program_start\n"
        ".popsection\n");
#elif defined __aarch64__
__asm__(".pushsection .text.program_start,\"ax\",@progbits\n"
        ".globl program_start\n"
        ".hidden program_start\n"
        ".hidden __init_array_start\n"
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
        "    b _start\n"
        ".size program_start, . - program_start\n"
        ".popsection\n");
#endif

typedef int start_is_assembly; /* ISO C has no empty translation unit */
