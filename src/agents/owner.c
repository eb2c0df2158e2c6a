/*
 * Starts pinfold-login (login/), the owner of logins on this machine, and hears how it went. It is not ended with who asks: between
 * an endpoint's answer and the disk nothing may stop it, so it has an end in time of its own.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "agents/agents.h"
#include "base/fd.h"
#include "protocol/login.h"
#include "sys/socket.h"
#include "user/packages.h"

enum { WORDS = 64, OWNER_MS = 160000 };

struct owner_words {
    struct arena *mem;
    const char *list[WORDS];
    size_t n;
};

static void owner_word(struct owner_words *w, const char *key, const char *value)
{
    if (value && w->n + 1 < WORDS)
        w->list[w->n++] = arena_printf(w->mem, "%s=%s", key, value);
}

static void all_words(struct owner_words *w, const struct agent_owner_ask *ask)
{
    const struct agent_renew *r = ask->renew;
    w->list[w->n++] = "pinfold-login";
    w->list[w->n++] = PINFOLD_VERSION;
    w->list[w->n++] = ask->new_login >= 0 ? "store" : "renew";
    owner_word(w, "name", ask->name);
    owner_word(w, "shown", ask->shown);
    owner_word(w, "endpoint", r->endpoint);
    owner_word(w, "client", r->client);
    owner_word(w, "client_at", r->client_at);
    owner_word(w, "ca", r->ca);
    owner_word(w, "access", r->access);
    owner_word(w, "refresh", r->refresh);
    owner_word(w, "id", r->id);
    owner_word(w, "scopes", r->scopes);
    owner_word(w, "when", r->when);
    owner_word(w, "expires", r->expires);
    owner_word(w, "answer", ask->answer);
    owner_word(w, "program_word", ask->program_word);
    owner_word(w, "form", r->form ? "true" : NULL);
    owner_word(w, "ahead", arena_printf(w->mem, "%lld", (long long)ask->ahead));
    for (size_t i = 0; r->locks && r->locks[i]; i++)
        owner_word(w, "lock", r->locks[i]);
    for (size_t i = 0; r->fields && r->fields[i]; i++)
        owner_word(w, "field", r->fields[i]);
}

/* Of the person's variables those that say how to reach a host; no other can change what is trusted. */
static void proxies(struct owner_words *w)
{
    static const char names[][12] = {"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        owner_word(w, names[i], getenv(names[i]));
}

/* 1: there is an answer (or an end), -ECANCELED, -ETIMEDOUT. */
static int await(int from, int stop)
{
    struct pollfd p[2] = {{.fd = from, .events = POLLIN}, {.fd = stop, .events = POLLIN}};
    for (;;) {
        int ready = poll(p, 2, OWNER_MS);
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready <= 0)
            return ready < 0 ? -errno : -ETIMEDOUT;
        return p[0].revents ? 1 : -ECANCELED;
    }
}

static int owner_said(long got, struct login_answer *said, int status, const char *shown, int64_t *ret_expires,
                      struct err *e)
{
    if (got != (long)sizeof *said && WIFEXITED(status) && WEXITSTATUS(status) == AGENT_NOT_STARTED)
        return err_say(
            e, ERR_CANNOT,
            "the login in %s is not renewed: pinfold-login does not start (it needs the library libcurl.so.4: %s)",
            shown, package_install("libcurl4", (char[PACKAGE_WORDS]){0}));
    if (got != (long)sizeof *said)
        return (void)err_say(e, ERR_SYSTEM, "the process that renews the login in %s died", shown), -EAGAIN;
    said->e.text[sizeof said->e.text - 1] = 0;
    *ret_expires = said->expires;
    if (said->result >= 0)
        return 0;
    if (e && (unsigned)said->e.kind <= ERR_BUG)
        *e = said->e;
    return said->result >= -4095 ? said->result : -EIO;
}

int agent_owner(const struct agent_owner_ask *ask, int64_t *ret_expires, struct err *e)
{
    auto_arena struct arena *mem = arena_new(1 << 20);
    struct owner_words argv = {.mem = mem}, env = {.mem = mem};
    struct login_answer said;
    int pair[2], status = 0;
    *ret_expires = 0;
    auto_fd int program = mem ? ask->open_program(e) : err_sys(e, ERR_SYSTEM, ENOMEM, "login");
    if (program < 0)
        return err_wrap(e, program == -ENOENT ? -EOPNOTSUPP : program, "the login in %s is not renewed", ask->shown);
    all_words(&argv, ask);
    proxies(&env);
    if (arena_failed(mem) || argv.n + 1 >= WORDS)
        return err_sys(e, ERR_SYSTEM, ENOMEM, "the login in %s is not renewed", ask->shown);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(e, ERR_SYSTEM, errno, "cannot create a socket pair");
    pid_t pid = fork();
    int no = pid < 0 ? -errno : 0;
    if (pid == 0)
        agent_become(program, (const int[]){pair[1], ask->host, ask->kept, ask->new_login}, LOGIN_FDS - LOGIN_SOCKET,
                     argv.list, env.list, true);
    (void)close(pair[1]);
    if (no == 0)
        no = await(pair[0], ask->stop);
    long got = no > 0 ? sys_recv(pair[0], &said, sizeof said, MSG_DONTWAIT) : 0;
    (void)close(pair[0]);
    if (no == -ECANCELED)
        return no;
    if (no < 0)
        return err_sys(e, ERR_SYSTEM, -no, "the login in %s is not renewed: pinfold-login", ask->shown);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return owner_said(got, &said, status, ask->shown, ret_expires, e);
}
