/*
 * Our own handwriting: what is printed is read back as an equal policy, whatever was said. And the schema.
 */
#include "policy_help.h"

static struct policy *read_back(const struct policy *p, bool origins)
{
    struct buf out = BUF(8 << 20);
    struct policy *again = NULL;
    struct err e;
    assert_int_equal(policy_print(p, origins, &out), 0);
    struct layer_said said[] = {{LAYER_FLAGS, POLICY_YAML, "policy text", buf_cstr(&out), true}, {0}};
    if (build_in(&test_world, said, NULL, &again, &e) < 0)
        fail_msg("%s\n%s", e.text, buf_cstr(&out));
    buf_free(&out);
    return again;
}

static char *canonical(const struct policy *p)
{
    struct buf out = BUF(8 << 20);
    assert_int_equal(policy_canonical(p, &out), 0);
    return buf_take(&out);
}

static void check(struct policy *p)
{
    for (int origins = 0; origins < 2; origins++) {
        struct policy *again = read_back(p, origins);
        char *a = canonical(p), *b = canonical(again);
        if (!policy_equal(p, again) || !same(a, b))
            fail_msg("--- printed\n%s\n--- read back\n%s", a, b);
        free(a);
        free(b);
        policy_free(again);
    }
    policy_free(p);
}

static void every_profile_comes_back(void **state)
{
    (void)state;
    static const char *const parts[] = {"none", "system", "base"};
    for (const char *const *name = profile_names(); *name; name++)
        check(flags_good((const char *const[]){"profile", *name, NULL}));
    for (size_t i = 0; i < 3; i++)
        check(flags_good((const char *const[]){"profile", parts[i], NULL}));
}

static void nothing_turns_its_text(void **state)
{
    (void)state;
    struct policy *p = flags_good((const char *const[]){"ro", "/data/x\xe2\x80\xaetxt.exe", NULL});
    struct buf out = BUF(8 << 20);
    assert_int_equal(policy_print(p, false, &out), 0);
    assert_non_null(strstr(buf_cstr(&out), "\"/data/x\\xE2\\x80\\xAEtxt.exe\""));
    buf_free(&out);
    check(p);
}

static void every_key_comes_back(void **state)
{
    (void)state;
    check(flags_good((const char *const[]){"rw",
                                           "/data",
                                           "ro",
                                           "sub",
                                           "hide",
                                           "**/.env",
                                           "hide",
                                           "x/**/a/*.pem",
                                           "protect",
                                           "[ab]*",
                                           "mount",
                                           "/s\\:rc:/d st:ro",
                                           "memory",
                                           "5001K",
                                           "cpus",
                                           "0.125",
                                           "pids",
                                           "none",
                                           "disk",
                                           "1000001",
                                           "timeout",
                                           "1h30m1ms",
                                           "grace",
                                           "0",
                                           "output",
                                           "16M",
                                           "env",
                                           "A=b=c\n#d",
                                           "env",
                                           "B",
                                           "unset",
                                           "LC_*",
                                           "user",
                                           "12:34",
                                           "tty",
                                           "never",
                                           "engine",
                                           "native",
                                           "image",
                                           "r/x:1@sha256:ab",
                                           "allow",
                                           "[2001:db8::1]:443",
                                           "allow",
                                           "npm.",
                                           "allow",
                                           "*",
                                           "deny",
                                           "10.0.0.0/8",
                                           "deny-port",
                                           "1-2",
                                           "publish",
                                           "[::1]:3000:1",
                                           "reach",
                                           "db:5432",
                                           "unix-socket",
                                           "/run/x y",
                                           "guard",
                                           "off",
                                           "expand",
                                           "start",
                                           "vm-kernel",
                                           "/boot/vm linuz",
                                           "vm-modules",
                                           "~/m",
                                           "seatbelt-base",
                                           "permissive",
                                           "seatbelt-file",
                                           "p.sb",
                                           "hostname",
                                           "null",
                                           "allow-nested-userns",
                                           NULL,
                                           "read-only",
                                           NULL,
                                           "may-lose",
                                           "hides",
                                           "open-files",
                                           "1024",
                                           "cache",
                                           "~/c",
                                           "workspace",
                                           "a: b #c",
                                           NULL}));
    check(flags_good((const char *const[]){"user", "root", "net", "host", "profile", "none", NULL}));
    check(flags_good((const char *const[]){"net", "allow", "tty", "always", "guard", "existing", NULL}));
    struct layer_said said[] = {{LAYER_USER, POLICY_YAML, "/home/u/p/f",
                                 "files: {rw: [{path: a, optional: true}, b], ro: [{path: c, optional: true}], hide: "
                                 "[{path: h, absent: true}]}\n"
                                 "guard_names: {root: [a, b/, '*.q', '**/f', '**/g/', '**/*.h'], everyday: guard, "
                                 "everyday_names: [d, e/, '*.q', '**/i'], "
                                 "any_depth: [c/d/], git_config: [e], allow: [.vscode]}\n"
                                 "env: {set: {null: 'x', A: \"\"}}\n",
                                 true},
                                {0}};
    struct policy *p = NULL;
    struct err e;
    assert_int_equal(build_in(&test_world, said, NULL, &p, &e), 0);
    check(p);
}

static void any_byte_comes_back(void **state)
{
    (void)state;
    struct policy_builder *b = policy_builder_new(&test_world);
    struct policy *p = NULL;
    struct err e;
    srand(11);
    for (int i = 0; i < tries(700); i++) {
        char name[16] = "/w/", said[64] = "";
        name[1] = i % 2 ? 'h' : 'w'; /* two trees: one place is never both */
        for (size_t n = 3; n < 3 + (size_t)(1 + i % 9); n++) {
            static const char special[] =
                "*?[]\\$~:#'\" \n\t\r,{}&!|>%@`-\x7F\x85\xA0\xFF\xC3\xE2\x80\xA8\xEF\xBB\xBF\xF0";
            do
                name[n] = rand() % 3 ? special[rand() % ((int)sizeof special - 1)] : (char)(1 + rand() % 255);
            while (name[n] == '/' || name[n] == '.');
        }
        for (const char *c = name; *c; c++) {
            if (strchr("*?[\\$~", *c))
                strcat(said, "\\");
            strcat(said, (const char[]){*c, 0});
        }
        assert_int_equal(policy_add_flag(b, i % 2 ? "hide" : "rw", said, "--x", &e), 0);
        char value[40];
        snprintf(value, sizeof value, "V%d=%s", i, name);
        assert_int_equal(policy_add_flag(b, "env", value, "--env", &e), 0);
    }
    int r = policy_build(b, &p, &e);
    assert_int_equal(r, 0);
    policy_builder_free(b);
    check(p);
}

static void foreign_settings_come_back(void **state)
{
    (void)state;
    static const char text[] =
        "{\"filesystem\": {\"denyRead\": [\"a\\nversion: 2\"], \"allowWrite\": [\"x*\\n- /etc\"]}, \"k\\n# x\": 1,\n"
        "\"network\": {\"allowedDomains\": [\"a.com\"]}}";
    struct layer_said said[] = {{LAYER_FLAGS, POLICY_SRT, "/home/u/p/s\nettings", text, true}, {0}};
    struct policy *p = NULL;
    struct err e;
    assert_int_equal(build_in(&test_world, said, NULL, &p, &e), 0);
    assert_int_equal(p->n_ignored, 2);
    check(p);
}

static void equality_sees_each_difference(void **state)
{
    (void)state;
    static const char *const changes[][2] = {{"rw", "/x"},
                                             {"hide", "/x"},
                                             {"protect", "*.c"},
                                             {"mount", "/a:/b"},
                                             {"memory", "1G"},
                                             {"pids", "4096"},
                                             {"env", "A=1"},
                                             {"env", "A"},
                                             {"unset", "PATH"},
                                             {"allow", "a.com"},
                                             {"deny", "a.com"},
                                             {"net", "allow"},
                                             {"publish", "80"},
                                             {"reach", "a:1"},
                                             {"unix-socket", "/s"},
                                             {"guard", "off"},
                                             {"expand", "start"},
                                             {"user", "root"},
                                             {"user", "1:1"},
                                             {"tty", "never"},
                                             {"engine", "vm"},
                                             {"image", "x"},
                                             {"hostname", "x"},
                                             {"vm-kernel", "/k"},
                                             {"vm-modules", "/m"},
                                             {"seatbelt-base", "permissive"},
                                             {"seatbelt-file", "/p"},
                                             {"allow-nested-userns", NULL},
                                             {"read-only", NULL},
                                             {"may-lose", "hides"},
                                             {"workspace", "/w"},
                                             {"cache", "/c"},
                                             {"must-have", "fresh-proc"},
                                             {"ro", "/x"},
                                             {"hide", "**/x"},
                                             {"mount", "/a:/b:ro"}};
    enum { N = sizeof changes / sizeof *changes };
    struct policy *p[N + 1];
    struct buf said[N + 1];
    p[N] = flags_good((const char *const[]){"profile", "workspace", NULL});
    for (size_t i = 0; i < N; i++)
        p[i] = flags_good((const char *const[]){changes[i][0], changes[i][1], NULL});
    for (size_t i = 0; i <= N; i++) {
        said[i] = BUF(1 << 20);
        assert_int_equal(policy_canonical(p[i], &said[i]), 0);
    }
    for (size_t i = 0; i <= N; i++) {
        for (size_t k = i; k <= N; k++) { /* each pair once, in one order or the other */
            const size_t first = (i + k) % 2 ? i : k, other = first == i ? k : i;
            /* pids 4096 asks for what is the default: the same text, although asked for. */
            if (policy_equal(p[first], p[other]) != (i == k) ||
                (!str_eq(buf_view(&said[i]), buf_view(&said[k])) != (i != k) && i != 5 && k != 5))
                fail_msg("--%s %s and --%s %s", changes[i][0], changes[i][1], changes[k][0], changes[k][1]);
        }
    }
    for (size_t i = 0; i <= N; i++) {
        policy_free(p[i]);
        buf_free(&said[i]);
    }
}

static void origins_stand_behind_what_they_said(void **state)
{
    (void)state;
    struct policy *p = flags_good((const char *const[]){"rw", "/x", NULL});
    struct buf out = BUF(1 << 20);
    assert_int_equal(policy_print(p, true, &out), 0);
    assert_non_null(strstr(buf_cstr(&out), "    - /x  # --rw\n"));
    assert_non_null(strstr(buf_cstr(&out), "    - /home/u/.ssh  # built in (profile base:"));
    assert_null(strstr(buf_cstr(&out), ".config/pinfold"));
    buf_free(&out);
    struct buf small = BUF(100);
    assert_int_equal(policy_print(p, true, &small), -ENOMEM);
    buf_free(&small);
    policy_free(p);
}

/* The schema is JSON (read here as the YAML that it is) and has a place for every key of the table. */
static void schema_has_every_key(void **state)
{
    (void)state;
    struct buf out = BUF(1 << 20);
    size_t n;
    const struct policy_key *keys = policy_keys(&n);
    assert_int_equal(policy_schema(&out), 0);
    for (size_t i = 0; i < n; i++) {
        const char *dot = strrchr(keys[i].path, '.');
        char name[64];
        snprintf(name, sizeof name, "\"%s\": {", dot ? dot + 1 : keys[i].path);
        assert_non_null(strstr(buf_cstr(&out), name));
    }
    int depth = 0;
    for (const char *c = buf_cstr(&out); *c; c++)
        depth += *c == '{' ? 1 : *c == '}' ? -1 : 0;
    assert_int_equal(depth, 0);
    buf_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_profile_comes_back),
                                       cmocka_unit_test(nothing_turns_its_text),
                                       cmocka_unit_test(every_key_comes_back),
                                       cmocka_unit_test(any_byte_comes_back),
                                       cmocka_unit_test(foreign_settings_come_back),
                                       cmocka_unit_test(equality_sees_each_difference),
                                       cmocka_unit_test(origins_stand_behind_what_they_said),
                                       cmocka_unit_test(schema_has_every_key)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
