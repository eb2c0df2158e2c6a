/* Prints lists of sessions, jobs and agents for people: reads the library's JSON and aligns it in columns. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "cli/cli.h"
#include "cli/people.h"
#include "run/words.h"

enum { MAX_COLUMNS = 8, WIDEST = 40 };

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

static const char *text_of(const json_t *o, const char *name)
{
    const char *text = json_string_value(json_object_get(o, name));
    return text ? text : "";
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

static json_t *parsed(char *text)
{
    json_t *all = json_loads(text, JSON_ALLOW_NUL | JSON_DISABLE_EOF_CHECK, NULL);
    free(text);
    if (!all)
        complain("cannot read the list; print it with --json");
    return all;
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

static const char *up(char room[32], const json_t *session)
{
    const json_t *ms = json_object_get(json_object_get(session, "now"), "up_ms");
    return json_is_integer(ms) ? duration(room, (uint64_t)json_integer_value(ms) / 1000) : "-";
}

/* What runs in it, in one line. */
static void runs(const json_t *session, char *room, size_t n)
{
    const json_t *list = json_object_get(json_object_get(session, "now"), "running"), *one;
    size_t i, at = 0;
    room[0] = 0;
    json_array_foreach(list, i, one)
    {
        char took[32];
        at += (size_t)snprintf(room + at, n - at, "%s%.60s (%s)", i ? ", " : "", text_of(one, "command"),
                               duration(took, (uint64_t)json_integer_value(json_object_get(one, "seconds"))));
        if (at + 100 > n)
            break;
    }
    if (!at)
        snprintf(room, n, "-");
}

int people_sessions(char *text)
{
    static const char *const heads[] = {"NAME", "STATE", "ENGINE", "PROFILE", "UP", "WORKSPACE", "RUNS"};
    struct people_table t = {.heads = heads, .columns = sizeof heads / sizeof *heads};
    json_t *all = parsed(text), *one;
    size_t i;
    if (!all)
        return STATUS_NO;
    json_array_foreach(json_object_get(all, "sessions"), i, one)
    {
        char room[32], doing[1024], name[1024];
        const char *scope = text_of(one, "scope");
        runs(one, doing, sizeof doing);
        snprintf(name, sizeof name, "%s%s%s", text_of(one, "name"), *scope ? " of " : "", scope);
        const char *const words[] = {name,
                                     text_of(one, "state"),
                                     text_of(one, "engine"),
                                     text_of(one, "profile"),
                                     up(room, one),
                                     text_of(one, "workspace"),
                                     doing};
        add(&t, words);
    }
    json_decref(all);
    return show_table(&t);
}

/* One that a script could not take as a line is left out. */
int people_names(char *text)
{
    json_t *all = parsed(text), *one;
    size_t i;
    if (!all)
        return STATUS_NO;
    json_array_foreach(json_object_get(all, "sessions"), i, one)
    {
        const char *name = text_of(one, "name");
        if (!strpbrk(name, "\n\r\t\033"))
            printf("%s\n", name);
    }
    json_decref(all);
    return fflush(stdout) == 0 ? STATUS_YES : STATUS_NO;
}

static void line(const char *name, const char *value)
{
    char *shown = safe(value);
    if (shown && *shown)
        printf("%-16s %s\n", name, shown);
    free(shown);
}

int people_session(char *text)
{
    static const char *const plain[] = {"name", "scope",   "state",         "engine",      "profile",   "workspace",
                                        "cwd",  "created", "policy_digest", "plan_digest", "state_dir", "runtime_dir"};
    json_t *all = parsed(text), *one;
    const char *name;
    char room[32], number[32];
    size_t i;
    if (!all)
        return STATUS_NO;
    for (i = 0; i < sizeof plain / sizeof *plain; i++)
        line(plain[i], text_of(all, plain[i]));
    json_t *now = json_object_get(all, "now");
    if (json_is_object(now)) {
        snprintf(number, sizeof number, "%lld", (long long)json_integer_value(json_object_get(all, "pid")));
        line("session daemon", number);
        line("up", up(room, all));
        snprintf(number, sizeof number, "%lld", (long long)json_integer_value(json_object_get(now, "commands")));
        line("commands so far", number);
    }
    json_array_foreach(json_object_get(now, "running"), i, one)
    {
        char doing[512];
        snprintf(doing, sizeof doing, "%.300s (process %lld, %s)", text_of(one, "command"),
                 (long long)json_integer_value(json_object_get(one, "pid")),
                 duration(room, (uint64_t)json_integer_value(json_object_get(one, "seconds"))));
        line("runs", doing);
    }
    json_array_foreach(json_object_get(all, "storage"), i, one)
    {
        char kept[2048];
        const char *volume = text_of(one, "volume");
        snprintf(kept, sizeof kept, "%.900s: %s%.900s%s%s", text_of(one, "path"), *volume ? "volume " : "",
                 *volume ? volume : text_of(one, "directory"), *volume ? " of " : "", text_of(one, "engine"));
        line("storage", kept);
    }
    json_object_foreach(json_object_get(all, "enforced"), name, one)
    {
        char by[512];
        snprintf(by, sizeof by, "%s: %s", name, json_string_value(one) ? json_string_value(one) : "");
        line("enforced", by);
    }
    json_array_foreach(json_object_get(all, "lost"), i, one)
        line("lost", json_string_value(one) ? json_string_value(one) : "");
    json_decref(all);
    return fflush(stdout) == 0 ? STATUS_YES : STATUS_NO;
}

int people_removed(char *text, bool would)
{
    const char *done = would ? "would remove" : "removed";
    json_t *all = parsed(text), *one;
    size_t i;
    if (!all)
        return STATUS_NO;
    json_array_foreach(json_object_get(all, "removed"), i, one)
    {
        const char *name = json_string_value(json_object_get(one, "name"));
        char *shown = safe(name ? name : text_of(one, "id")), *why = safe(text_of(one, "why"));
        printf("%s %s (%s)\n", done, shown ? shown : "?", why ? why : "?");
        free(shown);
        free(why);
    }
    json_array_foreach(json_object_get(all, "removed_from_engines"), i, one)
    {
        const bool volume = json_object_get(one, "volume") != NULL;
        char *name = safe(text_of(one, volume ? "volume" : "container"));
        printf("%s %s's %s %s (its maker has died)\n", done, text_of(one, "engine"), volume ? "volume" : "container",
               name ? name : "?");
        free(name);
    }
    json_array_foreach(json_object_get(all, "caches"), i, one)
    {
        auto_buf struct buf size = BUF(64);
        char *of = safe(text_of(one, "workspace"));
        words_bytes(&size, (uint64_t)json_integer_value(json_object_get(one, "bytes")));
        printf("%s the caches of %s, a project that no longer exists", done, of ? of : "?");
        if (!would)
            printf(": %s freed%s", buf_cstr(&size),
                   json_is_false(json_object_get(one, "whole")) ? ", except what belongs to another user" : "");
        printf("\n");
        free(of);
    }
    json_array_foreach(json_object_get(all, "kept"), i, one)
    {
        char *shown = safe(text_of(one, "name")), *why = safe(text_of(one, "why"));
        printf("kept %s: %s\n", shown ? shown : "?", why ? why : "?");
        free(shown);
        free(why);
    }
    json_array_foreach(json_object_get(all, "not_asked_news"), i, one)
    {
        char *why = safe(text_of(one, "why")), *note = safe(text_of(one, "note"));
        complain("%s. Containers that boxes may have left there are kept until it answers; this message is printed "
                 "once (if the daemon is gone for good: rm '%s')",
                 why ? why : "a daemon does not answer", note ? note : "?");
        free(why);
        free(note);
    }
    json_decref(all);
    return fflush(stdout) == 0 ? STATUS_YES : STATUS_NO;
}

/* "running", "exit 3", "signal 9", what ended it when that was not the command itself, and how much was denied. */
static const char *job_state(const json_t *job, char room[64])
{
    const json_t *result = json_object_get(job, "result"), *code = json_object_get(result, "exit_code"),
                 *number = json_object_get(result, "signal");
    const char *how = text_of(result, "ended");
    const size_t denied = json_array_size(json_object_get(result, "denials"));
    if (!json_is_object(result))
        return text_of(job, "state");
    if (!same(how, "exit") && !same(how, "signal"))
        snprintf(room, 64, "%.30s", how);
    else if (json_is_integer(code))
        snprintf(room, 64, "exit %lld", (long long)json_integer_value(code));
    else if (json_is_string(number))
        snprintf(room, 64, "%.30s", json_string_value(number));
    else
        snprintf(room, 64, "signal %lld", (long long)json_integer_value(number));
    size_t n = strlen(room);
    if (denied)
        snprintf(room + n, 64 - n, "; %zu denied", denied);
    return room;
}

int people_jobs(char *text)
{
    static const char *const heads[] = {"JOB", "STATE", "OUTPUT", "COMMAND"};
    struct people_table t = {.heads = heads, .columns = sizeof heads / sizeof *heads};
    json_t *all = parsed(text), *one, *word;
    size_t i, k;
    if (!all)
        return STATUS_NO;
    json_array_foreach(json_object_get(all, "jobs"), i, one)
    {
        char number[32], bytes[32], state[64], command[512] = "";
        size_t at = 0;
        snprintf(number, sizeof number, "%lld", (long long)json_integer_value(json_object_get(one, "job")));
        snprintf(bytes, sizeof bytes, "%lld", (long long)json_integer_value(json_object_get(one, "output_end")));
        json_array_foreach(json_object_get(one, "argv"), k, word)
        {
            const char *w = json_string_value(word);
            if (at < 300)
                at += (size_t)snprintf(command + at, sizeof command - at, "%s%.200s", k ? " " : "", w ? w : "?");
        }
        const char *const words[] = {number, job_state(one, state), bytes, command};
        add(&t, words);
    }
    json_decref(all);
    return show_table(&t);
}

int people_agents(char *text)
{
    static const char *const heads[] = {"NAME", "TITLE", "LOGIN IN"};
    struct people_table t = {.heads = heads, .columns = sizeof heads / sizeof *heads};
    json_t *all = parsed(text), *one, *word;
    size_t i, k;
    if (!all)
        return STATUS_NO;
    json_array_foreach(json_object_get(all, "agents"), i, one)
    {
        char places[512] = "";
        size_t at = 0;
        json_array_foreach(json_object_get(one, "state"), k, word)
        {
            if (at < 300)
                at += (size_t)snprintf(places + at, sizeof places - at, "%s%.100s", k ? ", " : "",
                                       json_string_value(word) ? json_string_value(word) : "?");
        }
        const char *const words[] = {text_of(one, "name"), text_of(one, "title"), places};
        add(&t, words);
    }
    json_decref(all);
    return show_table(&t);
}
