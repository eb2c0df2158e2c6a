/*
 * Lists and reads resources: audit logs and files of sessions. A client sees those of its own sessions only.
 */
#include "mcp/tools/tool_resource.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/fd.h"
#include "mcp/tools/directory.h"
#include "mcp/workers/owner.h"
#include "mcp/protocol/mime.h"
#include "mcp/protocol/resource.h"
#include "mcp/protocol/rpc.h"
#include "mcp/tools/tool_file.h"
#include "mcp/tools/tool_session.h"
#include "mcp/tools/wishes.h"

#define MAX_EVENTS         (1u << 20) /* bytes of the audit log that are told: the newest */
#define PAGE               500
#define MAX_LISTED_DENIALS 256

static bool gone(struct mcp_job *j, const char *uri)
{
    auto_buf struct buf safe = BUF(1u << 16);
    words_of(&safe, (struct str){uri, strnlen(uri, 400)});
    job_fault(j, RPC_NO_RESOURCE, "there is no resource %s", buf_cstr(&safe));
    return false;
}

/* ---- the audit log */

/* All that the log has, as a file in memory; its bytes, or MAP_FAILED. */
static char *whole_log(size_t *ret_n, struct pinfold_error *error)
{
    struct stat st;
    auto_fd int fd = memfd_create("audit", MFD_CLOEXEC);
    *ret_n = 0;
    if (fd < 0 || pinfold_log(fd, 0, error) < 0 || fstat(fd, &st) < 0)
        return MAP_FAILED;
    *ret_n = (size_t)st.st_size;
    return st.st_size ? mmap(NULL, *ret_n, PROT_READ, MAP_PRIVATE, fd, 0) : NULL;
}

/* Whether the line is an event of that session, and then how a model may know it: with remedies of its own, without the file of the rule. */
static json_t *event_of(const struct mcp_job *j, struct str line, const char *session, struct str scope)
{
    char why[128];
    if (!memmem(line.p, line.n, scope.p, scope.n))
        return NULL;
    json_t *event = value_read(line, why, sizeof why);
    if (!str_is(scope, value_text(event, "scope", NULL)) || !same(value_text(event, "session", NULL), session)) {
        value_free(&event);
        return NULL;
    }
    const char *remedy = value_text(event, "remedy", NULL);
    auto_buf struct buf words = BUF(1u << 16);
    if (remedy) {
        wishes_remedy(j, remedy, value_text(event, "origin", NULL), &words);
        (void)json_object_set_new(event, "remedy", json_string(buf_cstr(&words)));
    }
    (void)json_object_del(event, "origin");
    (void)json_object_del(event, "scope");
    return event;
}

/* The newest events of a session, the oldest of them first; their number. */
static size_t put_events(const struct mcp_job *j, struct buf *out, const char *session, struct str scope,
                         struct pinfold_error *error)
{
    size_t n, found = 0;
    char *log = whole_log(&n, error);

    if (log == MAP_FAILED)
        return 0;
    for (struct str rest = {log, n}; rest.n;) {
        struct str line = str_until(&rest, '\n');
        auto_value json_t *event = event_of(j, line, session, scope);
        struct json w = JSON(out);
        if (!event)
            continue;
        found++;
        value_write(&w, NULL, event);
        buf_char(out, '\n');
        if (out->n > 2 * MAX_EVENTS) { /* the older half goes, to the end of a line */
            const char *cut = memchr(out->p + out->n - MAX_EVENTS, '\n', MAX_EVENTS);
            size_t from = cut ? (size_t)(cut + 1 - out->p) : out->n;
            memmove(out->p, out->p + from, out->n - from);
            out->n -= from;
        }
    }
    if (log)
        (void)munmap(log, n);
    return found;
}

static bool audit_of(const struct mcp_job *j, const char *session, struct buf *out)
{
    struct pinfold_error error = {0};
    auto_buf struct buf scope = BUF(1024);
    owner_scope(&scope, j->place->instance, j->client);
    return put_events(j, out, session, buf_view(&scope), &error) > 0;
}

json_t *session_denials(const struct mcp_job *j, const char *session, const char *since)
{
    auto_buf struct buf scope = BUF(1024);
    struct pinfold_error error = {0};
    json_t *list = json_pack("[]");
    size_t n;
    char *log = whole_log(&n, &error);

    if (log == MAP_FAILED)
        return list;
    owner_scope(&scope, j->place->instance, j->client);
    for (struct str rest = {log, n}; rest.n && json_array_size(list) < MAX_LISTED_DENIALS;) {
        auto_value json_t *event = event_of(j, str_until(&rest, '\n'), session, buf_view(&scope));
        const char *kind = value_text(event, "kind", NULL), *when = value_text(event, "t", NULL);
        if (kind && when && strcmp(when, since) >= 0 &&
            (same(kind, "file") || same(kind, "socket") || same(kind, "network")))
            (void)json_array_append(list, event);
    }
    if (log)
        (void)munmap(log, n);
    return list;
}

/* Whether there is a session of that name, also one that has ended. */
static bool is_session(const struct mcp_job *j, const char *name)
{
    struct pinfold_error error = {0};
    auto_buf struct buf scope = BUF(1024);
    auto_report struct pinfold_report *report = NULL;

    owner_scope(&scope, j->place->instance, j->client);
    struct pinfold_session_options o = {.size = sizeof o, .name = name, .scope = buf_cstr(&scope)};
    return pinfold_session_list_report(&o, &report, &error) == 0;
}

/* ---- resources/list */

struct listing {
    struct mcp_job *job;
    struct arena *mem;
    struct json w;
    size_t at, from; /* of all resources; the first to tell */
};

/* Begins one resource; false: it is of another page. */
static bool entry(struct listing *l, const char *session, const char *path, const char *name, const char *title)
{
    auto_buf struct buf uri = BUF(1u << 16);
    size_t at = l->at++;

    if (at < l->from || at >= l->from + PAGE)
        return false;
    resource_uri(&uri, session, path);
    json_object(&l->w, NULL);
    json_str(&l->w, "uri", buf_view(&uri));
    json_text(&l->w, "name", name);
    json_text(&l->w, "title", title);
    return true;
}

static void list_files(struct listing *l, const char *name)
{
    struct pinfold_error error = {0};
    bool own;
    struct pinfold_session *s = session_visit(l->job, name, &own);
    const char *cwd = s ? session_cwd_of(l->job, name, l->mem) : NULL;
    auto_report struct pinfold_report *list = NULL;

    int no = cwd ? pinfold_file_list_report(s, cwd, &list, &error) : -ENOENT;
    if (own)
        pinfold_session_free(s);
    if (no < 0)
        return;
    if (entry(l, name, cwd, cwd, arena_printf(l->mem, "%s: where commands begin", name))) {
        json_text(&l->w, "mimeType", RESOURCE_DIRECTORY_TYPE);
        json_object_end(&l->w);
    }
    EACH_ANSWER(e, pinfold_value_get(pinfold_report_value(list), "entries"))
    {
        const char *file = answer_text(e, "name"), *type = answer_text(e, "type");
        bool directory = same(type, "directory");
        if (!file || !(directory || same(type, "file")))
            continue;
        const char *path = arena_printf(l->mem, "%s/%s", same(cwd, "/") ? "" : cwd, file);
        if (!path || !entry(l, name, path, file, arena_printf(l->mem, "%s: %s", name, file)))
            continue;
        if (directory)
            json_text(&l->w, "mimeType", RESOURCE_DIRECTORY_TYPE);
        else
            json_int(&l->w, "size", answer_number(e, "size"));
        if (!directory && mime_of_name(file))
            json_text(&l->w, "mimeType", mime_of_name(file));
        json_object_end(&l->w);
    }
}

static void list_session(struct listing *l, const char *name)
{
    if (entry(l, name, NULL, "audit", arena_printf(l->mem, "%s: its denials", name))) {
        json_text(&l->w, "mimeType", RESOURCE_AUDIT_TYPE);
        json_object_end(&l->w);
    }
    list_files(l, name);
    /* A session that cannot be entered now has no files to be told. */
    l->job->failed = false;
    l->job->fault = 0;
    buf_free(&l->job->text);
}

static void resource_list_work(struct mcp_job *j)
{
    auto_arena struct arena *mem = arena_new(64u << 20);
    auto_buf struct buf scope = BUF(1024), out = BUF(MCP_MAX_ANSWER);
    struct listing l = {.job = j, .mem = mem, .w = JSON(&out)};
    struct pinfold_error error = {0};
    auto_report struct pinfold_report *report = NULL;
    char cursor[32];

    owner_scope(&scope, j->place->instance, j->client);
    struct pinfold_session_options o = {.size = sizeof o, .scope = buf_cstr(&scope)};
    l.from = (size_t)json_integer_value(json_object_get(j->arguments, "from"));
    if (!mem || pinfold_session_list_report(&o, &report, &error) < 0) {
        job_fault(j, RPC_INTERNAL, "%s", error.text[0] ? error.text : "out of memory");
        return;
    }
    json_object(&l.w, NULL);
    json_array(&l.w, "resources");
    EACH_ANSWER(one, pinfold_value_get(pinfold_report_value(report), "sessions"))
    {
        const char *name = answer_text(one, "name");
        if (name)
            list_session(&l, name);
    }
    json_array_end(&l.w);
    if (l.at > l.from + PAGE) {
        snprintf(cursor, sizeof cursor, "%zu", l.from + PAGE);
        json_text(&l.w, "nextCursor", cursor);
    }
    json_object_end(&l.w);
    if (l.from && l.from >= l.at)
        job_fault(j, RPC_PARAMS, "there is no such cursor");
    else
        job_bare(j, &out);
}

/* ---- resources/read */

static void contents(struct mcp_job *j, const char *uri, const char *type, struct str bytes)
{
    auto_buf struct buf out = BUF(MCP_MAX_ANSWER);
    struct json w = JSON(&out);
    bool text = utf8_is_text(bytes);

    json_object(&w, NULL);
    json_array(&w, "contents");
    json_object(&w, NULL);
    json_text(&w, "uri", uri);
    json_text(&w, "mimeType", type);
    if (text)
        json_str(&w, "text", bytes);
    else
        json_base64(&w, "blob", bytes);
    json_object_end(&w);
    json_array_end(&w);
    json_object_end(&w);
    job_bare(j, &out);
}

static void read_audit(struct mcp_job *j, const char *uri, const struct resource *r)
{
    auto_buf struct buf out = BUF(4 * MAX_EVENTS);
    if (audit_of(j, r->session, &out) || is_session(j, r->session))
        contents(j, uri, RESOURCE_AUDIT_TYPE, buf_view(&out));
    else
        (void)gone(j, uri);
}

static void read_file(struct mcp_job *j, const char *uri, const struct resource *r)
{
    struct pinfold_error error = {0};
    char *bytes = NULL;
    size_t n = 0;
    uint64_t size = 0;
    struct pinfold_session *s = session_named(j, r->session);

    if (!s) { /* the words are there, as for a tool */
        j->fault = RPC_NO_RESOURCE;
        return;
    }
    int no = pinfold_file_read(s, r->path, 0, MAX_FILE, &bytes, &n, &size, &error);
    if (no == -EISDIR) {
        no = pinfold_file_list(s, r->path, &bytes, &error);
        if (no == 0)
            contents(j, uri, RESOURCE_DIRECTORY_TYPE, str_of(bytes));
    } else if (no == 0 && n < size) {
        job_fault(j, RPC_INTERNAL, "the file has %llu bytes; a resource has at most %u: read it in pieces with 'bash'",
                  (unsigned long long)size, MAX_FILE);
    } else if (no == 0) {
        contents(j, uri, mime_of(r->path, (struct str){bytes, n}), (struct str){bytes, n});
    }
    if (no == -ESTALE)
        session_forget(j, r->session);
    if (no == -ENOENT || no == -ENOTDIR)
        (void)gone(j, uri);
    else if (no < 0)
        job_fault(j, RPC_INTERNAL, "%s", error.text);
    free(bytes);
}

static void resource_read_work(struct mcp_job *j)
{
    auto_arena struct arena *mem = arena_new(1u << 20);
    const char *uri = value_text(j->arguments, "uri", NULL);
    struct resource r;

    if (!mem || !uri || !resource_parse(uri, mem, &r))
        (void)gone(j, uri ? uri : "");
    else if (r.path)
        read_file(j, uri, &r);
    else
        read_audit(j, uri, &r);
}

/* ---- completion/complete */

#define MAX_COMPLETED 100 /* MCP's most */

struct completing {
    struct json w;
    const char *typed;
    size_t n;
};

static void offer(struct completing *c, const char *value)
{
    if (value && strncmp(value, c->typed, strlen(c->typed)) == 0 && c->n++ < MAX_COMPLETED)
        json_text(&c->w, NULL, value);
}

static void offer_sessions(const struct mcp_job *j, struct completing *c)
{
    auto_buf struct buf scope = BUF(1024);
    struct pinfold_error error = {0};
    auto_report struct pinfold_report *report = NULL;

    owner_scope(&scope, j->place->instance, j->client);
    struct pinfold_session_options o = {.size = sizeof o, .scope = buf_cstr(&scope)};
    if (pinfold_session_list_report(&o, &report, &error) < 0)
        return;
    EACH_ANSWER(one, pinfold_value_get(pinfold_report_value(report), "sessions"))
    {
        offer(c, answer_text(one, "name"));
    }
}

/* Entries of the directory that was typed so far; directories end in a slash. */
static void offer_paths(const struct mcp_job *j, const char *session, struct completing *c, struct arena *mem)
{
    const char *slash = strrchr(c->typed, '/');
    struct pinfold_error error = {0};
    bool own;
    struct pinfold_session *s = slash ? session_visit(j, session, &own) : NULL;
    auto_report struct pinfold_report *list = NULL;
    const char *dir = s ? arena_printf(mem, "%.*s", slash == c->typed ? 1 : (int)(slash - c->typed), c->typed) : NULL;

    int no = dir ? pinfold_file_list_report(s, dir, &list, &error) : -ENOENT;
    if (s && own)
        pinfold_session_free(s);
    if (no < 0)
        return;
    EACH_ANSWER(e, pinfold_value_get(pinfold_report_value(list), "entries"))
    {
        const char *name = answer_text(e, "name");
        bool directory = same(answer_text(e, "type"), "directory");
        if (name)
            offer(c, arena_printf(mem, "%.*s/%s%s", (int)(slash - c->typed), c->typed, name, directory ? "/" : ""));
    }
}

static void resource_complete_work(struct mcp_job *j)
{
    auto_arena struct arena *mem = arena_new(16u << 20);
    auto_buf struct buf out = BUF(16u << 20);
    struct completing c = {.w = JSON(&out), .typed = value_text(j->arguments, "value", NULL)};
    const char *session = value_text(j->arguments, "session", NULL);

    if (!mem || !c.typed)
        return;
    json_object(&c.w, NULL);
    json_object(&c.w, "completion");
    json_array(&c.w, "values");
    if (same(value_text(j->arguments, "name", NULL), "session"))
        offer_sessions(j, &c);
    else
        offer_paths(j, session ? session : "default", &c, mem);
    json_array_end(&c.w);
    json_uint(&c.w, "total", c.n);
    json_bool(&c.w, "hasMore", c.n > MAX_COMPLETED);
    json_object_end(&c.w);
    json_object_end(&c.w);
    job_bare(j, &out);
}

/* ---- resources/look: what a watcher compares */

/* The log of all sessions as it stands: while it does not change, nothing of one of them does. */
static const char *log_state(struct arena *mem)
{
    struct stat st;
    char *path = directory_audit();
    bool there = path && stat(path, &st) == 0;
    free(path);
    return there ? arena_printf(mem, "%llu.%lld", (unsigned long long)st.st_ino, (long long)st.st_size) : "none";
}

static const char *look_audit(const struct mcp_job *j, const struct resource *r, const char *before, struct arena *mem)
{
    auto_buf struct buf out = BUF(4 * MAX_EVENTS), scope = BUF(1024);
    struct pinfold_error error = {0};
    const char *state = log_state(mem);
    size_t n = state ? strlen(state) : 0;

    if (!state || (strncmp(before, state, n) == 0 && before[n] == ' '))
        return before;
    owner_scope(&scope, j->place->instance, j->client);
    n = put_events(j, &out, r->session, buf_view(&scope), &error);
    return n || is_session(j, r->session) ? arena_printf(mem, "%s %zu", state, n) : "";
}

static const char *look_file(struct mcp_job *j, const struct resource *r, struct arena *mem)
{
    struct pinfold_error error = {0};
    bool own = false, start = json_is_true(json_object_get(j->arguments, "start"));
    struct pinfold_session *s = start ? session_named(j, r->session) : session_visit(j, r->session, &own);
    auto_report struct pinfold_report *where = NULL;

    int no = s ? pinfold_file_where_report(s, r->path, &where, &error) : -ENOENT;
    if (own)
        pinfold_session_free(s);
    if (no == -ESTALE)
        session_forget(j, r->session);
    if (no < 0)
        return "";
    const struct pinfold_value *at = pinfold_report_value(where);
    if (same(answer_text(at, "type"), "none"))
        return "";
    return arena_printf(mem, "%lld.%lld.%lld.%lld", answer_number(at, "device"), answer_number(at, "inode"),
                        answer_number(at, "size"), answer_number(at, "modified_ns"));
}

static const char *look_one(struct mcp_job *j, const char *uri, const char *before, struct arena *mem)
{
    struct resource r;
    if (!resource_parse(uri, mem, &r))
        return "";
    return r.path ? look_file(j, &r, mem) : look_audit(j, &r, before ? before : "", mem);
}

static void resource_look_work(struct mcp_job *j)
{
    auto_arena struct arena *mem = arena_new(16u << 20);
    auto_buf struct buf out = BUF(16u << 20);
    struct json w = JSON(&out);
    const json_t *uris = json_object_get(j->arguments, "uris"), *before = json_object_get(j->arguments, "before");

    if (!mem)
        return;
    json_object(&w, NULL);
    json_object(&w, "stamps");
    for (size_t i = 0; i < json_array_size(uris); i++) {
        const char *uri = json_string_value(json_array_get(uris, i));
        const char *stamp = look_one(j, uri, json_string_value(json_array_get(before, i)), mem);
        json_text(&w, uri, stamp ? stamp : "");
    }
    json_object_end(&w);
    json_object_end(&w);
    job_bare(j, &out);
}

static const struct tool_argument resource_list_arguments[] = {
    {"from", ARGUMENT_NUMBER, .min = 0, .max = INT64_MAX, .help = ""}, {0}};
static const struct tool_argument resource_read_arguments[] = {{"uri", ARGUMENT_TEXT, .required = true, .help = ""},
                                                               {0}};
static const struct tool_argument resource_look_arguments[] = {{"uris", ARGUMENT_TEXTS, .required = true, .help = ""},
                                                               {"before", ARGUMENT_TEXTS, .help = ""},
                                                               {"start", ARGUMENT_SWITCH, .help = ""},
                                                               {0}};

static const struct tool_argument resource_complete_arguments[] = {
    {"name", ARGUMENT_TEXT, .required = true, .help = ""},
    {"value", ARGUMENT_TEXT, .required = true, .help = ""},
    {"session", ARGUMENT_TEXT, .help = ""},
    {0}};

const struct tool tool_resource_complete = {
    .name = "resources/complete", .arguments = resource_complete_arguments, .work = resource_complete_work};
const struct tool tool_resource_list = {
    .name = "resources/list", .arguments = resource_list_arguments, .work = resource_list_work};
const struct tool tool_resource_read = {
    .name = "resources/read", .arguments = resource_read_arguments, .sessions = true, .work = resource_read_work};
const struct tool tool_resource_look = {
    .name = "resources/look", .arguments = resource_look_arguments, .sessions = true, .work = resource_look_work};
