/* `run`: one command in a new box. The answer does not wait for the kernel's cleanup afterwards; the worker does. */
#include "mcp/tools/tool_run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/fd.h"
#include "mcp/tools/telling.h"
#include "mcp/tools/wishes.h"

static const struct tool_argument run_arguments[] = {
    {"command", ARGUMENT_TEXT, .help = "The command, given to /bin/sh -c. Either this or argv."},
    {"argv", ARGUMENT_TEXTS, .min = 1, .help = "The command as a list of arguments, without a shell."},
    {"cwd", ARGUMENT_TEXT, .help = "Absolute directory to start in, as the box sees it; the workspace by default."},
    {"env", ARGUMENT_MAP, .help = "Variables for this command."},
    {"stdin", ARGUMENT_TEXT, .help = "Its standard input; empty by default."},
    {"timeout_ms", ARGUMENT_NUMBER, .min = 1, .max = MAX_TIMEOUT_MS, .help = "Time limit in milliseconds."},
    {"max_output", ARGUMENT_NUMBER, .min = 0, .max = MAX_OUTPUT,
     .help = "Bytes kept of each of stdout and stderr; 1 MiB by default."},
    {"options", ARGUMENT_OPTIONS,
     .help =
         "Options of pinfold's policy for this box. They can only restrict it; anything more is asked of the person."},
    COW_ARGUMENTS,
    {0}};

const char *cow_of(const struct mcp_job *j)
{
    const char *name = value_text(j->arguments, "cow_name", NULL);
    return name ? name : json_is_true(json_object_get(j->arguments, "cow")) ? "" : NULL;
}

static bool is_denial(const char *sentence)
{
    return strncmp(sentence, "file: ", 6) == 0 || strncmp(sentence, "socket: ", 8) == 0 ||
           strncmp(sentence, "network: ", 9) == 0;
}

static void say_progress(void *ctx, enum pinfold_say what, const char *sentence)
{
    const struct mcp_job *j = ctx;
    auto_buf struct buf line = BUF(1u << 16);

    if (what == PINFOLD_SAY_HEADER) {
        const char *command = value_text(j->arguments, "command", NULL);
        const json_t *first = json_array_get(json_object_get(j->arguments, "argv"), 0);
        const char *shown = command ? command : json_string_value(first);
        buf_text(&line, sentence);
        buf_text(&line, ": ");
        buf_put(&line, shown, strnlen(shown, 200));
        job_tell(j, buf_cstr(&line));
        return;
    }
    job_tell(j, sentence);
    if (is_denial(sentence)) /* the person's line names the file of the rule, which is the host's: see denials() */
        return;
    wishes_words(j, sentence, &line);
    job_say(j, what == PINFOLD_SAY_NOTE ? SAY_WARNING : SAY_INFO, buf_cstr(&line));
    if (what == PINFOLD_SAY_NOTE) { /* kept for the model: result_text() puts it last */
        struct buf *notes = (struct buf *)(uintptr_t)&j->structured;
        buf_str(notes, buf_view(&line));
        buf_char(notes, '\n');
    }
}

/* A host that no rule names, under a policy that asks. */
static enum pinfold_answer ask(void *ctx, const struct pinfold_question *q)
{
    const struct mcp_job *j = ctx;
    auto_buf struct buf asked = BUF(1u << 16);
    const char *command = value_text(j->arguments, "command", NULL);

    buf_text(&asked, "The box asks to connect to ");
    words_of(&asked, str_of(q->target));
    if (q->pid) {
        buf_text(&asked, " (");
        words_of(&asked, str_of(q->command));
        buf_printf(&asked, ", process %u)", q->pid);
    }
    if (command) {
        buf_text(&asked, ", for the command: ");
        words_of(&asked, (struct str){command, strnlen(command, 400)});
    }
    buf_text(&asked, ". Allow it for this one call?");
    job_tell(j, buf_cstr(&asked));
    bool yes = job_ask(j, buf_cstr(&asked), q->timeout_ms);
    job_tell(j, yes ? "allowed for this call" : "refused");
    return yes ? PINFOLD_ALWAYS : PINFOLD_NEVER; /* for this run, which is the call */
}

/* Whether the person said that what no rule names is asked for. */
static bool asks(const struct mcp_job *j)
{
    for (const struct pinfold_option *o = j->place->options->policy->options; o && o->name; o++) {
        if (same(o->name, "ask") && !same(o->value, "false"))
            return true;
    }
    return false;
}

static void rewrite_remedy(const void *ctx, const struct pinfold_value *in, const char *text, struct buf *out)
{
    wishes_remedy(ctx, text, answer_text(in, "origin"), out);
}

void result_write(const struct mcp_job *j, struct json *w, const char *name, const struct pinfold_value *result)
{
    static const char *const hidden[] = {"origin", NULL};
    answer_rewrite(w, name, result, hidden, &(struct answer_rewrite){"remedy", rewrite_remedy, j});
}

/* One refusal as a sentence, without its remedy. False: it is told otherwise. */
static bool denial_words(const struct pinfold_denial *d, struct buf *line)
{
    if (!d->kind || same(d->kind, "limit") || !d->target)
        return false;
    if (same(d->kind, "network") && same(d->how ? d->how : "", "none")) {
        buf_text(line, "network: the command tried to use a network, and this box has none");
        return true;
    }
    buf_printf(line, "%sdenied: %s %s ", d->guess ? "probably " : "", d->kind, d->action ? d->action : "");
    words_of(line, str_of(d->target));
    if (!d->rule)
        return true;
    buf_text(line, " (rule: ");
    words_of(line, str_of(d->rule));
    if (d->why && d->why[0]) {
        buf_text(line, ": ");
        words_of(line, str_of(d->why));
    }
    buf_char(line, ')');
    return true;
}

/* As an entry of the client's log. Not told: the policy's files and where things are on the host. */
static void denial_entry(const struct mcp_job *j, const struct pinfold_denial *d, const char *sentence)
{
    auto_buf struct buf out = BUF(1u << 16);
    struct json w = JSON(&out);
    json_object(&w, NULL);
    json_text(&w, "message", sentence);
    json_text(&w, "kind", d->kind);
    json_text_or_null(&w, "action", d->action);
    json_text(&w, "target", d->target);
    json_text_or_null(&w, "rule", d->rule);
    json_text_or_null(&w, "how", d->how);
    json_text_or_null(&w, "why", d->why && d->why[0] ? d->why : NULL);
    auto_buf struct buf remedy = BUF(1u << 16);
    if (d->remedy && d->remedy[0])
        wishes_remedy(j, d->remedy, d->origin, &remedy);
    json_text_or_null(&w, "remedy", remedy.n ? buf_cstr(&remedy) : NULL);
    json_text_or_null(&w, "error", d->error && d->error[0] ? d->error : NULL);
    json_uint(&w, "pid", d->pid);
    json_bool(&w, "guess", d->guess != 0);
    json_object_end(&w);
    job_denied(j, buf_view(&out));
}

/* While the command runs. */
static void denied_now(void *ctx, const struct pinfold_denial *d)
{
    struct mcp_job *j = ctx;
    auto_buf struct buf line = BUF(1u << 16);
    if (j->denied < MAX_TOLD_DENIALS && denial_words(d, &line)) {
        j->denied++;
        denial_entry(j, d, buf_cstr(&line));
    }
}

static struct pinfold_denial denial_of(const struct pinfold_value *d)
{
    return (struct pinfold_denial){.size = sizeof(struct pinfold_denial),
                                   .kind = answer_text(d, "kind"),
                                   .action = answer_text(d, "action"),
                                   .target = answer_text(d, "target"),
                                   .rule = answer_text(d, "rule"),
                                   .origin = answer_text(d, "origin"),
                                   .how = answer_text(d, "how"),
                                   .why = answer_text(d, "why"),
                                   .remedy = answer_text(d, "remedy"),
                                   .error = answer_text(d, "errno"),
                                   .pid = (uint32_t)answer_number(d, "pid"),
                                   .guess = pinfold_value_is_true(pinfold_value_get(d, "guess"))};
}

void result_denials(struct mcp_job *j, const struct pinfold_value *list)
{
    auto_buf struct buf line = BUF(1u << 16);
    size_t n = pinfold_value_count(list), i = 0;

    EACH_ANSWER(v, list)
    {
        const struct pinfold_denial d = denial_of(v);
        line.n = 0;
        if (i++ >= MAX_TOLD_DENIALS || !denial_words(&d, &line))
            continue;
        buf_printf(&j->text, "[%s", buf_cstr(&line));
        if (d.remedy && d.remedy[0]) {
            buf_text(&j->text, "; ");
            wishes_remedy(j, d.remedy, d.origin, &j->text);
        }
        buf_text(&j->text, "]\n");
        if (!j->hears) /* or they were told as they happened */
            denial_entry(j, &d, buf_cstr(&line));
    }
    if (n > MAX_TOLD_DENIALS)
        buf_printf(&j->text, "[%zu more were denied]\n", n - MAX_TOLD_DENIALS);
}

/* One encoding for both: where one of them is no text, both are given as base64, as in the structured result. */
static void put_output(struct mcp_job *j, const struct pinfold_value *r)
{
    size_t n = 0;
    const char *out = pinfold_value_text(pinfold_value_get(r, "stdout"), &n);
    if (out)
        buf_put(&j->text, out, n);
    const char *err = pinfold_value_text(pinfold_value_get(r, "stderr"), &n);
    if (err && n) {
        if (j->text.n && j->text.p[j->text.n - 1] != '\n')
            buf_char(&j->text, '\n');
        buf_put(&j->text, err, n);
    }
    if (j->text.n && j->text.p[j->text.n - 1] != '\n')
        buf_char(&j->text, '\n');
    if (same(answer_text(r, "encoding"), "base64"))
        buf_text(&j->text, "[the output is not text: base64]\n");
}

void result_text(struct mcp_job *j, const struct pinfold_result *result)
{
    const struct pinfold_value *r = pinfold_result_value(result);
    struct pinfold_summary s = {.size = sizeof s};
    auto_buf struct buf notes = j->structured;

    j->structured = BUF(MCP_MAX_ANSWER);
    pinfold_result_summary(result, &s);
    put_output(j, r);
    if (s.stdout_truncated || s.stderr_truncated)
        buf_text(&j->text, "[the output was longer; this is its beginning]\n");
    long long code = answer_number(r, "exit_code");
    const bool which = s.limit && !same(s.limit, s.ended); /* a time-out is both */
    if (s.ended && strcmp(s.ended, "exit") != 0)
        buf_printf(&j->text, "[ended by %s%s%s]\n", s.ended, which ? ": " : "", which ? s.limit : "");
    else if (code)
        buf_printf(&j->text, "[exit status %lld]\n", code);
    if (notes.n)
        buf_printf(&j->text, "[%.*s]\n", (int)notes.n - 1, notes.p);
    result_denials(j, pinfold_value_get(r, "denials"));
    /* A command that says no (grep, test) has done its work; one that was ended or could not start has not. */
    j->failed = !s.ended || strcmp(s.ended, "exit") != 0 || code == 126 || code == 127;
    result_write(j, &JSON(&j->structured), NULL, r);
}

/* The words to run: env A=b ... /bin/sh -c COMMAND, as far as asked for. */
static const char *const *command_words(const struct mcp_job *j, struct arena *mem)
{
    const json_t *argv = json_object_get(j->arguments, "argv");
    json_t *env = json_object_get(j->arguments, "env");
    const char *command = value_text(j->arguments, "command", NULL), **list = NULL, **w;
    size_t n = 0;

#define WORD(text) (w = arena_push(mem, &list, &n, sizeof *w), w ? (void)(*w = (text)) : (void)0)
    if (json_object_size(env)) {
        WORD("/usr/bin/env");
        WORD("--");
    }
    for (void *at = json_object_iter(env); at; at = json_object_iter_next(env, at))
        WORD(arena_printf(mem, "%s=%s", json_object_iter_key(at), json_string_value(json_object_iter_value(at))));
    if (command) {
        WORD("/bin/sh");
        WORD("-c");
        WORD("--");
        WORD(command);
    }
    for (size_t i = 0; i < json_array_size(argv); i++)
        WORD(json_string_value(json_array_get(argv, i)));
    WORD(NULL);
#undef WORD
    return arena_failed(mem) ? NULL : list;
}

/* A file of its own in memory with what the command reads. */
static int input(const struct mcp_job *j, int *ret, struct mcp_job *to)
{
    size_t n = 0;
    const char *text = value_text(j->arguments, "stdin", &n);

    *ret = -1;
    if (!text)
        return 0;
    auto_fd int fd = memfd_create("stdin", MFD_CLOEXEC);
    for (size_t at = 0; fd >= 0 && at < n;) {
        ssize_t wrote = write(fd, text + at, n - at);
        if (wrote < 0) {
            job_fail(to, "stdin: %s", strerror(errno));
            return -errno;
        }
        at += (size_t)wrote;
    }
    if (fd < 0 || lseek(fd, 0, SEEK_SET) < 0) {
        job_fail(to, "stdin: %s", strerror(errno));
        return -errno;
    }
    *ret = take_fd(&fd);
    return 0;
}

static void run_work(struct mcp_job *j)
{
    auto_arena struct arena *mem = arena_new(64u << 20);
    auto_fd int in = -1;
    struct pinfold_error error = {0};
    struct pinfold_policy *policy;
    struct pinfold_result *result;
    const json_t *room = json_object_get(j->arguments, "max_output");
    uint64_t timeout = (uint64_t)json_integer_value(json_object_get(j->arguments, "timeout_ms"));
    struct telling telling = {.job = j};
    bool own;

    if (!value_text(j->arguments, "command", NULL) == !json_object_get(j->arguments, "argv")) {
        job_fail(j, "give either 'command' or 'argv'");
        return;
    }
    const char *const *argv = mem ? command_words(j, mem) : NULL;
    if (!argv) {
        job_fail(j, "out of memory");
        return;
    }
    if (wishes_policy(j, timeout, &policy, &own) < 0 || input(j, &in, j) < 0)
        return;
    struct pinfold_run_options o = {.size = sizeof o,
                                    .argv = argv,
                                    .cwd = value_text(j->arguments, "cwd", NULL),
                                    .use_fds = 1,
                                    .stdin_fd = in,
                                    .stdout_fd = -1,
                                    .stderr_fd = -1,
                                    .capture = 1,
                                    .leave = 1,
                                    .keep_network = !own,
                                    .cow = cow_of(j),
                                    .cow_from = value_text(j->arguments, "cow_from", NULL),
                                    .capture_max = room ? (size_t)json_integer_value(room) : DEFAULT_OUTPUT,
                                    .say = say_progress,
                                    .say_ctx = j,
                                    .output = telling_output,
                                    .output_ctx = &telling,
                                    .denied = denied_now,
                                    .denied_ctx = j};
    j->hears = true;
    if (asks(j)) {
        o.ask = ask;
        o.ask_ctx = j;
    }
    if (o.capture_max == 0) /* 0 would be the library's default */
        o.capture_max = 1;
    if (pinfold_run(policy, &o, &result, &error) < 0) {
        job_tell(j, error.text);
        job_fail(j, "%s", error.text);
    } else {
        result_text(j, result);
        j->result = result;
    }
    if (own)
        j->policy = policy;
}

const struct tool tool_run = {
    .name = "run",
    .title = "Run a command in a box",
    .description = "Runs one command in a new sandbox and returns its output. No process and no private file is left "
                   "afterwards; only changes in the workspace stay. The policy decides what it may read, write and "
                   "reach: see the tool 'policy'. Denials are reported with what would allow them.",
    .arguments = run_arguments,
    .destructive = true,
    .open_world = true,
    .gives_result = true,
    .rests = true,
    .work = run_work};
