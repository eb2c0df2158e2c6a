/*
 * Where the shelf of a checkout is on the host, and what is written down there about its branches. A directory of the
 * user's own in the state directory; boxes get parts of it mounted, never the whole.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "project/branch.h"
#include "sys/file.h"
#include "sys/remove.h"
#include "user/own_dirs.h"
#include "user/replace.h"

#define SHELVES "pinfold-shelves"
#define PREFIX  "agent-sbx-repo-"
#define NEW     ".new-" /* and the process's number: what is to replace a file */
enum { MAX_WRAPPER = 16 * 1024 };

#define VERSION 1 /* of what lies in a shelf, and of what its scripts expect */

/* XDG_STATE_HOME or ~/.local/state, without the shelves. */
static bool state_home(char ret[PATH_MAX])
{
    const char *moved = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    int n = moved && moved[0] == '/' ? snprintf(ret, PATH_MAX, "%s", moved)
            : home && home[0] == '/' ? snprintf(ret, PATH_MAX, "%s/.local/state", home)
                                     : -1;
    while (n > 1 && n < PATH_MAX && ret[n - 1] == '/')
        ret[--n] = 0;
    return n > 0 && n < PATH_MAX - 512; /* room for all that lies below */
}

int shelf_of(const char *real, struct shelf *ret, char *why, size_t room)
{
    char state[PATH_MAX], hash[PROJECT_HASH];
    if (!state_home(state))
        return project_fail(
            why, room, 0, "there is no place for the branches' storage: HOME is not an absolute path, or is too long");
    project_hash(real, hash);
    snprintf(ret->name, sizeof ret->name, PREFIX "%s", hash);
    if (snprintf(ret->top, sizeof ret->top, "%s/" SHELVES "/%s", state, ret->name) >= (int)sizeof ret->top)
        return project_fail(why, room, ENAMETOOLONG, "'%s'", state);
    return 0;
}

static bool is_own(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid();
}

/* The parents are the user's as they are; what is ours is for the user alone. */
static int make_ours(char *path, const char *from)
{
    const int allowed = own_dirs_allowed(path);
    if (allowed < 0)
        return allowed;
    for (char *at = path + 1; (at = strchr(at, '/')); at++) {
        *at = 0;
        bool made = mkdir(path, 0700) == 0;
        bool ours = at - path >= (long)strlen(from);
        int no = errno;
        bool good = made || (no == EEXIST && (!ours || is_own(path)));
        *at = '/';
        if (!good && (ours || no != EEXIST) && access(path, F_OK) < 0)
            return no == EEXIST ? -EPERM : -no;
    }
    return mkdir(path, 0700) == 0 || (errno == EEXIST && is_own(path)) ? 0 : errno == EEXIST ? -EPERM : -errno;
}

/* Of one that still runs the lock is held. */
static void sweep_scratch(const char *checks)
{
    DIR *names = opendir(checks);
    struct dirent *d;
    while (names && (d = readdir(names)) != NULL) {
        if (strncmp(d->d_name, "run-", 4) != 0)
            continue;
        auto_fd int fd = openat(dirfd(names), d->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
            remove_tree(dirfd(names), d->d_name);
    }
    if (names)
        (void)closedir(names);
}

int shelf_scratch(const struct shelf *s, char path[PATH_MAX], int *ret, char *why, size_t room)
{
    enum { TRIES = 1000 }; /* of 10 ms: who ends removes empty directories above, and a sweep what is not locked yet */
    static const struct timespec moment = {.tv_nsec = 10000000};
    char checks[PATH_MAX];
    int r = 0;
    if (snprintf(checks, sizeof checks, "%s/checks", s->top) >= (int)sizeof checks ||
        snprintf(path, PATH_MAX, "%s/run-%d", checks, (int)getpid()) >= PATH_MAX)
        return project_fail(why, room, ENAMETOOLONG, "'%s'", s->top);
    for (int i = 0; i < TRIES; i++) {
        r = make_ours(checks, s->top);
        if (r == 0 && i == 0)
            sweep_scratch(checks);
        if (r == 0)
            r = mkdir(path, 0700) < 0 ? -errno : 0;
        auto_fd int fd = r == 0 ? open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
        if (r == 0 && fd < 0)
            r = -errno;
        /* A sweep that came first holds the lock until it has removed what is there. */
        if (r == 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 && access(path, F_OK) == 0) {
            *ret = take_fd(&fd);
            return 0;
        }
        if (r < 0 && r != -ENOENT && r != -EEXIST)
            break;
        (void)nanosleep(&moment, NULL);
    }
    return project_fail(why, room, r < 0 ? -r : EBUSY, "cannot make '%s'", path);
}

void shelf_scratch_end(const struct shelf *s, const char *path)
{
    char checks[PATH_MAX];
    remove_tree(AT_FDCWD, path);
    snprintf(checks, sizeof checks, "%s/checks", s->top);
    if (rmdir(checks) == 0)
        (void)rmdir(s->top); /* unless the project has branches */
}

/* What was to replace a file when its process was killed. */
static void sweep_new(const char *dir)
{
    DIR *names = opendir(dir);
    struct dirent *d;
    while (names && (d = readdir(names)) != NULL) {
        int pid;
        if (sscanf(d->d_name, NEW "%d", &pid) == 1 && kill(pid, 0) < 0 && errno == ESRCH)
            (void)unlinkat(dirfd(names), d->d_name, 0);
    }
    if (names)
        (void)closedir(names);
}

/* Replaces a small file at once. */
static int put_file(const char *dir, const char *name, const char *text, unsigned mode)
{
    char path[PATH_MAX + PROJECT_WORD], beside[PATH_MAX + PROJECT_WORD + 24];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    snprintf(beside, sizeof beside, "%s/" NEW "%d", dir, (int)getpid());
    sweep_new(dir);
    int r = file_replace(AT_FDCWD, path, beside, str_of(text), mode);
    if (r == -ENOENT) /* one that does not see this process has swept */
        r = file_replace(AT_FDCWD, path, beside, str_of(text), mode);
    return r;
}

/* As much of it as fits, as a text; 0 or -errno. */
static int get_file(const char *dir, const char *name, char *text, size_t room)
{
    char path[PATH_MAX + PROJECT_WORD];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    auto_fd int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, room - 1);
    const int no = n < 0 ? -errno : 0;
    text[n > 0 ? n : 0] = 0;
    return no;
}

static int note_project(const struct shelf *s, const char *real, char *why, size_t room)
{
    char text[PATH_MAX + 2], version[16];
    int r = get_file(s->top, "version", text, sizeof text);
    if (r == 0) {
        if (atoi(text) <= VERSION)
            return 0;
        return project_fail(
            why, room, 0,
            "the branches' storage of '%s' was made by a newer pinfold (%s); use that version or a later one", real,
            s->top);
    }
    if (r != -ENOENT) /* what has made it is not known */
        return project_fail(why, room, -r, "cannot read '%s/version'", s->top);
    snprintf(text, sizeof text, "%s\n", real);
    snprintf(version, sizeof version, "%d\n", VERSION);
    r = put_file(s->top, "project", text, 0600);
    if (r == 0)
        r = put_file(s->top, "version", version, 0600);
    return r < 0 ? project_fail(why, room, -r, "cannot write '%s'", s->top) : 0;
}

int shelf_make(const struct shelf *s, const char *real, const char *word, char *why, size_t room)
{
    static const struct {
        const char *name, *below; /* below the word */
    } parts[] = {{"shelf", NULL}, {"branches", NULL}, {"remote", NULL}, {"remote/", ""}, {"remote/", "/bin"}};
    static char path[PATH_MAX + PROJECT_WORD + 16], there[MAX_WRAPPER];
    size_t ours = strlen(s->top) - strlen(s->name) - sizeof "/" SHELVES + 1;
    char from[PATH_MAX];
    snprintf(from, sizeof from, "%.*s/" SHELVES, (int)(ours > 0 ? ours - 1 : 0), s->top);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const char *below = parts[i].below;
        snprintf(path, sizeof path, "%s/%s%s%s", s->top, parts[i].name, below ? word : "", below ? below : "");
        int r = access(path, F_OK) == 0 && is_own(path) ? 0 : make_ours(path, from);
        if (r < 0)
            return project_fail(why, room, -r, "cannot make '%s', the branches' storage", path);
    }
    int r = note_project(s, real, why, room);
    /* What boxes find before git, as this version has it. */
    const char *wrapper = project_script("git_wrapper");
    if (r < 0 || (get_file(path, "git", there, sizeof there) == 0 && same(there, wrapper)))
        return r;
    r = put_file(path, "git", wrapper, 0755);
    return r < 0 ? project_fail(why, room, -r, "cannot write '%s/git'", path) : 0;
}

int shelf_lock(const struct shelf *s, char *why, size_t room)
{
    char path[PATH_MAX + 16];
    snprintf(path, sizeof path, "%s/lock", s->top);
    int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return project_fail(why, room, errno, "cannot open '%s'", path);
    const int no = fd_lock(fd, LOCK_EX);
    if (no < 0) {
        (void)close(fd);
        return project_fail(why, room, -no, "cannot lock '%s'", path);
    }
    return fd;
}

void shelf_remove(const struct shelf *s)
{
    remove_tree(AT_FDCWD, s->top);
}

enum branch_state branch_read(const struct shelf *s, const char *word, char name[BRANCH_NAME_MAX + 1])
{
    char text[BRANCH_NAME_MAX + 32], dir[PATH_MAX + 16];
    snprintf(dir, sizeof dir, "%s/branches", s->top);
    if (get_file(dir, word, text, sizeof text) < 0)
        return BRANCH_NONE;
    char *line = strchr(text, '\n'), *end = line ? strchr(line + 1, '\n') : NULL;
    if (!end || end - line - 1 > BRANCH_NAME_MAX)
        return BRANCH_MAKING; /* whatever it is, it is not known to be whole */
    *line = *end = 0;
    snprintf(name, BRANCH_NAME_MAX + 1, "%s", line + 1);
    return same(text, "ready") ? BRANCH_READY : BRANCH_MAKING;
}

int branch_write(const struct shelf *s, const char *word, enum branch_state state, const char *name)
{
    char text[BRANCH_NAME_MAX + 32], dir[PATH_MAX + 16];
    snprintf(dir, sizeof dir, "%s/branches", s->top);
    snprintf(text, sizeof text, "%s\n%s\n", state == BRANCH_READY ? "ready" : "making", name);
    return put_file(dir, word, text, 0600);
}

void branch_forget(const struct shelf *s, const char *word)
{
    char path[PATH_MAX + PROJECT_WORD + 16];
    snprintf(path, sizeof path, "%s/branches/%s", s->top, word);
    (void)unlink(path);
    snprintf(path, sizeof path, "%s/remote/%s", s->top, word);
    remove_tree(AT_FDCWD, path);
    snprintf(path, sizeof path, "%s/checks/%s", s->top, word);
    remove_tree(AT_FDCWD, path);
    snprintf(path, sizeof path, "%s/remote/.%s.lock", s->top, word);
    (void)unlink(path);
    snprintf(path, sizeof path, "%s/remote/.%s.begin", s->top, word);
    (void)unlink(path);
}

int branch_each(const struct shelf *s, int (*each)(void *ctx, const char *word, const char *name), void *ctx)
{
    char dir[PATH_MAX + 16], name[BRANCH_NAME_MAX + 1] = "";
    struct dirent **names = NULL;
    int r = 0;
    snprintf(dir, sizeof dir, "%s/branches", s->top);
    int n = scandir(dir, &names, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        if (r == 0 && names[i]->d_name[0] != '.' && branch_read(s, names[i]->d_name, name) == BRANCH_READY)
            r = each(ctx, names[i]->d_name, name);
        free(names[i]);
    }
    free(names);
    return r;
}

int shelf_each(int (*each)(void *ctx, const struct shelf *s, const char *real), void *ctx)
{
    char state[PATH_MAX], dir[PATH_MAX + 32], real[PATH_MAX + 2];
    struct dirent **names = NULL;
    int r = 0;
    if (!state_home(state))
        return 0;
    snprintf(dir, sizeof dir, "%s/" SHELVES, state);
    int n = scandir(dir, &names, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        struct shelf s;
        snprintf(s.name, sizeof s.name, "%.63s", names[i]->d_name);
        bool good = r == 0 && strncmp(s.name, PREFIX, sizeof PREFIX - 1) == 0 &&
                    snprintf(s.top, sizeof s.top, "%s/%s", dir, s.name) < (int)sizeof s.top &&
                    get_file(s.top, "project", real, sizeof real) == 0;
        free(names[i]);
        if (!good)
            continue;
        real[strcspn(real, "\n")] = 0;
        r = each(ctx, &s, real);
    }
    free(names);
    return r;
}

/* What a box has written is looked at by descriptors, over no link. */
static bool is_in(int shelf, const char *path)
{
    int fd = sys_openat2(shelf, path, O_PATH | O_CLOEXEC, 0, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
    (void)close_fd(fd);
    return fd >= 0;
}

bool branch_is_there(const struct shelf *s, const char *word)
{
    char path[PATH_MAX + 16], git[PROJECT_WORD + 32];
    snprintf(path, sizeof path, "%s/shelf", s->top);
    snprintf(git, sizeof git, "worktrees/%s/.git", word);
    auto_fd int shelf = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return shelf >= 0 && is_in(shelf, "repo/.git/HEAD") && is_in(shelf, git);
}
