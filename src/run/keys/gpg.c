/*
 * Prepares the filter of the gpg-agent on the host's side, before the box is planned. What names a key becomes its keygrip here, by what
 * the caller's own gpg says; the box gets a GNUPGHOME of its own with the public keys, which is thrown away.
 */
#include "run/keys/gpg.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "sys/remove.h"

enum { GPG_OUTPUT_MAX = 64 << 20, GPG_SECONDS = 60, FIELDS = 13, F_TYPE = 0, F_ID = 9, F_CAN = 11, GPG_LINE = 300 };

struct gpg_preparing {
    const struct pinfold_policy *p;
    struct arena *mem;
    struct gpg_ready *ready;
    struct err *e;
    struct str listing; /* of secret keys, as gpg's colons */
    struct gpg_named_key *keys;
    size_t n_keys;
    const char **flags;
    size_t n_flags;
};

static int gpg_no_memory(struct err *e)
{
    return err_sys(e, ERR_SYSTEM, ENOMEM, "cannot prepare the gpg-agent");
}

static const char *gpg_origin(const struct gpg_preparing *s, uint32_t origin, char room[512])
{
    return policy_origin(s->p->policy, origin, room, 512);
}

/* ---- the caller's gpg ---- */

/* Not by PATH, in which a project's directories may stand. */
static const char *program_at(const char *name, char room[64])
{
    static const char *const dirs[] = {"/usr/local/bin", "/usr/bin", "/bin"};
    for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++) {
        snprintf(room, 64, "%s/%s", dirs[i], name);
        if (access(room, X_OK) == 0)
            return room;
    }
    return NULL;
}

static _Noreturn void become_gpg(const char *path, const char *const *words, int to)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    (void)dup2(null, 0);
    (void)dup2(to, 1);
    (void)dup2(null, 2);
    for (int i = 1; i < 32; i++)
        (void)signal(i, SIG_DFL);
    (void)execv(path, (char *const *)(uintptr_t)words);
    _exit(127);
}

/* What `words` print; the exit status, or -errno. */
static int output_of(const char *path, const char *const *words, struct buf *out)
{
    int pair[2], status = 0;
    const time_t until = time(NULL) + GPG_SECONDS;
    if (pipe2(pair, O_CLOEXEC) < 0)
        return -errno;
    pid_t pid = fork();
    if (pid == 0)
        become_gpg(path, words, pair[1]);
    (void)close(pair[1]);
    auto_fd int from = pair[0];
    int no = pid < 0 ? -errno : 0;
    while (no == 0) {
        struct pollfd p = {.fd = from, .events = POLLIN};
        char *room = buf_space(out, 65536);
        if (!room)
            no = -ENOMEM;
        else if (time(NULL) > until || poll(&p, 1, GPG_SECONDS * 1000) == 0)
            no = -ETIMEDOUT;
        ssize_t n = no == 0 ? read(from, room, 65536) : 0;
        if (n > 0)
            buf_grew(out, (size_t)n);
        else if (no == 0 && n == 0)
            break;
        else if (no == 0 && errno != EINTR)
            no = -errno;
    }
    if (pid > 0 && no < 0)
        (void)kill(pid, SIGKILL);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return no < 0 ? no : WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static int ask_gpg(const struct gpg_preparing *s, const char *program, const char *const *words, struct buf *out)
{
    char room[64], by[512];
    const char *path = program_at(program, room);
    const char *origin = gpg_origin(s, s->p->policy->gpg_keys[0].origin, by);
    if (!path)
        return err_say(s->e, ERR_CANNOT, "gpg_agent (%s): %s is not installed (Debian's package gnupg)", origin,
                       program);
    int r = output_of(path, words, out);
    if (r != 0 || !buf_ok(out))
        return err_say(s->e, ERR_CANNOT, "gpg_agent (%s): '%s %s' failed: %s", origin, path, words[1],
                       r < 0 ? strerror(-r)
                       : r   ? "see what it prints"
                             : "it prints too much");
    return 0;
}

/* ---- keys ---- */

static void split_fields(struct str line, struct str fields[FIELDS])
{
    for (size_t i = 0; i < FIELDS; i++)
        fields[i] = str_until(&line, ':');
}

struct listed_key { /* a key or subkey */
    struct str grip, print;
    bool signs, wanted;
};

/* By keygrip, fingerprint, long key id, user id or the address in it. */
static bool key_fits(const char *key, const struct listed_key *k)
{
    const struct str want = str_of(key);
    if (want.n == GPG_GRIP)
        return str_is_nocase(k->grip, key) || str_is_nocase(k->print, key);
    return want.n == 16 && k->print.n > 16 && str_is_nocase(str_skip(k->print, k->print.n - 16), key);
}

static bool user_fits(const char *key, struct str user)
{
    const size_t n = strlen(key);
    if (str_is(user, key))
        return true;
    const char *open = memchr(user.p, '<', user.n);
    return n && strchr(key, '@') && open && (size_t)(user.p + user.n - open) == n + 2 &&
           memcmp(open + 1, key, n) == 0 && open[n + 1] == '>';
}

static int name_one(struct gpg_preparing *s, const struct listed_key *k, struct str user)
{
    for (size_t i = 0; i < s->n_keys; i++) {
        if (str_is(k->grip, s->keys[i].grip))
            return 0;
    }
    if (s->n_keys == GPG_MAX_KEYS)
        return err_say(s->e, ERR_POLICY, "gpg_agent: more than %d keys", GPG_MAX_KEYS);
    struct gpg_named_key *slot = arena_push(s->mem, &s->keys, &s->n_keys, sizeof *slot);
    char *name = slot ? arena_printf(s->mem, "%.*s (%.*s)", (int)user.n, user.p, 16,
                                     k->print.n > 16 ? k->print.p + k->print.n - 16 : k->print.p)
                      : NULL;
    if (!name)
        return gpg_no_memory(s->e);
    for (char *c = name; *c; c++)
        *c = *c >= ' ' && *c < 127 ? *c : '?';
    snprintf(slot->grip, sizeof slot->grip, "%.*s", (int)k->grip.n, k->grip.p);
    slot->name = name;
    return 0;
}

/* All keys under one primary key; `whole`: it was named itself, or by a user. */
static int take_block(struct gpg_preparing *s, struct listed_key *keys, size_t n, const char *key, bool by_user,
                      struct str user, bool *found, bool *unable)
{
    const bool whole = by_user || (n && key_fits(key, &keys[0]) && !str_is_nocase(keys[0].grip, key));
    for (size_t i = 0; i < n; i++) {
        if (!whole && !key_fits(key, &keys[i]))
            continue;
        *unable |= !keys[i].signs;
        if (!keys[i].signs || keys[i].grip.n != GPG_GRIP)
            continue;
        int r = name_one(s, &keys[i], user);
        if (r < 0)
            return r;
        *found = true;
    }
    return 0;
}

static int find_gpg_key(struct gpg_preparing *s, const struct gpg_key_rule *rule)
{
    enum { BLOCK = 32 };
    struct listed_key keys[BLOCK];
    struct str rest = s->listing, f[FIELDS], user = {0};
    size_t n = 0;
    bool by_user = false, found = false, unable = false;
    int r = 0;
    for (bool more = true; r == 0 && more;) {
        more = rest.n > 0;
        struct str line = str_until(&rest, '\n');
        split_fields(line, f);
        if (!more || str_is(f[F_TYPE], "sec")) {
            r = take_block(s, keys, n, rule->key, by_user, user, &found, &unable);
            n = 0;
            by_user = false;
            user = (struct str){0};
        }
        if ((str_is(f[F_TYPE], "sec") || str_is(f[F_TYPE], "ssb")) && n < BLOCK)
            keys[n++] = (struct listed_key){.signs = f[F_CAN].n && memchr(f[F_CAN].p, 's', f[F_CAN].n)};
        else if (str_is(f[F_TYPE], "fpr") && n)
            keys[n - 1].print = f[F_ID];
        else if (str_is(f[F_TYPE], "grp") && n)
            keys[n - 1].grip = f[F_ID];
        else if (str_is(f[F_TYPE], "uid")) {
            by_user |= user_fits(rule->key, f[F_ID]);
            user = user.n ? user : f[F_ID];
        }
    }
    char room[512];
    if (r == 0 && !found)
        r = err_say(s->e, ERR_POLICY, "gpg key '%s' (%s): %s; see: gpg --list-secret-keys --with-keygrip", rule->key,
                    gpg_origin(s, rule->origin, room),
                    unable ? "it cannot sign" : "gpg has no secret key with that keygrip, fingerprint or user id");
    return r;
}

static int name_gpg_keys(struct gpg_preparing *s)
{
    static const char *const words[] = {"gpg",           "--list-secret-keys", "--batch",
                                        "--with-colons", "--with-keygrip",     NULL};
    struct buf out = BUF(GPG_OUTPUT_MAX);
    int r = ask_gpg(s, "gpg", words, &out);
    const char *copy = r == 0 ? arena_str(s->mem, buf_view(&out)) : NULL;
    s->listing = (struct str){copy, out.n};
    buf_free(&out);
    if (r == 0 && !copy)
        r = gpg_no_memory(s->e);
    for (size_t i = 0; r == 0 && i < s->p->policy->n_gpg_keys; i++)
        r = find_gpg_key(s, &s->p->policy->gpg_keys[i]);
    s->ready->box.rules.keys = s->keys;
    s->ready->box.rules.n_keys = s->n_keys;
    s->ready->box.rules.confirm = s->p->policy->gpg_confirm;
    return r;
}

/* ---- where a passphrase is asked for ---- */

static void add_key_option(struct gpg_preparing *s, const char ***list, size_t *n, const char *name, const char *value)
{
    for (const char *c = value; c && *c; c++) {
        if (*c < ' ' || *c == 127)
            return;
    }
    const char **slot =
        value && *value && strlen(value) < GPG_LINE - 40 ? arena_push(s->mem, list, n, sizeof *slot) : NULL;
    if (slot)
        *slot = arena_printf(s->mem, "OPTION %s=%s\n", name, value);
}

/* The person's terminal and display, as their own gpg would say them; a box's would lead the question elsewhere. */
static int dialogue_options(struct gpg_preparing *s)
{
    const char **list = NULL, **end;
    size_t n = 0;
    char tty[64];
    for (int fd = 0; fd < 3; fd++) {
        if (isatty(fd) && ttyname_r(fd, tty, sizeof tty) == 0) {
            add_key_option(s, &list, &n, "ttyname", tty);
            add_key_option(s, &list, &n, "ttytype", getenv("TERM"));
            break;
        }
    }
    add_key_option(s, &list, &n, "display", getenv("DISPLAY"));
    add_key_option(s, &list, &n, "xauthority", getenv("XAUTHORITY"));
    add_key_option(s, &list, &n, "lc-ctype", getenv("LC_ALL") ? getenv("LC_ALL") : getenv("LC_CTYPE"));
    end = arena_push(s->mem, &list, &n, sizeof *end);
    s->ready->box.rules.options = list;
    return end ? 0 : gpg_no_memory(s->e);
}

static int agent_socket(struct gpg_preparing *s)
{
    static const char *const words[] = {"gpgconf", "--list-dirs", "agent-socket", NULL};
    static const char *const launch[] = {"gpgconf", "--launch", "gpg-agent", NULL};
    auto_buf struct buf out = BUF(1 << 20);
    int r = ask_gpg(s, "gpgconf", launch, &out);
    if (r == 0)
        r = ask_gpg(s, "gpgconf", words, &out);
    if (r < 0)
        return r;
    struct str text = buf_view(&out), line = str_until(&text, '\n');
    s->ready->box.agent = arena_str(s->mem, line);
    if (line.n && line.p[0] == '/' && line.n < sizeof((struct sockaddr_un *)0)->sun_path &&
        !memchr(line.p, '%', line.n))
        return s->ready->box.agent ? 0 : gpg_no_memory(s->e);
    return err_say(s->e, ERR_CANNOT, "gpg_agent: gpgconf says that the agent's socket is '%.*s', which is not a path",
                   (int)line.n, line.p);
}

/* ---- what the box sees ---- */

static int box_flag(struct gpg_preparing *s, const char *name, const char *value)
{
    const char **slot = arena_push(s->mem, &s->flags, &s->n_flags, sizeof *slot);
    const char **second = slot ? arena_push(s->mem, &s->flags, &s->n_flags, sizeof *slot) : NULL;
    if (!second || !value)
        return gpg_no_memory(s->e);
    s->flags[s->n_flags - 2] = name;
    s->flags[s->n_flags - 1] = value;
    return 0;
}

static int write_into(int dir, const char *name, struct str text)
{
    auto_fd int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    return fd < 0 ? -errno : fd_write_all(fd, text.p, text.n);
}

/* The public keys, and a file in place of the socket that says where that is: gpg looks for it beside its keyring. */
static int make_home(struct gpg_preparing *s, const char *home)
{
    static const char *const words[] = {"gpg", "--export", "--batch", NULL};
    auto_buf struct buf keys = BUF(GPG_OUTPUT_MAX);
    char redirect[128];
    int r = ask_gpg(s, "gpg", words, &keys);
    if (r < 0)
        return r;
    snprintf(redirect, sizeof redirect, "%%Assuan%%\nsocket=%s/" AGENT_SOCKET "\n", s->ready->place.dir);
    int no = mkdir(home, 0700) < 0 ? -errno : 0;
    auto_fd int dir = no == 0 ? open(home, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
    if (no == 0)
        no = dir < 0 ? -errno : write_into(dir, "pubring.gpg", buf_view(&keys));
    if (no == 0)
        no = write_into(dir, "gpg.conf", STR("no-autostart\n"));
    if (no == 0)
        no = write_into(dir, "S.gpg-agent", str_of(redirect));
    return no < 0 ? err_sys(s->e, ERR_SYSTEM, -no, "cannot create '%s' for gpg", home) : 0;
}

static int make_gpg_place(struct gpg_preparing *s)
{
    int r = agent_place_make("gpg", &s->ready->place, &s->ready->box.listener, s->e);
    if (r < 0)
        return r;
    const char *dir = s->ready->place.dir, *home = arena_printf(s->mem, "%s/home", dir);
    r = home ? make_home(s, home) : gpg_no_memory(s->e);
    if (r == 0)
        r = box_flag(s, "unix-socket", arena_printf(s->mem, "%s/" AGENT_SOCKET, dir));
    if (r == 0)
        r = box_flag(s, "mount", arena_printf(s->mem, "%s:%s", home, home));
    return r < 0 ? r : box_flag(s, "env", arena_printf(s->mem, "GNUPGHOME=%s", home));
}

int gpg_begin(const struct pinfold_policy *p, struct arena *mem, struct gpg_ready *ret, const char ***ret_flags,
              struct err *e)
{
    struct gpg_preparing s = {.p = p, .mem = mem, .ready = ret, .e = e};
    *ret = GPG_READY;
    int r = name_gpg_keys(&s);
    if (r == 0)
        r = dialogue_options(&s);
    if (r == 0)
        r = agent_socket(&s);
    if (r == 0)
        r = make_gpg_place(&s);
    const char **end = r == 0 ? arena_push(mem, &s.flags, &s.n_flags, sizeof *end) : NULL;
    *ret_flags = s.flags;
    return r == 0 && !end ? gpg_no_memory(e) : r;
}

void gpg_end(struct gpg_ready *g)
{
    g->box.listener = close_fd(g->box.listener);
    agent_place_end(&g->place);
    *g = GPG_READY;
}
