/*
 * Runs in a container of an image that somebody else made: follows no link in its walk, reads bounded parts of few files, and executes
 * nothing. All names that it prints are the image's.
 */
#include "run/image/look.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/json.h"
#include "sys/file.h"

enum {
    LOOK_BYTES = 1 << 20,   /* of a file that is read */
    LOOK_ANSWER = 4 << 20,  /* of what is printed */
    LOOK_ENTRIES = 4000000, /* names that the walk sees */
    LOOK_DEPTH = 100,       /* levels */
    LOOK_LISTED = 64,       /* paths of one list */
    LOOK_RULES = 200        /* lines of sudo's */
};

struct image_look {
    struct buf setuid, capable, exposed; /* paths, a NUL behind each */
    size_t n_setuid, n_capable, n_exposed, n_entries;
    bool cut;
    dev_t device;
};

static bool look_read(int dir, const char *name, struct buf *ret)
{
    struct stat st;
    auto_fd int fd = openat(dir, name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    buf_free(ret);
    *ret = BUF(LOOK_BYTES + 1);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return false;
    for (size_t n = 0; n < LOOK_BYTES;) {
        char *to = buf_space(ret, 4096);
        ssize_t k = to ? read(fd, to, LOOK_BYTES - n < 4096 ? LOOK_BYTES - n : 4096) : -1;
        if (k <= 0)
            return k == 0;
        buf_grew(ret, (size_t)k);
        n += (size_t)k;
    }
    return true;
}

/* ---- the walk ---- */

/* What distributions have, in the directories where they have it; nothing of it works in a box, where no program gains privileges. */
static bool look_is_usual(const char *path)
{
    static const char *const dirs[] = {"/bin/",     "/sbin/",        "/usr/bin/", "/usr/sbin/",
                                       "/usr/lib/", "/usr/libexec/", "/lib/",     NULL};
    static const char *const names[] = {"su",
                                        "mount",
                                        "umount",
                                        "passwd",
                                        "chsh",
                                        "chfn",
                                        "newgrp",
                                        "gpasswd",
                                        "chage",
                                        "expiry",
                                        "sudo",
                                        "sudoedit",
                                        "unix_chkpwd",
                                        "pam_timestamp_check",
                                        "ssh-keysign",
                                        "ssh-agent",
                                        "wall",
                                        "write",
                                        "bsd-write",
                                        "crontab",
                                        "fusermount",
                                        "fusermount3",
                                        "newuidmap",
                                        "newgidmap",
                                        "ping",
                                        "ping4",
                                        "ping6",
                                        "bbsuid",
                                        "dbus-daemon-launch-helper",
                                        "utempter",
                                        NULL};
    const char *slash = strrchr(path, '/');
    bool there = false;
    for (const char *const *d = dirs; *d; d++)
        there |= strncmp(path, *d, strlen(*d)) == 0;
    for (const char *const *n = names; there && *n; n++) {
        if (same(slash + 1, *n))
            return true;
    }
    return false;
}

static void look_list(struct buf *to, size_t *n, const char *path)
{
    if ((*n)++ < LOOK_LISTED)
        buf_put(to, path, strlen(path) + 1);
}

static void look_at_image_file(struct image_look *l, int dir, const char *name, const struct stat *st, const char *path)
{
    char value[64];
    const bool runs = st->st_mode & 0111;
    if (runs && st->st_mode & (S_ISUID | S_ISGID) && !(look_is_usual(path) && st->st_uid == 0))
        look_list(&l->setuid, &l->n_setuid, path);
    if (!runs)
        return;
    auto_fd int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd >= 0 && sys_fgetxattr(fd, "security.capability", value, sizeof value) > 0 && !look_is_usual(path))
        look_list(&l->capable, &l->n_capable, path);
}

static void look_walk(struct image_look *l, int dir, char path[PATH_MAX], size_t n, unsigned depth)
{
    DIR *names = fdopendir(dir);
    struct dirent *d;
    if (!names) {
        (void)close_fd(dir);
        return;
    }
    while ((d = readdir(names)) != NULL) {
        struct stat st;
        if (same(d->d_name, ".") || same(d->d_name, ".."))
            continue;
        size_t more = strlen(d->d_name);
        if (l->n_entries == LOOK_ENTRIES || depth == LOOK_DEPTH || n + more + 2 > PATH_MAX) {
            l->cut = true;
            break;
        }
        l->n_entries++;
        if (fstatat(dirfd(names), d->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
            (S_ISDIR(st.st_mode) && st.st_dev != l->device))
            continue; /* /proc, /dev: the engine's */
        path[n] = '/';
        memcpy(path + n + 1, d->d_name, more + 1);
        if (S_ISREG(st.st_mode))
            look_at_image_file(l, dirfd(names), d->d_name, &st, path);
        int below =
            S_ISDIR(st.st_mode) ? openat(dirfd(names), d->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
        if (below >= 0)
            look_walk(l, below, path, n + 1 + more, depth + 1);
        path[n] = 0;
    }
    (void)closedir(names);
}

static void look_put_list(struct json *j, const char *name, const struct buf *list)
{
    json_array(j, name);
    for (size_t at = 0; at < list->n; at += strlen(list->p + at) + 1)
        json_text(j, NULL, list->p + at);
    json_array_end(j);
}

/* ---- programs ---- */

static bool look_find(const char *name, char ret[PATH_MAX])
{
    const char *path = getenv("PATH");
    struct str rest = str_of(path && path[0] ? path : "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    struct stat st;
    while (rest.n) {
        struct str dir = str_until(&rest, ':');
        int n = snprintf(ret, PATH_MAX, "%.*s/%s", (int)dir.n, dir.p, name);
        if (dir.n && dir.p[0] == '/' && n > 0 && n < PATH_MAX && stat(ret, &st) == 0 && S_ISREG(st.st_mode) &&
            st.st_mode & 0111)
            return true;
    }
    return false;
}

static void look_put_programs(struct json *j, int argc, char **argv)
{
    char at[PATH_MAX];
    json_array(j, "programs");
    for (int i = 0; i < argc; i++) {
        if (look_find(argv[i], at))
            json_text(j, NULL, argv[i]);
    }
    json_array_end(j);
}

/* Directories of PATH, and programs in them, that everybody may replace. */
static void look_exposed(struct image_look *l)
{
    const char *path = getenv("PATH");
    struct str rest = str_of(path);
    while (rest.n) {
        struct str dir = str_until(&rest, ':');
        char at[PATH_MAX];
        struct stat st;
        if (!dir.n || dir.p[0] != '/' || dir.n >= sizeof at)
            continue;
        snprintf(at, sizeof at, "%.*s", (int)dir.n, dir.p);
        if (stat(at, &st) == 0 && S_ISDIR(st.st_mode) && st.st_mode & 0002 && !(st.st_mode & S_ISVTX))
            look_list(&l->exposed, &l->n_exposed, at);
    }
}

/* ---- users ---- */

struct look_user {
    struct str name, home;
    unsigned uid, gid;
    bool known;
};

/* The fields of a line of passwd(5) or group(5). */
static size_t look_fields(struct str line, struct str *ret, size_t most)
{
    size_t n = 0;
    while (n < most && (line.n || n == 0))
        ret[n++] = str_until(&line, ':');
    return n;
}

static void look_user(const struct buf *passwd, const char *said, struct look_user *ret)
{
    struct str rest = buf_view(passwd), wanted = str_of(said);
    wanted = str_until(&wanted, ':');
    const bool number = wanted.n && strspn(wanted.p, "0123456789") >= wanted.n;
    while (rest.n) {
        struct str f[7] = {{0}};
        if (look_fields(str_until(&rest, '\n'), f, 7) < 6 || !str_eq(number ? f[2] : f[0], wanted))
            continue;
        *ret = (struct look_user){.name = f[0], .home = f[5], .known = true};
        ret->uid = (unsigned)strtoul(f[2].p, NULL, 10);
        ret->gid = (unsigned)strtoul(f[3].p, NULL, 10);
        return;
    }
    if (number)
        ret->uid = (unsigned)strtoul(wanted.p, NULL, 10);
}

static bool look_is_member(struct str members, struct str name)
{
    while (members.n) {
        if (str_eq(str_until(&members, ','), name))
            return true;
    }
    return false;
}

static void look_put_groups(struct json *j, const struct look_user *u)
{
    auto_buf struct buf group = BUF(0);
    json_array(j, "groups");
    (void)look_read(AT_FDCWD, "/etc/group", &group);
    struct str rest = buf_view(&group);
    while (rest.n && u->known) {
        struct str f[4] = {{0}};
        if (look_fields(str_until(&rest, '\n'), f, 4) < 3)
            continue;
        if ((unsigned)strtoul(f[2].p, NULL, 10) == u->gid || look_is_member(f[3], u->name))
            json_str(j, NULL, f[0]);
    }
    json_array_end(j);
}

static void look_put_place(struct json *j, const char *name, const char *path)
{
    struct stat st;
    json_object(j, name);
    const bool there = path[0] == '/' && stat(path, &st) == 0 && S_ISDIR(st.st_mode);
    json_bool(j, "there", there);
    if (there) {
        unsigned entries = 0;
        DIR *d = opendir(path);
        while (d && entries < 1000 && readdir(d))
            entries++;
        if (d)
            (void)closedir(d);
        json_uint(j, "uid", st.st_uid);
        json_uint(j, "gid", st.st_gid);
        json_uint(j, "mode", st.st_mode & 07777);
        json_uint(j, "entries", entries > 2 ? entries - 2 : 0);
    }
    json_object_end(j);
}

static void look_put_user(struct json *j, const char *said)
{
    auto_buf struct buf passwd = BUF(0);
    struct look_user u = {.known = false};
    char home[PATH_MAX] = "";
    (void)look_read(AT_FDCWD, "/etc/passwd", &passwd);
    look_user(&passwd, said, &u);
    json_object(j, "user");
    json_bool(j, "known", u.known);
    json_str(j, "name", u.name);
    json_uint(j, "uid", u.uid);
    json_uint(j, "gid", u.gid);
    look_put_groups(j, &u);
    if (u.home.n < sizeof home)
        snprintf(home, sizeof home, "%.*s", (int)u.home.n, u.home.p ? u.home.p : "");
    json_text(j, "home_path", home);
    look_put_place(j, "home", home);
    json_object_end(j);
}

/* ---- sudo ---- */

/* Lines that are rules or aliases, continued ones joined. */
static void look_put_rules(struct json *j, struct str text, size_t *n)
{
    auto_buf struct buf line = BUF(65536);
    while (text.n && *n < LOOK_RULES) {
        struct str one = str_until(&text, '\n');
        if (one.n && one.p[one.n - 1] == '\\') {
            buf_put(&line, one.p, one.n - 1);
            continue;
        }
        buf_str(&line, one);
        struct str whole = str_trim(buf_view(&line));
        if (whole.n && whole.p[0] != '#' && whole.p[0] != '@' && !str_starts(whole, STR("Defaults"))) {
            json_str(j, NULL, whole);
            ++*n;
        }
        buf_free(&line);
        line = BUF(65536);
    }
}

static void look_put_sudo(struct json *j)
{
    auto_buf struct buf text = BUF(0);
    size_t n = 0;
    json_array(j, "sudo");
    if (look_read(AT_FDCWD, "/etc/sudoers", &text))
        look_put_rules(j, buf_view(&text), &n);
    DIR *d = opendir("/etc/sudoers.d");
    for (struct dirent *at; d && (at = readdir(d)) != NULL;) {
        /* sudo leaves out such names, too */
        if (!strchr(at->d_name, '.') && at->d_name[strlen(at->d_name) - 1] != '~' &&
            look_read(dirfd(d), at->d_name, &text))
            look_put_rules(j, buf_view(&text), &n);
    }
    if (d)
        (void)closedir(d);
    json_array_end(j);
}

/* ---- all of it ---- */

static bool look_is_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0;
}

static void look_put_system(struct json *j)
{
    auto_buf struct buf os = BUF(0);
    struct str name = {0}, rest;
    (void)look_read(AT_FDCWD, "/etc/os-release", &os);
    for (rest = buf_view(&os); rest.n && !name.n;) {
        struct str line = str_until(&rest, '\n');
        if (str_starts(line, STR("PRETTY_NAME=")))
            name = str_skip(line, sizeof "PRETTY_NAME=" - 1);
    }
    if (name.n > 1 && name.p[0] == '"')
        name = (struct str){name.p + 1, name.n - 2};
    json_str(j, "system", name);
    json_bool(j, "sh", access("/bin/sh", X_OK) == 0);
    json_bool(j, "bash", access("/bin/bash", X_OK) == 0);
    json_bool(j, "certificates",
              look_is_file("/etc/ssl/certs/ca-certificates.crt") || look_is_file("/etc/ssl/cert.pem") ||
                  look_is_file("/etc/pki/tls/certs/ca-bundle.crt"));
    json_bool(j, "marker", access("/.agent-sandbox", F_OK) == 0);
    json_bool(j, "firewall", look_is_file("/usr/local/bin/init-firewall.sh"));
}

int image_look_main(int argc, char **argv)
{
    struct image_look l = {.setuid = BUF(LOOK_BYTES), .capable = BUF(LOOK_BYTES), .exposed = BUF(LOOK_BYTES)};
    auto_buf struct buf out = BUF(LOOK_ANSWER);
    struct json j = JSON(&out);
    char path[PATH_MAX] = "";
    struct stat st;
    int root = argc < 2 ? -1 : open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root < 0 || fstat(root, &st) < 0)
        return 2;
    l.device = st.st_dev;
    look_walk(&l, root, path, 0, 0);
    look_exposed(&l);
    json_object(&j, NULL);
    look_put_system(&j);
    look_put_user(&j, argv[0]);
    look_put_place(&j, "workspace", "/workspace");
    look_put_place(&j, "workdir", argv[1]);
    look_put_programs(&j, argc - 2, argv + 2);
    look_put_sudo(&j);
    look_put_list(&j, "setuid", &l.setuid);
    look_put_list(&j, "capable", &l.capable);
    look_put_list(&j, "exposed", &l.exposed);
    json_uint(&j, "listed", l.n_setuid + l.n_capable + l.n_exposed);
    json_uint(&j, "entries", l.n_entries);
    json_bool(&j, "cut", l.cut || l.n_setuid > LOOK_LISTED || l.n_capable > LOOK_LISTED);
    json_object_end(&j);
    buf_char(&out, '\n');
    buf_free(&l.setuid);
    buf_free(&l.capable);
    buf_free(&l.exposed);
    return buf_ok(&out) && fd_write_all(1, out.p, out.n) == 0 ? 0 : 1;
}
