/*
 * pinfold-sqlite: brings the login in an agent's SQLite database into a session's state. pinfold starts it for that alone
 * (agents/database.c), so that the programs that start boxes have no SQLite in them. What it is told, and what it answers, is in
 * protocol/database.h.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "protocol/database.h"
#include "sqlite/carry.h"
#include "sqlite/confine.h"
#include "sqlite/database.h"

static bool is_carry(int argc, char **argv)
{
    return argc == 6 && strcmp(argv[3], DATABASE_CARRY) == 0;
}

static int carry(char **argv, struct err *e)
{
    const char *how = argv[4];
    const bool host = strncmp(how, "from-host", 9) == 0, to = strncmp(how, "to", 2) == 0;
    const struct carry_ask ask = {.host = host ? DATABASE_HOST : -1,
                                  .session = host ? -1 : DATABASE_HOST,
                                  .stream = DATABASE_SESSION,
                                  .name = argv[2],
                                  .workspace = argv[5],
                                  .with_schema = strstr(how, "+schema") != NULL};
    int no = sqlite_confine(ask.host, ask.session, ask.name, e);
    return no < 0 ? no : to ? carry_write(&ask, e) : carry_read(&ask, e);
}

/* Started by pinfold, which passes these descriptors. */
static bool is_asked(int argc, char **argv)
{
    struct stat socket, host, session;
    return argc >= 3 && fstat(DATABASE_SOCKET, &socket) == 0 && S_ISSOCK(socket.st_mode) &&
           fstat(DATABASE_HOST, &host) == 0 && S_ISDIR(host.st_mode) && fstat(DATABASE_SESSION, &session) == 0 &&
           (is_carry(argc, argv) ? S_ISFIFO(session.st_mode) : S_ISDIR(session.st_mode));
}

int main(int argc, char **argv)
{
    struct database_answer answer = {0};
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        puts("pinfold-sqlite " PINFOLD_VERSION);
        return 0;
    }
    if (!is_asked(argc, argv)) {
        fputs("pinfold-sqlite: pinfold starts this program by itself, for agents' logins\n", stderr);
        return 2;
    }
    (void)prctl(PR_SET_NAME, "pinfold-sqlite", 0, 0,
                0); /* before Linux 6.14 a program started by descriptor is named by that */
    const struct database_ask ask = {DATABASE_HOST, DATABASE_SESSION, argv[2], argv + 3};
    if (strcmp(argv[1], PINFOLD_VERSION) != 0)
        answer.result = err_say(&answer.e, ERR_CANNOT,
                                "pinfold-sqlite (%s) and pinfold (%.40s) have different versions; reinstall both",
                                PINFOLD_VERSION, argv[1]);
    if (answer.result == 0 && is_carry(argc, argv))
        answer.result = carry(argv, &answer.e);
    else if (answer.result == 0)
        answer.result = sqlite_confine(ask.host, ask.session, ask.name, &answer.e);
    if (answer.result == 0 && !is_carry(argc, argv))
        answer.result = database_sync(&ask, &answer.e);
    return write(DATABASE_SOCKET, &answer, sizeof answer) == (ssize_t)sizeof answer ? 0 : 1;
}
