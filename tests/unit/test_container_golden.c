/*
 * The command lines of docker and podman: each tests/golden/container/NAME.in describes a policy, a host and what the engine
 * said (test_plan_host.h); the words, one on each line, or the error, must be NAME.out to the byte. GOLDEN_UPDATE=1 writes
 * the .out files anew.
 */
#include "unit.h"

#include "backends/container/container.h"
#include "plan/make.h"
#include "golden.h"
#include "test_plan_host.h"

static void put_words(const char *const *argv, const char *digest, struct buf *out)
{
    for (; *argv; argv++) {
        bool option = argv[0][0] == '-' && argv[1] && argv[1][0] != '-' && !strchr(*argv, '=') &&
                      !same(*argv, "--read-only") && !same(*argv, "--rm") && !same(*argv, "--no-healthcheck");
        buf_printf(out, "%s%c", same(*argv, digest) ? "DIGEST" : *argv, option ? ' ' : '\n');
    }
}

/* Twice, with the same answer; and no value of the environment is ever in it. */
static void put_argv(struct host *h, struct buf *out)
{
    const struct tool_ask ask = {.program = h->container.podman ? "/usr/bin/podman" : "/usr/bin/docker",
                                 .init = "/usr/lib/pinfold/pinfold-init",
                                 .place = "/run/user/1000/place",
                                 .id = "0123456789abcdef",
                                 .boot = "11111111-2222-3333-4444-555555555555"};
    struct plan *p = NULL;
    struct err e = {0};
    const char *const *argv = NULL, *const *again = NULL;
    char digest[65];
    if (plan_make(&h->policy, &h->facts, &h->ask, &p, &e) < 0) {
        buf_printf(out, "error: %s\n", e.text);
        assert_int_not_equal(e.kind, ERR_BUG);
        return;
    }
    assert_int_equal(plan_image_check(p->image, p->image->bytes), 0);
    assert_int_equal(container_argv(p, &ask, h->mem, &argv, &e), 0);
    assert_int_equal(container_argv(p, &ask, h->mem, &again, &e), 0);
    for (size_t i = 0; argv[i] || again[i]; i++) {
        assert_string_equal(argv[i], again[i]);
        assert_null(strstr(argv[i], "secret-value"));
    }
    plan_image_digest(p, digest);
    put_words(argv, digest, out);
    buf_text(out, "environment");
    for (const char **v = p->env; *v; v++)
        buf_printf(out, " %.*s", (int)strcspn(*v, h->values ? "" : "="), *v);
    buf_printf(out, "\nfilter %u, uid %u, gid %u, in %s\n", p->image->filter, p->image->uid, p->image->gid, p->cwd);
    plan_free(p);
}

static void make(const char *name, const char *text, struct buf *out)
{
    struct host h;
    host_begin(&h);
    if (!host_read(&h, text))
        fail_msg("%s.in: %s", name, h.error);
    put_argv(&h, out);
    host_end(&h);
}

static void golden(void **state)
{
    (void)state;
    golden_folder("/container", "out", 12, make);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(golden)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
