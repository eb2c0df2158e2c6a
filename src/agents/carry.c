/*
 * Sessions of an agent that keeps them as directories of lines in JSON, of all projects side by side, with more in them than
 * conversations (permissions, modes, plans, copies of files that it writes back): Copilot's. They are not shared, but carried from one side
 * to the other: those of this project, and of a session the lines that are conversation, each with the members that are named here. What is
 * not named, also of later versions, stays where it was made. A line is added where the other side has all that came before it.
 *
 * A box may have written one side. So a process does it that keeps no capability and is bound by Landlock to the two directories; no link is
 * followed.
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>
#include "agents/agents.h"
#include "agents/confine.h"
#include "base/fd.h"
#include "sys/fd.h"
#include "sys/file.h"
#include "sys/process.h"
#include "sys/socket.h"

#define SESSIONS "session-state"
#define EVENTS   "events.jsonl"
#define ABOUT    "workspace.yaml"

enum { ID_LENGTH = 36, SESSIONS_MAX = 4096, ABOUT_MAX = 1 << 16 };

struct carry {
    const struct agent_carrying *ask;
    size_t seen;
    struct agent_carried done;
};

/* ---- one line ---- */

struct line_kind {
    const char *type;
    const char *members[12]; /* of "data" */
};

static const struct line_kind kinds[] = {
    {"session.start",
     {"sessionId", "version", "producer", "copilotVersion", "startTime", "selectedModel", "reasoningEffort",
      "context"}},
    {"user.message", {"content", "transformedContent", "messageId", "interactionId", "turnId"}},
    {"assistant.message",
     {"messageId", "originatingMessageId", "model", "content", "toolRequests", "interactionId", "turnId", "phase"}},
    {"assistant.turn_start", {"turnId", "interactionId"}},
    {"assistant.turn_end", {"turnId"}},
    {"tool.execution_start", {"toolCallId", "toolName", "arguments", "turnId"}},
    {"tool.execution_complete", {"toolCallId", "success", "result", "error", "interactionId", "turnId"}},
    {"session.compaction_complete",
     {"success", "summaryContent", "preCompactionTokens", "preCompactionMessagesLength", "messagesRemoved",
      "tokensRemoved"}}};

/* Members that have members of their own: an object, or a list of such. */
static const struct line_kind parts[] = {{"context", {"cwd", "branch"}},
                                         {"toolRequests", {"toolCallId", "name", "arguments", "type"}},
                                         {"result", {"content"}},
                                         {"error", {"message", "code"}}};

static const struct line_kind *kind_of(const struct line_kind *all, size_t n, const char *type)
{
    for (size_t i = 0; type && i < n; i++) {
        if (strcmp(all[i].type, type) == 0)
            return &all[i];
    }
    return NULL;
}

static json_t *reduced(const struct line_kind *k, json_t *value)
{
    if (json_is_array(value)) {
        json_t *list = json_array(), *one;
        size_t i;
        json_array_foreach(value, i, one)
        {
            if (json_is_object(one))
                (void)json_array_append_new(list, reduced(k, one));
        }
        return list;
    }
    json_t *ret = json_object();
    for (size_t i = 0; i < sizeof k->members / sizeof *k->members && k->members[i]; i++) {
        const char *name = k->members[i];
        const struct line_kind *own = k >= parts && k < parts + sizeof parts / sizeof *parts
                                          ? NULL
                                          : kind_of(parts, sizeof parts / sizeof *parts, name);
        json_t *member = json_object_get(value, name);
        if (!member || (own && !json_is_object(member) && !json_is_array(member)))
            continue;
        if (own)
            (void)json_object_set_new(ret, name, reduced(own, member));
        else
            (void)json_object_set(ret, name, member);
    }
    return ret;
}

static bool is_below(const char *path, const char *above)
{
    const size_t n = strlen(above);
    return path && strncmp(path, above, n) == 0 && (!path[n] || path[n] == '/') && !strstr(path, "/../") &&
           (strlen(path) < 3 || strcmp(path + strlen(path) - 3, "/..") != 0);
}

/* What of a line is conversation, in one form whatever it was written like: malloc()ed; NULL: nothing. */
static char *kept_of(const struct carry *c, struct str line)
{
    json_t *j = json_loadb(line.p, line.n, JSON_REJECT_DUPLICATES, NULL), *data = json_object_get(j, "data");
    const char *type = json_string_value(json_object_get(j, "type"));
    const struct line_kind *k = kind_of(kinds, sizeof kinds / sizeof *kinds, type);
    char *ret = NULL;
    if (k && json_is_object(data)) {
        json_t *out = json_object(), *less = reduced(k, data), *context = json_object_get(less, "context");
        const char *cwd = json_string_value(json_object_get(context, "cwd"));
        if (context && !is_below(cwd, c->ask->workspace))
            (void)json_object_del(less, "context");
        (void)json_object_set_new(out, "type", json_string(type));
        (void)json_object_set_new(out, "data", less);
        static const char *const head[] = {"id", "timestamp", "parentId"};
        for (size_t i = 0; i < sizeof head / sizeof *head; i++) {
            json_t *one = json_object_get(j, head[i]);
            if (json_is_string(one) || json_is_null(one))
                (void)json_object_set(out, head[i], one);
        }
        ret = json_dumps(out, JSON_COMPACT | JSON_SORT_KEYS);
        json_decref(out);
    }
    json_decref(j);
    return ret;
}

/* ---- one session ---- */

struct said_lines {
    struct buf text; /* what is kept, a line each */
    bool whole;      /* the file ends with a whole line */
};

static void lines_of(const struct carry *c, struct str bytes, struct said_lines *ret)
{
    *ret = (struct said_lines){.text = BUF(AGENT_FILE_MAX)};
    ret->whole = !bytes.n || bytes.p[bytes.n - 1] == '\n';
    while (memchr(bytes.p, '\n', bytes.n)) { /* what follows the last one is being written */
        char *kept = kept_of(c, str_until(&bytes, '\n'));
        if (kept)
            buf_printf(&ret->text, "%s\n", kept);
        free(kept);
    }
}

static int open_below(int dir, const char *name, int flags)
{
    return sys_openat2(dir, name, (uint64_t)(unsigned)(flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY),
                       flags & O_CREAT ? 0600 : 0, RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH | RESOLVE_NO_XDEV);
}

static int read_below(int dir, const char *name, char **ret, size_t *ret_n)
{
    auto_fd int fd = open_below(dir, name, O_RDONLY);
    return fd < 0 ? fd : agent_file_read(fd, ret, ret_n);
}

/* "key: value" of what it says of a session, in a flat YAML; "" when it does not. A quoted value is read as JSON. */
static void about(struct str text, const char *key, char *ret, size_t room)
{
    const size_t n = strlen(key);
    *ret = 0;
    while (text.n) {
        struct str line = str_until(&text, '\n');
        if (line.n < n + 2 || memcmp(line.p, key, n) != 0 || line.p[n] != ':' || line.p[n + 1] != ' ')
            continue;
        line = str_skip(line, n + 2);
        json_t *j = line.n && *line.p == '"' ? json_loadb(line.p, line.n, JSON_DECODE_ANY, NULL) : NULL;
        const char *value = json_string_value(j);
        if (j ? value && strlen(value) < room : line.n < room && line.p[0] != '\'' && line.p[0] != '"')
            snprintf(ret, room, "%.*s", j ? (int)room : (int)line.n, j ? value : line.p);
        json_decref(j);
        return;
    }
}

static void put_about(struct buf *to, struct str from, const char *id, const char *cwd)
{
    static const char texts[][12] = {"branch", "name", "created_at", "updated_at"};
    json_t *value = json_string(cwd);
    char *shown = json_dumps(value, JSON_ENCODE_ANY);
    buf_printf(to, "id: %s\ncwd: %s\n", id, shown ? shown : "\"\"");
    free(shown);
    json_decref(value);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char said[512];
        about(from, texts[i], said, sizeof said);
        value = *said ? json_string(said) : NULL;
        shown = value ? json_dumps(value, JSON_ENCODE_ANY) : NULL;
        if (shown) /* dates are read as such where they stand alone */
            buf_printf(to, "%s: %s\n", texts[i],
                       strspn(said, "0123456789-:.TZ") == strlen(said) && strstr(texts[i], "_at") ? said : shown);
        free(shown);
        json_decref(value);
    }
}

/* A new one has its name only when it is whole. */
static int make_session(int to, const char *id, struct str from, const char *cwd, const struct said_lines *lines)
{
    char temp[ID_LENGTH + 32];
    auto_buf struct buf text = BUF(ABOUT_MAX);
    put_about(&text, from, id, cwd);
    snprintf(temp, sizeof temp, ".pinfold-%s", id);
    if (!buf_ok(&text) || (mkdirat(to, temp, 0700) < 0 && errno != EEXIST))
        return -errno;
    auto_fd int dir = open_below(to, temp, O_RDONLY | O_DIRECTORY);
    int no = dir < 0 ? dir : agent_file_put(dir, ABOUT, text.p, text.n);
    if (no == 0)
        no = agent_file_put(dir, EVENTS, buf_cstr(&lines->text), lines->text.n);
    if (no == 0)
        no = sys_rename_new(to, temp, to, id);
    if (no < 0 && dir >= 0) { /* the other side has made it meanwhile, or the disk is full */
        (void)unlinkat(dir, ABOUT, 0);
        (void)unlinkat(dir, EVENTS, 0);
        (void)unlinkat(to, temp, AT_REMOVEDIR);
    }
    return no;
}

/* Of `have` what `other` has not, if that has all that came before; in one write, as the agent does it. */
static int add_lines(int dir, const struct said_lines *have, const struct said_lines *other)
{
    const size_t n = other->text.n;
    if (!other->whole || have->text.n <= n || memcmp(buf_cstr(&have->text), buf_cstr(&other->text), n) != 0)
        return 0;
    auto_fd int fd = open_below(dir, EVENTS, O_WRONLY | O_APPEND);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_nlink != 1)
        return fd < 0 ? fd : -EINVAL;
    const size_t more = have->text.n - n;
    const long wrote = sys_write(fd, have->text.p + n, more);
    return wrote < 0 ? (int)wrote : (size_t)wrote == more ? 0 : -ENOSPC;
}

static int carry_one(struct carry *c, int from, int to, const char *id)
{
    char *text = NULL, *events = NULL, *there = NULL, cwd[4096], named[ID_LENGTH + 2];
    size_t n = 0, events_n = 0, there_n = 0;
    int no = read_below(from, ABOUT, &text, &n);
    const struct str said = {text, no == 0 && n <= ABOUT_MAX ? n : 0};
    about(said, "cwd", cwd, sizeof cwd);
    about(said, "id", named, sizeof named);
    if (is_below(cwd, c->ask->workspace) && strcmp(named, id) == 0) {
        struct said_lines have, other;
        no = read_below(from, EVENTS, &events, &events_n);
        auto_fd int dir = open_below(to, id, O_RDONLY | O_DIRECTORY);
        const int was = dir < 0 ? dir : read_below(dir, EVENTS, &there, &there_n);
        c->done.large += no == -EFBIG || was == -EFBIG;
        lines_of(c, (struct str){events ? events : "", no == 0 ? events_n : 0}, &have);
        lines_of(c, (struct str){there ? there : "", was == 0 ? there_n : 0}, &other);
        if (no == 0 && have.text.n && buf_ok(&have.text) && buf_ok(&other.text))
            no = dir == -ENOENT ? make_session(to, id, said, cwd, &have) : was == 0 ? add_lines(dir, &have, &other) : 0;
        buf_free(&have.text);
        buf_free(&other.text);
    }
    free(text);
    free(events);
    free(there);
    return no == -ENOSPC || no == -EDQUOT || no == -EROFS ? no : 0; /* others are of that session */
}

static bool is_id(const char *name)
{
    return strlen(name) == ID_LENGTH && strspn(name, "0123456789abcdef-") == ID_LENGTH;
}

static int carry_all(struct carry *c)
{
    char room[4096] __attribute__((aligned(8)));
    auto_fd int from = open_below(c->ask->from, SESSIONS, O_RDONLY | O_DIRECTORY);
    if (from < 0)
        return from == -ENOENT ? 0 : from;
    if (mkdirat(c->ask->to, SESSIONS, 0700) < 0 && errno != EEXIST)
        return -errno;
    auto_fd int to = open_below(c->ask->to, SESSIONS, O_RDONLY | O_DIRECTORY);
    struct sys_entries all = {.dir = from, .room = room, .bytes = sizeof room};
    int no = to < 0 ? to : 0;
    for (const struct sys_dirent *d; no == 0 && (d = sys_next_entry(&all)) && c->seen++ < SESSIONS_MAX;) {
        auto_fd int one = is_id(d->name) ? open_below(from, d->name, O_RDONLY | O_DIRECTORY) : -1;
        if (one >= 0)
            no = carry_one(c, one, to, d->name);
    }
    return no < 0 ? no : all.no;
}

/* ---- the process ---- */

static int carry_bind(const struct agent_carrying *ask)
{
    struct agent_rules r;
    int no = agent_rules_begin(&r);
    if (no == 0)
        no = agent_rules_allow(&r, ask->from, AGENT_LOOKS);
    if (no == 0)
        no = agent_rules_allow(&r, ask->to, AGENT_MOVES);
    return no < 0 ? no : agent_confine(&r);
}

static _Noreturn void carry_alone(struct carry *c, int say_to)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    c->done.no = carry_bind(c->ask);
    if (c->done.no == 0)
        c->done.no = carry_all(c);
    (void)sys_send(say_to, &c->done, sizeof c->done, MSG_NOSIGNAL);
    _exit(0);
}

int agent_carry(const struct agent_carrying *ask, struct agent_carried *ret, struct err *e)
{
    struct carry c = {.ask = ask};
    int pair[2], status;
    *ret = (struct agent_carried){0};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(e, ERR_SYSTEM, errno, "cannot create a socket pair");
    pid_t pid = fork();
    if (pid == 0) {
        (void)close(pair[0]);
        carry_alone(&c, pair[1]);
    }
    (void)close(pair[1]);
    long got = pid < 0 ? -errno : agent_hear(pair[0], agent_patience(), ret, sizeof *ret);
    (void)close(pair[0]);
    if (pid > 0) {
        (void)kill(pid, SIGKILL);
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            ;
    }
    const int no = got == (long)sizeof *ret ? ret->no : got < 0 ? (int)got : -EIO;
    return no < 0 ? err_sys(e, ERR_SYSTEM, -no, "the sessions of the agent cannot be brought to %s", ask->shown) : 0;
}
