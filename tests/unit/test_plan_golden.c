/*
 * Golden plans: each tests/golden/NAME.in describes a policy and a host (test_plan_host.h); the plan's explanation, or
 * the error, must be NAME.out to the byte. GOLDEN_UPDATE=1 writes the .out files anew.
 */
#include "unit.h"

#include "plan/make.h"
#include "golden.h"
#include "test_plan_host.h"

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

static void make(const char *name, const char *text, struct buf *out)
{
    struct host h;
    host_begin(&h);
    if (!host_read(&h, text))
        fail_msg("%s.in: %s", name, h.error);
    put_plan(&h, out);
    host_end(&h);
}

static void golden(void **state)
{
    (void)state;
    golden_folder("", "out", 25, make);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(golden)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
