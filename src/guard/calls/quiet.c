/*
 * What a monitored box asks most: opens that succeed, and names that are nowhere. They are told by two or three system calls,
 * without a descriptor of the caller's; whatever else it is, calls/monitor.c looks at. Nothing is decided here, either.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "base/hash.h"
#include "guard/calls/calls.h"
#include "protocol/paths.h"
#include "match/proctext.h"

#define KEPT_MS 10000 /* the host may change where a directory's name leads */
#define NEAR    4     /* entries that a text may be in */

/* ---- what directories' names have led to ---- */

/* The caller's link to the directory that a relative path begins at, in the guard's /proc. */
static size_t link_name(const struct guard *g, int dir, char name[32])
{
    const int n = dir == AT_FDCWD ? snprintf(name, 32, "%d/cwd", (int)g->n.pid)
                                  : snprintf(name, 32, "%d/fd/%d", (int)g->n.pid, dir);
    return (size_t)n;
}

/* The directory that the call names, as an absolute path; its length, 0: it has none that could be kept. */
static size_t kept_key(struct guard *g, int dir, const char *text, char key[KEPT_TEXT])
{
    char link[32];
    size_t n = 0;
    const char *slash = strrchr(text, '/');
    if (text[0] != '/') {
        (void)link_name(g, dir, link);
        const long got = sys_readlinkat(g->host_proc, link, key, KEPT_TEXT);
        if (got <= 1 || got >= KEPT_TEXT - 1 || key[0] != '/')
            return 0;
        n = (size_t)got;
        if (!slash)
            return n;
        key[n++] = '/';
    }
    const size_t more = slash ? (size_t)(slash - text) : 0;
    if (!more || n + more > KEPT_TEXT)
        return 0;
    memcpy(key + n, text, more);
    return n + more;
}

static struct kept_dir *kept_at(struct guard *g, const char *key, size_t n)
{
    const uint32_t hash = hash32(HASH32, key, n);
    return &g->kept[(hash ^ hash >> 16) % KEPT_DIRS];
}

void quiet_keep(struct guard *g, int dir, const char *text, const char *path, bool clear)
{
    char key[KEPT_TEXT];
    const size_t n = kept_key(g, dir, text, key), real = (size_t)(strrchr(path, '/') - path);
    struct kept_dir *k = n && real <= KEPT_TEXT ? kept_at(g, key, n) : NULL;
    if (!k)
        return;
    k->until = now_ms() + KEPT_MS;
    k->moves = g->moves;
    k->n = (uint16_t)n;
    k->real_n = (uint16_t)real;
    k->clear = clear;
    memcpy(k->text, key, n);
    memcpy(k->real, path, real);
}

/* Whether nothing that the host may have is kept from the box at `text`, by what was found of its directory. */
static bool is_unmasked(struct guard *g, int dir, const char *text)
{
    char key[KEPT_TEXT], path[KEPT_TEXT + NAME_MAX + 2];
    const char *slash = strrchr(text, '/'), *name = slash ? slash + 1 : text;
    const size_t n = kept_key(g, dir, text, key), name_n = strlen(name);
    const struct kept_dir *k = n ? kept_at(g, key, n) : NULL;
    bool elsewhere;
    if (!k || k->n != n || k->moves != g->moves || memcmp(k->text, key, n) != 0 || now_ms() >= k->until ||
        name_n > NAME_MAX)
        return false;
    if (k->clear)
        return true;
    memcpy(path, k->real, k->real_n);
    path[k->real_n] = '/';
    memcpy(path + k->real_n + 1, name, name_n + 1);
    return !plan_masks(g->plan, path, k->real_n, &elsewhere);
}

/* ---- paths that were looked at ---- */

/* Without their texts: a box that makes two of one sum misses its own events. */
static uint64_t path_sum(const struct guard *g, const char *text, int n)
{
    return hash64(g->seed, text, (size_t)n) | 1;
}

/* The entry of that sum, or the one of its neighbours that is valid for the shortest time: a compiler asks for some hundred paths in turn,
   and two of one place would drive each other out. */
static struct quiet_text *quiet_at(struct guard *g, uint64_t sum)
{
    struct quiet_text *near = &g->quiet[(sum >> 32) % (QUIET_TEXTS / NEAR) * NEAR], *at = near;
    for (size_t i = 0; i < NEAR; i++) {
        if (near[i].sum == sum)
            return &near[i];
        if (near[i].until < at->until)
            at = &near[i];
    }
    return at;
}

static bool is_known(struct guard *g, uint64_t sum)
{
    const struct quiet_text *q = quiet_at(g, sum);
    return q->sum == sum && q->moves == g->moves && now_ms() < q->until;
}

/* Not of a place that is the box's own: what it removes there the host may have. */
static void know(struct guard *g, uint64_t sum, const char *text)
{
    bool clear;
    if (!plan_masks(g->plan, text, (size_t)(strrchr(text, '/') - text), &clear))
        *quiet_at(g, sum) = (struct quiet_text){sum, now_ms() + KEPT_MS, g->moves};
}

/* ---- the call ---- */

/* Whether there is nothing to tell of an access to the path in text[0]. The caller's directory is reached through its links in /proc. */
static bool is_quiet(struct guard *g, int dir, int n, int want, bool exec)
{
    const char *text = g->text[0], *at = text;
    if (text[0] != '/') {
        char *rest = g->walk + link_name(g, dir, g->walk);
        *rest = '/';
        memcpy(rest + 1, text, (size_t)n + 1);
        at = g->walk;
    }
    long no = sys_call(SYS_faccessat2, g->host_proc, at, want, AT_EACCESS, 0, 0);
    if (no == 0)
        return !exec;
    if (no != -ENOENT)
        return no == -ENOTDIR || no == -ELOOP;
    /* Nothing is there, and no link that leads nowhere. */
    return text[n - 1] != '/' && is_unmasked(g, dir, text) &&
           sys_call(SYS_faccessat2, g->host_proc, at, F_OK, AT_SYMLINK_NOFOLLOW, 0, 0) == -ENOENT;
}

/* By its own numbers: that there is nothing to tell of reading a program says nothing of executing it. */
static uint64_t program_sum(const struct guard *g, const char *text, int n)
{
    return path_sum(g, text, n) ^ 2;
}

void quiet_program(struct guard *g, const char *text)
{
    /* What its first line says may be another thing at once where the box can write. */
    if (text[0] == '/' && sys_call(SYS_faccessat2, -1, text, W_OK, AT_EACCESS, 0, 0) != 0)
        know(g, program_sum(g, text, (int)strlen(text)), text);
}

static bool quiet_path(struct guard *g, int dir, uint64_t path, int want, bool exec)
{
    const char *text = g->text[0];
    target_likely(g);
    int n = target_string(g, path, g->text[0]);
    if (n <= 0 && g->who == &g->passing && target_find(g) == 0) /* process_vm_readv(2) may be refused */
        n = target_string(g, path, g->text[0]);
    if (n <= 0) /* or what nobody may read: so pid 1's own command before its execve, whose memory is pid 1's */
        return true;
    if (strncmp(text, "/proc/", 6) == 0) { /* the box's own, and says "self" of its caller */
        if (proc_leaves(text))
            return false;
        if (!exec)
            return true;
    }
    const bool kept = text[0] == '/' && (want == R_OK || exec);
    const uint64_t sum = !kept ? 0 : exec ? program_sum(g, text, n) : path_sum(g, text, n);
    g->moves = atomic_load(&g->shared->moves);
    if (kept && is_known(g, sum))
        return true;
    const bool quiet = is_quiet(g, dir, n, want, exec);
    if (quiet && kept && !exec)
        know(g, sum, text);
    return quiet;
}

const struct looked_call *looked_call(const struct guard *g)
{
    static const struct looked_call all[] = {
        {SYS_openat, 0, 1, R_OK, DENIAL_READ},
#ifdef SYS_open
        {SYS_open, -1, 0, R_OK, DENIAL_READ},
#endif
        {SYS_chdir, -1, 0, X_OK, DENIAL_READ},   {SYS_execve, -1, 0, X_OK, DENIAL_EXEC},
        {SYS_execveat, 0, 1, X_OK, DENIAL_EXEC},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].nr == g->n.data.nr)
            return &all[i];
    return NULL;
}

bool quiet_call(struct guard *g)
{
    const struct looked_call *c = looked_call(g);
    if (!c || g->plan->tier) /* Landlock judges opens alone */
        return false;
    if (!g->seed)
        g->seed = g->n.id | 1; /* the kernel begins to count anywhere */
    return quiet_path(g, looked_dir(g, c), g->n.data.args[(unsigned)c->path], c->want, c->action == DENIAL_EXEC);
}
