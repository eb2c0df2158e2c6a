/*
 * `pinfold doctor`: checks of this machine, engines and guarantees, and the report as text or JSON. It asks the
 * probes that a run asks, so that it never says yes where a run says no.
 */
#include "doctor/doctor.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "run/report.h"
#include "match/path.h"
#include "survey/cgroup.h"
#include "survey/runtime_dir.h"
#include "backends/container/container_ask.h"
#include "backends/engine.h"
#include "backends/tools/tool.h"
#include "run/direct.h"
#include "run/nested.h"
#include "run/words.h"
#include "run/world.h"
#include "user/packages.h"

#define MAX_DOCTOR          (64u << 20)
#define VERSION_PATIENCE_MS 10000u
/* From cgroup_probe(), the same for every engine. */
#define LIMITS_BY_GROUP (F(CGROUP_LIMITS) | F(LIMIT_MEMORY) | F(LIMIT_CPU) | F(LIMIT_PROCESSES) | F(LIMIT_DISK))

struct doctor_report {
    struct arena *mem;
    struct facts facts;
    struct utsname host;
    struct check *checks;
    size_t n_checks;
    struct verdict *verdicts;
    size_t n_verdicts;
    struct git_runs git;
    struct secret_files secrets;
    struct foreign_files foreign;
    bool failed;
    bool untried; /* no box could be tried, for a reason that is none of the box's */
};

static void put_check(struct doctor_report *r, enum check_state state, const char *name, const char *detail,
                      const char *remedy)
{
    struct check *c = arena_push(r->mem, &r->checks, &r->n_checks, sizeof *c);
    if (c)
        *c = (struct check){.state = state, .name = name, .detail = detail ? detail : "", .remedy = remedy};
    r->failed |= state == CHECK_NO;
}

static void check_kernel(struct doctor_report *r)
{
    const struct facts *f = &r->facts;
    bool enough = f->kernel_major > 5 || (f->kernel_major == 5 && f->kernel_minor >= 14);
    put_check(r, enough ? CHECK_YES : CHECK_NO, "kernel", arena_printf(r->mem, "Linux %s", r->host.release),
              enough ? NULL : "boxes need Linux 5.14 or later");
    put_check(r, f->tier == TIER_NAMESPACES ? CHECK_YES : CHECK_PART, "user-namespaces",
              f->tier == TIER_NAMESPACES ? "allowed" : f->why_not[FEATURE_PID_NAMESPACE],
              f->tier == TIER_NAMESPACES                     ? NULL
              : f->remedy[FEATURE_PID_NAMESPACE]             ? f->remedy[FEATURE_PID_NAMESPACE]
              : f->nested && nested_allowed() && f->uid == 0 ? NESTED_UID_ZERO
                                                             : NULL);
    put_check(r, f->landlock_abi > 0 ? CHECK_YES : CHECK_PART, "landlock",
              f->landlock_abi > 0 ? arena_printf(r->mem, "ABI %d", f->landlock_abi)
                                  : "not in this kernel, or not enabled",
              f->landlock_abi > 0 ? NULL : "boot with landlock in lsm= (and CONFIG_SECURITY_LANDLOCK)");
    put_check(r, f->notify ? CHECK_YES : CHECK_PART, "seccomp-notification",
              f->notify   ? "guarded names, hidden paths and sockets can be enforced"
              : f->around ? "the box around this one has the one supervisor that the kernel allows"
                          : f->why_not[FEATURE_GUARD],
              f->notify || f->around ? NULL
              : f->remedy[FEATURE_GUARD]
                  ? f->remedy[FEATURE_GUARD]
                  : "inside another sandbox or container: allow seccomp user notification there");
    put_check(r, f->overlay ? CHECK_YES : CHECK_PART, "overlay",
              f->overlay ? "private layers over caches"
                         : "no overlay file system in a user namespace: caches are redirected",
              NULL);
}

/* How --net allow reaches programs that do not know proxies. */
static void check_egress(struct doctor_report *r)
{
    static const char *const ways[] = {
        [CATCH_TPROXY] = "every connection is redirected to the egress proxy (nftables)",
        [CATCH_ROUTES] = "connections to listed ports are redirected (local routes)",
        [CATCH_LOOPBACK] = "connections to names at listed ports are redirected (fake IPs in 127.64.0.0/10)",
        [CATCH_SOCKET] = "only a proxy on a Unix socket, for programs that can use one (curl)"};
    const struct facts *f = &r->facts;
    const char *why = f->catch == CATCH_SOCKET ? f->why_not[FEATURE_NETWORK_TRANSPARENT] : f->catch_why;
    put_check(r, f->catch == CATCH_TPROXY ? CHECK_YES : CHECK_PART, "egress", ways[f->catch], why);
}

static void check_cgroup(struct doctor_report *r)
{
    static const char *const kinds[] = {
        [CGROUP_NONE] = "none writable: limits are enforced by rlimits, a watcher and pauses of the box",
        [CGROUP_V2] = "v2, delegated",
        [CGROUP_V2_SYSTEMD] = "v2, through systemd's user manager (a few milliseconds when a limit is asked for)",
        [CGROUP_V1] = "v1"};
    enum cgroup_kind kind = r->facts.cgroup;
    const char *remedy = r->facts.remedy[FEATURE_CGROUP_LIMITS], *why = r->facts.why_not[FEATURE_CGROUP_LIMITS];
    put_check(r, kind == CGROUP_NONE ? CHECK_PART : CHECK_YES, "cgroup", kinds[kind],
              kind != CGROUP_NONE || r->facts.nested ? NULL
              : remedy                               ? remedy
                                                     : why);
}

/* Every guarantee that this machine cannot give, with the probe's reason. */
static void check_features(struct doctor_report *r)
{
    const struct facts *f = &r->facts;
    for (int i = 0; i < FEATURE_COUNT; i++) {
        if (f->can >> i & 1 || i == FEATURE_CGROUP_LIMITS || !f->why_not[i])
            continue;
        put_check(r, CHECK_PART, feature_name((enum feature)i), f->why_not[i], f->remedy[i]);
    }
}

/* Whether it has a version: a number after a blank. What a program warns of before may have dots and digits, too. */
static bool has_version(struct str line)
{
    for (size_t i = 1; i + 2 < line.n; i++) {
        size_t end = i;
        while (end < line.n && line.p[end] >= '0' && line.p[end] <= '9')
            end++;
        if (line.p[i - 1] == ' ' && end > i && end < line.n && line.p[end] == '.')
            return true;
    }
    return false;
}

/* "bubblewrap 0.8.0": the line with a version in the program's answer to --version. */
static const char *version_of(struct arena *mem, const char *program)
{
    const char *const argv[] = {program, "--version", NULL};
    auto_buf struct buf said = BUF(4096);
    auto_buf struct buf line = BUF(8192);
    if (tool_ask(argv, VERSION_PATIENCE_MS, &said) != 0)
        return NULL;
    for (struct str rest = buf_view(&said); rest.n && !line.n;) {
        struct str one = str_until(&rest, '\n');
        if (has_version(one))
            buf_put(&line, one.p, one.n);
    }
    auto_buf struct buf safe = BUF(16384);
    words_safe(&safe, buf_cstr(&line));
    return safe.n ? arena_text(mem, buf_cstr(&safe)) : NULL;
}

/* An engine of images: its client alone starts nothing. What it answered earlier does not count. */
static void check_images(struct doctor_report *r, const char *name, const struct engine *engine, const char *found)
{
    const struct policy nothing_said = {.engine = engine->name, .workspace = "/"};
    struct container_ask ask = {
        .policy = &nothing_said, .mem = r->mem, .program = found, .podman = same(engine->name, "podman")};
    const char *version = version_of(r->mem, found);
    struct node info;
    struct err e = {0};
    int answers = container_find(&ask, &e);
    /* podman has no daemon, and for an ordinary user an answer leaves a process of it behind. */
    if (answers == 0 && !ask.podman) {
        container_forget(&ask);
        answers = container_info(&ask, &info, &e);
    }
    if (answers < 0)
        put_check(r, CHECK_PART, name, arena_printf(r->mem, "%s: %s", version ? version : found, e.text), NULL);
    else if (ask.podman &&
             r->facts.nested) /* unlike docker's, its containers would be made in this box, and it needs mounts */
        put_check(r, CHECK_PART, name,
                  arena_printf(r->mem, "%s: its containers need mounts and user ids, which this box does not have",
                               version ? version : found),
                  "use it outside of the box");
    else /* its features depend on the image, and on the daemon that has it */
        put_check(r, CHECK_YES, name,
                  arena_printf(r->mem, "%s, %s; needs an image (--image); its features are checked when a box starts",
                               version ? version : "no version", found),
                  NULL);
}

/* What an engine lacks compared with native, or why it cannot be used. */
static void check_engine(struct doctor_report *r, const struct engine *engine)
{
    const char *name = arena_printf(r->mem, "engine-%s", engine->name);
    const char *found = tool_find(r->mem, engine->program);
    const struct policy nothing_said = {.engine = engine->name, .workspace = "/"};
    struct facts facts = {.uid = r->facts.uid,
                          .gid = r->facts.gid,
                          .home = r->facts.home,
                          .policy = &nothing_said,
                          .nested = r->facts.nested,
                          .around = r->facts.around};
    struct err e = {0};
    if (!name)
        return;
    if (!found) {
        put_check(r, CHECK_ABSENT, name,
                  arena_printf(r->mem, "%s is not installed (only needed when asked for)", engine->program),
                  engine->package ? arena_text(r->mem, package_install(engine->package, (char[PACKAGE_WORDS]){0}))
                                  : NULL);
        return;
    }
    if (engine->images) {
        check_images(r, name, engine, found);
        return;
    }
    const char *version = version_of(r->mem, found);
    if (engine->probe(&facts, r->mem, true, &e) < 0) {
        put_check(r, CHECK_PART, name, arena_printf(r->mem, "%s: %s", version ? version : found, e.text), NULL);
        return;
    }
    auto_buf struct buf words = BUF(MAX_WORDS);
    features lacks = r->facts.can & ~facts.can & ~LIMITS_BY_GROUP;
    buf_printf(&words, "%s, %s", version ? version : "no version", found);
    if (lacks) {
        buf_text(&words, "; without ");
        words_features(&words, lacks);
    }
    put_check(r, lacks ? CHECK_PART : CHECK_YES, name, arena_text(r->mem, buf_cstr(&words)), NULL);
}

static void check_engines(struct doctor_report *r)
{
    for (size_t i = 0; engines[i]; i++) {
        if (engines[i]->program)
            check_engine(r, engines[i]);
    }
}

/* One of pinfold's own programs: is it there, does it start, and is it of the same version? `library`: whose package it needs, or NULL. */
static void check_helper(struct doctor_report *r, const char *name, const char *library, const char *needed)
{
    const char *path = NULL;
    struct err e = {0};
    if (tool_helper(r->mem, name, &path, NULL, &e) < 0) {
        put_check(r, CHECK_PART, name, arena_text(r->mem, e.text), needed);
        return;
    }
    const char *const argv[] = {path, "--version", NULL};
    const char *want = arena_printf(r->mem, "%s " PINFOLD_VERSION "\n", name);
    auto_buf struct buf said = BUF(4096), line = BUF(4096);
    int status = tool_ask(argv, VERSION_PATIENCE_MS, &said);
    if (status == 0 && want && strcmp(buf_cstr(&said), want) == 0) {
        put_check(r, CHECK_YES, name, path, NULL);
        return;
    }
    struct str rest = buf_view(&said), first = str_until(&rest, '\n');
    words_safe(&line, arena_str(r->mem, first));
    if (status == 0)
        put_check(r, CHECK_PART, name,
                  arena_printf(r->mem, "%s is '%s', this pinfold is " PINFOLD_VERSION, path, buf_cstr(&line)),
                  "install all of pinfold again, so that its programs have one version");
    else if (line.n)
        put_check(r, CHECK_PART, name, arena_printf(r->mem, "%s does not start: %s", path, buf_cstr(&line)),
                  library && !strstr(buf_cstr(&line), "GLIBC_") /* it was built on a newer system */
                      ? arena_text(r->mem, package_install(library, (char[PACKAGE_WORDS]){0}))
                      : needed);
    else
        put_check(
            r, CHECK_PART, name,
            arena_printf(r->mem, "%s does not start: it was built for another C library than this system's", path),
            needed);
}

static void check_helpers(struct doctor_report *r)
{
    check_helper(r, "pinfold-init", NULL,
                 "install all of pinfold: engines other than native start pinfold-init in their boxes");
    check_helper(r, "pinfold-sqlite", "libsqlite3-0",
                 "install all of pinfold, or build it here with libsqlite3-dev installed: agents' logins in SQLite "
                 "databases need it");
    check_helper(r, "pinfold-login", "libcurl4",
                 "install all of pinfold, or build it here with libcurl4-openssl-dev installed: it renews agents' "
                 "logins");
}

/* Starts a default box. */
static void check_box(struct doctor_report *r)
{
    struct err e = {0};
    uint64_t us = 0;
    features lost = 0;
    const char *how = "";

    if (r->facts.around && nested_allowed() && r->facts.tier == TIER_NAMESPACES) {
        put_check(r, CHECK_PART, "box", "this runs in a pinfold box, whose guard enforces the rules of boxes in it",
                  NULL);
        return;
    }
    if (r->facts.around && r->facts.tier == TIER_LANDLOCK && r->facts.landlock_abi >= 2) {
        put_check(r, CHECK_PART, "box",
                  "this runs in a pinfold box: commands of pinfold run share it, confined further by Landlock",
                  "to give them boxes of their own, start this box with --allow-nested-userns");
        return;
    }
    if (nested_in_box()) {
        put_check(r, CHECK_NO, "box", "this already runs in a pinfold box", "run doctor outside");
        return;
    }
    if (try_box(r->mem, &us, &lost, &how, &e) < 0) {
        r->untried = !how;
        const char *const what = !how   ? "no box could be tried"
                                 : *how ? "a default box starts, but cannot be used"
                                        : "a default box does not start";
        put_check(r, CHECK_NO, "box", arena_printf(r->mem, "%s: %s", what, e.text), NULL);
        return;
    }
    auto_buf struct buf words = BUF(MAX_WORDS);
    buf_printf(&words, "a default box starts, in ");
    words_duration(&words, us);
    buf_printf(&words, ", by %s", how);
    if (lost) {
        buf_text(&words, "; without ");
        words_features(&words, lost);
    }
    put_check(r, lost ? CHECK_PART : CHECK_YES, "box", arena_text(r->mem, buf_cstr(&words)), NULL);
}

/* Sessions whose record went with the state directory; each has a link to where that was. A link to elsewhere is of a
   session that was started with another state directory, and says nothing about this one. */
static unsigned sessions_without_state(struct arena *mem, const char *state)
{
    unsigned n = 0;
    const char *run = runtime_path(mem), *top = run ? arena_printf(mem, "%s/s", run) : NULL;
    DIR *d = top ? opendir(top) : NULL;
    for (struct dirent *entry; d && (entry = readdir(d));) {
        char to[PATH_MAX];
        const char *of = arena_printf(mem, "%s/%s/of", top, entry->d_name);
        const ssize_t len = of ? readlink(of, to, sizeof to - 1) : -1;
        if (len <= 0)
            continue;
        to[len] = '\0';
        if (path_at_or_below(to, state) && access(of, F_OK) < 0 && errno == ENOENT)
            n++;
    }
    if (d)
        (void)closedir(d);
    return n;
}

/* In the nearest directory above it that is there. */
static bool can_be_made(struct arena *mem, const char *path)
{
    const char *above = path;
    int no = ENOENT;
    while (no == ENOENT && above && strcmp(above, "/") != 0) {
        above = path_dir(mem, above);
        no = above && access(above, W_OK | X_OK) < 0 ? errno : 0;
    }
    return no == 0;
}

/* Where layers, sessions and the log are, and what is known of links that boxes have made. */
static void check_state(struct doctor_report *r)
{
    const char *state;
    struct err e = {0};
    if (nested_in_box())
        return;
    if (world_state(r->mem, &state, &e) < 0) {
        put_check(r, CHECK_PART, "state", arena_text(r->mem, e.text), NULL);
        return;
    }
    auto_buf struct buf words = BUF(MAX_WORDS);
    words_safe(&words, state);
    const int no = access(state, W_OK | X_OK) == 0 ? 0 : errno;
    const unsigned left = no == ENOENT ? sessions_without_state(r->mem, state) : 0;
    if (no == 0)
        put_check(r, CHECK_YES, "state", arena_text(r->mem, buf_cstr(&words)), NULL);
    else if (left)
        put_check(r, CHECK_PART, "state",
                  arena_printf(r->mem, "%s was removed, with the records of %u session%s", buf_cstr(&words), left,
                               left == 1 ? "" : "s"),
                  "pinfold session list shows what still runs; end it with pinfold session stop");
    else if (no == ENOENT && !can_be_made(r->mem, state))
        put_check(r, CHECK_PART, "state",
                  arena_printf(r->mem, "%s does not exist, and you cannot create it", buf_cstr(&words)),
                  "set HOME or XDG_STATE_HOME to a directory of yours; without it boxes keep nothing, and no session "
                  "starts");
    else if (no == ENOENT)
        put_check(r, CHECK_YES, "state",
                  arena_printf(r->mem,
                               "%s does not exist: no box was started yet, or it was removed, with all layers and "
                               "sessions; the next box creates it",
                               buf_cstr(&words)),
                  NULL);
    else
        put_check(
            r, CHECK_PART, "state", arena_printf(r->mem, "%s: %s", buf_cstr(&words), strerror(no)),
            "make it writable for you, or set XDG_STATE_HOME to another directory; without it boxes keep nothing");
}

/* Whether this very directory's policy lets a command start, and root write there. */
static void check_here(struct doctor_report *r)
{
    const char *why = r->secrets.why, *root = r->secrets.root_note;
    const bool wide =
        why && str_starts(str_of(why), STR(WORKSPACE_TOO_WIDE)); /* no matter of the machine or a policy */
    if (why)
        put_check(r, wide ? CHECK_PART : CHECK_NO, "policy", arena_printf(r->mem, "no box can start here: %s", why),
                  NULL);
    else if (root)
        put_check(r, CHECK_PART, "workspace", root, NULL);
    else
        put_check(r, CHECK_YES, "policy", "boxes can start in this directory", NULL);
}

/* Prints an untrusted name on a line of its own. */
static void print_safe(struct buf *out, const char *before, const char *text)
{
    buf_text(out, before);
    words_safe(out, text);
}

static void print_git(const struct doctor_report *r, struct buf *out)
{
    const struct git_runs *g = &r->git;
    size_t odd = 0;
    if (!g->top || (!g->repository && g->n == 0))
        return;
    print_safe(out, "\nWhat git on the host runs in '", g->top);
    buf_text(out, "':\n");
    for (size_t i = 0; i < g->n; i++) {
        const struct git_run *one = &g->list[i];
        const char *remedy = git_odd_remedy(r->mem, one);
        odd += one->odd != GIT_USUAL;
        print_safe(out, one->odd != GIT_USUAL ? "LOOK  " : "      ", git_run_text(r->mem, one, g->top));
        if (one->odd != GIT_USUAL)
            buf_printf(out, "\n      %s", git_odd_text(one->odd));
        if (remedy)
            print_safe(out, "\n      -> ", remedy);
        buf_char(out, '\n');
    }
    if (g->n == 0)
        buf_text(out, "      nothing: no hook and no program named in a configuration\n");
    if (g->cut)
        buf_text(out, "      The tree is too large to search completely: run doctor in a subdirectory.\n");
    if (g->not_read)
        buf_printf(out,
                   "      %zu of the configurations, hook directories and reftables %s too large, damaged or "
                   "unreadable and %s not read.\n",
                   g->not_read, g->not_read == 1 ? "is" : "are", g->not_read == 1 ? "was" : "were");
    if (odd)
        buf_printf(out, "%zu of these may not come from you.\n", odd);
}

static void print_secrets(const struct doctor_report *r, struct buf *out)
{
    enum { NAMED = 20 };
    const struct secret_files *s = &r->secrets;
    if (s->why) {
        print_safe(out, "\nSecret files: not looked for: ", s->why);
        buf_char(out, '\n');
        return;
    }
    if (!s->n && !s->hidden)
        return;
    buf_printf(out, "\nSecret files that a box here could read: %s\n", s->n ? "" : "none");
    for (size_t i = 0; i < s->n && i < NAMED; i++) {
        const bool below = !s->list[i].above && s->workspace[1];
        print_safe(out, "LOOK  ", s->list[i].path + (below ? strlen(s->workspace) + 1 : 0));
        buf_printf(out, ": %s\n", s->list[i].what);
    }
    if (s->n > NAMED)
        buf_printf(out, "      and %zu more, see --json\n", s->n - NAMED);
    if (s->n)
        buf_text(out, "      -> hide what a command does not need: --hide PATH, or files.hide in a policy\n");
    if (s->hidden)
        buf_printf(out, "      %zu %s hidden.\n", s->hidden, s->hidden == 1 ? "other is" : "others are");
    if (s->cut)
        buf_text(out, "      Not everything was looked at: the tree is too large.\n");
}

static void print_foreign(const struct doctor_report *r, struct buf *out)
{
    const struct foreign_files *f = &r->foreign;
    if (!f->n)
        return;
    buf_printf(out, "\nCopy-on-write (run --cow): %zu %s belong%s to another user or group", f->n,
               f->n == 1 ? "file or directory here" : "files and directories here", f->n == 1 ? "s" : "");
    print_safe(out, ", such as '", f->first ? f->first : "");
    buf_text(out,
             "':\n      a box with a layer can read and remove them, not change, rename or chmod them (EOVERFLOW)\n"
             "      -> give them to yourself: chown, chgrp\n");
    if (f->cut)
        buf_text(out, "      Not everything was looked at: the tree is too large.\n");
}

/* The last line: whether to go on, and what is in the way. */
static void print_verdict(const struct doctor_report *r, size_t broken, struct buf *out)
{
    const struct check *box = NULL, *here = NULL;
    size_t parts = 0;
    for (size_t i = 0; i < r->n_checks; i++) {
        const struct check *c = &r->checks[i];
        if (same(c->name, "box"))
            box = c;
        else if (same(c->name, "policy") || same(c->name, "workspace"))
            here = c;
        else
            parts += c->state == CHECK_PART && !str_starts(str_of(c->name), STR("engine-"));
    }
    buf_text(out, "\nVerdict: ");
    if (broken)
        buf_text(out, "do not rely on boxes here: attacks did not hold.\n");
    else if (box && box->state == CHECK_NO && r->untried)
        buf_text(out, "whether boxes start here is not known; see line 'box'.\n");
    else if (!box || box->state == CHECK_NO)
        buf_text(out, "boxes do not work here; see the lines that begin with NO.\n");
    else if (here && here->state != CHECK_YES)
        buf_printf(out, "boxes work on this machine, but not in this directory: see line '%s'.\n", here->name);
    else if (box->state == CHECK_PART)
        buf_text(out, "boxes work here, with the losses named in line 'box'.\n");
    else if (parts)
        buf_text(out, "boxes work here, and a default box loses nothing; what options may lose is in the lines that "
                      "begin with 'part'.\n");
    else
        buf_text(out, "boxes work here; nothing is lost.\n");
}

/* An earlier check with the same reason and remedy, or NULL. */
static const struct check *same_check_before(const struct doctor_report *r, size_t at)
{
    const struct check *c = &r->checks[at];
    for (size_t i = 0; c->state == CHECK_PART && i < at; i++) {
        const struct check *other = &r->checks[i];
        if (other->state == CHECK_PART && c->detail[0] && strcmp(other->detail, c->detail) == 0 &&
            (c->remedy == other->remedy || (c->remedy && other->remedy && strcmp(c->remedy, other->remedy) == 0)))
            return other;
    }
    return NULL;
}

static void print_text(const struct doctor_report *r, struct buf *out)
{
    static const char states[][8] = {
        [CHECK_YES] = "yes", [CHECK_PART] = "part", [CHECK_NO] = "NO", [CHECK_ABSENT] = "-"};
    static const char helds[][12] = {
        [HELD] = "held", [HELD_LOST] = "lost", [HELD_UNPROVED] = "unproved", [BROKEN] = "BROKEN"};
    size_t broken = 0;

    buf_printf(out, "pinfold %s on %s %s (%s), user %u\n\n", PINFOLD_VERSION, r->host.sysname, r->host.release,
               r->host.machine, (unsigned)getuid());
    for (size_t i = 0; i < r->n_checks; i++) {
        const struct check *c = &r->checks[i], *said = same_check_before(r, i);
        buf_printf(out, "%-5s %-22s %s%s\n", states[c->state], c->name, said ? "for the reason of " : "",
                   said ? said->name : c->detail);
        if (c->remedy && !said)
            buf_printf(out, "      %-22s -> %s\n", "", c->remedy);
    }
    buf_text(out, "\nGuarantees, as --may-lose and --must-have name them:\n");
    for (int i = 0; i < FEATURE_COUNT; i++)
        buf_printf(out, "      %-22s %s\n", feature_name((enum feature)i), feature_text((enum feature)i));
    print_git(r, out);
    print_secrets(r, out);
    print_foreign(r, out);
    if (r->n_verdicts)
        buf_text(out, "\nAttacks on default boxes:\n");
    for (size_t i = 0; i < r->n_verdicts; i++) {
        const struct verdict *v = &r->verdicts[i];
        buf_printf(out, "%-8s %-20s %s%s", helds[v->held], v->attack,
                   v->held == BROKEN || v->held == HELD_LOST ? v->must && v->held == BROKEN ? "does not work: " : ""
                   : v->must                                 ? "works: "
                                                             : "refused: ",
                   v->what);
        buf_printf(out, "%s%s%s\n", v->how[0] ? " (" : "", v->how, v->how[0] ? ")" : "");
        broken += v->held == BROKEN;
    }
    if (r->n_verdicts && broken)
        buf_printf(out, "\n%zu of %zu attacks did not hold. Do not rely on boxes here.\n", broken, r->n_verdicts);
    else if (r->n_verdicts)
        buf_printf(out, "\nNone of %zu attacks broke a box.\n", r->n_verdicts);
    print_verdict(r, broken, out);
}

static void git_json(const struct doctor_report *r, struct json *j)
{
    const struct git_runs *g = &r->git;
    json_object(j, "git");
    json_text(j, "directory", g->top ? g->top : "");
    json_bool(j, "repository", g->repository);
    json_bool(j, "all_looked_at", !g->cut && !g->not_read);
    json_array(j, "runs");
    for (size_t i = 0; i < g->n; i++) {
        const struct git_run *one = &g->list[i];
        const char *remedy = git_odd_remedy(r->mem, one);
        json_object(j, NULL);
        json_text(j, "file", one->file);
        if (one->key)
            json_text(j, "key", one->key);
        json_text(j, "value", one->value);
        json_bool(j, "yours", one->odd == GIT_USUAL);
        json_text(j, "why", git_odd_text(one->odd));
        if (remedy)
            json_text(j, "remedy", remedy);
        json_object_end(j);
    }
    json_array_end(j);
    json_object_end(j);
}

static void secrets_json(const struct doctor_report *r, struct json *j)
{
    const struct secret_files *s = &r->secrets;
    json_object(j, "secrets");
    json_array(j, "readable");
    for (size_t i = 0; i < s->n; i++) {
        json_object(j, NULL);
        json_text(j, "file", s->list[i].path);
        json_text(j, "what", s->list[i].what);
        json_object_end(j);
    }
    json_array_end(j);
    json_uint(j, "hidden", s->hidden);
    json_bool(j, "all_looked_at", !s->cut && !s->why);
    json_object_end(j);
}

static void put_report(const struct doctor_report *r, struct json *j)
{
    static const char states[][8] = {
        [CHECK_YES] = "yes", [CHECK_PART] = "part", [CHECK_NO] = "no", [CHECK_ABSENT] = "absent"};
    static const char helds[][12] = {
        [HELD] = "held", [HELD_LOST] = "lost", [HELD_UNPROVED] = "unproved", [BROKEN] = "broken"};

    json_object(j, NULL);
    json_int(j, "v", 1);
    json_text(j, "version", PINFOLD_VERSION);
    json_text(j, "kernel", r->host.release);
    json_text(j, "machine", r->host.machine);
    json_text(j, "tier", r->facts.tier == TIER_NAMESPACES ? "namespaces" : "landlock");
    json_bool(j, "ok", !r->failed);
    json_array(j, "checks");
    for (size_t i = 0; i < r->n_checks; i++) {
        const struct check *c = &r->checks[i];
        json_object(j, NULL);
        json_text(j, "name", c->name);
        json_text(j, "state", states[c->state]);
        json_text(j, "detail", c->detail);
        if (c->remedy)
            json_text(j, "remedy", c->remedy);
        else
            json_null(j, "remedy");
        json_object_end(j);
    }
    json_array_end(j);
    json_array(j, "guarantees");
    for (int i = 0; i < FEATURE_COUNT; i++) {
        json_object(j, NULL);
        json_text(j, "name", feature_name((enum feature)i));
        json_text(j, "promises", feature_text((enum feature)i));
        json_object_end(j);
    }
    json_array_end(j);
    git_json(r, j);
    secrets_json(r, j);
    json_object(j, "cow");
    json_uint(j, "foreign_files", r->foreign.n);
    json_text_or_null(j, "first", r->foreign.first);
    json_bool(j, "all_looked_at", !r->foreign.cut);
    json_object_end(j);
    if (r->n_verdicts) {
        json_array(j, "attacks");
        for (size_t i = 0; i < r->n_verdicts; i++) {
            json_object(j, NULL);
            json_text(j, "attack", r->verdicts[i].attack);
            json_text(j, "what", r->verdicts[i].what);
            json_text(j, "held", helds[r->verdicts[i].held]);
            json_text(j, "how", r->verdicts[i].how);
            json_object_end(j);
        }
        json_array_end(j);
    }
    json_object_end(j);
}

static int doctor(bool verify, struct doctor_report *ret, struct err *e)
{
    struct arena *mem = ret->mem;

    if (!mem)
        return err_sys(e, ERR_SYSTEM, ENOMEM, "doctor");
    (void)uname(&ret->host);
    ret->facts.uid = geteuid();
    ret->facts.gid = getegid();
    ret->facts.nested = nested_in_box();
    ret->facts.around = ret->facts.nested ? nested_around(mem, NULL) : NULL;
    int error = engine_native.probe(&ret->facts, mem, true, e);
    if (error < 0)
        return error;
    cgroup_probe(&ret->facts, true, mem);
    check_kernel(ret);
    check_egress(ret);
    check_cgroup(ret);
    check_features(ret);
    check_state(ret);
    check_box(ret);
    check_engines(ret);
    check_helpers(ret);
    if (doctor_git(mem, getenv("HOME"), &ret->git) < 0 || doctor_secrets(mem, getenv("HOME"), &ret->secrets) < 0 ||
        doctor_foreign(mem, ret->git.top, &ret->foreign) < 0)
        return err_sys(e, ERR_SYSTEM, ENOMEM, "doctor");
    check_here(ret);
    if (verify) {
        error = verify_box(mem, &ret->verdicts, &ret->n_verdicts, e);
        if (error < 0)
            return err_wrap(e, error, "doctor --verify");
    }
    for (size_t i = 0; i < ret->n_verdicts; i++)
        ret->failed |= ret->verdicts[i].held == BROKEN;
    if (arena_failed(mem))
        return err_sys(e, ERR_SYSTEM, ENOMEM, "doctor");
    return ret->failed ? 1 : 0;
}

int pinfold_doctor(enum pinfold_explain_format format, int verify, char **ret, struct pinfold_error *error)
{
    auto_arena struct arena *mem = arena_new(MAX_DOCTOR);
    auto_buf struct buf out = BUF(MAX_ANSWER_TEXT);
    struct doctor_report report = {.mem = mem};
    struct json j = JSON(&out);
    struct err e = {0};
    int r = doctor(verify != 0, &report, &e);
    if (r < 0)
        return tell(error, &e, r);
    if (format == PINFOLD_EXPLAIN_JSON) {
        j.pretty = true;
        put_report(&report, &j);
        buf_char(&out, '\n');
    } else {
        print_text(&report, &out);
    }
    int given = give(&out, ret, error);
    return given < 0 ? given : r;
}

/* What a box here could read and what git would run, as in the whole report, without a look at the machine and its engines. */
int doctor_dangers_report(struct pinfold_report **ret, struct pinfold_error *error)
{
    auto_arena struct arena *mem = arena_new(MAX_DOCTOR);
    struct pinfold_report *values = report_new();
    struct doctor_report report = {.mem = mem};
    struct err e = {0};
    int r = !mem || doctor_git(mem, getenv("HOME"), &report.git) < 0 ||
                    doctor_secrets(mem, getenv("HOME"), &report.secrets) < 0
                ? err_sys(&e, ERR_SYSTEM, ENOMEM, "doctor")
                : 0;
    if (r == 0 && values) {
        struct json *j = &JSON_TREE(&values->values);
        json_object(j, NULL);
        git_json(&report, j);
        secrets_json(&report, j);
        json_object_end(j);
    }
    return report_give(values, r, &e, ret, error);
}

int pinfold_doctor_report(int verify, struct pinfold_report **ret, struct pinfold_error *error)
{
    auto_arena struct arena *mem = arena_new(MAX_DOCTOR);
    struct pinfold_report *values = report_new();
    struct doctor_report report = {.mem = mem};
    struct err e = {0};
    int r = doctor(verify != 0, &report, &e);
    if (r >= 0 && values)
        put_report(&report, &JSON_TREE(&values->values));
    int given = report_give(values, r, &e, ret, error);
    return given < 0 ? given : r;
}
