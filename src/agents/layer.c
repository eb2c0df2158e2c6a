/*
 * The layer of a project: a directory that boxes write, in place of the agent's own on the host. Files of the host are copied
 * into it, and what was copied is kept beside (`seeds`, which no box reaches): so it is known who changed what. A file that only
 * the host changed is copied again; of JSON that both changed, keys are joined; of other files that both changed, the box's stays.
 *
 * A box can have made anything of its layer, also while this works. So a process does it that keeps no capability and is bound by
 * Landlock to these directories; it follows no link, and parses there what boxes wrote. Its answer is text in memory.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "agents/agents.h"
#include "agents/confine.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/sha256.h"
#include "sys/process.h"
#include "sys/remove.h"
#include "sys/socket.h"

enum { TREE_DEPTH = 16, TREE_FILES = 4096, TREE_BYTES = 128 << 20, ANSWER_MAX = 32 << 20 };

struct layer_work {
    const struct agent_layers *l;
    enum agent_layers_work work;
    const char *wanted;
    const struct agent_kept *file; /* at hand */
    size_t layer;
    char name[1024]; /* of what is at hand, below the layer's directory */
    size_t files, bytes;
    int told; /* where is_news() keeps what was said */
    bool full, found;
    struct buf out;
};

struct text {
    char *p;
    size_t n;
    bool there;
};

static struct str view(const struct text *t)
{
    return (struct str){t->p ? t->p : "", t->n};
}

static bool equal(const struct text *a, const struct text *b)
{
    return a->there == b->there && str_eq(view(a), view(b));
}

/* A regular file below, and nothing for all else: what a box left there instead is no setting. */
static struct text text_of_file(int dir, const char *name)
{
    struct text t = {0};
    auto_fd int fd = agent_file_open(dir, name, false);
    t.there = agent_file_read(fd, &t.p, &t.n) == 0;
    return t;
}

static void text_free(struct text *t)
{
    free(t->p);
}
#define auto_text __attribute__((cleanup(text_free)))

static void say(struct layer_work *w, const char *what)
{
    buf_printf(&w->out, "%s/%s %s\n", w->l->agent->start.layers[w->layer].at, w->name, what);
}

/* A directory below that is one, made if need be: a link or a file in its place is put away. */
static int directory(int dir, const char *name)
{
    struct stat st;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(st.st_mode))
        (void)unlinkat(dir, name, 0);
    if (mkdirat(dir, name, 0700) < 0 && errno != EEXIST)
        return -errno;
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/* ---- bring ---- */

/* Whether this text of the host's is the first for which the box's version stays: each is told once. Kept among the copies, which no box reaches. */
static bool is_news(const struct layer_work *w, int box, const char *name, const struct text *shown)
{
    char note[32], now[17];
    struct stat st;
    uint64_t h = hash64(HASH64, name, strlen(name) + 1);
    h = fstat(box, &st) == 0 ? hash64(h, (const char *)&st.st_ino, sizeof st.st_ino) : h;
    snprintf(note, sizeof note, ".told-%016llx", (unsigned long long)h);
    snprintf(now, sizeof now, "%016llx", (unsigned long long)hash64(h, shown->p, shown->n));
    auto_text struct text before = text_of_file(w->told, note);
    if (before.there && before.n == sizeof now - 1 && memcmp(before.p, now, before.n) == 0)
        return false;
    (void)agent_file_put(w->told, note, now, sizeof now - 1);
    return true;
}

/* What of the host's text a box gets; -EINVAL: it is no JSON. */
static int shown_of(const struct layer_work *w, const struct text *host, struct text *ret)
{
    const struct agent_kept *f = w->file;
    ret->there = true;
    if (f->blank || f->only)
        return agent_json_shown(f, w->l->directory, view(host), &ret->p, &ret->n);
    ret->p = malloc(host->n + 1);
    ret->n = host->n;
    if (!ret->p)
        return -ENOMEM;
    memcpy(ret->p, host->p, host->n);
    return 0;
}

static int bring_file(struct layer_work *w, int from, int box, int seeds, const char *name)
{
    const struct agent_kept *f = w->file;
    auto_text struct text host = {0}, shown = {0};
    int no = agent_file_read(from, &host.p, &host.n);
    if (no == -EFBIG) {
        say(w, "is larger than 16 MiB and is not in the box");
        return 0;
    }
    if (no < 0)
        return no == -EINVAL ? 0 : no; /* a socket, a FIFO */
    w->bytes += host.n;
    host.there = true;
    no = shown_of(w, &host, &shown);
    if (no == -EINVAL) {
        say(w, "is not a JSON object and was not copied into the box; correct it outside");
        return 0;
    }
    auto_text struct text seed = text_of_file(seeds, name);
    if (no < 0 || equal(&seed, &shown))
        return no;
    auto_text struct text mine = text_of_file(box, name);
    if (f->login) {
        if (mine.there && agent_json_own_login(f, view(&mine)))
            return 0;
    } else if (mine.there && equal(&mine, &shown)) { /* a change was taken over */
        return agent_file_put(seeds, name, shown.p, shown.n);
    } else if (seed.there ? !equal(&mine, &seed) : mine.there) {
        auto_text struct text both = {0};
        if (!mine.there || agent_json_join(view(&seed), view(&shown), view(&mine), &both.p, &both.n) < 0) {
            if (is_news(w, box, name, &shown))
                say(w, "was changed both outside and by a box; boxes of this project keep their version");
            return 0;
        }
        no = agent_file_put(box, name, both.p, both.n);
        return no < 0 ? no : agent_file_put(seeds, name, shown.p, shown.n);
    }
    no = agent_file_put(box, name, shown.p, shown.n);
    return no < 0 ? no : agent_file_put(seeds, name, shown.p, shown.n);
}

static int bring(struct layer_work *w, int from, int box, int seeds, const char *name, unsigned depth);

static int bring_entry(struct layer_work *w, int dir, int box, int seeds, const struct dirent *d, unsigned depth)
{
    char to[PATH_MAX];
    auto_fd int from = agent_file_open(dir, d->d_name, false);
    if (from < 0) { /* a link stays one: what it names is read in the box, if it may be */
        ssize_t n = from == -ELOOP ? readlinkat(dir, d->d_name, to, sizeof to - 1) : -1;
        if (n > 0) {
            to[n] = 0;
            may_fail(symlinkat(to, box, d->d_name)); /* or the box has something of that name */
        }
        return 0;
    }
    return bring(w, from, box, seeds, d->d_name, depth);
}

static int bring_directory(struct layer_work *w, int from, int box, int seeds, const char *name, unsigned depth)
{
    auto_fd int to = directory(box, name), seed = directory(seeds, name);
    DIR *all = to < 0 || seed < 0 ? NULL : fdopendir(dup(from));
    if (!all)
        return to < 0 ? to : seed < 0 ? seed : -errno;
    int no = 0;
    for (struct dirent *d; no == 0 && (d = readdir(all));) {
        if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0 || strcmp(d->d_name, ".git") == 0)
            continue; /* a repository's own files would be most of a plugin's bytes */
        if (w->files++ >= TREE_FILES || w->bytes >= TREE_BYTES || depth >= TREE_DEPTH) {
            if (!w->full)
                say(w, "exceeds what is copied (4,096 files, 128 MiB); the rest is not in the box");
            w->full = true;
            break;
        }
        no = bring_entry(w, from, to, seed, d, depth + 1);
    }
    (void)closedir(all);
    return no;
}

static int bring(struct layer_work *w, int from, int box, int seeds, const char *name, unsigned depth)
{
    struct stat st;
    if (fstat(from, &st) < 0)
        return -errno;
    if (w->file->login && !S_ISREG(st.st_mode)) {
        say(w, "is not a regular file, so the box gets no login");
        return 0;
    }
    return S_ISDIR(st.st_mode) ? bring_directory(w, from, box, seeds, name, depth)
                               : bring_file(w, from, box, seeds, name);
}

/* The host has it no longer: it goes, unless a box has made something else of it. */
static int withdraw(int box, int seeds, const char *name)
{
    auto_text struct text seed = text_of_file(seeds, name), mine = text_of_file(box, name);
    if (!seed.there)
        return 0;
    if (equal(&seed, &mine))
        (void)unlinkat(box, name, 0);
    return unlinkat(seeds, name, 0) < 0 && errno != ENOENT ? -errno : 0;
}

/* "a/b/" or "a/f": where something of the host is mounted. */
static int make_place(int box, const char *place)
{
    char part[256];
    auto_fd int dir = dup(box);
    for (const char *slash; (slash = strchr(place, '/')); place = slash + 1) {
        if ((size_t)(slash - place) >= sizeof part)
            return -ENAMETOOLONG;
        snprintf(part, sizeof part, "%.*s", (int)(slash - place), place);
        int next = directory(dir, part);
        if (next < 0)
            return next;
        (void)close(dir);
        dir = next;
    }
    struct stat st;
    if (!*place || (fstatat(dir, place, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode)))
        return 0;
    return agent_file_put(dir, place, "", 0);
}

/* ---- changes ---- */

static bool wanted(struct layer_work *w, const char **ret_key)
{
    size_t n = strlen(w->name);
    if (w->work != AGENT_TAKE || w->found || strncmp(w->wanted, w->name, n) != 0)
        return false;
    *ret_key = w->wanted[n] == ':' ? w->wanted + n + 1 : NULL;
    return !w->wanted[n] || w->wanted[n] == ':';
}

static int take_file(struct layer_work *w, int host, const struct text *seed, const struct text *mine, const char *key)
{
    auto_text struct text theirs = {0};
    auto_buf struct buf bytes = BUF(AGENT_FILE_MAX + 1);
    int no = agent_file_read(host, &theirs.p, &theirs.n);
    if (no < 0 && no != -ENOENT)
        return -EBADMSG; /* what is outside is not known, and would be lost */
    theirs.there = no == 0;
    no = 0;
    if (key)
        no = agent_json_take(w->file, key, view(seed), view(mine), view(&theirs), &bytes);
    else if (w->file->only || w->file->keys || (theirs.there && !equal(&theirs, seed)) || !mine->there)
        return -EBUSY; /* a part of the file, or not what the box began with: as a whole it would undo what is outside */
    else if (theirs.there)
        no = agent_json_take(w->file, NULL, view(seed), view(mine), view(&theirs), &bytes);
    if (!key && (no == -ENOENT || no == -EINVAL || !theirs.there)) { /* nothing was removed in it, or it is no JSON */
        buf_str(&bytes, view(mine));
        no = 0;
    }
    if (no < 0)
        return no;
    w->found = true;
    buf_printf(&w->out, "%zu\n%s\n", w->layer, w->name);
    buf_str(&w->out, buf_view(&bytes));
    return 0;
}

/* The list names the file and shows nothing of it: the sum says which bytes were meant. */
static void put_sum(struct buf *to, const struct text *file)
{
    char sum[65];
    sha256_hex(view(file), sum);
    buf_char(to, '\t');
    buf_text(to, sum);
}

static int look_file(struct layer_work *w, int host, int box, int seeds, const char *name)
{
    const char *key;
    auto_text struct text seed = text_of_file(seeds, name), mine = text_of_file(box, name);
    if (equal(&seed, &mine))
        return 0;
    if (w->work == AGENT_TAKE)
        return wanted(w, &key) ? take_file(w, host, &seed, &mine, key) : 0;
    if (mine.there && agent_json_changes(w->file, w->name, view(&seed), view(&mine), &w->out) == 0)
        return 0;
    buf_printf(&w->out, "%s\t%s", w->name, !mine.there ? "removed" : seed.there ? "changed" : "new");
    if (mine.there)
        put_sum(&w->out, &mine);
    buf_char(&w->out, '\n');
    return 0;
}

/* Names in the box's and in the copied directory, each once. */
static int look(struct layer_work *w, int host, int box, int seeds, const char *name, unsigned depth)
{
    struct stat st;
    size_t n = strlen(w->name);
    bool is_dir = fstatat(box, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
    if (!is_dir)
        return look_file(w, host, box, seeds, name);
    auto_fd int here = openat(box, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    auto_fd int was = openat(seeds, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int no = 0;
    for (int pass = 0; pass < 2 && no == 0; pass++) {
        DIR *all = (pass ? was : here) < 0 ? NULL : fdopendir(dup(pass ? was : here));
        for (struct dirent *d; all && no == 0 && (d = readdir(all));) {
            bool both = pass && fstatat(here, d->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0;
            if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0 || both || depth >= TREE_DEPTH ||
                w->files++ > 4 * TREE_FILES || strpbrk(d->d_name, "\n\t:") ||
                n + strlen(d->d_name) + 2 > sizeof w->name)
                continue;
            snprintf(w->name + n, sizeof w->name - n, "/%s", d->d_name);
            auto_fd int inner = host < 0 ? host : agent_file_open(host, d->d_name, false);
            no = look(w, inner, here, was, d->d_name, depth + 1);
            w->name[n] = 0;
        }
        if (all)
            (void)closedir(all);
    }
    return no;
}

/* ---- a login from inside ---- */

static int look_login(struct layer_work *w, int box)
{
    auto_text struct text mine = {0};
    if (!w->file->renew || w->found)
        return 0;
    mine = text_of_file(box, w->file->name);
    const int which = mine.there ? agent_json_which_login(w->file, view(&mine)) : -1;
    if (which < 0)
        return 0;
    w->found = true;
    buf_printf(&w->out, "%d\n", which);
    buf_str(&w->out, view(&mine));
    return 0;
}

/* ---- what agent-init-config writes, and agent-logout removes ---- */

static bool is_there(int dir, const char *name)
{
    struct stat st;
    return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static bool is_left(struct layer_work *w, int box)
{
    bool left = !w->l->force && is_there(box, w->file->name);
    if (left)
        say(w, "exists and stays as it is (--force overwrites it)");
    return left;
}

/* Also over one that a box has made. A file that holds no key is no more than another setting. */
static int import_login(struct layer_work *w, int host, int box, int seeds)
{
    const struct agent_kept *f = w->file;
    auto_text struct text theirs = {0}, shown = {0};
    if (!f->login || host == -ENOENT || (!f->blank && !f->secret && is_left(w, box)))
        return 0;
    int no = agent_file_read(host, &theirs.p, &theirs.n);
    if (no == 0)
        no = shown_of(w, &theirs, &shown);
    if (no == -EINVAL || no == -EFBIG)
        return -EBADMSG;
    if (no == 0)
        no = agent_file_put(box, f->name, shown.p, shown.n);
    if (no == 0)
        no = agent_file_put(seeds, f->name, shown.p, shown.n);
    if (no == 0)
        say(w, f->blank ? "was copied from this machine, without its refresh token" : "was copied from this machine");
    return no;
}

static int init_file(struct layer_work *w, int box)
{
    const char *text = w->file->note ? w->l->note : w->file->text;
    if (!text || is_left(w, box))
        return 0;
    int no = agent_file_put(box, w->file->name, text, strlen(text));
    if (no == 0)
        say(w, "was written");
    return no;
}

/* ---- what another tool has kept ---- */

struct adopted {
    unsigned taken, there, left; /* `left`: links, and what is too much */
};

/* Regular files alone, and none over what is there. */
static int adopt(struct layer_work *w, int from, int box, const char *name, unsigned depth, struct adopted *ret)
{
    struct stat st;
    auto_text struct text theirs = {0};
    if (fstat(from, &st) < 0)
        return -errno;
    if (!S_ISDIR(st.st_mode)) {
        const bool there = is_there(box, name);
        int no = there ? -EEXIST : agent_file_read(from, &theirs.p, &theirs.n);
        ret->there += there;
        ret->left += no < 0 && !there;
        ret->taken += no == 0;
        w->bytes += theirs.n;
        return no < 0 ? 0 : agent_file_put(box, name, theirs.p, theirs.n);
    }
    const bool other = fstatat(box, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(st.st_mode);
    auto_fd int to = other ? -1 : directory(box, name);
    DIR *all = to < 0 ? NULL : fdopendir(dup(from));
    int no = other ? 0 : to < 0 ? to : all ? 0 : -errno;
    ret->there += other;
    for (struct dirent *d; all && no == 0 && (d = readdir(all));) {
        if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0 || strcmp(d->d_name, ".git") == 0)
            continue;
        auto_fd int one = agent_file_open(from, d->d_name, false);
        const bool full = w->files++ >= TREE_FILES || w->bytes >= TREE_BYTES || depth >= TREE_DEPTH;
        ret->left += one < 0 || full;
        if (one >= 0 && !full)
            no = adopt(w, one, to, d->d_name, depth + 1, ret);
    }
    if (all)
        (void)closedir(all);
    return no;
}

static int adopt_kept(struct layer_work *w, int from, int box)
{
    const struct agent_kept *f = w->file;
    struct adopted a = {0};
    if (from < 0)
        return 0;
    if (f->login || f->from) {
        say(w, f->login ? "is a login and was not taken over; log in here" : "may hold keys and was not taken over");
        return 0;
    }
    int no = adopt(w, from, box, f->name, 0, &a);
    if (no < 0)
        return no;
    say(w, !a.taken  ? "exists and stays as it is"
           : a.there ? "was taken over where nothing was yet"
           : a.left  ? "was taken over, but for links and what exceeds 4,096 files or 128 MiB"
                     : "was taken over");
    return 0;
}

/* What was copied last holds the same key. A box can have left a directory in the login's place. */
static int remove_login(struct layer_work *w, int box, int seeds)
{
    const char *name = w->file->name;
    if (!w->file->login)
        return 0;
    bool was = is_there(box, name);
    remove_tree(box, name);
    remove_tree(seeds, name);
    if (is_there(box, name) || is_there(seeds, name))
        return -EPERM;
    if (was)
        say(w, "was removed");
    return 0;
}

/* ---- the process ---- */

static int work_layer(struct layer_work *w, const struct agent_layer *layer, const struct agent_layer_open *o)
{
    int no = 0;
    for (size_t i = 0; no == 0 && i < layer->n_files; i++) {
        w->file = &layer->files[i];
        w->told = o->seeds;
        w->files = 0;
        snprintf(w->name, sizeof w->name, "%s", w->file->name);
        if ((w->work == AGENT_LOGINS && !w->file->login) ||
            (w->l->no_logins && w->file->login && (w->work == AGENT_LOGINS || w->work == AGENT_BRING)))
            continue;
        if (w->work == AGENT_LOGIN)
            no = look_login(w, o->box);
        else if (w->work == AGENT_IMPORT)
            no = import_login(w, o->files[i], o->box, o->seeds);
        else if (w->work == AGENT_INIT)
            no = init_file(w, o->box);
        else if (w->work == AGENT_ADOPT)
            no = adopt_kept(w, o->files[i], o->box);
        else if (w->work == AGENT_LOGOUT)
            no = remove_login(w, o->box, o->seeds);
        else if (w->work != AGENT_BRING && w->work != AGENT_LOGINS)
            no = w->file->login ? 0 : look(w, o->files[i], o->box, o->seeds, w->file->name, 0);
        else if (o->files[i] == -ENOENT)
            no = withdraw(o->box, o->seeds, w->file->name);
        else if (o->files[i] >= 0)
            no = bring(w, o->files[i], o->box, o->seeds, w->file->name, 0);
        else
            say(w, "cannot be read and is not in the box");
    }
    for (size_t i = 0; no == 0 && w->work == AGENT_BRING && o->places && o->places[i]; i++)
        no = make_place(o->box, o->places[i]);
    return no;
}

static int bind_to(const struct agent_layers *l)
{
    struct agent_rules r;
    int no = agent_rules_begin(&r);
    for (size_t i = 0; no == 0 && i < l->agent->start.n_layers; i++) {
        const struct agent_layer_open *o = &l->open[i];
        no = agent_rules_allow(&r, o->box, AGENT_WRITES);
        if (no == 0)
            no = agent_rules_allow(&r, o->seeds, AGENT_WRITES);
        for (size_t k = 0; no == 0 && k < l->agent->start.layers[i].n_files; k++) {
            struct stat st;
            if (o->files[k] >= 0 && fstat(o->files[k], &st) == 0 && S_ISDIR(st.st_mode))
                no = agent_rules_allow(&r, o->files[k], AGENT_LOOKS);
        }
    }
    return no < 0 ? no : agent_confine(&r);
}

static _Noreturn void work_alone(struct layer_work *w, int out, int say_to)
{
    const struct agent_start *s = &w->l->agent->start;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    int no = bind_to(w->l);
    for (w->layer = 0; no == 0 && w->layer < s->n_layers; w->layer++)
        no = work_layer(w, &s->layers[w->layer], &w->l->open[w->layer]);
    if (no == 0 && (w->work == AGENT_TAKE || w->work == AGENT_LOGIN) && !w->found)
        no = -ENOENT;
    if (no == 0)
        no = buf_ok(&w->out) ? fd_write_all(out, buf_cstr(&w->out), w->out.n) : -ENOMEM;
    (void)sys_send(say_to, &no, sizeof no, MSG_NOSIGNAL);
    _exit(0);
}

static int answer_read(int fd, struct buf *ret)
{
    return lseek(fd, 0, SEEK_SET) < 0 ? -errno : fd_read_all(fd, ret);
}

int agent_layers_do(const struct agent_layers *l, enum agent_layers_work work, const char *name, struct buf *ret,
                    struct err *e)
{
    struct layer_work w = {.l = l, .work = work, .wanted = name, .out = BUF(ANSWER_MAX)};
    int pair[2], no = 0, status;
    auto_fd int memory = sys_memory("agent");
    if (memory < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(e, ERR_SYSTEM, errno ? errno : ENOMEM, "cannot prepare the settings of %s", l->agent->title);
    pid_t pid = fork();
    if (pid == 0) {
        (void)close(pair[0]);
        work_alone(&w, memory, pair[1]);
    }
    (void)close(pair[1]);
    long got = pid < 0 ? -errno : agent_hear(pair[0], agent_patience(), &no, sizeof no);
    (void)close(pair[0]);
    if (pid > 0) {
        (void)kill(pid, SIGKILL);
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            ;
    }
    if (got == 0 || (got > 0 && got != (long)sizeof no))
        return err_say(e, ERR_SYSTEM, "the process that copies the settings of %s died; nothing was started",
                       l->agent->title);
    if (got > 0 && no == 0)
        no = answer_read(memory, ret);
    if (got > 0 && no == 0)
        return 0;
    no = got < 0 ? (int)got : no;
    if ((work == AGENT_TAKE || work == AGENT_LOGIN) &&
        (no == -ENOENT || no == -EBUSY || no == -EFBIG || no == -ENODATA))
        return no;
    if ((work == AGENT_IMPORT || work == AGENT_TAKE) && no == -EBADMSG)
        return no;
    if (work == AGENT_LOGOUT)
        return err_sys(e, ERR_SYSTEM, -no, "cannot remove the login of %s from the layer of this project",
                       l->agent->title);
    return err_sys(e, ERR_SYSTEM, -no, "cannot copy the settings of %s into the layer of this project",
                   l->agent->title);
}
