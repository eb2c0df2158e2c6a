/*
 * Prints lists of sessions, jobs and agents for people: aligns what the library reports in columns. Names in them may
 * be a box's, so every text is made safe for a terminal first. And which shell somebody has.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "cli/cli.h"
#include "cli/people.h"

enum { MAX_COLUMNS = 8, WIDEST = 64 };

struct people_table {
    const char *const *heads;
    size_t columns, rows;
    char **cells; /* rows × columns */
};

/* What a terminal shows of it; malloc()ed, so that a table can own it. */
static char *safe(const char *text)
{
    auto_buf struct buf out = BUF(4 * strlen(text) + 1);
    utf8_safe(&out, str_of(text));
    return strdup(buf_cstr(&out));
}

static const struct pinfold_value *get(const struct pinfold_value *o, const char *name)
{
    return pinfold_value_get(o, name);
}

/* A text with a NUL in it is shown as far as that. */
static const char *shown_text(const struct pinfold_value *v)
{
    size_t n;
    const char *text = pinfold_value_text(v, &n);
    return text ? text : "";
}

static const char *text_of(const struct pinfold_value *o, const char *name)
{
    return shown_text(get(o, name));
}

static long long number_of(const struct pinfold_value *o, const char *name)
{
    return pinfold_value_number(get(o, name));
}

static void add(struct people_table *t, const char *const *words)
{
    char **grown = realloc(t->cells, (t->rows + 1) * t->columns * sizeof *grown);
    if (!grown)
        return;
    t->cells = grown;
    for (size_t i = 0; i < t->columns; i++)
        grown[t->rows * t->columns + i] = safe(words[i]);
    t->rows++;
}

/* Columns of a terminal that the text takes; two-column characters are rare enough here to stand out of line. */
static size_t width(const char *text)
{
    size_t n = 0;
    for (; text && *text; text++)
        n += (*text & 0xc0) != 0x80;
    return n;
}

/* The last column is as long as it is. */
static int show_table(struct people_table *t)
{
    size_t wide[MAX_COLUMNS] = {0};
    for (size_t c = 0; c < t->columns; c++) {
        wide[c] = width(t->heads[c]);
        for (size_t r = 0; r < t->rows; r++) {
            size_t w = width(t->cells[r * t->columns + c]);
            if (w > wide[c])
                wide[c] = w > WIDEST ? WIDEST : w;
        }
    }
    for (size_t r = 0; r <= t->rows; r++) {
        for (size_t c = 0; c < t->columns; c++) {
            const char *word = r == 0 ? t->heads[c] : t->cells[(r - 1) * t->columns + c];
            size_t w = width(word);
            printf("%s%*s", word ? word : "?", c + 1 < t->columns ? (int)(w < wide[c] ? wide[c] - w : 0) + 2 : 0, "");
        }
        putchar('\n');
    }
    for (size_t i = 0; i < t->rows * t->columns; i++)
        free(t->cells[i]);
    free(t->cells);
    return fflush(stdout) == 0 ? STATUS_YES : STATUS_NO;
}

#define EACH(one, list)                                                                                                \
    for (const struct pinfold_value *one = pinfold_value_first(list); one; one = pinfold_value_next(one))

static int flushed(void)
{
    return fflush(stdout) == 0 ? STATUS_YES : STATUS_NO;
}

static const char *duration(char room[32], uint64_t seconds)
{
    if (seconds < 120)
        snprintf(room, 32, "%us", (unsigned)seconds);
    else if (seconds < 2 * 3600)
        snprintf(room, 32, "%um", (unsigned)(seconds / 60));
    else if (seconds < 2 * 86400)
        snprintf(room, 32, "%uh", (unsigned)(seconds / 3600));
    else
        snprintf(room, 32, "%ud", (unsigned)(seconds / 86400));
    return room;
}

static const char *up(char room[32], const struct pinfold_value *session)
{
    const struct pinfold_value *ms = get(get(session, "now"), "up_ms");
    return pinfold_value_type(ms) == PINFOLD_VALUE_NUMBER ? duration(room, (uint64_t)pinfold_value_number(ms) / 1000)
                                                          : "-";
}

/* "1234abcd (12M, 3h)": the ID, what it takes on the disk, its age. */
static void layer_of(const struct pinfold_value *session, char *room, size_t n)
{
    static const char units[] = "KMGT";
    const struct pinfold_value *bytes = get(session, "layer_bytes");
    char age[32];
    if (!*text_of(session, "layer")) {
        snprintf(room, n, "-");
        return;
    }
    if (pinfold_value_type(bytes) != PINFOLD_VALUE_NUMBER) {
        snprintf(room, n, "%.8s (gone)", text_of(session, "layer"));
        return;
    }
    const int64_t kib = pinfold_value_number(bytes) / 1024;
    double size = (double)kib;
    size_t unit = 0;
    for (; size >= 1024 && unit < 3; unit++)
        size /= 1024;
    const double created = pinfold_value_number(get(session, "layer_created")), now = (double)time(NULL);
    snprintf(room, n, "%.8s (%.0f%c, %s)", text_of(session, "layer"), size, units[unit],
             duration(age, now > created ? (uint64_t)(now - created) : 0));
}

/* What runs in it, in one line. */
static void runs(const struct pinfold_value *session, char *room, size_t n)
{
    size_t at = 0;
    room[0] = 0;
    EACH(one, get(get(session, "now"), "running"))
    {
        char took[32];
        at += (size_t)snprintf(room + at, n - at, "%s%.60s (%s)", at ? ", " : "", text_of(one, "command"),
                               duration(took, (uint64_t)number_of(one, "seconds")));
        if (at + 100 > n)
            break;
    }
    if (!at)
        snprintf(room, n, "-");
}

int people_sessions(const struct pinfold_report *report)
{
    static const char *const heads[] = {"NAME", "STATE", "ENGINE", "PROFILE", "UP", "LAYER", "WORKSPACE", "RUNS"};
    struct people_table t = {.heads = heads, .columns = sizeof heads / sizeof *heads};
    const struct pinfold_value *all = pinfold_report_value(report);
    EACH(one, get(all, "sessions"))
    {
        char room[32], doing[1024], name[1024], layer[64];
        const char *scope = text_of(one, "scope");
        layer_of(one, layer, sizeof layer);
        runs(one, doing, sizeof doing);
        snprintf(name, sizeof name, "%s%s%s", text_of(one, "name"), *scope ? " of " : "", scope);
        const char *const words[] = {name,
                                     text_of(one, "state"),
                                     text_of(one, "engine"),
                                     text_of(one, "profile"),
                                     up(room, one),
                                     layer,
                                     text_of(one, "workspace"),
                                     doing};
        add(&t, words);
    }
    return show_table(&t);
}

/* Since a time as reports have it. */
static const char *age(char room[32], const char *created)
{
    struct tm tm = {0};
    time_t now = time(NULL), then = *created && strptime(created, "%Y-%m-%dT%H:%M:%SZ", &tm) ? timegm(&tm) : 0;
    return then ? duration(room, now > then ? (uint64_t)(now - then) : 0) : "-";
}

int people_projects(const struct people_project *rows, size_t n)
{
    static const char *const heads[] = {"REPO", "MODE", "STATE", "ENGINE", "AGE", "WORKDIR", "VOLUMES"};
    struct people_table t = {.heads = heads, .columns = sizeof heads / sizeof *heads};
    for (const struct people_project *p = rows; p < rows + n; p++) {
        char room[32];
        const char *const words[] = {p->repo,    p->mode,   p->state, p->engine, age(room, p->created),
                                     p->workdir, p->volumes};
        add(&t, words);
    }
    return show_table(&t);
}

int people_volumes(const struct people_volume *rows, size_t n)
{
    static const char *const heads[] = {"VOLUME", "KEEPS", "PROJECT", "WHERE"};
    struct people_table t = {.heads = heads, .columns = sizeof heads / sizeof *heads};
    for (const struct people_volume *v = rows; v < rows + n; v++) {
        const char *const words[] = {v->name, v->kind, v->project, v->where};
        add(&t, words);
    }
    return show_table(&t);
}

/* One that a script could not take as a line is left out. */
int people_names(const struct pinfold_report *report)
{
    const struct pinfold_value *all = pinfold_report_value(report);
    EACH(one, get(all, "sessions"))
    {
        const char *name = text_of(one, "name");
        if (!strpbrk(name, "\n\r\t\033"))
            printf("%s\n", name);
    }
    return flushed();
}

static void line(const char *name, const char *value)
{
    char *shown = safe(value);
    if (shown && *shown)
        printf("%-16s %s\n", name, shown);
    free(shown);
}

int people_session(const struct pinfold_report *report)
{
    static const char plain[][16] = {"name", "scope",   "state",         "engine",      "profile",   "workspace",
                                     "cwd",  "created", "policy_digest", "plan_digest", "state_dir", "runtime_dir"};
    const struct pinfold_value *all = pinfold_report_value(report), *now = get(all, "now");
    char room[32], number[32];
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        line(plain[i], text_of(all, plain[i]));
    if (pinfold_value_type(now) == PINFOLD_VALUE_OBJECT) {
        snprintf(number, sizeof number, "%lld", number_of(all, "pid"));
        line("session daemon", number);
        line("up", up(room, all));
        snprintf(number, sizeof number, "%lld", number_of(now, "commands"));
        line("commands so far", number);
    }
    EACH(one, get(now, "running"))
    {
        char doing[512];
        snprintf(doing, sizeof doing, "%.300s (process %lld, %s)", text_of(one, "command"), number_of(one, "pid"),
                 duration(room, (uint64_t)number_of(one, "seconds")));
        line("runs", doing);
    }
    EACH(one, get(all, "storage"))
    {
        char kept[2048];
        const char *volume = text_of(one, "volume");
        snprintf(kept, sizeof kept, "%.900s: %s%.900s%s%s", text_of(one, "path"), *volume ? "volume " : "",
                 *volume ? volume : text_of(one, "directory"), *volume ? " of " : "", text_of(one, "engine"));
        line("storage", kept);
    }
    EACH(one, get(all, "enforced"))
    {
        char by[512];
        snprintf(by, sizeof by, "%s: %s", pinfold_value_name(one), shown_text(one));
        line("enforced", by);
    }
    EACH(one, get(all, "lost"))
    line("lost", shown_text(one));
    return flushed();
}

int people_removed(const struct pinfold_report *report, bool would)
{
    const char *done = would ? "would remove" : "removed";
    const struct pinfold_value *all = pinfold_report_value(report);
    EACH(one, get(all, "removed"))
    {
        const char *name = pinfold_value_text(get(one, "name"), NULL);
        char *shown = safe(name ? name : text_of(one, "id")), *why = safe(text_of(one, "why"));
        printf("%s %s (%s)\n", done, shown ? shown : "?", why ? why : "?");
        free(shown);
        free(why);
    }
    EACH(one, get(all, "removed_from_engines"))
    {
        const bool volume = get(one, "volume") != NULL;
        char *name = safe(text_of(one, volume ? "volume" : "container"));
        printf("%s %s's %s %s (its maker has died)\n", done, text_of(one, "engine"), volume ? "volume" : "container",
               name ? name : "?");
        free(name);
    }
    EACH(one, get(all, "caches"))
    {
        auto_buf struct buf size = BUF(64);
        char *of = safe(text_of(one, "workspace"));
        buf_amount(&size, (uint64_t)number_of(one, "bytes"));
        printf("%s the caches of %s, a project that no longer exists", done, of ? of : "?");
        if (!would)
            printf(": %s freed%s", buf_cstr(&size),
                   pinfold_value_type(get(one, "whole")) == PINFOLD_VALUE_BOOL &&
                           !pinfold_value_is_true(get(one, "whole"))
                       ? ", except what belongs to another user"
                       : "");
        printf("\n");
        free(of);
    }
    EACH(one, get(all, "kept"))
    {
        const char *name = pinfold_value_text(get(one, "name"), NULL);
        char *shown = safe(name ? name : text_of(one, "id")), *why = safe(text_of(one, "why"));
        printf("kept %s: %s\n", shown ? shown : "?", why ? why : "?");
        free(shown);
        free(why);
    }
    EACH(one, get(all, "not_asked_news"))
    {
        char *why = safe(text_of(one, "why")), *note = safe(text_of(one, "note"));
        complain("%s. Containers that boxes may have left there are kept until it answers; this message is printed "
                 "once (if the daemon is gone for good: rm '%s')",
                 why ? why : "a daemon does not answer", note ? note : "?");
        free(why);
        free(note);
    }
    return flushed();
}

/* "running", "exit 3", "signal 9", what ended it when that was not the command itself, and how much was denied. */
static const char *job_state(const struct pinfold_value *job, char room[64])
{
    const struct pinfold_value *result = get(job, "result"), *code = get(result, "exit_code"),
                               *number = get(result, "signal");
    const char *how = text_of(result, "ended");
    const size_t denied = pinfold_value_count(get(result, "denials"));
    if (pinfold_value_type(result) != PINFOLD_VALUE_OBJECT)
        return text_of(job, "state");
    if (!same(how, "exit") && !same(how, "signal"))
        snprintf(room, 64, "%.30s", how);
    else if (pinfold_value_type(code) == PINFOLD_VALUE_NUMBER)
        snprintf(room, 64, "exit %lld", (long long)pinfold_value_number(code));
    else if (pinfold_value_text(number, NULL))
        snprintf(room, 64, "%.30s", pinfold_value_text(number, NULL));
    else
        snprintf(room, 64, "signal %lld", (long long)pinfold_value_number(number));
    size_t n = strlen(room);
    if (denied)
        snprintf(room + n, 64 - n, "; %zu denied", denied);
    return room;
}

int people_jobs(const struct pinfold_report *report)
{
    static const char *const heads[] = {"JOB", "STATE", "OUTPUT", "COMMAND"};
    struct people_table t = {.heads = heads, .columns = sizeof heads / sizeof *heads};
    const struct pinfold_value *all = pinfold_report_value(report);
    EACH(one, get(all, "jobs"))
    {
        char number[32], bytes[32], state[64], command[512] = "";
        const struct pinfold_value *argv = get(one, "argv"), *first = pinfold_value_first(argv);
        size_t at = 0;
        snprintf(number, sizeof number, "%lld", number_of(one, "job"));
        snprintf(bytes, sizeof bytes, "%lld", number_of(one, "output_end"));
        EACH(word, argv)
        {
            if (at < 300)
                at += (size_t)snprintf(command + at, sizeof command - at, "%s%.200s", word == first ? "" : " ",
                                       shown_text(word));
        }
        const char *const words[] = {number, job_state(one, state), bytes, command};
        add(&t, words);
    }
    return show_table(&t);
}

void people_job_not_begun(const struct pinfold_report *report, unsigned job)
{
    const struct pinfold_value *all = pinfold_report_value(report);
    EACH(one, get(all, "jobs"))
    {
        const struct pinfold_value *error = get(get(one, "result"), "error");
        if (number_of(one, "job") == job && error)
            complain("%s: %s", shown_text(pinfold_value_first(get(one, "argv"))), text_of(error, "text"));
    }
}

int people_agents(const struct pinfold_report *report)
{
    static const char *const heads[] = {"NAME", "TITLE", "LOGIN IN"};
    struct people_table t = {.heads = heads, .columns = sizeof heads / sizeof *heads};
    const struct pinfold_value *all = pinfold_report_value(report);
    EACH(one, get(all, "agents"))
    {
        char places[512] = "";
        size_t at = 0;
        EACH(word, get(one, "state"))
        {
            if (at < 300)
                at += (size_t)snprintf(places + at, sizeof places - at, "%s%.100s", at ? ", " : "", shown_text(word));
        }
        const char *const words[] = {text_of(one, "name"), text_of(one, "title"), places};
        add(&t, words);
    }
    EACH(one, get(all, "wrong"))
    complain("agent list: %s", text_of(one, "error"));
    return show_table(&t);
}

const char *callers_shell(void)
{
    static const char *const refusing[] = {"false", "true", "nologin"};
    const char *shell = getenv("SHELL");
    if (!shell || shell[0] != '/' || access(shell, X_OK) != 0)
        return NULL;
    for (size_t i = 0; i < sizeof refusing / sizeof *refusing; i++)
        if (same(strrchr(shell, '/') + 1, refusing[i]))
            return NULL;
    return shell;
}
