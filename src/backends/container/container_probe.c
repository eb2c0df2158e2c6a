/*
 * What a container of docker or podman can enforce on this machine, according to the engine: its description of itself
 * decides about limits and users, that of the image about the environment.
 */
#include "backends/container/container.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include "backends/container/container_ask.h"
#include "backends/probe.h"
#include "sys/landlock.h"
#include "sys/process.h"

#define CONTAINER_FEATURES (((features)1 << FEATURE_COUNT) - 1)

static void container_cannot(struct facts *f, features which, const char *why, const char *remedy)
{
    for (int i = 0; i < FEATURE_COUNT; i++) {
        if (!(which >> i & 1))
            continue;
        f->can &= ~((features)1 << i);
        f->why_not[i] = why;
        f->remedy[i] = remedy;
    }
}

static const struct node *in(const struct node *map, const char *key)
{
    return map && map->kind == NODE_MAP ? node_get(map, key) : NULL;
}

static bool is(const struct node *n, const char *probe_text)
{
    return n && n->kind == NODE_SCALAR && str_is(n->text, probe_text);
}

static bool lists(const struct node *n, const char *begin)
{
    for (size_t i = 0; n && n->kind == NODE_LIST && i < n->n; i++) {
        if (n->items[i].kind == NODE_SCALAR && str_starts(n->items[i].text, str_of(begin)))
            return true;
    }
    return false;
}

static const char *probe_text(struct arena *mem, const struct node *n, const char *otherwise)
{
    const char *s = n && n->kind == NODE_SCALAR ? arena_str(mem, n->text) : NULL;
    return s ? s : otherwise;
}

/* ---- limits ---- */

static void judge_limits(struct facts *f, const struct node *info, bool podman)
{
    bool memory, cpu, pids;
    if (podman) {
        const struct node *c = in(in(info, "host"), "cgroupControllers");
        memory = lists(c, "memory");
        cpu = lists(c, "cpu");
        pids = lists(c, "pids");
    } else {
        memory = is(in(info, "MemoryLimit"), "true");
        cpu = is(in(info, "CpuCfsQuota"), "true");
        pids = is(in(info, "PidsLimit"), "true");
    }
    const char *why = podman ? "podman without root has no control groups here (cgroup version 1, or no delegation)"
                             : "docker's daemon has no control group for it";
    const char *remedy = podman ? "boot with systemd.unified_cgroup_hierarchy=1 and let systemd delegate" : NULL;
    container_cannot(f, (memory ? 0 : F(LIMIT_MEMORY)) | (cpu ? 0 : F(LIMIT_CPU)) | (pids ? 0 : F(LIMIT_PROCESSES)),
                     why, remedy);
    if (!memory || !pids)
        container_cannot(f, F(CGROUP_LIMITS), why, remedy);
}

/* ---- users ---- */

/*
 * Files in the workspace must stay the caller's. docker's user ids are the host's: a caller who is not root must not be
 * root inside, or have another id. Without root, an engine's root is the caller; podman can map the caller's own id.
 */
static int judge_users(struct facts *f, const struct container_fact *c, struct err *e)
{
    const struct policy *p = f->policy;
    if (!c->rootless && f->uid != 0)
        container_cannot(f, F(USER_ROOT),
                         "root in its container is this machine's root, and files would belong to root",
                         c->podman ? NULL : "use podman, whose root is you");
    bool keeps = p->user == USER_KEEP || (p->user == USER_ROOT && (c->rootless || f->uid == 0)) ||
                 (p->user == USER_IDS && p->uid == f->uid && p->gid == f->gid);
    if (c->rootless && !c->podman && p->user != USER_ROOT)
        return err_say(
            e, ERR_CANNOT,
            "rootless docker shows you as root inside and cannot keep your user id; use --user root, or podman");
    if (p->user == USER_IDS && !keeps)
        return err_say(e, ERR_CANNOT,
                       "user %u:%u: a container's files have the same owner on this machine, so the command must run "
                       "as you (keep)",
                       p->uid, p->gid);
    return 0;
}

/* ---- where the daemon is ---- */

static int judge_container_place(const struct node *info, const struct container_ask *ask, struct err *e)
{
    const struct policy *p = ask->policy;
    const char *runtime = p->runtime ? p->runtime : probe_text(ask->mem, in(info, "DefaultRuntime"), "");
    const struct node *remote = in(in(info, "host"), "serviceIsRemote");
    if (strstr(runtime, "runsc") || strstr(runtime, "kata"))
        return err_say(e, ERR_CANNOT,
                       "%s with the runtime %s: its containers have their own kernel, so that check-in and guard "
                       "cannot work; use runc or crun",
                       ask->podman ? "podman" : "docker", runtime);
    if (is(in(info, "OperatingSystem"), "Docker Desktop") || is(remote, "true"))
        return err_say(e, ERR_CANNOT,
                       "%s runs its containers in a virtual machine, from which no socket can be passed; use an engine "
                       "of this machine's kernel",
                       ask->podman ? "podman" : "docker");
    const struct node *runtimes = in(info, "Runtimes");
    if (p->runtime && !ask->podman && runtimes && !in(runtimes, p->runtime))
        return err_say(e, ERR_CANNOT, "docker's daemon has no runtime '%s'; name it in /etc/docker/daemon.json",
                       p->runtime);
    return 0;
}

/* "x86_64" and "amd64" are one. */
static const char *architecture(struct str name)
{
    static const char *const same_as[][2] = {{"x86_64", "amd64"}, {"aarch64", "arm64"}, {"armv7l", "arm"},
                                             {"i686", "386"},     {"i386", "386"},      {"armhf", "arm"}};
    for (size_t i = 0; i < sizeof same_as / sizeof same_as[0]; i++) {
        if (str_is(name, same_as[i][0]) || str_is(name, same_as[i][1]))
            return same_as[i][1];
    }
    return NULL;
}

/* ---- the image ---- */

static const char *const *texts(struct arena *mem, const struct node *n)
{
    const char **at = NULL;
    size_t count = 0;
    size_t step = n && n->kind == NODE_MAP ? 2 : 1, items = n && n->kind != NODE_SCALAR ? n->n : 0;
    for (size_t i = 0; i < items; i++) {
        const struct node *item = &n->items[step * i];
        if (item->kind != NODE_SCALAR)
            continue;
        const char **slot = arena_push(mem, &at, &count, sizeof *slot);
        if (!slot || !(*slot = arena_str(mem, item->text)))
            return NULL;
    }
    const char **end = arena_push(mem, &at, &count, sizeof *end);
    return end ? at : NULL;
}

static int read_image(struct facts *f, const struct container_ask *ask, const struct node *info, bool fetch,
                      struct err *e)
{
    struct node n = {.kind = NODE_MAP};
    const struct policy *p = ask->policy;
    struct image_fact *image = arena_zero(ask->mem, sizeof *image);
    struct utsname u;
    if (!image)
        return err_sys(e, ERR_SYSTEM, ENOMEM, "cannot ask for the image");
    int r = container_image(ask, info, &n, e);
    if (r == -ENOENT && p->pull != PULL_NEVER) {
        r = fetch ? container_pull(ask, e) : 0;
        if (r == 0 && fetch)
            r = container_image(ask, info, &n, e);
    }
    if (r < 0)
        return r;
    const char *arch = in(&n, "Architecture") ? architecture(in(&n, "Architecture")->text) : NULL;
    const char *here = uname(&u) == 0 ? architecture(str_of(u.machine)) : NULL;
    if (arch && here && !same(arch, here) && !p->platform) {
        (void)err_say(e, ERR_CANNOT, "the image '%s' is for %s, and this machine is %s", p->image, arch, here);
        return err_hint(e, -EOPNOTSUPP, "use one for %s, or --platform linux/%s if an emulator is set up", here, arch);
    }
    *image = (struct image_fact){.name = p->image,
                                 .id = probe_text(ask->mem, in(&n, "Id"), ""),
                                 .env = texts(ask->mem, in(in(&n, "Config"), "Env")),
                                 .volumes = texts(ask->mem, in(in(&n, "Config"), "Volumes")),
                                 .entrypoint = texts(ask->mem, in(in(&n, "Config"), "Entrypoint")),
                                 .user = probe_text(ask->mem, in(in(&n, "Config"), "User"), ""),
                                 .cmd = texts(ask->mem, in(in(&n, "Config"), "Cmd")),
                                 .workdir = probe_text(ask->mem, in(in(&n, "Config"), "WorkingDir"), "")};
    f->image = image;
    return image->env && image->volumes && image->entrypoint && image->cmd
               ? 0
               : err_sys(e, ERR_SYSTEM, ENOMEM, "cannot ask for the image");
}

/* ---- the kernel ---- */

static bool container_has_notify(void)
{
    const uint32_t action = SECCOMP_RET_USER_NOTIF;
    return sys_call(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action, 0, 0, 0) == 0;
}

static int judge_container_kernel(struct facts *f, struct arena *mem, bool thorough, struct err *e)
{
    struct utsname u;
    int abi = sys_landlock_abi();
    f->landlock_abi = abi > 0 ? abi : 0;
    f->notify = container_has_notify();
    if (uname(&u) == 0)
        (void)sscanf(u.release, "%u.%u", &f->kernel_major, &f->kernel_minor);
    if (!f->notify)
        container_cannot(f, F(GUARD) | F(UNIX_SOCKETS) | F(HIDES_ANY_DEPTH),
                         "the kernel has no seccomp user notification (Linux 5.0, CONFIG_SECCOMP_FILTER)", NULL);
    const char *remedy = NULL, *unread = f->notify ? native_unreadable(f, &remedy) : NULL;
    if (unread) {
        f->notify = false;
        container_cannot(f, F(GUARD) | F(UNIX_SOCKETS) | F(HIDES_ANY_DEPTH), unread, remedy);
    }
    if (f->landlock_abi < 6)
        container_cannot(f, F(ABSTRACT_SOCKETS),
                         "with the host's network, Landlock's scopes are needed for it (Linux 6.12)", NULL);
    if (!thorough)
        return 0;
    /* How connections can be redirected depends on the kernel: the same here as in a namespace of the native engine. */
    struct facts native = {.home = f->home, .uid = f->uid, .gid = f->gid};
    int r = native_probe(&native, mem, true, e);
    f->catch = native.tier == TIER_NAMESPACES ? native.catch : CATCH_TPROXY;
    f->catch_why = native.tier == TIER_NAMESPACES ? native.catch_why : NULL;
    for (int i = FEATURE_NETWORK_TRANSPARENT; i <= FEATURE_NETWORK_ADDRESSES && f->catch_why; i++) {
        if (!(native.can >> i & 1))
            container_cannot(f, (features)1 << i, native.why_not[i], native.remedy[i]);
    }
    return r;
}

static int probe(struct facts *f, struct arena *mem, bool thorough, bool podman, struct err *e)
{
    struct container_ask ask = {.policy = f->policy, .mem = mem, .podman = podman};
    struct container_fact *c = arena_zero(mem, sizeof *c);
    struct node info;
    f->engine = podman ? "podman" : "docker";
    f->tier = TIER_NAMESPACES;
    f->catch = CATCH_TPROXY;
    f->can = CONTAINER_FEATURES;
    if (!c)
        return err_sys(e, ERR_SYSTEM, ENOMEM, "cannot ask %s", f->engine);
    if (!ask.policy->image)
        return err_say(e, ERR_CANNOT, "%s needs an image; name one with --image, as in --image debian:12", f->engine);
    int r = container_find(&ask, e);
    if (r == 0)
        r = container_info(&ask, &info, e);
    if (r == 0)
        r = judge_container_place(&info, &ask, e);
    if (r < 0)
        return r;
    *c = (struct container_fact){.podman = podman,
                                 .rootless = podman ? is(in(in(in(&info, "host"), "security"), "rootless"), "true")
                                                    : lists(in(&info, "SecurityOptions"), "name=rootless"),
                                 .remapped = !podman && lists(in(&info, "SecurityOptions"), "name=userns"),
                                 .socket = podman ? NULL : ask.socket,
                                 .host = ask.policy->docker_host,
                                 .context = ask.policy->docker_context};
    f->container = c;
    f->tool = ask.program;
    r = judge_users(f, c, e);
    if (r == 0)
        r = read_image(f, &ask, &info, !thorough, e); /* explain and doctor, which probe thoroughly, pull nothing */
    if (r == 0)
        r = judge_container_kernel(f, mem, thorough, e);
    if (r == 0)
        judge_limits(f, &info, podman);
    return r;
}

int docker_probe(struct facts *f, struct arena *mem, bool thorough, struct err *e)
{
    return probe(f, mem, thorough, false, e);
}

int podman_probe(struct facts *f, struct arena *mem, bool thorough, struct err *e)
{
    return probe(f, mem, thorough, true, e);
}

static int image_id(const struct policy *p, struct arena *mem, bool podman, const char **ret, struct err *e)
{
    struct container_ask ask = {.policy = p, .mem = mem, .podman = podman};
    struct node info = {.kind = NODE_MAP}, n = {.kind = NODE_MAP};
    *ret = "";
    if (!p->image)
        return 0;
    int r = container_find(&ask, e);
    if (r == 0 && podman)
        r = container_info(&ask, &info, e);
    if (r == 0)
        r = container_image(&ask, &info, &n, e);
    if (r == 0)
        *ret = probe_text(mem, in(&n, "Id"), "");
    return r == -ENOENT ? 0 : r;
}

int docker_image_id(const struct policy *p, struct arena *mem, const char **ret, struct err *e)
{
    return image_id(p, mem, false, ret, e);
}

int podman_image_id(const struct policy *p, struct arena *mem, const char **ret, struct err *e)
{
    return image_id(p, mem, true, ret, e);
}
