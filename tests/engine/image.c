/*
 * Plan images written by hand, step by step, and boxes run from them. For tests of the native engine alone: no policy
 * and no planner comes between.
 */
#include "image.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "sys/fd.h"
#include "protocol/guard_table.h"

#define NEW_CGROUP 0x02000000u

struct image *image_new(void)
{
    struct image *i = calloc(1, sizeof *i);
    if (!i)
        abort();
    i->n_strings = 1;
    i->uid = geteuid();
    i->gid = getegid();
    return i;
}

uint32_t image_text(struct image *i, const char *text)
{
    uint32_t at = i->n_strings;
    size_t n = strlen(text) + 1;
    if (n > sizeof i->strings - at)
        abort();
    memcpy(i->strings + at, text, n);
    i->n_strings += (uint32_t)n;
    return at;
}

struct step *image_put_step(struct image *i, enum step_kind kind, const char *a, const char *b, unsigned flags,
                            unsigned mode)
{
    if (i->n_steps == sizeof i->steps / sizeof *i->steps)
        abort();
    struct step *s = &i->steps[i->n_steps++];
    *s = (struct step){.kind = (uint8_t)kind, .flags = (uint8_t)flags, .mode = (uint16_t)mode};
    if (a)
        s->a = image_text(i, a);
    if (b)
        s->b = image_text(i, b);
    return s;
}

void image_stub(struct image *i, const char *path, enum stub what)
{
    struct step *head = &i->steps[i->n_steps];
    do
        head--;
    while (head->kind == STEP_STUB);
    head->b++;
    image_put_step(i, STEP_STUB, path, NULL, 0, what);
}

void image_guard(struct image *i, unsigned kind, const char *text, unsigned place, unsigned flags)
{
    struct guard_table *t = (void *)i->guard;
    t->rules[t->n_rules++] = (struct guard_rule){
        .kind = (uint8_t)kind, .place = (uint8_t)place, .flags = (uint8_t)flags, .text = image_text(i, text)};
}

struct plan_image *image_finish(const struct image *i)
{
    const struct guard_table *t = (const void *)i->guard;
    bool guarded = i->filter & (FILTER_GUARD | FILTER_READS);
    size_t steps = i->n_steps * sizeof(struct step);
    size_t guard = guarded ? sizeof *t + t->n_rules * sizeof t->rules[0] : 0;
    size_t bytes = sizeof(struct plan_image) + steps + guard + i->n_strings;
    struct plan_image *p = calloc(1, bytes);
    if (!p)
        abort();
    *p = (struct plan_image){.magic = PLAN_MAGIC,
                             .bytes = (uint32_t)bytes,
                             .n_steps = i->n_steps,
                             .steps_at = sizeof *p,
                             .guard_at = guard ? (uint32_t)(sizeof *p + steps) : 0,
                             .guard_bytes = (uint32_t)guard,
                             .strings_at = (uint32_t)(sizeof *p + steps + guard),
                             .strings_bytes = i->n_strings,
                             .namespaces = i->namespaces,
                             .filter = i->filter,
                             .uid = i->uid,
                             .gid = i->gid,
                             .tier = i->tier};
    memcpy((char *)p + p->steps_at, i->steps, steps);
    memcpy((char *)p + sizeof *p + steps, t, guard);
    memcpy((char *)p + p->strings_at, i->strings, i->n_strings);
    if (plan_image_check(p, bytes) < 0) {
        fprintf(stderr, "the test's own plan image is malformed\n");
        abort();
    }
    return p;
}

struct image *image_of_parts(const char *workspace, unsigned parts)
{
    struct image *i = image_new();
    i->namespaces = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | NEW_CGROUP;
    if (!(parts & BOX_NET_HOST))
        i->namespaces |= CLONE_NEWNET;
    if (parts & BOX_ROOT_USER)
        i->uid = i->gid = 0;
    if (parts & BOX_GUARD) {
        i->filter = FILTER_GUARD;
        image_guard(i, GUARD_RULE_ROOT, workspace ? workspace : "/nowhere", 0, 0);
        image_guard(i, GUARD_RULE_PRIVATE, "/tmp", 0, 0);
        image_guard(i, GUARD_RULE_PRIVATE, "/dev", 0, 0);
    }
    image_put_step(i, STEP_ROOT, NULL, NULL, STEP_RDONLY | STEP_NOSUID, 0);
    if (workspace)
        image_put_step(i, STEP_SOURCE, workspace, NULL, 0, 0);
    image_put_step(i, STEP_ENTER, NULL, NULL, 0, 0);
    image_put_step(i, STEP_DEVICES, "/dev", NULL, STEP_RDONLY, 0);
    image_put_step(i, STEP_TMPFS, "/tmp", NULL, STEP_NOSUID | STEP_NODEV, 01777);
    if (workspace)
        image_put_step(i, STEP_ATTACH, workspace, NULL, STEP_NOSUID | STEP_NODEV, 0);
    return i;
}

void image_locks(struct image *i, unsigned parts)
{
    if (!(parts & BOX_NET_HOST))
        image_put_step(i, STEP_LOOPBACK, NULL, NULL, 0, 0);
    image_put_step(i, STEP_HOSTNAME, "box", NULL, 0, 0);
    image_put_step(i, STEP_PROC, "/proc", NULL, 0, 0);
    image_put_step(i, STEP_PROC_LOCK, "/proc", NULL, 0, 0);
    image_put_step(i, STEP_DEVPTS, "/dev/pts", NULL, 0, 0);
    image_put_step(i, STEP_KEYRING, NULL, NULL, 0, 0);
    if (syscall(SYS_landlock_create_ruleset, NULL, 0, 1 /* version */) >= 6)
        image_put_step(i, STEP_RULESET, NULL, NULL, 0, 3);
    image_put_step(i, STEP_NO_CAPS, NULL, NULL, 0, 0);
    image_put_step(i, STEP_NO_NEW_PRIVS, NULL, NULL, 0, 0);
    image_put_step(i, STEP_UNDUMPABLE, NULL, NULL, 0, 0);
    image_put_step(i, STEP_FILTER, NULL, NULL, 0, 0)->a = i->filter;
    image_put_step(i, STEP_CWD, "/", NULL, 0, 0);
}

struct image *image_box(const char *workspace, unsigned parts)
{
    struct image *i = image_of_parts(workspace, parts);
    image_locks(i, parts);
    return i;
}

/* ---- running ---- */

struct state {
    const struct run_ask *ask;
    const struct plan *plan;
    struct started box;
    struct ran *ran;
    int out, master;
    bool signalled;
};

static void take_verdict(struct state *s, const struct frame *f)
{
    struct err e = {0};
    s->ran->verdict = (int)f->b;
    s->ran->where = f->a;
    (void)engine_verdict(s->plan, f->a, (int)f->b, &e);
    memcpy(s->ran->words, e.text, sizeof s->ran->words);
}

static bool take_output(struct state *s, int *fd)
{
    struct ran *r = s->ran;
    ssize_t n = read(*fd, r->out + r->n_out, sizeof r->out - 1 - r->n_out);
    if (n <= 0) {
        *fd = sys_shut(*fd);
        return false;
    }
    r->n_out += (size_t)n;
    r->out[r->n_out] = 0;
    if (s->ask->ready && !s->signalled && strstr(r->out, s->ask->ready)) {
        const struct frame f = {
            .kind = FRAME_SIGNAL, .a = (uint32_t)s->ask->signal, .b = (uint32_t)s->ask->signal_target};
        if (f.a)
            (void)sys_send_fd(s->box.control, &f, sizeof f, -1, 0);
        s->signalled = true;
        if (s->ask->type && write(s->master, s->ask->type, strlen(s->ask->type)) < 0)
            abort();
        if (s->ask->on_ready)
            s->ask->on_ready(s->ask->ctx);
    }
    return true;
}

/* A box with a terminal ends when it is told to, for its end would take along what was not read. */
static void last_words(struct state *s)
{
    const struct frame end = {.kind = FRAME_END};
    struct pollfd p = {.fd = s->master, .events = POLLIN};
    while (s->master >= 0 && poll(&p, 1, 0) == 1 && take_output(s, &s->master))
        ;
    (void)sys_send_fd(s->box.control, &end, sizeof end, -1, 0);
}

/* False at the end of the stream. */
static bool take_frame(struct state *s, int from)
{
    union {
        struct frame f;
        struct denial_frame d;
    } u;
    int fd = -1;
    long n = sys_recv_fd(from, &u, sizeof u, &fd, 0);
    if (n <= 0)
        return n < 0; /* a call that was made to fail is made again */
    switch (u.f.kind) {
    case FRAME_VERDICT:
        take_verdict(s, &u.f);
        break;
    case FRAME_EXEC_FAILED:
        s->ran->exec_errno = (int)u.f.b;
        break;
    case FRAME_EXIT:
        s->ran->exited = true;
        s->ran->status = (int)u.f.b;
        s->ran->stdin_at = u.f.stdin_at;
        s->ran->utime_us = u.f.utime_us;
        if (s->ask->tty)
            last_words(s);
        break;
    case FRAME_STOPPED: {
        const struct frame go = {.kind = FRAME_SIGNAL, .a = SIGCONT, .b = SIGNAL_FOREGROUND};
        s->ran->stops++;
        usleep(20000);
        (void)sys_send_fd(s->box.control, &go, sizeof go, -1, 0);
        if (s->master >= 0 && write(s->master, "\x04", 1) < 0) /* and then the end of its input */
            abort();
        break;
    }
    case FRAME_DENIAL:
        s->ran->denials++;
        break;
    case FRAME_TTY:
        s->master = sys_taken(&fd);
        break;
    case FRAME_PIPE:
        s->ran->pipes++; /* stdin: everything of it, now; others: nobody reads here */
        if (u.f.a == 0) {
            char bytes[65536];
            ssize_t got = read(s->ask->in, bytes, sizeof bytes);
            if (got > 0 && write(fd, bytes, (size_t)got) != got)
                abort();
        }
        break;
    default:
        break;
    }
    sys_drop(&fd);
    return true;
}

/* Until builder and streams are at their end. */
static void pump(struct state *s)
{
    bool control = true, builder = true;
    while (control || builder || s->out >= 0) {
        struct pollfd p[4] = {{.fd = control ? s->box.control : -1, .events = POLLIN},
                              {.fd = builder ? s->box.builder : -1, .events = POLLIN},
                              {.fd = s->out, .events = POLLIN},
                              {.fd = s->master, .events = POLLIN}};
        if (poll(p, 4, 120000) <= 0)
            return;
        if (p[2].revents)
            take_output(s, &s->out);
        if (p[3].revents)
            take_output(s, &s->master);
        if (p[0].revents && !take_frame(s, s->box.control))
            control = false;
        if (p[1].revents && !take_frame(s, s->box.builder))
            builder = false;
    }
    while (s->master >= 0)
        (void)take_output(s, &s->master);
}

/* What is known when no frame tells: how the builder ended. */
static void builder_end(struct state *s)
{
    struct pollfd p = {.fd = s->box.pidfd, .events = POLLIN};
    siginfo_t info = {0};
    if (!s->ran->exited && !s->ran->verdict && poll(&p, 1, 60000) == 1 &&
        waitid(3 /* P_PIDFD */, (id_t)s->box.pidfd, &info, WEXITED | WNOWAIT | __WALL) == 0)
        s->ran->builder_status = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
}

int image_run(const struct run_ask *ask, struct ran *ret)
{
    static const char *const path_only[] = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", NULL};
    static struct origin origin = {.layer = LAYER_FLAGS, .file = "--test"};
    static const struct policy nothing = {.origins = &origin, .n_origins = 1};
    struct err e = {0};
    int out[2] = {-1, -1}, null = open("/dev/null", O_RDWR | O_CLOEXEC);
    struct plan_image *image = image_finish(ask->image);
    struct plan plan = {.policy = &nothing, .image = image};
    plan.env = (const char **)(uintptr_t)(ask->env ? ask->env : path_only);
    struct start_request start = {.plan = &plan,
                                  .argv = ask->argv,
                                  .stdio = {ask->in >= 0 ? ask->in : null, 1, 2},
                                  .tty = ask->tty,
                                  .rows = 24,
                                  .columns = 80,
                                  .umask = ask->umask ? ask->umask : 022,
                                  .egress = -1,
                                  .publish = -1,
                                  .cgroup = ask->cgroup,
                                  .parent_death_signal = true};
    struct state s = {.ask = ask, .plan = &plan, .ran = ret, .out = -1, .master = -1};
    memset(ret, 0, sizeof *ret);
    ret->stdin_at = -1;
    if (!ask->cgroup.kind)
        start.cgroup.v2_dir = -1;
    if (!ask->keep_output) {
        if (pipe2(out, O_CLOEXEC) < 0)
            abort();
        start.stdio[1] = start.stdio[2] = out[1];
    }
    if (ask->tty)
        start.stdio[0] = start.stdio[1] = start.stdio[2] = -1;
    int r = engine_native.start(&start, &s.box, &e);
    sys_shut(out[1]);
    sys_shut(null);
    if (r < 0) {
        memcpy(ret->words, e.text, sizeof ret->words);
        sys_shut(out[0]);
    } else {
        s.out = out[0];
        pump(&s);
        builder_end(&s);
        engine_native.finish(&s.box);
        sys_shut(s.out);
        sys_shut(s.master);
    }
    free(image);
    return r;
}
