/*
 * libpinfold for other programs: every call starts the installed, static `pinfold --serve` on one end of a socket pair,
 * sends one request and reads the answer. So the caller's process never creates namespaces, forks, or gets threads of
 * ours.
 *
 * The caller's child is a launcher without an exit signal: the caller gets no SIGCHLD, and its wait() and waitpid()
 * never see it (clone(2), __WCLONE); we wait by pidfd. The server is the launcher's child. Both start with all signals
 * blocked, so no handler of the caller runs in them. Descriptors are close-on-exec. The box ends when the connection
 * closes, not with a thread: the thread that started it may exit.
 *
 * The program's path is set when the library is built; it is opened once and executed by descriptor. It must belong to
 * root, to the caller or to the owner of the library, and be writable only by its owner. No environment variable can
 * name another one.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "client/remote.h"
#include "run/report.h"
#include "sys/sys.h"

#define CHILD_STACK   (64u << 10)
#define CHILD_SOCKET  3
#define KERNEL_SIGSET 8 /* bytes of a signal set in the kernel's calls */
#define LAST_SIGNAL   64

extern char **environ;

/* Whoever installed the library may have installed the program. */
static uid_t library_owner(void)
{
    Dl_info info;
    struct stat st;
    if (dladdr((void *)(uintptr_t)pinfold_version, &info) && info.dli_fname && info.dli_fname[0] == '/' &&
        stat(info.dli_fname, &st) == 0)
        return st.st_uid;
    return 0;
}

static int open_program(int *ret, struct err *e)
{
    struct stat st;
    auto_fd int fd = open(PINFOLD_PROGRAM, O_PATH | O_CLOEXEC);

    if (fd < 0)
        return err_sys(e, ERR_CANNOT, errno, "cannot open '%s', which this library needs; install pinfold",
                       PINFOLD_PROGRAM);
    if (fstat(fd, &st) < 0)
        return err_sys(e, ERR_SYSTEM, errno, "cannot stat '%s'", PINFOLD_PROGRAM);
    if (!S_ISREG(st.st_mode) || (st.st_mode & (S_IWOTH | S_IWGRP)))
        return err_say(e, ERR_REFUSED, "'%s' must be writable by its owner only; run: chmod go-w '%s'", PINFOLD_PROGRAM,
                       PINFOLD_PROGRAM);
    if (st.st_uid != 0 && st.st_uid != geteuid() && st.st_uid != library_owner())
        return err_say(e, ERR_REFUSED,
                       "'%s' belongs to user %u; it must belong to root, to you, or to the library's owner",
                       PINFOLD_PROGRAM, (unsigned)st.st_uid);
    *ret = take_fd(&fd);
    return 0;
}

/*
 * Two processes share the caller's memory for a while: the launcher, a child without exit signal, which execve would give
 * back to it (exec sets it to SIGCHLD), so it never executes anything; and its own child, which becomes the server. Only
 * raw system calls in them: errno and all other thread-local things are the calling thread's.
 */
struct remote_server {
    int socket, pidfd;   /* of the connection, of the launcher */
    int program, theirs; /* numbers in the launcher's table; ours are closed once it has that */
    char *const *environment;
    char *stacks; /* both of them, mapped */
    int no;       /* errno of what failed before the program ran; read when the launcher is gone */
};

static long call(long nr, long a, long b, long c, long d, long e)
{
    return sys_raw(nr, a, b, c, d, e, 0);
}

static _Noreturn void leave(void)
{
    for (;;)
        (void)call(SYS_exit_group, 0, 0, 0, 0, 0);
}

static int server_main(void *ctx)
{
    struct remote_server *s = ctx;
    static const char *const argv[] = {"pinfold", "--serve", NULL};
    static const struct {
        uintptr_t handler, flags, restorer;
        uint64_t mask;
    } as_born;
    uint64_t none = 0;

    /* An ignored signal would stay ignored in the box; dispositions are this process's own copy. */
    for (int n = 1; n <= LAST_SIGNAL; n++)
        (void)call(SYS_rt_sigaction, n, (long)&as_born, 0, KERNEL_SIGSET, 0);
    /* Both out of the way of 0 to 3 first. */
    long socket = call(SYS_fcntl, s->theirs, F_DUPFD_CLOEXEC, CHILD_SOCKET + 2, 0, 0);
    long program = call(SYS_fcntl, s->program, F_DUPFD_CLOEXEC, CHILD_SOCKET + 2, 0, 0);
    long null = call(SYS_openat, AT_FDCWD, (long)"/dev/null", O_RDWR, 0, 0);
    long r = socket < 0 ? socket : program < 0 ? program : null < 0 ? null : 0;
    for (int fd = 0; r >= 0 && fd < 3; fd++)
        r = null == fd ? 0 : call(SYS_dup3, null, fd, 0, 0, 0);
    if (r >= 0)
        r = call(SYS_dup3, socket, CHILD_SOCKET, 0, 0, 0);
    if (r >= 0)
        (void)call(SYS_close_range, CHILD_SOCKET + 1, ~0U, CLOSE_RANGE_CLOEXEC, 0, 0);
    if (r >= 0)
        r = call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&none, 0, KERNEL_SIGSET, 0);
    if (r >= 0)
        r = call(SYS_execveat, program, (long)"", (long)argv, (long)s->environment, AT_EMPTY_PATH);
    s->no = (int)-r;
    leave();
}

static int launcher_main(void *ctx)
{
    struct remote_server *s = ctx;
    int pid = clone(server_main, s->stacks + CHILD_STACK, CLONE_VM | CLONE_VFORK | SIGCHLD, s);
    if (pid < 0)
        s->no = EAGAIN;
    /* Whatever the caller has open must not stay open because of us. */
    (void)call(SYS_close_range, 0, ~0U, 0, 0, 0);
    if (pid > 0)
        while (call(SYS_wait4, pid, 0, __WALL, 0, 0) == -EINTR)
            ;
    leave();
}

static int start_sessiond(struct remote_server *s)
{
    uint64_t all = ~(uint64_t)0, before;
    void *stacks = mmap(NULL, 2 * CHILD_STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);

    if (stacks == MAP_FAILED)
        return -errno;
    s->stacks = stacks;
    (void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, KERNEL_SIGSET);
    int pid = clone(launcher_main, s->stacks + 2 * CHILD_STACK, CLONE_VM | CLONE_PIDFD, s, &s->pidfd);
    int no = errno;
    (void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, KERNEL_SIGSET);
    if (pid < 0)
        s->pidfd = -1;
    return pid < 0 ? -no : 0;
}

/* Waits for the launcher by its descriptor; __WCLONE because it has no exit signal. */
static void server_end(struct remote_server *s)
{
    s->socket = close_fd(s->socket); /* the end of the connection is the end of the box */
    if (s->pidfd >= 0) {
        siginfo_t info;
        while (waitid(3 /* P_PIDFD */, (id_t)s->pidfd, &info, WEXITED | __WCLONE) < 0 && errno == EINTR)
            ;
    }
    s->pidfd = close_fd(s->pidfd);
    if (s->stacks)
        (void)munmap(s->stacks, 2 * CHILD_STACK);
    s->stacks = NULL;
}

static int server_start(struct remote_server *s, struct err *e)
{
    int pair[2];

    *s = (struct remote_server){.socket = -1, .pidfd = -1, .program = -1, .theirs = -1, .environment = environ};
    auto_fd int program = -1;
    int r = open_program(&program, e);
    if (r < 0)
        return r;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(e, ERR_SYSTEM, errno, "cannot start '%s'", PINFOLD_PROGRAM);
    s->socket = pair[0];
    /* The launcher's table of descriptors is a copy: with ours closed, the end of the server ends the stream. */
    auto_fd int theirs = pair[1];
    s->theirs = theirs;
    s->program = program;
    r = start_sessiond(s);
    return r < 0 ? err_sys(e, ERR_SYSTEM, -r, "cannot start '%s'", PINFOLD_PROGRAM) : 0;
}

int remote_broken(struct err *e, int r)
{
    return err_sys(e, ERR_BUG, -r, "cannot communicate with '%s'", PINFOLD_PROGRAM);
}

/* A question of the server's: the answer goes back, and nothing else does. */
static int answer_question(int socket, struct str rest, const struct remote_along *along, struct arena *mem)
{
    auto_buf struct buf reply = BUF(4096);
    struct message_question asked;

    if (message_take(&rest, TAG_QUESTION, SHAPE_question, mem, &asked) < 0 || !asked.target || !asked.how ||
        !asked.command || !along->ask)
        return -EBADMSG;
    const struct pinfold_question q = {.size = sizeof q,
                                       .target = asked.target,
                                       .how = asked.how,
                                       .command = asked.command,
                                       .pid = (uint32_t)asked.pid,
                                       .timeout_ms = (uint32_t)asked.timeout_ms};
    const struct message_reply said = {.answer = along->ask(along->ask_ctx, &q)};
    message_put(&reply, TAG_REPLY, SHAPE_reply, &said);
    return message_send(socket, &reply, NULL, 0);
}

static int hear_refusal(struct str rest, const struct remote_along *along, struct arena *mem)
{
    struct message_refusal told;
    if (message_take(&rest, TAG_REFUSAL, SHAPE_refusal, mem, &told) < 0 || !along->denied || !told.kind ||
        !told.action || !told.target || !told.rule || !told.origin || !told.how || !told.command || !told.address ||
        !told.why || !told.command_line || !told.host || !told.remedy || !told.error)
        return -EBADMSG;
    const struct pinfold_denial d = {.size = sizeof d,
                                     .kind = told.kind,
                                     .action = told.action,
                                     .target = told.target,
                                     .rule = told.rule,
                                     .origin = told.origin,
                                     .how = told.how,
                                     .command = told.command,
                                     .address = told.address,
                                     .why = told.why,
                                     .pid = (uint32_t)told.pid,
                                     .command_line = told.command_line,
                                     .host = told.host,
                                     .remedy = told.remedy,
                                     .error = told.error,
                                     .count = told.count,
                                     .monitor = told.monitor != 0,
                                     .guess = told.guess != 0};
    along->denied(along->denied_ctx, &d);
    return 0;
}

/* One message that is not the answer yet: a sentence for the person, captured bytes as they came, a question. */
static int hear(int socket, struct str rest, const struct remote_along *along)
{
    auto_arena struct arena *mem = arena_new(MAX_REQUEST_BYTES);
    struct message_said said;
    struct message_output written;

    if (!mem)
        return -ENOMEM;
    switch (message_peek(rest)) {
    case TAG_SAID:
        if (message_take(&rest, TAG_SAID, SHAPE_said, mem, &said) < 0 || said.what > PINFOLD_SAY_WARNING ||
            !said.sentence)
            return -EBADMSG;
        if (along->say)
            along->say(along->say_ctx, (enum pinfold_say)said.what, said.sentence);
        return 0;
    case TAG_OUTPUT:
        if (message_take(&rest, TAG_OUTPUT, SHAPE_output, mem, &written) < 0 || !along->output)
            return -EBADMSG;
        along->output(along->output_ctx, (int)written.which, written.bytes.p, written.bytes.n);
        return 0;
    case TAG_REFUSAL:
        return hear_refusal(rest, along, mem);
    default:
        return answer_question(socket, rest, along, mem);
    }
}

static int talk(int socket, const struct buf *request, const struct remote_along *along, struct buf *reply)
{
    int r = message_send(socket, request, along->fds, along->n_fds);
    for (uint16_t tag = 0; r == 0 && tag != TAG_OUTCOME;) {
        buf_free(reply);
        r = message_receive(socket, reply, NULL);
        tag = r == 0 ? message_peek(buf_view(reply)) : 0;
        if (r == 0 && tag != TAG_OUTCOME)
            r = hear(socket, buf_view(reply), along);
    }
    return r;
}

/* Fills `e` from an outcome, or `ret` from what stands behind one that is a success. Returns what the server's call returned. */
static int read_answer(enum message_op op, struct remote_answer *answer, void *ret, struct err *e)
{
    struct message_outcome outcome;
    struct str rest = buf_view(&answer->bytes);

    answer->mem = arena_new(MAX_ANSWER_BYTES);
    if (!answer->mem || message_take(&rest, TAG_OUTCOME, SHAPE_outcome, answer->mem, &outcome) < 0)
        return remote_broken(e, -EBADMSG);
    e->kind = (enum err_kind)outcome.kind;
    e->no = (int)outcome.no;
    snprintf(e->text, sizeof e->text, "%s", outcome.text ? outcome.text : "");
    int r = (int)(int64_t)outcome.returned;
    if (r >= 0 && message_take(&rest, TAG_ANSWER, message_requests[op].answer, answer->mem, ret) < 0)
        return remote_broken(e, -EBADMSG);
    return r;
}

void remote_answer_free(struct remote_answer *a)
{
    buf_free(&a->bytes);
    a->mem = arena_free(a->mem);
}

int remote_call(enum message_op op, const void *fields, const struct remote_along *along, struct remote_answer *answer,
                void *ret, struct err *e)
{
    static const struct remote_along alone;
    auto_buf struct buf request = BUF(MAX_REQUEST_BYTES);
    struct remote_server s;

    answer->bytes = BUF(MAX_ANSWER_BYTES);
    message_number(&request, TAG_REQUEST, op);
    message_put(&request, TAG_REQUEST, message_requests[op].request, fields);
    int r = server_start(&s, e);
    bool started = r == 0;
    if (started)
        r = talk(s.socket, &request, along ? along : &alone, &answer->bytes);
    server_end(&s);
    if (!started)
        return r;
    if (r < 0)
        return s.no ? err_sys(e, ERR_SYSTEM, s.no, "cannot start '%s'", PINFOLD_PROGRAM) : remote_broken(e, r);
    return read_answer(op, answer, ret, e);
}

int remote_plain(enum message_op op, const void *fields, const struct remote_along *along, struct err *e)
{
    auto_answer struct remote_answer answer = {.mem = NULL};
    struct message_nothing nothing;
    return remote_call(op, fields, along, &answer, &nothing, e);
}

int remote_text(enum message_op op, const void *fields, char **ret, struct pinfold_error *error)
{
    auto_answer struct remote_answer answer = {.mem = NULL};
    auto_buf struct buf text = BUF(MAX_ANSWER_BYTES);
    struct message_text found;
    struct err e = {0};

    int r = remote_call(op, fields, NULL, &answer, &found, &e);
    if (r < 0)
        return tell(error, &e, r);
    buf_str(&text, found.text);
    int given = give(&text, ret, error);
    return given < 0 ? given : r;
}

int remote_report(enum message_op op, const void *fields, struct pinfold_report **ret, struct pinfold_error *error)
{
    auto_answer struct remote_answer answer = {.mem = NULL};
    struct message_report found;
    struct err e = {0};

    int r = remote_call(op, fields, NULL, &answer, &found, &e);
    *ret = r < 0 ? NULL : report_of_image(found.value);
    if (r >= 0 && !*ret)
        r = remote_broken(&e, -EBADMSG);
    return tell(error, &e, r);
}

char **remote_list(const char *const *list, size_t n, size_t pointers)
{
    size_t bytes = 0;
    for (size_t i = 0; i < n; i++)
        bytes += strlen(list[i]) + 1;
    char **made = calloc(1, pointers * sizeof *made + bytes);
    char *to = made ? (char *)(made + pointers) : NULL;
    for (size_t i = 0; made && i < n; i++) {
        made[i] = to;
        to = stpcpy(to, list[i]) + 1;
    }
    return made;
}

/* ---- policies ---- */

int pinfold_policy_load(const struct pinfold_policy_options *options, struct pinfold_policy **ret,
                        struct pinfold_error *error)
{
    auto_answer struct remote_answer answer = {.mem = NULL};
    struct pinfold_policy_options o;
    struct message_policy loaded;
    struct err e = {0};

    int r = take_options(&o, sizeof o, options, options ? options->size : 0, &e);
    if (r < 0)
        return tell(error, &e, r);
    const struct message_load ask = {.profile = o.profile,
                                     .files = o.files,
                                     .settings = o.settings,
                                     .settings_format = o.settings_format,
                                     .text = o.text,
                                     .settings_text = o.settings_text,
                                     .cwd = o.cwd,
                                     .no_layers = o.no_layers != 0,
                                     .options = o.options,
                                     .wishes = o.wishes};
    r = remote_call(REQUEST_load, &ask, NULL, &answer, &loaded, &e);
    if (r < 0)
        return tell(error, &e, r);
    struct pinfold_policy *p = calloc(1, sizeof *p);
    if (p) {
        p->layers = BUF(MAX_REQUEST_BYTES);
        buf_str(&p->layers, loaded.policy);
    }
    if (!p || !buf_ok(&p->layers)) {
        pinfold_policy_free(p);
        return tell(error, &e, err_sys(&e, ERR_SYSTEM, ENOMEM, "cannot load the policy"));
    }
    *ret = p;
    return 0;
}

void pinfold_policy_free(struct pinfold_policy *p)
{
    if (!p)
        return;
    buf_free(&p->layers);
    free(p);
}

int pinfold_policy_text(struct pinfold_policy *p, int how, char **ret, struct pinfold_error *error)
{
    const struct message_print ask = {.policy = buf_view(&p->layers), .how = (unsigned)how};
    return remote_text(REQUEST_print, &ask, ret, error);
}

static struct message_explain explaining(const struct pinfold_policy *p, enum pinfold_explain_format format,
                                         int show_values)
{
    return (struct message_explain){.policy = buf_view(&p->layers), .format = format, .show_values = show_values != 0};
}

int pinfold_explain(struct pinfold_policy *p, enum pinfold_explain_format format, int show_values, char **ret,
                    struct pinfold_error *error)
{
    const struct message_explain ask = explaining(p, format, show_values);
    return remote_text(REQUEST_explain, &ask, ret, error);
}

int pinfold_explain_refused(struct pinfold_policy *p, enum pinfold_explain_format format, int show_values, char **ret,
                            struct pinfold_error *error)
{
    const struct message_explain ask = explaining(p, format, show_values);
    return remote_text(REQUEST_explain_refused, &ask, ret, error);
}

int pinfold_explain_report(struct pinfold_policy *p, int show_values, struct pinfold_report **ret,
                           struct pinfold_error *error)
{
    const struct message_explain ask = explaining(p, PINFOLD_EXPLAIN_JSON, show_values);
    return remote_report(REQUEST_explain_report, &ask, ret, error);
}

int pinfold_why(struct pinfold_policy *p, const char *action, const char *target, struct pinfold_report **ret,
                struct pinfold_error *error)
{
    const struct message_why ask = {
        .policy = p ? buf_view(&p->layers) : (struct str){"", 0}, .action = action, .target = target};
    return remote_report(REQUEST_why, &ask, ret, error);
}

int pinfold_policy_schema(char **ret, struct pinfold_error *error)
{
    return remote_text(REQUEST_schema, &(struct message_schema){0}, ret, error);
}

int pinfold_trust(const char *path, int withdraw, char **ret, struct pinfold_error *error)
{
    const struct message_trust ask = {.path = path, .withdraw = withdraw != 0};
    return remote_text(REQUEST_trust, &ask, ret, error);
}

int pinfold_doctor(enum pinfold_explain_format format, int verify, char **ret, struct pinfold_error *error)
{
    const struct message_doctor ask = {.format = format, .verify = verify != 0};
    return remote_text(REQUEST_doctor, &ask, ret, error);
}

int pinfold_doctor_report(int verify, struct pinfold_report **ret, struct pinfold_error *error)
{
    const struct message_doctor ask = {.format = PINFOLD_EXPLAIN_JSON, .verify = verify != 0};
    return remote_report(REQUEST_doctor_report, &ask, ret, error);
}

int pinfold_names_report(struct pinfold_report **ret, struct pinfold_error *error)
{
    return remote_report(REQUEST_names, &(struct message_schema){0}, ret, error);
}

int pinfold_path_judge(const char *what, const char *path, char **ret, struct pinfold_error *error)
{
    const struct message_judge ask = {.what = what, .path = path};
    return remote_text(REQUEST_judge, &ask, ret, error);
}

int pinfold_log_select(const struct pinfold_log_options *options, struct pinfold_error *error)
{
    struct pinfold_log_options o;
    struct err e = {0};
    int r = take_options(&o, sizeof o, options, options ? options->size : 0, &e);
    const struct message_log ask = {.follow = o.follow != 0,
                                    .session = o.session,
                                    .since = o.since,
                                    .verify = o.verify != 0,
                                    .head = o.head != 0,
                                    .head_was = o.head_was};
    if (r == 0)
        r = remote_plain(REQUEST_log, &ask, &(struct remote_along){.fds = &o.fd, .n_fds = 1}, &e);
    return tell(error, &e, r);
}

int pinfold_log(int fd, int follow, struct pinfold_error *error)
{
    return pinfold_log_select(
        &(const struct pinfold_log_options){.size = sizeof(struct pinfold_log_options), .fd = fd, .follow = follow},
        error);
}

int pinfold_wrap(struct pinfold_policy *p, const char *const *argv, char ***ret, struct pinfold_error *error)
{
    auto_answer struct remote_answer answer = {.mem = NULL};
    const struct message_wrap ask = {.policy = buf_view(&p->layers), .argv = argv};
    struct message_words found;
    struct err e = {0};
    size_t n = 0;

    int r = remote_call(REQUEST_wrap, &ask, NULL, &answer, &found, &e);
    if (r == 0 && !found.words)
        r = remote_broken(&e, -EBADMSG);
    if (r < 0)
        return tell(error, &e, r);
    while (found.words[n])
        n++;
    *ret = remote_list(found.words, n, n + 1);
    return *ret ? 0 : tell(error, &e, err_sys(&e, ERR_SYSTEM, ENOMEM, "wrap"));
}

/* ---- runs and results ---- */

/* Which of the three go along; with capture the server keeps the output itself. */
unsigned remote_fds(const int given[3], bool use_fds, bool capture, int fds[3], uint64_t *ret_mask)
{
    unsigned n = 0;
    *ret_mask = 0;
    for (int i = 0; i < (capture ? 1 : 3); i++) {
        int fd = use_fds ? given[i] : i;
        /* One that the caller has closed is none, as in a program started with it closed. */
        if (fd >= 0 && fcntl(fd, F_GETFD) >= 0) {
            fds[n++] = fd;
            *ret_mask |= 1u << i;
        }
    }
    return n;
}

static struct pinfold_result *result_of(const struct message_result *m)
{
    struct pinfold_result *r = m->end <= PINFOLD_SANDBOX ? calloc(1, sizeof *r) : NULL;
    if (!r)
        return NULL;
    r->mem = arena_new(MAX_ANSWER_BYTES);
    r->out = BUF(MAX_ANSWER_BYTES);
    r->err = BUF(MAX_ANSWER_BYTES);
    r->json = BUF(MAX_ANSWER_BYTES);
    r->report = report_of_image(m->value);
    r->note = r->mem ? arena_text_or_null(r->mem, m->note) : NULL;
    buf_str(&r->out, m->out);
    buf_str(&r->err, m->err);
    r->end = (enum pinfold_end)m->end;
    r->code = (int)m->code;
    r->status = (int)m->status;
    if (r->mem && r->report && buf_ok(&r->out) && buf_ok(&r->err))
        return r;
    pinfold_result_free(r);
    return NULL;
}

int remote_result(enum message_op op, const void *fields, const struct remote_along *along, struct pinfold_result **ret,
                  struct pinfold_error *error)
{
    auto_answer struct remote_answer answer = {.mem = NULL};
    struct message_result found;
    struct err e = {0};
    int r = remote_call(op, fields, along, &answer, &found, &e);
    if (r < 0)
        return tell(error, &e, r);
    *ret = result_of(&found);
    return *ret ? 0 : tell(error, &e, remote_broken(&e, -EBADMSG));
}

int pinfold_run(struct pinfold_policy *p, const struct pinfold_run_options *options, struct pinfold_result **ret,
                struct pinfold_error *error)
{
    struct pinfold_run_options o;
    struct err e = {0};
    int fds[MESSAGE_FDS];

    int r = take_options(&o, sizeof o, options, options ? options->size : 0, &e);
    if (r == 0 && o.foreground)
        r = err_say(
            &e, ERR_CANNOT,
            "the shared library supports neither terminal nor signals (foreground); start what pinfold_wrap() returns");
    if (r == 0 && o.events && strstr(o.events, "fd:"))
        r = err_say(&e, ERR_CANNOT, "events: the shared library takes no descriptors there; use `denied`");
    if (r < 0)
        return tell(error, &e, r);
    struct message_run ask = {.policy = buf_view(&p->layers),
                              .argv = o.argv,
                              .env = o.env,
                              .cwd = o.cwd,
                              .cow = o.cow,
                              .cow_from = o.cow_from,
                              .id = o.id,
                              .capture = o.capture != 0,
                              .guess_all = o.guess_all != 0,
                              .ask_writes = o.ask_writes != 0,
                              .capture_max = o.capture_max,
                              .say = o.say != NULL,
                              .ask = o.ask != NULL,
                              .events = o.events,
                              .denied = o.denied != NULL,
                              .output = o.capture && o.output,
                              .control = o.control_fd > 0};
    unsigned n =
        remote_fds((const int[3]){o.stdin_fd, o.stdout_fd, o.stderr_fd}, o.use_fds != 0, o.capture != 0, fds, &ask.fds);
    if (o.control_fd > 0)
        fds[n++] = o.control_fd;
    const struct remote_along along = {.fds = fds,
                                       .n_fds = n,
                                       .say = o.say,
                                       .say_ctx = o.say_ctx,
                                       .ask = o.ask,
                                       .ask_ctx = o.ask_ctx,
                                       .denied = o.denied,
                                       .denied_ctx = o.denied_ctx,
                                       .output = o.output,
                                       .output_ctx = o.output_ctx};
    return remote_result(REQUEST_run, &ask, &along, ret, error);
}

void pinfold_result_free(struct pinfold_result *r)
{
    if (!r)
        return;
    buf_free(&r->out);
    buf_free(&r->err);
    buf_free(&r->json);
    pinfold_report_free(r->report);
    r->mem = arena_free(r->mem);
    free(r);
}

const struct value_node *result_values(const struct pinfold_result *r)
{
    return values_whole(&r->report->values);
}

const char *pinfold_result_json(const struct pinfold_result *result)
{
    struct pinfold_result *r = (struct pinfold_result *)(uintptr_t)result; /* a memory of the answer */
    if (r->json.n == 0)
        json_put(&JSON(&r->json), NULL, result_values(r));
    return buf_ok(&r->json) ? buf_cstr(&r->json) : "";
}

enum pinfold_end pinfold_result_end(const struct pinfold_result *r)
{
    return r->end;
}
int pinfold_result_code(const struct pinfold_result *r)
{
    return r->code;
}
int pinfold_result_status(const struct pinfold_result *r)
{
    return r->status;
}
int pinfold_result_reraise(const struct pinfold_result *r)
{
    (void)r;
    return 0; /* the library takes no terminal */
}
const char *pinfold_result_stdout(const struct pinfold_result *r, size_t *ret_n)
{
    if (ret_n)
        *ret_n = r->out.n;
    return buf_cstr(&r->out);
}
const char *pinfold_result_stderr(const struct pinfold_result *r, size_t *ret_n)
{
    if (ret_n)
        *ret_n = r->err.n;
    return buf_cstr(&r->err);
}
const char *pinfold_result_note(const struct pinfold_result *r)
{
    return r->note ? r->note : "";
}
