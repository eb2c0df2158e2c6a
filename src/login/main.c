/*
 * pinfold-login: the owner of agents' logins on this machine. pinfold starts it when a login is about to end or a new one is to be
 * put there, so that the programs that start boxes have no TLS in them. What it is told is in protocol/login.h.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "login/login.h"

enum { AT_MOST_S = 150 };

/* Started by pinfold, which passes these descriptors. */
static bool is_asked(int argc)
{
    struct stat to, host, kept;
    return argc >= 4 && fstat(LOGIN_SOCKET, &to) == 0 && S_ISSOCK(to.st_mode) && fstat(LOGIN_HOST, &host) == 0 &&
           S_ISDIR(host.st_mode) && fstat(LOGIN_KEPT, &kept) == 0 && S_ISDIR(kept.st_mode);
}

static bool take_word(struct login_ask *a, const char *word)
{
    const struct {
        const char *key, **to;
    } keys[] = {{"name", &a->name},
                {"shown", &a->shown},
                {"endpoint", &a->endpoint},
                {"client", &a->client},
                {"client_at", &a->client_at},
                {"ca", &a->ca},
                {"access", &a->access},
                {"refresh", &a->refresh},
                {"id", &a->id},
                {"scopes", &a->scopes},
                {"when", &a->when},
                {"expires", &a->expires},
                {"answer", &a->answer},
                {"program_word", &a->program_word}};
    const char *value = strchr(word, '=');
    const struct str key = {word, value ? (size_t)(value - word) : 0};
    if (!value++)
        return false;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (str_is(key, keys[i].key)) {
            *keys[i].to = value;
            return true;
        }
    }
    if (str_is(key, "form"))
        return a->form = true;
    if (str_is(key, "ahead"))
        return (a->ahead = atol(value)) >= 0;
    const bool lock = str_is(key, "lock") && a->n_locks < LOCKS_MAX,
               field = str_is(key, "field") && a->n_fields < FIELDS_MAX;
    if (lock)
        a->locks[a->n_locks++] = value;
    if (field)
        a->fields[a->n_fields++] = value;
    return lock || field;
}

static int work(int argc, char **argv, struct login_answer *answer)
{
    struct login_ask a = {.store = strcmp(argv[2], "store") == 0, .answer = "answer"};
    if (strcmp(argv[1], PINFOLD_VERSION) != 0)
        return err_say(&answer->e, ERR_CANNOT,
                       "pinfold-login (%s) and pinfold (%.40s) have different versions; reinstall both",
                       PINFOLD_VERSION, argv[1]);
    for (int i = 3; i < argc; i++) {
        if (!take_word(&a, argv[i]))
            return err_say(&answer->e, ERR_BUG, "pinfold-login does not understand '%.80s'", argv[i]);
    }
    if ((!a.store && strcmp(argv[2], "renew") != 0) || !a.name || strchr(a.name, '/') || strchr(a.answer, '/') ||
        !a.shown || !a.access || !a.refresh || !a.endpoint || !a.client)
        return err_say(&answer->e, ERR_BUG, "pinfold-login was not told what to do");
    int r = login_lockdown(&answer->e);
    if (r < 0)
        return r;
    return a.store ? login_store(&a, &answer->expires, &answer->e) : login_renew(&a, &answer->expires, &answer->e);
}

int main(int argc, char **argv)
{
    struct login_answer answer = {0};
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        puts("pinfold-login " PINFOLD_VERSION);
        return 0;
    }
    if (!is_asked(argc)) {
        fputs("pinfold-login: pinfold starts this program by itself, for agents' logins\n", stderr);
        return 2;
    }
    /* Before Linux 6.14 a program started by descriptor is named by that. */
    (void)prctl(PR_SET_NAME, "pinfold-login", 0, 0, 0);
    /* Who is between the answer and the disk is not to be ended by a terminal that closes. */
    for (const int *s = (const int[]){SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, 0}; *s; s++)
        (void)signal(*s, SIG_IGN);
    (void)alarm(AT_MOST_S);
    answer.result = work(argc, argv, &answer);
    return send(LOGIN_SOCKET, &answer, sizeof answer, MSG_NOSIGNAL) == (ssize_t)sizeof answer ? 0 : 1;
}
