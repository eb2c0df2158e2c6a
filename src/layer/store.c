/*
 * Layers as a box uses them: made, held, sealed. A layer counts as kept only once its record says "synced": the overlay
 * is mounted volatile, so nothing of it is on the disk before layer_seal().
 */
#include "layer/store.h"
#include "layer/change.h"
#include "layer/spare.h"
#include "layer/stack/stack.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "layer/repo/repo.h"
#include "sys/fd.h"
#include "sys/file.h"
#include "user/own_dirs.h"

#define LAYER_NAME_MAX   64
#define MAX_LAYER_RECORD (1u << 20)

/* One of hexadecimal digits alone would be taken for the beginning of an ID. */
static int check_layer_name(const char *name, struct err *e)
{
    size_t n = strlen(name), digits = strspn(name, "0123456789abcdef");
    for (size_t i = 0; i < n; i++) {
        bool fits = (name[i] >= 'a' && name[i] <= 'z') || (name[i] >= 'A' && name[i] <= 'Z') ||
                    (name[i] >= '0' && name[i] <= '9') || (i && strchr("._-", name[i]));
        if (!fits)
            n = 0;
    }
    if (n == 0 || n > LAYER_NAME_MAX)
        return err_say(e, ERR_POLICY, "--cow=%s: a layer's name has 1 to %d letters, digits, '.', '_' and '-'", name,
                       LAYER_NAME_MAX);
    if (digits == n)
        return err_hint(e, err_say(e, ERR_POLICY, "--cow=%s: this name looks like the ID of a layer", name),
                        "use a name with a letter beyond f");
    return 0;
}

static uint64_t in_ns(const struct timespec *t)
{
    return (uint64_t)t->tv_sec * 1000000000 + (uint64_t)t->tv_nsec;
}

/* The clock of that kind as it was at the kernel's last tick. */
static uint64_t at_tick(clockid_t clock)
{
    struct timespec t = {0};
    (void)clock_gettime(clock, &t);
    return in_ns(&t);
}

/* The time of change that a file gets now. */
static int touch(int fd, int64_t *ret)
{
    struct stat st;
    if (futimens(fd, NULL) < 0 || fstat(fd, &st) < 0)
        return -errno;
    *ret = (int64_t)in_ns(&st.st_ctim);
    return 0;
}

/*
 * The time from which on a change of the host is one "since the start": of our lock, touched now, if it is on the workspace's own file
 * system, whose clock may be a server's; otherwise of a nameless file there; where there are none, of our lock. All of them leave nothing
 * in the workspace.
 *
 * The kernel counts such times in ticks of some milliseconds, so what was written just before has the same one as what is written next:
 *
 *  - Since Linux 6.13 a file whose time somebody has read gets a finer one when it is changed again, and nothing that is changed later,
 *    by whomever, an older one. So the lock is touched twice, with a look in between: the second time divides all before from all after.
 *  - Before, the second time is the first one. It counts as before the start, and nothing of the box may look at the workspace until the
 *    tick is over (layer_wait()).
 *  - A clock that is not this kernel's, or coarser: what has the same time counts as changed since.
 */
static int look_at_clock(const struct stat *workspace, struct layer_held *l)
{
    struct stat st;
    const bool here = fstat(l->lock, &st) == 0 && st.st_dev == workspace->st_dev;
    auto_fd int nameless = here ? -1 : openat(AT_FDCWD, l->ask.workspace, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    const int fd = nameless >= 0 ? nameless : l->lock;
    const uint64_t before = at_tick(CLOCK_REALTIME_COARSE);
    int64_t first = 0, second = 0;
    int e = touch(fd, &first);
    if (e == 0)
        e = touch(fd, &second);
    if (e < 0)
        return e;
    l->layer.since = second;
    if (second != first || !(here || nameless >= 0))
        return 0;
    const uint64_t tick = at_tick(CLOCK_MONOTONIC_COARSE), after = at_tick(CLOCK_REALTIME_COARSE);
    if ((uint64_t)second < before || (uint64_t)second > after)
        return 0;
    l->layer.since = second + 1;
    l->tick = tick;
    return 0;
}

void layer_wait(struct layer_held *l)
{
    struct timespec length = {0};
    if (!l->tick)
        return;
    (void)clock_getres(CLOCK_MONOTONIC_COARSE, &length);
    const uint64_t next = l->tick + in_ns(&length);
    const struct timespec at = {.tv_sec = (time_t)(next / 1000000000), .tv_nsec = (long)(next % 1000000000)};
    const struct timespec moment = {.tv_nsec = 100000};
    if (at_tick(CLOCK_MONOTONIC_COARSE) <= l->tick)
        (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
    while (at_tick(CLOCK_MONOTONIC_COARSE) <= l->tick)
        (void)nanosleep(&moment, NULL);
    l->tick = 0;
}

/* `first`: in a directory that is no layer yet. */
static int put_record_text(const struct layer *l, bool first, const struct buf *text)
{
    if (first) {
        own_fd int over = layer_write_over(l->dir, "record", text->p, text->n);
        return over < 0 ? over : 0;
    }
    auto_fd int fd = openat(l->dir, "record.new", O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    int no = fd < 0 ? -errno : fd_write_all(fd, text->p, text->n);
    /* What is not synced yet need not survive anything. */
    if (no == 0 && l->synced && fsync(fd) < 0)
        no = -errno;
    if (no == 0 && renameat(l->dir, "record.new", l->dir, "record") < 0)
        no = -errno;
    if (no == 0 && l->synced && fsync(l->dir) < 0)
        no = -errno;
    return no;
}

static int put_layer_record(const struct layer_held *l, bool first, struct err *e)
{
    auto_buf struct buf text = BUF(MAX_LAYER_RECORD);
    struct json j = JSON(&text);
    const struct layer *layer = &l->layer;
    json_object(&j, NULL);
    json_int(&j, "v", 1);
    json_text(&j, "id", layer->id);
    json_text_or_null(&j, "name", layer->name);
    json_text(&j, "workspace", layer->workspace);
    /* As signed ones: file systems use all 64 bits (overlayfs with xino), and whoever reads this has no other numbers. */
    json_int(&j, "dev", (int64_t)layer->device);
    json_int(&j, "ino", (int64_t)layer->ino);
    json_object(&j, "t0");
    json_int(&j, "sec", layer->since / 1000000000);
    json_int(&j, "nsec", layer->since % 1000000000);
    json_int(&j, "booted", layer->booted);
    json_object_end(&j);
    json_text(&j, "boot", layer->boot);
    json_int(&j, "created", layer->created);
    json_bool(&j, "synced", layer->synced);
    json_text_or_null(&j, "from", layer->from);
    json_text_or_null(&j, "upper", layer->hidden);
    json_text_or_null(&j, "session", l->ask.session);
    json_text_or_null(&j, "scope", l->ask.scope);
    json_array(&j, "command");
    for (size_t i = 0; l->ask.command && l->ask.command[i] && i < 64; i++)
        json_str(&j, NULL, (struct str){l->ask.command[i], strnlen(l->ask.command[i], 1024)});
    json_array_end(&j);
    json_object_end(&j);
    if (!buf_ok(&text))
        return err_sys(e, ERR_SYSTEM, ENOMEM, "layer %s", layer->id);
    const int no = put_record_text(layer, first, &text);
    return no < 0 ? err_sys(e, ERR_SYSTEM, -no, "layer %s: cannot write its record", layer->id) : 0;
}

/* An overlay shows mode, owner and times of its upper directory as those of the workspace. */
static int dress_upper(int upper, const struct stat *workspace)
{
    const struct timespec times[2] = {workspace->st_atim, workspace->st_mtim};
    struct stat st;
    if (fstat(upper, &st) < 0)
        return -errno;
    if ((st.st_uid != workspace->st_uid || st.st_gid != workspace->st_gid) &&
        fchown(upper, workspace->st_uid, workspace->st_gid) < 0)
        return -errno;
    /* A new owner takes setgid away; as a rule it is right from the start. */
    const bool dressed = ((st.st_mode ^ workspace->st_mode) & 07777) == 0 && st.st_uid == workspace->st_uid &&
                         st.st_gid == workspace->st_gid;
    if ((!dressed && fchmod(upper, workspace->st_mode & 07777) < 0) || futimens(upper, times) < 0)
        return -errno;
    return 0;
}

static int make_layers(const char *state, struct arena *mem, struct err *e)
{
    const char *path = arena_printf(mem, "%s/" LAYERS, state);
    if (!path)
        return err_sys(e, ERR_SYSTEM, ENOMEM, "cannot make a layer");
    /* The state directory has been made by whoever planned before; on a first run it is missing with its parents. */
    char why[PATH_MAX];
    const int r = own_dirs_make(path);
    if (r < 0 && own_dirs_why(path, why, sizeof why)[0]) {
        err_say(e, ERR_CANNOT, "--cow: the layer cannot be kept: %s", why);
        return r;
    }
    if (r < 0)
        (void)err_sys(e, ERR_SYSTEM, -r, "cannot make the directory '%s' for layers", path);
    return r == 0 || err_is_full(r) ? r : err_hint(e, r, "set HOME or XDG_STATE_HOME to a directory of yours");
}

int layer_again(const struct layer *l, struct err *e)
{
    const int no = l->hidden ? sys_renameat2(l->dir, l->hidden, l->dir, "upper", RENAME_NOREPLACE) : 0;
    return no < 0 && no != -ENOENT ? err_sys(e, ERR_SYSTEM, -no, "layer %s: cannot prepare 'upper'", l->id) : 0;
}

/* A name for upper/ that nobody can guess; and another number, by which one call is enough. */
static int choose_hidden(struct layer_held *l, struct arena *mem, uint64_t *ret_more)
{
    uint64_t number[3];
    if (getrandom(number, sizeof number, 0) != sizeof number)
        return -errno;
    l->layer.hidden =
        arena_printf(mem, "upper.%016llx%016llx", (unsigned long long)number[0], (unsigned long long)number[1]);
    *ret_more = number[2];
    return l->layer.hidden ? 0 : -ENOMEM;
}

/* `spare`: its directory is no layer yet. */
static int begin_layer(struct layer_held *l, int upper, const struct stat *workspace, bool spare, struct arena *mem,
                       struct err *e)
{
    char boot[40];
    int no = dress_upper(upper, workspace);
    if (no == -EPERM && workspace->st_uid == geteuid())
        return err_hint(e,
                        err_say(e, ERR_CANNOT, "--cow: the workspace '%s' belongs to group %u, and you are no member",
                                l->ask.workspace, (unsigned)workspace->st_gid),
                        "chgrp it to a group of yours: chgrp %u", (unsigned)getegid());
    if (no == -EPERM)
        return err_hint(e,
                        err_say(e, ERR_CANNOT, "--cow: the workspace '%s' belongs to user %u", l->ask.workspace,
                                (unsigned)workspace->st_uid),
                        "run as its owner");
    if (no == 0 && (no = layer_boot(boot)) == -ENOENT)
        return err_hint(e, err_say(e, ERR_CANNOT, "--cow: when this machine was started cannot be read in /proc/sys"),
                        "mount all of /proc: mount -t proc proc /proc");
    auto_fd int top = openat(AT_FDCWD, l->ask.workspace, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (no == 0 && top >= 0)
        repo_remember(l->layer.dir, top, l->stack ? l->stack->below : NULL, l->stack ? l->stack->n : 0, &l->base);
    /* The later the lock is touched, the less of what the host did just before counts as done since. */
    if (no == 0)
        no = look_at_clock(workspace, l);
    if (no < 0)
        return err_sys(e, ERR_SYSTEM, -no, "cannot make a layer of '%s'", l->ask.workspace);
    l->layer.workspace = l->ask.workspace;
    l->layer.name = l->ask.name;
    l->layer.from = l->stack ? l->stack->layers[0].id : NULL;
    l->layer.boot = arena_text(mem, boot);
    l->layer.device = workspace->st_dev;
    l->layer.ino = workspace->st_ino;
    l->layer.created = time(NULL);
    l->layer.booted = layer_booted();
    return l->layer.boot ? put_layer_record(l, spare, e) : err_sys(e, ERR_SYSTEM, ENOMEM, "cannot make a layer");
}

/* The directory of all layers. */
static int open_layers(const char *state, struct arena *mem, struct err *e)
{
    const char *path = arena_printf(mem, "%s/" LAYERS, state);
    int fd = path ? sys_openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0) : -ENOMEM;
    /* What is missing above it, or what root may not make in another user's home, is seen to by make_layers(). */
    if (fd >= 0 && geteuid() == 0 && own_dirs_allowed(path) < 0)
        fd = (close_fd(fd), -ENOENT);
    if (fd == -ENOENT) {
        const int r = make_layers(state, mem, e);
        if (r < 0)
            return r;
        fd = sys_openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    }
    return fd < 0 ? err_sys(e, ERR_SYSTEM, -fd, "cannot open the directory '%s/" LAYERS "' for layers", state) : fd;
}

static int make_room(int layers, const char *id, struct layer_room *ret)
{
    int e = sys_mkdirat(layers, id, 0700);
    if (e == 0)
        e = ret->dir = sys_openat(layers, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    return e < 0 ? e : layer_furnish(ret->dir, ret);
}

/* Nobody sees it before its record, or as long as it has the spare's name. */
static int make_layer_in(int layers, bool spare, const struct stat *workspace, struct layer_held *l, struct arena *mem,
                         struct err *e)
{
    struct layer_room room = {.dir = -1, .upper = -1, .lock = -1};
    int r = spare ? layer_take_spare(layers, &room) : make_room(layers, l->layer.id, &room);
    own_fd int upper = room.upper;
    l->layer.dir = room.dir;
    l->lock = room.lock;
    if (r == 0) {
        r = begin_layer(l, upper, workspace, spare, mem, e);
        if (r < 0 && spare)
            layer_spoil_spare(layers, room.dir);
    } else if (!spare) {
        const bool closed = r == -EROFS || r == -EACCES;
        r = err_sys(e, ERR_SYSTEM, -r, "cannot make the layer '%s'", l->layer.id);
        if (closed)
            r = err_hint(e, r, "layers are kept below HOME: set XDG_STATE_HOME to a directory of yours");
    }
    if (r == 0 && spare)
        r = layer_name_spare(layers, room.dir, l->layer.id);
    if (r < 0 && room.dir >= 0 && !spare)
        (void)layer_set_aside(&l->layer);
    return r;
}

static int make_layer(const char *state, struct arena *mem, struct layer_held *l, struct err *e)
{
    struct stat workspace;
    struct err untold = {0};
    uint64_t number = 0;
    if (stat(l->ask.workspace, &workspace) < 0)
        return err_sys(e, ERR_SYSTEM, errno, "--cow: the workspace '%s'", l->ask.workspace);
    int r = choose_hidden(l, mem, &number);
    if (r < 0)
        return err_sys(e, ERR_SYSTEM, -r, "cannot make a layer");
    snprintf(l->layer.id, sizeof l->layer.id, "%016llx", (unsigned long long)number);
    own_fd int layers = open_layers(state, mem, e);
    if (layers < 0)
        return layers;
    if (make_layer_in(layers, true, &workspace, l, mem, &untold) == 0)
        return 0;
    repo_base_end(&l->base);
    layer_close(&l->layer);
    l->lock = close_fd(l->lock);
    return make_layer_in(layers, false, &workspace, l, mem, e);
}

/* One that was used before. What changed below it meanwhile is found at apply, as its t0 stays. */
static int take_up(const char *state, struct layer_held *l, struct arena *mem, struct err *e)
{
    const struct layer *layer = &l->layer;
    struct stat st;
    char boot[40];
    uint64_t unused;
    if (strcmp(layer->workspace, l->ask.workspace) != 0)
        return err_hint(e,
                        err_say(e, ERR_POLICY, "--cow=%s: this layer is of the workspace '%s', not of '%s'",
                                l->ask.name, layer->workspace, l->ask.workspace),
                        "use another name");
    if (stat(layer->workspace, &st) < 0 || st.st_dev != layer->device || st.st_ino != layer->ino)
        return err_hint(e,
                        err_say(e, ERR_REFUSED, "--cow=%s: '%s' is no longer the directory that the layer was made of",
                                l->ask.name, layer->workspace),
                        "remove the layer: pinfold discard");
    if (layer_is_doubtful(layer))
        return err_hint(e,
                        err_say(e, ERR_REFUSED,
                                "--cow=%s: layer %s may be damaged, because the machine stopped before it was written "
                                "to the disk",
                                l->ask.name, layer->id),
                        "look at it with pinfold diff, then remove it with pinfold discard");
    int r = layer_take(layer, true, &l->lock, e);
    if (r == 0)
        r = stack_check_free(state, layer, mem, e);
    if (r < 0)
        return r;
    /* Mounted by its plain name, and hidden by a new one: the last box may have been told the old one. */
    int no = layer->hidden ? sys_renameat2(layer->dir, layer->hidden, layer->dir, "upper", RENAME_NOREPLACE) : 0;
    if (no < 0 && no != -ENOENT)
        return err_sys(e, ERR_SYSTEM, -no, "layer %s: cannot prepare 'upper'", layer->id);
    if (layer_boot(boot) < 0 || choose_hidden(l, mem, &unused) < 0 || !(l->layer.boot = arena_text(mem, boot)))
        return err_sys(e, ERR_SYSTEM, ENOMEM, "layer %s", layer->id);
    l->layer.synced = false;
    return put_layer_record(l, false, e);
}

/* The layer that ask->from means; a name or ID that fits none is said to be --cow-from's. */
static int find_from(const char *state, struct layer_held *l, struct arena *mem, char ret[17], struct err *e)
{
    struct layer from;
    int r = layer_open(state, l->ask.from, l->ask.workspace, mem, &from, e);
    if (r < 0)
        return err_wrap(e, r, "--cow-from");
    memcpy(ret, from.id, sizeof from.id);
    if (strcmp(from.workspace, l->ask.workspace) != 0)
        r = err_say(e, ERR_POLICY, "--cow-from %s: this layer is of the workspace '%s', not of '%s'", l->ask.from,
                    from.workspace, l->ask.workspace);
    layer_close(&from);
    return r;
}

/* Finds and holds what the layer stands on; `made`: it is there already, and stands on what it stood on. */
static int hold_stack(const char *state, struct layer_held *l, bool made, struct arena *mem, struct err *e)
{
    char from[17] = "";
    int r = l->ask.from ? find_from(state, l, mem, from, e) : 0;
    if (r == 0 && made && l->ask.from && !same(l->layer.from, from))
        return err_hint(e,
                        err_say(e, ERR_REFUSED, "--cow=%s: layer %s stands on %s%s, not on layer %s", l->ask.name,
                                l->layer.id, l->layer.from ? "layer " : "the workspace itself",
                                l->layer.from ? l->layer.from : "", from),
                        "use another name, or leave --cow-from out");
    const struct layer above = {.id = "", .from = made ? l->layer.from : from[0] ? from : NULL};
    if (r < 0 || !above.from)
        return r;
    l->stack = arena_zero(mem, sizeof *l->stack);
    if (!l->stack)
        return err_sys(e, ERR_SYSTEM, ENOMEM, "cannot make a layer");
    r = stack_open(state, &above, mem, l->stack, e);
    return r < 0 ? r : stack_hold(l->stack, e);
}

/* Callers that ask for one name at once find, or make, one layer: the lock is the directory's, until it is held. */
static int lock_names(const char *state, struct arena *mem, int *ret_lock, struct err *e)
{
    const char *path = arena_printf(mem, "%s/" LAYERS, state);
    int r = path ? make_layers(state, mem, e) : err_sys(e, ERR_SYSTEM, ENOMEM, "cannot make a layer");
    if (r < 0)
        return r;
    auto_fd int fd = openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    do
        r = fd < 0 ? -1 : flock(fd, LOCK_EX);
    while (r < 0 && fd >= 0 && errno == EINTR);
    if (r < 0)
        return err_sys(e, ERR_SYSTEM, errno, "cannot lock '%s'", path);
    *ret_lock = take_fd(&fd);
    return 0;
}

int layer_owner_again(const char *state, struct layer *l, struct arena *mem, struct err *e)
{
    struct layer now = {.dir = -1};
    auto_fd int names = -1;
    int r = lock_names(state, mem, &names, e);
    if (r == 0)
        r = layer_open(state, l->id, l->workspace, mem, &now, e);
    if (r < 0)
        return r;
    l->session = now.session;
    l->scope = now.scope;
    layer_close(&now);
    return 0;
}

int layer_hold(const char *state, const struct layer_ask *ask, struct arena *mem, struct layer_held *ret, struct err *e)
{
    struct err none = {0};
    auto_fd int names = -1;
    *ret = LAYER_HELD;
    ret->ask = *ask;
    int r = ask->name ? check_layer_name(ask->name, e) : -ENOENT;
    if (r == 0 && (r = lock_names(state, mem, &names, e)) == 0) {
        r = layer_open(state, ask->name, ask->workspace, mem, &ret->layer, &none);
        if (r < 0 && r != -ENOENT)
            *e = none;
        if (r == 0 && (r = hold_stack(state, ret, true, mem, e)) == 0)
            r = take_up(state, ret, mem, e);
    }
    if (r == -ENOENT && ret->layer.dir < 0) {
        ret->fresh = true;
        r = hold_stack(state, ret, false, mem, e);
        if (r == 0)
            r = make_layer(state, mem, ret, e);
    }
    if (r == 0) {
        ret->path = arena_printf(mem, "%s/" LAYERS "/%s", state, ret->layer.id);
        r = ret->path ? 0 : err_sys(e, ERR_SYSTEM, ENOMEM, "cannot make a layer");
    }
    if (r < 0)
        layer_release(ret);
    return r;
}

int layer_seal(struct layer_held *l, struct err *e)
{
    while (repo_base_step(&l->base))
        ;
    (void)sys_unlinkat(l->layer.dir, REPO_BASE_NEW, 0); /* another layer's, or not whole */
    auto_fd int upper = layer_upper(&l->layer);
    if (upper < 0 || syncfs(upper) < 0)
        return err_sys(e, ERR_SYSTEM, upper < 0 ? -upper : errno, "layer %s: cannot write it to the disk", l->layer.id);
    l->layer.synced = true;
    return put_layer_record(l, false, e);
}

bool layer_is_empty(const struct layer *l)
{
    char room[256] __attribute__((aligned(8)));
    auto_fd int fd = layer_upper(l);
    struct sys_entries entries = {.dir = fd, .room = room, .bytes = sizeof room};
    return fd == -ENOENT || (fd >= 0 && !sys_next_entry(&entries) && entries.no == 0);
}

bool layer_drop_empty(const struct layer *l)
{
    int no = l->hidden ? sys_unlinkat(l->dir, l->hidden, AT_REMOVEDIR) : -ENOENT;
    if (no == -ENOENT)
        no = sys_unlinkat(l->dir, "upper", AT_REMOVEDIR);
    return no == 0;
}

void layer_release(struct layer_held *l)
{
    repo_base_end(&l->base);
    if (l->stack)
        stack_close(l->stack);
    layer_close(&l->layer);
    l->lock = close_fd(l->lock);
}
