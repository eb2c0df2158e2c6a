/*
 * agents/: definitions, command lines, and the login of the host in a session's state: with real databases, written by another
 * process meanwhile, and with what a box may have made of its own.
 */
#include "unit.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "agents/agents.h"

static char top[256];
static struct err said;

static const char *at(const char *name)
{
    static char paths[8][512];
    static int next;
    char *p = paths[next++ % 8];
    snprintf(p, sizeof paths[0], "%s/%s", top, name);
    return p;
}

static void sh(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void sh(const char *format, ...)
{
    char text[4096];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (system(text) != 0)
        fail_msg("failed: %s", text);
}

static const char *sql(const char *db, const char *text)
{
    static char got[4096];
    char command[4096];
    snprintf(command, sizeof command, "sqlite3 -batch -cmd '.timeout 60000' '%s' \"%s\" 2>&1", db, text);
    FILE *f = popen(command, "r");
    size_t n = f ? fread(got, 1, sizeof got - 1, f) : 0;
    got[n] = 0;
    if (!f || pclose(f) != 0)
        fail_msg("%s: %s", command, got);
    return got;
}

/* A home with a Kiro login, and no state yet. */
static int fresh(void **state)
{
    (void)state;
    sh("rm -rf %s/home %s/state %s/outside && mkdir -p %s/home/.local/share/kiro-cli %s/outside", top, top, top, top,
       top);
    sql(at("home/.local/share/kiro-cli/data.sqlite3"),
        "PRAGMA journal_mode=WAL; CREATE TABLE auth_kv (key TEXT PRIMARY KEY, value TEXT); "
        "CREATE TABLE conversations_v2 (key TEXT NOT NULL, conversation_id TEXT NOT NULL, value TEXT NOT NULL, "
        "created_at INTEGER "
        "NOT NULL, updated_at INTEGER NOT NULL, PRIMARY KEY (key, conversation_id)); INSERT INTO auth_kv "
        "VALUES('token','one');");
    return 0;
}

static const char *instead; /* of pinfold-sqlite, where it shall not be found */

/* Beside this program, where it was copied, or two folders above, as it is built. */
static int open_sqlite(struct err *e)
{
    if (instead) {
        int other = open(instead, O_PATH | O_CLOEXEC);
        return other >= 0 ? other : err_sys(e, ERR_CANNOT, errno, "%s", instead);
    }
    char path[512] = "";
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    assert_true(n > 0 && (size_t)n < sizeof path);
    int fd = -1;
    for (int up = 0; up < 3 && fd < 0; up++) {
        *strrchr(path, '/') = 0;
        size_t end = strlen(path);
        snprintf(path + end, sizeof path - end, "/pinfold-sqlite");
        fd = open(path, O_PATH | O_CLOEXEC);
        path[end] = 0;
    }
    return fd >= 0 ? fd : err_sys(e, ERR_CANNOT, errno, "%s", path);
}

static int sync_as(const char *name, struct agent_synced *done)
{
    struct agent a;
    struct arena *mem = arena_new(1 << 20);
    said.text[0] = 0;
    assert_int_equal(agent_find(name, mem, &a, &said), 0);
    int no = agent_sync(&a, AGENT_LINUX, at("home"), at("state"), open_sqlite, done, &said);
    arena_free(mem);
    return no;
}

static int sync_kiro(void)
{
    struct agent_synced done;
    int no = sync_as("kiro-cli", &done);
    agent_synced_free(&done);
    return no;
}

#define HOST_DB    at("home/.local/share/kiro-cli/data.sqlite3")
#define SESSION_DB at("state/data/data.sqlite3")

static struct buf joined(const char *base, const char *host, const char *box)
{
    struct buf b = BUF(1 << 16);
    char *text;
    size_t n;
    if (agent_json_join(str_of(base), str_of(host), str_of(box), &text, &n) == 0) {
        buf_put(&b, text, n);
        free(text);
    }
    return b;
}

/* What a box gets of a file in JSON, and what becomes of changes on both sides. */
static void test_json(void **state)
{
    (void)state;
    const char *blank[] = {"a.refresh", "*.deep.*.refresh", NULL}, *only[] = {"projects", NULL};
    const struct agent_kept f = {.name = "f", .blank = blank, .only = only, .expires = "a.until"};
    char *text;
    size_t n;
    const char *host =
        "{\"a\":{\"access\":\"A\",\"refresh\":\"SECRET\",\"until\":1900000000123},\"b\":{\"deep\":{\"x\":{"
        "\"refresh\":[\"SECRET\"]}}},\"projects\":{\"/p\":{\"mine\":1},\"/q\":{\"key\":\"SECRET\"}}}";
    assert_int_equal(agent_json_shown(&f, "/p", str_of(host), &text, &n), 0);
    assert_null(strstr(text, "SECRET"));
    assert_non_null(strstr(text, "\"A\""));
    assert_non_null(strstr(text, "mine"));
    assert_false(agent_json_own_login(&f, (struct str){text, n}));
    free(text);
    assert_true(agent_json_own_login(&f, str_of(host)));
    assert_true(agent_json_expires(&f, str_of(host)) == 1900000000);
    assert_int_equal(agent_json_shown(&f, "/p", STR("[\"SECRET\"]"), &text, &n), -EINVAL);
    assert_int_equal(agent_json_shown(&f, "/p", STR("{\"a\""), &text, &n), -EINVAL);

    auto_buf struct buf b = joined("{\"x\":1,\"gone\":1,\"o\":{\"p\":1,\"q\":1}}", "{\"x\":2,\"o\":{\"p\":2,\"q\":1}}",
                                   "{\"x\":1,\"gone\":1,\"box\":1,\"o\":{\"p\":1,\"q\":3}}");
    struct buf lines = BUF(1 << 16);
    assert_int_equal(agent_json_changes(&(struct agent_kept){.name = "f"}, "f",
                                        STR("{\"x\":2,\"box\":1,\"o\":{\"p\":2,\"q\":3}}"), buf_view(&b), &lines),
                     0);
    assert_string_equal(buf_cstr(&lines), "");
    const char *keys[] = {"hooks", NULL};
    const struct agent_kept keyed = {.name = "f", .keys = keys};
    struct str was = STR("{\"n\":1}"), now = STR("{\"n\":2,\"hooks\":{\"Stop\":\"evil\"}}");
    assert_int_equal(agent_json_changes(&keyed, "f", was, now, &lines), 0);
    assert_string_equal(buf_cstr(&lines), "f:hooks\t(none) -> {\"Stop\":\"evil\"}\n");
    buf_free(&lines);
    lines = BUF(1 << 16);
    assert_int_equal(agent_json_take(&keyed, "n", was, now, STR("{\"mine\":1}"), &lines), -ENOENT);
    assert_int_equal(agent_json_take(&keyed, "hooks", was, now, STR("{\"mine\":1}"), &lines), 0);
    assert_non_null(strstr(buf_cstr(&lines), "\"mine\": 1"));
    assert_non_null(strstr(buf_cstr(&lines), "evil"));
    buf_free(&lines);

    /* What a box removed stays: named by itself, and in a whole file. */
    const struct agent_kept whole = {.name = "f"};
    was = STR("{\"model\":1,\"o\":{\"a\":1,\"b\":1}}"), now = STR("{\"o\":{\"a\":2}}");
    lines = BUF(1 << 16);
    assert_int_equal(agent_json_take(&whole, "model", was, now, was, &lines), -ENODATA);
    assert_int_equal(agent_json_take(&whole, NULL, was, STR("{\"o\":{\"a\":1}}"), was, &lines), -ENODATA);
    assert_int_equal(agent_json_take(&whole, NULL, was, STR("{\"model\":2,\"o\":{\"a\":1,\"b\":1}}"), was, &lines),
                     -ENOENT);
    assert_int_equal(agent_json_take(&whole, NULL, was, now, was, &lines), 0);
    assert_non_null(strstr(buf_cstr(&lines), "\"model\": 1"));
    assert_non_null(strstr(buf_cstr(&lines), "\"a\": 2"));
    assert_non_null(strstr(buf_cstr(&lines), "\"b\": 1"));
    buf_free(&lines);
}

static void test_definitions(void **state)
{
    (void)state;
    size_t n = 0;
    for (const struct agent_text *t = agent_texts; t->name; t++, n++) {
        struct arena *mem = arena_new(1 << 20);
        struct agent a;
        if (agent_find(t->name, mem, &a, &said) < 0)
            fail_msg("%s", said.text);
        assert_true(a.start.command && a.start.install && a.start.n_layers > 0);
        assert_true(a.prompt || a.start.untried);
        if (a.prompt)
            assert_true(a.n_state > 0 && a.prompt[0] && strstr(a.text, "{prompt}") && strstr(a.text, "{directory}"));
        arena_free(mem);
    }
    assert_int_equal(n, 12);
    struct arena *mem = arena_new(1 << 20);
    struct agent a;
    assert_int_equal(agent_find("cursor", mem, &a, &said), -EINVAL);
    assert_non_null(strstr(said.text, "kiro-cli"));
    static const char *const bad[] = {
        "title: x\n",
        "title: x\ncommand: [x]\nprompt: [y]\ntext: z\nsurprise: 1\n",
        "title: x\ncommand: x\nprompt: [y]\ntext: z\n",
        "title: x\ncommand: [x]\nprompt: [y]\ntext: z\nread_only: [/etc]\n",
        "title: x\ncommand: [x]\nprompt: [y]\ntext: z\nread_only: [~/../etc]\n",
        "title: x\ncommand: [x]\nprompt: [y]\ntext: z\nstate: [{name: a/b, at: ~/x}]\n",
        "title: x\ncommand: [x]\nprompt: [y]\ntext: z\nstate: [{name: .., at: ~/x}]\n",
        "title: x\ncommand: [x]\nprompt: [y]\ntext: z\nstate: [{name: a, at: ~/x, files: [{file: ../x}]}]\n",
        "title: x\ncommand: [x]\nprompt: [y]\ntext: z\nstate: [{name: a, at: ~/x, databases: [{file: x}]}]\n",
        ("title: x\ncommand: [x]\nprompt: [y]\ntext: z\nstate: [{name: a, at: ~/x, files: [{file: x, refresh: "
         "maybe}]}]\n"),
        "title: x\n",
        "title: x\nstart: {command: []}\n",
        "title: x\nstart: {command: [a/b]}\n",
        "title: x\nstart: {command: [a], keeps: [{files: [x]}]}\n",
        "title: x\nstart: {command: [a], keeps: [{at: /etc}]}\n",
        "title: x\nstart: {command: [a], keeps: [{at: ~/.a, shared: [../x]}]}\n",
        "title: x\nstart: {command: [a], keeps: [{at: ~/.a, files: [~/x]}]}\n",
        "title: x\nstart: {command: [a], keeps: [{at: ~/.a, files: [{file: a, blnak: [x]}]}]}\n",
        "title: x\nstart: {command: [a], keep: []}\n",
        "title: x\ncommand: [a]\nstart: {command: [a]}\n",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        said.text[0] = 0;
        if (agent_read("bad", "bad.yaml", str_of(bad[i]), mem, &a, &said) != -EINVAL || !strstr(said.text, "bad.yaml"))
            fail_msg("%s: %s", bad[i], said.text);
    }
    arena_free(mem);
}

static void check_argv(const char *agent, const struct agent_ask *ask, const char *want)
{
    struct arena *mem = arena_new(1 << 20);
    struct agent a;
    const char **argv;
    struct buf out = BUF(1 << 16);
    assert_int_equal(agent_find(agent, mem, &a, &said), 0);
    int no = agent_argv(&a, ask, mem, &argv, &said);
    for (size_t i = 0; no == 0 && argv[i]; i++)
        buf_printf(&out, "%s%s", i ? "|" : "", argv[i]);
    assert_string_equal(no == 0 ? buf_cstr(&out) : said.text, want);
    buf_free(&out);
    arena_free(mem);
}

static void test_argv(void **state)
{
    (void)state;
    const struct agent_ask plain = {.home = "/home/u", .directory = "/workspace", .prompt = "do {directory} $(x)"};
    struct agent_ask all = plain;
    all.profile = "dev";
    all.model = "m";
    all.resume = all.unattended = true;
    check_argv("kiro-cli", &plain, "kiro-cli|chat|--no-interactive|In directory /workspace, do {directory} $(x)");
    check_argv(
        "kiro-cli", &all,
        "kiro-cli|chat|--no-interactive|--agent|dev|--model|m|--trust-all-tools|--resume|In directory /workspace, do "
        "{directory} $(x)");
    check_argv("claude", &all,
               "claude|--agent|dev|--model|m|--dangerously-skip-permissions|--continue|-p|In directory /workspace, do "
               "{directory} "
               "$(x)");
    all.response = "/workspace/.answer";
    check_argv(
        "codex", &all,
        "codex|exec|--skip-git-repo-check|--sandbox|danger-full-access|--profile|dev|--model|m|--output-last-message|"
        "/workspace/.answer|resume|--last|In directory /workspace, do {directory} $(x)");
    all.profile = NULL;
    check_argv("gemini", &all,
               "gemini|--model|m|--yolo|--resume|latest|-p|In directory /workspace, do {directory} $(x)\n\nWrite your "
               "final answer to "
               "the file /workspace/.answer.");
    all.profile = "dev";
    check_argv("gemini", &all, "Gemini CLI has no profiles to choose from (\"dev\")");
}

static bool always(const char *path)
{
    return strstr(path, ".kiro") != NULL;
}

static bool no_settings(const char *path)
{
    return strstr(path, ".kiro") && !strstr(path, "settings");
}
static const char **some(const char *path, struct arena *mem)
{
    static const char *const names[] = {"agents", "a:b", "sessions", "settings", "steering"};
    const char **list = arena_zero(mem, 6 * sizeof *list);
    (void)path;
    memcpy(list, names, sizeof names);
    return list;
}

static void test_flags_without_a_place(void **state)
{
    (void)state;
    const struct agent_box box = {
        .state = "/st", .host_home = "/h", .home = "/root", .exists = no_settings, .entries = some};
    struct arena *mem = arena_new(1 << 20);
    struct agent a;
    const char **flags;
    struct buf out = BUF(1 << 16);
    assert_int_equal(agent_find("kiro-cli", mem, &a, &said), 0);
    assert_int_equal(agent_flags(&a, &box, mem, &flags, &said), 0);
    for (size_t i = 0; flags[i]; i += 2)
        buf_printf(&out, "%s=%s ", flags[i], flags[i + 1]);
    assert_non_null(strstr(
        buf_cstr(&out), "mount=/h/.kiro/agents:/root/.kiro/agents:ro mount=/h/.kiro/steering:/root/.kiro/steering:ro "
                        "mount=/st/data:"));
    buf_free(&out);
    arena_free(mem);
}

static void test_flags(void **state)
{
    (void)state;
    static const char *const variables[] = {"HOME=/h", "ANTHROPIC_API_KEY=secret", "ANTHROPIC_API_KEY_2=x", NULL};
    const struct agent_box box = {
        .state = "/st", .host_home = "/home/me", .home = "/root", .exists = always, .environ = variables};
    static const struct {
        const char *agent, *want;
    } table[] = {
        {"kiro-cli", "mount=/home/me/.kiro:/root/.kiro:ro mount=/st/data:/root/.local/share/kiro-cli "
                     "mount=/st/sessions:/root/.kiro/"
                     "sessions mount=/st/settings:/root/.kiro/settings allow=*.kiro.dev "},
        {"claude",
         "mount=/st/config:/root/.claude env=CLAUDE_CONFIG_DIR=/root/.claude env=IS_SANDBOX=1 env=ANTHROPIC_API_KEY "
         "allow=@anthropic "},
    };
    for (size_t k = 0; k < 2; k++) {
        struct arena *mem = arena_new(1 << 20);
        struct agent a;
        const char **flags;
        struct buf out = BUF(1 << 16);
        assert_int_equal(agent_find(table[k].agent, mem, &a, &said), 0);
        assert_int_equal(agent_flags(&a, &box, mem, &flags, &said), 0);
        for (size_t i = 0; flags[i]; i += 2)
            buf_printf(&out, "%s=%s ", flags[i], flags[i + 1]);
        if (strncmp(buf_cstr(&out), table[k].want, strlen(table[k].want)) != 0)
            fail_msg("%s", buf_cstr(&out));
        buf_free(&out);
        struct agent_box colon = box;
        colon.state = "/s:t";
        assert_int_equal(agent_flags(&a, &colon, mem, &flags, &said), -EINVAL);
        arena_free(mem);
    }
}

/* First all of it, then the login alone, and the host's files as they were. */
static void test_kiro(void **state)
{
    (void)state;
    struct agent_synced done;
    sh("cd %s/home && sha256sum .local/share/kiro-cli/* >%s/sums; ls -a .local/share/kiro-cli >%s/names", top, top,
       top);
    assert_int_equal(sync_as("kiro-cli", &done), 0);
    assert_string_equal(buf_cstr(&done.first), "data/data.sqlite3\n");
    agent_synced_free(&done);
    assert_string_equal(sql(SESSION_DB, "SELECT * FROM auth_kv"), "token|one\n");
    sql(SESSION_DB, "INSERT INTO conversations_v2 VALUES('/w','c1','mine',1,1); INSERT INTO auth_kv VALUES('box','x')");
    assert_int_equal(sync_as("kiro-cli", &done), 0);
    assert_string_equal(buf_cstr(&done.refreshed), "data/data.sqlite3\n");
    agent_synced_free(&done);
    sh("cd %s/home && sha256sum -c --quiet %s/sums && ls -a .local/share/kiro-cli | cmp - %s/names", top, top, top);
    sql(HOST_DB, "UPDATE auth_kv SET value='two'; INSERT INTO conversations_v2 VALUES('/h','c0','host',1,1)");
    assert_int_equal(sync_kiro(), 0);
    assert_string_equal(sql(SESSION_DB, "SELECT * FROM auth_kv"), "token|two\n");
    assert_string_equal(sql(SESSION_DB, "SELECT value FROM conversations_v2"), "mine\n");
    assert_string_equal(sql(HOST_DB, "SELECT value FROM conversations_v2"), "host\n");
    /* Another mode, and nobody logged in. */
    sql(HOST_DB, "PRAGMA journal_mode=DELETE; UPDATE auth_kv SET value='three'");
    assert_int_equal(sync_kiro(), 0);
    assert_string_equal(sql(SESSION_DB, "SELECT * FROM auth_kv"), "token|three\n");
    sh("rm -rf %s/home/.local", top);
    assert_int_equal(sync_as("kiro-cli", &done), 0);
    assert_string_equal(buf_cstr(&done.missing), "data/data.sqlite3\nsettings/mcp.json\nsettings/cli.json\n");
    agent_synced_free(&done);
    assert_string_equal(sql(SESSION_DB, "SELECT * FROM auth_kv"), "token|three\n");
}

/* The host's agent goes on writing, by WAL, pairs that must be seen together; sqlite3 itself holds the database open. */
static void test_while_written(void **state)
{
    (void)state;
    int in[2];
    assert_int_equal(pipe(in), 0);
    pid_t agent = fork_child();
    if (agent == 0) {
        dup2(in[0], 0);
        close(in[1]);
        int null = open("/dev/null", O_WRONLY);
        dup2(null, 1);
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        /* As agents do, it waits: the last of others who looked at the database locks it for a moment when it leaves. */
        execlp("sqlite3", "sqlite3", "-batch", "-cmd", ".timeout 60000", HOST_DB, (char *)NULL);
        _exit(127);
    }
    close(in[0]);
    pid_t writer = fork_child();
    if (writer == 0) {
        char text[8192], big[3000];
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        signal(SIGPIPE, SIG_IGN);
        memset(big, 'x', sizeof big);
        big[sizeof big - 1] = 0;
        for (long i = 1;; i++) {
            int n = snprintf(text, sizeof text,
                             "BEGIN IMMEDIATE; INSERT OR REPLACE INTO auth_kv VALUES('a','%ld'),('b','%ld');\nINSERT "
                             "INTO conversations_v2 "
                             "VALUES('/h','c%ld','%s',1,1); COMMIT;\n",
                             i, i, i, big);
            if (write(in[1], text, (size_t)n) != n)
                _exit(0);
        }
    }
    close(in[1]);
    for (int i = 0; i < 9000 && strcmp(sql(HOST_DB, "SELECT count(*) > 5 FROM conversations_v2"), "1\n") != 0; i++)
        usleep(10000);
    for (int i = 0; i < 25; i++) {
        if (i % 5 == 0)
            sh("rm -rf %s/state", top);
        if (sync_kiro() < 0)
            fail_msg("%d: %s", i, said.text);
        assert_string_equal(sql(SESSION_DB, "PRAGMA integrity_check"), "ok\n");
        assert_string_equal(sql(SESSION_DB, "SELECT count(DISTINCT value) FROM auth_kv WHERE key IN ('a','b')"), "1\n");
        if (i % 5 == 0) /* the whole: as many conversations as the login says */
            assert_string_equal(
                sql(SESSION_DB, "SELECT (SELECT count(*) FROM conversations_v2) = value FROM auth_kv WHERE key='a'"),
                "1\n");
    }
    kill(writer, SIGKILL);
    kill(agent, SIGKILL);
    waitpid(writer, NULL, 0);
    waitpid(agent, NULL, 0);
    /* It was killed: its WAL lies there, and nobody is using it. */
    assert_int_equal(sync_kiro(), 0);
    assert_string_equal(sql(HOST_DB, "PRAGMA integrity_check"), "ok\n");
}

/* The session's own agent is at work: its conversations stay, and it sees the new login. */
static void test_session_lives(void **state)
{
    (void)state;
    sqlite3 *db;
    assert_int_equal(sync_kiro(), 0);
    assert_int_equal(sqlite3_open(SESSION_DB, &db), SQLITE_OK);
    assert_int_equal(
        sqlite3_exec(db, "PRAGMA journal_mode=WAL; BEGIN; INSERT INTO conversations_v2 VALUES('/w','c1','open',1,1)",
                     NULL, NULL, NULL),
        SQLITE_OK);
    pid_t commits = fork_child();
    if (commits == 0) {
        usleep(300000);
        _exit(0);
    }
    sql(HOST_DB, "UPDATE auth_kv SET value='new'");
    waitpid(commits, NULL, 0);
    assert_int_equal(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sync_kiro(), 0);
    assert_string_equal(sql(SESSION_DB, "SELECT value FROM auth_kv; SELECT value FROM conversations_v2"),
                        "new\nopen\n");
    sqlite3_close(db);
}

/* What a box may have left in its state must not reach anything of the host's. */
static void test_hostile(void **state)
{
    (void)state;
    char victim[512], text[2048];
    snprintf(victim, sizeof victim, "%s", at("outside/victim"));
    sh("sqlite3 %s 'CREATE TABLE auth_kv (key, value); INSERT INTO auth_kv VALUES(1, 2)'; sha256sum %s >%s/sums",
       victim, victim, top);
    /* Links in place of the database, its journal, its directory; a FIFO; a directory. */
    static const char *const plants[] = {
        "rm -f data.sqlite3*; ln -s ../../outside/victim data.sqlite3",
        "rm -f data.sqlite3*; ln -s ../../home/.local/share/kiro-cli/data.sqlite3 data.sqlite3",
        "rm -f data.sqlite3*; mkfifo data.sqlite3",
        "rm -f data.sqlite3*; mkdir data.sqlite3",
        "rm -rf data.sqlite3*; sqlite3 data.sqlite3 'CREATE TABLE auth_kv (key, value)'; ln -s ../../outside/victim "
        "data.sqlite3-journal",
        "rm -rf data.sqlite3*; sqlite3 data.sqlite3 'CREATE TABLE other (key, value)'",
        "rm -rf data.sqlite3*; sqlite3 data.sqlite3 'CREATE TABLE t (key, value); CREATE VIEW auth_kv AS SELECT * FROM "
        "t'",
        "rm -rf data.sqlite3*; sqlite3 data.sqlite3 'CREATE VIRTUAL TABLE auth_kv USING fts5(key, value)'",
        "rm -rf data.sqlite3*; head -c 100000 /dev/urandom >data.sqlite3",
        "rm -rf data.sqlite3*; sqlite3 data.sqlite3 'CREATE TABLE auth_kv (key, value, more NOT NULL)'",
    };
    for (size_t i = 0; i < sizeof plants / sizeof *plants; i++) {
        fresh(state);
        sh("sqlite3 %s 'CREATE TABLE auth_kv (key, value); INSERT INTO auth_kv VALUES(1, 2)'; mkdir -p %s/state/data",
           victim, top);
        sh("cp %s %s/kept; cd %s/state/data && %s", victim, top, top, plants[i]);
        bool victim_journal = strstr(plants[i], "sqlite3-journal") != NULL;
        if (sync_kiro() == 0 && !victim_journal)
            fail_msg("taken: %s", plants[i]);
        sh("cmp %s %s/kept", victim, top);
        assert_string_equal(sql(HOST_DB, "SELECT * FROM auth_kv"), "token|one\n");
    }
    /* The state's subdirectory itself as a link. */
    fresh(state);
    sh("rm -rf %s/state && mkdir -p %s/state && ln -s ../outside %s/state/data", top, top, top);
    assert_true(sync_kiro() < 0);
    sh("test -z \"$(ls -A %s/outside)\"", top);
    /* Code in the schema does not run. */
    fresh(state);
    assert_int_equal(sync_kiro(), 0);
    snprintf(text, sizeof text,
             "CREATE TABLE log (x); CREATE TRIGGER t AFTER INSERT ON auth_kv BEGIN INSERT INTO log VALUES(new.value); "
             "DELETE FROM conversations_v2; END");
    sql(SESSION_DB, text);
    sql(HOST_DB, "UPDATE auth_kv SET value='secret'");
    assert_int_equal(sync_kiro(), 0);
    assert_string_equal(sql(SESSION_DB, "SELECT value FROM auth_kv; SELECT count(*) FROM log"), "secret\n0\n");
}

/*
 * A journal may name a super-journal, which SQLite removes when no journal is left that it names: here a file of the host's,
 * whose content is chosen so. First shown to work on plain SQLite.
 */
static void put_journal(const char *db, const char *super)
{
    unsigned char head[512] = {0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7};
    char path[600];
    unsigned sum = 0;
    size_t n = strlen(super);
    head[23] = 2; /* sector size 512 */
    head[22] = 0;
    head[20] = 0;
    head[22] = 2;
    head[23] = 0;
    head[26] = 0x10; /* page size 4096 */
    head[19] = 2;    /* pages of the database before */
    for (size_t i = 0; i < n; i++)
        sum += (unsigned)(signed char)super[i];
    snprintf(path, sizeof path, "%s-journal", db);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    fwrite(head, 1, sizeof head, f);
    unsigned locking = 0x40000000 / 4096 + 1;
    const unsigned char tail1[4] = {(unsigned char)(locking >> 24), (unsigned char)(locking >> 16),
                                    (unsigned char)(locking >> 8), (unsigned char)locking};
    fwrite(tail1, 1, 4, f);
    fwrite(super, 1, n, f);
    const unsigned char tail2[8] = {0,
                                    0,
                                    (unsigned char)(n >> 8),
                                    (unsigned char)n,
                                    (unsigned char)(sum >> 24),
                                    (unsigned char)(sum >> 16),
                                    (unsigned char)(sum >> 8),
                                    (unsigned char)sum};
    fwrite(tail2, 1, 8, f);
    fwrite(head, 1, 8, f); /* the magic number */
    fclose(f);
}

static void test_super_journal(void **state)
{
    (void)state;
    sqlite3 *db;
    char victim[512];
    struct stat st;
    snprintf(victim, sizeof victim, "%s", at("outside/victim"));
    for (int ours = 0; ours < 2; ours++) {
        fresh(state);
        sh("echo precious >%s", victim);
        assert_int_equal(sync_kiro(), 0);
        sql(SESSION_DB, "PRAGMA journal_mode=DELETE");
        put_journal(SESSION_DB, victim);
        if (ours) {
            (void)sync_kiro();
            assert_int_equal(stat(victim, &st), 0);
            assert_string_equal(sql(HOST_DB, "SELECT * FROM auth_kv"), "token|one\n");
        } else {
            assert_int_equal(sqlite3_open(SESSION_DB, &db), SQLITE_OK);
            (void)sqlite3_exec(db, "SELECT * FROM auth_kv", NULL, NULL, NULL);
            sqlite3_close(db);
            if (sqlite3_libversion_number() < 3047000)   /* newer ones look at it first */
                assert_int_equal(stat(victim, &st), -1); /* plain SQLite removed it */
        }
    }
}

static void test_files(void **state)
{
    (void)state;
    struct agent_synced done;
    struct stat st;
    sh("mkdir -p %s/home/.claude && cd %s/home/.claude && echo '{\"token\":1}' >.credentials.json && echo '{}' "
       ">settings.json && mkdir projects",
       top, top);
    assert_int_equal(sync_as("claude", &done), 0);
    assert_string_equal(buf_cstr(&done.first), "config/.credentials.json\nconfig/settings.json\n");
    assert_string_equal(buf_cstr(&done.missing), "config/CLAUDE.md\n");
    agent_synced_free(&done);
    assert_true(stat(at("state/config/.credentials.json"), &st) == 0 && (st.st_mode & 07777) == 0600);
    sh("cd %s && echo mine >state/config/settings.json && echo evil >state/config/.credentials.json && echo "
       "'{\"token\":2}' >home/.claude/.credentials.json",
       top);
    assert_int_equal(sync_as("claude", &done), 0);
    assert_string_equal(buf_cstr(&done.refreshed), "config/.credentials.json\n");
    agent_synced_free(&done);
    sh("cd %s && grep -q 2 state/config/.credentials.json && grep -q mine state/config/settings.json && grep -q 2 "
       "home/.claude/.credentials.json",
       top);
    /* Links planted in the session: replaced, not followed. */
    sh("cd %s/state/config && echo out >%s/outside/x && rm .credentials.json settings.json && ln -s ../../outside/x "
       ".credentials.json && ln -s ../../outside/x settings.json",
       top, top);
    assert_int_equal(sync_as("claude", &done), 0);
    agent_synced_free(&done);
    sh("cd %s && grep -q out outside/x && test ! -L state/config/.credentials.json && grep -q 2 "
       "state/config/.credentials.json",
       top);
    /* A link in the host's home is the person's own. */
    sh("cd %s/home && mkdir dot && mv .claude/.credentials.json dot/ && echo '{\"token\":3}' >dot/.credentials.json && "
       "ln -s ../dot/.credentials.json .claude/",
       top);
    assert_int_equal(sync_as("claude", &done), 0);
    agent_synced_free(&done);
    sh("grep -q 3 %s/state/config/.credentials.json", top);
    /* What renews a login stays with the host; what is no login is not copied. */
    sh("cd %s/home/.claude && rm .credentials.json && echo "
       "'{\"claudeAiOauth\":{\"accessToken\":\"aaa\",\"refreshToken\":\"rrr\"}}' >.credentials.json",
       top);
    assert_int_equal(sync_as("claude", &done), 0);
    agent_synced_free(&done);
    sh("cd %s/state/config && grep -q aaa .credentials.json && ! grep -q rrr .credentials.json", top);
    sh("cd %s/home/.claude && echo '{\"refreshToken\":\"rrr\"' >.credentials.json", top);
    assert_int_equal(sync_as("claude", &done), 0);
    assert_string_equal(buf_cstr(&done.missing), "config/.credentials.json\nconfig/CLAUDE.md\n");
    agent_synced_free(&done);
    sh("! grep -q rrr %s/state/config/.credentials.json", top);
}

/* Without the program, or with another one in its place, the login is not brought over, and that is an error. */
static void test_other_program(void **state)
{
    (void)state;
    static const char *const others[] = {"/nonexistent/pinfold-sqlite", "/bin/true", "/bin/false", "/etc/passwd"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        instead = others[i];
        int no = sync_kiro();
        instead = NULL;
        assert_true(no < 0 && no != -ENOENT);
        assert_non_null(strstr(said.text, "data.sqlite3"));
    }
    sh("test ! -e %s", SESSION_DB);
    /* Where the host has no database nobody needs it. */
    sh("rm -rf %s/home/.local", top);
    instead = others[0];
    int no = sync_kiro();
    instead = NULL;
    assert_int_equal(no, 0);
}

/* Of /proc/PID/status of the process of that name, while it waits for a lock. */
static bool status_of(const char *name, char *ret, size_t n)
{
    char text[128];
    snprintf(text, sizeof text, "cat /proc/$(pgrep -x %s | head -n 1)/status 2>/dev/null", name);
    FILE *f = popen(text, "r");
    size_t got = f ? fread(ret, 1, n - 1, f) : 0;
    ret[got] = 0;
    if (f)
        (void)pclose(f);
    return strstr(ret, "Seccomp:\t2\n") != NULL;
}

static void test_confined(void **state)
{
    (void)state;
    char text[8192];
    sqlite3 *db;
    bool seen = false;
    assert_int_equal(sync_kiro(), 0);
    assert_int_equal(sqlite3_open(SESSION_DB, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "BEGIN EXCLUSIVE", NULL, NULL, NULL), SQLITE_OK);
    pid_t waits = fork_child();
    if (waits == 0)
        _exit(sync_kiro() == 0 ? 0 : 1);
    for (int i = 0; i < 9000 && !seen; i++) {
        seen = status_of("pinfold-sqlite", text, sizeof text);
        usleep(10000);
    }
    assert_int_equal(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    int status = 1;
    assert_int_equal(waitpid(waits, &status, 0), waits);
    assert_int_equal(status, 0);
    assert_true(seen);
    assert_non_null(strstr(text, "NoNewPrivs:\t1\n"));
    assert_non_null(strstr(text, "CapPrm:\t0000000000000000\n"));
    assert_non_null(strstr(text, "CapInh:\t0000000000000000\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_json),
                                       cmocka_unit_test(test_definitions),
                                       cmocka_unit_test(test_argv),
                                       cmocka_unit_test(test_flags),
                                       cmocka_unit_test(test_flags_without_a_place),
                                       cmocka_unit_test_setup(test_kiro, fresh),
                                       cmocka_unit_test_setup(test_while_written, fresh),
                                       cmocka_unit_test_setup(test_session_lives, fresh),
                                       cmocka_unit_test_setup(test_hostile, fresh),
                                       cmocka_unit_test_setup(test_super_journal, fresh),
                                       cmocka_unit_test_setup(test_other_program, fresh),
                                       cmocka_unit_test_setup(test_confined, fresh),
                                       cmocka_unit_test_setup(test_files, fresh)};
    const char *base = getenv("PF_TEST_DIR");
    snprintf(top, sizeof top, "%s/pf-agents-XXXXXX", base ? base : getenv("HOME") ? getenv("HOME") : "/var/tmp");
    if (!mkdtemp(top))
        return 2;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    sh("rm -rf %s", top);
    return failed;
}
