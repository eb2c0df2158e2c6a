/*
 * Conversations of a project from one of OpenCode's databases to another, which holds those of all projects and more than conversations
 * (permissions, commands, what may be reverted). Two processes do it: one reads a database, perhaps a box's, and writes rows into a pipe; the
 * other one reads that pipe and has no other access to what a box wrote. It takes rows of this project alone, in columns and with members
 * that are named here, adds what is not there yet, and changes of a session only its title and time. One transaction: all, or nothing.
 */
#include "sqlite/carry.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "sqlite/database.h"
#include "sys/fd.h"

enum { COLUMNS_MAX = 12, TEXT_MAX = 16 << 20, ID_MAX = 80, SCHEMA = 64, MIGRATION = 65, END = 99 };

struct carried_table {
    const char *name, *where; /* rows of the directory ?1 */
    const char *columns[COLUMNS_MAX];
    const char *insert; /* ?1 ...: the columns, in this order; ?50: the directory */
};

#define OF_DIRECTORY "(directory = ?1 OR substr(directory, 1, length(?1) + 1) = ?1 || '/')"
#define THERE        "(s.directory = ?50 OR substr(s.directory, 1, length(?50) + 1) = ?50 || '/')"
#define M(name)      "'" name "', json_extract(?5, '$." name "')"
#define P(name)      "'" name "', json_extract(?6, '$." name "')"

/* What of a row is taken, and how. Clauses and members have a line of their own, which clang-format cannot do with macros in strings. */
/* clang-format off */
static const struct carried_table carried[] = {
    {"project", "id IN (SELECT project_id FROM session WHERE " OF_DIRECTORY ")",
     {"id", "vcs", "time_created", "time_updated"},
     "INSERT INTO project (id, worktree, vcs, time_created, time_updated, sandboxes) VALUES "
     "(?1, CASE ?1 WHEN 'global' THEN '/' ELSE ?50 END, CASE ?2 WHEN 'git' THEN 'git' END, ?3, ?4, '[]') "
     "ON CONFLICT DO NOTHING"},
    {"session", OF_DIRECTORY,
     {"id", "project_id", "parent_id", "slug", "directory", "title", "version", "time_created", "time_updated", "agent", "model"},
     "INSERT INTO session (id, project_id, parent_id, slug, directory, title, version, time_created, time_updated, agent, model) "
     "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, "
     "CASE WHEN json_valid(?11) THEN json_patch('{}', json_object("
     "'id', json_extract(?11, '$.id'), "
     "'providerID', json_extract(?11, '$.providerID'), "
     "'variant', json_extract(?11, '$.variant'))) END) "
     "ON CONFLICT (id) DO UPDATE SET title = excluded.title, time_updated = excluded.time_updated "
     "WHERE excluded.time_updated > session.time_updated "
     "AND session.project_id = excluded.project_id AND session.directory = excluded.directory"},
    {"message", "session_id IN (SELECT id FROM session WHERE " OF_DIRECTORY ")",
     {"id", "session_id", "time_created", "time_updated", "data"},
     "INSERT INTO message (id, session_id, time_created, time_updated, data) SELECT ?1, ?2, ?3, ?4, json_patch('{}', "
     "CASE json_extract(?5, '$.role') WHEN 'user' THEN json_object("
     M("role") ", " M("time") ", " M("agent") ", " M("model") ") "
     "ELSE json_object("
     M("role") ", " M("parentID") ", " M("mode") ", " M("agent") ", "
     "'path', json_object('cwd', ?50, 'root', ?50), "
     M("cost") ", " M("tokens") ", " M("modelID") ", " M("providerID") ", " M("variant") ", " M("time") ", " M("finish") ", " M("error") ", "
     "'summary', CASE json_type(?5, '$.summary') WHEN 'true' THEN json('true') END) END) "
     "WHERE json_valid(?5) AND (json_extract(?5, '$.role') = 'user' "
     "OR (json_extract(?5, '$.role') = 'assistant' AND json_extract(?5, '$.time.completed') > 0)) "
     "AND EXISTS (SELECT 1 FROM session s WHERE s.id = ?2 AND " THERE ") "
     "ON CONFLICT DO NOTHING"},
    {"part", "session_id IN (SELECT id FROM session WHERE " OF_DIRECTORY ")",
     {"id", "message_id", "session_id", "time_created", "time_updated", "data"},
     "INSERT INTO part (id, message_id, session_id, time_created, time_updated, data) SELECT ?1, ?2, ?3, ?4, ?5, json_patch('{}', "
     "CASE json_extract(?6, '$.type') WHEN 'tool' THEN json_object("
     P("type") ", " P("callID") ", " P("tool") ", "
     "'state', json_object("
     "'status', json_extract(?6, '$.state.status'), "
     "'input', json_extract(?6, '$.state.input'), "
     "'output', json_extract(?6, '$.state.output'), "
     "'title', json_extract(?6, '$.state.title'), "
     "'error', json_extract(?6, '$.state.error'), "
     "'metadata', json('{}'), "
     "'time', json_extract(?6, '$.state.time'))) "
     "ELSE json_object("
     P("type") ", " P("text") ", " P("time") ", " P("reason") ", " P("cost") ", " P("tokens") ", "
     "'auto', CASE json_type(?6, '$.auto') WHEN 'true' THEN json('true') WHEN 'false' THEN json('false') END, "
     "'synthetic', CASE json_type(?6, '$.synthetic') WHEN 'true' THEN json('true') END) END) "
     "WHERE json_valid(?6) AND "
     "(json_extract(?6, '$.type') IN ('text', 'reasoning', 'step-start', 'step-finish', 'compaction') "
     "OR (json_extract(?6, '$.type') = 'tool' AND json_extract(?6, '$.state.status') IN ('completed', 'error'))) "
     "AND EXISTS (SELECT 1 FROM message m JOIN session s ON s.id = m.session_id WHERE m.id = ?2 AND s.id = ?3 AND " THERE ") "
     "ON CONFLICT DO NOTHING"}};
/* clang-format on */
enum { TABLES = sizeof carried / sizeof *carried };

/* What says which changes its schema has had: with the schema it belongs to a new database. */
static const char *const migrations[] = {"migration", "__drizzle_migrations", "data_migration"};

struct carry_reading {
    const struct carry_ask *ask;
    struct err *e;
};

static int code_no(int code)
{
    return code == SQLITE_OK || code == SQLITE_DONE || code == SQLITE_ROW ? 0 : code == SQLITE_BUSY ? -EBUSY : -EIO;
}

/* ---- the pipe ---- */

static int get_bytes(int fd, void *bytes, size_t n)
{
    for (char *at = bytes; n;) {
        long got = sys_read(fd, at, n);
        if (got <= 0)
            return got < 0 ? (int)got : -EPIPE;
        at += got;
        n -= (size_t)got;
    }
    return 0;
}

/* A kind, the number of values, and of each its type and what it is. */
static int put_row(int fd, unsigned char kind, sqlite3_stmt *row)
{
    const unsigned char head[2] = {kind, (unsigned char)sqlite3_column_count(row)};
    int no = sys_write_all(fd, head, sizeof head);
    for (int i = 0; no == 0 && i < head[1]; i++) {
        const unsigned char type = (unsigned char)sqlite3_column_type(row, i);
        const int64_t number = sqlite3_column_int64(row, i);
        no = sys_write_all(fd, &type, 1);
        if (no == 0 && type == SQLITE_INTEGER)
            no = sys_write_all(fd, &number, sizeof number);
        if (no < 0 || type != SQLITE_TEXT)
            continue;
        const char *text = (const char *)sqlite3_column_text(row, i);
        const uint32_t n = (uint32_t)sqlite3_column_bytes(row, i);
        no = n > TEXT_MAX ? -EFBIG : sys_write_all(fd, &n, sizeof n);
        if (no == 0)
            no = sys_write_all(fd, text, n);
    }
    return no;
}

struct carried_value {
    unsigned char type;
    int64_t number;
    char *text;
    uint32_t n;
};
struct row {
    unsigned char kind, n;
    struct carried_value values[COLUMNS_MAX];
};

static void row_free(struct row *r)
{
    for (int i = 0; i < COLUMNS_MAX; i++)
        free(r->values[i].text);
    *r = (struct row){0};
}

static int get_row(int fd, struct row *r)
{
    unsigned char head[2];
    int no = get_bytes(fd, head, sizeof head);
    *r = (struct row){.kind = head[0], .n = head[1]};
    if (no == 0 && r->n > COLUMNS_MAX)
        return -EINVAL;
    for (int i = 0; no == 0 && i < r->n; i++) {
        struct carried_value *v = &r->values[i];
        no = get_bytes(fd, &v->type, 1);
        if (no == 0 && v->type == SQLITE_INTEGER)
            no = get_bytes(fd, &v->number, sizeof v->number);
        if (no < 0 || v->type != SQLITE_TEXT)
            continue;
        no = get_bytes(fd, &v->n, sizeof v->n);
        if (no == 0 && v->n > TEXT_MAX)
            no = -EINVAL;
        v->text = no < 0 ? NULL : malloc((size_t)v->n + 1);
        if (no == 0)
            no = v->text ? get_bytes(fd, v->text, v->n) : -ENOMEM;
        if (no == 0)
            v->text[v->n] = 0;
    }
    return no;
}

/* ---- who reads ---- */

static int put_rows(sqlite3 *db, const struct carry_reading *c, unsigned char kind, const char *sql)
{
    sqlite3_stmt *s = NULL;
    int no = 0, code = sqlite3_prepare_v2(db, sql, -1, &s, NULL);
    if (code == SQLITE_OK && sqlite3_bind_parameter_count(s))
        code = sqlite3_bind_text(s, 1, c->ask->workspace, -1, SQLITE_STATIC);
    while (code == SQLITE_OK && no == 0 && (code = sqlite3_step(s)) == SQLITE_ROW) {
        no = put_row(c->ask->stream, kind, s);
        code = SQLITE_OK;
    }
    if (code_no(code) < 0)
        no = database_say(c->e, db, code, "the sessions cannot be read");
    (void)sqlite3_finalize(s);
    return no;
}

static int put_table(sqlite3 *db, const struct carry_reading *c, unsigned char kind)
{
    char sql[2048];
    size_t n = (size_t)snprintf(sql, sizeof sql, "SELECT ");
    bool there = false;
    int code = database_ordinary(db, carried[kind].name, &there); /* and no view, whose text may be a box's */
    if (code != SQLITE_OK || !there)
        return code != SQLITE_OK ? database_say(c->e, db, code, "the sessions cannot be read") : 0;
    for (size_t i = 0; i < COLUMNS_MAX && carried[kind].columns[i]; i++)
        n += (size_t)snprintf(sql + n, sizeof sql - n, "%s%s", i ? ", " : "", carried[kind].columns[i]);
    (void)snprintf(sql + n, sizeof sql - n, " FROM main.%s WHERE %s", carried[kind].name, carried[kind].where);
    return put_rows(db, c, kind, sql);
}

/* The host's own, for a box that has no database yet. */
static int put_schema(sqlite3 *db, const struct carry_reading *c)
{
    char sql[256];
    int no = put_rows(db, c, SCHEMA,
                      "SELECT sql FROM sqlite_schema WHERE type IN ('table', 'index') AND sql IS NOT NULL AND "
                      "name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY type DESC");
    for (size_t i = 0; no == 0 && i < sizeof migrations / sizeof *migrations; i++) {
        bool there = false;
        if (database_ordinary(db, migrations[i], &there) != SQLITE_OK || !there)
            continue;
        (void)snprintf(sql, sizeof sql, "SELECT * FROM main.%s", migrations[i]);
        no = put_rows(db, c, (unsigned char)(MIGRATION + i), sql);
    }
    return no;
}

static int put_all(sqlite3 *db, void *ctx, struct err *e)
{
    struct carry_reading *c = ctx;
    c->e = e;
    static const unsigned char end[2] = {END, 0};
    int code = sqlite3_exec(db, "BEGIN", NULL, NULL, NULL), no = 0;
    if (code != SQLITE_OK)
        return database_say(e, db, code, "the sessions cannot be read");
    if (c->ask->with_schema)
        no = put_schema(db, c);
    for (unsigned char i = 0; no == 0 && i < TABLES; i++)
        no = put_table(db, c, i);
    (void)sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    return no < 0 ? no : sys_write_all(c->ask->stream, end, sizeof end);
}

int carry_read(const struct carry_ask *ask, struct err *e)
{
    char path[300];
    struct carry_reading c = {ask, e};
    sqlite3 *db = NULL;
    int no = database_begin(ask->host, ask->session, ask->name, e);
    if (no < 0 || ask->host >= 0)
        return no < 0 ? no : database_with_host(put_all, &c, e);
    snprintf(path, sizeof path, "file:/s/%s", ask->name);
    no = database_connect(path, SQLITE_OPEN_READWRITE, &db, e, "the box's database");
    if (no == 0)
        no = put_all(db, &c, e);
    (void)sqlite3_close(db);
    return no;
}

/* ---- who writes ---- */

static bool is_ident(const struct carried_value *v)
{
    return v->type == SQLITE_TEXT && v->n && v->n <= ID_MAX &&
           strspn(v->text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-") == v->n;
}

static bool is_in(const char *path, const char *above)
{
    const size_t n = strlen(above), all = strlen(path);
    return strncmp(path, above, n) == 0 && (!path[n] || path[n] == '/') && !strstr(path, "/../") &&
           !(all > 2 && strcmp(path + all - 3, "/..") == 0);
}

/* Names of rows are words, and a session's directory lies in the project. */
static bool fits(const struct row *r, const char *workspace)
{
    for (int i = 0; carried[r->kind].columns[i]; i++) {
        const char *column = carried[r->kind].columns[i];
        const struct carried_value *v = &r->values[i];
        const size_t n = strlen(column);
        const bool ident = strcmp(column, "id") == 0 || (n > 3 && strcmp(column + n - 3, "_id") == 0);
        if (i >= r->n || (ident && !is_ident(v) && !(strcmp(column, "parent_id") == 0 && v->type == SQLITE_NULL)) ||
            (v->type == SQLITE_TEXT && strlen(v->text) != v->n) ||
            (strcmp(column, "directory") == 0 && (v->type != SQLITE_TEXT || !is_in(v->text, workspace))))
            return false;
    }
    return true;
}

static int bind_row(sqlite3_stmt *s, const struct row *r)
{
    int code = SQLITE_OK;
    for (int i = 0; i < r->n && code == SQLITE_OK; i++) {
        const struct carried_value *v = &r->values[i];
        code = v->type == SQLITE_TEXT      ? sqlite3_bind_text(s, i + 1, v->text, (int)v->n, SQLITE_STATIC)
               : v->type == SQLITE_INTEGER ? sqlite3_bind_int64(s, i + 1, v->number)
                                           : sqlite3_bind_null(s, i + 1);
    }
    return code;
}

static int take_row(sqlite3 *db, const struct carry_ask *ask, sqlite3_stmt *const *inserts, const struct row *r)
{
    if (r->kind == SCHEMA && ask->with_schema)
        return r->n == 1 && r->values[0].text ? sqlite3_exec(db, r->values[0].text, NULL, NULL, NULL) : SQLITE_MISMATCH;
    if (r->kind >= MIGRATION && r->kind < MIGRATION + sizeof migrations / sizeof *migrations && ask->with_schema) {
        char sql[160];
        sqlite3_stmt *s = NULL;
        size_t n = (size_t)snprintf(sql, sizeof sql, "INSERT INTO main.%s VALUES (", migrations[r->kind - MIGRATION]);
        for (int i = 0; i < r->n; i++)
            n += (size_t)snprintf(sql + n, sizeof sql - n, "%s", i ? ", ?" : "?");
        (void)snprintf(sql + n, sizeof sql - n, ")");
        int code = sqlite3_prepare_v2(db, sql, -1, &s, NULL);
        if (code == SQLITE_OK)
            code = bind_row(s, r);
        if (code == SQLITE_OK)
            code = sqlite3_step(s);
        (void)sqlite3_finalize(s);
        return code == SQLITE_DONE ? SQLITE_OK : code;
    }
    if (r->kind >= TABLES)
        return SQLITE_MISMATCH;
    if (!fits(r, ask->workspace))
        return SQLITE_OK; /* none of ours */
    sqlite3_stmt *s = inserts[r->kind];
    int code = bind_row(s, r);
    if (code == SQLITE_OK && sqlite3_bind_parameter_index(s, "?50"))
        code = sqlite3_bind_text(s, 50, ask->workspace, -1, SQLITE_STATIC);
    if (code == SQLITE_OK)
        code = sqlite3_step(s);
    (void)sqlite3_reset(s);
    (void)sqlite3_clear_bindings(s);
    /* A text that is no JSON, or one without what a row must have: that row is not taken. */
    return code == SQLITE_DONE || code == SQLITE_ERROR || (code & 0xff) == SQLITE_CONSTRAINT ? SQLITE_OK : code;
}

static int take_all(sqlite3 *db, const struct carry_ask *ask, struct err *e)
{
    sqlite3_stmt *inserts[TABLES] = {0};
    struct row r = {0};
    int no = 0, code = sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
    bool ready = false;
    while (code == SQLITE_OK && (no = get_row(ask->stream, &r)) == 0 && r.kind != END) {
        for (int i = 0; r.kind < TABLES && !ready && code == SQLITE_OK && i < TABLES; i++)
            code = sqlite3_prepare_v2(db, carried[i].insert, -1, &inserts[i], NULL);
        ready |= r.kind < TABLES;
        if (code == SQLITE_OK)
            code = take_row(db, ask, inserts, &r);
        row_free(&r);
    }
    row_free(&r);
    for (int i = 0; i < TABLES; i++)
        (void)sqlite3_finalize(inserts[i]);
    if (code == SQLITE_OK && no == 0)
        code = sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
    if (code != SQLITE_OK)
        no = database_say(e, db, code, "the sessions cannot be written");
    else if (no < 0)
        no = err_sys(e, ERR_SYSTEM, -no, "%s: the sessions cannot be read", ask->name);
    if (no < 0)
        (void)sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    return no;
}

int carry_write(const struct carry_ask *ask, struct err *e)
{
    char path[300];
    sqlite3 *db = NULL;
    int no = database_begin(-1, ask->session, ask->name, e);
    snprintf(path, sizeof path, "file:/s/%s", ask->name);
    if (no == 0)
        no = database_connect(path, SQLITE_OPEN_READWRITE | (ask->with_schema ? SQLITE_OPEN_CREATE : 0), &db, e,
                              "the database that gets the sessions");
    if (no == 0)
        no = take_all(db, ask, e);
    (void)sqlite3_close(db);
    if (no < 0 && ask->with_schema)
        database_drop();
    return no;
}
