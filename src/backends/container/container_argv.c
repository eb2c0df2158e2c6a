/*
 * The command line of docker and podman for a plan. Pure. Both clients take almost the same options; differences are
 * commented. It contains nothing of the environment, and nothing for a shell of the image to parse: the command is sent
 * by the check-in.
 */
#include "backends/container/container.h"

#include <string.h>
#include "backends/tools/tool.h"

#define NAME_PART_MAX 60

static bool has_step(const struct plan *p, enum step_kind kind)
{
    const struct step *s = plan_steps(p->image);
    for (uint32_t i = 0; i < p->image->n_steps; i++) {
        if (s[i].kind == kind)
            return true;
    }
    return false;
}

/* Selects the daemon; before the verb. */
static void put_daemon(struct tool_words *w, const struct container_fact *c)
{
    if (c->host)
        tool_two(w, c->podman ? "--url" : "--host",
                 c->host[0] == '/' ? arena_printf(w->mem, "unix://%s", c->host) : c->host);
    if (c->context)
        tool_two(w, c->podman ? "--connection" : "--context", c->context);
}

/* What the engines take in a name, and not too much of it: "a b/c" -> "a_b_c". */
static const char *name_part(struct arena *mem, const char *text)
{
    char *part = arena_str(mem, (struct str){text, strnlen(text, NAME_PART_MAX)});
    for (char *c = part; c && *c; c++) {
        bool plain =
            (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') || *c == '-' || *c == '.';
        *c = plain ? *c : '_';
    }
    return part;
}

/* Who looks at the engine's own list finds the session by its name, and each box by its project. */
static void put_name(struct tool_words *w, const struct plan *p, const struct tool_ask *ask)
{
    const char *of = p->session ? name_part(w->mem, p->session) : NULL;
    tool_two(w, "--name", arena_printf(w->mem, "pinfold-%s%s%s", of ? of : "", of ? "-" : "", ask->id));
    if (p->session)
        tool_two(w, "--label", arena_printf(w->mem, CONTAINER_LABEL ".name=%s", p->session));
    if (p->workspace)
        tool_two(w, "--label", arena_printf(w->mem, CONTAINER_LABEL ".workspace=%s", p->workspace));
    tool_two(w, "--label", arena_printf(w->mem, CONTAINER_LABEL ".box=%s", ask->id));
    tool_two(w, "--label", arena_printf(w->mem, CONTAINER_LABEL ".owner=%u", p->facts->uid));
    if (ask->boot)
        tool_two(w, "--label", arena_printf(w->mem, CONTAINER_LABEL ".boot=%s", ask->boot));
    if (ask->process)
        tool_two(w, "--label", arena_printf(w->mem, CONTAINER_LABEL ".process=%s", ask->process));
    if (ask->instance)
        tool_two(w, "--label", arena_printf(w->mem, CONTAINER_LABEL ".instance=%s", ask->instance));
    if (p->policy->hostname && p->policy->net != NET_HOST)
        tool_two(w, "--hostname", p->policy->hostname);
}

static void put_image_choice(struct tool_words *w, const struct policy *p)
{
    static const char *const pulls[] = {"never", "missing", "always"};
    tool_two(w, "--pull", pulls[p->pull]);
    if (p->platform)
        tool_two(w, "--platform", p->platform);
}

/*
 * Capabilities: pid 1 begins as root with those for its own preparations, and has none when the first hostile code
 * runs: NET_ADMIN and NET_BIND_SERVICE to redirect connections, CHOWN to give the session's volumes to the caller,
 * SETUID and SETGID to become the caller, SETPCAP to drop all of them for good. SYS_PTRACE because docker's filter
 * otherwise forbids reading another process's memory; the guard keeps it, limited to the container.
 */
static void put_powers(struct tool_words *w, const struct plan *p)
{
    const struct container_fact *c = p->facts->container;
    tool_two(w, "--cap-drop", "ALL");
    tool_two(w, "--cap-add", "SETPCAP");
    tool_two(w, "--cap-add", "SETUID");
    if (p->image->uid || p->image->gid)
        tool_two(w, "--cap-add", "SETGID");
    if (has_step(p, STEP_CATCH)) {
        tool_two(w, "--cap-add", "NET_ADMIN");
        tool_two(w, "--cap-add", "NET_BIND_SERVICE"); /* the box's resolver listens at port 53 */
    }
    if (has_step(p, STEP_OWN))
        tool_two(w, "--cap-add", "CHOWN");
    if (p->image->filter & (FILTER_GUARD | FILTER_READS))
        tool_two(w, "--cap-add", "SYS_PTRACE");
    tool_two(w, "--security-opt", "no-new-privileges");
    tool_two(w, "--user", "0:0");
    if (c->podman && c->rootless && p->policy->user != USER_ROOT)
        tool_two(w, "--userns", "keep-id");
    if (!c->podman && c->remapped)
        tool_two(w, "--userns", "host");
}

static void put_limits(struct tool_words *w, const struct plan *p)
{
    const struct limits *l = &p->policy->limits;
    features can = p->facts->can & ~p->lost;
    if (can & F(LIMIT_MEMORY) && l->memory.value != LIMIT_NONE) {
        const char *bytes = arena_printf(w->mem, "%llu", (unsigned long long)l->memory.value);
        tool_two(w, "--memory", bytes);
        tool_two(w, "--memory-swap", bytes); /* memory and swap together: no swap */
    }
    if (can & F(LIMIT_CPU) && l->cpus.value != LIMIT_NONE)
        tool_two(w, "--cpus",
                 arena_printf(w->mem, "%llu.%03llu", (unsigned long long)l->cpus.value / 1000,
                              (unsigned long long)l->cpus.value % 1000));
    if (can & F(LIMIT_PROCESSES) && l->processes.value != LIMIT_NONE)
        tool_two(w, "--pids-limit",
                 arena_printf(w->mem, "%llu", (unsigned long long)l->processes.value + CONTAINER_OWN_PROCESSES));
}

enum { SHM_KIB = 64 << 10 }; /* what both engines make by themselves */

/* It should belong to the command's user; podman gives it to root, so it must be writable by all. */
static const char *tmpfs_words(struct tool_words *w, const struct plan *p, const struct outer *o)
{
    const char *size = o->kib ? arena_printf(w->mem, ",size=%uk", o->kib) : "";
    if (!size)
        return NULL;
    if (p->facts->container->podman)
        return arena_printf(w->mem, "%s:rw,exec,nosuid,nodev,notmpcopyup%s,mode=1777", o->dst, size);
    return arena_printf(w->mem, "%s:rw,exec,nosuid,nodev%s,mode=%o,uid=%u,gid=%u", o->dst, size, o->mode, p->image->uid,
                        p->image->gid);
}

/* Mounts below a read-only tree would be writable (until Docker 25), so they are not included. */
static void put_mount(struct tool_words *w, const struct plan *p, const struct outer *o, const struct tool_ask *ask,
                      size_t number)
{
    switch (o->kind) {
    case OUTER_BIND:
        tool_two(w, "--mount",
                 arena_printf(w->mem, "type=bind,src=%s,dst=%s%s", o->src, o->dst,
                              o->writable ? "" : ",readonly,bind-nonrecursive=true"));
        return;
    case OUTER_VOLUME: /* the image's content there is not copied into it */
        tool_two(w, "--volume", arena_printf(w->mem, "%s:%s:nocopy", o->src, o->dst));
        return;
    case OUTER_TEXT:
        tool_two(w, "--mount",
                 arena_printf(w->mem, "type=bind,src=%s/" TOOL_TEXT "%zu,dst=%s,readonly", ask->place, number, o->dst));
        return;
    case OUTER_TMPFS:
        tool_two(w, "--tmpfs", tmpfs_words(w, p, o));
        return;
    case OUTER_SHM:
        /* podman 5 makes its own read-only with --read-only-tmpfs=false; one that is named replaces it in any version */
        if (p->facts->container->podman)
            tool_two(w, "--tmpfs",
                     arena_printf(w->mem, "/dev/shm:rw,noexec,nosuid,nodev,notmpcopyup,size=%uk,mode=1777",
                                  o->kib ? o->kib : SHM_KIB));
        else if (o->kib)
            tool_two(w, "--shm-size", arena_printf(w->mem, "%uk", o->kib));
        return;
    case OUTER_DEVICE:
        tool_two(w, "--device", arena_printf(w->mem, "%s:%s:%s", o->src, o->dst, o->writable ? "rw" : "r"));
        return;
    }
}

/* A volume declared by the image would be a directory of the daemon's, writable and without a limit. */
static void put_volumes(struct tool_words *w, const struct plan *p)
{
    const struct image_fact *image = p->facts->image;
    if (p->facts->container->podman) {
        tool_two(w, "--image-volume", "ignore");
        return;
    }
    for (const char *const *v = image->volumes; v && *v; v++) {
        bool ours = false;
        for (size_t i = 0; i < p->n_outer; i++)
            ours |= same(p->outer[i].dst, *v);
        if (!ours)
            tool_two(w, "--tmpfs", arena_printf(w->mem, "%s:ro,nosuid,nodev,noexec", *v));
    }
}

static void put_files(struct tool_words *w, const struct plan *p, const struct tool_ask *ask)
{
    tool_word(w, "--read-only");
    if (p->facts->container->podman)
        tool_word(w, "--read-only-tmpfs=false");
    put_volumes(w, p);
    tool_two(w, "--mount", arena_printf(w->mem, "type=bind,src=%s,dst=" CONTAINER_INIT ",readonly", ask->init));
    tool_two(w, "--mount", arena_printf(w->mem, "type=bind,src=%s,dst=" CONTAINER_PLACE ",readonly", ask->place));
    for (size_t i = 0; i < p->n_outer; i++)
        put_mount(w, p, &p->outer[i], ask, i);
}

int container_argv(const struct plan *plan, const struct tool_ask *ask, struct arena *mem, const char *const **ret,
                   struct err *e)
{
    struct tool_words w = {.mem = mem};
    const struct policy *p = plan->policy;
    tool_word(&w, ask->program);
    put_daemon(&w, plan->facts->container);
    tool_word(&w, "run");
    tool_word(&w, "--rm");
    put_image_choice(&w, p);
    put_name(&w, plan, ask);
    tool_two(&w, "--network", p->net == NET_HOST ? "host" : "none");
    tool_two(&w, "--ipc", "private");
    tool_two(&w, "--cgroupns", "private");
    if (p->runtime)
        tool_two(&w, "--runtime", p->runtime);
    put_powers(&w, plan);
    put_limits(&w, plan);
    put_files(&w, plan, ask);
    tool_two(&w, "--log-driver", "none"); /* the daemon must not store the command's output */
    tool_word(&w, "--no-healthcheck");    /* the daemon would run it in the box without pid 1 */
    if (plan->facts->container->podman && p->net != NET_HOST)
        tool_word(&w, "--no-hosts"); /* the host's names have no meaning there */
    if (plan->facts->container->podman)
        tool_word(&w, "--http-proxy=false"); /* do not pass the caller's variables to the container */
    /* An image's WORKDIR that is not there the engine would create, as root and through our binds on the host. */
    tool_two(&w, "--workdir", "/");
    tool_two(&w, "--entrypoint", CONTAINER_INIT);
    return tool_end(&w, plan, plan->facts->image->name, CONTAINER_PLACE "/s", ret, e);
}
