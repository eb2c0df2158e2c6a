/*
 * Finds the caller's home and state directories and reads files that decide about a policy, after checking who can
 * write them.
 */
#include "run/world.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/fd.h"
#include "base/ids.h"
#include "survey/written.h"
#include "policy/path.h"
#include "sys/file.h"
#include "user/own_dirs.h"

/* The sixth field of a line of /etc/passwd if its third is the caller's user, else NULL: passwd(5). Zeroes fall in the line. */
static const char *home_in_line(char *line, char *end)
{
    char *field[6] = {line};
    for (size_t i = 1; i < sizeof field / sizeof *field; i++) {
        char *colon = memchr(field[i - 1], ':', (size_t)(end - field[i - 1]));
        if (!colon)
            return NULL;
        *colon = '\0';
        field[i] = colon + 1;
    }
    char *after = memchr(field[5], ':', (size_t)(end - field[5]));
    *(after ? after : end) = '\0';
    return field[2][0] && strtoul(field[2], NULL, 10) == own_uid() && field[5][0] == '/' ? field[5] : NULL;
}

/* What getpwuid() would say without loading a name service. A part at a time: each start with an unusual HOME asks. */
static const char *home_of_passwd(struct arena *mem)
{
    auto_fd int fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC | O_NOCTTY);
    char text[4096];
    size_t kept = 0;
    ssize_t n;
    while (fd >= 0 && (n = read(fd, text + kept, sizeof text - 1 - kept)) > 0) {
        char *line = text, *all = text + kept + n, *end;
        for (; (end = memchr(line, '\n', (size_t)(all - line))); line = end + 1) {
            const char *home = home_in_line(line, end);
            if (home)
                return arena_text(mem, home);
        }
        kept = (size_t)(all - line) < sizeof text - 1 ? (size_t)(all - line) : 0;
        memmove(text, line, kept);
    }
    return arena_text_or_null(mem, kept ? home_in_line(text, text + kept) : NULL);
}

void world_settle_home(void)
{
    const char *home = getenv("HOME");
    if (home && home[0] == '/')
        return;
    auto_arena struct arena *mem = arena_new(2 * PATH_MAX);
    home = mem ? home_of_passwd(mem) : NULL;
    if (home)
        (void)setenv("HOME", home, 1);
}

/* Where distributions make homes: there is no need to read a file, which each start would pay for. USER may be another's, too (su -m),
   whose home is then not the caller's. */
static bool is_usual_home(const char *home)
{
    static const char places[][16] = {"/home/", "/var/home/"};
    const char *user = getenv("USER");
    struct stat st;
    if (own_uid() == 0)
        return same(home, "/root") || same(home, "/var/roothome");
    for (size_t i = 0; user && *user && i < sizeof places / sizeof *places; i++)
        if (str_starts(str_of(home), str_of(places[i])) && same(home + strlen(places[i]), user))
            return stat(home, &st) == 0 && st.st_uid == own_uid();
    return false;
}

/* Homes of others are hidden as a whole (profiles/system.yaml), and with them this one of the caller's. */
static bool is_among_others(const char *other, const char *home)
{
    static const char places[][8] = {"/home", "/root"};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (path_at_or_below(other, places[i]) && !path_at_or_below(home, places[i]))
            return true;
    return false;
}

const char *world_other_home(struct arena *mem)
{
    const char *home = getenv("HOME");
    if (!home || home[0] != '/' || is_usual_home(home))
        return NULL;
    const char *other = home_of_passwd(mem);
    return other && !same(other, home) && !is_among_others(other, home) ? other : NULL;
}

static int find_home(struct arena *mem, const char **ret, struct err *e)
{
    const char *home = getenv("HOME");
    if (!home || home[0] != '/')
        home = home_of_passwd(mem);
    if (!home)
        return err_say(e, ERR_POLICY, "user %u has no known home directory; set HOME to an absolute path",
                       (unsigned)own_uid());
    home = path_clean_at(mem, "/", str_of(home));
    if (!home)
        return err_sys(e, ERR_SYSTEM, ENOMEM, "home directory");
    *ret = home;
    return 0;
}

/* $variable when that is absolute (relative ones are to be ignored: XDG Base Directory Specification). */
static const char *base_directory(struct arena *mem, const char *variable, const char *home, const char *fallback)
{
    const char *base = getenv(variable);
    return path_clean_at(mem, home, base && base[0] == '/' ? str_of(base) : str_of(fallback));
}

static const char *below_base(struct arena *mem, const char *base)
{
    return base ? path_clean_at(mem, base, STR("pinfold")) : NULL;
}

/* 0 or why not, above all -ELOOP: it is over a link. */
static int errno_at(const char *path)
{
    auto_fd int fd = sys_openat2(AT_FDCWD, path, O_PATH | O_CLOEXEC, 0, RESOLVE_NO_SYMLINKS);
    return fd < 0 ? fd : 0;
}

static bool is_over_link(const char *path)
{
    return errno_at(path) == -ELOOP;
}

/* One that does not exist is fine, and is never made; a box could have none in place of a file (/dev/null of services). */
static int check_home(const char *home, struct err *e)
{
    struct stat st;
    if (stat(home, &st) < 0 || S_ISDIR(st.st_mode))
        return 0;
    return err_hint(e, err_say(e, ERR_POLICY, "HOME is '%s', which is no directory", home),
                    "set HOME to a directory of yours");
}

/* `path` without links, unless a box may have made one of them; one that cannot be walked stays, for whoever needs it to say. */
static int take_links_out(struct arena *mem, const char *state, const char *what, const char **path, struct err *e)
{
    char memory[PATH_MAX], real[PATH_MAX];
    bool fits = snprintf(memory, sizeof memory, "%s/written", state) < (int)sizeof memory;
    int r = is_over_link(*path) ? written_walk(fits ? memory : NULL, what, *path, real, NULL, e) : -ENOENT;
    if (r == 0)
        *path = arena_text(mem, real);
    return r == -EPERM ? r : 0;
}

/*
 * Both without links: a box is made of paths that cross none (protocol/step.h). As a rule the state directory lies in the home
 * directory, and one look at it says that neither has any.
 */
static int find_own_places(struct arena *mem, const char **ret_home, const char **ret_state, struct err *e)
{
    const char *home = NULL;
    int r = find_home(mem, &home, e);
    if (r < 0)
        return r;
    const char *base = base_directory(mem, "XDG_STATE_HOME", home, ".local/state"), *state = below_base(mem, base);
    const bool apart = state && !path_at_or_below(base, home);
    const int look = !state || apart ? 0 : errno_at(state);
    if ((apart || look == -ENOTDIR) && (r = check_home(home, e)) < 0)
        return r;
    if (apart || look == -ELOOP) {
        r = take_links_out(mem, state, "HOME", &home, e);
        base = home ? base_directory(mem, "XDG_STATE_HOME", home, ".local/state") : NULL;
        if (r == 0 && base)
            r = take_links_out(mem, state, "state directory", &base, e);
        if (r < 0)
            return r;
        state = below_base(mem, base);
    }
    *ret_home = home;
    *ret_state = state;
    return home && state ? 0 : err_sys(e, ERR_SYSTEM, ENOMEM, "cannot determine home and state directory");
}

int world_state(struct arena *mem, const char **ret, struct err *e)
{
    const char *home = NULL;
    return find_own_places(mem, &home, ret, e);
}

const char *world_written(struct arena *mem, const char *state)
{
    return state ? arena_printf(mem, "%s/written", state) : NULL;
}

int world_judge(const char *state, const char *what, const char *path, char *ret, int *ret_fd, struct err *e)
{
    char memory[PATH_MAX];
    if (ret_fd)
        *ret_fd = -1;
    bool fits = state && snprintf(memory, sizeof memory, "%s/written", state) < (int)sizeof memory;
    int r = written_walk(fits ? memory : NULL, what, path, ret, ret_fd, e);
    return r < 0 && r != -EPERM ? err_sys(e, ERR_POLICY, -r, "cannot open '%s'", path) : r;
}

/* The directory that a caller names to start from. */
static int stand(struct arena *mem, const char *state, const char *cwd, const char **ret, struct err *e)
{
    char real[PATH_MAX];
    auto_fd int found = -1;
    int r = world_judge(state, "directory", cwd, real, &found, e);
    if (r == -EPERM)
        return r;
    if (r < 0 || found < 0)
        return err_sys(e, ERR_POLICY, r < 0 ? -r : ENOENT, "cannot use directory '%s'", cwd);
    *ret = arena_text(mem, real);
    return 0;
}

int world_look(struct arena *mem, const char *cwd, struct world *ret, struct err *e)
{
    struct world w = {0};
    char here[PATH_MAX];

    int r = find_own_places(mem, &w.home, &w.state, e);
    if (r < 0)
        return r;
    const bool found = getcwd(here, sizeof here) != NULL;
    if (!found ||
        here[0] != '/') { /* the kernel finds nothing whose path is longer, musl calls that too small a room */
        const int no = found ? ENOENT : errno == ERANGE ? ENAMETOOLONG : errno;
        return err_hint(e, err_sys(e, ERR_POLICY, no, "cannot find the current directory"),
                        no == ENAMETOOLONG ? "its path is too long: cd to a directory above it"
                                           : "cd to one that exists");
    }
    w.config = below_base(mem, base_directory(mem, "XDG_CONFIG_HOME", w.home, ".config"));
    r = cwd ? stand(mem, w.state, cwd, &w.cwd, e) : 0;
    if (r < 0)
        return r;
    if (!cwd)
        w.cwd = arena_text(mem, here);
    char program[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", program, sizeof program);
    if (n > 0 && (size_t)n < sizeof program)
        w.program = arena_str(mem, (struct str){program, (size_t)n});
    w.user_name = getenv("USER");
    if (!w.user_name)
        w.user_name = getenv("LOGNAME");
    if (arena_failed(mem))
        return err_sys(e, ERR_SYSTEM, ENOMEM, "cannot look up the host");
    *ret = w;
    return 0;
}

/* A group of one's own (user private groups: gid == uid) is nobody else. */
static bool others_may_write(const struct stat *st)
{
    return (st->st_mode & S_IWOTH) || ((st->st_mode & S_IWGRP) && st->st_gid != st->st_uid);
}

/* Whether its file system, which knows no modes, gives all files the one that it was mounted with: chmod(1) changes nothing there. */
static bool has_one_mode(int fd)
{
    static const uint32_t types[] = {0x4d44 /* FAT */, 0x2011bab0 /* exFAT */, 0x7366746e /* NTFS */,
                                     0x65735546 /* fuseblk */};
    struct statfs fs;
    bool one = false;
    for (size_t i = 0; fstatfs(fd, &fs) == 0 && i < sizeof types / sizeof *types; i++)
        one |= (uint32_t)fs.f_type == types[i];
    return one;
}

static int judge_owner(const char *path, int fd, const struct stat *st, enum file_trust trust, struct err *e)
{
    if (trust == FILE_ANYBODYS)
        return 0;
    if (st->st_uid != 0 && (trust == FILE_SYSTEM || st->st_uid != getuid()))
        return err_say(e, ERR_REFUSED, "'%s' belongs to user %u; it must belong to root%s (chown it, or remove it)",
                       path, (unsigned)st->st_uid, trust == FILE_OWN ? " or to you" : "");
    if (others_may_write(st) && has_one_mode(fd))
        return err_say(
            e, ERR_REFUSED,
            "'%s' is writable by others (mode %04o), as is every file of its file system, which keeps no modes: "
            "mount that with umask=022, or keep the file elsewhere (pinfold's own files: set XDG_STATE_HOME)",
            path, (unsigned)(st->st_mode & 07777));
    if (others_may_write(st))
        return err_say(e, ERR_REFUSED, "'%s' is writable by others (mode %04o); run: chmod go-w '%s'", path,
                       (unsigned)(st->st_mode & 07777), path);
    return 0;
}

/* Opens without following a link in the last two components: `.pinfold` and the file in it. */
static int open_no_links(const char *path)
{
    char directory[PATH_MAX];
    const char *slash = strrchr(path, '/');
    size_t n = !slash ? 0 : slash == path ? 1 : (size_t)(slash - path);
    if (n == 0 || n >= sizeof directory)
        return -EINVAL;
    memcpy(directory, path, n);
    directory[n] = 0;
    auto_fd int dir = open(directory, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0)
        return -errno;
    int fd = openat(dir, slash + 1, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/* Of one that tells no size, as some file systems' do, for instance /proc's. */
static int read_unsized(struct arena *mem, int fd, const char *path, size_t max, struct str *ret, struct err *e)
{
    auto_buf struct buf bytes = BUF(max);
    const int no = fd_read_all(fd, &bytes);
    if (no == -EFBIG)
        return err_say(e, ERR_POLICY, "'%s' is larger than %zu bytes", path, max);
    const char *text = no < 0 ? NULL : arena_str(mem, buf_view(&bytes));
    if (!text)
        return err_sys(e, no < 0 ? ERR_POLICY : ERR_SYSTEM, no < 0 ? -no : ENOMEM, "cannot read '%s'", path);
    *ret = (struct str){text, bytes.n};
    return 0;
}

/* The whole of the open file that messages call `path`. */
static int read_open(struct arena *mem, int fd, const char *path, size_t max, enum file_trust trust, struct str *ret,
                     struct err *e)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return err_sys(e, ERR_SYSTEM, errno, "cannot stat '%s'", path);
    if (!S_ISREG(st.st_mode))
        return err_say(e, ERR_POLICY, "'%s' is not a regular file", path);
    int r = judge_owner(path, fd, &st, trust, e);
    if (r < 0)
        return r;
    if (st.st_size == 0)
        return read_unsized(mem, fd, path, max, ret, e);
    size_t room = (size_t)st.st_size, n = 0;
    if ((uint64_t)st.st_size > max)
        return err_say(e, ERR_POLICY, "'%s' is larger than %zu bytes", path, max);
    char *text = arena_zero(mem, room + 1);
    while (text) {
        ssize_t got = read(fd, text + n, room - n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return err_sys(e, ERR_POLICY, errno, "cannot read '%s'", path);
        n += (size_t)got;
        if (got == 0 || n == room)
            break;
    }
    if (!text)
        return err_sys(e, ERR_SYSTEM, ENOMEM, "cannot read '%s'", path);
    *ret = (struct str){text, n};
    return 0;
}

int read_whole(struct arena *mem, const char *path, size_t max, enum file_trust trust, bool no_links, bool optional,
               struct str *ret, struct err *e)
{
    /* O_NONBLOCK: a FIFO must not hold us; it is refused below. */
    auto_fd int fd =
        no_links ? open_no_links(path) : openat(AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    int no = no_links ? -fd : errno;

    if (fd < 0 && optional && (no == ENOENT || no == ENOTDIR))
        return -ENOENT;
    if (fd < 0 && no_links && no == ELOOP)
        return err_say(e, ERR_REFUSED, "'%s' is, or is reached through, a symbolic link; use a real file", path);
    if (fd < 0)
        return err_sys(e, ERR_POLICY, no, "cannot open '%s'", path);
    return read_open(mem, fd, path, max, trust, ret, e);
}

/* Where no link is on the way there is nothing to judge, so it is opened at once. What was judged is opened once more by its
   descriptor, so nobody can put another file in its place meanwhile. */
int read_named(struct arena *mem, const char *state, const char *what, const char *path, size_t max,
               enum file_trust trust, struct str *ret, struct err *e)
{
    char itself[32];
    auto_fd int found = -1;
    auto_fd int plain =
        sys_openat2(AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0, RESOLVE_NO_SYMLINKS);
    if (plain >= 0)
        return read_open(mem, plain, path, max, trust, ret, e);
    int r = world_judge(state, what, path, NULL, &found, e);
    if (r < 0)
        return r;
    if (found < 0)
        return err_sys(e, ERR_POLICY, ENOENT, "cannot open '%s'", path);
    snprintf(itself, sizeof itself, "/proc/self/fd/%d", found);
    auto_fd int fd = open(itself, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return err_sys(e, ERR_POLICY, errno, "cannot open '%s'", path);
    return read_open(mem, fd, path, max, trust, ret, e);
}

int make_private_directories(const char *path, struct err *e)
{
    char why[PATH_MAX];
    const int r = own_dirs_make(path);
    if (r == 0)
        return 0;
    if (own_dirs_why(path, why, sizeof why)[0]) {
        err_say(e, ERR_SYSTEM, "cannot create '%s': %s", path, why);
        return r;
    }
    return err_sys(e, ERR_SYSTEM, -r, "cannot create directory '%s'", path);
}
