/*
 * An agent's SQLite database: copied whole once, then the tables of its login brought up to date. Runs in a process that
 * confine.c has confined.
 *
 * The session's database has been in the box's hands. SQLite opens files by path and obeys what it finds in them: a journal
 * may name another file to be removed, a link may lead anywhere, a schema may run code of the box's choosing. So its
 * system calls are replaced: it has two directories, /h and /s, by descriptor, and in them the database's own names,
 * never through a link; triggers, views, virtual tables and functions in schemas are off.
 *
 * The host's database is only read. While an agent of the host has it open in WAL mode its -wal and -shm files are there, and
 * SQLite joins in as a reader. When they are not, nobody writes by WAL; a database in WAL mode is then read as
 * immutable, and again when it changed meanwhile: SQLite would otherwise make these files in the host's directory.
 */
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "protocol/database.h"
#include "sqlite/database.h"
#include "sys/file.h"

enum { BUSY_MS = 10000, HEAP_MAX = 512 << 20, VALUE_MAX = 64 << 20, TRIES = 200 };

/* ---- what SQLite may open ---- */

static struct {
    int host, session;
    const char *name; /* of the database in both */
    const char *temp; /* a second one in the session's: the first copy */
} own;

static bool of_database(const char *name, const char *database)
{
    static const char *const tails[] = {"", "-wal", "-shm", "-journal"};
    size_t n = database ? strlen(database) : 0;
    if (!n || strncmp(name, database, n) != 0)
        return false;
    for (size_t i = 0; i < sizeof tails / sizeof *tails; i++)
        if (strcmp(name + n, tails[i]) == 0)
            return true;
    return false;
}

/* The directory and name that a path stands for, or -1. */
static int known(const char *path, const char **ret_name)
{
    bool host = strncmp(path, "/h/", 3) == 0;
    if (!host && strncmp(path, "/s/", 3) != 0)
        return -1;
    *ret_name = path + 3;
    if (!of_database(path + 3, own.name) && (host || !of_database(path + 3, own.temp)))
        return -1;
    return host ? own.host : own.session;
}

static int refuse(int no)
{
    errno = no;
    return -1;
}

static int own_open(const char *path, int flags, int mode)
{
    const char *name;
    int dir = known(path, &name);
    if (dir < 0)
        return refuse(EACCES);
    if (dir == own.host) { /* nothing is made there, and only the index of readers is written */
        flags &= ~(O_CREAT | O_EXCL | O_TRUNC);
        if ((flags & O_ACCMODE) != O_RDONLY && !(strlen(name) > 4 && strcmp(name + strlen(name) - 4, "-shm") == 0))
            flags = (flags & ~O_ACCMODE) | O_RDONLY;
    }
    int fd = sys_openat2(dir, name, (uint64_t)(unsigned)flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK,
                         flags & O_CREAT ? (unsigned)mode & 0600 : 0, RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH);
    struct stat st;
    if (fd < 0)
        return refuse(-fd);
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
        close(fd);
        return refuse(EACCES);
    }
    return fd;
}

static int own_directory(const char *path, int *ret)
{
    const char *name;
    int dir = known(path, &name);
    *ret = dir < 0 ? -1 : sys_openat2(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0, RESOLVE_BENEATH);
    return *ret < 0 ? SQLITE_CANTOPEN : SQLITE_OK;
}

static int own_access(const char *path, int mode)
{
    const char *name;
    int dir = known(path, &name);
    return dir < 0 ? refuse(ENOENT) : faccessat(dir, name, mode, 0);
}

static int own_stat(const char *path, struct stat *st)
{
    const char *name;
    int dir = known(path, &name);
    return dir < 0 ? refuse(ENOENT) : fstatat(dir, name, st, AT_SYMLINK_NOFOLLOW);
}

static int own_unlink(const char *path)
{
    const char *name;
    int dir = known(path, &name);
    return dir != own.session || dir < 0 ? refuse(EACCES) : unlinkat(dir, name, 0);
}

static char *own_getcwd(char *to, size_t n)
{
    (void)to;
    (void)n;
    errno = EACCES;
    return NULL;
}

static int own_mkdir(const char *path, mode_t mode)
{
    (void)path;
    (void)mode;
    return refuse(EACCES);
}

static int own_rmdir(const char *path)
{
    (void)path;
    return refuse(EACCES);
}

static ssize_t own_readlink(const char *path, char *to, size_t n)
{
    (void)path;
    (void)to;
    (void)n;
    return refuse(EACCES);
}

static bool calls_replace(void)
{
    const struct {
        const char *name;
        sqlite3_syscall_ptr call;
    } calls[] = {{"open", (sqlite3_syscall_ptr)own_open},     {"openDirectory", (sqlite3_syscall_ptr)own_directory},
                 {"access", (sqlite3_syscall_ptr)own_access}, {"stat", (sqlite3_syscall_ptr)own_stat},
                 {"lstat", (sqlite3_syscall_ptr)own_stat},    {"unlink", (sqlite3_syscall_ptr)own_unlink},
                 {"getcwd", (sqlite3_syscall_ptr)own_getcwd}, {"mkdir", (sqlite3_syscall_ptr)own_mkdir},
                 {"rmdir", (sqlite3_syscall_ptr)own_rmdir},   {"readlink", (sqlite3_syscall_ptr)own_readlink}};
    sqlite3_vfs *vfs = sqlite3_initialize() == SQLITE_OK ? sqlite3_vfs_find("unix") : NULL;
    if (!vfs || vfs->iVersion < 3)
        return false;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (vfs->xSetSystemCall(vfs, calls[i].name, calls[i].call) != SQLITE_OK)
            return false;
    sqlite3_soft_heap_limit64(HEAP_MAX);
    sqlite3_hard_heap_limit64(HEAP_MAX);
    return true;
}

/* ---- connections ---- */

int database_say(struct err *e, sqlite3 *db, int code, const char *what)
{
    int no = code == SQLITE_BUSY || code == SQLITE_LOCKED ? EBUSY
             : code == SQLITE_NOMEM                       ? ENOMEM
             : code == SQLITE_FULL                        ? ENOSPC
                                                          : EIO;
    (void)err_say(e, ERR_SYSTEM, "%s: %s: %s", own.name, what, db ? sqlite3_errmsg(db) : sqlite3_errstr(code));
    return -no;
}

static int run_sql(sqlite3 *db, const char *sql)
{
    return sqlite3_exec(db, sql, NULL, NULL, NULL);
}

static sqlite3 *harden(sqlite3 *db)
{
    (void)sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    (void)sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    (void)sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    (void)sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
    (void)sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_FKEY, 0, NULL);
    (void)sqlite3_limit(db, SQLITE_LIMIT_ATTACHED, 0);
    (void)sqlite3_limit(db, SQLITE_LIMIT_LENGTH, VALUE_MAX);
    (void)sqlite3_busy_timeout(db, BUSY_MS);
    (void)run_sql(db, "PRAGMA temp_store=MEMORY; PRAGMA mmap_size=0; PRAGMA cell_size_check=ON");
    return db;
}

int database_connect(const char *path, int flags, sqlite3 **ret, struct err *e, const char *what)
{
    sqlite3 *db = NULL;
    int code = sqlite3_open_v2(path, &db, flags | SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_URI, "unix");
    if (code == SQLITE_OK)
        code = run_sql(harden(db), "SELECT count(*) FROM sqlite_schema");
    if (code != SQLITE_OK) {
        int no = database_say(e, db, code, what);
        (void)sqlite3_close(db);
        return no;
    }
    *ret = db;
    return 0;
}

/* ---- the host's ---- */

struct seen {
    struct stat db;
    bool wal;
};

static int look(struct seen *s)
{
    char name[256];
    struct stat st;
    snprintf(name, sizeof name, "%s-wal", own.name);
    if (fstatat(own.host, own.name, &s->db, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    s->wal = fstatat(own.host, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
    return S_ISREG(s->db.st_mode) ? 0 : -EINVAL;
}

static bool unchanged(const struct seen *a, const struct seen *b)
{
    return !b->wal && a->db.st_ino == b->db.st_ino && a->db.st_size == b->db.st_size &&
           a->db.st_mtim.tv_sec == b->db.st_mtim.tv_sec && a->db.st_mtim.tv_nsec == b->db.st_mtim.tv_nsec;
}

/* Does `work` on a consistent view of the host's database. */
int database_with_host(int (*work)(sqlite3 *host, void *ctx, struct err *e), void *ctx, struct err *e)
{
    char path[300];
    int no = -EBUSY;
    for (int tries = 0; tries < TRIES; tries++) {
        struct seen before, after;
        sqlite3 *db = NULL;
        bool immutable = false;
        no = look(&before);
        if (no < 0)
            return no == -ENOENT ? no : err_sys(e, ERR_SYSTEM, -no, "%s", own.name);
        snprintf(path, sizeof path, "file:/h/%s", own.name);
        no = database_connect(path, SQLITE_OPEN_READONLY, &db, e, "the host's database");
        if (no < 0 && !before.wal) {
            immutable = true;
            snprintf(path, sizeof path, "file:/h/%s?immutable=1", own.name);
            no = database_connect(path, SQLITE_OPEN_READONLY, &db, e, "the host's database");
        }
        if (no == 0)
            no = work(db, ctx, e);
        (void)sqlite3_close(db);
        bool good = !immutable || (look(&after) == 0 && unchanged(&before, &after));
        if (no == 0 && good)
            return 0;
        if (no < 0 && no != -EBUSY && no != -EIO && good)
            return no;
        (void)usleep(50000); /* an agent of the host just began, or ended */
    }
    return no < 0 ? no : err_sys(e, ERR_SYSTEM, EBUSY, "the host's %s keeps changing", own.name);
}

/* ---- the first copy ---- */

static int backup(sqlite3 *host, void *ctx, struct err *e)
{
    sqlite3 *copy = NULL;
    char path[300];
    (void)ctx;
    (void)unlinkat(own.session, own.temp, 0); /* of an earlier try */
    snprintf(path, sizeof path, "file:/s/%s", own.temp);
    int code = sqlite3_open_v2(
        path, &copy, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_URI, "unix");
    if (code == SQLITE_OK)
        code = run_sql(harden(copy), "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF");
    sqlite3_backup *b = code == SQLITE_OK ? sqlite3_backup_init(copy, "main", host, "main") : NULL;
    if (b) {
        for (int tries = 0; tries < 200; tries++) {
            code = sqlite3_backup_step(b, -1);
            if (code != SQLITE_BUSY && code != SQLITE_LOCKED)
                break;
            (void)usleep(20000);
        }
        int end = sqlite3_backup_finish(b);
        code = code == SQLITE_DONE ? end : code;
    } else if (code == SQLITE_OK) {
        code = sqlite3_errcode(copy);
    }
    int no = code == SQLITE_OK ? 0 : database_say(e, copy, code, "cannot copy the host's database");
    (void)sqlite3_close(copy);
    return no;
}

/* Under its name in one step, and not over what the box has put there meanwhile; as sys_rename_new(), with the calls that
   there are here. */
static int put_copy(void)
{
    int no = sys_renameat2(own.session, own.temp, own.session, own.name, RENAME_NOREPLACE);
    if (no != -EINVAL)
        return no;
    no = sys_openat2(own.session, own.name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600,
                     RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH);
    if (no < 0)
        return no;
    (void)close(no);
    return sys_renameat2(own.session, own.temp, own.session, own.name, 0);
}

static int first_copy(struct err *e)
{
    int no = database_with_host(backup, NULL, e);
    if (no == 0)
        no = put_copy();
    if (no == -EEXIST)
        no = err_sys(e, ERR_SYSTEM, EEXIST, "%s appeared while it was copied; try again", own.name);
    if (no < 0)
        (void)unlinkat(own.session, own.temp, 0);
    return no < 0 ? no : DATABASE_FIRST;
}

/* ---- bringing tables up to date ---- */

struct refresh {
    sqlite3 *session;
    const char *table;
};

/* An ordinary table: what else may bear the name can do anything. */
int database_ordinary(sqlite3 *db, const char *table, bool *ret)
{
    sqlite3_stmt *s = NULL;
    *ret = false;
    int code = sqlite3_prepare_v2(db, "SELECT 1 FROM sqlite_schema WHERE name = ?1 AND type = 'table' AND rootpage > 0",
                                  -1, &s, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_bind_text(s, 1, table, -1, SQLITE_STATIC);
    if (code == SQLITE_OK)
        code = sqlite3_step(s);
    *ret = code == SQLITE_ROW;
    (void)sqlite3_finalize(s);
    return code == SQLITE_ROW || code == SQLITE_DONE ? SQLITE_OK : code;
}

/* "INSERT INTO t (a, b) VALUES (?, ?)" of the columns that the host has; the caller frees it by sqlite3_free(). */
static char *insert_of(const char *table, sqlite3_stmt *from)
{
    sqlite3_str *sql = sqlite3_str_new(NULL);
    int n = sqlite3_column_count(from);
    sqlite3_str_appendf(sql, "INSERT INTO main.\"%w\" (", table);
    for (int i = 0; i < n; i++)
        sqlite3_str_appendf(sql, "%s\"%w\"", i ? ", " : "", sqlite3_column_name(from, i));
    sqlite3_str_appendf(sql, ") VALUES (");
    for (int i = 0; i < n; i++)
        sqlite3_str_appendf(sql, "%s?", i ? ", " : "");
    sqlite3_str_appendf(sql, ")");
    return sqlite3_str_finish(sql);
}

static int copy_rows(sqlite3_stmt *from, sqlite3_stmt *to)
{
    int code;
    while ((code = sqlite3_step(from)) == SQLITE_ROW) {
        for (int i = 0; i < sqlite3_column_count(from); i++)
            if ((code = sqlite3_bind_value(to, i + 1, sqlite3_column_value(from, i))) != SQLITE_OK)
                return code;
        if ((code = sqlite3_step(to)) != SQLITE_DONE)
            return code;
        (void)sqlite3_reset(to);
    }
    return code == SQLITE_DONE ? SQLITE_OK : code;
}

static int replace_rows(sqlite3 *host, void *ctx, struct err *e)
{
    struct refresh *r = ctx;
    sqlite3_stmt *from = NULL, *to = NULL;
    char what[256];
    bool here, there;
    snprintf(what, sizeof what, "the session's table %s", r->table);
    int code = database_ordinary(host, r->table, &here);
    if (code != SQLITE_OK || !here)
        return code != SQLITE_OK ? database_say(e, host, code, "the host's database")
                                 : err_say(e, ERR_CANNOT, "the host's %s has no table %s", own.name, r->table);
    code = database_ordinary(r->session, r->table, &there);
    if (code != SQLITE_OK || !there)
        return code != SQLITE_OK
                   ? database_say(e, r->session, code, what)
                   : err_say(e, ERR_CANNOT, "the session's %s no longer has its table %s; start a new session",
                             own.name, r->table);
    char *select = sqlite3_mprintf("SELECT * FROM main.\"%w\"", r->table);
    code = select ? sqlite3_prepare_v2(host, select, -1, &from, NULL) : SQLITE_NOMEM;
    sqlite3_free(select);
    if (code != SQLITE_OK)
        return database_say(e, host, code, "the host's database");
    char *insert = insert_of(r->table, from), *clear = sqlite3_mprintf("DELETE FROM main.\"%w\"", r->table);
    code = insert && clear ? run_sql(r->session, clear) : SQLITE_NOMEM;
    if (code == SQLITE_OK)
        code = sqlite3_prepare_v2(r->session, insert, -1, &to, NULL);
    if (code == SQLITE_OK)
        code = copy_rows(from, to);
    int no = code == SQLITE_OK ? 0 : database_say(e, r->session, code, what);
    sqlite3_free(insert);
    sqlite3_free(clear);
    (void)sqlite3_finalize(from);
    (void)sqlite3_finalize(to);
    return no;
}

struct refresh_all {
    sqlite3 *session;
    char *const *tables;
};

/* One transaction on either side. */
static int refresh_tables(sqlite3 *host, void *ctx, struct err *e)
{
    struct refresh_all *all = ctx;
    int code = run_sql(host, "BEGIN");
    if (code != SQLITE_OK)
        return database_say(e, host, code, "the host's database");
    code = run_sql(all->session, "BEGIN IMMEDIATE");
    if (code != SQLITE_OK) {
        (void)run_sql(host, "ROLLBACK");
        return database_say(e, all->session, code, "the session's database");
    }
    int no = 0;
    for (size_t i = 0; no == 0 && all->tables[i]; i++)
        no = replace_rows(host, &(struct refresh){all->session, all->tables[i]}, e);
    code = no == 0 ? run_sql(all->session, "COMMIT") : SQLITE_OK;
    if (code != SQLITE_OK)
        no = database_say(e, all->session, code, "the session's database");
    if (no < 0)
        (void)run_sql(all->session, "ROLLBACK");
    (void)run_sql(host, "ROLLBACK");
    return no;
}

static int refresh(char *const *tables, struct err *e)
{
    char path[300];
    struct refresh_all all = {.tables = tables};
    snprintf(path, sizeof path, "file:/s/%s", own.name);
    int no = database_connect(path, SQLITE_OPEN_READWRITE, &all.session, e, "the session's database");
    if (no == 0)
        no = database_with_host(refresh_tables, &all, e);
    (void)sqlite3_close(all.session);
    return no;
}

int database_begin(int host, int session, const char *name, struct err *e)
{
    static char temp[256];
    own.host = host;
    own.session = session;
    own.name = name;
    snprintf(temp, sizeof temp, ".pinfold-%ld-%s", (long)getpid(), name);
    own.temp = temp;
    return calls_replace() ? 0 : err_say(e, ERR_BUG, "SQLite's system calls cannot be replaced");
}

void database_drop(void)
{
    static const char *const tails[] = {"", "-wal", "-shm", "-journal"};
    char name[300];
    for (size_t i = 0; i < sizeof tails / sizeof *tails; i++) {
        snprintf(name, sizeof name, "%s%s", own.name, tails[i]);
        (void)unlinkat(own.session, name, 0);
    }
}

int database_sync(const struct database_ask *ask, struct err *e)
{
    struct stat st;
    if (fstatat(ask->host, ask->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return -ENOENT;
    int no = database_begin(ask->host, ask->session, ask->name, e);
    if (no < 0)
        return no;
    if (fstatat(own.session, own.name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? first_copy(e) : err_sys(e, ERR_SYSTEM, errno, "the session's %s", own.name);
    return refresh(ask->tables, e);
}
