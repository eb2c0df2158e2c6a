/*
 * `pinfold image check`: asks the engine about an image, looks at it from inside (look.c), and says what boxes, agents and people who
 * start it by hand would miss or be surprised by.
 */
#include "run/image/image.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agents/agents.h"
#include "backends/container/container_image.h"
#include "base/json.h"
#include "run/direct.h"
#include "run/image/look.h"

enum { CHECK_ARENA = 32 << 20, CHECK_ANSWER = 4 << 20, CHECK_WORDS = 96, CHECK_LISTED = 6 };

struct image_checking {
    struct arena *mem;
    const struct image_check_ask *ask;
    struct image_finding *found;
    size_t n;
    struct node config, seen; /* the engine's description of the image's Config; what was seen inside */
    const char *user, *workdir,
        *base; /* base: what IMAGE_LABEL says; boxes need less than who starts such an image by hand */
};

static void image_lacks(struct image_checking *c, const char *id, bool note, const char *text, const char *remedy)
{
    struct image_finding *f = arena_push(c->mem, &c->found, &c->n, sizeof *f);
    if (f)
        *f = (struct image_finding){.id = id, .text = text, .remedy = remedy, .note = note};
}

/* ---- reading both descriptions; what is absent or no such thing is empty ---- */

static const struct node *seen_member(const struct node *map, const char *key)
{
    const struct node *n = map && map->kind == NODE_MAP ? node_get(map, key) : NULL;
    return n && n->kind == NODE_SCALAR && node_is_null(n) ? NULL : n;
}

static const char *seen_text(struct image_checking *c, const struct node *map, const char *key)
{
    const struct node *n = seen_member(map, key);
    const char *s = n && n->kind == NODE_SCALAR ? arena_str(c->mem, n->text) : NULL;
    return s ? s : "";
}

static bool seen_is(const struct node *map, const char *key)
{
    const struct node *n = seen_member(map, key);
    return n && n->kind == NODE_SCALAR && str_is(n->text, "true");
}

static unsigned long seen_number(struct image_checking *c, const struct node *map, const char *key)
{
    return strtoul(seen_text(c, map, key), NULL, 10);
}

static bool seen_lists(const struct node *list, const char *word)
{
    for (size_t i = 0; list && list->kind == NODE_LIST && i < list->n; i++) {
        if (list->items[i].kind == NODE_SCALAR && str_is(list->items[i].text, word))
            return true;
    }
    return false;
}

/* "a, b, c and 4 more", safe to print; "" if it is empty. */
static const char *seen_joined(struct image_checking *c, const struct node *list)
{
    auto_buf struct buf out = BUF(65536);
    size_t n = list && list->kind == NODE_LIST ? list->n : 0;
    for (size_t i = 0; i < n && i < CHECK_LISTED; i++) {
        buf_text(&out, i ? ", " : "");
        utf8_safe(&out, list->items[i].text);
    }
    if (n > CHECK_LISTED)
        buf_printf(&out, " and %zu more", n - CHECK_LISTED);
    const char *s = arena_text(c->mem, buf_cstr(&out));
    return s ? s : "";
}

/* A list of words as docker has them, or one text. */
static const char *seen_first(struct image_checking *c, const struct node *map, const char *key)
{
    const struct node *n = seen_member(map, key);
    if (n && n->kind == NODE_LIST && n->n && n->items[0].kind == NODE_SCALAR)
        n = &n->items[0];
    const char *s = n && n->kind == NODE_SCALAR ? arena_str(c->mem, n->text) : NULL;
    return s ? s : "";
}

static const char *seen_safe_str(struct image_checking *c, struct str s)
{
    auto_buf struct buf out = BUF(65536);
    utf8_safe(&out, (struct str){s.p, s.n < 300 ? s.n : 300});
    const char *kept = arena_text(c->mem, buf_cstr(&out));
    return kept ? kept : "";
}

static const char *seen_safe(struct image_checking *c, const char *s)
{
    return seen_safe_str(c, str_of(s));
}

/* ---- what is looked for ---- */

static void check_programs(struct image_checking *c)
{
    const struct node *programs = seen_member(&c->seen, "programs");
    if (!seen_is(&c->seen, "sh"))
        image_lacks(c, "no-shell", false,
                    "there is no /bin/sh: pinfold shell, exec --shell and the boxes of branches need one",
                    "install a shell, such as dash or bash");
    else if (!seen_is(&c->seen, "bash"))
        image_lacks(c, "no-bash", true,
                    "there is no bash: shells have neither the history of pinfold shell nor its prompt",
                    "install bash");
    if (!seen_lists(programs, "git"))
        image_lacks(c, "no-git", false,
                    "there is no git: agents look at changes with it, and boxes of branches are made by it",
                    "install git");
    if (!seen_is(&c->seen, "certificates"))
        image_lacks(c, "no-certificates", false,
                    "there are no CA certificates: no program in it can check whom it reaches by TLS",
                    "install ca-certificates");
    for (const char *const *a = c->ask->agents; a && *a; a++) {
        struct agent agent;
        struct err ignored = {0};
        const bool known = agent_find(*a, c->mem, &agent, &ignored) == 0 && agent.command && agent.command[0];
        const char *program = known ? agent.command[0] : *a;
        if (!seen_lists(programs, program))
            image_lacks(c, "no-agent", false,
                        arena_printf(c->mem, "there is no program '%s' in its PATH%s", program,
                                     known ? ", which the agent is started by" : ""),
                        known && agent.start.install
                            ? arena_printf(c->mem, "install it in the Dockerfile: %s", agent.start.install)
                            : "install it in the Dockerfile, where PATH finds it");
    }
}

static bool seen_can_write(struct image_checking *c, const struct node *place, const struct node *user)
{
    const unsigned long mode = seen_number(c, place, "mode"), uid = seen_number(c, user, "uid"),
                        gid = seen_number(c, user, "gid");
    return uid == 0 || (seen_number(c, place, "uid") == uid   ? mode & 0200
                        : seen_number(c, place, "gid") == gid ? mode & 0020
                                                              : mode & 0002);
}

static void check_user(struct image_checking *c)
{
    const struct node *user = seen_member(&c->seen, "user"), *home = seen_member(user, "home");
    const bool number_said = c->user[0] >= '0' && c->user[0] <= '9';
    if (!c->user[0] || same(c->user, "root") || same(c->user, "0") || strncmp(c->user, "root:", 5) == 0 ||
        strncmp(c->user, "0:", 2) == 0) {
        image_lacks(c, "user-root", !c->base[0],
                    "it starts as root when somebody starts it by hand (a box's command is you, whatever it says)",
                    "create a user in the Dockerfile and end it with: USER " IMAGE_USER);
        return;
    }
    if (!seen_is(user, "known")) {
        image_lacks(c, "user-unknown", number_said,
                    arena_printf(c->mem, "its USER '%s' is not in its /etc/passwd%s", seen_safe(c, c->user),
                                 number_said ? ": programs that ask for a name or a home fail"
                                             : ": it cannot be started by hand"),
                    "add the user: RUN useradd --create-home --shell /bin/bash NAME");
        return;
    }
    if (!seen_is(home, "there") || !seen_can_write(c, home, user))
        image_lacks(c, "no-home", false,
                    arena_printf(c->mem, "the home of its USER, '%s', %s",
                                 seen_safe(c, seen_text(c, user, "home_path")),
                                 seen_is(home, "there") ? "is not writable for it" : "does not exist"),
                    "create it with that owner (useradd --create-home)");
}

static void check_places(struct image_checking *c)
{
    const struct node *user = seen_member(&c->seen, "user"), *workspace = seen_member(&c->seen, "workspace");
    if (!seen_is(workspace, "there"))
        image_lacks(c, "no-workspace", !c->base[0],
                    "there is no /workspace, where a project is mounted when it is started by hand",
                    "RUN mkdir /workspace && chown " IMAGE_USER " /workspace, before USER");
    else if (!seen_can_write(c, workspace, user))
        image_lacks(c, "workspace-closed", !c->base[0], "its USER may not write to /workspace",
                    "RUN chown " IMAGE_USER " /workspace, before USER");
    if (seen_number(c, workspace, "entries") > 0)
        image_lacks(c, "workspace-filled", false,
                    "/workspace has files: a project that is mounted there hides them, and they go stale",
                    "leave the project's files out of the image; they are mounted when it runs");
    if (c->workdir[0] && !seen_is(seen_member(&c->seen, "workdir"), "there"))
        image_lacks(c, "workdir-missing", false,
                    arena_printf(c->mem,
                                 "its WORKDIR '%s' is not in it: pinfold run without a command cannot start there",
                                 seen_safe(c, c->workdir)),
                    "create it with RUN mkdir");
}

static const char **seen_words(struct image_checking *c, const struct node *list)
{
    size_t n = list && list->kind == NODE_LIST ? list->n : 0;
    const char **ret = arena_zero(c->mem, (n + 1) * sizeof *ret);
    for (size_t i = 0; ret && i < n; i++)
        ret[i] = arena_str(c->mem, list->items[i].text);
    return ret;
}

/* sudo does nothing in a box; started by hand it makes its user root. */
static void check_sudo(struct image_checking *c)
{
    const struct node *rules = seen_member(&c->seen, "sudo"), *user = seen_member(&c->seen, "user");
    const char *name = seen_text(c, user, "name"), *const *groups =
                                                       (const char *const *)seen_words(c, seen_member(user, "groups"));
    if (!seen_lists(seen_member(&c->seen, "programs"), "sudo") || !name[0])
        return;
    for (size_t i = 0; rules && rules->kind == NODE_LIST && i < rules->n; i++) {
        const struct str line = rules->items[i].text;
        if (rules->items[i].kind == NODE_SCALAR && image_sudo_scope(line, name, groups) == SUDO_WIDER)
            image_lacks(
                c, "sudo-scope", false,
                arena_printf(c->mem, "sudo lets its USER do more than start the firewall: %s", seen_safe_str(c, line)),
                "allow nothing else: " IMAGE_USER " ALL=(root) NOPASSWD: " IMAGE_FIREWALL " \"\"");
    }
}

static void check_powers(struct image_checking *c)
{
    static const struct {
        const char *list, *id, *text, *remedy;
    } all[] = {
        {"setuid", "setuid", "setuid or setgid files that no distribution installs",
         "chmod a-s in the Dockerfile, or remove them"},
        {"capable", "capabilities", "files with capabilities of their own",
         "setcap -r in the Dockerfile, or remove them"},
        {"exposed", "path-writable", "directories of PATH that everybody may write", "chmod o-w in the Dockerfile"}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const char *which = seen_joined(c, seen_member(&c->seen, all[i].list));
        if (*which)
            image_lacks(c, all[i].id, false, arena_printf(c->mem, "it has %s: %s", all[i].text, which), all[i].remedy);
    }
    if (seen_is(&c->seen, "cut"))
        image_lacks(c, "not-all-seen", true, "it has more files than were looked at, or more findings than are listed",
                    "look at the rest by hand");
}

/* Everybody who has the image has what its variables say, and every box of it gets them. */
static void check_env(struct image_checking *c)
{
    static const char *const ends[] = {"TOKEN",   "SECRET",     "PASSWORD",    "PASSWD",
                                       "API_KEY", "ACCESS_KEY", "PRIVATE_KEY", NULL};
    const struct node *env = seen_member(&c->config, "Env");
    for (size_t i = 0; env && env->kind == NODE_LIST && i < env->n; i++) {
        struct str value = env->items[i].text, name = str_until(&value, '=');
        for (const char *const *e = ends; *e && value.n; e++) {
            if (name.n < strlen(*e) || !str_is_nocase(str_skip(name, name.n - strlen(*e)), *e))
                continue;
            image_lacks(c, "secret", false,
                        arena_printf(c->mem,
                                     "its variable %s holds what looks like a secret, for everybody who has the image",
                                     seen_safe_str(c, name)),
                        "leave it out of the Dockerfile; give it to the command that needs it (--env NAME)");
            break;
        }
    }
}

static void check_start(struct image_checking *c)
{
    const char *entrypoint = seen_first(c, &c->config, "Entrypoint"), *label = c->base;
    const struct node *volumes = seen_member(&c->config, "Volumes");
    if (*label && !same(entrypoint, IMAGE_ENTRYPOINT))
        image_lacks(c, "entrypoint-changed", false,
                    "it is built on pinfold's base image and has another ENTRYPOINT, so that it starts without its "
                    "firewall when it is started by hand",
                    "remove ENTRYPOINT from the Dockerfile");
    else if (*entrypoint && !*label)
        image_lacks(
            c, "entrypoint", true,
            arena_printf(c->mem, "a command in a box is not passed to its ENTRYPOINT '%s'", seen_safe(c, entrypoint)),
            "pinfold run --entrypoint image does that");
    if (*label && !same(c->user, IMAGE_USER))
        image_lacks(
            c, "user-changed", false,
            arena_printf(c->mem, "it is built on pinfold's base image and its USER is '%s'", seen_safe(c, c->user)),
            "end the Dockerfile with: USER " IMAGE_USER);
    if (*label && !seen_is(&c->seen, "marker"))
        image_lacks(c, "no-marker", false,
                    "there is no /.agent-sandbox, by which tools know that they are in a sandbox",
                    "do not remove it in the Dockerfile");
    for (size_t i = 0; volumes && volumes->kind == NODE_MAP && i < volumes->n; i++)
        image_lacks(c, "volume", true,
                    arena_printf(c->mem, "its VOLUME '%s' is empty and read-only in a box",
                                 seen_safe_str(c, volumes->items[2 * i].text)),
                    "give the box a place of its own there: --storage DIR, or --mount");
}

/* ---- asking ---- */

static const char *const looked_for[] = {
    "git",      "sudo",  "node", "npm",   "curl", "claude",       "codex",    "gemini", "opencode", "copilot", "qwen",
    "kiro-cli", "aider", "amp",  "goose", "pi",   "cursor-agent", "ast-grep", "delta",  "gh",       NULL};

static int check_inside(struct image_checking *c, const struct container_ask *ask, struct err *e)
{
    const char *words[CHECK_WORDS] = {IMAGE_LOOK, c->user[0] ? c->user : "root", c->workdir[0] ? c->workdir : "/"};
    auto_buf struct buf out = BUF(CHECK_ANSWER);
    size_t n = 3;
    for (const char *const *p = looked_for; *p; p++)
        words[n++] = *p;
    for (const char *const *a = c->ask->agents; a && *a && n + 2 < CHECK_WORDS; a++) {
        struct agent agent;
        struct err ignored = {0};
        words[n++] =
            agent_find(*a, c->mem, &agent, &ignored) == 0 && agent.command && agent.command[0] ? agent.command[0] : *a;
    }
    int r = container_look(ask, words, &out, e);
    return r == 0 ? container_json(c->mem, "what was seen in the image", &out, &c->seen, e) : r;
}

static int check_all(struct image_checking *c, const struct policy *p, struct image_checked *ret, struct err *e)
{
    struct container_ask ask;
    struct node image = {.kind = NODE_MAP};
    int r = container_choose(p, c->mem, &ask, &image, e);
    if (r < 0)
        return r;
    const struct node *config = seen_member(&image, "Config");
    c->config = config ? *config : (struct node){.kind = NODE_MAP};
    c->user = seen_text(c, &c->config, "User");
    c->workdir = seen_text(c, &c->config, "WorkingDir");
    c->base = seen_text(c, seen_member(&c->config, "Labels"), IMAGE_LABEL);
    r = check_inside(c, &ask, e);
    if (r < 0)
        return r;
    check_programs(c);
    check_user(c);
    check_places(c);
    check_sudo(c);
    check_powers(c);
    check_env(c);
    check_start(c);
    *ret = (struct image_checked){.engine = ask.podman ? "podman" : "docker",
                                  .image = p->image,
                                  .id = seen_text(c, &image, "Id"),
                                  .system = seen_safe(c, seen_text(c, &c->seen, "system")),
                                  .user = seen_safe(c, c->user[0] ? c->user : "root"),
                                  .base = seen_safe(c, c->base),
                                  .programs = (const char *const *)seen_words(c, seen_member(&c->seen, "programs")),
                                  .findings = c->found,
                                  .n = c->n};
    return arena_failed(c->mem) ? err_sys(e, ERR_SYSTEM, ENOMEM, "cannot check the image") : 0;
}

int image_check(const struct image_check_ask *ask, struct image_checked *ret, struct pinfold_error *error)
{
    struct pinfold_option options[4] = {{"image", ask->image}};
    const struct pinfold_policy_options o = {.size = sizeof o, .options = options};
    struct pinfold_policy *policy;
    struct err e = {0};
    struct image_checking c = {.mem = arena_new(CHECK_ARENA), .ask = ask};
    *ret = (struct image_checked){.mem = c.mem};
    if (ask->engine)
        options[1] = (struct pinfold_option){"engine", ask->engine};
    if (!c.mem)
        return tell(error, &e, err_sys(&e, ERR_SYSTEM, ENOMEM, "cannot check the image"));
    int r = pinfold_policy_load(&o, &policy, error);
    if (r == 0) {
        r = check_all(&c, policy->policy, ret, &e);
        r = tell(error, &e, r);
        ret->image = ask->image;
        ret->mem = c.mem;
        pinfold_policy_free(policy);
    }
    if (r < 0)
        image_checked_free(ret);
    return r;
}

void image_checked_free(struct image_checked *c)
{
    c->mem = arena_free(c->mem);
}
