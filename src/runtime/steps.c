/*
 * Runs plan steps: one function per kind, in the order of the plan, phase by phase (runtime/inner.h).
 *
 * How the root is made. The mount namespace is a copy of the host's, created with the user namespace, so all its mounts
 * are locked together (mount_namespaces(7)). SOURCEs are detached clones of places in that copy. ENTER then marks the
 * copy as a whole, in place, with one mount_setattr(AT_RECURSIVE): read-only, private, and whatever else ROOT says.
 * From then on no path leads to a writable place of the host that the plan does not attach. Attributes are only ever
 * added: what is read-only, noexec or nosuid on the host stays so.
 *
 * Usually one would pivot_root into a marked clone. The clone, the pivot and unmounting the old tree cost a tenth of a
 * millisecond, more on a busy machine (unmounting waits for an RCU grace period), without a benefit: a pivot gets rid
 * of the old, writable tree, but here the tree itself was marked and no old one remains. In both cases there remains
 * what is under mounts of the plan (the host's /tmp under the box's, a hidden directory under its mask). It could be
 * reached in only four ways, and each is closed:
 *   - by an older descriptor or working directory: the builder closes all but the listed descriptors before the first
 *     step, directories are refused as stdio, files are reopened after the last mount (runtime/stdio.c), and the working
 *     directory is / from the start and set by path afterwards;
 *   - through /proc/PID/root, cwd, fd or map_files of a process that has one: none outside of the pid namespace is
 *     visible, and builder and pid 1 are not dumpable, hold no such descriptor, and have other capabilities;
 *   - by unmounting or moving the upper mount: that takes CAP_SYS_ADMIN over this mount namespace, which nothing in the
 *     box has or can get; in a nested user namespace, if a policy permits those, the copied mounts are locked, too;
 *   - by a bind mount of a directory without its submounts: refused for locked mounts, for the same reason.
 * ".." cannot leave either: the root directory of every process of the box is the root of the tree itself.
 *
 * COVER of / is the exception: a tmpfs becomes the root, so the box pivots into it and detaches the old tree.
 */
#include "runtime/kept_masks.h"
#include <net/if.h>
#include <sched.h>
#include <string.h>

/*
 * Slots whose tree is attached with exactly the root's attributes, read-only above all, hold AS_ROOT until their SOURCE. ENTER clones
 * them when it has marked the tree, so they have these attributes and need no call of their own. Until then such a slot holds the
 * opened place, as A_PLACE; and then the tree, as MARKED, which is what ATTACH believes.
 */
enum { AS_ROOT = -2, A_PLACE = 1 << 30, MARKED = 1 << 29 };

/* ROOT and ROOT_EMPTY only say how ENTER must make the root: other sources are cloned from the unchanged tree. */
static int step_root(struct runner *r, const struct step *s)
{
    const unsigned attributes = STEP_RDONLY | STEP_NOSUID | STEP_NODEV | STEP_NOEXEC;
    r->root = s;
    if (s->kind != STEP_ROOT || plan_cover_of_root(r->plan))
        return 0;
    const struct step *all = plan_steps(r->plan);
    bool enters = false; /* in a virtual machine nobody does */
    for (uint32_t i = 0; i < r->plan->n_steps; i++) {
        enters |= all[i].kind == STEP_ENTER && !(all[i].flags & STEP_TOOL);
        if (enters && all[i].kind == STEP_ATTACH && all[i].flags & STEP_RDONLY && all[i].b < r->n_slots &&
            !((all[i].flags ^ s->flags) & attributes))
            r->slots[all[i].b] = AS_ROOT;
    }
    return 0;
}

static bool are_beside(const char *a, const char *b)
{
    const char *last = strrchr(a, '/'), *other = strrchr(b, '/');
    return last && other && last[1] && other[1] && last - a == other - b && memcmp(a, b, (size_t)(last - a)) == 0;
}

/* The places of this SOURCE and of those that follow are opened before the first is cloned: so their descriptors lie side by side, as do
   those of the clones, and are closed by ranges. A failure is its own step's. */
static void open_ahead(struct runner *r, const struct step *s, uint32_t n)
{
    bool beside = false;
    r->n_ahead = r->next_ahead = 0;
    for (; r->n_ahead < n && s->kind == STEP_SOURCE && !(s->flags & STEP_TOOL); s++) {
        const char *path = step_text(r, s->a), *name;
        const bool next = r->n_ahead + 1 < n && s[1].kind == STEP_SOURCE && are_beside(path, step_text(r, s[1].a));
        const int dir = beside || next ? open_beside(r, path, &name) : -1;
        r->ahead[r->n_ahead++] = dir < 0 ? open_place(path, 0) : sys_openat2(dir, name, O_PATH | O_CLOEXEC, 0, CALM);
        beside = next;
    }
}

static int clone_source(struct runner *r, const struct step *s, int *place)
{
    const int tree =
        sys_open_tree(*place, "", SYS_TREE_CLONE | SYS_TREE_CLOEXEC | SYS_AT_RECURSIVE | SYS_AT_EMPTY_PATH);
    r->slots[s->b] = tree < 0 ? -1 : tree;
    done_with(r, place);
    return tree < 0 ? tree : 0;
}

static int step_source(struct runner *r, const struct step *s)
{
    const uint32_t left = r->plan->n_steps - (uint32_t)(s - plan_steps(r->plan)), most = AHEAD;
    if (s->b >= r->n_slots)
        return -EBADMSG;
    if (r->next_ahead == r->n_ahead)
        open_ahead(r, s, !r->done_room ? 1 : left < most ? left : most);
    own_fd int place = r->ahead[r->next_ahead++];
    if (place < 0)
        return place;
    if (r->slots[s->b] != AS_ROOT)
        return clone_source(r, s, &place);
    r->slots[s->b] = sys_taken(&place) | A_PLACE;
    return 0;
}

/* The sources that wait for the marked tree, in which nothing has been attached yet. */
static int clone_marked(struct runner *r)
{
    const struct step *s = plan_steps(r->plan);
    int e = 0;
    for (uint32_t i = 0; e == 0 && i < r->plan->n_steps; i++) {
        if (s[i].kind != STEP_SOURCE || s[i].b >= r->n_slots || r->slots[s[i].b] < A_PLACE)
            continue;
        own_fd int place = r->slots[s[i].b] & ~A_PLACE;
        r->failed = i;
        e = clone_source(r, s + i, &place);
        r->slots[s[i].b] |= e == 0 ? MARKED : 0;
    }
    return e;
}

/* Overlays over host directories need these writable, as they only are before ENTER. The overlays are kept in the
   last slots. */
static int prepare_overlays(struct runner *r)
{
    const struct step *s = plan_steps(r->plan);
    uint32_t slot = r->n_slots;
    for (uint32_t i = r->plan->n_steps; i-- > 0;) {
        if (s[i].kind != STEP_OVERLAY && s[i].kind != STEP_LAYER)
            continue;
        int e = s[i].kind == STEP_LAYER ? layer_prepare(r, s + i) : overlay_prepare(r, s + i, &r->slots[--slot]);
        if (e == -ENOENT && s[i].flags & STEP_OPTIONAL)
            continue;
        if (e < 0) {
            r->failed = i;
            return e;
        }
    }
    return 0;
}

static int mark_tree(int place, unsigned flags)
{
    struct sys_mount_attr attr = {.set = mount_attributes(flags), .propagation = SYS_PROPAGATION_PRIVATE};
    return sys_mount_setattr(place, "", SYS_AT_EMPTY_PATH | SYS_AT_RECURSIVE, &attr);
}

/* The root itself lacks mount points: a tmpfs replaces it, and everything of the host's / is bound into that, with
   the step's attributes, while the old root can still be cloned from. */
static int enter_cover(struct runner *r, const struct step *c, int old)
{
    const uint32_t enter = r->failed;
    own_fd int root = -1;
    int e = mark_tree(old, c->flags);
    if (e == 0)
        e = cover(r, c, old, &root);
    if (e < 0)
        return e;
    r->failed = enter;
    e = sys_fchdir(root);
    if (e == 0)
        e = sys_pivot_root(".", "."); /* the old root now covers the new one: "." is the upper one, pivot_root(2) */
    if (e == 0)
        e = sys_umount(".", SYS_UMOUNT_DETACH);
    if (e == 0)
        e = sys_chdir("/");
    if (r->own_visible) /* it was detached with the old root */
        own_forget(r);
    return e;
}

static int step_enter(struct runner *r, const struct step *s)
{
    const struct step *c = plan_cover_of_root(r->plan);
    if (!c && (!r->root || r->root->kind != STEP_ROOT))
        return -EBADMSG;
    int e = prepare_overlays(r);
    if (e < 0)
        return e;
    r->failed = (uint32_t)(s - plan_steps(r->plan));
    own_fd int old = open_place("/", O_DIRECTORY);
    if (old < 0)
        return old;
    if (c)
        return enter_cover(r, c, old);
    e = mark_tree(old, r->root->flags);
    done_with(r, &old);
    return e < 0 ? e : clone_marked(r);
}

static int step_attach(struct runner *r, const struct step *s)
{
    const char *name;
    if (s->b >= r->n_slots || r->slots[s->b] < 0 || r->slots[s->b] >= A_PLACE)
        return -EBADMSG;
    const bool marked = r->slots[s->b] & MARKED;
    r->slots[s->b] &= ~MARKED;
    int e = marked ? 0 : mark_tree(r->slots[s->b], s->flags);
    const int dir = e < 0 ? e : open_beside(r, step_text(r, s->a), &name);
    if (dir < 0)
        return dir;
    e = sys_move_mount(r->slots[s->b], "", dir, name, SYS_MOVE_FROM_EMPTY); /* follows no link */
    done_with(r, &r->slots[s->b]);
    return e;
}

static int step_overlay(struct runner *r, const struct step *s)
{
    uint32_t slot = r->n_slots; /* prepare_overlays() */
    for (const struct step *o = plan_steps(r->plan) + r->plan->n_steps; o-- > s;)
        slot -= o->kind == STEP_OVERLAY;
    if (r->slots[slot] < 0)
        return s->flags & STEP_OPTIONAL ? 0 : -EBADMSG;
    own_fd int place = open_place(step_text(r, s->a), O_DIRECTORY);
    return place < 0 ? place : attach_last(r, &r->slots[slot], &place);
}

static int step_readonly(struct runner *r, const struct step *s)
{
    own_fd int place = open_place(step_text(r, s->a), 0);
    if (place < 0)
        return place;
    struct sys_mount_attr attr = {.set = SYS_MOUNT_RDONLY | mount_attributes(s->flags)};
    int e = sys_mount_setattr(place, "", SYS_AT_EMPTY_PATH | (s->flags & STEP_RECURSE ? SYS_AT_RECURSIVE : 0u), &attr);
    done_with(r, &place);
    return e;
}

static int step_dir(struct runner *r, const struct step *s)
{
    const char *name;
    own_fd int parent = open_parent(step_text(r, s->a), &name);
    if (parent < 0)
        return parent;
    int e = sys_mkdirat(parent, name, s->mode);
    done_with(r, &parent);
    return e == -EEXIST ? 0 : e;
}

static int step_file(struct runner *r, const struct step *s)
{
    const char *name, *content = step_text(r, s->b);
    own_fd int parent = open_parent(step_text(r, s->a), &name);
    if (parent < 0)
        return parent;
    own_fd int fd = sys_openat(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, s->mode);
    return fd < 0 ? fd : sys_write_all(fd, content, __builtin_strlen(content));
}

static int step_symlink(struct runner *r, const struct step *s)
{
    const char *name;
    own_fd int parent = open_parent(step_text(r, s->a), &name);
    return parent < 0 ? parent : sys_symlinkat(step_text(r, s->b), parent, name);
}

int loopback_up(void)
{
    struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    own_fd int fd = sys_socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    return fd < 0 ? fd : sys_ioctl(fd, 0x8914 /* SIOCSIFFLAGS */, &lo);
}

static int step_loopback(struct runner *r, const struct step *s)
{
    (void)s;
    return r->late_net || r->kept_net ? 0 : loopback_up();
}

static int step_hostname(struct runner *r, const struct step *s)
{
    const char *name = step_text(r, s->a);
    int e = sys_sethostname(name, __builtin_strlen(name));
    /* In a namespace of its own only a container's filter refuses it. The container's name stays, unless a policy asked. */
    return e == -EPERM && strcmp(name, "pinfold") == 0 ? 0 : e; /* policy/merge.c */
}

int net_begin(struct runner *r)
{
    int e = sys_unshare(CLONE_NEWNET);
    r->late_net = false;
    if (e == 0)
        e = step_loopback(r, NULL);
    if (e < 0)
        return e;
    /* By a socket, not the process: setns(2) cannot use a non-dumpable process without more privileges. */
    own_fd int any = sys_socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int net = any < 0 ? any : sys_ioctl(any, 0x894c /* SIOCGSKNS */, NULL);
    done_with(r, &any);
    return net;
}

/* Mounts a new instance of the file system `type` on the step's dst. */
static int fresh(struct runner *r, const struct step *s, const char *type, const char *const *options,
                 unsigned attributes)
{
    own_fd int place = open_place(step_text(r, s->a), O_DIRECTORY);
    if (place < 0)
        return place;
    own_fd int fs = sys_fsopen(type);
    int e = fs < 0 ? fs : 0;
    for (; e == 0 && *options; options += 2)
        e = sys_fsconfig(fs, SYS_FS_STRING, options[0], options[1], 0);
    own_fd int tree = mount_new(fs, e, attributes | (unsigned)mount_attributes(s->flags));
    done_with(r, &fs);
    return attach_last(r, &tree, &place);
}

static int step_own(struct runner *r, const struct step *s)
{
    own_fd int place = open_place(step_text(r, s->a), O_DIRECTORY);
    return place < 0 ? place : sys_fchownat(place, "", r->plan->uid, r->plan->gid, AT_EMPTY_PATH);
}

/*
 * Around a virtual machine it is read-only: who has taken over the machine's kernel opens files there as qemu does, of which
 * one is qemu's own memory.
 */
static int step_proc(struct runner *r, const struct step *s)
{
    return fresh(r, s, "proc", (const char *const[]){NULL},
                 SYS_MOUNT_NOSUID | SYS_MOUNT_NODEV | SYS_MOUNT_NOEXEC | (r->plan->machine ? SYS_MOUNT_RDONLY : 0));
}

static int step_devpts(struct runner *r, const struct step *s)
{
    /* No gid=: the tty group is not mapped in the box, so a slave belongs to its opener. */
    static const char *const options[] = {"ptmxmode", "0666", "mode", "0620", NULL};
    return fresh(r, s, "devpts", options, SYS_MOUNT_NOSUID | SYS_MOUNT_NOEXEC);
}

static int step_mqueue(struct runner *r, const struct step *s)
{
    return fresh(r, s, "mqueue", (const char *const[]){NULL}, SYS_MOUNT_NOSUID | SYS_MOUNT_NODEV | SYS_MOUNT_NOEXEC);
}

/*
 * Names of /proc about the machine rather than processes. A box started by root owns what the kernel grants to uid 0
 * even without capabilities (proc(5)). For others most of it is refused anyway, but one rule for all is simpler to
 * trust. The read-only ones are clones taken while all of /proc is marked read-only, so they inherit that.
 */
static const char machine[][16] = {"sys", "sysrq-trigger", "irq", "bus", "fs", "driver", "mtrr", "asound"};
enum { N_MACHINE = sizeof machine / sizeof *machine };
/* Useless to a command and revealing: denied if the caller could read them. */
static const char telling[][16] = {"acpi",        "scsi",          "kcore",       "keys",     "timer_list",
                                   "timer_stats", "latency_stats", "sched_debug", "slabinfo", "vmallocinfo"};
enum { N_TELLING = sizeof telling / sizeof *telling };

static int proc_readonly(struct runner *r, int proc)
{
    int trees[N_MACHINE];
    struct sys_mount_attr on = {.set = SYS_MOUNT_RDONLY}, off = {.clear = SYS_MOUNT_RDONLY};
    int e = sys_mount_setattr(proc, "", SYS_AT_EMPTY_PATH, &on);
    if (e < 0 || r->plan->machine)
        return e;
    for (int i = 0; i < N_MACHINE; i++)
        trees[i] = sys_open_tree(proc, machine[i], SYS_TREE_CLONE | SYS_TREE_CLOEXEC);
    e = sys_mount_setattr(proc, "", SYS_AT_EMPTY_PATH, &off);
    for (int i = 0; i < N_MACHINE; i++) {
        if (e == 0 && trees[i] != -ENOENT)
            e = trees[i] < 0 ? trees[i] : sys_move_mount(trees[i], "", proc, machine[i], SYS_MOVE_FROM_EMPTY);
        done_with(r, &trees[i]);
    }
    return e;
}

static int step_proc_lock(struct runner *r, const struct step *s)
{
    own_fd int proc = open_place(step_text(r, s->a), O_DIRECTORY);
    if (proc < 0)
        return proc;
    int e = proc_readonly(r, proc);
    /* Process 1 is a part of pinfold, and its line says what the policy hides and what --env gives to others. */
    own_fd int line = e == 0 ? sys_openat2(proc, "1/cmdline", O_PATH | O_CLOEXEC, 0, CALM) : -ENOENT;
    if (line != -ENOENT)
        e = line < 0 ? line : deny_place(r, &line, false);
    for (int i = 0; e == 0 && i < N_TELLING; i++) {
        /* Checked with this process's capabilities, which exceed the box's: what it cannot read, nobody in the box
           can. */
        if (sys_may(proc, telling[i], 4 /* read */) != 0)
            continue;
        own_fd int place = sys_openat2(proc, telling[i], O_PATH | O_CLOEXEC, 0, CALM);
        e = place < 0 ? place : deny_place(r, &place, i < 2);
    }
    done_with(r, &proc);
    return e;
}

static int run_step(struct runner *r, const struct step *s)
{
    switch ((enum step_kind)s->kind) {
#define DO(KIND, function)                                                                                             \
    case STEP_##KIND:                                                                                                  \
        return function(r, s);
        DO(ROOT, step_root)
        DO(SOURCE, step_source)
        DO(ROOT_EMPTY, step_root)
        DO(ENTER, step_enter)
        DO(ATTACH, step_attach)
        DO(VEIL, step_veil)
        DO(COVER, step_cover)
        DO(DENY, step_deny)
        DO(TMPFS, step_tmpfs)
        DO(OVERLAY, step_overlay)
        DO(LAYER, step_layer)
        DO(PART, step_part)
        DO(READONLY, step_readonly)
        DO(DIR, step_dir)
        DO(FILE, step_file)
        DO(SYMLINK, step_symlink)
        DO(DEVICES, step_devices)
        DO(LOOPBACK, step_loopback)
        DO(CATCH, step_catch)
        DO(OWN, step_own)
        DO(HOSTNAME, step_hostname)
        DO(PROC, step_proc)
        DO(PROC_LOCK, step_proc_lock)
        DO(DEVPTS, step_devpts)
        DO(MQUEUE, step_mqueue)
        DO(KEYRING, step_keyring)
        DO(RULESET, step_ruleset)
        DO(NO_CAPS, step_no_caps)
        DO(NO_NEW_PRIVS, step_no_new_privs)
        DO(UNDUMPABLE, step_undumpable)
        DO(FILTER, step_filter)
#undef DO
    case STEP_NONE:
    case STEP_STUB:
    case STEP_REACH:
    case STEP_LISTEN:
    case STEP_RULE:
    case STEP_RLIMIT:
    case STEP_CWD:
    case STEP_COUNT:
        break;
    }
    return -EBADMSG;
}

uint32_t runner_room(const struct plan_image *plan)
{
    return plan_slots(plan) + plan_overlays(plan);
}

void runner_freshens(struct runner *r, bool layers)
{
    r->fresh_room = plan_overlays(r->plan);
    r->fresh_layers = layers;
}

void runner_begin(struct runner *r, const struct plan_image *plan, int *slots)
{
    *r = (struct runner){.plan = plan,
                         .slots = slots,
                         .n_slots = plan_slots(plan),
                         .fresh = slots + plan_slots(plan),
                         .host_proc = -1,
                         .notify = -1,
                         .egress = -1,
                         .own = -1,
                         .denying = {-1, -1},
                         .pty = {-1, -1},
                         .layer_dir = -1,
                         .layer_tree = -1,
                         .apart = -1,
                         .beside = -1,
                         .kept = {.dir = -1, .lock = -1, .keep_in = -1},
                         .command_ruleset = -1};
    for (uint32_t i = 0; i < r->n_slots; i++)
        slots[i] = -1;
}

/* Cloned sources are descriptors: raises the limit so that all of them fit at once. Under a low limit descriptors are closed one
   by one. */
int steps_room(struct runner *r)
{
    const uint32_t most = sizeof r->done / sizeof *r->done, held = r->n_slots + r->fresh_room;
    const uint64_t enough = (uint64_t)held + 64 + most + AHEAD;
    struct sys_rlimit limit, raised;
    int e = sys_prlimit(RLIMIT_NOFILE, NULL, &limit);
    if (e < 0)
        return held < 200 ? 0 : e;
    r->most_files = limit.hard;
    r->own_files = limit.soft;
    r->done_room = limit.soft >= enough ? most : 0;
    if (held < 200 || limit.soft >= held + 64)
        return 0;
    raised = (struct sys_rlimit){limit.hard, limit.hard};
    e = sys_prlimit(RLIMIT_NOFILE, &raised, NULL);
    if (e < 0)
        return e;
    r->open_files = limit.soft;
    r->done_room = limit.hard >= enough ? most : 0;
    return 0;
}

int room_back(struct runner *r)
{
    struct sys_rlimit limit;
    if (!r->open_files)
        return 0;
    int e = sys_prlimit(RLIMIT_NOFILE, NULL, &limit);
    limit.soft = r->open_files;
    return e < 0 ? e : sys_prlimit(RLIMIT_NOFILE, &limit, NULL);
}

static int build_end(struct runner *r)
{
    for (uint32_t i = 0; i < r->n_slots; i++)
        sys_drop(&r->slots[i]);
    if (!r->split) {
        sys_drop(&r->layer_dir);
        sys_drop(&r->layer_tree);
    }
    int e = r->split ? own_seal(r) : own_park(r);
    if (!r->split) /* otherwise all but a few are closed next (builder_run()) */
        close_done(r);
    return e < 0 ? e : room_back(r);
}

/* A private tree created by the engine's tool. runc gives it the mode of the image's directory, whatever the tool
   requested, and then the box's user might not be able to write. Sets the intended mode, if this process owns it. */
static void tool_tmpfs(const struct runner *r, const struct step *s)
{
    own_fd int place = open_place(step_text(r, s->a), O_DIRECTORY);
    char path[FD_PATH];
    put_fd_path(path, place);
    if (place >= 0 && s->mode && !r->plan->machine) /* fails if another user owns it */
        (void)sys_fchmodat(AT_FDCWD, path, s->mode);
}

/*
 * What a container's engine has mounted is where the plan says, and not where a link of the image led: the guard knows what is hidden by
 * the plan's paths. As the box's user, so a place that this one cannot reach is none either. In a virtual machine they are the host's.
 */
static int tool_places(struct runner *r)
{
    const struct step *s = plan_steps(r->plan);
    const bool judged = r->plan->filter & FILTER_READS && !r->plan->outer;
    int e = 0;
    for (uint32_t i = 0; e == 0 && judged && i < r->plan->n_steps; i++) {
        if (s[i].kind != STEP_ATTACH || !(s[i].flags & STEP_TOOL))
            continue;
        own_fd int place = open_place(step_text(r, s[i].a), 0);
        r->failed = i;
        e = place < 0 ? place : 0;
    }
    return e;
}

static int run_range(struct runner *r, enum phase phase, uint32_t from, uint32_t to)
{
    const struct step *s = plan_steps(r->plan);
    int e = 0;
    for (uint32_t i = from; e == 0 && i < to; i++) {
        if (step_phase(r->plan, s[i].kind) != phase)
            continue;
        if (i > from && s[i].kind != s[i - 1].kind)
            done_with(r, &r->beside);
        if (s[i].flags & STEP_TOOL && s[i].kind == STEP_TMPFS)
            tool_tmpfs(r, s + i);
        if (s[i].flags & STEP_TOOL && s[i].kind != STEP_ROOT)
            continue;
        r->failed = i;
        e = run_step(r, s + i);
        if (e == -ENOENT && s[i].flags & STEP_OPTIONAL)
            e = 0;
    }
    done_with(r, &r->beside);
    return e;
}

int steps_run(struct runner *r, enum phase phase)
{
    int e = phase == PHASE_BUILD ? steps_room(r) : 0;
    if (e == 0)
        e = run_range(r, phase, 0, r->plan->n_steps);
    if (e == 0 && phase == PHASE_INSIDE)
        e = tool_places(r);
    if (e == 0 && phase == PHASE_BUILD)
        e = build_end(r);
    if (phase == PHASE_INSIDE) {
        done_with(r, &r->own);
        done_with(r, &r->denying[0]);
        done_with(r, &r->denying[1]);
        own_forget(r);
        close_done(r);
    }
    return e;
}

uint32_t steps_split(const struct runner *r, bool may_split)
{
    return may_split && !r->plan->tier ? plan_split_at(r->plan) : 0;
}

int steps_build_first(struct runner *r, bool may_split, bool *ret_rest)
{
    const uint32_t at = steps_split(r, may_split);
    *ret_rest = false;
    kept_begin(r);
    if (!at)
        return steps_run(r, PHASE_BUILD);
    int e = r->done_room ? 0 : steps_room(r);
    if (e == 0)
        e = run_range(r, PHASE_BUILD, 0, at);
    if (e == 0 && r->own_visible) /* an older kernel: what is attached on / now would be in pid 1's way */
        e = run_range(r, PHASE_BUILD, at, r->plan->n_steps);
    else if (e == 0)
        e = own_denied(r); /* both halves need it */
    else
        return e;
    if (e < 0)
        return e;
    if (r->own_visible)
        return build_end(r);
    *ret_rest = true;
    r->split = at;
    return 0;
}

int steps_build_rest(struct runner *r)
{
    int e = run_range(r, PHASE_BUILD, r->split, r->plan->n_steps);
    return e < 0 ? e : build_end(r);
}

int steps_catch(struct runner *r)
{
    const struct step *s = plan_nth(r->plan, STEP_CATCH, 0);
    r->late_net = false;
    if (s)
        r->failed = (uint32_t)(s - plan_steps(r->plan));
    return s ? step_catch(r, s) : 0;
}

/* The hard limit cannot be raised without privilege: then use as much as there is. */
static int step_rlimit(const struct runner *r, const struct step *s)
{
    uint64_t value = s->b == UINT32_MAX ? UINT64_MAX : (uint64_t)s->b * s->mode;
    if (s->a == RLIMIT_NOFILE)
        value = step_open_files(value, r->most_files);
    struct sys_rlimit limit = {value, value}, old;
    int e = sys_prlimit((int)s->a, &limit, NULL);
    if (e != -EPERM)
        return e;
    e = sys_prlimit((int)s->a, NULL, &old);
    if (e < 0 || value <= old.hard)
        return e < 0 ? e : -EPERM;
    limit = (struct sys_rlimit){old.hard, old.hard};
    return sys_prlimit((int)s->a, &limit, NULL);
}

int steps_run_command(const struct runner *r, bool own_cwd, uint32_t *ret_failed)
{
    const struct step *s = plan_steps(r->plan);
    for (uint32_t i = r->plan->n_steps; i-- > 0;) { /* they come last */
        int e = 0;
        if (s[i].kind == STEP_RLIMIT)
            e = step_rlimit(r, s + i);
        else if (s[i].kind == STEP_CWD)
            e = own_cwd ? 0 : sys_chdir(step_text(r, s[i].a));
        else if (s[i].kind < STEP_RULESET)
            break;
        if (e < 0) {
            *ret_failed = i;
            return e;
        }
    }
    return 0;
}
