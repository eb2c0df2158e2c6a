/*
 * Finds and removes containers and volumes that dead boxes left behind, and remembers which daemons were used. A box
 * that was killed cannot clean up, and the daemon, which could, does not know that it is dead.
 */
#include "backends/container/container_left.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sha256.h"
#include "backends/container/container.h"
#include "backends/container/container_ask.h"
#include "backends/container/http.h"
#include "plan/make.h"
#include "user/own_dirs.h"
#include "user/replace.h"

#define CLIENT_MS    60000
#define IN_USE_TRIES 300 /* of 100 ms */
#define UNUSED_TIME  600 /* seconds */
#define MAX_LISTED   (8u << 20)

/* ---- which daemons were used ---- */

static void note_path(const char *state, const struct container_daemon *d, char path[PATH_MAX])
{
    char key[2 * PATH_MAX], sum[65];
    int n = snprintf(key, sizeof key, "%d %s\n%s", d->podman, d->host ? d->host : "", d->context ? d->context : "");
    sha256_hex((struct str){key, n > 0 && n < (int)sizeof key ? (size_t)n : 0}, sum);
    snprintf(path, PATH_MAX, "%s/daemons/%.16s", state, sum);
}

void container_answers(const char *state, const struct container_daemon *d)
{
    char path[PATH_MAX], said[PATH_MAX + 8];
    note_path(state, d, path);
    snprintf(said, sizeof said, "%s.said", path);
    (void)unlink(said);
}

void container_note(const char *state, const struct container_daemon *d)
{
    char path[PATH_MAX], beside[PATH_MAX + 16], text[2 * PATH_MAX + 32];
    container_answers(state, d);
    note_path(state, d, path);
    if (utimensat(AT_FDCWD, path, NULL, AT_SYMLINK_NOFOLLOW) == 0)
        return;
    int n = snprintf(text, sizeof text, "%s\n%s\n%s\n", d->podman ? "podman" : "docker", d->host ? d->host : "",
                     d->context ? d->context : "");
    char *slash = strrchr(path, '/');
    *slash = 0;
    if (own_dirs_allowed(state) < 0)
        return;
    (void)mkdir(state, 0700);
    (void)mkdir(path, 0700);
    *slash = '/';
    snprintf(beside, sizeof beside, "%s.%d", path, (int)getpid());
    (void)file_replace_unsynced(AT_FDCWD, path, beside, (struct str){text, (size_t)n}, 0600);
}

void container_unnote(const char *state, const struct container_daemon *d)
{
    char path[PATH_MAX];
    struct stat st;
    note_path(state, d, path);
    if (lstat(path, &st) == 0 && time(NULL) - st.st_mtime > UNUSED_TIME)
        (void)unlink(path);
}

bool container_say_missing(const char *state, const struct container_daemon *d, char path[PATH_MAX])
{
    char said[PATH_MAX + 8];
    note_path(state, d, path);
    snprintf(said, sizeof said, "%s.said", path);
    auto_fd int fd = open(said, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    return fd >= 0 || errno != EEXIST;
}

static const char *next_line(struct arena *mem, char **at)
{
    char *line = *at, *end = strchr(line, '\n');
    if (!end)
        return NULL;
    *end = 0;
    *at = end + 1;
    return line[0] ? arena_text(mem, line) : NULL;
}

size_t container_noted(const char *state, struct arena *mem, const struct container_daemon **ret)
{
    struct container_daemon *all = NULL;
    size_t n = 0;
    const char *dir = arena_printf(mem, "%s/daemons", state);
    DIR *d = dir ? opendir(dir) : NULL;
    for (struct dirent *entry; d && (entry = readdir(d));) {
        char text[2 * PATH_MAX + 32], *at = text;
        auto_fd int fd =
            strlen(entry->d_name) == 16 ? openat(dirfd(d), entry->d_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
        ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
        text[got > 0 ? got : 0] = 0;
        const char *engine = next_line(mem, &at);
        struct container_daemon *one = engine ? arena_push(mem, &all, &n, sizeof *one) : NULL;
        if (one) {
            one->podman = same(engine, "podman");
            one->host = next_line(mem, &at);
            one->context = next_line(mem, &at);
        }
    }
    if (d)
        (void)closedir(d);
    *ret = all;
    return n;
}

/* ---- what they have ---- */

struct asking {
    struct policy policy; /* used only to name the daemon */
    struct container_ask ask;
};

static int begin(struct asking *a, const struct container_daemon *d, struct arena *mem, struct err *e)
{
    *a = (struct asking){.policy = {.docker_host = d->host, .docker_context = d->context}};
    a->ask = (struct container_ask){.policy = &a->policy, .mem = mem, .podman = d->podman};
    return container_find(&a->ask, e);
}

static const char *label(struct arena *mem, const struct node *labels, const char *key)
{
    const struct node *n = labels && labels->kind == NODE_MAP ? node_get(labels, key) : NULL;
    const char *s = n && n->kind == NODE_SCALAR ? arena_str(mem, n->text) : NULL;
    return s ? s : "";
}

struct finding {
    struct arena *mem;
    const char *instance;
    struct container_thing *all;
    size_t n;
};

static int take_all(struct finding *f, const struct node *list, bool volumes)
{
    for (size_t i = 0; list && list->kind == NODE_LIST && i < list->n; i++) {
        const struct node *one = &list->items[i];
        const struct node *labels = one->kind == NODE_MAP ? node_get(one, "Labels") : NULL;
        const char *name = label(f->mem, one, volumes ? "Name" : "Id");
        /* The engine filters; we check again. */
        if (!name[0] || !same(label(f->mem, labels, CONTAINER_LABEL ".instance"), f->instance))
            continue;
        struct container_thing *t = arena_push(f->mem, &f->all, &f->n, sizeof *t);
        if (!t)
            return -ENOMEM;
        *t = (struct container_thing){.volume = volumes,
                                      .name = name,
                                      .session = label(f->mem, labels, CONTAINER_LABEL ".session"),
                                      .boot = label(f->mem, labels, CONTAINER_LABEL ".boot"),
                                      .process = label(f->mem, labels, CONTAINER_LABEL ".process")};
    }
    return 0;
}

static int list_podman(const struct container_ask *ask, struct finding *f, bool volumes, struct err *e)
{
    const char *filter = arena_printf(f->mem, "label=" CONTAINER_LABEL ".instance=%s", f->instance);
    const char *const containers[] = {"ps", "--all", "--filter", filter, "--format", "json", NULL};
    const char *const all_volumes[] = {"volume", "ls", "--filter", filter, "--format", "json", NULL};
    auto_buf struct buf b = BUF(MAX_LISTED), said = BUF(65536);
    struct node root;
    int r = container_client(ask, volumes ? all_volumes : containers, CLIENT_MS, &b, &said);
    if (r < 0)
        return container_client_failed(ask, r, &said, e);
    if (!b.n) /* without volumes some versions print nothing */
        return 0;
    r = container_json(f->mem, "podman's list", &b, &root, e);
    return r < 0 ? r : take_all(f, &root, volumes);
}

static int list_docker(const struct container_ask *ask, struct finding *f, bool volumes, struct err *e)
{
    auto_buf struct buf b = BUF(MAX_LISTED), target = BUF(4096);
    const char *filter = arena_printf(f->mem, "{\"label\":[\"" CONTAINER_LABEL ".instance=%s\"]}", f->instance);
    struct node root;
    int status = 0;
    if (!filter)
        return err_sys(e, ERR_SYSTEM, ENOMEM, "cannot ask docker");
    buf_text(&target, volumes ? "/volumes?filters=" : "/containers/json?all=1&filters=");
    http_path(str_of(filter), &target);
    int r = container_docker(ask, buf_cstr(&target), &b, &status, e);
    if (r == 0 && status != 200)
        r = err_say(e, ERR_CANNOT, "docker's daemon at %s does not list its containers (answer %d)", ask->socket,
                    status);
    if (r == 0)
        r = container_json(f->mem, "docker's list", &b, &root, e);
    if (r < 0)
        return r;
    return take_all(f, volumes && root.kind == NODE_MAP ? node_get(&root, "Volumes") : &root, volumes);
}

static int list(const struct container_ask *ask, struct finding *f, bool volumes, struct err *e)
{
    return ask->podman ? list_podman(ask, f, volumes, e) : list_docker(ask, f, volumes, e);
}

int container_list(const struct container_daemon *d, const char *instance, struct arena *mem,
                   struct container_thing **ret, size_t *ret_n, struct err *e)
{
    struct finding f = {.mem = mem, .instance = instance};
    struct asking a;
    int r = begin(&a, d, mem, e);
    if (r == 0)
        r = list(&a.ask, &f, false, e);
    if (r == 0)
        r = list(&a.ask, &f, true, e);
    if (r == -ENOMEM)
        return err_sys(e, ERR_SYSTEM, ENOMEM, "cannot look for remains of boxes");
    *ret = f.all;
    *ret_n = f.n;
    return r;
}

/* ---- volumes ---- */

static bool is_found(const struct finding *f, const char *name, const char *session)
{
    for (size_t i = 0; i < f->n; i++) {
        if (same(f->all[i].name, name) && same(f->all[i].session, session))
            return true;
    }
    return false;
}

static int make_volume(const struct container_ask *ask, const char *name, const char *session, const struct owner *o,
                       struct err *e)
{
    auto_buf struct buf b = BUF(65536), said = BUF(65536);
    const char *const words[] = {"volume",  "create",
                                 "--label", arena_printf(ask->mem, CONTAINER_LABEL ".instance=%s", o->instance),
                                 "--label", arena_printf(ask->mem, CONTAINER_LABEL ".session=%s", session),
                                 "--label", arena_printf(ask->mem, CONTAINER_LABEL ".boot=%s", o->boot),
                                 "--label", arena_printf(ask->mem, CONTAINER_LABEL ".process=%s", o->process),
                                 name,      NULL};
    int r = container_client(ask, words, CLIENT_MS, &b, &said);
    return r < 0 ? container_client_failed(ask, r, &said, e) : 0;
}

int container_volume(const struct container_daemon *d, const char *name, const char *session, const struct owner *owner,
                     struct arena *mem, struct err *e)
{
    struct finding f = {.mem = mem, .instance = owner->instance};
    struct asking a;
    int r = begin(&a, d, mem, e);
    if (r == 0 && !owner->instance[0])
        r = err_say(e, ERR_CANNOT, "a volume needs an owner, and pinfold's state directory cannot be written");
    if (r == 0)
        r = list(&a.ask, &f, true, e);
    if (r < 0 || is_found(&f, name, session))
        return r;
    r = make_volume(&a.ask, name, session, owner, e);
    if (r < 0)
        return r;
    f.n = 0;
    r = list(&a.ask, &f, true, e); /* docker reports an existing one as created */
    if (r < 0 || is_found(&f, name, session))
        return r;
    (void)err_say(e, ERR_REFUSED,
                  "%s has a volume '%s' that does not belong to this session; inspect it with: %s volume inspect %s",
                  d->podman ? "podman" : "docker", name, d->podman ? "podman" : "docker", name);
    return -EPERM;
}

static bool says(struct buf *said, const char *what)
{
    return said->n && strstr(buf_cstr(said), what) != NULL;
}

int container_remove(const struct container_daemon *d, const struct container_thing *t, struct arena *mem,
                     struct err *e)
{
    const char *const container[] = {"rm", "--force", t->name, NULL};
    const char *const volume[] = {"volume", "rm", t->name, NULL};
    struct asking a;
    int r = begin(&a, d, mem, e);
    for (int tries = 0; r == 0; tries++) {
        const struct timespec moment = {0, 100000000};
        auto_buf struct buf b = BUF(65536), said = BUF(65536);
        int no = container_client(&a.ask, t->volume ? volume : container, CLIENT_MS, &b, &said);
        if (no == 0 || says(&said, "o such") || says(&said, "no container with"))
            return 0;
        /* A container whose session daemon was killed is about to end. */
        bool waits = says(&said, "in use") || says(&said, "being used") || says(&said, "already in progress");
        if (no != -EIO || !waits || tries >= IN_USE_TRIES)
            return container_client_failed(&a.ask, no, &said, e);
        (void)nanosleep(&moment, NULL);
    }
    return r;
}
