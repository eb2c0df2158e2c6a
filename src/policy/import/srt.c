/*
 * Translates settings of srt: those of sandbox-runtime 0.0.78, by its README and configuration schema. Its patterns
 * differ from ours; one that cannot be said here is an error, not a wider rule.
 */
#include <errno.h>
#include <stdio.h>

#include "policy/domain.h"
#include "policy/import/foreign.h"

static const char ONLY_MACOS[] = "applies to macOS only";
static const char NO_BROKER[] = "credentials are kept out of the box; they are not injected by a proxy";

/* Whether our syntax has the pattern; srt drops a trailing slash and two stars. */
static int srt_path(struct foreign *f, const struct node *item, int list)
{
    static const char *const names[] = {"denyRead", "allowRead", "allowWrite", "denyWrite"};
    struct arena *mem = f->src->list->mem;
    struct str s = item->text;
    struct path_context c = {.world = f->src->world, .base = f->src->world->cwd, .workspace = f->src->world->cwd};
    struct path_text at;
    struct err why;

    if (str_ends(s, STR("/**")) && s.n > 3)
        s.n -= 3;
    if (str_is(s, "**")) /* everything below the current directory */
        s = STR(".");
    /* A pattern without a leading slash is relative to the current directory; ours would apply everywhere. */
    if (str_starts(s, STR("**/"))) {
        const char *below = arena_printf(mem, "./%.*s", (int)s.n, s.p);
        if (!below)
            return foreign_no_memory(f);
        s = str_of(below);
    }
    enum path_forms forms = list == DENY_READ || list == DENY_WRITE ? PATH_PATTERNS : PATH_NO_PATTERN;
    int r = path_expand(&c, s, forms, mem, &at, &why);
    if (r == -ENOMEM)
        return foreign_no_memory(f);
    if (r < 0) {
        if (memchr(s.p, '*', s.n) || memchr(s.p, '?', s.n) || memchr(s.p, '[', s.n))
            return foreign_ignore_value(
                f, names[list], item->text, "the pattern cannot be enforced; name the path, or NAME at any depth",
                list == ALLOW_READ || list == ALLOW_WRITE ? LOSS_OF_A_GRANT : LOSS_OF_MEANING, item);
        return place_wrap(f->src->e, err_say(f->src->e, ERR_POLICY, "%s%s: %s", f->prefix, names[list], why.text),
                          f->src->file, item->line, item->column);
    }
    struct gathered *g = arena_push(mem, &f->paths, &f->n_paths, sizeof *g);
    if (!g)
        return foreign_no_memory(f);
    *g = (struct gathered){.text = s, .at = at, .node = item, .list = list};
    return 0;
}

static int srt_deny_read(struct foreign *f, const struct node *n)
{
    return foreign_each(f, "denyRead", n, srt_path, DENY_READ);
}
static int srt_allow_read(struct foreign *f, const struct node *n)
{
    return foreign_each(f, "allowRead", n, srt_path, ALLOW_READ);
}
static int srt_allow_write(struct foreign *f, const struct node *n)
{
    return foreign_each(f, "allowWrite", n, srt_path, ALLOW_WRITE);
}
static int srt_deny_write(struct foreign *f, const struct node *n)
{
    return foreign_each(f, "denyWrite", n, srt_path, DENY_WRITE);
}

static int srt_git_config(struct foreign *f, const struct node *n)
{
    bool on = false;
    int r = foreign_bool(f, "allowGitConfig", n, &on);
    return r < 0 || !on ? r : foreign_say_text(f, KEY_GUARD_ALLOW, n, ".git/config");
}

static int srt_disabled(struct foreign *f, const struct node *n)
{
    bool on = false;
    int r = foreign_bool(f, "disabled", n, &on);
    return r < 0 || !on ? r : foreign_ignore(f, "disabled", "files are always confined", LOSS_OF_A_GRANT, n);
}

static int srt_filesystem(struct foreign *f, const struct node *n)
{
    static const struct foreign_spec specs[] = {{"denyRead", srt_deny_read, NULL},
                                                {"allowRead", srt_allow_read, NULL},
                                                {"allowWrite", srt_allow_write, NULL},
                                                {"denyWrite", srt_deny_write, NULL},
                                                {"allowGitConfig", srt_git_config, NULL},
                                                {"disabled", srt_disabled, NULL},
                                                {NULL, NULL, NULL}};
    return foreign_map(f, "filesystem.", n, specs);
}

static int srt_allow_host(struct foreign *f, const struct node *item, int arg)
{
    static const char *const loopback[] = {"localhost:", "127.0.0.1:", "[::1]:"};
    f->any_host = true;
    /* srt's proxy connects to this machine's own services; here they are reached one by one. */
    for (size_t i = 0; f->strict && i < sizeof loopback / sizeof *loopback; i++) {
        if (str_starts(item->text, str_of(loopback[i])))
            return foreign_say(f, KEY_REACH, item, item->text, STR(""), 0);
    }
    return foreign_say_item(f, item, arg);
}
static int srt_allowed(struct foreign *f, const struct node *n)
{
    f->network_at = n;
    return foreign_each(f, "allowedDomains", n, srt_allow_host, KEY_ALLOW);
}
static int srt_denied(struct foreign *f, const struct node *n)
{
    return foreign_each(f, "deniedDomains", n, foreign_say_item, KEY_DENY);
}
static int srt_denied_addresses(struct foreign *f, const struct node *n)
{
    return foreign_each(f, "deniedResolvedAddresses", n, foreign_say_item, KEY_DENY);
}
static int srt_sockets(struct foreign *f, const struct node *n)
{
    return foreign_each(f, "allowUnixSockets", n, foreign_say_item, KEY_UNIX_SOCKETS);
}
static int srt_all_sockets(struct foreign *f, const struct node *n)
{
    bool on = false;
    int r = foreign_bool(f, "allowAllUnixSockets", n, &on);
    return r < 0 || !on ? r
                        : foreign_ignore(f, "allowAllUnixSockets",
                                         "sockets are allowed individually (net.unix_sockets)", LOSS_OF_A_GRANT, n);
}
static int srt_strict_list(struct foreign *f, const struct node *n)
{
    bool on = false;
    int r = foreign_bool(f, "strictAllowlist", n, &on);
    return r < 0 || on ? r
                       : foreign_ignore(f, "strictAllowlist", "no questions are asked: what is not allowed is refused",
                                        LOSS_OF_NOTHING, n);
}

static int srt_network(struct foreign *f, const struct node *n)
{
    static const struct foreign_spec specs[] = {
        {"allowedDomains", srt_allowed, NULL},
        {"deniedDomains", srt_denied, NULL},
        {"deniedResolvedAddresses", srt_denied_addresses, NULL},
        {"allowUnixSockets", srt_sockets, NULL},
        {"allowAllUnixSockets", srt_all_sockets, NULL},
        {"strictAllowlist", srt_strict_list, NULL},
        {"allowLocalBinding", NULL, NULL}, /* the box has its own loopback: listening there is not visible outside */
        {"deniedDomainReasons", NULL, "denial messages are pinfold's own", LOSS_OF_NOTHING},
        {"allowMachLookup", NULL, ONLY_MACOS, LOSS_OF_NOTHING},
        {"httpProxyPort", NULL, FOREIGN_OWN_PROXY},
        {"socksProxyPort", NULL, FOREIGN_OWN_PROXY},
        {"mitmProxy", NULL, FOREIGN_OWN_PROXY},
        {"parentProxy", NULL, "the parent proxy is read from the caller's environment", LOSS_OF_NOTHING},
        {"filterRequest", NULL, "is code of the embedding program"},
        {"tlsTerminate", NULL, "TLS is never decrypted"},
        {NULL, NULL, NULL}};
    return foreign_map(f, "network.", n, specs);
}

static int srt_credential(struct foreign *f, const struct node *n, const char *name_key, enum key_id id)
{
    const struct node *name = node_get(n, name_key), *mode = node_get(n, "mode");

    if (!name || name->kind != NODE_SCALAR || !mode || mode->kind != NODE_SCALAR)
        return place_say(f->src->e, ERR_POLICY, f->src->file, n->line, n->column, "%.*s: an entry has %s and mode",
                         (int)strlen(f->prefix) - 1, f->prefix, name_key);
    if (!str_is(mode->text, "deny") && !str_is(mode->text, "mask"))
        return place_say(f->src->e, ERR_POLICY, f->src->file, mode->line, mode->column,
                         "%smode: '%.*s' must be deny or mask", f->prefix, STR_SAID(mode->text));
    int r = foreign_say(f, id, name, name->text, STR(""), 0);
    if (r == 0 && str_is(mode->text, "mask"))
        r = foreign_ignore_value(f, "mode mask of", name->text,
                                 f->strict ? "mode deny hides it completely" : "it is hidden completely instead",
                                 LOSS_OF_MEANING, mode);
    return r;
}

static int srt_credentials(struct foreign *f, const struct node *n)
{
    static const struct foreign_spec rest[] = {
        {"files", NULL, NULL},         {"envVars", NULL, NULL},    {"allowPlaintextInject", NULL, NO_BROKER},
        {"awsPairs", NULL, NO_BROKER}, {"sigv4", NULL, NO_BROKER}, {NULL, NULL, NULL}};
    static const struct {
        const char *list, *name, *prefix;
        enum key_id id;
    } lists[] = {{"files", "path", "credentials.files.", KEY_HIDE},
                 {"envVars", "name", "credentials.envVars.", KEY_ENV_REMOVE}};

    int r = foreign_map(f, "credentials.", n, rest);
    for (size_t i = 0; r == 0 && i < 2; i++) {
        const struct node *list = node_get(n, lists[i].list);
        f->prefix = lists[i].prefix;
        if (list && list->kind != NODE_LIST)
            r = foreign_wrong(f, "", list, "a list");
        for (size_t k = 0; r == 0 && list && k < list->n; k++)
            r = srt_credential(f, &list->items[k], lists[i].name, lists[i].id);
    }
    f->prefix = "";
    return r;
}

/*
 * The meaning of srt's rules for one path, by its README: for reads allowRead beats denyRead at the same path and the
 * nearer beats the farther; for writes denyWrite always beats allowWrite. Translated into one rule of ours.
 */
static int srt_say_path(struct foreign *f, const struct gathered *g)
{
    if (g->at.any_depth || g->at.pattern)
        return foreign_say(f, g->list == DENY_READ ? KEY_HIDE : KEY_PROTECT, g->node, g->text, STR(""), 0);

    bool hidden = foreign_nearest(f, g->at.path, FOREIGN_READS, false) == DENY_READ;
    bool hidden_above = foreign_nearest(f, g->at.path, FOREIGN_READS, true) == DENY_READ;
    bool denied = foreign_nearest(f, g->at.path, 1u << DENY_WRITE, false) == DENY_WRITE;
    bool writable = !denied && foreign_nearest(f, g->at.path, 1u << ALLOW_WRITE, false) == ALLOW_WRITE;
    bool exact_deny = false;
    for (size_t i = 0; i < f->n_paths; i++)
        exact_deny = exact_deny || (f->paths[i].list == DENY_READ && !f->paths[i].at.any_depth &&
                                    !f->paths[i].at.pattern && same(f->paths[i].at.path, g->at.path));
    switch (g->list) {
    case DENY_READ: /* all of it: each name in the root, so that the nearer rules can open what they name */
        if (hidden && !g->at.path[1])
            return foreign_say(f, KEY_HIDE, g->node, STR("/*"), STR(""), 0);
        return hidden ? foreign_say(f, KEY_HIDE, g->node, g->text, STR(""), 0) : 0;
    case ALLOW_READ: /* has an effect only inside something hidden */
        if (!hidden_above)
            return 0;
        return foreign_say(f, writable ? KEY_RW : KEY_RO, g->node, g->text, STR(""), SAID_OPTIONAL);
    case ALLOW_WRITE:
        if (exact_deny && hidden)
            return foreign_ignore_value(f, "filesystem.allowWrite", g->node->text, "denyRead hides the same path",
                                        LOSS_OF_A_GRANT, g->node);
        if (!writable)
            return 0;
        return foreign_say(f, KEY_RW, g->node, g->text, STR(""), SAID_OPTIONAL);
    case DENY_WRITE:
        if (hidden)
            return 0;
        return foreign_say(f, KEY_PROTECT, g->node, g->text, STR(""), 0);
    }
    return 0;
}

/* In srt nothing is writable except what allowWrite names, not even the current directory. */
static int srt_paths(struct foreign *f, const struct node *root)
{
    const char *cwd = f->src->world->cwd;
    bool writable = foreign_nearest(f, cwd, 1u << ALLOW_WRITE, false) == ALLOW_WRITE;
    bool said = false;
    int r = 0;

    for (size_t i = 0; i < f->n_paths; i++)
        said = said || (same(f->paths[i].at.path, cwd) && !f->paths[i].at.any_depth && f->paths[i].list == ALLOW_WRITE);
    if (!writable)
        r = foreign_say_text(f, KEY_READ_ONLY, root, "true");
    for (size_t i = 0; r == 0 && i < f->n_paths; i++) {
        const struct gathered *g = &f->paths[i];
        bool again = false; /* the same path in the same list, or allowRead where allowWrite includes it */
        for (size_t k = 0; k < f->n_paths && !again; k++) {
            const struct gathered *o = &f->paths[k];
            bool here = o->at.any_depth == g->at.any_depth && o->at.pattern == g->at.pattern &&
                        same(o->at.path, g->at.path) && same(o->at.below, g->at.below);
            again = here && ((k < i && o->list == g->list) || (g->list == ALLOW_READ && o->list == ALLOW_WRITE) ||
                             (g->list == ALLOW_READ && o->list == DENY_WRITE));
        }
        if (!again)
            r = srt_say_path(f, g);
    }
    if (r == 0 && writable && !said)
        r = foreign_say_text(f, KEY_READ_ONLY, root, "false");
    return r;
}

/* What its schema requires. Without it srt refuses the file, for an empty list is said and not assumed. */
static int srt_required(struct foreign *f, const struct node *root)
{
    static const char *const required[][4] = {{"network", "allowedDomains", "deniedDomains", NULL},
                                              {"filesystem", "denyRead", "allowWrite", "denyWrite"}};
    for (size_t i = 0; i < sizeof required / sizeof *required; i++) {
        const struct node *part = node_get(root, required[i][0]);
        if (!part)
            return place_say(f->src->e, ERR_POLICY, f->src->file, root->line, root->column, "%s is missing",
                             required[i][0]);
        for (size_t k = 1; k < 4 && required[i][k] && part->kind == NODE_MAP; k++) {
            if (!node_get(part, required[i][k]))
                return place_say(f->src->e, ERR_POLICY, f->src->file, part->line, part->column,
                                 "%s.%s is missing; an empty list is []", required[i][0], required[i][k]);
        }
    }
    return 0;
}

/* What srt makes writable by itself below the home (profile srt), unless denyRead has it. */
static int srt_own_places(struct foreign *f, const struct node *root)
{
    static const char *const places[] = {"~/.npm/_logs", "~/.claude/debug"};
    int r = 0;
    for (size_t i = 0; r == 0 && i < sizeof places / sizeof *places; i++) {
        const char *path = arena_printf(f->src->list->mem, "%s%s", f->src->world->home, places[i] + 1);
        if (!path)
            return foreign_no_memory(f);
        if (foreign_nearest(f, path, FOREIGN_READS, false) == DENY_READ)
            r = foreign_say_text(f, KEY_HIDE, root, places[i]);
    }
    return r;
}

int foreign_srt(struct foreign *f, const struct node *root)
{
    static const struct foreign_spec specs[] = {
        {"filesystem", srt_filesystem, NULL},
        {"network", srt_network, NULL},
        {"credentials", srt_credentials, NULL},
        {"ignoreViolations", NULL, "denials are always reported", LOSS_OF_NOTHING},
        {"enableWeakerNestedSandbox", NULL, "guarantees that a nested box lacks are listed by name (may_lose)",
         LOSS_OF_NOTHING},
        {"enableWeakerNetworkIsolation", NULL, ONLY_MACOS, LOSS_OF_NOTHING},
        {"allowAppleEvents", NULL, ONLY_MACOS, LOSS_OF_NOTHING},
        {"allowPty", NULL, ONLY_MACOS, LOSS_OF_NOTHING},
        {"ripgrep", NULL, "guarded names are checked when they are used; nothing is searched", LOSS_OF_NOTHING},
        {"mandatoryDenySearchDepth", NULL, "guarded names apply at every depth; nothing is searched", LOSS_OF_NOTHING},
        {"seccomp", NULL, "pinfold's filters are its own", LOSS_OF_NOTHING},
        {"bwrapPath", NULL, "pinfold finds its engines itself", LOSS_OF_NOTHING},
        {"socatPath", NULL, "socat is not used", LOSS_OF_NOTHING},
        {"javaAgentJarPath", NULL, "programs need no agent: the network enforces the rules", LOSS_OF_NOTHING},
        {"windows", NULL, "applies to Windows only", LOSS_OF_NOTHING},
        {"git", NULL, "the command keeps the caller's user, so git needs no safe.directory", LOSS_OF_NOTHING},
        {NULL, NULL, NULL}};

    int r = f->strict ? srt_required(f, root) : 0;
    if (r == 0)
        r = foreign_map(f, "", root, specs);
    if (r == 0 && f->strict)
        r = srt_own_places(f, root);
    if (r == 0)
        r = srt_paths(f, root);
    if (r == 0)
        r = foreign_say_text(f, KEY_NET, f->network_at ? f->network_at : root, f->any_host ? "allow" : "none");
    return r;
}
