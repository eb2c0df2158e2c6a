/*
 * Runs git in a box on the objects, refs and index that a layer brings. As with a fetch from a stranger: one repository is put together
 * from what the layer has and the workspace's objects, a pack is made of what is new, and a second repository, which knows the
 * workspace's objects alone, takes it in with every check that git has (index-pack --strict: hashes, collisions, form, links).
 * Configuration, hooks, attributes, alternates, grafts and replacements of the layer are in neither of them.
 */
#include "layer/stack/stack.h"
#include "run/layer/gitbox.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "layer/text.h"
#include "match/path.h"
#include "run/direct.h"

#define ALTERNATES_MAX 16
#define ERROR_MAX      4096
#define GIT_TIMEOUT    "30m"
#define GIT_MEMORY     "4G"

/* As in the built-in profiles. */
static const char losses[][16] = {"pid-namespace", "private-ipc",  "private-tmp",
                                  "cgroup-limits", "no-survivors", "fresh-proc"};
static const char system_places[][8] = {"/usr", "/bin", "/sbin", "/lib", "/lib64", "/lib32", "/libx32"};

struct gitbox {
    const struct layer_trees *t;
    struct arena *mem;
    struct err *e;
    const char *objects[1 + ALTERNATES_MAX]; /* on the host: the workspace's, then those that its alternates name */
    size_t n;
};

/* Directories that the workspace's own repository takes objects from; what those name in turn is not followed. Of one that the box has
   made there is none. */
static int find_objects(struct gitbox *b, bool born)
{
    struct str text, line;
    char real[PATH_MAX];
    if (born)
        return 0;
    b->objects[b->n++] = arena_printf(b->mem, "%s/%s", b->t->path, repo_named(b->t, REPO_DIR "/objects", real));
    const int e = repo_text(b->t, b->t->workspace, REPO_DIR "/objects/info/alternates", b->mem, &text, NULL);
    while (e == 0 && b->objects[0] && b->n <= ALTERNATES_MAX && text_line(&text, &line)) {
        if (!line.n || line.p[0] == '#' || line.p[0] == '"')
            continue;
        const char *path = arena_printf(b->mem, "%s%s%.*s", line.p[0] == '/' ? "" : b->objects[0],
                                        line.p[0] == '/' ? "" : "/", (int)line.n, line.p);
        if (path && realpath(path, real) && !(b->objects[b->n++] = arena_text(b->mem, real)))
            break;
    }
    return arena_failed(b->mem) ? err_sys(b->e, ERR_SYSTEM, ENOMEM, "cannot ask git") : 0;
}

static const char *inside_name(struct gitbox *b, size_t i)
{
    return i ? arena_printf(b->mem, "/objects%zu", i) : "/objects";
}

/* A root of nothing but programs and those objects. */
static const char *policy_text(struct gitbox *b)
{
    auto_buf struct buf out = BUF(1 << 20);
    struct json j = JSON(&out);
    json_object(&j, NULL);
    json_int(&j, "version", 1);
    json_text(&j, "workspace", "/usr");
    json_bool(&j, "workspace_read_only", true);
    json_text(&j, "guard", "off");
    json_object(&j, "files");
    json_array(&j, "hide");
    json_text(&j, NULL, "/*");
    json_array_end(&j);
    json_array(&j, "ro");
    for (size_t i = 0; i < sizeof system_places / sizeof *system_places; i++)
        if (access(system_places[i], F_OK) == 0)
            json_text(&j, NULL, system_places[i]);
    json_array_end(&j);
    json_array(&j, "mounts");
    for (size_t i = 0; i < b->n; i++) {
        json_object(&j, NULL);
        json_text(&j, "from", b->objects[i]);
        json_text(&j, "to", inside_name(b, i));
        json_bool(&j, "read_only", true);
        json_object_end(&j);
    }
    json_array_end(&j);
    json_array(&j, "storage");
    json_text(&j, NULL, "/work");
    json_array_end(&j);
    json_object_end(&j);
    json_object(&j, "net");
    json_text(&j, "mode", "none");
    json_object_end(&j);
    json_object(&j, "limits");
    json_text(&j, "timeout", GIT_TIMEOUT);
    json_text(&j, "memory", GIT_MEMORY);
    json_int(&j, "pids", 64);
    json_object_end(&j);
    json_array(&j, "may_lose");
    for (size_t i = 0; i < sizeof losses / sizeof *losses; i++)
        json_text(&j, NULL, losses[i]);
    json_array_end(&j);
    json_object_end(&j);
    return buf_ok(&out) ? arena_str(b->mem, buf_view(&out)) : NULL;
}

/* The first line of what git said. */
static int say_refused(struct gitbox *b, int errors, int status)
{
    char room[ERROR_MAX];
    const ssize_t n = pread(errors, room, sizeof room, 0);
    struct str text = {room, n > 0 ? (size_t)n : 0};
    struct str line = str_until(&text, '\n');
    while (!line.n && text.n)
        line = str_until(&text, '\n');
    auto_buf struct buf said = BUF(ERROR_MAX * 4);
    utf8_safe(&said, (struct str){line.p, line.n < 200 ? line.n : 200});
    if (status == 127 || memmem(room, n > 0 ? (size_t)n : 0, "not found", 9))
        return err_say(b->e, ERR_CANNOT, "git, tar or a tool that they need is not installed in /usr: %s",
                       buf_cstr(&said));
    return err_say(b->e, ERR_REFUSED, "git does not accept what the layer has in .git: %s",
                   line.n ? buf_cstr(&said) : "it was ended by a limit");
}

int gitbox_run(const struct layer_trees *t, const struct repo *r, enum gitbox_task task, int ask, int answer,
               struct arena *mem, struct err *e)
{
    static const char tasks[][8] = {
        [GITBOX_LAND] = "land", [GITBOX_LOOK] = "look", [GITBOX_MERGE] = "merge", [GITBOX_BRANCH] = "branch"};
    struct gitbox b = {.t = t, .mem = mem, .e = e};
    struct pinfold_error error = {0};
    struct pinfold_policy *policy = NULL;
    struct pinfold_result *result = NULL;
    int no = find_objects(&b, r->born);
    const char *text = no == 0 ? policy_text(&b) : NULL;
    auto_fd int errors = memfd_create("git", MFD_CLOEXEC);
    if (no < 0 || !text || errors < 0)
        return no < 0 ? no : err_sys(e, ERR_SYSTEM, errors < 0 ? errno : ENOMEM, "cannot ask git");
    const char *argv[8 + ALTERNATES_MAX] = {"sh",  "-c",        gitbox_script,
                                            "git", tasks[task], r->digits == 64 ? "sha256" : "sha1"};
    for (size_t i = 0; i < b.n; i++)
        argv[6 + i] = inside_name(&b, i);
    const char *env[] = {"PATH=/usr/local/bin:/usr/bin:/bin", NULL};
    const struct pinfold_policy_options po = {.size = sizeof po, .text = text, .cwd = "/usr"};
    const struct pinfold_run_options o = {.size = sizeof o,
                                          .argv = argv,
                                          .env = env,
                                          .cwd = "/work",
                                          .use_fds = 1,
                                          .stdin_fd = ask,
                                          .stdout_fd = answer,
                                          .stderr_fd = errors};
    no = lseek(ask, 0, SEEK_SET) < 0 ? -errno : 0;
    if (no == 0)
        no = pinfold_policy_load(&po, &policy, &error);
    if (no == 0)
        no = pinfold_run(policy, &o, &result, &error);
    if (no < 0)
        no = err_say(e, ERR_CANNOT, "git cannot be asked in a box of its own: %s", error.text);
    else if (pinfold_result_status(result) != 0)
        no = say_refused(&b, errors, pinfold_result_status(result));
    pinfold_result_free(result);
    pinfold_policy_free(policy);
    return no;
}

/* On the disk of the layer, for it may be as large as that; without a name, so that nothing stays. */
int gitbox_file(int store)
{
    char name[64];
    int fd = openat(store, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    for (unsigned i = 0; fd < 0 && i < 100; i++) {
        snprintf(name, sizeof name, "git-%ld-%u", (long)getpid(), i);
        fd = openat(store, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd >= 0)
            (void)unlinkat(store, name, 0);
    }
    return fd;
}

int gitbox_ask(const struct layer_trees *t, const struct changes *all, const struct repo *r, enum gitbox_task task,
               struct arena *mem, struct err *e)
{
    auto_fd int ask = gitbox_file(t->store), answer = gitbox_file(t->store);
    int no = ask < 0 || answer < 0 ? err_sys(e, ERR_SYSTEM, errno, "layer %s: cannot make a file for git", t->id) : 0;
    if (no == 0)
        no = repo_ask(t, all, r, ask, e);
    if (no == 0 && (no = bundle_end(ask)) < 0)
        no = err_sys(e, ERR_SYSTEM, -no, "layer %s: cannot write a file for git", t->id);
    if (no == 0)
        no = gitbox_run(t, r, task, ask, answer, mem, e);
    return no < 0 ? no : take_fd(&answer);
}

int gitbox_merge(void *ctx, const struct layer_trees *t, struct changes *all, const char *const *paths,
                 struct arena *mem, struct apply_outcome *out, struct err *e)
{
    static const struct changes none;
    const enum merge_kind kind = *(const enum merge_kind *)ctx;
    struct repo r;
    struct merges m;
    int no = repo_read(t, &none, mem, &r, e);
    if (no < 0 || !r.digits || r.why) /* without a repository there is no base */
        return no;
    no = merges_find(t, all, paths, r.digits, mem, &m, e);
    if (no < 0 || !m.n)
        return no;
    auto_fd int ask = gitbox_file(t->store), answer = gitbox_file(t->store);
    if (ask < 0 || answer < 0)
        return err_sys(e, ERR_SYSTEM, errno, "layer %s: cannot make a file for git", t->id);
    no = merges_ask(t, &m, ask, e);
    if (no == 0)
        no = repo_ask(t, &none, &r, ask, e);
    if (no == 0 && (no = bundle_end(ask)) < 0)
        no = err_sys(e, ERR_SYSTEM, -no, "layer %s: cannot write a file for git", t->id);
    if (no == 0)
        no = gitbox_run(t, &r, GITBOX_MERGE, ask, answer, mem, e);
    return no < 0 ? no : merges_take(t, &m, answer, kind, mem, out, e);
}

/* Whether there is something that only git can tell. */
static bool needs_git(const struct repo *r)
{
    bool any = r->index;
    for (size_t i = 0; i < r->n; i++)
        any |= !r->refs[i].why && r->refs[i].new;
    return any && !r->why;
}

int gitbox_words(const struct layer_trees *t, const struct changes *all, struct arena *mem, struct buf *out,
                 struct err *e)
{
    struct repo r;
    struct err why = {0};
    int no = repo_read(t, all, mem, &r, e);
    if (no < 0)
        return no;
    if (!r.digits)
        return 0;
    auto_fd int answer = needs_git(&r) ? gitbox_ask(t, all, &r, GITBOX_LOOK, mem, &why) : -1;
    repo_put_words(&r, answer, mem, out);
    if (answer < 0 && needs_git(&r))
        buf_printf(out, "its commits cannot be listed: %s\n", why.text);
    return buf_ok(out) ? 0 : err_sys(e, ERR_SYSTEM, ENOMEM, "layer %s: cannot describe its repository", t->id);
}
