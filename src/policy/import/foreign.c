/*
 * Translates settings of other sandboxes into statements. Everything that cannot be honoured goes to list->ignored. So
 * do unknown keys, unless one is so near to a known key that it must be a typing error: then it is an error, because a
 * rule that silently has no effect is worse than a refused file.
 *
 * Formats: srt's settings are those of sandbox-runtime 0.0.78 (its README and configuration schema); dive's `sandbox:`
 * block, mycode's SandboxConfig and daycare's `docker` section follow their design texts, dive's also the JSON tags of
 * its Config.
 */
#include <errno.h>
#include <stdio.h>

#include "policy/domain.h"
#include "policy/path.h"
#include "policy/said.h"

/* What a key that is not honoured means to who wrote it. The strict formats differ by it (POLICY_SRT_STRICT). */
enum loss {
    LOSS_OF_MEANING, /* something else would happen than was asked for: an error there */
    LOSS_OF_A_GRANT, /* less is allowed: told there, too */
    LOSS_OF_NOTHING  /* it is not needed here, or somebody else honours it: not told there */
};

/* How a key of a foreign format is read: by a function, or not, for a reason. */
struct foreign;
typedef int foreign_fn(struct foreign *f, const struct node *n);
struct foreign_spec {
    const char *name;
    foreign_fn *read; /* NULL: `why` is why it is ignored; if that is NULL, too, nothing needs to be done */
    const char *why;
    enum loss loss;
};

struct foreign {
    const struct source *src;
    const char *prefix; /* "filesystem.", for messages */
    bool strict;        /* what cannot be honoured is an error */
    /* srt: path rules are collected first, because its lists override one another. */
    struct gathered {
        struct str text;         /* in our syntax */
        struct path_text at;     /* expanded, for comparison */
        const struct node *node; /* where it was written */
        enum { DENY_READ, ALLOW_READ, ALLOW_WRITE, DENY_WRITE } list;
    } * paths;
    size_t n_paths;
    bool network_on, hosts_said, any_host;
    const struct node *network_at;
    const struct node *container_at; /* dive, mycode: where a container engine was chosen, and */
    bool image_said;                 /* whether its image was */
};

/* dive's and mycode's image where their settings name none. */
#define FOREIGN_IMAGE "ubuntu:22.04"

static int foreign_no_memory(const struct foreign *f)
{
    return err_sys(f->src->e, ERR_SYSTEM, ENOMEM, "%s", f->src->file);
}

static int ignore(struct foreign *f, const char *key, const char *why, enum loss loss, const struct node *at)
{
    struct said_list *l = f->src->list;
    if (f->strict && loss == LOSS_OF_NOTHING)
        return 0;
    if (f->strict && loss == LOSS_OF_MEANING)
        return place_say(f->src->e, ERR_POLICY, f->src->file, at->line, at->column, "%s%s cannot be honoured: %s",
                         f->prefix, key, why);
    struct foreign_key *slot = arena_push(l->mem, &l->ignored, &l->n_ignored, sizeof *slot);
    char *full = arena_printf(l->mem, "%s%s", f->prefix, key);
    if (!slot || !full)
        return foreign_no_memory(f);
    *slot = (struct foreign_key){.key = full, .why = why, .line = at->line, .column = at->column};
    return 0;
}

static int ignore_value(struct foreign *f, const char *key, struct str value, const char *why, enum loss loss,
                        const struct node *at)
{
    char *text = arena_printf(f->src->list->mem, "%s '%.*s'", key, STR_SAID(value));
    return text ? ignore(f, text, why, loss, at) : foreign_no_memory(f);
}

static int wrong(struct foreign *f, const char *key, const struct node *n, const char *wanted)
{
    struct str name = str_of(f->prefix);
    if (!*key && name.n)
        name.n--; /* "filesystem." itself */
    if (n->kind == NODE_SCALAR && !node_is_null(n))
        return place_say(f->src->e, ERR_POLICY, f->src->file, n->line, n->column, "%.*s%s must be %s, not '%.*s'",
                         (int)name.n, name.p, key, wanted, STR_SAID(n->text));
    return place_say(f->src->e, ERR_POLICY, f->src->file, n->line, n->column, "%.*s%s must be %s, not %s", (int)name.n,
                     name.p, key, wanted, node_is_null(n) ? "empty" : node_kind_name(n));
}

static int foreign_say(struct foreign *f, enum key_id id, const struct node *at, struct str a, struct str b,
                       unsigned bits)
{
    return said_add(
        f->src,
        (struct said){
            .key = (uint16_t)id, .bits = (uint16_t)bits, .line = at->line, .column = at->column, .a = a, .b = b});
}

static int say_text(struct foreign *f, enum key_id id, const struct node *at, const char *text)
{
    return text ? foreign_say(f, id, at, str_of(text), STR(""), 0) : foreign_no_memory(f);
}

/* Reads a mapping with its table of keys. */
static int read_map(struct foreign *f, const char *prefix, const struct node *map, const struct foreign_spec *specs)
{
    const char *before = f->prefix;

    f->prefix = prefix;
    if (map->kind != NODE_MAP)
        return wrong(f, "", map, "a mapping");
    for (size_t i = 0; i < map->n; i++) {
        const struct node *key = &map->items[2 * i], *value = key + 1;
        const struct foreign_spec *spec = specs, *near = NULL;
        unsigned nearest = 99;
        int r = 0;
        for (; spec->name && !str_is(key->text, spec->name); spec++) {
            unsigned d = str_distance(key->text, str_of(spec->name));
            if (d < nearest) {
                nearest = d;
                near = spec;
            }
        }
        if (spec->name && spec->read)
            r = spec->read(f, value);
        else if (spec->name)
            r = spec->why ? ignore(f, spec->name, spec->why, spec->loss, key) : 0;
        else if (near && is_near(nearest, key->text))
            r = place_say(f->src->e, ERR_POLICY, f->src->file, key->line, key->column,
                          "unknown key '%s%.*s' (did you mean '%s'?)", prefix, STR_SAID(key->text), near->name);
        else {
            char *name = arena_printf(f->src->list->mem, "%.*s", STR_SAID(key->text));
            r = name ? ignore(f, name,
                              f->strict ? "it is not a key of sandbox-runtime 0.0.78; remove it" : "unknown key",
                              LOSS_OF_MEANING, key)
                     : foreign_no_memory(f);
        }
        if (r < 0)
            return r;
    }
    f->prefix = before;
    return 0;
}

static int want_bool(struct foreign *f, const char *key, const struct node *n, bool *ret)
{
    if (n->kind != NODE_SCALAR || !n->plain || !(str_is(n->text, "true") || str_is(n->text, "false")))
        return wrong(f, key, n, "true or false");
    *ret = str_is(n->text, "true");
    return 0;
}

/* Calls `each` for every text of a list. */
static int each_text(struct foreign *f, const char *key, const struct node *list,
                     int (*each)(struct foreign *f, const struct node *item, int arg), int arg)
{
    if (list->kind != NODE_LIST)
        return wrong(f, key, list, "a list");
    for (size_t i = 0; i < list->n; i++) {
        const struct node *item = &list->items[i];
        if (item->kind != NODE_SCALAR || node_is_null(item)) {
            if (!(item->kind == NODE_SCALAR && str_is(item->text, "~")))
                return wrong(f, key, item, "a list of strings");
        }
        int r = each(f, item, arg);
        if (r < 0)
            return r;
    }
    return 0;
}

static int say_item(struct foreign *f, const struct node *item, int key)
{
    if (key == KEY_ALLOW && domain_is_loopback(item->text)) { /* loopback is the box's own: no effect */
        const char *before = f->prefix;
        f->prefix = "";
        int r = ignore_value(f, "the allowed host", item->text,
                             f->strict
                                 ? "inside the box this is the box itself; a service of this machine is localhost:PORT"
                                 : DOMAIN_LOOPBACK,
                             LOSS_OF_A_GRANT, item);
        f->prefix = before;
        return r;
    }
    return foreign_say(f, (enum key_id)key, item, item->text, STR(""), 0);
}

static int say_optional(struct foreign *f, const struct node *item, int key)
{
    unsigned told = key == KEY_RW ? SAID_TOLD : 0;
    return foreign_say(f, (enum key_id)key, item, item->text, STR(""), SAID_OPTIONAL | told);
}

/* The image of the chosen container engine, if the settings leave it to their program. */
static int say_default_image(struct foreign *f)
{
    return f->container_at && !f->image_said ? say_text(f, KEY_IMAGE, f->container_at, FOREIGN_IMAGE) : 0;
}

static int disabled(struct foreign *f, const struct node *n)
{
    return place_say(f->src->e, ERR_POLICY, f->src->file, n->line, n->column,
                     "%senabled is false: pinfold never runs a command without a box (set it to true)", f->prefix);
}

/*
 * srt
 */
static const char NO_PROXY_OF_OTHERS[] = "pinfold's own egress proxy decides; another proxy cannot replace it";
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
            return ignore_value(f, names[list], item->text,
                                "the pattern cannot be enforced; name the path, or NAME at any depth",
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
    return each_text(f, "denyRead", n, srt_path, DENY_READ);
}
static int srt_allow_read(struct foreign *f, const struct node *n)
{
    return each_text(f, "allowRead", n, srt_path, ALLOW_READ);
}
static int srt_allow_write(struct foreign *f, const struct node *n)
{
    return each_text(f, "allowWrite", n, srt_path, ALLOW_WRITE);
}
static int srt_deny_write(struct foreign *f, const struct node *n)
{
    return each_text(f, "denyWrite", n, srt_path, DENY_WRITE);
}

static int srt_git_config(struct foreign *f, const struct node *n)
{
    bool on = false;
    int r = want_bool(f, "allowGitConfig", n, &on);
    return r < 0 || !on ? r : say_text(f, KEY_GUARD_ALLOW, n, ".git/config");
}

static int srt_disabled(struct foreign *f, const struct node *n)
{
    bool on = false;
    int r = want_bool(f, "disabled", n, &on);
    return r < 0 || !on ? r : ignore(f, "disabled", "files are always confined", LOSS_OF_A_GRANT, n);
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
    return read_map(f, "filesystem.", n, specs);
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
    return say_item(f, item, arg);
}
static int srt_allowed(struct foreign *f, const struct node *n)
{
    f->network_at = n;
    return each_text(f, "allowedDomains", n, srt_allow_host, KEY_ALLOW);
}
static int srt_denied(struct foreign *f, const struct node *n)
{
    return each_text(f, "deniedDomains", n, say_item, KEY_DENY);
}
static int srt_denied_addresses(struct foreign *f, const struct node *n)
{
    return each_text(f, "deniedResolvedAddresses", n, say_item, KEY_DENY);
}
static int srt_sockets(struct foreign *f, const struct node *n)
{
    return each_text(f, "allowUnixSockets", n, say_item, KEY_UNIX_SOCKETS);
}
static int srt_all_sockets(struct foreign *f, const struct node *n)
{
    bool on = false;
    int r = want_bool(f, "allowAllUnixSockets", n, &on);
    return r < 0 || !on ? r
                        : ignore(f, "allowAllUnixSockets", "sockets are allowed individually (net.unix_sockets)",
                                 LOSS_OF_A_GRANT, n);
}
static int srt_strict_list(struct foreign *f, const struct node *n)
{
    bool on = false;
    int r = want_bool(f, "strictAllowlist", n, &on);
    return r < 0 || on ? r
                       : ignore(f, "strictAllowlist", "no questions are asked: what is not allowed is refused",
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
        {"httpProxyPort", NULL, NO_PROXY_OF_OTHERS},
        {"socksProxyPort", NULL, NO_PROXY_OF_OTHERS},
        {"mitmProxy", NULL, NO_PROXY_OF_OTHERS},
        {"parentProxy", NULL, "the parent proxy is read from the caller's environment", LOSS_OF_NOTHING},
        {"filterRequest", NULL, "is code of the embedding program"},
        {"tlsTerminate", NULL, "TLS is never decrypted"},
        {NULL, NULL, NULL}};
    return read_map(f, "network.", n, specs);
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
        r = ignore_value(f, "mode mask of", name->text,
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

    int r = read_map(f, "credentials.", n, rest);
    for (size_t i = 0; r == 0 && i < 2; i++) {
        const struct node *list = node_get(n, lists[i].list);
        f->prefix = lists[i].prefix;
        if (list && list->kind != NODE_LIST)
            r = wrong(f, "", list, "a list");
        for (size_t k = 0; r == 0 && list && k < list->n; k++)
            r = srt_credential(f, &list->items[k], lists[i].name, lists[i].id);
    }
    f->prefix = "";
    return r;
}

/* The nearest collected rule of these lists at or above `path`: its list, or -1. Of equals later lists win. */
static int nearest_of(const struct foreign *f, const char *path, unsigned lists, bool below_only)
{
    size_t longest = 0;
    int found = -1;

    for (size_t i = 0; i < f->n_paths; i++) {
        const struct gathered *g = &f->paths[i];
        if (!(lists & 1u << g->list) || g->at.any_depth || g->at.pattern || !path_at_or_below(path, g->at.path) ||
            (below_only && same(path, g->at.path)))
            continue;
        size_t n = strlen(g->at.path);
        if (found < 0 || n > longest || (n == longest && (int)g->list > found)) {
            longest = n;
            found = (int)g->list;
        }
    }
    return found;
}

enum { READS = 1u << DENY_READ | 1u << ALLOW_READ, WRITES = 1u << ALLOW_WRITE | 1u << DENY_WRITE };

/*
 * The meaning of srt's rules for one path, by its README: for reads allowRead beats denyRead at the same path and the
 * nearer beats the farther; for writes denyWrite always beats allowWrite. Translated into one rule of ours.
 */
static int srt_say_path(struct foreign *f, const struct gathered *g)
{
    if (g->at.any_depth || g->at.pattern)
        return foreign_say(f, g->list == DENY_READ ? KEY_HIDE : KEY_PROTECT, g->node, g->text, STR(""), 0);

    bool hidden = nearest_of(f, g->at.path, READS, false) == DENY_READ;
    bool hidden_above = nearest_of(f, g->at.path, READS, true) == DENY_READ;
    bool denied = nearest_of(f, g->at.path, 1u << DENY_WRITE, false) == DENY_WRITE;
    bool writable = !denied && nearest_of(f, g->at.path, 1u << ALLOW_WRITE, false) == ALLOW_WRITE;
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
            return ignore_value(f, "filesystem.allowWrite", g->node->text, "denyRead hides the same path",
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
    bool writable = nearest_of(f, cwd, 1u << ALLOW_WRITE, false) == ALLOW_WRITE;
    bool said = false;
    int r = 0;

    for (size_t i = 0; i < f->n_paths; i++)
        said = said || (same(f->paths[i].at.path, cwd) && !f->paths[i].at.any_depth && f->paths[i].list == ALLOW_WRITE);
    if (!writable)
        r = say_text(f, KEY_READ_ONLY, root, "true");
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
        r = say_text(f, KEY_READ_ONLY, root, "false");
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
        if (nearest_of(f, path, READS, false) == DENY_READ)
            r = say_text(f, KEY_HIDE, root, places[i]);
    }
    return r;
}

static int read_srt(struct foreign *f, const struct node *root)
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
        r = read_map(f, "", root, specs);
    if (r == 0 && f->strict)
        r = srt_own_places(f, root);
    if (r == 0)
        r = srt_paths(f, root);
    if (r == 0)
        r = say_text(f, KEY_NET, f->network_at ? f->network_at : root, f->any_host ? "allow" : "none");
    return r;
}

/*
 * dive
 */
static int dive_enabled(struct foreign *f, const struct node *n)
{
    bool on = false;
    int r = want_bool(f, "enabled", n, &on);
    return r < 0 || on ? r : disabled(f, n);
}
static int dive_work_dir(struct foreign *f, const struct node *n)
{
    return n->kind == NODE_SCALAR ? foreign_say(f, KEY_WORKSPACE, n, n->text, STR(""), 0)
                                  : wrong(f, "work_dir", n, "text");
}
static int dive_allow_network(struct foreign *f, const struct node *n)
{
    f->network_at = n;
    return want_bool(f, "allow_network", n, &f->network_on);
}
static int dive_allow_host(struct foreign *f, const struct node *item, int arg)
{
    f->any_host = true;
    return say_item(f, item, arg);
}
static int dive_domains(struct foreign *f, const struct node *n)
{
    f->network_at = n;
    return each_text(f, "allowed_domains", n, dive_allow_host, KEY_ALLOW);
}
static int dive_network(struct foreign *f, const struct node *n)
{
    static const struct foreign_spec specs[] = {{"allowed_domains", dive_domains, NULL},
                                                {"http_proxy", NULL, NO_PROXY_OF_OTHERS},
                                                {"https_proxy", NULL, NO_PROXY_OF_OTHERS},
                                                {"no_proxy", NULL, NO_PROXY_OF_OTHERS},
                                                {NULL, NULL, NULL}};
    return read_map(f, "sandbox.network.", n, specs);
}
static int dive_write_paths(struct foreign *f, const struct node *n)
{
    return each_text(f, "allowed_write_paths", n, say_optional, KEY_RW);
}
static int dive_sockets(struct foreign *f, const struct node *n)
{
    return each_text(f, "allowed_unix_sockets", n, say_item, KEY_UNIX_SOCKETS);
}
static int dive_environment(struct foreign *f, const struct node *n)
{
    if (n->kind != NODE_MAP)
        return wrong(f, "environment", n, "a mapping");
    for (size_t i = 0; i < n->n; i++) {
        const struct node *key = &n->items[2 * i], *value = key + 1;
        if (value->kind != NODE_SCALAR || node_is_null(value))
            return wrong(f, "environment", value, "a mapping of strings");
        int r = foreign_say(f, KEY_ENV_SET, key, key->text, value->text, 0);
        if (r < 0)
            return r;
    }
    return 0;
}
static int dive_duration(struct foreign *f, const struct node *n)
{
    uint64_t ms;
    if (n->kind != NODE_SCALAR || parse_count(n->text, &ms) < 0)
        return wrong(f, "max_command_duration_ms", n, "a number of milliseconds");
    return ms ? say_text(f, KEY_TIMEOUT, n, arena_printf(f->src->list->mem, "%.*sms", STR_SAID(n->text))) : 0;
}

static int dive_image(struct foreign *f, const struct node *n)
{
    if (n->kind != NODE_SCALAR || node_is_null(n))
        return wrong(f, "image", n, "text");
    f->image_said = n->text.n;
    return f->image_said ? foreign_say(f, KEY_IMAGE, n, n->text, STR(""), 0) : 0;
}
static int dive_command(struct foreign *f, const struct node *n)
{
    if (n->kind == NODE_SCALAR && (str_is(n->text, "docker") || str_is(n->text, "podman"))) {
        f->container_at = n;
        return foreign_say(f, KEY_ENGINE, n, n->text, STR(""), 0);
    }
    if (n->kind == NODE_SCALAR && !n->text.n)
        return 0;
    return wrong(f, "command", n, "docker or podman");
}

/* "host:container[:opts]": of docker's options only ro and rw apply. */
static int dive_mount(struct foreign *f, const struct node *item, int arg)
{
    struct str s = item->text, part[3] = {{"", 0}, {"", 0}, {"", 0}};
    size_t n = 0;
    unsigned bits = 0;

    (void)arg;
    for (bool more = true; more && n < 3; n++) {
        const char *colon = n < 2 ? memchr(s.p, ':', s.n) : NULL;
        part[n] = (struct str){s.p, colon ? (size_t)(colon - s.p) : s.n};
        s = str_skip(s, part[n].n + 1);
        more = colon != NULL;
    }
    if (n < 2 || !part[0].n || !part[1].n)
        return wrong(f, "additional_mounts", item, "a list of host:container[:opts]");
    for (struct str opts = part[2]; opts.n;) {
        const char *comma = memchr(opts.p, ',', opts.n);
        struct str one = {opts.p, comma ? (size_t)(comma - opts.p) : opts.n};
        if (str_is(one, "ro"))
            bits = SAID_READ_ONLY;
        else if (!str_is(one, "rw")) {
            int r =
                ignore_value(f, "additional_mounts option", one, "only ro and rw are supported", LOSS_OF_MEANING, item);
            if (r < 0)
                return r;
        }
        opts = str_skip(opts, one.n + 1);
    }
    return foreign_say(f, KEY_MOUNTS, item, part[0], part[1], bits);
}
static int dive_mounts(struct foreign *f, const struct node *n)
{
    return each_text(f, "additional_mounts", n, dive_mount, 0);
}
static int dive_ports(struct foreign *f, const struct node *n)
{
    return each_text(f, "ports", n, say_item, KEY_PUBLISH);
}

/* "512m" is docker's spelling of a size. */
static int dive_memory(struct foreign *f, const struct node *n)
{
    return n->kind == NODE_SCALAR ? (n->text.n ? foreign_say(f, KEY_MEMORY, n, n->text, STR(""), 0) : 0)
                                  : wrong(f, "memory", n, "a size");
}
static int dive_cpus(struct foreign *f, const struct node *n)
{
    return n->kind == NODE_SCALAR ? (n->text.n ? foreign_say(f, KEY_CPUS, n, n->text, STR(""), 0) : 0)
                                  : wrong(f, "cpus", n, "a number");
}
static int dive_pids(struct foreign *f, const struct node *n)
{
    if (n->kind != NODE_SCALAR)
        return wrong(f, "pids_limit", n, "a number");
    return str_is(n->text, "0") ? 0 : foreign_say(f, KEY_PIDS, n, n->text, STR(""), 0);
}
static int dive_docker(struct foreign *f, const struct node *n)
{
    static const struct foreign_spec specs[] = {
        {"image", dive_image, NULL},
        {"command", dive_command, NULL},
        {"additional_mounts", dive_mounts, NULL},
        {"ports", dive_ports, NULL},
        {"memory", dive_memory, NULL},
        {"cpus", dive_cpus, NULL},
        {"pids_limit", dive_pids, NULL},
        {"enable_user_mapping", NULL, NULL}, /* on every engine files belong to the caller */
        {NULL, NULL, NULL}};
    return read_map(f, "sandbox.docker.", n, specs);
}
static int dive_profile(struct foreign *f, const struct node *n)
{
    if (n->kind != NODE_SCALAR || !(str_is(n->text, "restrictive") || str_is(n->text, "permissive")))
        return wrong(f, "profile", n, "restrictive or permissive");
    return foreign_say(f, KEY_SEATBELT_BASE, n, n->text, STR(""), 0); /* of macOS alone */
}
static int dive_custom(struct foreign *f, const struct node *n)
{
    return n->kind == NODE_SCALAR ? foreign_say(f, KEY_SEATBELT_FILE, n, n->text, STR(""), 0)
                                  : wrong(f, "custom_profile_path", n, "text");
}
static int dive_seatbelt(struct foreign *f, const struct node *n)
{
    static const struct foreign_spec specs[] = {
        {"profile", dive_profile, NULL}, {"custom_profile_path", dive_custom, NULL}, {NULL, NULL, NULL}};
    return read_map(f, "sandbox.seatbelt.", n, specs);
}

static int read_dive(struct foreign *f, const struct node *root)
{
    static const struct foreign_spec specs[] = {
        {"enabled", dive_enabled, NULL},
        {"work_dir", dive_work_dir, NULL},
        {"allow_network", dive_allow_network, NULL},
        {"network", dive_network, NULL},
        {"allowed_write_paths", dive_write_paths, NULL},
        {"allowed_unix_sockets", dive_sockets, NULL},
        {"environment", dive_environment, NULL},
        {"max_command_duration_ms", dive_duration, NULL},
        {"docker", dive_docker, NULL},
        {"seatbelt", dive_seatbelt, NULL},
        {"mode", NULL, "approvals are handled by the agent"},
        {"excluded_commands", NULL, "commands never run outside the box"},
        {"allow_unsandboxed_commands", NULL, "commands never run outside the box"},
        {"audit_log", NULL, "denials are always logged"},
        {"mount_cloud_credentials", NULL, "credentials stay hidden; make single files readable with files.ro"},
        {NULL, NULL, NULL}};
    const struct node *block = node_get(root, "sandbox");
    if (!block)
        block = root;

    int r = read_map(f, "sandbox.", block, specs);
    if (r == 0)
        r = say_text(f, KEY_EXTENDS, block, "restrictive");
    if (r == 0) /* what dive mounts besides */
        r = foreign_say(f, KEY_RW, block, STR("~/.config/dive"), STR(""), SAID_OPTIONAL);
    if (r == 0)
        r = foreign_say(f, KEY_RO, block, STR("~/.gitconfig"), STR(""), SAID_OPTIONAL);
    if (r == 0)
        r = say_default_image(f);
    const struct node *at = f->network_at ? f->network_at : root;
    if (r == 0 && f->network_on && !f->any_host)
        r = say_text(f, KEY_ALLOW, at, "*");
    if (r == 0)
        r = say_text(f, KEY_NET, at, f->network_on || f->any_host ? "allow" : "none");
    return r;
}

/*
 * mycode
 */
static int mycode_type(struct foreign *f, const struct node *n)
{
    static const char *const types[] = {"docker", "firejail", "nsjail", "vm"};
    for (size_t i = 0; n->kind == NODE_SCALAR && i < sizeof types / sizeof *types; i++) {
        if (str_is(n->text, types[i])) {
            f->container_at = i == 0 ? n : NULL;
            return foreign_say(f, KEY_ENGINE, n, n->text, STR(""), 0);
        }
    }
    return wrong(f, "type", n, "docker, firejail, nsjail or vm");
}

/* A number, to which our unit is appended. */
static int mycode_limit(struct foreign *f, const char *key, const struct node *n, enum key_id id, const char *unit)
{
    if (n->kind != NODE_SCALAR || !n->plain || node_is_null(n))
        return wrong(f, key, n, "a number");
    return say_text(f, id, n, arena_printf(f->src->list->mem, "%.*s%s", STR_SAID(n->text), unit));
}
static int mycode_cpu(struct foreign *f, const struct node *n)
{
    return mycode_limit(f, "cpuPercent", n, KEY_CPUS, "%");
}
static int mycode_memory(struct foreign *f, const struct node *n)
{
    return mycode_limit(f, "memoryMB", n, KEY_MEMORY, "M");
}
static int mycode_disk(struct foreign *f, const struct node *n)
{
    return mycode_limit(f, "diskMB", n, KEY_DISK, "M");
}
static int mycode_timeout(struct foreign *f, const struct node *n)
{
    return mycode_limit(f, "timeoutSeconds", n, KEY_TIMEOUT, "s");
}
static int mycode_pids(struct foreign *f, const struct node *n)
{
    return mycode_limit(f, "maxProcesses", n, KEY_PIDS, "");
}
static int mycode_limits(struct foreign *f, const struct node *n)
{
    static const struct foreign_spec specs[] = {
        {"cpuPercent", mycode_cpu, NULL},         {"memoryMB", mycode_memory, NULL},   {"diskMB", mycode_disk, NULL},
        {"timeoutSeconds", mycode_timeout, NULL}, {"maxProcesses", mycode_pids, NULL}, {NULL, NULL, NULL}};
    return read_map(f, "limits.", n, specs);
}

static int mycode_network_on(struct foreign *f, const struct node *n)
{
    f->network_at = n;
    return want_bool(f, "enabled", n, &f->network_on);
}
static int mycode_hosts(struct foreign *f, const struct node *n)
{
    f->hosts_said = true;
    return each_text(f, "allowedHosts", n, say_item, KEY_ALLOW);
}
static int mycode_ports(struct foreign *f, const struct node *n)
{
    return each_text(f, "blockedPorts", n, say_item, KEY_DENY_PORTS);
}
static int mycode_network(struct foreign *f, const struct node *n)
{
    static const struct foreign_spec specs[] = {{"enabled", mycode_network_on, NULL},
                                                {"allowedHosts", mycode_hosts, NULL},
                                                {"blockedPorts", mycode_ports, NULL},
                                                {NULL, NULL, NULL}};
    return read_map(f, "network.", n, specs);
}

/* Collected as well, for what they say about the workspace. */
static int mycode_path(struct foreign *f, const struct node *item, int list)
{
    struct path_context c = {.world = f->src->world, .base = f->src->world->cwd, .workspace = f->src->world->cwd};
    struct gathered *g = arena_push(f->src->list->mem, &f->paths, &f->n_paths, sizeof *g);
    struct err why;

    if (!g)
        return foreign_no_memory(f);
    *g = (struct gathered){.text = item->text, .node = item, .list = list};
    int r = path_expand(&c, item->text, PATH_PLACE, f->src->list->mem, &g->at, &why);
    if (r == -ENOMEM)
        return foreign_no_memory(f);
    if (r < 0)
        return place_wrap(f->src->e, err_say(f->src->e, ERR_POLICY, "%s%s", f->prefix, why.text), f->src->file,
                          item->line, item->column);
    /* Everything is read-only anyway, and mycode's /tmp is private to the container, as ours is. */
    if (same(g->at.path, list == ALLOW_WRITE ? "/tmp" : "/"))
        return 0;
    return say_optional(f, item, list == ALLOW_WRITE ? KEY_RW : KEY_RO);
}
static int mycode_ro(struct foreign *f, const struct node *n)
{
    return each_text(f, "readOnly", n, mycode_path, DENY_WRITE);
}
static int mycode_rw(struct foreign *f, const struct node *n)
{
    return each_text(f, "readWrite", n, mycode_path, ALLOW_WRITE);
}
static int mycode_hidden(struct foreign *f, const struct node *n)
{
    return each_text(f, "hidden", n, say_item, KEY_HIDE);
}

/* A directory for temporary files: the box's own, empty at first and gone with it; one of the project is the project's. */
static int mycode_say_temp(struct foreign *f, const struct node *at, struct str text)
{
    struct path_context c = {.world = f->src->world, .base = f->src->world->cwd, .workspace = f->src->world->cwd};
    struct path_text dir;
    struct err why;
    int r = path_expand(&c, text, PATH_PLACE, f->src->list->mem, &dir, &why);

    if (r == -ENOMEM)
        return foreign_no_memory(f);
    if (r < 0)
        return place_wrap(f->src->e, err_say(f->src->e, ERR_POLICY, "%stempDir: %s", f->prefix, why.text), f->src->file,
                          at->line, at->column);
    if (path_at_or_below(dir.path, f->src->world->cwd))
        r = foreign_say(f, KEY_RW, at, text, STR(""), SAID_OPTIONAL | SAID_TOLD);
    else if (!same(dir.path, "/tmp") && !same(dir.path, "/var/tmp"))
        r = foreign_say(f, KEY_STORAGE, at, str_of(dir.path), STR(""), 0);
    return r < 0 ? r : foreign_say(f, KEY_ENV_SET, at, STR("TMPDIR"), str_of(dir.path), 0);
}
static int mycode_temp(struct foreign *f, const struct node *n)
{
    if (n->kind != NODE_SCALAR || node_is_null(n))
        return wrong(f, "tempDir", n, "text");
    return mycode_say_temp(f, n, n->text);
}
static int mycode_filesystem(struct foreign *f, const struct node *n)
{
    static const struct foreign_spec specs[] = {{"readOnly", mycode_ro, NULL},
                                                {"readWrite", mycode_rw, NULL},
                                                {"hidden", mycode_hidden, NULL},
                                                {"tempDir", mycode_temp, NULL},
                                                {NULL, NULL, NULL}};
    return read_map(f, "filesystem.", n, specs);
}

/* The manager's defaults apply to what the file omits: those of limits and hidden files are the profile `untrusted`. */
static int read_mycode(struct foreign *f, const struct node *root)
{
    static const struct foreign_spec specs[] = {{"type", mycode_type, NULL},
                                                {"enabled", dive_enabled, NULL},
                                                {"image", dive_image, NULL},
                                                {"profile", NULL, "firejail profiles cannot be used"},
                                                {"limits", mycode_limits, NULL},
                                                {"network", mycode_network, NULL},
                                                {"filesystem", mycode_filesystem, NULL},
                                                {NULL, NULL, NULL}};
    const struct node *block = node_get(root, "sandbox");
    if (!block)
        block = root;
    const struct node *files = node_get(block, "filesystem"), *type = node_get(block, "type");

    int r = read_map(f, "", block, specs);
    if (r == 0)
        r = say_text(f, KEY_EXTENDS, root, "untrusted");
    if (r == 0 && !type) {
        f->container_at = block;
        r = say_text(f, KEY_ENGINE, block, "docker");
    }
    if (r == 0)
        r = say_default_image(f);
    if (r == 0 && !files)
        r = mycode_say_temp(f, block, STR("/tmp/mycode-sandbox"));
    /* Nothing but readWrite can be written, not even the current directory. */
    if (r == 0 && nearest_of(f, f->src->world->cwd, WRITES, false) != ALLOW_WRITE)
        r = say_text(f, KEY_READ_ONLY, files ? files : block, "true");
    const struct node *at = f->network_at ? f->network_at : root;
    if (r == 0 && f->network_on && !f->hosts_said)
        r = say_text(f, KEY_ALLOW, at, "*");
    if (r == 0)
        r = say_text(f, KEY_NET, at, f->network_on ? "allow" : "none");
    return r;
}

/*
 * daycare
 */
static int daycare_socket(struct foreign *f, const struct node *n)
{
    if (n->kind != NODE_SCALAR)
        return wrong(f, "socketPath", n, "text");
    return foreign_say(f, KEY_DOCKER_HOST, n, n->text, STR(""), 0); /* said, so DOCKER_HOST does not count */
}
static int daycare_runtime(struct foreign *f, const struct node *n)
{
    if (n->kind != NODE_SCALAR)
        return wrong(f, "runtime", n, "text");
    return foreign_say(f, KEY_RUNTIME, n, n->text, STR(""), 0);
}

static int read_daycare(struct foreign *f, const struct node *root)
{
    static const struct foreign_spec specs[] = {{"enabled", NULL, NULL}, /* handled below, with image and tag */
                                                {"image", NULL, NULL},
                                                {"tag", NULL, NULL},
                                                {"socketPath", daycare_socket, NULL},
                                                {"runtime", daycare_runtime, NULL},
                                                {NULL, NULL, NULL}};
    const struct node *docker = node_get(root, "docker");
    bool on = false;

    if (!docker) /* other sections are not about the sandbox: without this one there is none */
        return say_text(f, KEY_ENGINE, root, "native");
    int r = read_map(f, "docker.", docker, specs);
    f->prefix = "docker.";
    const struct node *enabled = node_get(docker, "enabled"), *image = node_get(docker, "image"),
                      *tag = node_get(docker, "tag");
    if (r == 0 && enabled)
        r = want_bool(f, "enabled", enabled, &on);
    if (r == 0 && image && image->kind != NODE_SCALAR)
        r = wrong(f, "image", image, "text");
    if (r == 0 && tag && tag->kind != NODE_SCALAR)
        r = wrong(f, "tag", tag, "text");
    if (r < 0)
        return r;
    if (!on)
        return say_text(f, KEY_ENGINE, enabled ? enabled : docker, "native");
    struct str name = image ? image->text : STR("daycare-sandbox"), version = tag ? tag->text : STR("latest");
    r = say_text(f, KEY_ENGINE, enabled, "docker");
    return r < 0
               ? r
               : say_text(f, KEY_IMAGE, image ? image : docker,
                          arena_printf(f->src->list->mem, "%.*s:%.*s", (int)name.n, name.p, (int)version.n, version.p));
}

int read_foreign(const struct source *src, enum policy_format format, const struct node *root)
{
    struct foreign f = {.src = src, .prefix = ""};

    if (format == POLICY_BWRAP)
        return read_bwrap(src, root);
    if (root->kind != NODE_MAP)
        return place_say(src->e, ERR_POLICY, src->file, root->line, root->column,
                         "the settings must be a mapping, not %s",
                         node_is_null(root) ? "nothing" : node_kind_name(root));
    switch (format) {
    case POLICY_SRT_STRICT:
        f.strict = true;
        return read_srt(&f, root);
    case POLICY_SRT:
        return read_srt(&f, root);
    case POLICY_DIVE:
        return read_dive(&f, root);
    case POLICY_MYCODE:
        return read_mycode(&f, root);
    case POLICY_DAYCARE:
        return read_daycare(&f, root);
    case POLICY_BWRAP:
    case POLICY_YAML:
        break;
    }
    return err_say(src->e, ERR_BUG, "%s: unknown format", src->file);
}
