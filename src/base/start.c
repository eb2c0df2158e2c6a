/*
 * The entry point of static, position-independent programs. Such a program first relocates its tables, and each page of them would
 * cost a page fault of its own, the dearest part of a small start. So the kernel is asked to populate all of them with one call; where
 * it cannot (before Linux 5.14), the faults come one by one. Small variables lie behind the tables and are populated with them
 * (scripts/start.ld), and behind those, for `pinfold exec`, the rooms of its arenas (base/arena.c). The same for ten pages of the stack
 * (`pinfold exec` needs six), of which exec makes 32, and for texts and code that a start runs through, which lie side by side behind
 * the relocations: a fault maps 16 pages around it, wanted or not. `pinfold exec` runs through a part of the code, which lies first.
 * Then the C library's _start runs. This is assembly because nothing is relocated yet. A static program has no loader, and musl's start
 * does not do what that would: take away the right to write to what has been relocated (start_protect()).
 *
 * On x86-64 the addresses are told in packed form (RELR): 2 KiB instead of 150, which each start would read. The C library knows it only
 * from musl 1.2.4 on, so it is done here, and the C library is told that there are none.
 */
#include <elf.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/auxv.h>

/* madvise(from the first page with addresses, to the end of small variables, MADV_POPULATE_WRITE); then 40 or 24 KiB of stack; then
   madvise(from the ELF header, to the end of the code of `exec` or of every start, MADV_POPULATE_READ). Whether argv[1] is "exec":
   after the texts of arguments others follow, so four bytes of each can be read. */
#if defined __x86_64__
__asm__(".pushsection .text.program_start,\"ax\",@progbits\n"
        ".globl program_start\n"
        ".hidden program_start\n"
        ".hidden __init_array_start\n"
        ".hidden __ehdr_start\n"
        ".hidden start_data_end\n"
        ".hidden exec_data_end\n"
        ".hidden exec_text_end\n"
        ".hidden start_text_end\n"
        ".type program_start, @function\n"
        "program_start:\n"
        "    lea start_data_end(%rip), %rbp\n"
        "    lea start_text_end(%rip), %rbx\n"
        "    mov $40960, %r12d\n"
        "    cmpq $2, (%rsp)\n"
        "    jl 1f\n"
        "    mov 16(%rsp), %rax\n"
        "    cmpl $0x63657865, (%rax)\n"
        "    jne 1f\n"
        "    cmpb $0, 4(%rax)\n"
        "    jne 1f\n"
        "    lea exec_data_end(%rip), %rbp\n"
        "    lea exec_text_end(%rip), %rbx\n"
        "    mov $24576, %r12d\n"
        "1:  lea __init_array_start(%rip), %rdi\n"
        "    and $-4096, %rdi\n"
        "    mov %rbp, %rsi\n"
        "    sub %rdi, %rsi\n"
        "    mov $23, %edx\n"
        "    mov $28, %eax\n"
        "    syscall\n"
        "    mov %rsp, %rdi\n"
        "    mov %r12, %rsi\n"
        "    sub %rsi, %rdi\n"
        "    and $-4096, %rdi\n"
        "    mov $28, %eax\n"
        "    syscall\n"
        "    lea __ehdr_start(%rip), %rdi\n"
        "    mov %rbx, %rsi\n"
        "    sub %rdi, %rsi\n"
        "    mov $22, %edx\n"
        "    mov $28, %eax\n"
        "    syscall\n"
        "    mov %rsp, %rbx\n"
        "    and $-16, %rsp\n"
        "    call start_relocate\n"
        "    mov %rbx, %rsp\n"
        "    xor %ebp, %ebp\n"
        "    xor %edx, %edx\n"
        "    jmp _start\n"
        ".size program_start, . - program_start\n"
        ".popsection\n");

enum { RELR_BYTES = 35, RELR = 36 }; /* DT_RELRSZ, DT_RELR, which musl's headers may not have */
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern Elf64_Dyn _DYNAMIC[] __attribute__((visibility("hidden")));

void start_relocate(void) __attribute__((used, visibility("hidden")));
/* An even word is where an address is; each bit of an odd one, but for the lowest, stands for one of the 63 words that follow. */
__attribute__((no_stack_protector)) void start_relocate(void)
{
    const size_t base = (size_t)__ehdr_start;
    const size_t *word = NULL;
    size_t n = 0, *at = NULL;
    for (Elf64_Dyn *d = _DYNAMIC; d->d_tag != DT_NULL; d++) {
        if (d->d_tag == RELR)
            word = (const size_t *)(__ehdr_start + d->d_un.d_ptr);
        if (d->d_tag == RELR_BYTES) {
            n = d->d_un.d_val / sizeof *word;
            d->d_un.d_val = 0;
        }
    }
    for (; word && n; n--, word++) {
        if (*word % 2 == 0) {
            at = (size_t *)((uintptr_t)__ehdr_start + *word); // NOLINT(performance-no-int-to-ptr)
            *at++ += base;
            continue;
        }
        for (size_t bits = *word >> 1, i = 0; at && bits; bits >>= 1, i++) {
            if (bits & 1)
                at[i] += base;
        }
        at = at ? at + 63 : NULL; /* the first is even */
    }
}
#elif defined __aarch64__
__asm__(".pushsection .text.program_start,\"ax\",@progbits\n"
        ".globl program_start\n"
        ".hidden program_start\n"
        ".hidden __init_array_start\n"
        ".hidden __ehdr_start\n"
        ".hidden start_data_end\n"
        ".hidden exec_text_end\n"
        ".hidden start_text_end\n"
        ".type program_start, @function\n"
        "program_start:\n"
        "    adrp x0, __init_array_start\n"
        "    adrp x1, start_data_end\n"
        "    add x1, x1, :lo12:start_data_end\n"
        "    sub x1, x1, x0\n"
        "    mov x2, #23\n"
        "    mov x8, #233\n"
        "    svc #0\n"
        "    sub x0, sp, #40960\n"
        "    and x0, x0, #-4096\n"
        "    mov x1, #40960\n"
        "    mov x2, #23\n"
        "    svc #0\n"
        "    adrp x1, start_text_end\n"
        "    ldr x0, [sp]\n"
        "    cmp x0, #2\n"
        "    b.lt 1f\n"
        "    ldr x4, [sp, #16]\n"
        "    ldr w2, [x4]\n"
        "    movz w3, #0x7865\n"
        "    movk w3, #0x6365, lsl #16\n"
        "    cmp w2, w3\n"
        "    b.ne 1f\n"
        "    ldrb w2, [x4, #4]\n"
        "    cbnz w2, 1f\n"
        "    adrp x1, exec_text_end\n"
        "1:  adrp x0, __ehdr_start\n"
        "    sub x1, x1, x0\n"
        "    add x1, x1, #4096\n"
        "    mov x2, #22\n"
        "    mov x8, #233\n"
        "    svc #0\n"
        "    b _start\n"
        ".size program_start, . - program_start\n"
        ".popsection\n");
#endif

#if defined __x86_64__ || defined __aarch64__
/* mprotect(from, n, PROT_READ). Not the C library's, which lies elsewhere, and so costs each start a page fault. */
#ifdef __aarch64__
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
#define START_PAGE ((uintptr_t)getauxval(AT_PAGESZ))
static inline long start_may_read(uintptr_t from, size_t n)
{
    register long x8 __asm__("x8") = 226, x0 __asm__("x0") = (long)from, x1 __asm__("x1") = (long)n,
                     x2 __asm__("x2") = 1;
    __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
    return x0;
}
#else
#define START_PAGE ((uintptr_t)4096)
static inline long start_may_read(uintptr_t from, size_t n)
{
    long no = 10;
    __asm__ volatile("syscall" : "+a"(no) : "D"(from), "S"(n), "d"(1l) : "rcx", "r11", "memory");
    return no;
}
#endif

/* Tables of functions and the addresses of all that is linked: one wild write to them would choose what runs next. Processes that are
   forked later have it so, too. The kernel refuses it only where it may keep no more ranges of memory. */
__attribute__((constructor, used, section(".text.program_start"))) static void start_protect(void)
{
    const Elf64_Ehdr *head = (const Elf64_Ehdr *)__ehdr_start;
    const Elf64_Phdr *of = (const Elf64_Phdr *)(__ehdr_start + head->e_phoff);
    for (size_t i = 0; i < head->e_phnum; i++) {
        const uintptr_t at = (uintptr_t)__ehdr_start + of[i].p_vaddr;
        const uintptr_t from = at & -START_PAGE, to = (at + of[i].p_memsz) & -START_PAGE;
        if (of[i].p_type == PT_GNU_RELRO && to > from && start_may_read(from, to - from) < 0)
            __builtin_trap();
    }
}
#endif

typedef int start_is_assembly; /* ISO C has no empty translation unit */
