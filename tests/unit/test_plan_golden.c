/*
 * Golden plans: each tests/golden/NAME.in describes a policy and a host (test_plan_host.h); the plan's explanation, or
 * the error, must be NAME.out to the byte. GOLDEN_UPDATE=1 writes the .out files anew.
 */
#include "unit.h"

#include <dirent.h>

#include "plan/make.h"
#include "test_plan_host.h"

static char *read_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        return NULL;
    auto_buf struct buf b = BUF(8u << 20);
    char piece[4096];
    for (size_t n; (n = fread(piece, 1, sizeof piece, f)) > 0;)
        buf_put(&b, piece, n);
    fclose(f);
    return buf_take(&b);
}

/* Makes the plan twice: equal input gives an equal image, and the image passes the check a receiver makes. */
static void put_plan(struct host *h, struct buf *out)
{
    struct plan *p = NULL, *again = NULL;
    struct err e = {0};
    int r = plan_make(&h->policy, &h->facts, &h->ask, &p, &e);
    if (r < 0) {
        static const char *const kinds[] = {"none", "policy", "cannot", "refused", "system", "bug"};
        buf_printf(out, "error, %s: %s\n", kinds[e.kind], e.text);
        assert_int_not_equal(e.kind, ERR_BUG);
        assert_null(p);
        return;
    }
    assert_int_equal(plan_image_check(p->image, p->image->bytes), 0);
    assert_int_equal(plan_make(&h->policy, &h->facts, &h->ask, &again, &e), 0);
    assert_int_equal(p->image->bytes, again->image->bytes);
    assert_memory_equal(p->image, again->image, p->image->bytes);
    again = plan_free(again);
    assert_int_equal(plan_explain(p, h->values, out), 0);
    if (h->json) {
        buf_char(out, '\n');
        assert_int_equal(plan_explain_json(p, h->values, out), 0);
    }
    plan_free(p);
}

static bool check_one(const char *dir, const char *name)
{
    char in[512], to[512];
    snprintf(in, sizeof in, "%s/%s.in", dir, name);
    snprintf(to, sizeof to, "%s/%s.out", dir, name);
    char *text = read_file(in), *expected = read_file(to);
    assert_non_null(text);
    struct host h;
    host_begin(&h);
    if (!host_read(&h, text))
        fail_msg("%s.in: %s", name, h.error);
    auto_buf struct buf out = BUF(8u << 20);
    put_plan(&h, &out);
    bool equal = same(expected, buf_cstr(&out));
    if (!equal && getenv("GOLDEN_UPDATE")) {
        FILE *f = fopen(to, "wb");
        assert_non_null(f);
        fwrite(buf_cstr(&out), 1, out.n, f);
        fclose(f);
        equal = true;
    } else if (!equal) {
        print_error("%s: the plan is not as in %s.out; got:\n%s\n", name, name, buf_cstr(&out));
    }
    free(text);
    free(expected);
    host_end(&h);
    return equal;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void golden(void **state)
{
    (void)state;
    char dir[256];
    const char *source = getenv("PINFOLD_SOURCE");
    snprintf(dir, sizeof dir, "%s/tests/golden", source ? source : "../..");
    DIR *d = opendir(dir);
    assert_non_null(d);
    char *names[256];
    size_t n = 0, wrong = 0;
    for (struct dirent *e; n < 256 && (e = readdir(d));) {
        size_t k = strlen(e->d_name);
        if (k > 3 && strcmp(e->d_name + k - 3, ".in") == 0)
            names[n++] = strndup(e->d_name, k - 3);
    }
    closedir(d);
    assert_true(n >= 25);
    qsort(names, n, sizeof *names, by_name);
    for (size_t i = 0; i < n; i++) {
        wrong += !check_one(dir, names[i]);
        free(names[i]);
    }
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(golden)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
