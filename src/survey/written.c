/*
 * Records which directories boxes could write, and refuses paths that cross a symbolic link in one of them. The
 * record is links in the state directory, by object and by path, which are made without a lock.
 */
#include "survey/written.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/hash.h"
#include "base/str.h"
#include "sys/file.h"
#include "user/own_dirs.h"

enum { LINKS = 40 /* as many as the kernel follows */, MONTH = 30 * 24 * 3600, ROOM = PATH_MAX + 64 };

/* ---- the record ---- */

static void object_entry(char to[ROOM], const char *memory, const struct written_id *id)
{
    snprintf(to, ROOM, "%s/i-%llx-%llx-%llx", memory, (unsigned long long)id->device, (unsigned long long)id->inode,
             (unsigned long long)id->born);
}

/* A collision only makes more directories count. */
static void path_entry(char to[ROOM], const char *memory, const char *path)
{
    uint64_t h[2];
    hash128(path, strlen(path), h);
    snprintf(to, ROOM, "%s/p-%016llx%016llx", memory, (unsigned long long)h[0], (unsigned long long)h[1]);
}

static bool entry_is(const char *entry, const char *text)
{
    char there[PATH_MAX];
    long n = sys_readlinkat(AT_FDCWD, entry, there, sizeof there);
    return n > 0 && n < (long)sizeof there && (size_t)n == strlen(text) && memcmp(there, text, (size_t)n) == 0;
}

/* A different text belongs to a directory that is gone or was moved. */
static int set_entry(const char *entry, const char *text)
{
    char fresh[ROOM + 16];
    int no = sys_symlinkat(text, AT_FDCWD, entry);
    if (no != -EEXIST || entry_is(entry, text))
        return no == -EEXIST ? 0 : no;
    snprintf(fresh, sizeof fresh, "%s.%ld", entry, (long)getpid());
    no = sys_symlinkat(text, AT_FDCWD, fresh);
    return no < 0 && no != -EEXIST ? no : sys_renameat2(AT_FDCWD, fresh, AT_FDCWD, entry, 0);
}

/* If this caller cannot use a state directory, written_covers() finds it missing, too. */
static bool is_no_place(int no)
{
    return no == -EACCES || no == -EPERM || no == -EROFS || no == -ENOTDIR || no == -ENOENT || no == -ENAMETOOLONG;
}

int written_remember(const char *memory, const char *real, const struct written_id *id, struct err *e)
{
    char object[ROOM], path[ROOM];
    if (!memory || strlen(memory) >= PATH_MAX || !real[1])
        return 0;
    object_entry(object, memory, id);
    if (entry_is(object, real))
        return 0;
    path_entry(path, memory, real);
    int no = set_entry(path, real);
    if (no == -ENOENT) {
        no = own_dirs_make(memory);
        if (no == 0)
            no = set_entry(path, real);
    }
    if (no == 0)
        no = set_entry(object, real); /* last, because it marks the entry as complete */
    if (no == 0 && (id->inode & 63) == 0)
        (void)written_tidy(memory);
    return no == 0 || is_no_place(no)
               ? 0
               : err_sys(e, ERR_SYSTEM, -no, "cannot record in '%s' that a box may write '%s'", memory, real);
}

unsigned written_tidy(const char *memory)
{
    DIR *d = memory ? opendir(memory) : NULL;
    unsigned gone = 0;
    for (struct dirent *one; d && (one = readdir(d));) {
        char text[PATH_MAX];
        struct stat entry, there;
        if (one->d_name[0] == '.' || fstatat(dirfd(d), one->d_name, &entry, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        long n = sys_readlinkat(dirfd(d), one->d_name, text, sizeof text - 1);
        if (n <= 0 || time(NULL) - entry.st_mtime < MONTH)
            continue;
        text[n] = 0;
        /* What cannot be examined (a removed medium, a closed directory) may come back. */
        if (lstat(text, &there) < 0 && errno == ENOENT && unlinkat(dirfd(d), one->d_name, 0) == 0)
            gone++;
    }
    if (d)
        (void)closedir(d);
    return gone;
}

const char *written_place(char to[PATH_MAX])
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    char said[PATH_MAX], real[PATH_MAX];
    int n = state && state[0] == '/' ? snprintf(said, sizeof said, "%s/pinfold", state)
            : home && home[0] == '/' ? snprintf(said, sizeof said, "%s/.local/state/pinfold", home)
                                     : PATH_MAX;
    if (n >= PATH_MAX)
        return NULL;
    /* For comparison with paths without links. */
    n = snprintf(to, PATH_MAX, "%s/written", realpath(said, real) ? real : said);
    return n < PATH_MAX ? to : NULL;
}

/* ---- queries ---- */

/* Whether roots are, or would have been, recorded there. */
static bool is_remembering(const char *memory)
{
    char part[PATH_MAX];
    if (!memory || snprintf(part, sizeof part, "%s", memory) >= (int)sizeof part || own_dirs_allowed(memory) < 0)
        return false;
    while (access(part, W_OK | X_OK) < 0) {
        char *slash = strrchr(part, '/');
        if (errno != ENOENT || !slash || slash == part)
            return false;
        *slash = 0;
    }
    return true;
}

/* Where the system's packages have links and nobody works: "/usr/lib/" is all of it, "/usr" only the directory. */
static bool is_packages(const char *real)
{
    static const char places[][20] = {
        "/",         "/usr",      "/var",       "/run",     "/bin/",       "/sbin/",
        "/lib/",     "/lib32/",   "/lib64/",    "/etc",     "/etc/ssl/",   "/etc/alternatives/",
        "/usr/bin/", "/usr/lib/", "/usr/sbin/", "/usr/lib", "/usr/share/", "/usr/libexec/",
        "/proc/",    "/sys/",     "/dev/",      "/boot",    "/nix/",       "/snap/"};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        size_t n = strlen(places[i]);
        bool tree = n > 1 && places[i][n - 1] == '/';
        if (strcmp(real, places[i]) == 0 || (tree && strncmp(real, places[i], n) == 0) ||
            (tree && strncmp(real, places[i], n - 1) == 0 && !real[n - 1]))
            return true;
    }
    return false;
}

/* Where boxes of this user cannot have created a link, even without a record. */
static bool is_system_file(const char *real)
{
    struct stat st;
    if (strcmp(real, "/proc") == 0 || strncmp(real, "/proc/", 6) == 0)
        return true;
    return lstat(real, &st) == 0 && st.st_uid == 0 && !(st.st_mode & S_IWOTH) && (geteuid() != 0 || is_packages(real));
}

static bool entry_is_there(const char *entry)
{
    char text[1];
    return sys_readlinkat(AT_FDCWD, entry, text, sizeof text) > 0;
}

static bool is_root(const char *memory, const char *directory)
{
    char entry[ROOM];
    struct sys_stat st;
    path_entry(entry, memory, directory);
    if (entry_is_there(entry))
        return true;
    if (sys_stat_at(AT_FDCWD, directory, AT_SYMLINK_NOFOLLOW, SYS_STAT_BASIC | SYS_STAT_BORN, &st) < 0)
        return false;
    object_entry(entry, memory, &(struct written_id){written_device(st.major, st.minor), st.inode, sys_stat_born(&st)});
    return entry_is_there(entry);
}

bool written_covers(const char *memory, const char *real)
{
    char part[PATH_MAX];
    size_t n = strlen(real), state = memory ? strlen(memory) : 0;
    if (n >= sizeof part)
        return true;
    /* Storage of sessions and caches are beside the record, and were writable for a box. */
    for (; state && memory[state] != '/'; state--)
        ;
    if (state && strncmp(real, memory, state) == 0 && (!real[state] || real[state] == '/'))
        return true;
    if (!is_remembering(memory))
        return !is_system_file(real);
    memcpy(part, real, n + 1);
    while (n > 1) {
        if (is_root(memory, part))
            return true;
        while (n > 0 && part[--n] != '/')
            ;
        part[n] = 0;
    }
    return false;
}

int written_refuse(const char *what, const char *path, const char *link, const char *real, struct err *e)
{
    const char *name = strrchr(link, '/');
    int directory = name && name > link ? (int)(name - link) : 1;
    return err_say(e, ERR_REFUSED,
                   "%.200s %.200s: '%.100s' is a symbolic link in %.*s, which a box could write to; the path leads to "
                   "%.240s: if that is intended, use this path",
                   what, path, name ? name + 1 : link, directory < 200 ? directory : 200, link, real);
}

/* ---- walking ---- */

struct written_walk {
    const char *memory;
    int dir; /* where it is, and its path */
    char real[PATH_MAX], rest[2 * PATH_MAX], name[256], planted[PATH_MAX];
    unsigned links;
    bool missing; /* the rest is only text */
    bool file;    /* `dir` is not a directory */
};

static int enter_name(struct written_walk *w, int next)
{
    (void)close_fd(w->dir);
    w->dir = next;
    return next < 0 ? next : 0;
}

static int to_root(struct written_walk *w)
{
    strcpy(w->real, "/");
    return enter_name(w, sys_openat(AT_FDCWD, "/", O_PATH | O_DIRECTORY | O_CLOEXEC, 0));
}

static bool append(struct written_walk *w)
{
    size_t n = strlen(w->real);
    n = n == 1 ? 0 : n;
    if (n + strlen(w->name) + 2 > sizeof w->real)
        return false;
    w->real[n] = '/';
    strcpy(w->real + n + 1, w->name);
    return true;
}

static void cut(struct written_walk *w)
{
    char *slash = strrchr(w->real, '/');
    slash[slash == w->real] = 0;
}

/* /proc/N/fd and the like: open objects may have no name, so such links are not followed by their text. */
static bool is_descriptors(const char *real)
{
    const char *last = strrchr(real, '/');
    return strncmp(real, "/proc/", 6) == 0 && last && strcmp(last, "/fd") == 0;
}

static int through_descriptor(struct written_walk *w)
{
    struct sys_stat st;
    int fd = sys_openat(w->dir, w->name, O_PATH | O_CLOEXEC, 0);
    int no = fd < 0 ? fd : sys_stat_at(fd, "", AT_EMPTY_PATH, SYS_STAT_BASIC, &st);
    w->file = no == 0 && !S_ISDIR(st.mode);
    (void)enter_name(w, fd);
    return no < 0 ? no : append(w) ? 0 : -ENAMETOOLONG;
}

int link_before_rest(int fd, char *rest, size_t room, unsigned *links, unsigned most)
{
    char text[PATH_MAX];
    long n = sys_readlinkat(fd, "", text, sizeof text);
    size_t left = strlen(rest);
    if (n < 0)
        return (int)n;
    if (n == 0 || n >= (long)sizeof text || (size_t)n + left + 2 > room)
        return -ENAMETOOLONG;
    if (++*links > most)
        return -ELOOP;
    memmove(rest + n + 1, rest, left + 1);
    memcpy(rest, text, (size_t)n);
    rest[n] = '/';
    return rest[0] == '/';
}

/* Keeps the first link that a box may have created; the walk goes on, because the message names its end. */
static int follow_part(struct written_walk *w, int fd)
{
    const int no = link_before_rest(fd, w->rest, sizeof w->rest, &w->links, LINKS);
    if (no >= 0 && !w->planted[0] && written_covers(w->memory, w->real)) {
        size_t d = strlen(w->real);
        if (d + strlen(w->name) + 2 > sizeof w->planted)
            return -ENAMETOOLONG;
        memcpy(w->planted, w->real, d);
        w->planted[d == 1 ? 0 : d] = '/';
        strcpy(w->planted + (d == 1 ? 0 : d) + 1, w->name);
    }
    return no == 1 ? to_root(w) : no;
}

/* Puts the next component into w->name. */
static int take_part(struct written_walk *w)
{
    size_t from = strspn(w->rest, "/"), n = strcspn(w->rest + from, "/");
    if (n >= sizeof w->name)
        return -ENAMETOOLONG;
    memcpy(w->name, w->rest + from, n);
    w->name[n] = 0;
    memmove(w->rest, w->rest + from + n, strlen(w->rest + from + n) + 1);
    return n > 0;
}

static int step(struct written_walk *w)
{
    struct sys_stat st;
    if (strcmp(w->name, ".") == 0)
        return 0;
    if (w->missing || w->file)
        return strcmp(w->name, "..") == 0 ? -ENOENT : append(w) ? 0 : -ENAMETOOLONG;
    if (strcmp(w->name, "..") == 0) {
        cut(w);
        return enter_name(w, sys_openat(w->dir, "..", O_PATH | O_DIRECTORY | O_CLOEXEC, 0));
    }
    auto_fd int fd = sys_openat(w->dir, w->name, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);
    if (fd == -ENOENT) {
        w->missing = true;
        return append(w) ? 0 : -ENAMETOOLONG;
    }
    int no = fd < 0 ? fd : sys_stat_at(fd, "", AT_EMPTY_PATH, SYS_STAT_BASIC, &st);
    if (no < 0)
        return no;
    if (S_ISLNK(st.mode))
        return is_descriptors(w->real) ? through_descriptor(w) : follow_part(w, fd);
    w->file = !S_ISDIR(st.mode);
    return append(w) ? enter_name(w, take_fd(&fd)) : -ENAMETOOLONG;
}

static int walk_on(struct written_walk *w)
{
    for (;;) {
        int no = take_part(w);
        if (no > 0)
            no = step(w);
        else
            return no;
        if (no < 0)
            return no;
    }
}

/* Absolute, each component once: no "." or "..", no empty one. */
static bool is_plain(const char *path)
{
    for (const char *at = path; *at == '/' && at[1]; at += 1 + strcspn(at + 1, "/")) {
        const size_t n = strcspn(at + 1, "/");
        if (n == 0 || (at[1] == '.' && (n == 1 || (n == 2 && at[2] == '.'))))
            return false;
    }
    return path[0] == '/' && path[strlen(path) - 1] != '/' && strlen(path) < PATH_MAX;
}

/* The usual case by one call: the kernel finds no link on the way, so the path is the real one. */
static bool at_once(struct written_walk *w)
{
    int fd = is_plain(w->rest) ? sys_openat2(AT_FDCWD, w->rest, O_PATH | O_CLOEXEC, 0, RESOLVE_NO_SYMLINKS) : -EINVAL;
    if (fd < 0)
        return false;
    strcpy(w->real, w->rest);
    w->dir = fd;
    return true;
}

static void walk_free(struct written_walk **w)
{
    if (*w)
        (void)close_fd((*w)->dir);
    free(*w);
}
#define auto_walk __attribute__((cleanup(walk_free)))

int written_walk(const char *memory, const char *what, const char *path, char ret_real[PATH_MAX], int *ret_fd,
                 struct err *e)
{
    char here[PATH_MAX];
    here[0] = 0;
    if (path[0] != '/' && (!getcwd(here, sizeof here) || here[0] != '/'))
        return here[0] ? -ENOENT : -errno;
    auto_walk struct written_walk *w = calloc(1, sizeof *w); /* a third of a small stack (ulimit -s 64) */
    if (!w)
        return -ENOMEM;
    w->memory = memory;
    w->dir = -1;
    if (snprintf(w->rest, sizeof w->rest, "%s%s%s", here, here[0] ? "/" : "", path) >= (int)sizeof w->rest)
        return -ENAMETOOLONG;
    int no = 0;
    if (!at_once(w)) {
        no = to_root(w);
        if (no == 0)
            no = walk_on(w);
    }
    auto_fd int fd = w->dir;
    w->dir = -1;
    if (w->planted[0])
        return written_refuse(what, path, w->planted, w->real, e);
    if (no < 0)
        return no == -EPERM ? -EACCES : no; /* -EPERM is reserved for refusals */
    if (ret_real)
        strcpy(ret_real, w->real);
    if (ret_fd)
        *ret_fd = w->missing ? -1 : take_fd(&fd);
    return 0;
}
