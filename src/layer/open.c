/*
 * Finds and opens layers in the state directory, and reads their records, by the clock as it goes now. Times in a
 * record are compared with those of files, so a clock that was set meanwhile is made up for.
 */
#include <jansson.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "layer/store.h"
#include "layer/text.h"
#include "match/path.h"
#include "sys/fd.h"

#define LAYER_DIGITS  16
#define FEWEST_DIGITS 4
#define BOOT_ID       "/proc/sys/kernel/random/boot_id"

static const char *record_text(const json_t *record, const char *key, struct arena *mem)
{
    const char *text = json_string_value(json_object_get(record, key));
    return text ? arena_text(mem, text) : NULL;
}

static int64_t record_number(const json_t *record, const char *key)
{
    return json_integer_value(json_object_get(record, key));
}

/* "upper." and digits, so that no record leads elsewhere. */
static bool is_hidden_name(const char *name)
{
    static const char first[] = "upper.";
    return strncmp(name, first, sizeof first - 1) == 0 && strspn(name + sizeof first - 1, "0123456789abcdef") == 32 &&
           strlen(name) == sizeof first - 1 + 32;
}

static bool take_record(const json_t *record, struct arena *mem, struct layer *ret)
{
    const json_t *began = json_object_get(record, "t0");
    if (record_number(record, "v") != 1 || !json_is_object(began))
        return false;
    ret->name = record_text(record, "name", mem);
    ret->workspace = record_text(record, "workspace", mem);
    ret->boot = record_text(record, "boot", mem);
    ret->from = record_text(record, "from", mem);
    ret->hidden = record_text(record, "upper", mem);
    if (ret->hidden && !is_hidden_name(ret->hidden))
        return false;
    ret->device = (uint64_t)record_number(record, "dev");
    ret->ino = (uint64_t)record_number(record, "ino");
    ret->since = record_number(began, "sec") * 1000000000 + record_number(began, "nsec");
    ret->booted = record_number(began, "booted");
    ret->created = record_number(record, "created");
    ret->session = record_text(record, "session", mem);
    ret->scope = record_text(record, "scope", mem);
    ret->synced = json_is_true(json_object_get(record, "synced"));
    return ret->workspace && ret->workspace[0] == '/' && ret->since > 0;
}

int layer_boot(char boot[40])
{
    auto_fd int fd = openat(AT_FDCWD, BOOT_ID, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, boot, 39);
    if (n <= 0)
        return -ENOENT;
    boot[n] = 0;
    boot[strcspn(boot, "\n")] = 0;
    return 0;
}

static int64_t clock_ns(clockid_t clock)
{
    struct timespec t;
    (void)clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* On a busy machine another program may run between two looks at a clock: of eight measures the one that took the shortest. */
int64_t layer_booted(void)
{
    enum { GOOD = 1000000 };
    int64_t best = INT64_MAX, booted = 0;
    for (int i = 0; i < 8 && best > GOOD; i++) {
        const int64_t before = clock_ns(CLOCK_BOOTTIME), clock = clock_ns(CLOCK_REALTIME),
                      took = clock_ns(CLOCK_BOOTTIME) - before;
        if (took < best) {
            best = took;
            booted = clock - before;
        }
    }
    return booted;
}

/*
 * Whether the host has changed a file since is told by the file's time, which says nothing where the clock was set back in between: a wrong
 * one that the network has corrected, or a machine that forgets the time while it is off. By how much is known until the machine stops.
 */
static void follow_clock(struct layer *l)
{
    enum { SLACK = 50000000 }; /* the two clocks are read one after the other */
    char boot[40];
    const int64_t now = layer_booted();
    if (now > l->since)
        return; /* started later than that */
    if (layer_boot(boot) < 0 || !same(l->boot, boot))
        l->since = 0;
    else if (l->booted && now < l->booted - SLACK)
        l->since = l->since > l->booted - now ? l->since - (l->booted - now) : 0;
}

static int open_one(int layers, const char *id, struct arena *mem, struct layer *ret)
{
    struct str text;
    *ret = (struct layer){.dir = sys_openat(layers, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0)};
    int e = ret->dir < 0 ? ret->dir : text_read(ret->dir, "record", mem, &text);
    json_t *record = e < 0 ? NULL : json_loadb(text.p, text.n, JSON_REJECT_DUPLICATES, NULL);
    if (e == 0 && (!record || !take_record(record, mem, ret)))
        e = -EBADMSG;
    json_decref(record);
    if (e < 0) {
        sys_drop(&ret->dir);
        return e;
    }
    snprintf(ret->id, sizeof ret->id, "%s", id);
    follow_clock(ret);
    return 0;
}

bool layer_is_id(const char *name)
{
    return strlen(name) == LAYER_DIGITS && strspn(name, "0123456789abcdef") == LAYER_DIGITS;
}

static bool is_wanted_layer(const struct layer *l, const char *which, const char *cwd)
{
    if (!which)
        return path_at_or_below(cwd, l->workspace);
    if (same(l->name, which))
        return true;
    return strlen(which) >= FEWEST_DIGITS && strncmp(l->id, which, strlen(which)) == 0;
}

/* Of two the newer one; of two at once that with the greater ID, so that the answer is always the same. */
static bool is_newer(const struct layer *l, const struct layer *than)
{
    return than->dir < 0 || l->since > than->since || (l->since == than->since && strcmp(l->id, than->id) > 0);
}

/* Whether `cwd` lies in the directory that the box had, which is at another path now. */
static bool is_moved(const struct layer *l, const char *cwd)
{
    char path[PATH_MAX];
    struct stat st;
    size_t n = strlen(cwd);
    if (n >= sizeof path)
        return false;
    memcpy(path, cwd, n + 1);
    for (; n > 1; path[n] = 0) {
        if (stat(path, &st) == 0 && (uint64_t)st.st_dev == l->device && (uint64_t)st.st_ino == l->ino)
            return true;
        while (n > 1 && path[n - 1] != '/')
            n--;
        n -= n > 1;
    }
    return false;
}

/* What is told where no layer was found. */
struct layers_missed {
    const char *cwd;
    struct arena *mem;
    const char *damaged; /* the path of one whose record cannot be read */
    const char *moved;   /* the path that the directory had when layer `id` began */
    char id[LAYER_DIGITS + 1];
};

static void miss_moved(void *ctx, const struct layer *l)
{
    struct layers_missed *m = ctx;
    if (m->moved || !is_moved(l, m->cwd))
        return;
    m->moved = arena_text(m->mem, l->workspace);
    snprintf(m->id, sizeof m->id, "%s", l->id);
}

static void miss_damaged(void *ctx, const char *path)
{
    ((struct layers_missed *)ctx)->damaged = path;
}

static int no_layer(const char *state, const char *which, const char *cwd, struct arena *mem, struct err *e)
{
    struct layers_missed m = {.cwd = cwd, .mem = mem};
    struct err untold = {0};
    (void)layer_each(state, mem, miss_moved, miss_damaged, &m, &untold);
    if (which)
        (void)err_say(e, ERR_POLICY, "there is no layer '%s'; see: pinfold layers", which);
    else if (m.moved)
        (void)err_say(e, ERR_POLICY,
                      "there is no layer of '%s', but layer %.8s began when this directory was '%s' (move it back to "
                      "use that layer, or "
                      "remove the layer: pinfold discard %.8s)",
                      cwd, m.id, m.moved, m.id);
    else
        (void)err_say(e, ERR_POLICY, "there is no layer of '%s'; make one: pinfold run --cow -- COMMAND", cwd);
    if (m.damaged && (which || !m.moved))
        (void)err_hint(e, 0, "one layer was not looked at, because its record cannot be read: %s", m.damaged);
    return -ENOENT;
}

int layer_open(const char *state, const char *which, const char *cwd, struct arena *mem, struct layer *ret,
               struct err *e)
{
    char room[4096] __attribute__((aligned(8)));
    const char *path = arena_printf(mem, "%s/" LAYERS, state);
    own_fd int layers = path ? sys_openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0) : -ENOMEM;
    struct sys_entries entries = {.dir = layers, .room = room, .bytes = sizeof room};
    size_t found = 0;
    *ret = (struct layer){.dir = -1};
    if (layers < 0 && layers != -ENOENT)
        return err_sys(e, ERR_SYSTEM, -layers, "cannot open '%s'", path ? path : LAYERS);
    for (const struct sys_dirent *d; layers >= 0 && (d = sys_next_entry(&entries));) {
        struct layer l;
        if (!layer_is_id(d->name) || open_one(layers, d->name, mem, &l) < 0)
            continue;
        if (!is_wanted_layer(&l, which, cwd)) {
            layer_close(&l);
            continue;
        }
        found++;
        struct layer *other = is_newer(&l, ret) ? ret : &l;
        layer_close(other);
        if (other == ret)
            *ret = l;
    }
    if (entries.no < 0) {
        layer_close(ret);
        return err_sys(e, ERR_SYSTEM, -entries.no, "cannot list '%s'", path);
    }
    if (which && found > 1) {
        layer_close(ret);
        return err_say(e, ERR_POLICY, "'%s' is the beginning of %zu layers; write more of it (pinfold layers)", which,
                       found);
    }
    return found ? 0 : no_layer(state, which, cwd, mem, e);
}

int layer_each(const char *state, struct arena *mem, void (*each)(void *ctx, const struct layer *l),
               void (*damaged)(void *ctx, const char *path), void *ctx, struct err *e)
{
    char room[4096] __attribute__((aligned(8)));
    const char *path = arena_printf(mem, "%s/" LAYERS, state);
    own_fd int layers = path ? sys_openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0) : -ENOMEM;
    struct sys_entries entries = {.dir = layers, .room = room, .bytes = sizeof room};
    if (layers == -ENOENT)
        return 0;
    if (layers < 0)
        return err_sys(e, ERR_SYSTEM, -layers, "cannot open '%s'", path ? path : LAYERS);
    for (const struct sys_dirent *d; (d = sys_next_entry(&entries));) {
        struct layer l;
        const int no = layer_is_id(d->name) ? open_one(layers, d->name, mem, &l) : -ENOENT;
        /* One without a record is being made or removed. */
        const char *bad = no < 0 && no != -ENOENT && damaged ? arena_printf(mem, "%s/%s", path, d->name) : NULL;
        if (bad)
            damaged(ctx, bad);
        if (no < 0)
            continue;
        each(ctx, &l);
        layer_close(&l);
    }
    return entries.no < 0 ? err_sys(e, ERR_SYSTEM, -entries.no, "cannot list '%s'", path) : 0;
}

int layer_upper(const struct layer *l)
{
    const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    int fd = l->hidden ? sys_openat(l->dir, l->hidden, flags, 0) : -ENOENT;
    return fd == -ENOENT ? sys_openat(l->dir, "upper", flags, 0) : fd;
}

void layer_close(struct layer *l)
{
    sys_drop(&l->dir);
}

/* ---- the lock, so that it can be seen without being taken ---- */

/*
 * Held by flock(2), which one has to take to know whether somebody has it; who only looks would be taken for a use, and hold up the next
 * for as long as he is stopped. So the whole file is locked by its description, too, which can be asked for without taking it. A box
 * of a version before that is in use for whoever takes the layer, and is not for who looks.
 */
static int layer_mark(int fd, int how)
{
    struct flock all = {.l_type = how == LOCK_EX ? F_WRLCK : F_RDLCK, .l_whence = SEEK_SET};
    return sys_fcntl(fd, F_OFD_SETLK, (long)(uintptr_t)&all);
}

int layer_lock_now(int fd, int how)
{
    const int no = sys_flock(fd, how | LOCK_NB);
    if (no == 0) /* without such locks (ENOLCK) nobody sees the use before he takes the layer */
        (void)layer_mark(fd, how);
    return no;
}
