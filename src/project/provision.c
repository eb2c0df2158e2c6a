/*
 * Branches of a shelf are made and removed by git, in a box that has the checkout to read and the shelf to write: no git runs on the
 * host on what boxes have written. A record outside of the box says what is complete, so that what a kill left is found.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "project/branch.h"
#include "project/import/import.h"

struct provision {
    const struct branch_ask *ask;
    struct shelf shelf;
    struct project_box box;
    char name[BRANCH_NAME_MAX + 1]; /* of the record */
};

static int refuse_branch(const struct branch_ask *a, int no, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static int refuse_branch(const struct branch_ask *a, int no, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(a->why, a->room, format, args);
    va_end(args);
    return -no;
}

/* What git says was the matter: its last line that begins so, or any last line. */
static void last_line(const char *text, char *ret, size_t room)
{
    struct str rest = str_of(text), any = {0}, said = {0};
    while (rest.n) {
        struct str line = str_until(&rest, '\n');
        if (str_starts(line, STR("fatal: ")) || str_starts(line, STR("error: ")))
            said = str_skip(line, 7);
        if (line.n)
            any = line;
        if (str_ends(line, STR("No space left on device"))) {
            said = line;
            break; /* all that follows is what came of it */
        }
    }
    any = said.n ? said : any;
    snprintf(ret, room, "%.*s", (int)(any.n < 400 ? any.n : 400), any.p ? any.p : "");
}

/* The lines that the scripts wrote: hands on what is for people. `ret`: what is behind the last "has " or "why ". */
static void hear(const struct branch_script *s, const char *out, char *ret, size_t room)
{
    const struct branch_ask *a = s->ask;
    ret[0] = 0;
    while (*out) {
        char line[1024];
        size_t n = strcspn(out, "\n");
        snprintf(line, sizeof line, "%.*s", (int)(n < sizeof line ? n : sizeof line - 1), out);
        out += n + (out[n] == '\n');
        if (strncmp(line, "why ", 4) == 0 || strncmp(line, "has ", 4) == 0)
            snprintf(ret, room, "%s", line + 4);
        else if (strncmp(line, "note ", 5) == 0 && a->say)
            a->say(line + 5);
        else if (strncmp(line, "from ", 5) == 0 && a->say) {
            char said[1024 + BRANCH_NAME_MAX];
            snprintf(said, sizeof said, "branch '%s' begins with %s", a->branch, line + 5);
            a->say(said);
        } else if (s->line) {
            s->line(s->ctx, line);
        }
    }
}

/* The options of the session that a provisioning box needs as well, and no guard: the shelf's own configuration is written there. */
static size_t choose_options(const struct branch_script *s, struct pinfold_option *ret)
{
    static char unpacked[2 * PATH_MAX];
    size_t n = 0;
    for (size_t i = 0; i < s->box->n_own; i++) {
        const struct pinfold_option *o = &s->box->options[i];
        bool needed = same(o->name, "workspace") || same(o->name, "read-only") ||
                      (same(o->name, "mount") && !strstr(o->value, ":" REMOTE_IN_BOX) &&
                       !strstr(o->value, ":" REMOTE_HELPER) && !strstr(o->value, ":" PROJECT_MARKER));
        if (needed)
            ret[n++] = *o;
    }
    snprintf(unpacked, sizeof unpacked, "%s:" IMPORT_IN_BOX, s->ask->unpacked ? s->ask->unpacked : "");
    if (s->ask->unpacked)
        ret[n++] = (struct pinfold_option){"mount", unpacked};
    ret[n++] = (struct pinfold_option){"publish", "none"}; /* the ports are those of a session */
    ret[n++] = (struct pinfold_option){"guard", "off"};
    ret[n] = (struct pinfold_option){0};
    return n;
}

int branch_script_run(const struct branch_script *s, char *said, size_t room)
{
    const struct branch_ask *a = s->ask;
    struct pinfold_option options[PROJECT_OPTIONS + 6];
    char work[2 * PATH_MAX];
    struct shelf shelf;
    char url[PROJECT_WORD + 32], checkout[PROJECT_WORD + 16] = "/workspace";
    auto_buf struct buf text = BUF(1u << 16);
    buf_text(&text, project_script("shelf"));
    for (const char *const *name = s->names; *name; name++)
        buf_text(&text, project_script(*name));
    snprintf(url, sizeof url, "file:///workspace/%s", s->box->name);
    for (size_t i = 0; i < s->box->n_options; i++) {
        if (s->box->options[i].value && strstr(s->box->options[i].value, ":/workspace/"))
            snprintf(checkout, sizeof checkout, "/workspace/%s", s->box->name);
    }
    const size_t n = choose_options(s, options);
    int r = shelf_of(a->real, &shelf, a->why, a->room);
    if (r < 0)
        return r;
    snprintf(work, sizeof work, "%s/work", shelf.top);
    if (mkdir(work, 0700) < 0 && errno != EEXIST)
        return refuse_branch(a, errno, "cannot make '%s': %s", work, strerror(errno));
    snprintf(work, sizeof work, "%s/work:/run/shelf-work", shelf.top);
    options[n] = (struct pinfold_option){"mount", work};
    options[n + 1] = (struct pinfold_option){0};
    const char *const argv[] = {"/bin/sh", "-c",        buf_cstr(&text), "pinfold", checkout, url,
                                a->branch, s->box->cwd, a->real,         s->how,    NULL};
    const struct pinfold_policy_options po = {.size = sizeof po, .options = options, .cwd = a->real};
    const struct pinfold_run_options o = {.size = sizeof o, .argv = argv, .cwd = "/", .capture = 1};
    struct pinfold_error error = {0};
    struct pinfold_policy *policy;
    struct pinfold_result *result;
    if (pinfold_policy_load(&po, &policy, &error) < 0)
        return refuse_branch(a, EINVAL, "%s", error.text);
    r = pinfold_run(policy, &o, &result, &error);
    pinfold_policy_free(policy);
    if (r < 0)
        return refuse_branch(a, EINVAL, "%s", error.text);
    int status = pinfold_result_status(result);
    hear(s, pinfold_result_stdout(result, NULL), said, room);
    if (status && !said[0])
        last_line(pinfold_result_stderr(result, NULL), said, room);
    if (status && !said[0])
        snprintf(said, room, "git ended with status %d", status);
    pinfold_result_free(result);
    return status == 0 ? 0 : status == 91 ? -EBUSY : -EIO;
}

/* The script of this name, for the branch at hand. */
static int run_script(struct provision *p, const char *name, const char *how, char *said, size_t room)
{
    const char *const names[] = {p->ask->unpacked ? "import" : name, p->ask->unpacked ? name : NULL, NULL};
    const struct branch_script s = {.ask = p->ask, .box = &p->box, .names = names, .how = how};
    return branch_script_run(&s, said, room);
}

/* What a provisioning script is told of earlier runs. */
static const char *how_of(const struct branch_ask *a, enum branch_state state, bool killed)
{
    if (a->unpacked)
        return state == BRANCH_MAKING ? "import-again" : "import";
    return state == BRANCH_MAKING ? "again" : killed ? "locks" : "";
}

/* A mark that git is at work here, removed when it has ended. Whether that of an earlier run is left, which was killed then. */
static bool mark_work(const struct provision *p)
{
    char path[PATH_MAX + 16];
    snprintf(path, sizeof path, "%s/making", p->shelf.top);
    auto_fd int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    return fd < 0 && errno == EEXIST;
}

static void unmark_work(const struct provision *p)
{
    char path[PATH_MAX + 16];
    snprintf(path, sizeof path, "%s/making", p->shelf.top);
    (void)unlink(path);
}

/* The length of the directory above `real` that has a repository; 0: none has. */
static size_t repository_above(const char *real)
{
    char git[PATH_MAX + 8];
    struct stat st;
    for (size_t n = strlen(real); n > 1;) {
        while (n > 1 && real[n - 1] != '/')
            n--;
        n -= n > 1;
        snprintf(git, sizeof git, "%.*s/.git", (int)n, real);
        if (n > 1 && lstat(git, &st) == 0)
            return n;
    }
    return 0;
}

/* Nothing is made for what cannot be a checkout; the script says all else. */
static int is_checkout(const struct branch_ask *a)
{
    char git[PATH_MAX + 8];
    struct stat st;
    snprintf(git, sizeof git, "%s/.git", a->real);
    if (lstat(git, &st) == 0)
        return 0;
    const int above = (int)repository_above(a->real);
    if (above)
        return refuse_branch(a, ENOENT, "'%s' is not the top of its repository; do this in %.*s", a->real, above,
                             a->real);
    snprintf(git, sizeof git, "%s/objects", a->real);
    return refuse_branch(a, ENOENT,
                         lstat(git, &st) == 0
                             ? "'%s' is a bare repository; branches need a checkout: clone it, and begin there"
                             : "'%s' is not a git repository, so it has no branches; make one with: git init",
                         a->real);
}

/* `fresh`: whether the shelf was not there before. */
static int look_at_branch(struct provision *p, const struct branch_ask *a, bool *fresh)
{
    const char *reason = branch_refused(a->branch);
    p->ask = a;
    if (reason)
        return refuse_branch(a, EINVAL, "'%.80s' cannot be a branch's name: %s", a->branch, reason);
    int r = shelf_of(a->real, &p->shelf, a->why, a->room);
    if (r == 0)
        r = is_checkout(a);
    *fresh = r == 0 && access(p->shelf.top, F_OK) < 0;
    return r < 0 ? r : project_box(a->real, a->branch, true, &p->box, a->why, a->room);
}

/* The lock of the shelf, and what it has of the branch; -errno. */
static int begin(struct provision *p, const struct branch_ask *a, bool *fresh, enum branch_state *ret)
{
    int r = look_at_branch(p, a, fresh), lock = r < 0 ? r : shelf_lock(&p->shelf, a->why, a->room);
    p->name[0] = 0;
    if (lock >= 0)
        *ret = branch_read(&p->shelf, p->box.word, p->name);
    return lock;
}

int branch_provision(const struct branch_ask *a)
{
    static struct provision p;
    char said[1024];
    bool fresh = false;
    enum branch_state state = BRANCH_NONE;
    auto_fd int lock = begin(&p, a, &fresh, &state);
    int r = lock < 0 ? lock : 0;
    if (r < 0)
        return r;
    if (state != BRANCH_NONE && p.name[0] && !same(p.name, a->branch))
        return refuse_branch(a, EEXIST,
                             "branch '%s' would have the same directory as '%s', which has a box; use another name",
                             a->branch, p.name);
    if (state == BRANCH_READY && a->unpacked)
        return refuse_branch(a, EEXIST, "branch '%s' has a box here, which stays as it is", a->branch);
    if (state == BRANCH_READY && !a->renew && branch_is_there(&p.shelf, p.box.word))
        return 0;
    bool killed = mark_work(&p);
    if (state != BRANCH_READY)
        r = branch_write(&p.shelf, p.box.word, BRANCH_MAKING, a->branch);
    if (r < 0)
        return refuse_branch(a, -r, "cannot write the branches' storage '%s': %s", p.shelf.top, strerror(-r));
    if (a->say && state == BRANCH_NONE && !a->unpacked)
        a->say("preparing the branch; the first one of a repository takes longest");
    r = run_script(&p, "provision", how_of(a, state, killed), said, sizeof said);
    if (r == 0)
        r = branch_write(&p.shelf, p.box.word, BRANCH_READY, a->branch);
    else if (state != BRANCH_READY)
        branch_forget(&p.shelf, p.box.word);
    unmark_work(&p);
    if (r < 0 && fresh)
        shelf_remove(&p.shelf);
    if (r == -EIO && said[0])
        (void)refuse_branch(a, EIO, "cannot prepare branch '%s': %s", a->branch, said);
    return r;
}

int branch_remove(const struct branch_ask *a)
{
    static struct provision p;
    char said[1024];
    bool fresh = false;
    enum branch_state state = BRANCH_NONE;
    auto_fd int lock = begin(&p, a, &fresh, &state);
    int r = lock < 0 ? lock : 0;
    if (r < 0)
        return r;
    if (state == BRANCH_NONE || (p.name[0] && !same(p.name, a->branch))) {
        if (fresh)
            shelf_remove(&p.shelf);
        else if (state == BRANCH_NONE)
            branch_forget(&p.shelf, p.box.word); /* begin() has made the directory of its socket */
        return refuse_branch(a, ENOENT, "branch '%s' has no box here", a->branch);
    }
    (void)mark_work(&p);
    r = run_script(&p, "remove",
                   a->force || (!a->look && state == BRANCH_MAKING) ? "force"
                   : a->look                                        ? "look"
                                                                    : "",
                   said, sizeof said);
    unmark_work(&p);
    if (r == 0 && !a->look)
        branch_forget(&p.shelf, p.box.word);
    else if (r == -EBUSY)
        (void)refuse_branch(a, EBUSY, "branch '%s' has %s; push them, or remove them with the branch: --force",
                            a->branch, said + strspn(said, " "));
    else if (said[0])
        (void)refuse_branch(a, EIO, "cannot remove branch '%s': %s", a->branch, said);
    return r;
}
