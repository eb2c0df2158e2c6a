/*
 * Layers of policies: who wins, what adds up, what pinfold keeps for itself. And how profiles stand below everything.
 */
#include "policy_help.h"

static struct policy *layered(const struct layer_said *said, const char *const *flags)
{
    struct policy *p = NULL;
    struct err e;
    if (build_in(&test_world, said, flags, &p, &e) < 0)
        fail_msg("%s", e.text);
    return p;
}

static void refused(const struct layer_said *said, const char *const *flags, const char *sentence)
{
    struct policy *p = NULL;
    struct err e;
    if (build_in(&test_world, said, flags, &p, &e) == 0)
        fail_msg("taken, but wants: %s", sentence);
    if (!same(e.text, sentence))
        fail_msg("\n says: %s\nwants: %s", e.text, sentence);
}

#define SYSTEM(text)                                                                                                   \
    {                                                                                                                  \
        LAYER_SYSTEM, POLICY_YAML, "/etc/pinfold/policy.yaml", text, true                                              \
    }
#define USER(text)                                                                                                     \
    {                                                                                                                  \
        LAYER_USER, POLICY_YAML, "/home/u/user.yaml", text, true                                                       \
    }
#define PROJECT(text)                                                                                                  \
    {                                                                                                                  \
        LAYER_PROJECT, POLICY_YAML, "/home/u/p/.pinfold/policy.yaml", text, true                                       \
    }
#define FILE_(text)                                                                                                    \
    {                                                                                                                  \
        LAYER_FLAGS, POLICY_YAML, "/home/u/p/file.yaml", text, true                                                    \
    }

static void nothing_said_is_the_default_profile(void **state)
{
    (void)state;
    struct policy *p = layered(NULL, NULL);
    assert_string_equal(p->profile, "workspace");
    assert_string_equal(p->workspace, "/home/u/p");
    assert_int_equal(p->workspace_origin, 0);
    assert_false(p->workspace_read_only);
    assert_int_equal(p->net, NET_NONE);
    assert_int_equal(p->guard, GUARD_STRICT);
    assert_int_equal(p->limits.processes.value, 4096);
    assert_false(p->limits.processes.asked);
    assert_true(p->limits.memory.value == LIMIT_NONE && p->limits.timeout.value == LIMIT_NONE);
    assert_int_equal(p->limits.grace.value, 5000);
    assert_true(p->may_lose == FEATURES_BUILTIN_MAY_LOSE);
    assert_int_equal(rule_for(p, "/home/u/.ssh")->access, PATH_HIDE);
    assert_true(rule_for(p, "/home/u/.ssh")->optional);
    assert_int_equal(rule_for(p, "/home/u/.cargo/registry")->access, PATH_CACHE);
    assert_int_equal(rule_for(p, "/home/u/.config/pinfold")->access, PATH_HIDE);
    assert_int_equal(rule_for(p, "/home/u/.local/state/pinfold")->access, PATH_HIDE);
    assert_int_equal(rule_for(p, "/home/u/p/.pinfold")->access, PATH_PROTECT);
    char text[64];
    policy_origin(p, rule_for(p, "/home/u/.ssh")->origin, text, sizeof text);
    assert_memory_equal(text, "built in (profile base:", 23);
    assert_string_equal(policy_origin(p, 0, text, sizeof text), "built in");
    assert_string_equal(policy_origin(p, 999999, text, sizeof text), "built in");
    policy_free(p);
}

static void every_profile_is_what_it_says(void **state)
{
    (void)state;
    for (const char *const *name = profile_names(); *name; name++) {
        const char *const flags[] = {"profile", *name, NULL};
        struct policy *p = flags_good(flags);
        assert_string_equal(p->profile, *name);
        assert_int_equal(p->net, NET_NONE);
        assert_true(p->may_lose == FEATURES_BUILTIN_MAY_LOSE);
        assert_int_equal(rule_for(p, "/home/u/.ssh")->access, PATH_HIDE);
        assert_int_equal(p->workspace_read_only, same(*name, "readonly"));
        assert_int_equal(p->guard, same(*name, "permissive") ? GUARD_EXISTING : GUARD_STRICT);
        assert_int_equal(p->allow_nested_userns, same(*name, "permissive"));
        assert_int_equal(rule_for(p, "/home/u/.npm")->access, same(*name, "restrictive") ? PATH_RO : PATH_CACHE);
        bool untrusted = same(*name, "untrusted");
        assert_int_equal(rule_for(p, "/etc/passwd") != NULL, untrusted);
        assert_true(p->limits.memory.value == (untrusted ? 512ull << 20 : LIMIT_NONE));
        assert_true(p->limits.disk.value == (untrusted ? 1ull << 30 : LIMIT_NONE));
        assert_true(p->limits.cpus.value == (untrusted ? 500 : LIMIT_NONE));
        assert_true(p->limits.timeout.value == (untrusted ? 60000 : LIMIT_NONE));
        assert_true(p->limits.processes.value == (untrusted ? 50 : 4096));
        assert_int_equal(p->limits.memory.asked, untrusted);
        for (size_t i = 0; i < p->n_env; i++) { /* nothing that holds secrets, nor the loader's, nor proxies */
            assert_null(strstr(p->env[i].name, "TOKEN"));
            assert_null(strstr(p->env[i].name, "SECRET"));
            assert_null(strstr(p->env[i].name, "PASS"));
            assert_null(strstr(p->env[i].name, "AWS"));
            assert_null(strstr(p->env[i].name, "LD_P"));
            assert_null(strstr(p->env[i].name, "LD_L"));
            assert_null(strstr(p->env[i].name, "PROXY"));
            assert_null(strstr(p->env[i].name, "AUTH_SOCK"));
        }
        policy_free(p);
    }
}

static void later_layers_win(void **state)
{
    (void)state;
    struct layer_said said[] = {FILE_("limits: {pids: 5}\nfiles: {rw: [/a]}"),
                                PROJECT("limits: {pids: 4, memory: 1G}\nfiles: {ro: [/a], hide: [/b]}"),
                                USER("limits: {pids: 3, memory: 2G}\nfiles: {hide: [/a], rw: [/b]}\ntty: never"),
                                SYSTEM("limits: {pids: 2, memory: 3G, disk: 1G}\ntty: always"),
                                {0}};
    struct policy *p = layered(said, (const char *const[]){"pids", "6", NULL});
    assert_int_equal(p->limits.processes.value, 6);
    assert_int_equal(p->limits.memory.value, 1ull << 30);
    assert_int_equal(p->limits.disk.value, 1ull << 30);
    assert_int_equal(p->tty, TTY_NEVER);
    assert_int_equal(rule_for(p, "/a")->access, PATH_RW);
    assert_int_equal(rule_for(p, "/b")->access, PATH_HIDE);
    char text[64];
    assert_string_equal(policy_origin(p, rule_for(p, "/a")->origin, text, sizeof text), "/home/u/p/file.yaml:2:14");
    assert_string_equal(policy_origin(p, p->limits.processes.origin, text, sizeof text), "--pids");
    policy_free(p);
}

static void lists_append_and_denials_stay(void **state)
{
    (void)state;
    struct layer_said said[] = {
        SYSTEM("net: {deny: [bad.com], deny_ports: [25]}"),
        USER("net: {allow: [a.com], unix_sockets: [/run/a]}\nenv: {pass: [A], set: {B: 1}}"),
        PROJECT("net: {allow: [b.com, A.com.], deny: [bad.com]}\nenv: {remove: [A], set: {B: 2}}"),
        {0}};
    struct policy *p = layered(said, (const char *const[]){"profile", "none", "unix-socket", "/run/b", NULL});
    assert_int_equal(p->net, NET_ALLOW);
    assert_int_equal(p->n_net_rules, 4);
    assert_string_equal(p->net_rules[0].text, "a.com");
    assert_string_equal(p->net_rules[1].text, "b.com");
    assert_string_equal(p->net_rules[2].text, "bad.com");
    assert_int_equal(p->net_rules[2].verb, NET_RULE_DENY);
    assert_string_equal(p->net_rules[3].text, "25");
    assert_int_equal(p->n_unix_sockets, 2);
    assert_int_equal(p->n_env, 2);
    assert_true(p->env[0].remove);
    assert_string_equal(p->env[1].value, "2");
    policy_free(p);

    /* Allowed hosts say nothing once somebody above says none, or host. */
    p = layered(said, (const char *const[]){"net", "none", NULL});
    assert_int_equal(p->net, NET_NONE);
    for (size_t i = 0; i < p->n_net_rules; i++)
        assert_int_not_equal(p->net_rules[i].verb, NET_RULE_ALLOW);
    policy_free(p);
}

static void keys_of_the_agent(void **state)
{
    (void)state;
    struct layer_said said[] = {USER("ssh_agent: [a@b, 'SHA256:x=git', ~/.ssh/k.pub, 'a@b=Git.Example:22']"), {0}};
    struct policy *p =
        layered(said, (const char *const[]){"ssh-agent", "a@b,z=*.example,./k.pub", "ssh-confirm", "true", NULL});
    static const char *const keys[][2] = {{"/home/u/.ssh/k.pub", NULL}, {"/home/u/p/k.pub", NULL},
                                          {"SHA256:x", "git"},          {"a@b", NULL},
                                          {"a@b", "Git.Example:22"},    {"z", "*.example"}};
    assert_int_equal(p->n_ssh_keys, 6);
    for (size_t i = 0; i < 6; i++) {
        assert_string_equal(p->ssh_keys[i].key, keys[i][0]);
        assert_true(same(p->ssh_keys[i].host, keys[i][1]));
    }
    assert_true(p->ssh_confirm);
    auto_buf struct buf out = BUF(1 << 20);
    assert_int_equal(policy_print(p, false, &out), 0);
    assert_non_null(strstr(buf_cstr(&out), "\nssh_agent:\n"));
    assert_non_null(strstr(buf_cstr(&out), "\nssh_confirm: true\n"));
    struct layer_said again[] = {USER(buf_cstr(&out)), {0}};
    struct policy *q = layered(again, (const char *const[]){NULL});
    assert_true(policy_equal(p, q));
    q->ssh_keys[0].host = "git";
    assert_false(policy_equal(p, q));
    policy_free(q);
    policy_free(p);
}

static void rules_for_git(void **state)
{
    (void)state;
    struct layer_said said[] = {USER("git: {verify: told, protect_branches: [main, 'release/*', \"we[ir]d\\\\*\"]}"),
                                {LAYER_PROJECT, POLICY_YAML, "/home/u/p/.pinfold/policy.yaml",
                                 "git: {verify: required, protect_branches: [dev, main]}", false},
                                {0}};
    struct policy *p = layered(said, (const char *const[]){"git-allow-force", "true", "protect-branch", "x", NULL});
    static const char *const names[] = {"dev", "main", "release/*", "we[ir]d\\*", "x"};
    assert_int_equal(p->git.n_branches, 5);
    for (size_t i = 0; i < 5; i++)
        assert_string_equal(p->git.branches[i].pattern, names[i]);
    assert_int_equal(p->git.verify, GIT_VERIFY_REQUIRED);
    assert_true(p->git.allow_force && !p->git.allow_delete);
    auto_buf struct buf out = BUF(1 << 20);
    assert_int_equal(policy_print(p, false, &out), 0);
    assert_non_null(strstr(buf_cstr(&out), "\ngit:\n  verify: required\n  allow_force: true\n  protect_branches:\n"
                                           "    - dev\n    - main\n    - \"release/*\"\n"));
    struct layer_said again[] = {USER(buf_cstr(&out)), {0}};
    struct policy *q = layered(again, (const char *const[]){NULL});
    assert_true(policy_equal(p, q));
    q->git.branches[0].pattern = "other";
    assert_false(policy_equal(p, q));
    policy_free(q);
    policy_free(p);
    /* Without a name all are protected: a project's would leave the others. */
    struct layer_said first[] = {
        {LAYER_PROJECT, POLICY_YAML, "/home/u/p/.pinfold/policy.yaml", "git: {protect_branches: [dev]}", false}, {0}};
    p = layered(first, (const char *const[]){NULL});
    assert_int_equal(p->git.n_branches, 0);
    assert_int_equal(p->git.verify, GIT_VERIFY_OFF);
    policy_free(p);
}

static void wrong_rules_for_git(void **state)
{
    (void)state;
    static const char *const wrong[][2] = {{"git: {allow_force: true}", "git.allow_force allows nothing"},
                                           {"git: {allow_delete: true}", "git.allow_delete allows nothing"},
                                           {"git: {verify: always}", "not one of required, told, off"},
                                           {"git: {protect_branches: [refs/heads/main]}", "is a full ref name"},
                                           {"git: {protect_branches: ['*/main']}", "before its last '/'"},
                                           {"git: {protect_branches: ['a[b']}", "'['"},
                                           {"git: {protect_branches: ['']}", "not a branch's name"},
                                           {"git: {protect_branches: [-x]}", "not a branch's name"},
                                           {"git: {protect_branches: [a//b]}", "not a branch's name"},
                                           {"git: {protect_branches: [a/]}", "not a branch's name"},
                                           {"git: {protect_branches: ['a b']}", "not a branch's name"},
                                           {"git: {protected: [a]}", "unknown key"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct layer_said said[] = {USER(wrong[i][0]), {0}};
        struct policy *p = NULL;
        struct err e;
        if (build_in(&test_world, said, NULL, &p, &e) == 0 || !strstr(e.text, wrong[i][1]))
            fail_msg("%s: %s", wrong[i][0], p ? "taken" : e.text);
    }
}

static void asking_means_a_network(void **state)
{
    (void)state;
    struct policy *p = flags_good((const char *const[]){"ask", "true", "ask-time", "5s", NULL});
    assert_true(p->net_ask && p->net == NET_ALLOW && p->net_ask_ms == 5000);
    auto_buf struct buf out = BUF(1 << 20);
    assert_int_equal(policy_print(p, false, &out), 0);
    assert_non_null(strstr(buf_cstr(&out), "\n  ask: true\n  ask_time: 5s\n"));
    policy_free(p);
    struct layer_said said[] = {USER("net: {ask: true}"), {0}};
    p = layered(said, (const char *const[]){"net", "none", NULL});
    assert_true(p->net == NET_NONE && !p->net_ask);
    policy_free(p);
    p = layered(said, (const char *const[]){NULL});
    assert_true(p->net == NET_ALLOW && p->net_ask && p->net_ask_ms == 30000);
    policy_free(p);
}

static void the_most_specific_place_wins(void **state)
{
    (void)state;
    struct policy *p = flags_good((const char *const[]){"rw", "/d", "ro", "/d/a", "hide", "/d/a/b", "rw", "/d/a/b/c",
                                                        "cache", "/d/e", "profile", "none", NULL});
    const struct path_rule *r = NULL;
    assert_int_equal(policy_access(p, "/d", NULL), PATH_RW);
    assert_int_equal(policy_access(p, "/d/x/y", NULL), PATH_RW);
    assert_int_equal(policy_access(p, "/d/ab", &r), PATH_RW);
    assert_string_equal(r->path, "/d");
    assert_int_equal(policy_access(p, "/d/a/x", NULL), PATH_RO);
    assert_int_equal(policy_access(p, "/d/a/b", NULL), PATH_HIDE);
    assert_int_equal(policy_access(p, "/d/a/b/c/d", &r), PATH_RW);
    assert_string_equal(r->path, "/d/a/b/c");
    assert_int_equal(policy_access(p, "/d/e/f", NULL), PATH_CACHE);
    assert_int_equal(policy_access(p, "/", &r), PATH_RO);
    assert_null(r);
    assert_int_equal(policy_access(p, "/home/u/p/src", &r), PATH_RW);
    assert_null(r);
    assert_int_equal(policy_access(p, "/home/u/p/.pinfold/x", NULL), PATH_PROTECT);
    assert_int_equal(policy_access(p, "/home/u/pp", NULL), PATH_RO);
    policy_free(p);
}

/* Against a naive search, over rules that share prefixes and sort oddly. */
static void bisection_finds_what_a_walk_finds(void **state)
{
    (void)state;
    static const char *const parts[] = {"a", "a-", "a.b", "ab", "b", "~", "Z"};
    struct policy_builder *b = policy_builder_new(&test_world);
    struct policy *p = NULL;
    struct err e;
    srand(7);
    assert_int_equal(policy_add_flag(b, "profile", "none", "--profile", &e), 0);
    for (int i = 0; i < 300; i++) {
        static const char *const flags[] = {"rw", "ro", "hide"};
        char path[128] = "";
        for (int n = 1 + rand() % 4; n; n--)
            snprintf(path + strlen(path), sizeof path - strlen(path), "/%s", parts[rand() % 7]);
        /* Whatever was said first of a place stands: another rule for it would be a contradiction. */
        const char *flag = flags[strlen(path) % 3];
        assert_int_equal(policy_add_flag(b, flag, path, flag, &e), 0);
    }
    assert_int_equal(policy_build(b, &p, &e), 0);
    for (int i = 0; i < 3000; i++) {
        char path[128] = "";
        const struct path_rule *found, *best = NULL;
        for (int n = 1 + rand() % 5; n; n--)
            snprintf(path + strlen(path), sizeof path - strlen(path), "/%s", parts[rand() % 7]);
        for (size_t k = 0; k < p->n_paths; k++) {
            size_t n = strlen(p->paths[k].path);
            if (strncmp(path, p->paths[k].path, n) == 0 && (path[n] == 0 || path[n] == '/') &&
                (!best || n > strlen(best->path)))
                best = &p->paths[k];
        }
        enum path_access a = policy_access(p, path, &found);
        assert_ptr_equal(found, best);
        assert_int_equal(a, best ? best->access : PATH_RO);
    }
    policy_free(p);
    policy_builder_free(b);
}

static void the_workspace_can_be_chosen_and_closed(void **state)
{
    (void)state;
    struct layer_said said[] = {USER("workspace: ~/other\nfiles: {rw: ['${WORKSPACE}/../x']}"), {0}};
    struct policy *p = layered(said, NULL);
    assert_string_equal(p->workspace, "/home/u/other");
    assert_int_equal(rule_for(p, "/home/u/x")->access, PATH_RW);
    policy_free(p);
    p = layered(said, (const char *const[]){"workspace", "third", "ro", "/home/u/p/third", NULL});
    assert_string_equal(p->workspace, "/home/u/p/third");
    assert_true(p->workspace_read_only);
    assert_null(rule_for(p, "/home/u/p/third"));
    policy_free(p);
    struct layer_said closed[] = {USER("workspace_read_only: true"), PROJECT("files: {rw: [.]}"), {0}};
    p = layered(closed, NULL);
    assert_false(p->workspace_read_only);
    policy_free(p);
    /* A directory that a profile hides is no place to work; one that it keeps as a cache is. */
    refused((struct layer_said[]){USER("workspace: ~/.ssh"), {0}}, NULL,
            "profile base:13:7: files.hide: the workspace '/home/u/.ssh' is hidden by this profile; change to another "
            "directory or use --workspace DIR");
    p = layered((struct layer_said[]){USER("workspace: ~/.npm"), {0}}, NULL);
    assert_int_equal(policy_access(p, "/home/u/.npm/x", NULL), PATH_RW);
    policy_free(p);
}

static void ones_own_home_is_never_hidden(void **state)
{
    (void)state;
    struct policy_world root = {.home = "/root", .cwd = "/home/x/p"};
    struct policy *p = NULL;
    struct err e;
    assert_int_equal(build_in(&root, NULL, NULL, &p, &e), 0);
    assert_null(rule_for(p, "/root"));
    assert_int_equal(rule_for(p, "/home")->access, PATH_HIDE);
    assert_int_equal(policy_access(p, "/home/x/p", NULL), PATH_RW);
    policy_free(p);
    p = layered(NULL, NULL);
    assert_null(rule_for(p, "/home"));
    assert_int_equal(rule_for(p, "/root")->access, PATH_HIDE);
    policy_free(p);
    /* Somebody's own words hold. */
    p = flags_good((const char *const[]){"hide", "~", NULL});
    assert_int_equal(rule_for(p, "/home/u")->access, PATH_HIDE);
    policy_free(p);
}

static void pinfolds_own_files_stay(void **state)
{
    (void)state;
    static const char *const hidden[] = {"/prog/lib", NULL}, *const kept[] = {"/home/u/p/bin/pinfold",
                                                                              "/usr/bin/pinfold", NULL};
    struct policy_world w = test_world;
    w.own_hidden = hidden;
    w.own_read_only = kept;
    struct policy *p = NULL;
    struct err e;
    assert_int_equal(build_in(&w, NULL, (const char *const[]){"rw", "/etc", "hide", "~/.config/pinfold", NULL}, &p, &e),
                     0);
    assert_int_equal(rule_for(p, "/etc/pinfold")->access, PATH_PROTECT);
    assert_int_equal(rule_for(p, "/prog/lib")->access, PATH_HIDE);
    assert_int_equal(rule_for(p, "/home/u/p/bin/pinfold")->access, PATH_PROTECT);
    assert_null(rule_for(p, "/usr/bin/pinfold"));
    policy_free(p);

    static const struct {
        const char *flag, *value, *sentence;
    } tries[] = {
        {"ro", "~/.config/pinfold",
         "--ro: path '/home/u/.config/pinfold' belongs to pinfold and stays hidden in every box"},
        {"rw", "~/.local/state/pinfold/trust",
         "--rw: path '/home/u/.local/state/pinfold/trust' belongs to pinfold and stays hidden in every box"},
        {"protect", "~/.config/pinfold/x",
         "--protect: path '/home/u/.config/pinfold/x' belongs to pinfold and stays hidden in every box"},
        {"cache", "/etc/pinfold", "--cache: path '/etc/pinfold' belongs to pinfold and stays as it is in every box"},
        {"mount", "~/.config/pinfold:/h:ro",
         "--mount: mount '/home/u/.config/pinfold' belongs to pinfold and stays hidden in every box"},
        {"mount", "/etc/pinfold/x:/h",
         "--mount: mount '/etc/pinfold/x' belongs to pinfold and stays as it is in every box"},
        {"mount", "/x:~/.config/pinfold",
         "--mount: path '/home/u/.config/pinfold' belongs to pinfold and stays hidden in every box"},
        {"mount", "/x:/etc/pinfold:ro",
         "--mount: path '/etc/pinfold' belongs to pinfold and stays as it is in every box"},
        {"unix-socket", "~/.local/state/pinfold/s",
         "--unix-socket: socket '/home/u/.local/state/pinfold/s' belongs to pinfold and stays hidden in every box"},
        {"workspace", "~/.config/pinfold",
         "--workspace: '/home/u/.config/pinfold' belongs to pinfold and stays hidden in every box; use another "
         "directory"},
        {"rw", ".pinfold/x", "--rw: path '/home/u/p/.pinfold/x' belongs to pinfold and stays as it is in every box"},
        {"rw", "/prog/lib/x", "--rw: path '/prog/lib/x' belongs to pinfold and stays hidden in every box"},
        {"rw", "/usr/bin/pinfold", "--rw: path '/usr/bin/pinfold' belongs to pinfold and stays as it is in every box"}};
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        const char *const flags[] = {tries[i].flag, tries[i].value, NULL};
        assert_true(build_in(&w, NULL, flags, &p, &e) < 0);
        assert_string_equal(e.text, tries[i].sentence);
        assert_int_equal(e.kind, ERR_REFUSED);
    }
    /* /etc may be shown elsewhere as long as it cannot be changed there. */
    assert_int_equal(build_in(&w, NULL, (const char *const[]){"mount", "/etc:/h:ro", NULL}, &p, &e), 0);
    policy_free(p);
}

static const char *moved(void *ctx, const char *name)
{
    (void)ctx;
    return same(name, "XDG_CONFIG_HOME")   ? "/cfg"
           : same(name, "XDG_RUNTIME_DIR") ? "/run/user/1000"
           : same(name, "XDG_STATE_HOME")  ? "relative"
                                           : NULL;
}

static void moved_places_are_own_too(void **state)
{
    (void)state;
    struct policy_world w = {.home = "/home/u", .cwd = "/home/u/p", .variable = moved};
    struct policy *p = NULL;
    struct err e;
    assert_int_equal(build_in(&w, NULL, NULL, &p, &e), 0);
    assert_int_equal(rule_for(p, "/cfg/pinfold")->access, PATH_HIDE);
    assert_int_equal(rule_for(p, "/home/u/.config/pinfold")->access, PATH_HIDE);
    assert_int_equal(rule_for(p, "/run/user/1000/pinfold")->access, PATH_HIDE);
    assert_int_equal(rule_for(p, "/home/u/.local/state/pinfold")->access, PATH_HIDE);
    policy_free(p);
}

static const char *elsewhere(void *ctx, const char *name)
{
    (void)ctx;
    static const char *const values[][2] = {
        {"XDG_CONFIG_HOME", "/cfg"}, {"KUBECONFIG", "/k/a:rel/b"},     {"GNUPGHOME", "/g"},
        {"AWS_CONFIG_FILE", "/aws"}, {"PSQL_HISTORY", "/dev/null"},    {"CODEX_HOME", "/home"},
        {"CARGO_HOME", "/c"},        {"GEMINI_CLI_HOME", "/home/u/g"}, {"XDG_DATA_HOME", "relative"},
        {"PUB_CACHE", "/pub"},       {"PI_CODING_AGENT_DIR", "/pi"},   {"XDG_STATE_HOME", "/state"}};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        if (same(name, values[i][0]))
            return values[i][1];
    return NULL;
}

static bool hides(const struct policy *p, const char *path)
{
    const struct path_rule *r = rule_for(p, path);
    return r && r->access == PATH_HIDE && same(r->path, path);
}

/* Secrets that the caller's variables keep elsewhere than in the home are hidden there as well. */
static void moved_secrets_are_hidden(void **state)
{
    (void)state;
    struct policy_world w = {.home = "/home/u", .cwd = "/home/u/p", .variable = elsewhere};
    struct policy *p = NULL;
    struct err e;
    assert_int_equal(build_in(&w, NULL, NULL, &p, &e), 0);
    static const char *const hidden[] = {"/cfg/gh",
                                         "/home/u/.config/gh",
                                         "/k/a",
                                         "/home/u/p/rel/b",
                                         "/home/u/.kube",
                                         "/g",
                                         "/aws",
                                         "/c/credentials",
                                         "/home/u/g/.gemini",
                                         "/pub/credentials.json",
                                         "/pi",
                                         "/state/opencode"};
    for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++)
        if (!hides(p, hidden[i]))
            fail_msg("%s is not hidden", hidden[i]);
    static const char *const shown[] = {"/c", "/cfg", "/home", "/k", "/dev/null", "/home/u/p/relative/keyrings"};
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
        if (hides(p, shown[i]))
            fail_msg("%s is hidden", shown[i]);
    policy_free(p);
    /* The user may show such a place, a project may not. */
    struct layer_said said[] = {USER("files: {ro: [/g]}"), PROJECT("files: {ro: [/k/a]}"), {0}};
    said[1].trusted = false;
    assert_true(build_in(&w, said, NULL, &p, &e) < 0);
    assert_non_null(strstr(e.text, "would show something hidden"));
    said[1] = (struct layer_said){0};
    assert_int_equal(build_in(&w, said, NULL, &p, &e), 0);
    assert_int_equal(rule_for(p, "/g")->access, PATH_RO);
    policy_free(p);
}

static bool is_cache(const struct policy *p, const char *path)
{
    const struct path_rule *r = rule_for(p, path);
    return r && r->access == PATH_CACHE && same(r->path, path);
}

static const char *home_of_passwd(void *ctx, const char *name)
{
    (void)ctx;
    return same(name, "XDG_STATE_HOME") ? "/state" : same(name, VARIABLE_OTHER_HOME) ? "/srv/u" : NULL;
}

/* Where HOME is another home than that of /etc/passwd, the secrets and pinfold's own files of both are hidden; caches are HOME's. */
static void another_home_is_hidden_too(void **state)
{
    (void)state;
    struct policy_world w = {.home = "/home/u", .cwd = "/srv/u/p", .variable = home_of_passwd};
    struct policy *p = NULL;
    struct err e;
    assert_int_equal(build_in(&w, NULL, NULL, &p, &e), 0);
    static const char *const hidden[] = {"/home/u/.ssh",           "/srv/u/.ssh",
                                         "/srv/u/.config/gh",      "/home/u/.local/state/pinfold",
                                         "/srv/u/.config/pinfold", "/srv/u/.local/state/pinfold",
                                         "/state/pinfold",         "/srv/u/.local/state/pinfold-agents",
                                         "/state/pinfold-shelves", "/srv/u/.local/state/pinfold-shelves",
                                         "/state/pinfold-agents",  "/home/u/.local/state/pinfold-shelves"};
    for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++)
        if (!hides(p, hidden[i]))
            fail_msg("%s is not hidden", hidden[i]);
    assert_false(hides(p, "/srv/u"));
    assert_false(is_cache(p, "/srv/u/.npm"));
    assert_int_equal(policy_access(p, "/srv/u/p/x", NULL), PATH_RW);
    policy_free(p);
    w.home = "/srv/u";
    assert_int_equal(build_in(&w, NULL, NULL, &p, &e), 0);
    assert_true(hides(p, "/srv/u/.ssh") && !hides(p, "/srv/u"));
    policy_free(p);
}

static const char *caches_elsewhere(void *ctx, const char *name)
{
    static const char *const values[][2] = {{"XDG_CACHE_HOME", "/x/cache"},
                                            {"CARGO_HOME", "/home/u/p/.cargo"},
                                            {"GOPATH", "/gp:/gq"},
                                            {"GRADLE_USER_HOME", "/home/u/.ssh/g"},
                                            {"UV_CACHE_DIR", "/tmp/uv"},
                                            {"PIP_CACHE_DIR", "/home"},
                                            {"GOCACHE", "/rw/go"},
                                            {"CCACHE_DIR", "/home/u/.local"},
                                            {"HF_HOME", "/hf"}};
    (void)ctx;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        if (same(name, values[i][0]))
            return values[i][1];
    return NULL;
}

/* Every variable that is asked for: a place, and of lists as many as are allowed. */
static const char *everything_elsewhere(void *ctx, const char *name)
{
    static char text[128][1024];
    static unsigned n;
    char *to = text[n++ % 128];
    const unsigned *most = ctx;
    size_t at = 0;
    const bool list = same(name, "KUBECONFIG") || same(name, "GOPATH");
    for (unsigned i = 0; i < (list ? *most : 1); i++)
        at += (size_t)snprintf(to + at, sizeof text[0] - at, "%s/%.16s%u", i ? ":" : "", name, i);
    return to;
}

static void every_variable_may_be_set(void **state)
{
    (void)state;
    unsigned most = 33;
    struct policy_world w = {.home = "/home/u", .cwd = "/home/u/p", .variable = everything_elsewhere, .ctx = &most};
    struct policy *p = NULL;
    struct err e;
    assert_int_equal(build_in(&w, NULL, NULL, &p, &e), 0);
    static const char *const hidden[] = {"/KUBECONFIG0",
                                         "/KUBECONFIG32",
                                         "/GNUPGHOME0",
                                         "/CODEX_HOME0",
                                         "/DOCKER_CERT_PATH0",
                                         "/CAROOT0",
                                         "/HCLOUD_CONFIG0",
                                         "/SOPS_AGE_SSH_PRI0",
                                         "/OS_CLIENT_SECURE0",
                                         "/TUNNEL_ORIGIN_CE0",
                                         "/GOPASS_HOMEDIR0/.local/share/gopass",
                                         "/CHROME_CONFIG_HO0/chromium",
                                         "/VSCODE_PORTABLE0/user-data",
                                         "/GOOSE_PATH_ROOT0/data",
                                         "/OPENCLAW_STATE_D0"};
    for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++)
        if (!hides(p, hidden[i]))
            fail_msg("%s is not hidden", hidden[i]);
    static const char *const made[] = {"/GOPATH0/pkg", "/GOPATH32/pkg", "/GOCACHE0", "/CCACHE_DIR0"};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        if (!is_cache(p, made[i]))
            fail_msg("%s is no cache", made[i]);
    policy_free(p);
    most++;
    assert_true(build_in(&w, NULL, NULL, &p, &e) < 0);
    assert_string_equal(e.text, "KUBECONFIG names more than 33 places; leave some of them out");
}

/* Caches that the caller's variables keep elsewhere are the box's own there, too, but nothing else becomes one. */
static void moved_caches_are_caches(void **state)
{
    (void)state;
    struct policy_world w = {.home = "/home/u", .cwd = "/home/u/p", .variable = caches_elsewhere};
    struct layer_said said[] = {USER("files: {rw: [/rw]}"), {0}};
    struct policy *p = NULL;
    struct err e;
    assert_int_equal(build_in(&w, said, NULL, &p, &e), 0);
    static const char *const made[] = {"/x/cache", "/home/u/.cache", "/home/u/.cargo/registry", "/gp/pkg", "/gq/pkg"};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        if (!is_cache(p, made[i]))
            fail_msg("%s is no cache", made[i]);
    static const char *const none[] = {
        "/home/u/p/.cargo/registry", "/home/u/.ssh/g", "/tmp/uv", "/home", "/rw/go", "/home/u/.local", "/hf"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        if (is_cache(p, none[i]))
            fail_msg("%s is a cache", none[i]);
    policy_free(p);
    /* Nor where the profile has none. */
    assert_int_equal(build_in(&w, NULL, (const char *const[]){"profile", "restrictive", NULL}, &p, &e), 0);
    assert_false(is_cache(p, "/x/cache"));
    policy_free(p);
}

static void profiles_are_chosen_from_above(void **state)
{
    (void)state;
    struct layer_said said[] = {SYSTEM("extends: readonly"), USER("extends: untrusted"), {0}};
    struct policy *p = layered(said, NULL);
    assert_string_equal(p->profile, "untrusted");
    assert_false(p->workspace_read_only);
    policy_free(p);
    p = layered(said, (const char *const[]){"profile", "permissive", NULL});
    assert_string_equal(p->profile, "permissive");
    policy_free(p);
    /* A profile handed in as the ground holds against files, the default one does not. */
    struct str text;
    assert_int_equal(profile_find("restrictive", &text), 0);
    struct layer_said given[] = {
        {LAYER_BUILTIN, POLICY_YAML, "profile restrictive", text.p, true}, USER("extends: untrusted"), {0}};
    p = layered(given, NULL);
    assert_string_equal(p->profile, "restrictive");
    policy_free(p);
    assert_int_equal(profile_find("workspace", &text), 0);
    given[0].text = text.p;
    p = layered(given, NULL);
    assert_string_equal(p->profile, "untrusted");
    policy_free(p);
    assert_int_equal(profile_find("nonesuch", &text), -ENOENT);
}

static void files_extend_files(void **state)
{
    (void)state;
    static const char *const files[] = {"/home/u/a.yaml",
                                        "extends: ./sub/b.yaml\nlimits: {pids: 10, memory: 1G}",
                                        "/home/u/sub/b.yaml",
                                        "extends: readonly\nlimits: {pids: 9, disk: 2G}\nfiles: {rw: [x]}",
                                        "/home/u/loop1.yaml",
                                        "extends: ./loop2.yaml",
                                        "/home/u/loop2.yaml",
                                        "extends: ./loop1.yaml",
                                        "/home/u/bad.yaml",
                                        "limits: {pids: x}",
                                        "mine",
                                        "extends: untrusted\nlimits: {pids: 77}",
                                        NULL};
    test_files = files;
    struct policy *p = layered((struct layer_said[]){USER("extends: ./a.yaml\nlimits: {memory: 3G}"), {0}}, NULL);
    assert_string_equal(p->profile, "readonly");
    assert_true(p->workspace_read_only);
    assert_int_equal(p->limits.processes.value, 10);
    assert_int_equal(p->limits.memory.value, 3ull << 30);
    assert_int_equal(p->limits.disk.value, 2ull << 30);
    assert_int_equal(rule_for(p, "/home/u/sub/x")->access, PATH_RW);
    assert_false(rule_for(p, "/home/u/sub/x")->optional);
    policy_free(p);
    p = layered(NULL, (const char *const[]){"profile", "mine", NULL});
    assert_string_equal(p->profile, "mine");
    assert_int_equal(p->limits.processes.value, 77);
    assert_int_equal(p->limits.memory.value, 512ull << 20);
    policy_free(p);
    refused((struct layer_said[]){USER("extends: ./loop1.yaml"), {0}}, NULL,
            "/home/u/loop2.yaml:1:10: 'extends' forms a loop");
    refused((struct layer_said[]){USER("extends: ./bad.yaml"), {0}}, NULL,
            "/home/u/bad.yaml:1:16: limits.pids: 'x' is not a count (write 50 or none)");
    char names[MAX_POLICY_EXTENDS + 4][32], texts[MAX_POLICY_EXTENDS + 4][32];
    const char *many[2 * (MAX_POLICY_EXTENDS + 4) + 1];
    for (int i = 0; i < MAX_POLICY_EXTENDS + 4; i++) {
        snprintf(names[i], sizeof names[i], "/home/u/%d.yaml", i);
        snprintf(texts[i], sizeof texts[i], "extends: ./%d.yaml", i + 1);
        many[2 * i] = names[i];
        many[2 * i + 1] = texts[i];
    }
    many[2 * (MAX_POLICY_EXTENDS + 4)] = NULL;
    test_files = many;
    refused((struct layer_said[]){USER("extends: ./0.yaml"), {0}}, NULL,
            "/home/u/15.yaml:1:10: too many levels of 'extends'");
    test_files = NULL;
}

static size_t guards_named(const struct policy *p, const char *name)
{
    size_t n = 0;
    for (size_t i = 0; i < p->n_guards; i++)
        n += same(p->guards[i].name, name);
    return n;
}

static void guarded_names_add_up_and_can_be_allowed(void **state)
{
    (void)state;
    struct layer_said said[] = {
        USER("guard_names: {root: [.vscode/settings.json], allow: [.vscode], any_depth: [.vscode2/]}"),
        PROJECT("guard_names: {any_depth: [.vscode/settings.json]}"),
        {0}};
    struct policy *p = layered(said, NULL);
    assert_int_equal(guards_named(p, ".vscode"), 0);
    assert_int_equal(guards_named(p, ".vscode/settings.json"), 2);
    assert_int_equal(guards_named(p, ".git/hooks"), 1);
    for (size_t i = 0; i < p->n_guards; i++) {
        if (same(p->guards[i].name, ".git/config"))
            assert_true(p->guards[i].judge == GUARD_GIT_CONFIG && p->guards[i].place == GUARD_ANY_DEPTH);
        if (same(p->guards[i].name, ".vscode2") || same(p->guards[i].name, ".git/hooks"))
            assert_true(p->guards[i].directory && p->guards[i].place == GUARD_ANY_DEPTH);
    }
    policy_free(p);
    /* Taken out below, put in again above. */
    struct layer_said again[] = {
        USER("guard_names: {allow: [.vscode]}"), PROJECT("guard_names: {root: [.vscode/]}"), {0}};
    p = layered(again, NULL);
    assert_int_equal(guards_named(p, ".vscode"), 1);
    policy_free(p);
}

static void everyday_names_are_a_level_of_their_own(void **state)
{
    (void)state;
    struct layer_said said[] = {USER("guard_names: {everyday_names: ['*.toml', a/], root: ['*.toml']}"),
                                PROJECT("guard_names: {everyday: guard}"),
                                {0}};
    struct policy *p = layered(said, NULL);
    assert_int_equal(p->everyday, EVERYDAY_GUARD);
    assert_int_equal(guards_named(p, "*.toml"), 2);
    for (size_t i = 0; i < p->n_guards; i++) {
        const struct guard_name *g = &p->guards[i];
        if (same(g->name, "*.toml") || same(g->name, "a"))
            assert_true(g->place == GUARD_ROOT && g->pattern == same(g->name, "*.toml"));
        if (same(g->name, "a"))
            assert_true(g->everyday && g->directory);
    }
    policy_free(p);
    struct layer_said nothing[] = {USER("user: root"), {0}};
    p = layered(nothing, NULL);
    assert_int_equal(p->everyday, EVERYDAY_ALLOW);
    policy_free(p);
}

static void names_in_all_directories_stay_so(void **state)
{
    (void)state;
    struct layer_said said[] = {
        USER("guard_names: {root: ['**/x', y/, '**/*.z']}"), PROJECT("guard_names: {root: [x, '**/y/']}"), {0}};
    struct policy *p = layered(said, NULL);
    unsigned seen = 0;
    for (size_t i = 0; i < p->n_guards; i++) {
        const struct guard_name *g = &p->guards[i];
        if (!same(g->name, "x") && !same(g->name, "y") && !same(g->name, "*.z"))
            continue;
        assert_true(g->deep && g->place == GUARD_ROOT && g->directory == same(g->name, "y") &&
                    g->pattern == same(g->name, "*.z"));
        seen++;
    }
    assert_int_equal(seen, 3);
    policy_free(p);
    struct layer_said out[] = {USER("guard_names: {root: ['**/x']}"), USER("guard_names: {allow: ['**/x']}"), {0}};
    p = layered(out, NULL);
    assert_int_equal(guards_named(p, "x"), 0);
    policy_free(p);
}

static void contradictions_are_within_one_text_only(void **state)
{
    (void)state;
    refused((struct layer_said[]){USER("files:\n  rw: [/a]\n  hide: [/b, /b]\n  ro:\n  - /a\n"), {0}}, NULL,
            "/home/u/user.yaml:5:5: files.ro: '/a' is also declared rw in line 2");
    refused((struct layer_said[]){USER("files: {rw: [p], ro: [~/p]}"), {0}}, NULL,
            "/home/u/user.yaml:1:23: files.ro: the workspace '/home/u/p' is also declared rw");
    refused((struct layer_said[]){USER("files: {hide: ['**/x'], protect: ['**/x']}"), {0}}, NULL,
            "/home/u/user.yaml:1:35: files.protect: 'x' is also declared hide in line 1");
    /* A pattern and a literal path of the same letters are two places. */
    struct policy *p =
        layered((struct layer_said[]){USER("files: {hide: ['/a/b*'], protect: ['/a/b\\*']}"), {0}}, NULL);
    assert_int_equal(policy_access(p, "/a/b*", NULL), PATH_PROTECT);
    policy_free(p);
}

static void without_memory_nothing_breaks(void **state)
{
    (void)state;
    struct policy_builder *b = policy_builder_new(&test_world);
    struct err e;
    struct policy *p = NULL;
    char flag[32];
    int r = 0;
    for (int i = 0; r == 0 && i <= MAX_POLICY_RULES; i++) {
        snprintf(flag, sizeof flag, "/d/%d", i);
        r = policy_add_flag(b, "rw", flag, "--rw", &e);
    }
    assert_int_equal(r, -EINVAL);
    assert_string_equal(e.text, "--rw: too many rules (a policy can have 20000)");
    b = policy_builder_free(b);
    assert_null(policy_builder_free(NULL));
    assert_null(policy_free(NULL));
    assert_null(p);
}

/* `none` takes back what was said so far; what is said behind it counts, also if it was said before. */
static void published_ports_can_be_taken_back(void **state)
{
    (void)state;
    const struct layer_said said[] = {
        PROJECT("version: 1\nnet: {mode: allow, publish: [3000, 8000], allow: [a.example]}\n"), {.text = NULL}};
    const char *const none[] = {"publish", "none", NULL}, *const other[] = {"publish", "none", "publish", "8000", NULL};
    for (int again = 0; again < 2; again++) {
        struct policy *p = layered(said, again ? other : none);
        size_t published = 0, allowed = 0;
        for (size_t i = 0; i < p->n_net_rules; i++) {
            published += p->net_rules[i].verb == NET_RULE_PUBLISH;
            allowed += p->net_rules[i].verb == NET_RULE_ALLOW && same(p->net_rules[i].text, "a.example");
            assert_true(p->net_rules[i].verb != NET_RULE_PUBLISH || same(p->net_rules[i].text, "8000:8000"));
        }
        assert_int_equal(published, again);
        assert_int_equal(allowed, 1);
        policy_free(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_said_is_the_default_profile),
                                       cmocka_unit_test(every_profile_is_what_it_says),
                                       cmocka_unit_test(later_layers_win),
                                       cmocka_unit_test(lists_append_and_denials_stay),
                                       cmocka_unit_test(asking_means_a_network),
                                       cmocka_unit_test(published_ports_can_be_taken_back),
                                       cmocka_unit_test(keys_of_the_agent),
                                       cmocka_unit_test(rules_for_git),
                                       cmocka_unit_test(wrong_rules_for_git),
                                       cmocka_unit_test(the_most_specific_place_wins),
                                       cmocka_unit_test(bisection_finds_what_a_walk_finds),
                                       cmocka_unit_test(the_workspace_can_be_chosen_and_closed),
                                       cmocka_unit_test(ones_own_home_is_never_hidden),
                                       cmocka_unit_test(pinfolds_own_files_stay),
                                       cmocka_unit_test(moved_places_are_own_too),
                                       cmocka_unit_test(moved_secrets_are_hidden),
                                       cmocka_unit_test(another_home_is_hidden_too),
                                       cmocka_unit_test(moved_caches_are_caches),
                                       cmocka_unit_test(every_variable_may_be_set),
                                       cmocka_unit_test(profiles_are_chosen_from_above),
                                       cmocka_unit_test(files_extend_files),
                                       cmocka_unit_test(guarded_names_add_up_and_can_be_allowed),
                                       cmocka_unit_test(everyday_names_are_a_level_of_their_own),
                                       cmocka_unit_test(names_in_all_directories_stay_so),
                                       cmocka_unit_test(contradictions_are_within_one_text_only),
                                       cmocka_unit_test(without_memory_nothing_breaks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
