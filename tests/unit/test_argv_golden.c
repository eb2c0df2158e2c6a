/*
 * Golden command lines: for every policy of tests/golden/ the words with which the engines are started that are other
 * people's programs, NAME.argv to the byte. The plan's digest is written as PLAN: it changes with everything.
 * GOLDEN_UPDATE=1 writes the files anew.
 */
#include "unit.h"

#include "backends/tools/tool.h"
#include "plan/make.h"
#include "golden.h"
#include "test_plan_host.h"

static void put_command(const struct engine *engine, const struct plan *p, struct arena *mem, struct buf *out)
{
    auto_buf struct buf text = BUF(1u << 20);
    const char *const *argv, *const *again;
    struct err e = {0};
    char digest[65];
    const struct tool_ask ask = {.program = arena_printf(mem, "/usr/bin/%s", engine->program),
                                 .init = "/usr/libexec/pinfold/pinfold-init",
                                 .place = "/run/user/1000/pinfold/c-1",
                                 .id = "1"};
    if (engine->argv(p, &ask, mem, &argv, &e) < 0) {
        buf_printf(out, "%s: error: %s\n", engine->name, e.text);
        return;
    }
    assert_int_equal(engine->argv(p, &ask, mem, &again, &e), 0);
    plan_image_digest(p, digest);
    for (size_t i = 0; argv[i]; i++) {
        assert_string_equal(argv[i], again[i]);
        for (const char **v = p->env; *v; v++) /* no variable, and with it no secret, in what everybody can list */
            assert_null(strstr(argv[i], *v));
        assert_null(strstr(argv[i], "hunter2"));
    }
    tool_print(argv, ask.init, &text);
    char *at = strstr(text.p, digest);
    assert_non_null(at);
    buf_put(out, text.p, (size_t)(at - text.p));
    buf_printf(out, "PLAN%s\n", at + strlen(digest));
}

/* The engines that start a program in the host's files; those with images are not said by these policies. */
static void put_all(struct host *h, struct buf *out)
{
    for (size_t i = 0; engines[i]; i++) {
        struct plan *p = NULL;
        struct err e = {0};
        if (!engines[i]->argv || engines[i]->images || engines[i] == &engine_vm || engines[i] == &engine_seatbelt)
            continue;
        h->facts.tool_namespaces = engines[i]->namespaces;
        h->ask.so_far = false; /* of a plan that is refused nothing is started */
        if (plan_make(&h->policy, &h->facts, &h->ask, &p, &e) < 0)
            return; /* NAME.out says why */
        assert_int_equal(plan_image_check(p->image, p->image->bytes), 0);
        put_command(engines[i], p, h->mem, out);
        plan_free(p);
    }
}

static void make(const char *name, const char *text, struct buf *out)
{
    struct host h;
    host_begin(&h);
    if (!host_read(&h, text))
        fail_msg("%s.in: %s", name, h.error);
    if (h.facts.tier == TIER_NAMESPACES)
        put_all(&h, out);
    host_end(&h);
}

static void golden(void **state)
{
    (void)state;
    golden_folder("", "argv", 25, make);
}

/* Quoting: what is printed is what a shell makes of it again. */
static void quoting(void **state)
{
    (void)state;
    static const struct {
        const char *word, *printed;
    } table[] = {{"/usr/bin/x", "/usr/bin/x"},
                 {"", "''"},
                 {"a b", "'a b'"},
                 {"it's", "'it'\\''s'"},
                 {"$(rm -rf /)", "'$(rm -rf /)'"},
                 {"*?[", "'*?['"},
                 {"~", "'~'"},
                 {"a\nb", "'a\nb'"},
                 {"a\tb", "\"$(printf '\\141\\011\\142')\""},
                 {"\033[31m", "\"$(printf '\\033\\133\\063\\061\\155')\""}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const char *const argv[] = {"x", table[i].word, NULL};
        auto_buf struct buf out = BUF(4096), expected = BUF(4096);
        tool_print(argv, "/init", &out);
        buf_printf(&expected, "x %s\n", table[i].printed);
        assert_string_equal(buf_cstr(&out), buf_cstr(&expected));
    }
    const char *const argv[] = {"x", TOOL_INIT_PATH, NULL};
    auto_buf struct buf out = BUF(4096);
    tool_print(argv, "/a b/init", &out);
    assert_string_equal(buf_cstr(&out), "x /proc/self/fd/9 9<'/a b/init'\n");
}

static void table_of_engines(void **state)
{
    (void)state;
    size_t n = 0;
    for (; engines[n]; n++) {
        assert_ptr_equal(engine_by_name(engines[n]->name), engines[n]);
        assert_non_null(engines[n]->probe);
        assert_non_null(engines[n]->start);
        assert_non_null(engines[n]->finish);
        assert_int_equal(engines[n]->argv != NULL, engines[n]->program != NULL);
        for (size_t i = 0; i < n; i++)
            assert_string_not_equal(engines[i]->name, engines[n]->name);
    }
    assert_true(n >= 4);
    assert_ptr_equal(engines[0], &engine_native);
    assert_null(engine_by_name("unsandboxed"));
    assert_null(engine_by_name("auto"));
    assert_null(engine_by_name(""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(golden), cmocka_unit_test(quoting),
                                       cmocka_unit_test(table_of_engines)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
