/*
 * Reads volumes that another tool has made. docker gives files of a volume only by way of a container: one is made of an image without any
 * file, with the volume to read and no network, and is never started. A process of its own does that beside the box which unpacks.
 */
#include "run/image/export.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/container/container.h"
#include "backends/container/container_ask.h"
#include "backends/container/container_left.h"
#include "backends/container/http.h"
#include "backends/tools/tool.h"
#include "base/fd.h"
#include "policy/text/node.h"
#include "run/message.h"
#include "run/options.h"
#include "run/world.h"
#include "sys/remove.h"

#define EXPORT_LABEL CONTAINER_LABEL ".export"
#define EXPORT_PLACE "/volume" /* in the container */

enum { EXPORT_ARENA = 16 << 20, EXPORT_LISTED = 8 << 20, EXPORT_EMPTY_TAR = 1024, EXPORT_CONF = 1 << 16 };

struct exporting {
    struct arena *mem;
    struct policy policy; /* only names the daemon: the caller's own */
    struct container_ask ask;
};

static int exporting_begin(struct exporting *x, bool podman, struct err *e)
{
    x->policy = (struct policy){.image = NULL};
    x->ask = (struct container_ask){.policy = &x->policy, .mem = x->mem, .podman = podman};
    return x->mem ? container_find(&x->ask, e) : err_sys(e, ERR_SYSTEM, ENOMEM, "cannot ask for volumes");
}

/* ---- which there are ---- */

struct volumes {
    const char *prefix;
    struct volume_found *all;
    size_t n, room;
};

static void put_volume(struct volumes *v, struct str name, bool podman)
{
    if (v->n == v->room || name.n >= VOLUME_NAME || !str_starts(name, str_of(v->prefix)) || memchr(name.p, 0, name.n))
        return;
    struct volume_found *one = &v->all[v->n++];
    memcpy(one->name, name.p, name.n);
    one->name[name.n] = 0;
    one->podman = podman;
}

static struct str export_text(const struct node *map, const char *key)
{
    const struct node *n = map && map->kind == NODE_MAP ? node_get(map, key) : NULL;
    return n && n->kind == NODE_SCALAR ? n->text : (struct str){0};
}

static void find_docker(struct volumes *v, struct arena *mem, int patience_ms)
{
    struct exporting x = {.mem = mem};
    struct err ignored = {0};
    struct node root;
    int status = 0;
    auto_buf struct buf answer = BUF(EXPORT_LISTED);
    if (exporting_begin(&x, false, &ignored) < 0 || access(x.ask.socket, F_OK) < 0 ||
        http_get(x.ask.socket, "/volumes", patience_ms, &answer, &status) < 0 || status != 200 ||
        container_json(mem, "docker's volumes", &answer, &root, &ignored) < 0 || root.kind != NODE_MAP)
        return;
    const struct node *list = node_get(&root, "Volumes");
    for (size_t i = 0; list && list->kind == NODE_LIST && i < list->n; i++)
        put_volume(v, export_text(&list->items[i], "Name"), false);
}

/* The value of a key in a line of storage.conf(5), which podman keeps its storage by; NULL: it says none. */
static const char *storage_value(struct arena *mem, const char *path, const char *key)
{
    static char text[EXPORT_CONF];
    const char *found = NULL;
    auto_fd int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text);
    struct str rest = {text, n > 0 ? (size_t)n : 0};
    while (rest.n) {
        struct str line = str_until(&rest, '\n');
        while (line.n && (line.p[0] == ' ' || line.p[0] == '\t'))
            line = str_skip(line, 1);
        if (!str_starts(line, str_of(key)))
            continue;
        line = str_skip(line, strlen(key));
        (void)str_until(&line, '"');
        struct str value = str_until(&line, '"');
        if (value.n && value.p[0] == '/' && !memchr(value.p, '$', value.n))
            found = arena_str(mem, value);
    }
    return found;
}

static const char *podman_storage(struct arena *mem)
{
    const char *said = getenv("CONTAINERS_STORAGE_CONF"), *home = getenv("HOME"), *data = getenv("XDG_DATA_HOME"),
               *config = getenv("XDG_CONFIG_HOME"), *found = NULL;
    if (said && said[0])
        found = storage_value(mem, said, "graphroot");
    else if (geteuid() == 0)
        found = storage_value(mem, "/etc/containers/storage.conf", "graphroot");
    else if (home)
        found =
            storage_value(mem,
                          config && config[0] == '/' ? arena_printf(mem, "%s/containers/storage.conf", config)
                                                     : arena_printf(mem, "%s/.config/containers/storage.conf", home),
                          "graphroot");
    if (found || geteuid() == 0)
        return found ? found : "/var/lib/containers/storage";
    return data && data[0] == '/' ? arena_printf(mem, "%s/containers/storage", data)
           : home                 ? arena_printf(mem, "%s/.local/share/containers/storage", home)
                                  : NULL;
}

static void find_podman(struct volumes *v, struct arena *mem)
{
    const char *storage = podman_storage(mem), *path = storage ? arena_printf(mem, "%s/volumes", storage) : NULL;
    struct dirent **names = NULL;
    int n = path ? scandir(path, &names, NULL, alphasort) : -1;
    for (int i = 0; i < n; i++) {
        put_volume(v, str_of(names[i]->d_name), true);
        free(names[i]);
    }
    free(names);
}

size_t volumes_find(const char *prefix, int patience_ms, struct volume_found *ret, size_t room)
{
    auto_arena struct arena *mem = arena_new(EXPORT_ARENA);
    struct volumes v = {.prefix = prefix, .all = ret, .room = room};
    if (mem) {
        find_docker(&v, mem, patience_ms);
        find_podman(&v, mem);
    }
    return v.n;
}

/* ---- who uses one ---- */

static int list_users(struct exporting *x, const char *volume, struct buf *ret, struct err *e)
{
    if (x->ask.podman) {
        const char *const words[] = {"ps",       "--filter", arena_printf(x->mem, "volume=%s", volume),
                                     "--format", "json",     NULL};
        auto_buf struct buf said = BUF(65536);
        int r = container_client(&x->ask, words, VOLUME_PATIENCE_MS, ret, &said);
        return r < 0 ? container_client_failed(&x->ask, r, &said, e) : 0;
    }
    auto_buf struct buf target = BUF(4096);
    const char *filter = arena_printf(x->mem, "{\"volume\":[\"%s\"]}", volume);
    int status = 0;
    buf_text(&target, "/containers/json?filters=");
    http_path(str_of(filter), &target);
    int r = container_docker(&x->ask, buf_cstr(&target), ret, &status, e);
    return r < 0 || status == 200 ? r
                                  : err_say(e, ERR_CANNOT, "docker does not list its containers (answer %d)", status);
}

int volume_user(const struct volume_found *v, char name[VOLUME_NAME], struct pinfold_error *error)
{
    auto_arena struct arena *mem = arena_new(EXPORT_ARENA);
    auto_buf struct buf answer = BUF(EXPORT_LISTED);
    struct exporting x = {.mem = mem};
    struct err e = {0};
    struct node root;
    int r = exporting_begin(&x, v->podman, &e);
    if (r == 0)
        r = list_users(&x, v->name, &answer, &e);
    if (r == 0 && answer.n)
        r = container_json(mem, "the list of containers", &answer, &root, &e);
    if (r < 0 || !answer.n || root.kind != NODE_LIST || !root.n)
        return r < 0 ? tell(error, &e, r) : 0;
    const struct node *names = root.items[0].kind == NODE_MAP ? node_get(&root.items[0], "Names") : NULL;
    struct str first = names && names->kind == NODE_LIST && names->n && names->items[0].kind == NODE_SCALAR
                           ? names->items[0].text
                           : STR("?");
    if (first.n && first.p[0] == '/')
        first = str_skip(first, 1);
    snprintf(name, VOLUME_NAME, "%.*s", (int)(first.n < 200 ? first.n : 200), first.p);
    return 1;
}

/* ---- the archive ---- */

/* What the client printed, as one word in the arena. */
static const char *export_word(struct exporting *x, const char *const *words, struct err *e)
{
    auto_buf struct buf out = BUF(65536), said = BUF(65536);
    int r = container_client(&x->ask, words, CONTAINER_PATIENCE_MS, &out, &said);
    if (r < 0) {
        (void)container_client_failed(&x->ask, r, &said, e);
        return NULL;
    }
    struct str rest = buf_view(&out);
    return arena_str(x->mem, str_until(&rest, '\n'));
}

static void export_drop(struct exporting *x, const char *verb, const char *name)
{
    const char *const words[] = {verb, "--force", name, NULL};
    auto_buf struct buf out = BUF(65536), said = BUF(65536);
    if (name && name[0])
        (void)container_client(&x->ask, words, CONTAINER_PATIENCE_MS, &out, &said);
}

/* An image without files. A file in a directory of this run: the client reads no other kind from where it has no input. */
static const char *empty_image(struct exporting *x, struct err *e)
{
    static const char zeros[EXPORT_EMPTY_TAR];
    char dir[] = "/tmp/pinfold-export-XXXXXX";
    if (!mkdtemp(dir)) {
        (void)err_sys(e, ERR_SYSTEM, errno, "cannot make a directory in /tmp");
        return NULL;
    }
    const char *file = arena_printf(x->mem, "%s/empty.tar", dir), *id = NULL;
    auto_fd int fd = file ? open(file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600) : -1;
    const char *const words[] = {"import", "--change", "LABEL " EXPORT_LABEL "=1", file, NULL};
    if (fd < 0 || fd_write_all(fd, zeros, sizeof zeros) < 0)
        (void)err_sys(e, ERR_SYSTEM, errno, "cannot write '%s'", file ? file : dir);
    else
        id = export_word(x, words, e);
    remove_tree(AT_FDCWD, dir);
    return id;
}

/* Images that killed processes left; one in use stays. */
static void sweep_images(struct exporting *x, const char *own)
{
    static const char *const words[] = {"images", "--quiet", "--no-trunc", "--filter", "label=" EXPORT_LABEL, NULL};
    auto_buf struct buf out = BUF(1 << 20), said = BUF(65536);
    if (container_client(&x->ask, words, CONTAINER_PATIENCE_MS, &out, &said) < 0)
        return;
    for (struct str rest = buf_view(&out); rest.n;) {
        const char *id = arena_str(x->mem, str_until(&rest, '\n'));
        const char *const rm[] = {"rmi", id, NULL};
        auto_buf struct buf more = BUF(65536), why = BUF(65536);
        if (id && id[0] && !(own && same(id, own)))
            (void)container_client(&x->ask, rm, CONTAINER_PATIENCE_MS, &more, &why);
    }
}

/* With the labels by which what a dead process left is found (container_left.h). */
static const char *make_container(struct exporting *x, const char *image, const char *volume, struct err *e)
{
    struct tool_words w = {.mem = x->mem};
    const struct container_daemon d = {.podman = false, .host = arena_printf(x->mem, "unix://%s", x->ask.socket)};
    struct owner owner = {0};
    const char *state = NULL;
    if (world_state(x->mem, &state, e) < 0)
        return NULL;
    owner_of_this(state, &owner);
    if (owner.instance[0])
        container_note(state, &d);
    tool_word(&w, "create");
    tool_two(&w, "--network", "none");
    tool_two(&w, "--label", EXPORT_LABEL "=1");
    tool_two(&w, "--label", arena_printf(x->mem, CONTAINER_LABEL ".instance=%s", owner.instance));
    tool_two(&w, "--label", arena_printf(x->mem, CONTAINER_LABEL ".boot=%s", owner.boot));
    tool_two(&w, "--label", arena_printf(x->mem, CONTAINER_LABEL ".process=%s", owner.process));
    tool_two(&w, "--mount",
             arena_printf(x->mem, "type=volume,src=%s,dst=" EXPORT_PLACE ",readonly,volume-nocopy", volume));
    tool_word(&w, image);
    tool_word(&w, "/nothing");
    if (!arena_push(w.mem, &w.at, &w.n, sizeof *w.at) || w.failed) { /* the end */
        (void)err_sys(e, ERR_SYSTEM, ENOMEM, "cannot read the volume");
        return NULL;
    }
    return export_word(x, w.at, e);
}

static int pour_docker(struct exporting *x, const char *volume, int out, struct err *e)
{
    auto_buf struct buf said = BUF(65536);
    const char *image = empty_image(x, e), *id = image ? make_container(x, image, volume, e) : NULL;
    const char *const words[] = {"cp", id ? arena_printf(x->mem, "%s:" EXPORT_PLACE "/.", id) : "", "-", NULL};
    int r = id ? container_pour(&x->ask, words, out, &said) : -EINVAL;
    if (r < 0 && id)
        (void)container_client_failed(&x->ask, r, &said, e);
    export_drop(x, "rm", id);
    export_drop(x, "rmi", image);
    sweep_images(x, image);
    return r;
}

static int pour_podman(struct exporting *x, const char *volume, int out, struct err *e)
{
    const char *const words[] = {"volume", "export", volume, NULL};
    auto_buf struct buf said = BUF(65536);
    int r = container_pour(&x->ask, words, out, &said);
    return r < 0 ? container_client_failed(&x->ask, r, &said, e) : 0;
}

/* In a process of its own, which what a terminal sends to all does not end: it has something to remove. */
static _Noreturn void export_main(const struct volume_found *v, int out, int said)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    struct exporting x = {.mem = arena_new(EXPORT_ARENA)};
    struct err e = {0};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        (void)signal(signals[i], SIG_IGN);
    int r = exporting_begin(&x, v->podman, &e);
    if (r == 0)
        r = v->podman ? pour_podman(&x, v->name, out, &e) : pour_docker(&x, v->name, out, &e);
    (void)close(out);
    if (r < 0)
        (void)fd_write_all(said, e.text, strlen(e.text));
    _exit(r < 0 ? 1 : 0);
}

int volume_read_begin(const struct volume_found *v, struct volume_reading *ret, struct pinfold_error *error)
{
    struct err e = {0};
    int archive[2] = {-1, -1}, said[2] = {-1, -1};
    *ret = (struct volume_reading){.archive = -1, .pid = -1, .said = -1};
    if (pipe2(archive, O_CLOEXEC) < 0 || pipe2(said, O_CLOEXEC) < 0 || (ret->pid = fork()) < 0) {
        int no = errno;
        for (int i = 0; i < 2; i++)
            (void)close_fd(archive[i]), (void)close_fd(said[i]);
        return tell(error, &e, err_sys(&e, ERR_SYSTEM, no, "cannot read the volume"));
    }
    if (ret->pid == 0) {
        (void)close(archive[0]);
        (void)close(said[0]);
        export_main(v, archive[1], said[1]);
    }
    (void)close(archive[1]);
    (void)close(said[1]);
    ret->archive = archive[0];
    ret->said = said[0];
    return 0;
}

int volume_read_end(struct volume_reading *r, struct pinfold_error *error)
{
    char text[1024];
    struct err e = {0};
    int status = 0;
    r->archive = close_fd(r->archive);
    size_t n = 0;
    for (ssize_t k = 1; k > 0 && n<sizeof text - 1; n += k> 0 ? (size_t)k : 0)
        k = read(r->said, text + n, sizeof text - 1 - n);
    text[n] = 0;
    r->said = close_fd(r->said);
    while (waitpid(r->pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    return tell(error, &e,
                err_say(&e, ERR_CANNOT, "cannot read the volume: %s", text[0] ? text : "its reader was killed"));
}
