/*
 * The verb learn: the command's output goes where it always does (with --json to standard error), questions to the terminal, the
 * proposal to standard output.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "cli/cli.h"
#include "client/entry.h"
#include "learn/learn.h"

enum { MAX_ANSWERS = 1 << 20, DEFAULT_PASSES = 5, MAX_PASSES = 100 };
#define MAX_LEARN_MEMORY (64u << 20)
#define MAX_LEARN_TEXT   (16u << 20)

static void write_output(void *ctx, int which, const char *bytes, size_t n)
{
    const struct ask *a = ctx;
    while (n) {
        ssize_t wrote = write(which == 1 && !a->json ? 1 : 2, bytes, n);
        if (wrote <= 0)
            return;
        bytes += wrote;
        n -= (size_t)wrote;
    }
}

static void say_warning(void *ctx, enum pinfold_say what, const char *sentence)
{
    (void)ctx;
    if (what == PINFOLD_SAY_WARNING)
        complain("%s", sentence);
}

/* Waits for a line while the command waits: not for ever, and not against Ctrl-C. */
static bool is_answered(unsigned left_ms)
{
    enum { SLICE_MS = 100 };
    for (unsigned waited = 0; waited < left_ms; waited += SLICE_MS) {
        struct pollfd p = {.fd = 0, .events = POLLIN};
        sigset_t pending;
        if (poll(&p, 1, SLICE_MS) > 0)
            return true;
        if (sigpending(&pending) == 0 && (sigismember(&pending, SIGINT) || sigismember(&pending, SIGTERM)))
            break;
    }
    (void)!write(2, "no\n", 3);
    return false;
}

static enum learn_answer ask_person(void *ctx, const struct learn_rule *rule)
{
    const struct ask *a = ctx;
    const struct pinfold_question *q = a->learning->waits;
    auto_buf struct buf line = BUF(1u << 16);
    char *word = NULL;
    size_t room = 0;
    buf_text(&line, "pinfold: allow ");
    utf8_safe(&line, str_of(rule->text));
    if (q) {
        buf_printf(&line, " (%s waits to %s ", *q->command ? q->command : "the command",
                   strcmp(q->how, "write") == 0 ? "write" : "connect to");
        utf8_safe(&line, str_of(q->target));
    } else {
        buf_printf(&line, " (%u refused", rule->count);
    }
    buf_printf(&line, "%s%s)? [y/N] ", rule->why ? "; " : "", rule->why ? rule->why : "");
    if (isatty(0))
        (void)tcflush(0, TCIFLUSH); /* what was typed for the command answers nothing */
    (void)!write(2, line.p, line.n);
    if (q && !is_answered(q->timeout_ms))
        return LEARN_OPEN;
    ssize_t n = getline(&word, &room, stdin);
    bool yes = n > 0 && (word[0] == 'y' || word[0] == 'Y') && (word[1] == '\n' || strcasecmp(word, "yes\n") == 0);
    free(word);
    return yes ? LEARN_ALLOW : LEARN_DENY;
}

static int read_answers(struct learn *l, const char *name)
{
    struct pinfold_error error = {0};
    char *real;
    auto_buf struct buf text = BUF(MAX_ANSWERS);
    if (pinfold_path_judge("--answers", name, &real, &error) < 0)
        return fail(&error);
    auto_fd int fd = open(real, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    const int no = fd < 0 ? -errno : fd_read_all(fd, &text);
    free(real);
    if (no < 0) {
        complain("--answers %s: %s", name, strerror(-no));
        return STATUS_SANDBOX;
    }
    if (memchr(buf_cstr(&text), 0, text.n)) {
        complain("--answers %s: it must be a text file", name);
        return STATUS_SANDBOX;
    }
    return learn_answers(l, name, buf_cstr(&text), &error) < 0 ? (complain("%s", error.text), STATUS_SANDBOX)
                                                               : STATUS_YES;
}

/* What the line asks for, checked; STATUS_YES or another status with a message. */
static int check_line(const struct ask *a, bool terminal, unsigned *ret_passes)
{
    char *end = NULL;
    long passes = a->passes ? strtol(a->passes, &end, 10) : DEFAULT_PASSES;
    *ret_passes = (unsigned)passes;
    if (a->n_words == 0)
        complain("learn: missing argument: the command (pinfold learn [OPTIONS] -- COMMAND [ARG...])");
    else if (a->passes && (*end || !*a->passes || passes < 1 || passes > MAX_PASSES))
        complain("--passes %s: not a number from 1 to %d", a->passes, MAX_PASSES);
    else if (a->write && !a->answers && !terminal)
        complain("--write adds only what was allowed: answer at a terminal, or with --answers FILE");
    else if ((a->write || a->shrink) && (a->no_layers || a->text))
        complain("--write and --shrink work on the project's policy, which is ignored with %s",
                 a->text ? "--policy-text" : "--no-layers");
    else
        return STATUS_YES;
    return STATUS_SANDBOX;
}

static int tell_learned(const struct ask *a, struct learn *l)
{
    struct pinfold_error error = {0};
    const char *written = NULL;
    auto_buf struct buf out = BUF(MAX_LEARN_TEXT);
    int r = a->write ? learn_save(l, &written, &error) : 0;
    if (a->json) {
        learn_json(l, written, &out);
    } else {
        learn_words(l, &out);
        if (written) {
            buf_text(&out, "# wrote ");
            utf8_safe(&out, str_of(written));
            buf_text(&out, ", trusted as it is\n");
        }
    }
    int status = print(buf_cstr(&out));
    if (r < 0) {
        complain("%s", error.text);
        return STATUS_SANDBOX;
    }
    return status == STATUS_YES ? l->status : STATUS_SANDBOX;
}

static int learn_with(const struct ask *a, struct learn *l)
{
    struct pinfold_error error = {0};
    int status = a->answers ? read_answers(l, a->answers) : STATUS_YES;
    if (status != STATUS_YES)
        return STATUS_SANDBOX;
    if (learn_run(l, &error) < 0) {
        complain("%s", error.text);
        return STATUS_SANDBOX;
    }
    return tell_learned(a, l);
}

static int learn_now(struct ask *a, struct learn *l, bool terminal)
{
    int status = check_line(a, terminal, &l->max);
    if (status != STATUS_YES)
        return status;
    l->mem = arena_new(MAX_LEARN_MEMORY);
    if (!l->mem) {
        complain("out of memory");
        return STATUS_SANDBOX;
    }
    status = learn_with(a, l);
    l->mem = arena_free(l->mem);
    if (l->again) {
        (void)signal(l->again, SIG_DFL);
        (void)raise(l->again);
    }
    return status;
}

int verb_learn(struct ask *a)
{
    bool terminal = isatty(0) && isatty(2) && !(a->closed_stdio & 5);
    struct learn l = {.policy = {.size = sizeof l.policy,
                                 .options = a->policy,
                                 .settings_format = a->settings_format,
                                 .text = a->text,
                                 .no_layers = a->no_layers},
                      .n_options = a->n_policy,
                      .argv = (const char *const *)a->words,
                      .shrink = a->shrink,
                      .asking = terminal || a->answers,
                      .ask = terminal ? ask_person : NULL,
                      .output = write_output,
                      .say = say_warning,
                      .trust = entry_trust_written,
                      .ctx = a};
    a->learning = &l;
    complain_behind_output();
    const int status = learn_now(a, &l, terminal);
    a->learning = NULL;
    return status;
}
