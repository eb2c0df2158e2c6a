/*
 * An untrusted project: what it may say, and what it may not. Nothing it says ever gives the box more.
 */
#include "policy_help.h"
#include "policy/path.h"

#define PROJECT_FILE "/home/u/p/.pinfold/policy.yaml"
#define USER_TEXT                                                                                                      \
    "files: {rw: [/data], hide: [/secret, '**/.env', '~/.tok*'], protect: ['**/*.lock', /data/keep], cache: [/c], "    \
    "mounts: ['/src:/dst:ro']}\n"                                                                                      \
    "net: {mode: allow, allow: [a.com], unix_sockets: [/run/s], publish: [80], reach: ['a:1']}\n"                      \
    "limits: {memory: 1G, pids: 100, timeout: 60s, cpus: 2, disk: 1G, output: 1M, grace: 5s, open_files: 100}\n"       \
    "env: {pass: [A], set: {B: '1'}, remove: [R]}\nguard: existing\nuser: root\nengine: native\nimage: x\n"            \
    "may_lose: [hides]\ntty: auto\nhostname: h\nguard_names: {everyday: guard}\n"                                      \
    "ssh_agent: [mine, 'mine=git.example']\nssh_confirm: true\n"                                                       \
    "git: {verify: told, protect_branches: [main]}\n"

static int with_project(const char *user, const char *project, bool trusted, struct policy **ret, struct err *e)
{
    struct layer_said said[] = {{LAYER_USER, POLICY_YAML, "/home/u/user.yaml", user, true},
                                {LAYER_PROJECT, POLICY_YAML, PROJECT_FILE, project, trusted},
                                {0}};
    return build_in(&test_world, said, NULL, ret, e);
}

static void what_takes_away_is_taken(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "version: 1",
        "workspace_read_only: true",
        "workspace_read_only: false", /* what holds already */
        "workspace: .",
        "files: {hide: [/data/x, src, '**/x', 'y*'], protect: [Makefile, '**/z'], ro: [/data/y, sub]}",
        "files: {rw: [/data/z, /data, sub], ro: [/etc, /data/keep], hide: [/data/keep, /secret]}",
        "files: {cache: [/c], mounts: ['/src:/dst:ro'], expand: never}",
        "net: {mode: none}",
        "net: {ask: false, ask_time: 30s}",
        ("net: {mode: allow, allow: [a.com], deny: [b.com, '*'], deny_ports: [25], unix_sockets: [/run/s], publish: "
         "[80], reach: ['a:1']}"),
        "limits: {memory: 512M, pids: 100, timeout: 1s, cpus: 50%, disk: 1M, output: 1K, grace: 0, open_files: 50}",
        "env: {remove: [A, 'LC_*'], pass: [PATH], set: {PINFOLD: '1'}}",
        "guard: strict\nguard_names: {root: [Makefile], any_depth: [.env], git_config: [x]}",
        "ssh_agent: [mine]\nssh_confirm: true",
        "git: {verify: required, protect_branches: [main, dev], allow_force: false, allow_delete: false}",
        "guard_names: {everyday: guard, everyday_names: ['*.x']}",
        "tty: never\nuser: root\nengine: native\nimage: x\nhostname: h\nallow_nested_userns: false",
        "may_lose: [hides, pid-namespace]\nmust_have: [hides]"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct policy *p = NULL;
        struct err e;
        if (with_project(USER_TEXT, texts[i], false, &p, &e) < 0)
            fail_msg("%s\n%s", texts[i], e.text);
        policy_free(p);
    }
}

static void what_gives_is_refused_with_its_remedy(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } cases[] = {{"extends: permissive", "1:10: extends would change what the box may do"},
                 {"workspace: ..", "1:12: workspace would choose another workspace"},
                 {"files: {rw: [/other]}", "1:14: files.rw would make something writable"},
                 {"files: {rw: [/c]}", "1:14: files.rw would make something writable"},
                 {"files: {rw: [/data/keep]}", "1:14: files.rw would make something writable"},
                 {"files: {rw: [src/a.lock]}", "1:14: files.rw would make something writable"},
                 {"files: {rw: [/secret/x]}", "1:14: files.rw would show something hidden"},
                 {"files: {ro: [/secret/x]}", "1:14: files.ro would show something hidden"},
                 {"files: {ro: [/secret]}", "1:14: files.ro would show something hidden"},
                 {"files: {ro: [.env]}", "1:14: files.ro would show something hidden"},
                 {"files: {protect: [sub/.env/x]}", "1:19: files.protect would show something hidden"},
                 {"files: {ro: [~/.token]}", "1:14: files.ro would show something hidden"},
                 {"files: {ro: [~/.ssh/config]}", "1:14: files.ro would show something hidden"},
                 {"files: {cache: [/other]}", "1:17: files.cache would make something writable"},
                 {"files: {cache: [/data/x]}", "1:17: files.cache would give the box its own storage"},
                 {"files: {storage: [/a]}", "1:19: files.storage would change what the box may do"},
                 {"files: {mounts: ['/a:/b']}", "1:18: files.mounts would change what the box may do"},
                 {"files: {mounts: ['/src:/dst']}", "1:18: files.mounts would change what the box may do"},
                 {"files: {expand: start}", "1:17: files.expand would allow more"},
                 {"guard: off", "1:8: guard would allow more"},
                 {"guard_names: {allow: [.vscode]}", "1:23: guard_names.allow would change what the box may do"},
                 {"guard_names: {everyday: allow}", "1:25: guard_names.everyday would allow more"},
                 {"net: {mode: host}", "1:13: net.mode would allow more"},
                 {"net: {allow: [b.com]}", "1:15: net.allow would change what the box may do"},
                 {"net: {publish: [81]}", "1:17: net.publish would change what the box may do"},
                 {"net: {reach: ['a:2']}", "1:15: net.reach would change what the box may do"},
                 {"net: {unix_sockets: [/run/t]}", "1:22: net.unix_sockets would change what the box may do"},
                 {"ssh_agent: [other]", "1:13: ssh_agent would change what the box may do"},
                 {"ssh_agent: ['mine=git']", "1:13: ssh_agent would change what the box may do"},
                 {"ssh_confirm: false", "1:14: ssh_confirm would allow more"},
                 {"git: {verify: off}", "1:15: git.verify would allow more"},
                 {"git: {allow_force: true}", "1:20: git.allow_force would allow more"},
                 {"git: {allow_delete: true}", "1:21: git.allow_delete would allow more"},
                 {"limits: {memory: 2G}", "1:18: limits.memory would raise a limit"},
                 {"limits: {pids: none}", "1:16: limits.pids would raise a limit"},
                 {"limits: {cpus: 2.001}", "1:16: limits.cpus would raise a limit"},
                 {"limits: {timeout: 61s}", "1:19: limits.timeout would raise a limit"},
                 {"limits: {grace: 6s}", "1:17: limits.grace would raise a limit"},
                 {"env: {pass: [C]}", "1:14: env.pass would change what the box may do"},
                 {"env: {pass: [R]}", "1:14: env.pass would change what the box may do"},
                 {"env: {set: {A: x}}", "1:13: env.set would change what the box may do"},
                 {"env: {set: {B: '2'}}", "1:13: env.set would change what the box may do"},
                 {"user: keep", "1:7: user would change what the box may do"},
                 {"tty: always", "1:6: tty would allow more"},
                 {"engine: docker", "1:9: engine would change what the box may do"},
                 {"image: y", "1:8: image would change what the box may do"},
                 {"vm: {kernel: /k}", "1:14: vm.kernel would change what the box may do"},
                 {"vm: {modules: m}", "1:15: vm.modules would change what the box may do"},
                 {"seatbelt: {base: permissive}", "1:18: seatbelt.base would allow more"},
                 {"seatbelt: {file: p.sb}", "1:18: seatbelt.file would change what the box may do"},
                 {"hostname: i", "1:11: hostname would change what the box may do"},
                 {"net: {ask: true}", "1:12: net.ask would allow more"},
                 {"net: {ask_time: 60s}", "1:17: net.ask_time would change what the box may do"},
                 {"allow_nested_userns: true", "1:22: allow_nested_userns would allow more"},
                 {"may_lose: [network]", "1:12: may_lose would change what the box may do"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct policy *p = NULL;
        struct err e;
        char wants[1024];
        snprintf(wants, sizeof wants,
                 PROJECT_FILE ":%s, and an untrusted project can only tighten the policy; if you trust this file: "
                              "pinfold trust " PROJECT_FILE,
                 cases[i].says);
        if (with_project(USER_TEXT, cases[i].text, false, &p, &e) == 0)
            fail_msg("'%s' was taken", cases[i].text);
        if (!same(e.text, wants) || e.kind != ERR_REFUSED)
            fail_msg("\n text: %s\n says: %s\nwants: %s", cases[i].text, e.text, wants);
        /* The same file, trusted, may (but for extending a profile, which changes the rest). */
        if (with_project(USER_TEXT, cases[i].text, true, &p, &e) < 0 && !strstr(cases[i].text, "workspace: .."))
            fail_msg("trusted '%s': %s", cases[i].text, e.text);
        p = policy_free(p);
    }
}

static void the_workspace_stays_closed(void **state)
{
    (void)state;
    struct policy *p = NULL;
    struct err e;
    assert_true(with_project("workspace_read_only: true", "workspace_read_only: false", false, &p, &e) < 0);
    assert_true(with_project("workspace_read_only: true", "files: {rw: [.]}", false, &p, &e) < 0);
    assert_true(with_project("workspace_read_only: true", "files: {rw: [sub]}", false, &p, &e) < 0);
    assert_int_equal(with_project("workspace_read_only: true", "files: {ro: [sub]}", false, &p, &e), 0);
    assert_true(p->workspace_read_only);
    p = policy_free(p);
    /* Foreign formats are no way round. */
    struct layer_said said[] = {
        {LAYER_PROJECT, POLICY_SRT, PROJECT_FILE, "{\"filesystem\": {\"allowWrite\": [\"/data\"]}}", false}, {0}};
    assert_true(build_in(&test_world, said, NULL, &p, &e) < 0);
    assert_int_equal(e.kind, ERR_REFUSED);
}

/* What an untrusted hide or protection leaves of stricter rules: all of it. */
static void stricter_rules_are_kept(void **state)
{
    (void)state;
    struct policy *p = NULL;
    struct err e;
    assert_int_equal(with_project("files: {hide: ['**/k'], ro: [/data/r], rw: [/data]}",
                                  "files: {protect: ['**/k', /data/r, /data/s], hide: [/data/t], ro: [/data/u]}", false,
                                  &p, &e),
                     0);
    assert_int_equal(rule_for(p, "k")->access, PATH_HIDE);
    assert_int_equal(rule_for(p, "/data/r")->access, PATH_RO);
    assert_int_equal(rule_for(p, "/data/s")->access, PATH_PROTECT);
    assert_int_equal(rule_for(p, "/data/t")->access, PATH_HIDE);
    assert_int_equal(rule_for(p, "/data/u")->access, PATH_RO);
    p = policy_free(p);
    /* What is writable already gets no rule of its own, which could single it out of what guards its surroundings. */
    assert_int_equal(with_project("files: {rw: [/data]}", "files: {rw: [/data/x, .git/hooks]}", false, &p, &e), 0);
    assert_null(rule_for(p, "/data/x"));
    assert_null(rule_for(p, "/home/u/p/.git/hooks"));
    policy_free(p);
}

/*
 * The property. Random users' and projects' texts over a small universe, so that rules meet; the judge below knows
 * nothing of the code that merged them.
 */
static unsigned pick(unsigned n)
{
    return (unsigned)rand() % n;
}

static const char *const places[] = {"/d",       "/d/a",    "/d/a/b",   "/d/a/b/c", "/d/x",     ".",
                                     "s",        "s/t",     "s/.env",   "~/.ssh",   "~/.ssh/k", "~/.npm",
                                     "~/.npm/x", "/home/u", "s/x.lock", "/e",       "/d/a*",    "/etc/shadow"};
static const char *const patterns[] = {"**/.env", "**/*.lock", "/d/a/*", "s/**/x*", "**/t"};
enum { N_PLACES = sizeof places / sizeof *places, N_PATTERNS = sizeof patterns / sizeof *patterns };

static const char *any_place(bool with_patterns)
{
    const char *p = with_patterns && pick(4) == 0 ? patterns[pick(N_PATTERNS)] : places[pick(N_PLACES - 2)];
    return p;
}

static void put_list(struct buf *b, const char *key, const char *const *from, unsigned n, unsigned most)
{
    buf_printf(b, "  %s: [", key);
    for (unsigned k = pick(most + 1); k; k--)
        buf_printf(b, "'%s'%s", from[pick(n)], k > 1 ? ", " : "");
    buf_text(b, "]\n");
}

static const char *const hosts[] = {"a.com", "b.com", "*.c.com", "10.0.0.0/8"},
                         *const names[] = {"A", "B", "PATH", "LC_*"}, *const ports[] = {"25", "80", "1-9"},
                         *const sizes[] = {"4M", "16M", "1G", "none"}, *const counts[] = {"16", "100", "4096", "none"},
                         *const times[] = {"1s", "5s", "60s", "1h"}, *const guards[] = {"off", "existing", "strict"},
                         *const modes[] = {"none", "allow", "host"}, *const ttys[] = {"auto", "always", "never"},
                         *const bools[] = {"true", "false"}, *const users[] = {"keep", "root", "'1:1'"},
                         *const lost[] = {"hides", "network", "pid-namespace"},
                         *const guarded[] = {"x", "y/", ".vscode/", ".git/hooks/"},
                         *const published[] = {"80", "81:82"}, *const engines[] = {"auto", "native"},
                         *const sockets[] = {"/run/a", "/run/b"};
#define ANY(list)          list[pick(sizeof list / sizeof *list)]
#define LIST(b, key, list) put_list(b, key, list, sizeof list / sizeof *list, 2)

static void put_paths(struct buf *b)
{
    static const char *const keys[] = {"rw", "ro", "hide", "protect", "cache"};
    const char *said[8] = {0};
    unsigned n_said = 0;
    buf_printf(b, "files:\n  expand: %s\n", pick(8) ? "never" : "start");
    for (unsigned k = 0; k < 5; k++) {
        if (pick(2))
            continue;
        buf_printf(b, "  %s: [", keys[k]);
        for (unsigned n = pick(3); n && n_said < 8; n--) {
            const char *p = any_place(k == 2 || k == 3);
            bool again = (same(p, ".") && k > 1); /* not of the workspace itself */
            for (unsigned i = 0; i < n_said; i++)
                again = again || same(said[i], p);
            if (again)
                continue;
            said[n_said++] = p;
            buf_printf(b, "'%s', ", p);
        }
        buf_text(b, "]\n");
    }
    if (pick(8) == 0)
        buf_text(b, pick(2) ? "  mounts: ['/m:/n']\n" : "  mounts: ['/m:/n:ro']\n");
}

/* `much`: how often each key is said, of ten. */
static void make_text(struct buf *b, unsigned much)
{
    buf_text(b, "version: 1\n");
    if (pick(10) < much)
        put_paths(b);
    if (pick(10) < much) {
        const char *mode = ANY(modes);
        buf_printf(b, "net:\n  mode: %s\n", mode);
        if (same(mode, "allow"))
            LIST(b, "allow", hosts);
        LIST(b, "deny", hosts);
        LIST(b, "deny_ports", ports);
        if (same(mode, "allow") && pick(10) < much)
            buf_printf(b, "  ask: %s\n", ANY(bools));
        if (pick(4) == 0) {
            LIST(b, "publish", published);
            LIST(b, "unix_sockets", sockets);
        }
    }
    if (pick(10) < much)
        buf_printf(b, "limits: {memory: %s, pids: %s, timeout: %s, grace: %s}\n", ANY(sizes), ANY(counts), ANY(times),
                   ANY(times));
    if (pick(10) < much) {
        buf_text(b, "env:\n");
        LIST(b, "remove", names);
        if (pick(3) == 0) {
            LIST(b, "pass", names);
            buf_printf(b, "  set: {C: '%u'}\n", pick(2));
        }
    }
    if (pick(10) < much)
        buf_printf(b, "guard: %s\n", ANY(guards));
    if (pick(10) < much) {
        buf_text(b, "guard_names:\n");
        LIST(b, "root", guarded);
        LIST(b, "any_depth", guarded);
    }
    if (pick(10) < much)
        buf_printf(b, "tty: %s\n", ANY(ttys));
    if (pick(20) < much)
        buf_printf(b, "workspace_read_only: %s\n", ANY(bools));
    if (pick(20) < much)
        buf_printf(b, "allow_nested_userns: %s\n", ANY(bools));
    if (pick(30) < much)
        buf_printf(b, "user: %s\n", ANY(users));
    if (pick(30) < much)
        buf_printf(b, "engine: %s\n", ANY(engines));
    if (pick(30) < much)
        buf_printf(b, "may_lose: [%s]\n", ANY(lost));
}

static int may_read(enum path_access a)
{
    return a != PATH_HIDE;
}
static int may_write(enum path_access a)
{
    return a == PATH_RW ? 2 : a == PATH_CACHE ? 1 : 0;
}

/* What holds at a path, the plain way: the longest fixed rule or the workspace, then every pattern takes its share. */
static enum path_access holds(const struct policy *p, const char *path)
{
    enum path_access a = PATH_RO;
    size_t longest = 0;
    if (path_at_or_below(path, p->workspace)) {
        a = p->workspace_read_only ? PATH_RO : PATH_RW;
        longest = strlen(p->workspace);
    }
    for (size_t i = 0; i < p->n_paths; i++) {
        const struct path_rule *r = &p->paths[i];
        if (!r->any_depth && !r->pattern && path_at_or_below(path, r->path) && strlen(r->path) >= longest) {
            a = r->access;
            longest = strlen(r->path);
        }
    }
    for (size_t i = 0; i < p->n_paths; i++) {
        const struct path_rule *r = &p->paths[i];
        if ((r->any_depth || r->pattern) && path_rule_covers(r, path) && a != PATH_HIDE)
            a = r->access == PATH_HIDE || may_write(a) ? r->access : a;
    }
    return a;
}

static bool has_net(const struct policy *p, const struct net_rule *r)
{
    for (size_t i = 0; i < p->n_net_rules; i++) {
        if (p->net_rules[i].verb == r->verb && same(p->net_rules[i].text, r->text))
            return true;
    }
    return false;
}

static bool has_guard(const struct policy *p, const struct guard_name *g)
{
    for (size_t i = 0; i < p->n_guards; i++) {
        const struct guard_name *o = &p->guards[i];
        if (same(o->name, g->name) && o->place == g->place && o->judge == g->judge && o->directory == g->directory)
            return true;
    }
    return false;
}

static const char *looser_paths(const struct policy *a, const struct policy *b)
{
    static const char *const probes[] = {"/",
                                         "/d",
                                         "/d/a",
                                         "/d/a/b",
                                         "/d/a/b/c",
                                         "/d/a/b/c/d",
                                         "/d/x",
                                         "/d/xx",
                                         "/e",
                                         "/e/f",
                                         "/home",
                                         "/home/u",
                                         "/home/u/q",
                                         "/home/u/p",
                                         "/home/u/p/s",
                                         "/home/u/p/s/t",
                                         "/home/u/p/s/t/x1",
                                         "/home/u/p/s/.env",
                                         "/home/u/p/.env/y",
                                         "/home/u/p/s/x.lock",
                                         "/home/u/p/t",
                                         "/home/u/p/n",
                                         "/home/u/.ssh",
                                         "/home/u/.ssh/k",
                                         "/home/u/.ssh/l",
                                         "/home/u/.npm",
                                         "/home/u/.npm/x/y",
                                         "/etc/shadow",
                                         "/etc/hosts",
                                         "/home/u/.config/pinfold/x",
                                         "/home/u/p/.pinfold/policy.yaml"};
    for (size_t i = 0; i < sizeof probes / sizeof *probes; i++) {
        enum path_access x = holds(a, probes[i]), y = holds(b, probes[i]);
        if (may_read(y) > may_read(x) || may_write(y) > may_write(x))
            return probes[i];
    }
    return NULL;
}

/* Why `b` gives more than `a`; NULL when it does not. */
static const char *looser(const struct policy *a, const struct policy *b)
{
    const char *path = looser_paths(a, b);
    const struct limit *x = a->limits.each, *y = b->limits.each;
    static const int tty[] = {[TTY_NEVER] = 0, [TTY_AUTO] = 1, [TTY_ALWAYS] = 2};

    if (path)
        return path;
    for (size_t i = 0; i < sizeof a->limits / sizeof *x; i++) {
        if (y[i].value > x[i].value)
            return "a limit";
    }
    for (size_t i = 0; i < b->n_net_rules; i++) {
        enum net_verb v = b->net_rules[i].verb;
        if (v != NET_RULE_DENY && v != NET_RULE_DENY_PORT && !has_net(a, &b->net_rules[i]))
            return b->net_rules[i].text;
    }
    for (size_t i = 0; i < a->n_net_rules; i++) {
        enum net_verb v = a->net_rules[i].verb;
        if ((v == NET_RULE_DENY || v == NET_RULE_DENY_PORT) && !has_net(b, &a->net_rules[i]))
            return a->net_rules[i].text;
    }
    for (size_t i = 0; i < a->n_guards; i++) {
        if (!has_guard(b, &a->guards[i]))
            return a->guards[i].name;
    }
    for (size_t i = 0; i < b->n_env; i++) {
        bool there = b->env[i].remove;
        for (size_t k = 0; k < a->n_env; k++)
            there = there || (same(a->env[k].name, b->env[i].name) && same(a->env[k].value, b->env[i].value) &&
                              !a->env[k].remove);
        if (!there)
            return b->env[i].name;
    }
    if (b->n_mounts > a->n_mounts || (b->n_mounts && b->mounts[0].read_only < a->mounts[0].read_only))
        return "a mount";
    return b->n_unix_sockets > a->n_unix_sockets                              ? "a socket"
           : b->net > a->net                                                  ? "the network"
           : b->net_ask > a->net_ask                                          ? "asking"
           : b->guard > a->guard                                              ? "the guard"
           : b->expand > a->expand                                            ? "expand"
           : tty[b->tty] > tty[a->tty]                                        ? "tty"
           : b->allow_nested_userns > a->allow_nested_userns                  ? "nested"
           : b->may_lose & ~a->may_lose                                       ? "may_lose"
           : b->workspace_read_only < a->workspace_read_only                  ? "the workspace"
           : b->user != a->user || b->uid != a->uid || b->gid != a->gid       ? "the user"
           : !same(b->engine, a->engine) || !same(b->workspace, a->workspace) ? "engine or workspace"
                                                                              : NULL;
}

static void an_untrusted_project_never_loosens(void **state)
{
    (void)state;
    unsigned taken = 0, refused = 0, changed = 0;
    const unsigned rounds = (unsigned)tries(2500);

    srand(42);
    for (unsigned round = 0; round < rounds; round++) {
        struct buf user = BUF(1 << 16), project = BUF(1 << 16);
        struct policy *before = NULL, *after = NULL;
        struct err e;
        make_text(&user, 6);
        make_text(&project, round % 2 ? 1 : 3);
        struct layer_said said[] = {{LAYER_USER, POLICY_YAML, "/home/u/p/u.yaml", buf_cstr(&user), true}, {0}};
        if (build_in(&test_world, said, NULL, &before, &e) < 0)
            fail_msg("%s\n%s", buf_cstr(&user), e.text);
        struct layer_said both[] = {
            said[0], {LAYER_PROJECT, POLICY_YAML, PROJECT_FILE, buf_cstr(&project), false}, {0}};
        int r = build_in(&test_world, both, NULL, &after, &e);
        if (r < 0 && e.kind != ERR_REFUSED)
            fail_msg("%s\n%s", buf_cstr(&project), e.text);
        if (r == 0) {
            const char *why = looser(before, after);
            if (why)
                fail_msg("%s: round %u\n--- user\n%s--- project\n%s", why, round, buf_cstr(&user), buf_cstr(&project));
            taken++;
            changed += !policy_equal(before, after);
        } else {
            refused++;
        }
        policy_free(before);
        policy_free(after);
        buf_free(&user);
        buf_free(&project);
    }
    /* Neither side of the property is empty. */
    if (taken < rounds / 5 || refused < rounds / 5 || changed < rounds / 10)
        fail_msg("taken %u, refused %u, changed %u", taken, refused, changed);
}

static int with_wish(const char *user, const char *key, const char *value, struct policy **ret, struct err *e)
{
    struct policy_builder *b = policy_builder_new(&test_world);
    assert_non_null(b);
    *e = (struct err){0};
    int r = policy_add_text(b, LAYER_USER, POLICY_YAML, "/home/u/user.yaml", str_of(user), true, e);
    if (r == 0) /* flags are above the texts, and wishes above the flags */
        r = policy_add_flag(b, "timeout", "30s", "--timeout", e);
    if (r == 0)
        r = policy_add_wish(b, key, value, "wish", e);
    if (r == 0)
        r = policy_build(b, ret, e);
    b = policy_builder_free(b);
    return r;
}

static void a_wish_is_only_for_less(void **state)
{
    (void)state;
    static const struct {
        const char *key, *value;
        enum err_kind kind;
    } cases[] = {{"timeout", "10s", ERR_NONE},     {"timeout", "31s", ERR_REFUSED},
                 {"timeout", "none", ERR_REFUSED}, {"net", "none", ERR_NONE},
                 {"net", "host", ERR_REFUSED},     {"allow", "a.com", ERR_NONE},
                 {"allow", "b.com", ERR_REFUSED},  {"deny", "*", ERR_NONE},
                 {"read-only", NULL, ERR_NONE},    {"read-only", "false", ERR_NONE},
                 {"rw", "/data/x", ERR_NONE},      {"rw", "/etc", ERR_REFUSED},
                 {"ro", "/secret/x", ERR_REFUSED}, {"hide", "/data/x", ERR_NONE},
                 {"profile", "none", ERR_REFUSED}, {"profile", "workspace", ERR_REFUSED},
                 {"workspace", "..", ERR_REFUSED}, {"workspace", ".", ERR_NONE},
                 {"env", "B=1", ERR_NONE},         {"env", "B=2", ERR_REFUSED},
                 {"env", "SECRET", ERR_REFUSED},   {"unset", "A", ERR_NONE},
                 {"hide", "/${DATA}", ERR_NONE},   {"must-have", "hides", ERR_NONE},
                 {"user", "keep", ERR_REFUSED},    {"mount", "/etc:/x", ERR_REFUSED},
                 {"guard", "off", ERR_REFUSED},    {"no-such", "1", ERR_POLICY},
                 {"memory", "512M", ERR_NONE},     {"memory", "2G", ERR_REFUSED}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct policy *p = NULL;
        struct err e;
        int r = with_wish(USER_TEXT, cases[i].key, cases[i].value, &p, &e);
        if ((r == 0) != (cases[i].kind == ERR_NONE) || e.kind != cases[i].kind || strstr(e.text, "pinfold trust"))
            fail_msg("%s %s: %d %s", cases[i].key, cases[i].value, r, e.text);
        policy_free(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_takes_away_is_taken),           cmocka_unit_test(what_gives_is_refused_with_its_remedy),
        cmocka_unit_test(the_workspace_stays_closed),         cmocka_unit_test(stricter_rules_are_kept),
        cmocka_unit_test(an_untrusted_project_never_loosens), cmocka_unit_test(a_wish_is_only_for_less)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
