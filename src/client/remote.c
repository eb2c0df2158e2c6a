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
#include "sys/sys.h"

#define CHILD_STACK   (64u << 10)
#define CHILD_SOCKET  3
#define KERNEL_SIGSET 8 /* bytes of a signal set in the kernel's calls */
#define LAST_SIGNAL   64

extern char **environ;

const char *pinfold_version(void)
{
    return PINFOLD_VERSION;
}

int remote_tell(struct pinfold_error *to, const struct err *from, int r)
{
    if (to && r < 0) {
        to->kind = (enum pinfold_error_kind)from->kind;
        to->no = from->no;
        snprintf(to->text, sizeof to->text, "%s", from->text);
    }
    return r;
}

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
        while (waitid(P_PIDFD, (id_t)s->pidfd, &info, WEXITED | __WCLONE) < 0 && errno == EINTR)
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
static int answer(int socket, struct str rest, const struct sayer *sayer)
{
    auto_arena struct arena *mem = arena_new(MAX_REQUEST_BYTES);
    auto_buf struct buf reply = BUF(4096);
    struct pinfold_question q = {.size = sizeof q};
    uint64_t pid, time;

    if (!mem || message_take_text(&rest, TAG_ASK, mem, &q.target) < 0 ||
        message_take_text(&rest, TAG_ASK, mem, &q.how) < 0 || message_take_text(&rest, TAG_ASK, mem, &q.command) < 0 ||
        message_take_number(&rest, TAG_ASK, &pid) < 0 || message_take_number(&rest, TAG_ASK, &time) < 0 || !q.target ||
        !q.how || !q.command || !sayer || !sayer->ask)
        return -EBADMSG;
    q.pid = (uint32_t)pid;
    q.timeout_ms = (uint32_t)time;
    message_number(&reply, TAG_ASK, sayer->ask(sayer->ask_ctx, &q));
    return message_send(socket, &reply, NULL, 0);
}

/* One message that is not the answer yet: a sentence for the person. */
static int hear(struct str rest, const struct sayer *sayer)
{
    auto_arena struct arena *mem = arena_new(MAX_REQUEST_BYTES);
    uint64_t what;
    const char *sentence;

    if (!mem || message_take_number(&rest, TAG_SAY, &what) < 0 ||
        message_take_text(&rest, TAG_SAY, mem, &sentence) < 0 || what > PINFOLD_SAY_WARNING || !sentence)
        return -EBADMSG;
    if (sayer && sayer->say)
        sayer->say(sayer->ctx, (enum pinfold_say)what, sentence);
    return 0;
}

/* Captured bytes, as they came. */
static int pass_output(struct str rest, const struct sayer *sayer)
{
    uint64_t which;
    struct str bytes;
    if (message_take_number(&rest, TAG_OUTPUT, &which) < 0 || message_take_view(&rest, TAG_OUTPUT, &bytes) < 0 ||
        !sayer || !sayer->output)
        return -EBADMSG;
    sayer->output(sayer->output_ctx, (int)which, bytes.p, bytes.n);
    return 0;
}

/* Fills `e` from an error answer; `rest` is left at what follows a success. Returns what the server's call returned. */
static int take_outcome(struct str *rest, struct err *e)
{
    auto_arena struct arena *mem = arena_new(1u << 20);
    uint64_t r, kind, no;
    const char *text;

    if (!mem || message_take_number(rest, TAG_ERROR, &r) < 0 || message_take_number(rest, TAG_ERROR, &kind) < 0 ||
        message_take_number(rest, TAG_ERROR, &no) < 0 || message_take_text(rest, TAG_ERROR, mem, &text) < 0)
        return remote_broken(e, -EBADMSG);
    e->kind = (enum err_kind)kind;
    e->no = (int)no;
    snprintf(e->text, sizeof e->text, "%s", text ? text : "");
    return (int)(int64_t)r;
}

static int talk(struct remote_server *s, const struct buf *request, const int *fds, unsigned n_fds,
                const struct sayer *sayer, struct buf *reply)
{
    int r = message_send(s->socket, request, fds, n_fds);
    for (bool waiting = true; r == 0 && waiting;) {
        buf_free(reply);
        r = message_receive(s->socket, reply, NULL);
        uint16_t tag = r == 0 ? message_peek(buf_view(reply)) : 0;
        waiting = tag == TAG_SAY || tag == TAG_ASK || tag == TAG_OUTPUT;
        if (waiting && tag == TAG_OUTPUT)
            r = pass_output(buf_view(reply), sayer);
        else if (waiting)
            r = tag == TAG_SAY ? hear(buf_view(reply), sayer) : answer(s->socket, buf_view(reply), sayer);
    }
    return r;
}

/* Request out, answer in: `answer` gets the message, `ret` what stands behind the outcome in it. */
int remote_ask(const struct buf *request, const int *fds, unsigned n_fds, const struct sayer *sayer, struct buf *answer,
               struct str *ret, struct err *e)
{
    struct remote_server s;
    int r = server_start(&s, e);
    bool started = r == 0;

    if (started)
        r = talk(&s, request, fds, n_fds, sayer, answer);
    server_end(&s);
    if (!started)
        return r;
    if (r < 0)
        return s.no ? err_sys(e, ERR_SYSTEM, s.no, "cannot start '%s'", PINFOLD_PROGRAM) : remote_broken(e, r);
    *ret = buf_view(answer);
    return take_outcome(ret, e);
}

/* What has one text for an answer. */
int remote_ask_text(const struct buf *request, const int *fds, unsigned n_fds, char **ret, struct pinfold_error *error)
{
    auto_buf struct buf answer = BUF(MAX_ANSWER_BYTES);
    auto_buf struct buf text = BUF(MAX_ANSWER_BYTES);
    struct str rest, found;
    struct err e = {0};

    int r = remote_ask(request, fds, n_fds, NULL, &answer, &rest, &e);
    if (r < 0)
        return remote_tell(error, &e, r);
    if (message_take_view(&rest, TAG_RESULT, &found) < 0)
        return remote_tell(error, &e, remote_broken(&e, -EBADMSG));
    buf_str(&text, found);
    char *taken = buf_take(&text);
    if (!taken)
        return remote_tell(error, &e, err_sys(&e, ERR_SYSTEM, ENOMEM, "answer"));
    *ret = taken;
    return r;
}

int remote_options(void *to, size_t room, const void *from, size_t size, struct err *e)
{
    memset(to, 0, room);
    if (!from)
        return 0;
    if (size < sizeof(size_t) || size > 4096)
        return err_say(e, ERR_POLICY, "the option struct's size is %zu; set .size = sizeof of it", size);
    memcpy(to, from, size < room ? size : room);
    return 0;
}

static void put_options(struct buf *request, uint16_t tag, const struct pinfold_option *o)
{
    for (; o && o->name; o++) {
        message_text(request, tag, o->name);
        message_text(request, tag, o->value);
    }
}

int pinfold_policy_load(const struct pinfold_policy_options *options, struct pinfold_policy **ret,
                        struct pinfold_error *error)
{
    auto_buf struct buf request = BUF(MAX_REQUEST_BYTES);
    auto_buf struct buf answer = BUF(MAX_REQUEST_BYTES);
    struct pinfold_policy_options o;
    struct str rest, layers;
    struct err e = {0};

    int r = remote_options(&o, sizeof o, options, options ? options->size : 0, &e);
    if (r < 0)
        return remote_tell(error, &e, r);
    message_number(&request, TAG_OP, OP_LOAD);
    message_text(&request, TAG_ARGUMENT, o.profile);
    message_list(&request, TAG_ARGUMENT, o.files);
    message_text(&request, TAG_ARGUMENT, o.settings);
    message_text(&request, TAG_ARGUMENT, o.settings_format);
    message_text(&request, TAG_ARGUMENT, o.text);
    message_text(&request, TAG_ARGUMENT, o.settings_text);
    message_text(&request, TAG_ARGUMENT, o.cwd);
    message_number(&request, TAG_ARGUMENT, o.no_layers != 0);
    put_options(&request, TAG_OPTION, o.options);
    put_options(&request, TAG_WISH, o.wishes);
    r = remote_ask(&request, NULL, 0, NULL, &answer, &rest, &e);
    if (r == 0 && message_take_view(&rest, TAG_POLICY, &layers) < 0)
        r = remote_broken(&e, -EBADMSG);
    if (r < 0)
        return remote_tell(error, &e, r);
    struct pinfold_policy *p = calloc(1, sizeof *p);
    if (p) {
        p->layers = BUF(MAX_REQUEST_BYTES);
        buf_str(&p->layers, layers);
    }
    if (!p || !buf_ok(&p->layers)) {
        pinfold_policy_free(p);
        return remote_tell(error, &e, err_sys(&e, ERR_SYSTEM, ENOMEM, "cannot load the policy"));
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

static void policy_request(struct buf *request, enum message_op op, const struct pinfold_policy *p)
{
    message_number(request, TAG_OP, op);
    message_bytes(request, TAG_POLICY, buf_view(&p->layers));
}

int pinfold_policy_text(struct pinfold_policy *p, int how, char **ret, struct pinfold_error *error)
{
    auto_buf struct buf request = BUF(MAX_REQUEST_BYTES);
    policy_request(&request, OP_TEXT, p);
    message_number(&request, TAG_ARGUMENT, (unsigned)how);
    return remote_ask_text(&request, NULL, 0, ret, error);
}

int pinfold_explain(struct pinfold_policy *p, enum pinfold_explain_format format, int show_values, char **ret,
                    struct pinfold_error *error)
{
    auto_buf struct buf request = BUF(MAX_REQUEST_BYTES);
    policy_request(&request, OP_EXPLAIN, p);
    message_number(&request, TAG_ARGUMENT, format);
    message_number(&request, TAG_ARGUMENT, show_values != 0);
    return remote_ask_text(&request, NULL, 0, ret, error);
}

int pinfold_policy_schema(char **ret, struct pinfold_error *error)
{
    auto_buf struct buf request = BUF(MAX_REQUEST_BYTES);
    message_number(&request, TAG_OP, OP_SCHEMA);
    return remote_ask_text(&request, NULL, 0, ret, error);
}

int pinfold_trust(const char *path, int withdraw, char **ret, struct pinfold_error *error)
{
    auto_buf struct buf request = BUF(MAX_REQUEST_BYTES);
    message_number(&request, TAG_OP, OP_TRUST);
    message_text(&request, TAG_ARGUMENT, path);
    message_number(&request, TAG_ARGUMENT, withdraw != 0);
    return remote_ask_text(&request, NULL, 0, ret, error);
}

int pinfold_doctor(enum pinfold_explain_format format, int verify, char **ret, struct pinfold_error *error)
{
    auto_buf struct buf request = BUF(MAX_REQUEST_BYTES);
    message_number(&request, TAG_OP, OP_DOCTOR);
    message_number(&request, TAG_ARGUMENT, format);
    message_number(&request, TAG_ARGUMENT, verify != 0);
    return remote_ask_text(&request, NULL, 0, ret, error);
}

int pinfold_log(int fd, int follow, struct pinfold_error *error)
{
    auto_buf struct buf request = BUF(MAX_REQUEST_BYTES);
    char *nothing = NULL;
    message_number(&request, TAG_OP, OP_LOG);
    message_number(&request, TAG_ARGUMENT, follow != 0);
    int r = remote_ask_text(&request, &fd, 1, &nothing, error);
    if (r == 0)
        free(nothing);
    return r;
}

int pinfold_wrap(struct pinfold_policy *p, const char *const *argv, char ***ret, struct pinfold_error *error)
{
    auto_buf struct buf request = BUF(MAX_REQUEST_BYTES);
    auto_buf struct buf answer = BUF(MAX_REQUEST_BYTES);
    auto_arena struct arena *mem = arena_new(MAX_REQUEST_BYTES);
    const char *const *found = NULL;
    struct str rest;
    struct err e = {0};
    size_t n = 0, bytes = 0;

    policy_request(&request, OP_WRAP, p);
    message_list(&request, TAG_ARGUMENT, argv);
    int r = remote_ask(&request, NULL, 0, NULL, &answer, &rest, &e);
    if (r == 0 && (!mem || message_take_list(&rest, TAG_RESULT, mem, &found) < 0 || !found))
        r = remote_broken(&e, -EBADMSG);
    if (r < 0)
        return remote_tell(error, &e, r);
    for (; found[n]; n++)
        bytes += strlen(found[n]) + 1;
    char **list = malloc((n + 1) * sizeof *list + bytes);
    if (!list)
        return remote_tell(error, &e, err_sys(&e, ERR_SYSTEM, ENOMEM, "wrap"));
    char *at = (char *)(list + n + 1);
    for (size_t i = 0; i < n; i++) {
        size_t size = strlen(found[i]) + 1;
        list[i] = memcpy(at, found[i], size);
        at += size;
    }
    list[n] = NULL;
    *ret = list;
    return 0;
}

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

int remote_result(struct str rest, struct pinfold_result **ret)
{
    uint64_t end, code, status;
    struct str out, err;
    struct pinfold_result *r = calloc(1, sizeof *r);

    if (!r)
        return -ENOMEM;
    r->mem = arena_new(MAX_ANSWER_BYTES);
    r->out = BUF(MAX_ANSWER_BYTES);
    r->err = BUF(MAX_ANSWER_BYTES);
    if (!r->mem || message_take_number(&rest, TAG_RESULT, &end) < 0 ||
        message_take_number(&rest, TAG_RESULT, &code) < 0 || message_take_number(&rest, TAG_RESULT, &status) < 0 ||
        message_take_view(&rest, TAG_RESULT, &out) < 0 || message_take_view(&rest, TAG_RESULT, &err) < 0 ||
        message_take_text(&rest, TAG_RESULT, r->mem, &r->json) < 0 ||
        message_take_text(&rest, TAG_RESULT, r->mem, &r->note) < 0 || end > PINFOLD_SANDBOX) {
        pinfold_result_free(r);
        return -EBADMSG;
    }
    buf_str(&r->out, out);
    buf_str(&r->err, err);
    if (!buf_ok(&r->out) || !buf_ok(&r->err)) {
        pinfold_result_free(r);
        return -ENOMEM;
    }
    r->end = (enum pinfold_end)end;
    r->code = (int)code;
    r->status = (int)status;
    *ret = r;
    return 0;
}

int pinfold_run(struct pinfold_policy *p, const struct pinfold_run_options *options, struct pinfold_result **ret,
                struct pinfold_error *error)
{
    auto_buf struct buf request = BUF(MAX_REQUEST_BYTES);
    auto_buf struct buf answer = BUF(MAX_ANSWER_BYTES);
    struct pinfold_run_options o;
    struct str rest;
    struct err e = {0};
    int fds[MESSAGE_FDS];
    uint64_t mask;

    int r = remote_options(&o, sizeof o, options, options ? options->size : 0, &e);
    if (r == 0 && o.foreground)
        r = err_say(
            &e, ERR_CANNOT,
            "the shared library supports neither terminal nor signals (foreground); start what pinfold_wrap() returns");
    if (r < 0)
        return remote_tell(error, &e, r);
    unsigned n =
        remote_fds((const int[3]){o.stdin_fd, o.stdout_fd, o.stderr_fd}, o.use_fds != 0, o.capture != 0, fds, &mask);
    struct sayer sayer = {.say = o.say, .ctx = o.say_ctx, .ask = o.ask, .ask_ctx = o.ask_ctx};
    policy_request(&request, OP_RUN, p);
    message_list(&request, TAG_ARGUMENT, o.argv);
    message_list(&request, TAG_ARGUMENT, o.env);
    message_text(&request, TAG_ARGUMENT, o.cwd);
    message_number(&request, TAG_ARGUMENT, mask);
    message_number(&request, TAG_ARGUMENT, o.capture != 0);
    message_number(&request, TAG_ARGUMENT, o.capture_max);
    message_number(&request, TAG_ARGUMENT, o.say != NULL);
    message_number(&request, TAG_ARGUMENT, o.ask != NULL);
    message_number(&request, TAG_ARGUMENT, o.control_fd > 0);
    if (o.control_fd > 0)
        fds[n++] = o.control_fd;
    r = remote_ask(&request, fds, n, &sayer, &answer, &rest, &e);
    if (r == 0 && (r = remote_result(rest, ret)) < 0)
        r = remote_broken(&e, r);
    return remote_tell(error, &e, r);
}

void pinfold_result_free(struct pinfold_result *r)
{
    if (!r)
        return;
    buf_free(&r->out);
    buf_free(&r->err);
    r->mem = arena_free(r->mem);
    free(r);
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
const char *pinfold_result_json(const struct pinfold_result *r)
{
    return r->json ? r->json : "";
}
const char *pinfold_result_note(const struct pinfold_result *r)
{
    return r->note ? r->note : "";
}
