/*
 * Translates mycode's SandboxConfig, by its design text. A table of its keys; units that it leaves out (MB, seconds)
 * are added here.
 */
#include <errno.h>

#include "policy/import/foreign.h"

static int mycode_type(struct foreign *f, const struct node *n)
{
    static const char types[][12] = {"docker", "firejail", "nsjail", "vm"};
    for (size_t i = 0; n->kind == NODE_SCALAR && i < sizeof types / sizeof *types; i++) {
        if (str_is(n->text, types[i])) {
            f->container_at = i == 0 ? n : NULL;
            return foreign_say(f, KEY_ENGINE, n, n->text, STR(""), 0);
        }
    }
    return foreign_wrong(f, "type", n, "docker, firejail, nsjail or vm");
}

/* A number, to which our unit is appended. */
static int mycode_limit(struct foreign *f, const char *key, const struct node *n, enum key_id id, const char *unit)
{
    if (n->kind != NODE_SCALAR || !n->plain || node_is_null(n))
        return foreign_wrong(f, key, n, "a number");
    return foreign_say_text(f, id, n, arena_printf(f->src->list->mem, "%.*s%s", STR_SAID(n->text), unit));
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
    return foreign_map(f, "limits.", n, specs);
}

static int mycode_network_on(struct foreign *f, const struct node *n)
{
    f->network_at = n;
    return foreign_bool(f, "enabled", n, &f->network_on);
}
static int mycode_hosts(struct foreign *f, const struct node *n)
{
    f->hosts_said = true;
    return foreign_each(f, "allowedHosts", n, foreign_say_item, KEY_ALLOW);
}
static int mycode_ports(struct foreign *f, const struct node *n)
{
    return foreign_each(f, "blockedPorts", n, foreign_say_item, KEY_DENY_PORTS);
}
static int mycode_network(struct foreign *f, const struct node *n)
{
    static const struct foreign_spec specs[] = {{"enabled", mycode_network_on, NULL},
                                                {"allowedHosts", mycode_hosts, NULL},
                                                {"blockedPorts", mycode_ports, NULL},
                                                {NULL, NULL, NULL}};
    return foreign_map(f, "network.", n, specs);
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
    return foreign_say_optional(f, item, list == ALLOW_WRITE ? KEY_RW : KEY_RO);
}
static int mycode_ro(struct foreign *f, const struct node *n)
{
    return foreign_each(f, "readOnly", n, mycode_path, DENY_WRITE);
}
static int mycode_rw(struct foreign *f, const struct node *n)
{
    return foreign_each(f, "readWrite", n, mycode_path, ALLOW_WRITE);
}
static int mycode_hidden(struct foreign *f, const struct node *n)
{
    return foreign_each(f, "hidden", n, foreign_say_item, KEY_HIDE);
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
        return foreign_wrong(f, "tempDir", n, "text");
    return mycode_say_temp(f, n, n->text);
}
static int mycode_filesystem(struct foreign *f, const struct node *n)
{
    static const struct foreign_spec specs[] = {{"readOnly", mycode_ro, NULL},
                                                {"readWrite", mycode_rw, NULL},
                                                {"hidden", mycode_hidden, NULL},
                                                {"tempDir", mycode_temp, NULL},
                                                {NULL, NULL, NULL}};
    return foreign_map(f, "filesystem.", n, specs);
}

/* The manager's defaults apply to what the file omits: those of limits and hidden files are the profile `untrusted`. */
int foreign_mycode(struct foreign *f, const struct node *root)
{
    static const struct foreign_spec specs[] = {{"type", mycode_type, NULL},
                                                {"enabled", foreign_enabled, NULL},
                                                {"image", foreign_image, NULL},
                                                {"profile", NULL, "firejail profiles cannot be used"},
                                                {"limits", mycode_limits, NULL},
                                                {"network", mycode_network, NULL},
                                                {"filesystem", mycode_filesystem, NULL},
                                                {NULL, NULL, NULL}};
    const struct node *block = node_get(root, "sandbox");
    if (!block)
        block = root;
    const struct node *files = node_get(block, "filesystem"), *type = node_get(block, "type");

    int r = foreign_map(f, "", block, specs);
    if (r == 0)
        r = foreign_say_text(f, KEY_EXTENDS, root, "untrusted");
    if (r == 0 && !type) {
        f->container_at = block;
        r = foreign_say_text(f, KEY_ENGINE, block, "docker");
    }
    if (r == 0)
        r = foreign_say_image(f);
    if (r == 0 && !files)
        r = mycode_say_temp(f, block, STR("/tmp/mycode-sandbox"));
    /* Nothing but readWrite can be written, not even the current directory. */
    if (r == 0 && foreign_nearest(f, f->src->world->cwd, FOREIGN_WRITES, false) != ALLOW_WRITE)
        r = foreign_say_text(f, KEY_READ_ONLY, files ? files : block, "true");
    const struct node *at = f->network_at ? f->network_at : root;
    if (r == 0 && f->network_on && !f->hosts_said)
        r = foreign_say_text(f, KEY_ALLOW, at, "*");
    if (r == 0)
        r = foreign_say_text(f, KEY_NET, at, f->network_on ? "allow" : "none");
    return r;
}
