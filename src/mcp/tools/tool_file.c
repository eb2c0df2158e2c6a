/*
 * The tools for files: read, write and edit, list, glob and grep in a session. All by the library's file functions,
 * whose calls are made in the box: its rules hold, and this process opens nothing.
 */
#include "mcp/tools/tool_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "match/glob.h"
#include "mcp/protocol/mime.h"
#include "mcp/tools/tool_run.h"
#include "mcp/tools/tool_session.h"

#define MAX_FOUND 1000  /* names that glob tells           */
#define MAX_LOOKS 20000 /* directories that glob looks into */
#define MAX_DEPTH 64
#define MAX_LINES 100000

/* The path as the session has it: a relative one begins where its commands do. NULL: the job has failed. */
static const char *path_of(struct mcp_job *j, struct arena *mem, const char *name, const char *otherwise)
{
    const char *path = value_text(j->arguments, name, NULL);
    if (!path)
        path = otherwise;
    if (!path[0]) {
        job_fail(j, "'%s' is empty", name);
        return NULL;
    }
    if (path[0] == '/')
        return path;
    const char *cwd = session_cwd(j, mem);
    if (!cwd)
        return NULL;
    while (path[0] == '.' && (path[1] == '/' || !path[1]))
        path += path[1] ? 2 : 1;
    if (!path[0])
        return cwd;
    const char *whole = arena_printf(mem, "%s/%s", same(cwd, "/") ? "" : cwd, path);
    if (!whole)
        job_fail(j, "out of memory");
    return whole;
}

static void fail_file(struct mcp_job *j, int r, const struct pinfold_error *error)
{
    if (r == -ESTALE)
        session_lost(j);
    job_fail(j, "%s", error->text);
}

struct file_scene {
    struct arena *mem;
    struct pinfold_session *session;
    const char *path;
};

static bool begin_file(struct mcp_job *j, struct file_scene *s, const char *otherwise)
{
    s->mem = arena_new(64u << 20);
    s->session = s->mem ? session_of(j) : NULL;
    s->path = s->session ? path_of(j, s->mem, "path", otherwise) : NULL;
    return s->path != NULL;
}

static void end(struct file_scene *s)
{
    s->mem = arena_free(s->mem);
}

/* ---- read_file */

/* The lines asked for: from `first` (1 is the first) at most `n`. */
static struct str lines_of(struct str all, int64_t first, int64_t n, bool *ret_cut)
{
    struct str rest = all;
    for (int64_t i = 1; i < first && rest.n; i++)
        (void)str_until(&rest, '\n');
    struct str from = rest;
    for (int64_t i = 0; i < n && rest.n; i++)
        (void)str_until(&rest, '\n');
    *ret_cut = rest.n > 0 || from.p != all.p;
    return (struct str){from.p, (size_t)(rest.p - from.p)};
}

static void read_file_work(struct mcp_job *j)
{
    struct file_scene s;
    struct pinfold_error error = {0};
    const json_t *first = json_object_get(j->arguments, "line"), *count = json_object_get(j->arguments, "lines");
    char *bytes = NULL;
    size_t n = 0;
    uint64_t size = 0;

    int r = begin_file(j, &s, "") ? pinfold_file_read(s.session, s.path, 0, MAX_FILE, &bytes, &n, &size, &error) : 1;
    if (r < 0)
        fail_file(j, r, &error);
    if (r == 0) {
        struct str all = {bytes, n};
        bool text = utf8_is_text(all), cut = false;
        if (text && (first || count))
            all = lines_of(all, first ? json_integer_value(first) : 1, count ? json_integer_value(count) : MAX_LINES,
                           &cut);
        struct json w = JSON(&j->structured);
        json_object(&w, NULL);
        json_text(&w, "path", s.path);
        json_uint(&w, "size", size);
        json_bool(&w, "truncated", cut || n < size);
        const char *type = mime_of(s.path, all);
        bool picture = !text && n == size && mime_content(type);
        json_text(&w, "mimeType", type);
        json_text(&w, "encoding", text ? "utf8" : "base64");
        if (text)
            json_str(&w, "content", all);
        else if (!picture)
            json_base64(&w, "content", all);
        json_object_end(&w);
        if (picture) {
            j->picture = type;
            buf_str(&j->pixels, all);
            buf_printf(&j->text, "[%s, %llu byte%s]", type, (unsigned long long)size, size == 1 ? "" : "s");
        } else if (text)
            buf_str(&j->text, all);
        else
            buf_printf(&j->text, "[%llu byte%s not text, in the structured result as base64]", (unsigned long long)size,
                       size == 1 ? " that is" : "s that are");
        if (n < size)
            buf_printf(&j->text, "\n[the file has %llu byte%s; these are the first %zu]", (unsigned long long)size,
                       size == 1 ? "" : "s", n);
    }
    free(bytes);
    end(&s);
}

/* ---- write_file, edit_file */

static bool write_whole(struct mcp_job *j, const struct file_scene *s, struct str bytes)
{
    struct pinfold_error error = {0};
    int r = pinfold_file_write(s->session, s->path, bytes.p, bytes.n, 0644, 1, &error);
    if (r < 0)
        fail_file(j, r, &error);
    return r == 0;
}

static void told_write(struct mcp_job *j, const struct file_scene *s, size_t bytes, size_t changes)
{
    struct json w = JSON(&j->structured);
    json_object(&w, NULL);
    json_text(&w, "path", s->path);
    json_uint(&w, "size", bytes);
    if (changes)
        json_uint(&w, "replacements", changes);
    json_object_end(&w);
    auto_buf struct buf line = BUF(1u << 16);
    buf_printf(&line, "%s ", changes ? "changed" : "wrote");
    words_of(&line, str_of(s->path));
    buf_printf(&line, ": %zu byte%s", bytes, bytes == 1 ? "" : "s");
    if (changes)
        buf_printf(&line, ", %zu replacement%s", changes, changes == 1 ? "" : "s");
    buf_str(&j->text, buf_view(&line));
    job_tell(j, buf_cstr(&line));
}

static void write_work(struct mcp_job *j)
{
    struct file_scene s;
    struct str content = {0};

    content.p = value_text(j->arguments, "content", &content.n);
    if (begin_file(j, &s, "") && write_whole(j, &s, content))
        told_write(j, &s, content.n, 0);
    end(&s);
}

/* `all` with every `old` as `new`; the number of them. */
static size_t replace(struct buf *out, struct str all, struct str old, struct str new)
{
    size_t n = 0;
    for (const char *at; all.n >= old.n && (at = memmem(all.p, all.n, old.p, old.n)); n++) {
        buf_put(out, all.p, (size_t)(at - all.p));
        buf_str(out, new);
        all = str_skip(all, (size_t)(at - all.p) + old.n);
    }
    buf_str(out, all);
    return n;
}

static void edit(struct mcp_job *j, const struct file_scene *s, struct str old, struct str new, bool every)
{
    auto_buf struct buf out = BUF(2 * (size_t)MAX_FILE);
    struct pinfold_error error = {0};
    char *bytes = NULL;
    size_t n = 0;
    uint64_t size = 0;

    int r = pinfold_file_read(s->session, s->path, 0, MAX_FILE, &bytes, &n, &size, &error);
    if (r < 0) {
        fail_file(j, r, &error);
        return;
    }
    size_t found = n < size ? 0 : replace(&out, (struct str){bytes, n}, old, new);
    free(bytes);
    if (n < size)
        job_fail(j, "the file has more than %u bytes", MAX_FILE);
    else if (found == 0)
        job_fail(j, "'old' does not occur in %s; it must match exactly, including white space", s->path);
    else if (found > 1 && !every)
        job_fail(j, "'old' occurs %zu times in %s; include more of the surrounding text, or set 'all'", found, s->path);
    else if (!buf_ok(&out))
        job_fail(j, "the file would become too large");
    else if (write_whole(j, s, buf_view(&out)))
        told_write(j, s, out.n, found);
}

static void edit_work(struct mcp_job *j)
{
    struct file_scene s;
    struct str old = {0}, new = {0};

    old.p = value_text(j->arguments, "old", &old.n);
    new.p = value_text(j->arguments, "new", &new.n);
    if (!old.n)
        job_fail(j, "'old' is empty; to write a whole file: write_file");
    else if (str_eq(old, new))
        job_fail(j, "'old' and 'new' are the same");
    if (j->failed)
        return;
    if (begin_file(j, &s, ""))
        edit(j, &s, old, new, json_is_true(json_object_get(j->arguments, "all")));
    end(&s);
}

/* ---- list_dir, glob */

static struct pinfold_report *entries(struct mcp_job *j, struct pinfold_session *session, const char *path, bool quiet)
{
    struct pinfold_error error = {0};
    struct pinfold_report *list = NULL;
    int r = pinfold_file_list_report(session, path, &list, &error);
    if (r < 0 && !quiet)
        fail_file(j, r, &error);
    return list;
}

static void list_dir_work(struct mcp_job *j)
{
    struct file_scene s;
    auto_report struct pinfold_report *list = begin_file(j, &s, ".") ? entries(j, s.session, s.path, false) : NULL;
    const struct pinfold_value *all = pinfold_value_get(pinfold_report_value(list), "entries");
    struct json w = JSON(&j->structured);

    if (list) {
        answer_write(&w, NULL, pinfold_report_value(list), NULL);
        EACH_ANSWER(e, all)
        {
            const char *name = answer_text(e, "name"), *type = answer_text(e, "type");
            const char *target = answer_text(e, "target");
            words_of(&j->text, str_of(name));
            buf_text(&j->text, same(type, "directory") ? "/" : "");
            if (target) {
                buf_text(&j->text, " -> ");
                words_of(&j->text, str_of(target));
            } else if (same(type, "file")) {
                buf_printf(&j->text, "  %lld", answer_number(e, "size"));
            }
            buf_char(&j->text, '\n');
        }
        if (!pinfold_value_count(all))
            buf_text(&j->text, "[empty]");
    }
    end(&s);
}

struct search {
    struct mcp_job *job;
    struct pinfold_session *session;
    struct arena *mem;
    struct json w;
    size_t found, looks;
    const char *parts[MAX_DEPTH]; /* of the pattern */
    size_t n_parts;
};

/* 0, or -EINVAL with the reason told. */
static int split(struct search *s, const char *pattern)
{
    struct str rest = str_of(pattern);
    while (rest.n) {
        struct str part = str_until(&rest, '/');
        if (!part.n || str_is(part, "."))
            continue;
        const char *wrong = glob_wrong(part), *kept = wrong ? NULL : arena_str(s->mem, part);
        if (wrong)
            job_fail(s->job, "'%.*s' %s", (int)part.n, part.p, wrong);
        else if (!kept || s->n_parts == MAX_DEPTH || str_is(part, ".."))
            job_fail(s->job, "the pattern has 1 to %d parts, none of them '..'", MAX_DEPTH);
        if (s->job->failed)
            return -EINVAL;
        s->parts[s->n_parts++] = kept;
    }
    if (s->n_parts == 0)
        job_fail(s->job, "the pattern has 1 to %d parts, none of them '..'", MAX_DEPTH);
    return s->n_parts ? 0 : -EINVAL;
}

/* A search, not a rule: a dot at the beginning is asked for, as a shell has it, and case counts. */
static bool fits_part(const char *part, const char *name)
{
    return (name[0] != '.' || part[0] == '.' || (part[0] == '\\' && part[1] == '.')) &&
           glob_match(str_of(part), str_of(name), GLOB_EXACT);
}

static void hit(struct search *s, const char *path)
{
    if (s->found++ >= MAX_FOUND)
        return;
    json_text(&s->w, NULL, path);
    words_of(&s->job->text, str_of(path));
    buf_char(&s->job->text, '\n');
}

/* What of the directory matches the parts from `at` on. Links to directories are not followed. */
static void look(struct search *s, const char *dir, size_t at, unsigned depth)
{
    bool any = same(s->parts[at], "**"), last = at + 1 == s->n_parts;
    if (depth > MAX_DEPTH || s->found > MAX_FOUND || s->looks++ > MAX_LOOKS)
        return;
    if (any && !last) /* ** stands for no directory, too */
        look(s, dir, at + 1, depth);
    auto_report struct pinfold_report *list = entries(s->job, s->session, dir, depth > 0);
    EACH_ANSWER(e, pinfold_value_get(pinfold_report_value(list), "entries"))
    {
        const char *name = answer_text(e, "name");
        bool directory = same(answer_text(e, "type"), "directory");
        if (!name || (any && same(name, ".git")))
            continue;
        bool fits = any || fits_part(s->parts[at], name);
        const char *path = fits ? arena_printf(s->mem, "%s/%s", same(dir, "/") ? "" : dir, name) : NULL;
        if (path && last && !(any && directory))
            hit(s, path);
        if (path && directory && (any || !last))
            look(s, path, any ? at : at + 1, depth + 1);
    }
}

static void glob_work(struct mcp_job *j)
{
    struct file_scene s;
    const char *pattern = value_text(j->arguments, "pattern", NULL);
    struct search search = {.job = j, .w = JSON(&j->structured)};

    if (begin_file(j, &s, pattern[0] == '/' ? "/" : ".")) {
        search.mem = s.mem;
        search.session = s.session;
        if (split(&search, pattern) == 0) {
            json_object(&search.w, NULL);
            json_array(&search.w, "paths");
            const char *from = s.path;
            size_t n = strlen(from);
            while (n > 1 && (from[n - 1] == '/' || (from[n - 1] == '.' && from[n - 2] == '/')))
                n--;
            look(&search, arena_str(s.mem, (struct str){from, n}), 0, 0);
            json_array_end(&search.w);
            json_bool(&search.w, "truncated", search.found > MAX_FOUND || search.looks > MAX_LOOKS);
            json_object_end(&search.w);
            if (!j->failed && (search.found > MAX_FOUND || search.looks > MAX_LOOKS))
                buf_text(&j->text, "[there is more; narrow the pattern]\n");
            if (!search.found && !j->failed)
                buf_text(&j->text, "[no matches]");
        }
    }
    end(&s);
}

/* ---- grep: the box's own, so that it reads what a command may read */

static void grep_work(struct mcp_job *j)
{
    struct file_scene s;
    struct pinfold_error error = {0};
    struct pinfold_result *result;
    const char *include = value_text(j->arguments, "glob", NULL), *argv[16];
    const json_t *room = json_object_get(j->arguments, "max_output");
    size_t n = 0;

    if (!begin_file(j, &s, ".")) {
        end(&s);
        return;
    }
    argv[n++] = "grep";
    argv[n++] = "-rInE";
    argv[n++] = "--exclude-dir=.git";
    if (json_is_true(json_object_get(j->arguments, "ignore_case")))
        argv[n++] = "-i";
    if (json_is_true(json_object_get(j->arguments, "names_only")))
        argv[n++] = "-l";
    if (include)
        argv[n++] = arena_printf(s.mem, "--include=%s", include);
    argv[n++] = "-e";
    argv[n++] = value_text(j->arguments, "pattern", NULL);
    argv[n++] = "--";
    argv[n++] = s.path;
    argv[n] = NULL;
    struct pinfold_exec_options o = {.size = sizeof o,
                                     .argv = argv,
                                     .use_fds = 1,
                                     .stdin_fd = -1,
                                     .stdout_fd = -1,
                                     .stderr_fd = -1,
                                     .capture = 1,
                                     .capture_max = room ? (size_t)json_integer_value(room) : 1u << 18,
                                     .timeout_ms = 120000,
                                     .cancel_fd = j->socket};
    int r = pinfold_exec(s.session, &o, &result, &error);
    if (r < 0) {
        fail_file(j, r, &error);
    } else {
        result_text(j, result);
        if (pinfold_result_end(result) == PINFOLD_EXITED && pinfold_result_code(result) == 1) {
            buf_free(&j->text);
            buf_text(&j->text, "[no matches]");
        }
        pinfold_result_free(result);
    }
    end(&s);
}

#define PATH_ARGUMENT(what)                                                                                            \
    {                                                                                                                  \
        "path", ARGUMENT_TEXT, .required = true,                                                                       \
                               .help = what ", as the box sees it; a relative one begins in the workspace."            \
    }

static const struct tool_argument read_file_arguments[] = {
    PATH_ARGUMENT("The file"),
    {"line", ARGUMENT_NUMBER, .min = 1, .max = INT32_MAX, .help = "The first line to return."},
    {"lines", ARGUMENT_NUMBER, .min = 1, .max = MAX_LINES, .help = "How many lines to return."},
    SESSION_ARGUMENT,
    {0}};
static const struct tool_argument write_arguments[] = {
    PATH_ARGUMENT("The file; it and its directories are created if missing"),
    {"content", ARGUMENT_TEXT, .required = true, .help = "The new content of the whole file."},
    SESSION_ARGUMENT,
    {0}};
static const struct tool_argument edit_arguments[] = {
    PATH_ARGUMENT("The file"),
    {"old", ARGUMENT_TEXT, .required = true, .help = "The exact text to replace."},
    {"new", ARGUMENT_TEXT, .required = true, .help = "The new text."},
    {"all", ARGUMENT_SWITCH, .help = "Replace every occurrence; without it there must be exactly one."},
    SESSION_ARGUMENT,
    {0}};
static const struct tool_argument list_dir_arguments[] = {
    {"path", ARGUMENT_TEXT, .help = "The directory, as the box sees it; the workspace by default."},
    SESSION_ARGUMENT,
    {0}};
static const struct tool_argument glob_arguments[] = {
    {"pattern", ARGUMENT_TEXT, .required = true, .help = "As src/**/*.c: * within a name, ** for any directories."},
    {"path", ARGUMENT_TEXT, .help = "Where to begin; the workspace by default."},
    SESSION_ARGUMENT,
    {0}};
static const struct tool_argument grep_arguments[] = {
    {"pattern", ARGUMENT_TEXT, .required = true, .help = "An extended regular expression (grep -E)."},
    {"path", ARGUMENT_TEXT, .help = "A file or directory; the workspace by default."},
    {"glob", ARGUMENT_TEXT, .help = "Only files whose name matches, such as *.c."},
    {"ignore_case", ARGUMENT_SWITCH, .help = "Ignore case."},
    {"names_only", ARGUMENT_SWITCH, .help = "Only names of files."},
    {"max_output", ARGUMENT_NUMBER, .min = 1, .max = MAX_FILE, .help = "Bytes kept; 256 KiB by default."},
    SESSION_ARGUMENT,
    {0}};

const struct tool tool_read_file = {
    .name = "read_file",
    .title = "Read a file",
    .description = "Reads a file of a session's box, at most 16 MiB.",
    .output =
        "{\"type\":\"object\",\"properties\":{\"path\":{\"type\":\"string\"},\"size\":{\"type\":\"integer\"},"
        "\"truncated\":{\"type\":\"boolean\"},\"mimeType\":{\"type\":\"string\"},\"encoding\":{\"type\":\"string\"},"
        "\"content\":{\"type\":\"string\"}},\"required\":[\"path\",\"size\",\"truncated\",\"mimeType\",\"encoding\"]}",
    .arguments = read_file_arguments,
    .read_only = true,
    .idempotent = true,
    .sessions = true,
    .work = read_file_work};
const struct tool tool_write_file = {
    .name = "write_file",
    .title = "Write a file",
    .description = "Replaces a whole file of a session's box in one step, under the "
                   "same rules as a command there.",
    .output = "{\"type\":\"object\",\"properties\":{\"path\":{\"type\":\"string\"},\"size\":{\"type\":\"integer\"},"
              "\"replacements\":{\"type\":\"integer\"}},\"required\":[\"path\",\"size\"]}",
    .arguments = write_arguments,
    .destructive = true,
    .idempotent = true,
    .sessions = true,
    .work = write_work};
const struct tool tool_edit_file = {
    .name = "edit_file",
    .title = "Edit a file",
    .description = "Replaces a piece of text in a file of a session's box, exactly.",
    .output = "{\"type\":\"object\",\"properties\":{\"path\":{\"type\":\"string\"},\"size\":{\"type\":\"integer\"},"
              "\"replacements\":{\"type\":\"integer\"}},\"required\":[\"path\",\"size\"]}",
    .arguments = edit_arguments,
    .destructive = true,
    .sessions = true,
    .work = edit_work};
const struct tool tool_list_dir = {
    .name = "list_dir",
    .title = "List a directory",
    .description = "The entries of a directory of a session's box.",
    .output = "{\"type\":\"object\",\"properties\":{\"entries\":{\"type\":\"array\"}},\"required\":[\"entries\"]}",
    .arguments = list_dir_arguments,
    .read_only = true,
    .idempotent = true,
    .sessions = true,
    .work = list_dir_work};
const struct tool tool_glob = {.name = "glob",
                               .title = "Find files by name",
                               .description = "Paths in a session's box that match a pattern, at most 1,000.",
                               .output =
                                   "{\"type\":\"object\",\"properties\":{\"paths\":{\"type\":\"array\"},\"truncated\":{"
                                   "\"type\":\"boolean\"}},\"required\":[\"paths\",\"truncated\"]}",
                               .arguments = glob_arguments,
                               .read_only = true,
                               .idempotent = true,
                               .sessions = true,
                               .work = glob_work};
const struct tool tool_grep = {.name = "grep",
                               .title = "Find text in files",
                               .description = "Lines that match a regular expression, with file and number.",
                               .arguments = grep_arguments,
                               .read_only = true,
                               .idempotent = true,
                               .gives_result = true,
                               .sessions = true,
                               .work = grep_work};
