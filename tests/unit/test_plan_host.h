/*
 * A host in words, for tests of the plan: lines that build a policy by hand and describe a file system, which is then
 * "surveyed" here without any machine. Words are separated by blanks; \ooo stands for any byte.
 *
 *   dir|file|other PATH [uid=N] [closed] [refused] [masked]      link PATH TARGET
 *   rw|ro|hide|protect|cache PATH [optional] [builtin]  ("**" + "/name" any depth, "below=DIR"; * ? [ in the last name)
 *   mount FROM TO [ro]   storage PATH   session   socket PATH   name TEXT root|any [git] [dir]   guard strict|existing|off   expand start
 *   workspace PATH [ro] [said]   net none|allow|host   allow|deny|deny_ports|publish|reach TEXT   env NAME[=VALUE]   env -NAME
 *   limit NAME VALUE [default]   user keep|root|ids UID GID   may_lose NAME   hostname NAME   nested
 *   home PATH   caller UID GID NAME   tier landlock   landlock ABI   cgroup v1|v2|systemd   no overlay|notify   layers
 *   cannot FEATURE CLAUSE [REMEDY]   can FEATURE   state PATH   config PATH   program PATH
 *   catch routes|loopback WHY   net_catch routes|loopback
 *   seatbelt_base restrictive|permissive   seatbelt_file PATH
 *   container docker|podman [rootless] [remapped]   image NAME [ID]   image_env NAME=VALUE   volume PATH
 *   pull missing|always   platform|runtime|docker_host|docker_context TEXT
 *   cwd PATH   environ NAME=VALUE   slot N   instance NAME   ignored KEY WHY   must_have NAME   so_far
 */
#pragma once
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "match/path.h"
#include "plan/plan.h"

struct host_file {
    const char *path, *target;
    enum path_type type;
    uint32_t uid;
    bool closed, refused, link, masked;
};

struct host {
    struct arena *mem;
    struct policy policy;
    struct facts facts;
    struct plan_ask ask;
    struct host_file *files;
    size_t n_files;
    const char **environ_list;
    size_t n_environ;
    bool json, values;
    struct container_fact container;
    struct image_fact image;
    const char **image_env, **volumes;
    size_t n_image_env, n_volumes;
    char error[200];
};

static const struct host_file *host_find(const struct host *h, const char *path)
{
    for (size_t i = 0; i < h->n_files; i++) {
        if (strcmp(h->files[i].path, path) == 0)
            return &h->files[i];
    }
    return NULL;
}

static struct host_file *host_add(struct host *h, const char *path, enum path_type type)
{
    for (char *up = path_dir(h->mem, path); !host_find(h, up); up = path_dir(h->mem, up))
        *(struct host_file *)arena_push(h->mem, &h->files, &h->n_files, sizeof(struct host_file)) =
            (struct host_file){.path = up, .type = PATH_DIR, .uid = path_at_or_below(up, "/home/u") ? 1000 : 0};
    struct host_file *f = arena_push(h->mem, &h->files, &h->n_files, sizeof *f);
    *f = (struct host_file){.path = path, .type = type, .uid = path_at_or_below(path, "/home/u") ? 1000 : 0};
    return f;
}

/* The survey of one path in the described host. */
static void host_fact(struct host *h, const char *path, struct path_fact *f)
{
    int links = 40;
    const char *at = "/", *rest = path + 1, *parent = "/", *link = NULL;
    while (*rest) {
        const struct host_file *dir = host_find(h, at);
        size_t n = strcspn(rest, "/");
        if (dir->type != PATH_DIR || dir->closed) {
            f->real = path_join(h->mem, at, rest);
            f->parent = dir->closed ? at : path_dir(h->mem, at);
            f->type = dir->closed ? PATH_UNREADABLE : PATH_MISSING;
            f->no = dir->closed ? EACCES : ENOTDIR;
            return;
        }
        parent = at;
        const char *next = path_join(h->mem, at, arena_str(h->mem, (struct str){rest, n}));
        const struct host_file *found = host_find(h, next);
        rest += n;
        rest += *rest == '/';
        if (!found) {
            f->real = path_join(h->mem, next, rest);
            f->parent = parent;
            f->type = PATH_MISSING;
            f->no = ENOENT;
            f->foreign = dir->uid != h->facts.uid;
            f->link = rest[0] ? NULL : link;
            return;
        }
        if (found->link && links--) {
            if (!*rest)
                link = next;
            const char *target = found->target[0] == '/' ? found->target : path_join(h->mem, at, found->target);
            rest = path_join(h->mem, path_clean(h->mem, target), rest) + 1;
            at = "/";
            continue;
        }
        at = next;
    }
    const struct host_file *found = host_find(h, at);
    f->real = at;
    f->parent = at[1] ? path_dir(h->mem, at) : "/";
    f->type = found->type;
    f->uid = found->uid;
    f->mode = found->masked ? 0 : found->type == PATH_DIR ? 0755 : 0644;
    f->refused = found->refused;
    f->link = link;
    const struct host_file *up = host_find(h, f->parent);
    f->foreign = up->uid != h->facts.uid;
}

static const char *host_through_mounts(struct host *h, const char *path)
{
    const struct mount_rule *best = NULL;
    for (size_t i = 0; i < h->policy.n_mounts; i++) {
        const struct mount_rule *m = &h->policy.mounts[i];
        if (path_below(path, m->to) && (!best || path_below(m->to, best->to)))
            best = m;
    }
    return best ? path_join(h->mem, best->from, path_rest(path, best->to)) : path;
}

static void host_ask(struct host *h, const char *path, bool inside)
{
    if (!path)
        return;
    struct path_fact *f = arena_push(h->mem, &h->facts.paths, &h->facts.n_paths, sizeof *f);
    host_fact(h, inside ? host_through_mounts(h, path) : path, f);
    f->asked = path;
}

static int host_by_asked(const void *a, const void *b)
{
    const struct path_fact *x = a, *y = b;
    return strcmp(x->asked, y->asked);
}

/* Whether the last components of the path, as many as the rule has, are those it speaks of. */
static bool host_tail_matches(const struct path_rule *r, const char *path)
{
    size_t parts = 1, end;
    for (const char *p = r->path; *p; p++)
        parts += *p == '/';
    const char *tail = path + strlen(path);
    while (tail > path && parts) {
        if (*--tail == '/')
            parts--;
    }
    return parts == 0 && names_fit(str_of(r->path), r->pattern, str_of(tail), 0, &end);
}

static void host_match(struct host *h, uint32_t rule)
{
    const struct path_rule *r = &h->policy.paths[rule];
    for (size_t i = 0; i < h->n_files; i++) {
        const struct host_file *f = &h->files[i];
        size_t end = 0;
        bool here = r->any_depth ? path_below(f->path, r->below) && host_tail_matches(r, f->path)
                                 : names_fit(str_of(r->path), true, str_of(f->path), 0, &end) && !f->path[end];
        if (!here)
            continue;
        struct match_fact *m = arena_push(h->mem, &h->facts.matches, &h->facts.n_matches, sizeof *m);
        *m = (struct match_fact){rule, f->path, f->type, f->refused};
    }
}

static int host_by_entry(const void *a, const void *b)
{
    return strcmp(((const struct dir_entry *)a)->name, ((const struct dir_entry *)b)->name);
}

static int host_by_dir(const void *a, const void *b)
{
    return path_order(((const struct dir_fact *)a)->path, ((const struct dir_fact *)b)->path);
}

static void host_list(struct host *h)
{
    for (size_t i = 0; i < h->n_files; i++) {
        if (h->files[i].type != PATH_DIR || h->files[i].link)
            continue;
        struct dir_fact *d = arena_push(h->mem, &h->facts.dirs, &h->facts.n_dirs, sizeof *d);
        d->path = h->files[i].path;
        for (size_t k = 0; k < h->n_files; k++) {
            const struct host_file *f = &h->files[k];
            if (!f->path[1] || f->link || strcmp(path_dir(h->mem, f->path), d->path) != 0)
                continue;
            struct dir_entry *e = arena_push(h->mem, &d->entries, &d->n_entries, sizeof *e);
            *e = (struct dir_entry){path_name(f->path), f->type == PATH_DIR};
        }
        if (d->n_entries)
            qsort(d->entries, d->n_entries, sizeof *d->entries, host_by_entry);
    }
    qsort(h->facts.dirs, h->facts.n_dirs, sizeof *h->facts.dirs, host_by_dir);
}

/* Everything the plan will look up, as survey/asked.c does it. */
static void host_survey(struct host *h)
{
    struct policy *p = &h->policy;
    struct facts *f = &h->facts;
    if (!f->state_home && f->home)
        f->state_home = path_join(h->mem, f->home, ".local/state");
    if (!f->config_home && f->home)
        f->config_home = path_join(h->mem, f->home, ".config");
    host_ask(h, p->workspace, false);
    for (const char *const *c = facts_places; *c; c++)
        host_ask(h, *c, false);
    host_ask(h, f->home, false);
    host_ask(h, f->program, false);
    if (f->state_home)
        host_ask(h, path_join(h->mem, f->state_home, "pinfold"), false);
    if (f->config_home)
        host_ask(h, path_join(h->mem, f->config_home, "pinfold"), false);
    for (size_t i = 0; i < p->n_paths; i++) {
        const struct path_rule *r = &p->paths[i];
        host_ask(h, r->any_depth ? r->below : r->pattern ? path_dir(h->mem, r->path) : r->path, true);
        if (r->access == PATH_HIDE && (r->any_depth ? p->expand == EXPAND_START : r->pattern))
            host_match(h, (uint32_t)i);
    }
    for (size_t i = 0; i < p->n_mounts; i++) {
        host_ask(h, p->mounts[i].from, false);
        host_ask(h, p->mounts[i].to, true);
    }
    for (size_t i = 0; i < p->n_storages; i++)
        host_ask(h, p->storages[i].path, true);
    for (size_t i = 0; i < p->n_unix_sockets; i++)
        host_ask(h, p->unix_sockets[i], true);
    qsort(f->paths, f->n_paths, sizeof *f->paths, host_by_asked);
    size_t n = 0;
    for (size_t i = 0; i < f->n_paths; i++) {
        if (!n || strcmp(f->paths[n - 1].asked, f->paths[i].asked) != 0)
            f->paths[n++] = f->paths[i];
    }
    f->n_paths = n;
    if (f->tier == TIER_LANDLOCK)
        host_list(h);
}

static char *host_word(struct host *h, const char **at)
{
    while (**at == ' ')
        (*at)++;
    char *out = arena_zero(h->mem, strlen(*at) + 1), *w = out;
    for (; **at && **at != ' ' && **at != '\n'; (*at)++) {
        if (**at == '\\') {
            *w++ = (char)strtol((char[]){(*at)[1], (*at)[2], (*at)[3], 0}, NULL, 8);
            *at += 3;
        } else {
            *w++ = **at;
        }
    }
    return *out || w != out ? out : NULL;
}

static int host_net_verb(const char *word)
{
    static const char *const words[] = {[NET_RULE_ALLOW] = "allow",
                                        [NET_RULE_DENY] = "deny",
                                        [NET_RULE_DENY_PORT] = "deny_ports",
                                        [NET_RULE_PUBLISH] = "publish",
                                        [NET_RULE_REACH] = "reach"};
    for (int i = 0; i < 5; i++) {
        if (strcmp(word, words[i]) == 0)
            return i;
    }
    return -1;
}

static uint32_t host_origin(struct host *h, uint32_t line, enum policy_layer layer)
{
    struct origin *o = arena_push(h->mem, &h->policy.origins, &h->policy.n_origins, sizeof *o);
    *o = (struct origin){.layer = layer,
                         .file = !line                    ? "built in"
                                 : layer == LAYER_BUILTIN ? "profile workspace"
                                                          : "policy.yaml"};
    o->line = line;
    o->column = 1;
    return (uint32_t)h->policy.n_origins - 1;
}

static void host_rule(struct host *h, enum path_access access, char **w, uint32_t line)
{
    struct path_rule *r = arena_push(h->mem, &h->policy.paths, &h->policy.n_paths, sizeof *r);
    bool builtin = false;
    *r = (struct path_rule){.access = access, .path = w[1]};
    if (strncmp(w[1], "**/", 3) == 0) {
        r->path = w[1] + 3;
        r->any_depth = true;
        r->below = "/";
    }
    for (int i = 2; w[i]; i++) {
        r->optional |= strcmp(w[i], "optional") == 0;
        r->absent |= strcmp(w[i], "absent") == 0;
        builtin |= strcmp(w[i], "builtin") == 0;
        if (strncmp(w[i], "below=", 6) == 0)
            r->below = w[i] + 6;
    }
    r->pattern = strpbrk(r->path, "*?[") != NULL;
    r->origin = host_origin(h, line, builtin ? LAYER_BUILTIN : LAYER_USER);
}

static bool host_has(char **w, const char *what)
{
    for (; *w; w++) {
        if (strcmp(*w, what) == 0)
            return true;
    }
    return false;
}

static bool host_limit(struct host *h, char **w, uint32_t line)
{
    struct limits *l = &h->policy.limits;
    const struct {
        const char *name;
        struct limit *limit;
    } all[] = {
        {"memory", &l->memory},   {"cpus", &l->cpus},   {"processes", &l->processes}, {"disk", &l->disk},
        {"timeout", &l->timeout}, {"grace", &l->grace}, {"output", &l->output},       {"open_files", &l->open_files}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (strcmp(all[i].name, w[1]) == 0) {
            bool asked = !host_has(w, "default");
            *all[i].limit = (struct limit){strtoull(w[2], NULL, 10),
                                           host_origin(h, line, asked ? LAYER_USER : LAYER_BUILTIN), asked};
            return true;
        }
    }
    return false;
}

static bool host_policy_line(struct host *h, char **w, uint32_t line)
{
    static const char *const kinds[] = {"hide", "ro", "rw", "protect", "cache"};
    struct policy *p = &h->policy;
    for (size_t i = 0; i < 5; i++) {
        if (strcmp(w[0], kinds[i]) == 0) {
            host_rule(h, (enum path_access)i, w, line);
            return true;
        }
    }
    if (strcmp(w[0], "mount") == 0) {
        struct mount_rule *m = arena_push(h->mem, &p->mounts, &p->n_mounts, sizeof *m);
        *m = (struct mount_rule){w[1], w[2], host_has(w, "ro"), false, host_origin(h, line, LAYER_FLAGS)};
    } else if (strcmp(w[0], "storage") == 0) {
        struct storage_rule *s = arena_push(h->mem, &p->storages, &p->n_storages, sizeof *s);
        *s = (struct storage_rule){w[1], host_origin(h, line, LAYER_FLAGS)};
    } else if (strcmp(w[0], "session") == 0) {
        h->ask.storage = "/home/u/.local/state/pinfold/sessions/0123456789abcdef0123456789abcdef/storage";
        h->ask.volume = "pinfold-0123456789abcdef0123456789abcdef";
        h->ask.session = "daycare of/u1";
    } else if (strcmp(w[0], "socket") == 0) {
        *(const char **)arena_push(h->mem, &p->unix_sockets, &p->n_unix_sockets, sizeof(char *)) = w[1];
    } else if (strcmp(w[0], "name") == 0) {
        struct guard_name *g = arena_push(h->mem, &p->guards, &p->n_guards, sizeof *g);
        *g = (struct guard_name){.name = w[1],
                                 .place = strcmp(w[2], "root") == 0 ? GUARD_ROOT : GUARD_ANY_DEPTH,
                                 .judge = host_has(w, "git") ? GUARD_GIT_CONFIG : GUARD_REFUSE,
                                 .directory = host_has(w, "dir"),
                                 .origin = host_origin(h, line, LAYER_BUILTIN)};
    } else if (strcmp(w[0], "verify") == 0) { /* the branches */
        p->git.verify = GIT_VERIFY_REQUIRED;
        for (size_t i = 1; w[i]; i++) {
            struct branch_rule *b = arena_push(h->mem, &p->git.branches, &p->git.n_branches, sizeof *b);
            b->pattern = w[i];
        }
    } else if (strcmp(w[0], "guard") == 0) {
        p->guard = strcmp(w[1], "strict") == 0 ? GUARD_STRICT : strcmp(w[1], "off") == 0 ? GUARD_OFF : GUARD_EXISTING;
    } else if (strcmp(w[0], "expand") == 0) {
        p->expand = EXPAND_START;
    } else if (strcmp(w[0], "workspace") == 0) {
        p->workspace = w[1];
        p->workspace_read_only = host_has(w, "ro");
        p->workspace_origin = host_has(w, "said") ? host_origin(h, line, LAYER_FLAGS) : 0;
    } else if (strcmp(w[0], "net") == 0) {
        p->net = strcmp(w[1], "host") == 0 ? NET_HOST : strcmp(w[1], "allow") == 0 ? NET_ALLOW : NET_NONE;
    } else if (strcmp(w[0], "net_catch") == 0) {
        p->net_catch = strcmp(w[1], "loopback") == 0 ? NET_CATCH_LOOPBACK : NET_CATCH_ROUTES;
    } else if (host_net_verb(w[0]) >= 0) {
        struct net_rule *r = arena_push(h->mem, &p->net_rules, &p->n_net_rules, sizeof *r);
        *r = (struct net_rule){(enum net_verb)host_net_verb(w[0]), w[1], host_origin(h, line, LAYER_USER)};
    } else if (strcmp(w[0], "env") == 0) {
        struct env_rule *r = arena_push(h->mem, &p->env, &p->n_env, sizeof *r);
        char *value = strchr(w[1], '=');
        *r = (struct env_rule){.name = w[1][0] == '-' ? w[1] + 1 : w[1], .remove = w[1][0] == '-'};
        if (value) {
            *value = 0;
            r->value = value + 1;
        }
        r->origin = host_origin(h, line, LAYER_USER);
    } else if (strcmp(w[0], "limit") == 0) {
        return host_limit(h, w, line);
    } else if (strcmp(w[0], "user") == 0) {
        p->user = strcmp(w[1], "root") == 0 ? USER_ROOT : strcmp(w[1], "ids") == 0 ? USER_IDS : USER_KEEP;
        p->uid = p->user == USER_IDS ? (uint32_t)atoi(w[2]) : 0;
        p->gid = p->user == USER_IDS ? (uint32_t)atoi(w[3]) : 0;
    } else if (strcmp(w[0], "may_lose") == 0 && feature_find(w[1]) >= 0) {
        p->may_lose |= (features)1 << feature_find(w[1]);
    } else if (strcmp(w[0], "must_have") == 0 && feature_find(w[1]) >= 0) {
        p->must_have |= (features)1 << feature_find(w[1]);
    } else if (strcmp(w[0], "hostname") == 0) {
        p->hostname = w[1];
    } else if (strcmp(w[0], "seatbelt_base") == 0) {
        p->seatbelt_base = strcmp(w[1], "permissive") == 0 ? SEATBELT_PERMISSIVE : SEATBELT_RESTRICTIVE;
    } else if (strcmp(w[0], "seatbelt_file") == 0) {
        p->seatbelt_file = w[1];
    } else if (strcmp(w[0], "nested") == 0) {
        p->allow_nested_userns = true;
    } else if (strcmp(w[0], "ignored") == 0) {
        struct ignored *g = arena_push(h->mem, &p->ignored, &p->n_ignored, sizeof *g);
        *g = (struct ignored){w[1], w[2], host_origin(h, line, LAYER_USER)};
    } else {
        return false;
    }
    return true;
}

/* A list in an arena, NULL-terminated after each push. */
static void host_push(struct host *h, const char ***list, size_t *n, const char *text)
{
    *(const char **)arena_push(h->mem, list, n, sizeof(char *)) = text;
    *(const char **)arena_push(h->mem, list, n, sizeof(char *)) = NULL;
    --*n;
}

static bool host_container_line(struct host *h, char **w)
{
    struct facts *f = &h->facts;
    struct policy *p = &h->policy;
    if (strcmp(w[0], "container") == 0) {
        h->container.podman = strcmp(w[1], "podman") == 0;
        h->container.rootless = host_has(w, "rootless");
        h->container.remapped = host_has(w, "remapped");
        f->engine = w[1];
        f->container = &h->container;
        f->overlay = f->layers = false;
        f->can |= F(CGROUP_LIMITS) | F(LIMIT_CPU);
    } else if (strcmp(w[0], "image") == 0) {
        h->image = (struct image_fact){.name = w[1], .id = w[2] ? w[2] : ""};
        p->image = w[1];
        f->image = &h->image;
    } else if (strcmp(w[0], "image_workdir") == 0) {
        h->image.workdir = w[1];
    } else if (strcmp(w[0], "image_env") == 0) {
        host_push(h, &h->image_env, &h->n_image_env, w[1]);
        h->image.env = h->image_env;
    } else if (strcmp(w[0], "volume") == 0) {
        host_push(h, &h->volumes, &h->n_volumes, w[1]);
        h->image.volumes = h->volumes;
    } else if (strcmp(w[0], "pull") == 0) {
        p->pull = strcmp(w[1], "always") == 0 ? PULL_ALWAYS : PULL_MISSING;
    } else if (strcmp(w[0], "platform") == 0) {
        p->platform = w[1];
    } else if (strcmp(w[0], "runtime") == 0) {
        p->runtime = w[1];
    } else if (strcmp(w[0], "docker_host") == 0) {
        p->docker_host = h->container.host = w[1];
    } else if (strcmp(w[0], "docker_context") == 0) {
        p->docker_context = h->container.context = w[1];
    } else {
        return false;
    }
    return true;
}

static bool host_fact_line(struct host *h, char **w)
{
    struct facts *f = &h->facts;
    if (strcmp(w[0], "dir") == 0 || strcmp(w[0], "file") == 0 || strcmp(w[0], "other") == 0) {
        struct host_file *at = host_add(h, w[1], w[0][0] == 'd' ? PATH_DIR : w[0][0] == 'f' ? PATH_FILE : PATH_OTHER);
        at->closed = host_has(w, "closed");
        at->refused = host_has(w, "refused");
        at->masked = host_has(w, "masked");
        for (int i = 2; w[i]; i++)
            at->uid = strncmp(w[i], "uid=", 4) == 0 ? (uint32_t)atoi(w[i] + 4) : at->uid;
    } else if (strcmp(w[0], "link") == 0) {
        struct host_file *at = host_add(h, w[1], PATH_OTHER);
        at->link = true;
        at->target = w[2];
    } else if (strcmp(w[0], "home") == 0) {
        f->home = strcmp(w[1], "none") == 0 ? NULL : w[1];
    } else if (strcmp(w[0], "caller") == 0) {
        f->uid = (uint32_t)atoi(w[1]);
        f->gid = (uint32_t)atoi(w[2]);
        f->user_name = w[3];
    } else if (strcmp(w[0], "tier") == 0) {
        f->tier = TIER_LANDLOCK;
        f->can &= ~(F(PID_NAMESPACE) | F(PRIVATE_IPC) | F(PRIVATE_TMP) | F(FRESH_PROC) | F(NO_SURVIVORS) | F(REMAP) |
                    F(HOST_NETWORK) | F(USER_ROOT) | F(NETWORK_TRANSPARENT));
        f->catch = CATCH_SOCKET;
    } else if (strcmp(w[0], "catch") == 0) {
        f->catch = strcmp(w[1], "loopback") == 0 ? CATCH_LOOPBACK : CATCH_ROUTES;
        f->catch_why = w[2];
    } else if (strcmp(w[0], "landlock") == 0) {
        f->landlock_abi = atoi(w[1]);
    } else if (strcmp(w[0], "cgroup") == 0) {
        f->cgroup = strcmp(w[1], "v1") == 0 ? CGROUP_V1 : strcmp(w[1], "v2") == 0 ? CGROUP_V2 : CGROUP_V2_SYSTEMD;
        f->cpu_by_group = true;
        f->can |= F(CGROUP_LIMITS) | F(LIMIT_CPU);
    } else if (strcmp(w[0], "layers") == 0) {
        f->layers = true;
    } else if (strcmp(w[0], "no") == 0) {
        *(strcmp(w[1], "overlay") == 0 ? &f->overlay : strcmp(w[1], "uppers") == 0 ? &f->uppers : &f->notify) = false;
    } else if ((strcmp(w[0], "cannot") == 0 || strcmp(w[0], "can") == 0) && feature_find(w[1]) >= 0) {
        int i = feature_find(w[1]);
        f->can = w[0][3] ? f->can & ~((features)1 << i) : f->can | (features)1 << i;
        f->why_not[i] = w[2];
        f->remedy[i] = w[2] ? w[3] : NULL;
    } else if (strcmp(w[0], "state") == 0) {
        f->state_home = w[1];
    } else if (strcmp(w[0], "config") == 0) {
        f->config_home = w[1];
    } else if (strcmp(w[0], "program") == 0) {
        f->program = w[1];
    } else {
        return host_container_line(h, w);
    }
    return true;
}

static bool host_ask_line(struct host *h, char **w)
{
    if (strcmp(w[0], "cwd") == 0)
        h->ask.cwd = w[1];
    else if (strcmp(w[0], "cwd_said") == 0)
        h->ask.cwd_said = true;
    else if (strcmp(w[0], "of_image") == 0)
        h->ask.of_image = true;
    else if (strcmp(w[0], "environ") == 0)
        *(const char **)arena_push(h->mem, &h->environ_list, &h->n_environ, sizeof(char *)) = w[1];
    else if (strcmp(w[0], "slot") == 0)
        h->ask.cache_slot = (unsigned)atoi(w[1]);
    else if (strcmp(w[0], "instance") == 0)
        h->ask.instance = w[1];
    else if (strcmp(w[0], "json") == 0)
        h->json = true;
    else if (strcmp(w[0], "values") == 0)
        h->values = true;
    else if (strcmp(w[0], "so_far") == 0)
        h->ask.so_far = true;
    else
        return false;
    return true;
}

/* What every machine in these tests has, unless a line says otherwise. */
static void host_begin(struct host *h)
{
    *h = (struct host){.mem = arena_new(64u << 20)};
    struct policy *p = &h->policy;
    host_origin(h, 0, LAYER_BUILTIN);
    p->profile = "workspace";
    p->engine = "auto";
    p->workspace = "/home/u/proj";
    p->may_lose = FEATURES_BUILTIN_MAY_LOSE;
    for (struct limit *l = p->limits.each; l < p->limits.each + N_LIMITS; l++)
        l->value = LIMIT_NONE;
    h->facts = (struct facts){.engine = "native",
                              .can = (((features)1 << FEATURE_COUNT) - 1) &
                                     ~(F(PROXY_ADDRESS) | F(CGROUP_LIMITS) | F(LIMIT_CPU)),
                              .kernel_major = 6,
                              .kernel_minor = 12,
                              .landlock_abi = 6,
                              .uid = 1000,
                              .gid = 1000,
                              .home = "/home/u",
                              .user_name = "u",
                              .notify = true,
                              .overlay = true,
                              .uppers = true};
    h->facts.why_not[FEATURE_LIMIT_CPU] = h->facts.why_not[FEATURE_CGROUP_LIMITS] = "no control group can be written";
    struct host_file *root = arena_push(h->mem, &h->files, &h->n_files, sizeof *root);
    *root = (struct host_file){.path = "/", .type = PATH_DIR};
}

/* Reads the lines; false with h->error when one says nothing. */
static bool host_read(struct host *h, const char *text)
{
    uint32_t line = 0;
    for (const char *at = text; *at; at += *at == '\n') {
        char *w[16] = {NULL};
        int n = 0;
        line++;
        if (*at != '#') {
            while (n < 15 && (w[n] = host_word(h, &at)))
                n++;
        }
        at += strcspn(at, "\n");
        if (n && !host_policy_line(h, w, line) && !host_fact_line(h, w) && !host_ask_line(h, w)) {
            snprintf(h->error, sizeof h->error, "line %u: %s?", line, w[0]);
            return false;
        }
    }
    static const char *const usual[] = {"/tmp", "/var/tmp", "/run", "/dev", "/proc", "/sys", "/home/u/proj"};
    for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++) {
        if (!host_find(h, usual[i]) && !host_has((char *[]){NULL}, usual[i]))
            host_add(h, usual[i], PATH_DIR);
    }
    *(const char **)arena_push(h->mem, &h->environ_list, &h->n_environ, sizeof(char *)) = NULL;
    h->ask.environ = h->environ_list;
    if (!h->ask.cwd)
        h->ask.cwd = h->policy.workspace;
    host_survey(h);
    return true;
}

static void host_end(struct host *h)
{
    h->mem = arena_free(h->mem);
}
