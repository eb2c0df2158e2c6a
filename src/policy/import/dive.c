/*
 * Translates dive's `sandbox:` block, by its design text and the JSON tags of its Config. A table of its keys; what
 * pinfold cannot do is named, never left out silently (foreign.c).
 */
#include <stdio.h>

#include "policy/import/foreign.h"

static int dive_work_dir(struct foreign *f, const struct node *n)
{
    return n->kind == NODE_SCALAR ? foreign_say(f, KEY_WORKSPACE, n, n->text, STR(""), 0)
                                  : foreign_wrong(f, "work_dir", n, "text");
}
static int dive_allow_network(struct foreign *f, const struct node *n)
{
    f->network_at = n;
    return foreign_bool(f, "allow_network", n, &f->network_on);
}
static int dive_allow_host(struct foreign *f, const struct node *item, int arg)
{
    f->any_host = true;
    return foreign_say_item(f, item, arg);
}
static int dive_domains(struct foreign *f, const struct node *n)
{
    f->network_at = n;
    return foreign_each(f, "allowed_domains", n, dive_allow_host, KEY_ALLOW);
}
static int dive_network(struct foreign *f, const struct node *n)
{
    static const struct foreign_spec specs[] = {{"allowed_domains", dive_domains, NULL},
                                                {"http_proxy", NULL, FOREIGN_OWN_PROXY},
                                                {"https_proxy", NULL, FOREIGN_OWN_PROXY},
                                                {"no_proxy", NULL, FOREIGN_OWN_PROXY},
                                                {NULL, NULL, NULL}};
    return foreign_map(f, "sandbox.network.", n, specs);
}
static int dive_write_paths(struct foreign *f, const struct node *n)
{
    return foreign_each(f, "allowed_write_paths", n, foreign_say_optional, KEY_RW);
}
static int dive_sockets(struct foreign *f, const struct node *n)
{
    return foreign_each(f, "allowed_unix_sockets", n, foreign_say_item, KEY_UNIX_SOCKETS);
}
static int dive_environment(struct foreign *f, const struct node *n)
{
    if (n->kind != NODE_MAP)
        return foreign_wrong(f, "environment", n, "a mapping");
    for (size_t i = 0; i < n->n; i++) {
        const struct node *key = &n->items[2 * i], *value = key + 1;
        if (value->kind != NODE_SCALAR || node_is_null(value))
            return foreign_wrong(f, "environment", value, "a mapping of strings");
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
        return foreign_wrong(f, "max_command_duration_ms", n, "a number of milliseconds");
    return ms ? foreign_say_text(f, KEY_TIMEOUT, n, arena_printf(f->src->list->mem, "%.*sms", STR_SAID(n->text))) : 0;
}

static int dive_command(struct foreign *f, const struct node *n)
{
    if (n->kind == NODE_SCALAR && (str_is(n->text, "docker") || str_is(n->text, "podman"))) {
        f->container_at = n;
        return foreign_say(f, KEY_ENGINE, n, n->text, STR(""), 0);
    }
    if (n->kind == NODE_SCALAR && !n->text.n)
        return 0;
    return foreign_wrong(f, "command", n, "docker or podman");
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
        return foreign_wrong(f, "additional_mounts", item, "a list of host:container[:opts]");
    for (struct str opts = part[2]; opts.n;) {
        const char *comma = memchr(opts.p, ',', opts.n);
        struct str one = {opts.p, comma ? (size_t)(comma - opts.p) : opts.n};
        if (str_is(one, "ro"))
            bits = SAID_READ_ONLY;
        else if (!str_is(one, "rw")) {
            int r = foreign_ignore_value(f, "additional_mounts option", one, "only ro and rw are supported",
                                         LOSS_OF_MEANING, item);
            if (r < 0)
                return r;
        }
        opts = str_skip(opts, one.n + 1);
    }
    return foreign_say(f, KEY_MOUNTS, item, part[0], part[1], bits);
}
static int dive_mounts(struct foreign *f, const struct node *n)
{
    return foreign_each(f, "additional_mounts", n, dive_mount, 0);
}
static int dive_ports(struct foreign *f, const struct node *n)
{
    return foreign_each(f, "ports", n, foreign_say_item, KEY_PUBLISH);
}

/* "512m" is docker's spelling of a size. */
static int dive_memory(struct foreign *f, const struct node *n)
{
    return n->kind == NODE_SCALAR ? (n->text.n ? foreign_say(f, KEY_MEMORY, n, n->text, STR(""), 0) : 0)
                                  : foreign_wrong(f, "memory", n, "a size");
}
static int dive_cpus(struct foreign *f, const struct node *n)
{
    return n->kind == NODE_SCALAR ? (n->text.n ? foreign_say(f, KEY_CPUS, n, n->text, STR(""), 0) : 0)
                                  : foreign_wrong(f, "cpus", n, "a number");
}
static int dive_pids(struct foreign *f, const struct node *n)
{
    if (n->kind != NODE_SCALAR)
        return foreign_wrong(f, "pids_limit", n, "a number");
    return str_is(n->text, "0") ? 0 : foreign_say(f, KEY_PIDS, n, n->text, STR(""), 0);
}
static int dive_docker(struct foreign *f, const struct node *n)
{
    static const struct foreign_spec specs[] = {
        {"image", foreign_image, NULL},
        {"command", dive_command, NULL},
        {"additional_mounts", dive_mounts, NULL},
        {"ports", dive_ports, NULL},
        {"memory", dive_memory, NULL},
        {"cpus", dive_cpus, NULL},
        {"pids_limit", dive_pids, NULL},
        {"enable_user_mapping", NULL, NULL}, /* on every engine files belong to the caller */
        {NULL, NULL, NULL}};
    return foreign_map(f, "sandbox.docker.", n, specs);
}
static int dive_profile(struct foreign *f, const struct node *n)
{
    if (n->kind != NODE_SCALAR || !(str_is(n->text, "restrictive") || str_is(n->text, "permissive")))
        return foreign_wrong(f, "profile", n, "restrictive or permissive");
    return foreign_say(f, KEY_SEATBELT_BASE, n, n->text, STR(""), 0); /* of macOS alone */
}
static int dive_custom(struct foreign *f, const struct node *n)
{
    return n->kind == NODE_SCALAR ? foreign_say(f, KEY_SEATBELT_FILE, n, n->text, STR(""), 0)
                                  : foreign_wrong(f, "custom_profile_path", n, "text");
}
static int dive_seatbelt(struct foreign *f, const struct node *n)
{
    static const struct foreign_spec specs[] = {
        {"profile", dive_profile, NULL}, {"custom_profile_path", dive_custom, NULL}, {NULL, NULL, NULL}};
    return foreign_map(f, "sandbox.seatbelt.", n, specs);
}

int foreign_dive(struct foreign *f, const struct node *root)
{
    static const struct foreign_spec specs[] = {
        {"enabled", foreign_enabled, NULL},
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

    int r = foreign_map(f, "sandbox.", block, specs);
    if (r == 0)
        r = foreign_say_text(f, KEY_EXTENDS, block, "restrictive");
    if (r == 0) /* what dive mounts besides */
        r = foreign_say(f, KEY_RW, block, STR("~/.config/dive"), STR(""), SAID_OPTIONAL);
    if (r == 0)
        r = foreign_say(f, KEY_RO, block, STR("~/.gitconfig"), STR(""), SAID_OPTIONAL);
    if (r == 0)
        r = foreign_say_image(f);
    const struct node *at = f->network_at ? f->network_at : root;
    if (r == 0 && f->network_on && !f->any_host)
        r = foreign_say_text(f, KEY_ALLOW, at, "*");
    if (r == 0)
        r = foreign_say_text(f, KEY_NET, at, f->network_on || f->any_host ? "allow" : "none");
    return r;
}
