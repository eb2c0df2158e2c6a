/*
 * base/short.c against the C library. Every length and alignment that matters, at the very end of a page,
 * overlapping.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>
#include <string.h>

static void *(*const real_memcpy)(void *, const void *, size_t) = memcpy;
static void *(*const real_memmove)(void *, const void *, size_t) = memmove;
static void *(*const real_memset)(void *, int, size_t) = memset;
static int (*const real_strcmp)(const char *, const char *) = strcmp;

void *short_memcpy(void *restrict to, const void *restrict from, size_t n);
void *short_memmove(void *to, const void *from, size_t n);
void *short_memset(void *to, int byte, size_t n);
size_t short_strlen(const char *text);
int short_strcmp(const char *a, const char *b);
#define memcpy  short_memcpy
#define memmove short_memmove
#define memset  short_memset
#define strlen  short_strlen
#define strcmp  short_strcmp
#include "base/short.c"
#undef memcpy
#undef memmove
#undef memset
#undef strlen
#undef strcmp

enum { LONGEST = 300, PAGE = 4096 };

/* Two pages, of which the second may not be touched: the end of the first. */
static char *page_end(void)
{
    char *p = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(p != MAP_FAILED);
    assert_int_equal(mprotect(p + PAGE, PAGE, PROT_NONE), 0);
    return p + PAGE;
}

static void fill(char *p, size_t n, unsigned seed)
{
    for (size_t i = 0; i < n; i++)
        p[i] = (char)(1 + (seed * 31 + i * 7) % 250);
}

static void copies(void **state)
{
    (void)state;
    char *from_end = page_end(), *to_end = page_end();
    char want[LONGEST + 64], got[LONGEST + 64];
    for (size_t n = 0; n <= LONGEST; n++) {
        fill(from_end - n, n, (unsigned)n);
        assert_ptr_equal(short_memcpy(to_end - n, from_end - n, n), to_end - n);
        assert_memory_equal(to_end - n, from_end - n, n);
        for (size_t at = 0; at < 17; at++) { /* neighbours stay */
            fill(want, sizeof want, 3);
            fill(got, sizeof got, 3);
            real_memcpy(want + at + 1, from_end - n, n);
            short_memcpy(got + at + 1, from_end - n, n);
            assert_memory_equal(want, got, sizeof want);
            real_memset(want + at + 1, (int)n, n);
            short_memset(got + at + 1, (int)n, n);
            assert_memory_equal(want, got, sizeof want);
        }
        short_memset(to_end - n, 0xa5, n);
        for (size_t i = 0; i < n; i++)
            assert_int_equal((unsigned char)to_end[(ptrdiff_t)i - (ptrdiff_t)n], 0xa5);
    }
}

static void moves(void **state)
{
    (void)state;
    char want[LONGEST], got[LONGEST];
    for (size_t n = 0; n < 120; n++) {
        for (size_t from = 0; from < 50; from++) {
            for (size_t to = 0; to < 50; to++) {
                fill(want, sizeof want, 5);
                fill(got, sizeof got, 5);
                real_memmove(want + to, want + from, n);
                short_memmove(got + to, got + from, n);
                assert_memory_equal(want, got, sizeof want);
            }
        }
    }
}

static int sign(int v)
{
    return (v > 0) - (v < 0);
}

static void texts(void **state)
{
    (void)state;
    char *a_end = page_end(), *b_end = page_end();
    for (size_t n = 0; n < 80; n++) {
        for (size_t before = 0; before < 40; before++) {
            char *a = a_end - n - 1 - before, *b = b_end - n - 1;
            fill(a, n, 9);
            a[n] = 0;
            fill(b, n, 9);
            b[n] = 0;
            assert_int_equal(short_strlen(a), n);
            assert_int_equal(short_strlen(b), n);
            assert_int_equal(short_strcmp(a, b), 0);
            for (size_t i = 0; i < n; i++) {
                char kept = b[i];
                b[i] = (char)(kept ^ 0x80);
                assert_int_equal(sign(short_strcmp(a, b)), sign(real_strcmp(a, b)));
                b[i] = 0;
                assert_int_equal(sign(short_strcmp(a, b)), 1);
                assert_int_equal(sign(short_strcmp(b, a)), -1);
                b[i] = kept;
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(copies), cmocka_unit_test(moves), cmocka_unit_test(texts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
