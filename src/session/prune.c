/*
 * Removes what dead owners left. A session is touched only under its lock, and only if the process in its record is
 * gone (no process has that pid, start time and boot id). One that was stopped regularly, or has storage, stays until
 * somebody removes it by its name; a runtime directory goes only if it belongs to this state directory.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "sys/remove.h"
#include "run/report.h"
#include "backends/container/container_left.h"
#include "backends/tools/tool.h"
#include "survey/written.h"
#include "run/caches.h"
#include "run/private.h"
#include "run/words.h"
#include "session/session.h"
#include "run/world.h"

#define MAX_LEFT_ARENA (16u << 20)
#define YOUNG_SECONDS  10 /* what has no record yet may be about to begin */

struct pruning {
    struct arena *mem;
    struct json json;
    bool look; /* and remove nothing */
    const char *run, *state;
    struct missing { /* what is to be said of daemons that are not there */
        const char *sentence, *note;
        bool news; /* it was not said before */
    } * missing;
    size_t n_missing;
    struct values kept, things; /* sessions that must wait, and what daemons had */
    struct json kept_json, things_json;
};

static bool is_young(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && time(NULL) - st.st_mtime < YOUNG_SECONDS;
}

static void put_one(struct json *j, const struct session_place *place, const struct record *r, const char *why)
{
    json_object(j, NULL);
    json_text(j, "id", place->hash);
    if (r)
        json_text(j, "name", r->name);
    else
        json_null(j, "name");
    json_text(j, "why", why);
    json_object_end(j);
}

/* Once for each daemon. */
static void daemon_is_missing(struct pruning *p, const char *sentence, const char *note, bool news)
{
    for (size_t i = 0; i < p->n_missing; i++) {
        if (same(p->missing[i].sentence, sentence))
            return;
    }
    const char *text = arena_text(p->mem, sentence), *path = arena_text(p->mem, note);
    struct missing *one = text && path ? arena_push(p->mem, &p->missing, &p->n_missing, sizeof *one) : NULL;
    if (one)
        *one = (struct missing){text, path, news};
}

/*
 * What a session stored is not its daemon's: that it died is no reason to delete it. Whoever knows the name starts the
 * session again or removes it; without a readable record a person must look. True if it stays.
 */
static bool storage_stays(struct pruning *p, const struct session_place *place, const struct record *r)
{
    auto_buf struct buf why = BUF(16 * MAX_SESSION_NAME), name = BUF(4 * MAX_SESSION_NAME);
    char storage[PATH_MAX];
    snprintf(storage, sizeof storage, "%s/storage", place->state);
    if (access(storage, F_OK) < 0 && (!r || !r->n_kept))
        return false;
    words_safe(&name, r ? r->name : "");
    if (r)
        buf_printf(&why, "its storage is kept for the next start; delete it with: pinfold session rm '%s'",
                   buf_cstr(&name));
    else
        buf_printf(&why, "its record cannot be read, and it has storage; keep what you need of it and run: rm -r '%s'",
                   place->state);
    if (r && r->scope[0]) {
        buf_text(&why, " --scope ");
        words_safe(&why, r->scope);
    }
    put_one(&p->kept_json, place, r, buf_cstr(&why));
    if (r && !p->look)
        session_mark_stopped(place); /* said once */
    return true;
}

static void judge_session(struct pruning *p, const struct session_place *place, struct arena *mem)
{
    struct record r;
    struct err ignored = {0};
    int no = record_read(place, mem, &r, &ignored);
    if (no == 0 && (record_is_alive(&r) || session_is_stopped(place) || !record_is_of_here(&r)))
        return;
    const int unrecorded = no == -ENOENT ? session_unrecorded(place) : 0;
    if (unrecorded > 0) {
        auto_buf struct buf why = BUF(256);
        buf_printf(&why,
                   "it runs without a record (process %d), and ends by itself within a minute; end it now: kill %d",
                   unrecorded, unrecorded);
        put_one(&p->kept_json, place, NULL, buf_cstr(&why));
        return;
    }
    if (no == -ENOENT && (is_young(place->state) || is_young(place->run)))
        return;
    auto_fd int answers = no == 0 ? -1 : place_connect(place);
    if (answers >= 0) /* somebody else's, who keeps his records elsewhere */
        return;
    if (no != -ENOENT && storage_stays(p, place, no == 0 ? &r : NULL))
        return;
    put_one(&p->json, place, no == 0 ? &r : NULL,
            no == -ENOENT           ? "no record"
            : no < 0                ? "its record cannot be read"
            : record_is_of_boot(&r) ? "its session daemon has died"
                                    : "the machine was restarted");
    if (!p->look)
        place_remove(place);
}

/* `runtime`: there is nothing but a runtime directory, and several state directories may have theirs in one place. */
static void look_at_session(struct pruning *p, const char *hash, bool runtime)
{
    auto_arena struct arena *mem = arena_new(MAX_SESSION_ARENA);
    struct session_place place = {.name = NULL};
    struct err ignored = {0};
    if (!mem || place_of_hash(hash, mem, &place, &ignored) < 0 || (runtime && !place_is_of_here(&place)))
        return;
    /* Whoever starts or ends it holds the lock: then it is no business of ours. */
    auto_fd int lock = place_directory(&place);
    if (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) < 0)
        return;
    judge_session(p, &place, mem);
}

static void look_below(struct pruning *p, const char *root, const char *but)
{
    struct dirent **names = NULL;
    int n = scandir(root, &names, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        char other[PATH_MAX];
        snprintf(other, sizeof other, "%s/%s", but ? but : "", names[i]->d_name);
        if (place_is_hash(names[i]->d_name) && (!but || access(other, F_OK) < 0))
            look_at_session(p, names[i]->d_name, but != NULL);
        free(names[i]);
    }
    free(names);
}

/* ---- what docker and podman have ---- */

/* A volume is a session's for as long as that has a record; a container is a process's. */
static bool is_left(const struct pruning *p, const struct container_thing *t)
{
    char record[PATH_MAX];
    if (!maker_is_gone(t->boot, t->process))
        return false;
    if (!t->volume)
        return true;
    snprintf(record, sizeof record, "%s/%s/record", p->state, t->session);
    return place_is_hash(t->session) && access(record, F_OK) < 0 && errno == ENOENT;
}

static void look_in(struct pruning *p, const char *state, const struct container_daemon *d, const char *instance)
{
    auto_arena struct arena *mem = arena_new(MAX_LEFT_ARENA);
    struct container_thing *all = NULL;
    struct err e = {0};
    size_t n = 0, stay = 0;
    if (!mem)
        return;
    int r = container_list(d, instance, mem, &all, &n, &e);
    for (size_t i = 0; r == 0 && i < n; i++) {
        if (!is_left(p, &all[i]) || (!p->look && container_remove(d, &all[i], mem, &e) < 0)) {
            stay++;
            continue;
        }
        json_object(&p->things_json, NULL);
        json_text(&p->things_json, "engine", d->podman ? "podman" : "docker");
        json_text(&p->things_json, all[i].volume ? "volume" : "container", all[i].name);
        json_object_end(&p->things_json);
    }
    if (r < 0) {
        char note[PATH_MAX];
        bool news = !p->look && container_say_missing(state, d, note);
        if (p->look)
            note[0] = 0;
        daemon_is_missing(p, e.text, note, news);
        return;
    }
    if (p->look)
        return;
    container_answers(state, d);
    if (!stay)
        container_unnote(state, d);
}

static void look_in_daemons(struct pruning *p)
{
    const struct container_daemon *daemons;
    char instance[OWNER_ID], state[PATH_MAX];
    const char *slash = strrchr(p->state, '/'); /* .../pinfold/sessions */
    snprintf(state, sizeof state, "%.*s", (int)(slash - p->state), p->state);
    if (!instance_id(state, false, instance))
        return;
    size_t n = container_noted(state, p->mem, &daemons);
    for (size_t i = 0; i < n; i++)
        look_in(p, state, &daemons[i], instance);
}

/* ---- caches of projects that are gone ---- */

/* Locks every slot, for as long as `locks` are open; false when a box lives on one. */
static bool lock_slots(int dir, int locks[MAX_CACHE_SLOTS], size_t *n)
{
    int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = copy < 0 ? NULL : fdopendir(copy);
    bool free = d != NULL;
    if (!d)
        (void)close_fd(copy);
    errno = 0;
    for (struct dirent *e; free && (e = readdir(d)); errno = 0) {
        if (e->d_name[0] < '0' || e->d_name[0] > '9')
            continue;
        int fd = *n < MAX_CACHE_SLOTS ? openat(dir, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
        free = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;
        if (fd >= 0)
            locks[(*n)++] = fd;
    }
    free &= errno == 0; /* the list is whole */
    if (d)
        (void)closedir(d);
    return free;
}

static void judge_caches(int caches, const char *hash, bool look, struct json *j)
{
    static int locks[MAX_CACHE_SLOTS];
    char text[CACHES_NOTE_MAX];
    struct stat st;
    size_t n = 0;
    auto_fd int dir = openat(caches, hash, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0 || fstat(dir, &st) < 0 || st.st_uid != geteuid())
        return;
    const char *project = caches_gone(dir, hash, text);
    if (project && lock_slots(dir, locks, &n) && caches_gone(dir, hash, text)) {
        uint64_t bytes = 0;
        if (!look)
            remove_tree_counted(caches, hash, &bytes);
        json_object(j, NULL);
        json_text(j, "workspace", project);
        if (look) { /* that is known when it is done */
            json_null(j, "bytes");
            json_null(j, "whole");
        } else {
            json_uint(j, "bytes", bytes);
            json_bool(j, "whole", faccessat(caches, hash, F_OK, AT_SYMLINK_NOFOLLOW) < 0);
        }
        json_object_end(j);
    }
    while (n)
        (void)close(locks[--n]);
}

static void look_in_caches(const char *state, bool look, struct json *j)
{
    char path[PATH_MAX];
    struct stat st;
    snprintf(path, sizeof path, "%s/caches", state);
    auto_fd int caches = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = NULL;
    int copy = caches >= 0 && fstat(caches, &st) == 0 && st.st_uid == geteuid() ? dup(caches) : -1;
    if (copy >= 0 && !(d = fdopendir(copy)))
        (void)close(copy);
    for (struct dirent *e; d && (e = readdir(d));) {
        if (strlen(e->d_name) == CACHES_HASH && strspn(e->d_name, "0123456789abcdef") == CACHES_HASH)
            judge_caches(caches, e->d_name, look, j);
    }
    if (d)
        (void)closedir(d);
}

static void prune_caches(struct pruning *p)
{
    struct err ignored = {0};
    const char *state = NULL;
    json_array(&p->json, "caches");
    if (world_state(p->mem, &state, &ignored) == 0)
        look_in_caches(state, p->look, &p->json);
    if (!p->look && state)
        (void)written_tidy(world_written(p->mem, state));
    json_array_end(&p->json);
}

static void put_rest(struct pruning *p)
{
    json_array_end(&p->json);
    json_array_end(&p->kept_json);
    json_array_end(&p->things_json);
    json_put(&p->json, "removed_from_engines", values_whole(&p->things));
    json_put(&p->json, "kept", values_whole(&p->kept));
    prune_caches(p);
    json_array(&p->json, "not_asked");
    for (size_t i = 0; i < p->n_missing; i++)
        json_text(&p->json, NULL, p->missing[i].sentence);
    json_array_end(&p->json);
    json_array(&p->json, "not_asked_news");
    for (size_t i = 0; i < p->n_missing; i++) {
        if (!p->missing[i].news)
            continue;
        json_object(&p->json, NULL);
        json_text(&p->json, "why", p->missing[i].sentence);
        json_text(&p->json, "note", p->missing[i].note);
        json_object_end(&p->json);
    }
    json_array_end(&p->json);
    json_object_end(&p->json);
}

int pinfold_session_prune_report(int look, struct pinfold_report **ret, struct pinfold_error *error)
{
    auto_arena struct arena *mem = arena_new(MAX_LEFT_ARENA);
    struct pinfold_report *report = report_new();
    struct pruning p = {.mem = mem, .look = look != 0, .kept = VALUES(MAX_REPORT), .things = VALUES(MAX_REPORT)};
    struct err e = {0};
    int r = mem && report ? place_roots(mem, &p.run, &p.state, &e) : err_sys(&e, ERR_SYSTEM, ENOMEM, "prune");
    if (r < 0)
        return report_give(report, r, &e, ret, error);
    p.json = JSON_TREE(&report->values);
    p.kept_json = JSON_TREE(&p.kept);
    p.things_json = JSON_TREE(&p.things);
    json_object(&p.json, NULL);
    json_array(&p.json, "removed");
    json_array(&p.kept_json, NULL);
    json_array(&p.things_json, NULL);
    look_below(&p, p.state, NULL);
    look_below(&p, p.run, p.state); /* what has a socket and no record */
    look_in_daemons(&p);
    put_rest(&p);
    if (!look) {
        box_sweep_groups();
        tool_sweep_places(mem);
    }
    if (!values_whole(&p.kept) || !values_whole(&p.things))
        r = err_sys(&e, ERR_SYSTEM, ENOMEM, "prune");
    values_free(&p.kept);
    values_free(&p.things);
    return report_give(report, r, &e, ret, error);
}
