/*
 * Entry point: makes sure that descriptors 0 to 2 are open, finds the subcommand and runs it. Under the names srt and
 * agent-shell, and for what pinfold starts itself, it hands over to other parts before that.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/str.h"
#include "cli/cli.h"
#include "client/entry.h"
#include "hook/hook.h"
#include "project/branch.h"
#include "srt/srt.h"
#include "user/umask.h"

int verb_version(struct ask *a)
{
    if (!no_words(a))
        return STATUS_USAGE;
    printf("pinfold %s\n", pinfold_version());
    return fflush(stdout) == 0 ? STATUS_YES : STATUS_NO;
}

static int unknown_verb(char **words)
{
    const char *name = words[0];
    auto_buf struct buf line = BUF(2048);
    const char *nearest = NULL;
    size_t n = strlen(name);
    unsigned best = n < 3 ? 1 : n < 6 ? 2 : 3; /* farther away is no typing error */
    const char *other = other_verb(str_of(name));
    for (const struct verb *v = verbs; v->name[0] && !other; v++) {
        /* Letters that are missing at the end are no distance. */
        unsigned d = n > 1 && strncmp(name, v->name, n) == 0 ? 0 : str_distance(str_of(name), str_of(v->name));
        if (d < best) {
            best = d;
            nearest = v->name;
        }
    }
    put_command(words, &line);
    const char *run = buf_ok(&line) ? buf_cstr(&line) : name;
    if (other)
        complain("unknown command '%s': %s; to run a program of that name in a box: pinfold run -- %s", name, other,
                 run);
    else if (nearest)
        complain("unknown command '%s'; did you mean '%s'? (see: pinfold --help)", name, nearest);
    else
        complain("unknown command '%s'; to run it in a box: pinfold run -- %s", name, run);
    return STATUS_USAGE;
}

/* Without a verb it is a shell, which has no command behind "--": somebody has left out `run`. */
static int without_verb(char **argv)
{
    auto_buf struct buf line = BUF(2048);
    put_command(argv + 1, &line);
    complain("to run a command, use 'run': pinfold run %s", buf_ok(&line) ? buf_cstr(&line) : "-- COMMAND");
    return STATUS_SANDBOX;
}

static bool has_dashes(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (same(argv[i], "--"))
            return i + 1 < argc;
    }
    return false;
}

/*
 * A descriptor 0, 1 or 2 that is closed would be taken by the next file opened, and written to as if it were the
 * standard error. So each gets /dev/null first; `run` gives the command what the caller gave. Where the output goes is opened for
 * reading: who prints must not believe that somebody got it.
 */
static unsigned hold_standard_descriptors(void)
{
    unsigned closed = 0;
    struct pollfd open_ones[3] = {{.fd = 0}, {.fd = 1}, {.fd = 2}};
    if (poll(open_ones, 3, 0) == 0) /* the usual case by one call, which would tell of a closed one (POLLNVAL) */
        return 0;
    for (int fd = 0; fd < 3; fd++) {
        if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF)
            continue;
        closed |= 1u << fd;
        if (open("/dev/null", (fd == 1 ? O_RDONLY : O_RDWR) | O_CLOEXEC) != fd)
            return closed;
    }
    return closed;
}

static int run_verb(struct ask *a)
{
    switch (a->verb) {
    case VERB_RUN:
        return verb_run(a);
    case VERB_INIT:
        return verb_init(a);
    case VERB_PROJECT:
        return verb_project(a);
    case VERB_SHELL:
        return verb_shell(a);
    case VERB_EXPLAIN:
        return verb_explain(a);
    case VERB_WHY:
        return verb_why(a);
    case VERB_LEARN:
        return verb_learn(a);
    case VERB_SHOW_RUN:
        return verb_show_run(a);
    case VERB_DOCTOR:
        return verb_doctor(a);
    case VERB_POLICY:
        return verb_policy(a);
    case VERB_HOOK:
        return verb_hook(a);
    case VERB_TRUST:
        return verb_trust(a);
    case VERB_LOG:
        return verb_log(a);
    case VERB_COMPLETION:
        return verb_completion(a);
    case VERB_VERSION:
        return verb_version(a);
    case VERB_MCP:
        return verb_mcp(a);
    case VERB_SESSION:
        return verb_session(a);
    case VERB_EXEC:
        return verb_exec(a);
    case VERB_JOB:
        return verb_job(a);
    case VERB_CAT:
        return verb_cat(a);
    case VERB_WRITE:
        return verb_write(a);
    case VERB_CP:
        return verb_cp(a);
    case VERB_LS:
        return verb_ls(a);
    case VERB_PATH:
        return verb_path(a);
    case VERB_AGENT:
        return verb_agent(a);
    case VERB_START:
        return same(verb_said, "login") ? verb_login(a) : verb_start(a);
    case VERB_DIFF:
        return verb_diff(a);
    case VERB_APPLY:
        return verb_apply(a);
    case VERB_UNDO:
        return verb_undo(a);
    case VERB_LAYERS:
        return verb_layers(a);
    case VERB_DISCARD:
        return verb_discard(a);
    case VERB_HELP:
        break;
    }
    return verb_help(a);
}

/* The status of a verb that has printed something; a failure of stdio may have been at any line. */
static int printed(int status, int failed)
{
    const bool whole = fflush(stdout) == 0 && !ferror(stdout);
    if (!whole)
        complain("cannot write all of the output to standard output");
    return whole || status != STATUS_YES ? status : failed;
}

int main(int argc, char **argv)
{
    static struct ask a = {.verb = VERB_SHELL}; /* what it has of the heap is left to the exit */
    const struct verb *verb;
    int hidden, from = 2;

    (void)signal(SIGXFSZ,
                 SIG_IGN); /* a write beyond the caller's `ulimit -f` fails with a message; commands get the default */
    if (entry_hidden(argc, argv, &hidden))
        return hidden;
    a.closed_stdio = hold_standard_descriptors();
    const bool shell = argc > 0 && hook_shell_named(argv[0]);
    if (shell || (argc > 0 && remote_named(argv[0])))
        (void)signal(SIGXFSZ, SIG_DFL); /* they become other programs */
    if (shell)
        return hook_shell_main(argv, a.closed_stdio);
    if (argc > 0 && remote_named(argv[0]))
        return remote_main(argc, argv);
    if (moves_named(argc, argv))
        return moves_main(argv + 2);
    if (argc > 0 && srt_named(argv[0]))
        return srt_main(argv, a.closed_stdio);
    umask_begin();
    const char *word = argc > 1 ? argv[1] : NULL;
    if (word && same(word, "--man-options"))
        return help_manual();
    if (word && (same(word, "--version") || same(word, "-V")))
        word = "version";
    else if (word && (same(word, "--help") || same(word, "-h") || same(word, "--help=all")))
        return printed(help_print(VERB_HELP, strchr(word, '=') ? "all" : ""), STATUS_NO);
    verb = word && word[0] != '-' ? verb_find(word) : NULL;
    if (verb && same(verb->name, "agent") && argc > 2 && same(argv[2], "run"))
        verb = (from = 3, verb_find("claude")); /* the name follows, behind options */
    else if (word && word[0] != '-' && (!verb || verb->id == VERB_START))
        verb = start_named(&a, word) ? verb_find("claude") : verb;
    if (!verb && argc == 2 && strstr(word ? word : "", "://") && entry_in_box())
        return open_outside(word); /* $BROWSER in the box of a login */
    if (word && word[0] != '-' && !verb)
        return unknown_verb(argv + 1);
    if (!verb && has_dashes(argc, argv))
        return without_verb(argv);
    if (!verb) { /* plain `pinfold`, or with options of `shell` */
        verb = verb_find("shell");
        from = 1;
        a.line = argv + 1;
    }
    a.verb = verb->id;
    verb_said = verb->name;
    const bool runs = (verb->id & (VERB_RUN | VERB_SHELL | VERB_EXEC | VERB_START)) != 0;
    int status = runs ? STATUS_SANDBOX : STATUS_USAGE;
    if (ask_parse(&a, argc - from > 0 ? argc - from : 0, argv + (argc < from ? argc : from))) {
        if (!a.help && !(verb->id & (VERB_EXEC | VERB_MCP | VERB_VERSION | VERB_COMPLETION | VERB_HELP)))
            entry_waits_said(); /* the others look at little, or for as long as somebody asks */
        status = a.help ? help_print(verb->id, a.help) : run_verb(&a);
    }
    return printed(status, runs ? STATUS_SANDBOX : STATUS_NO);
}
