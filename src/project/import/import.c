/*
 * Moves what volumes of agent-sandbox have to the shelf of a checkout: the order of boxes, and what a shell's history
 * is taken from. The volumes are hostile: they are read in boxes, and nothing there is changed.
 */
#include "project/import/import.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"

enum { HISTORY_MAX = 16 << 20, HASH_LEAST = 8 };

enum import_kind import_kind(const char *volume, const char *hash)
{
    static const char shelf[] = "agent-sbx-repo-", before[] = PROJECT_PREFIX, after[] = "-history";
    if (same(volume, "agent-sandbox-claude-code-config"))
        return IMPORT_CLAUDE;
    if (same(volume, "agent-sandbox-codex-config"))
        return IMPORT_CODEX;
    if (strncmp(volume, shelf, sizeof shelf - 1) == 0)
        return same(volume + sizeof shelf - 1, hash) ? IMPORT_SHELF : IMPORT_NOT_OURS;
    if (strncmp(volume, before, sizeof before - 1) != 0)
        return IMPORT_NOT_OURS;
    /* Of the hash as many digits as the tool took. */
    const char *said = volume + sizeof before - 1;
    const size_t n = strspn(said, "0123456789abcdef");
    return n >= HASH_LEAST && n < PROJECT_HASH && same(said + n, after) && strncmp(said, hash, n) == 0
               ? IMPORT_SHELLS
               : IMPORT_NOT_OURS;
}

int import_begin(struct import *m)
{
    m->held = -1;
    int r = shelf_of(m->real, &m->shelf, m->why, m->room);
    m->fresh = r == 0 && access(m->shelf.top, F_OK) < 0;
    return r < 0 ? r : shelf_scratch(&m->shelf, m->scratch, &m->held, m->why, m->room);
}

void import_end(struct import *m)
{
    char branches[PATH_MAX + 16], socket[PATH_MAX + 32];
    if (m->held < 0)
        return;
    shelf_scratch_end(&m->shelf, m->scratch);
    m->held = close_fd(m->held);
    /* What import_look() made for a project that gets no branch, unless a session began with it meanwhile. */
    snprintf(branches, sizeof branches, "%s/branches", m->shelf.top);
    snprintf(socket, sizeof socket, "%s/remote/.bind/socket", m->shelf.top);
    if (m->fresh && access(socket, F_OK) < 0 && (rmdir(branches) == 0 || errno == ENOENT))
        shelf_remove(&m->shelf);
}

int import_directory(struct import *m, const char *name, char ret[PATH_MAX])
{
    if (snprintf(ret, PATH_MAX, "%s/%s", m->scratch, name) >= PATH_MAX)
        return project_fail(m->why, m->room, ENAMETOOLONG, "'%s'", m->scratch);
    return mkdir(ret, 0700) == 0 ? 0 : project_fail(m->why, m->room, errno, "cannot make '%s'", ret);
}

/* What the script has to say; the last "why". */
static void import_hear(const struct import *m, const char *out)
{
    while (*out) {
        char line[1024];
        size_t n = strcspn(out, "\n");
        snprintf(line, sizeof line, "%.*s", (int)(n < sizeof line ? n : sizeof line - 1), out);
        out += n + (out[n] == '\n');
        if (strncmp(line, "why ", 4) == 0)
            snprintf(m->why, m->room, "it cannot be unpacked: %s", line + 4);
        else if (strncmp(line, "note ", 5) == 0 && m->say)
            m->say(line + 5);
    }
}

int import_unpack(struct import *m, const char *directory, const char *kind, int fd)
{
    char mount[2 * PATH_MAX];
    auto_buf struct buf text = BUF(1u << 16);
    buf_text(&text, project_script("unpack"));
    snprintf(mount, sizeof mount, "%s:" IMPORT_IN_BOX, directory);
    const struct pinfold_option options[] = {{"workspace", "/usr"}, {"hide", m->real},    {"read-only", NULL},
                                             {"net", "none"},       {"tty", "never"},     {"guard", "off"},
                                             {"mount", mount},      {"engine", "native"}, {NULL, NULL}};
    const char *const argv[] = {"/bin/sh", "-c", buf_cstr(&text), "pinfold", kind, NULL};
    const struct pinfold_policy_options po = {.size = sizeof po, .options = options, .cwd = "/", .no_layers = 1};
    const struct pinfold_run_options o = {
        .size = sizeof o, .argv = argv, .cwd = "/", .use_fds = 1, .stdin_fd = fd, .capture = 1};
    struct pinfold_error error = {0};
    struct pinfold_policy *policy;
    struct pinfold_result *result;
    if (pinfold_policy_load(&po, &policy, &error) < 0)
        return project_fail(m->why, m->room, 0, "%s", error.text);
    int r = pinfold_run(policy, &o, &result, &error);
    pinfold_policy_free(policy);
    if (r < 0)
        return project_fail(m->why, m->room, 0, "%s", error.text);
    m->why[0] = 0;
    import_hear(m, pinfold_result_stdout(result, NULL));
    int status = pinfold_result_status(result);
    pinfold_result_free(result);
    if (status && !m->why[0])
        snprintf(m->why, m->room, "it cannot be unpacked (status %d)", status);
    return status ? -EIO : 0;
}

/* ---- branches ---- */

static void import_line(void *ctx, const char *line)
{
    struct import *m = ctx;
    struct import_branch b = {.state = IMPORT_NEW};
    char state[8];
    if (sscanf(line, "old %240s %u %u %7s", b.name, &b.commits, &b.files, state) != 4 || branch_refused(b.name) ||
        m->n_branches == IMPORT_BRANCHES)
        return;
    char word[PROJECT_WORD], known[BRANCH_NAME_MAX + 1];
    branch_word(b.name, word);
    /* One that a killed run had begun is made again. */
    const bool begun = branch_read(&m->shelf, word, known) == BRANCH_MAKING;
    b.state = begun || same(state, "new") ? IMPORT_NEW : same(state, "same") ? IMPORT_SAME : IMPORT_OTHER;
    m->branches[m->n_branches++] = b;
}

/* The scripts besides those of one branch; in the box of any, whose worktree they leave alone. */
static int run_on_all(struct import *m, const char *directory, const char *how, const char *only)
{
    static struct project_box box;
    static const char *const names[] = {"import", NULL};
    char said[1024] = "";
    const struct branch_ask a = {.real = m->real,
                                 .branch = only ? only : "",
                                 .say = m->say,
                                 .why = m->why,
                                 .room = m->room,
                                 .unpacked = directory};
    int r = shelf_make(&m->shelf, m->real, ".bind", m->why, m->room);
    if (r == 0)
        r = project_box(m->real, only ? only : "main", false, &box, m->why, m->room);
    if (r < 0)
        return r;
    const struct branch_script s = {.ask = &a, .box = &box, .names = names, .how = how, .line = import_line, .ctx = m};
    r = branch_script_run(&s, said, sizeof said);
    if (r < 0 && said[0])
        (void)project_fail(m->why, m->room, 0, "its branches cannot be read: %s", said);
    return r;
}

int import_look(struct import *m, const char *directory, const char *only)
{
    m->n_branches = 0;
    int r = run_on_all(m, directory, "look", NULL);
    for (size_t i = 0; only && i < m->n_branches; i++) {
        if (same(m->branches[i].name, only)) {
            m->branches[0] = m->branches[i];
            m->n_branches = 1;
            return r;
        }
    }
    if (only)
        m->n_branches = 0;
    return r;
}

int import_branch(struct import *m, const char *directory, const char *name)
{
    static struct branch_ask a; /* it is still known to what goes by it when this returns */
    a = (struct branch_ask){.real = m->real, .branch = name, .why = m->why, .room = m->room, .unpacked = directory};
    return branch_provision(&a);
}

int import_rest(struct import *m, const char *directory, const char *only)
{
    return run_on_all(m, directory, "rest", only);
}

/* ---- history ---- */

/* Whole or not at all. */
static int land_history(const char *dir, const char *text, size_t n)
{
    char path[PATH_MAX + PROJECT_WORD + 32], beside[PATH_MAX + PROJECT_WORD + 32];
    snprintf(path, sizeof path, "%s/history", dir);
    snprintf(beside, sizeof beside, "%s/.history-%d", dir, (int)getpid());
    if (access(path, F_OK) == 0)
        return 1;
    (void)unlink(beside);
    auto_fd int fd = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    int r = fd < 0 ? -errno : fd_write_all(fd, text, n);
    if (r == 0 && link(beside, path) < 0)
        r = errno == EEXIST ? 1 : -errno;
    (void)unlink(beside);
    return r;
}

/* The file that bash wrote, under the names that images give it. */
static int open_history(const char *directory)
{
    static const char *const names[] = {".bash_history", "history", "bash_history"};
    auto_fd int dir = open(directory, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int fd = -ENOENT;
    for (size_t i = 0; dir >= 0 && fd < 0 && i < sizeof names / sizeof *names; i++)
        fd = openat(dir, names[i], O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    return fd;
}

struct histories {
    const struct import *m;
    const char *text;
    size_t n;
    int r;
};

static int put_of_branch(void *ctx, const char *word, const char *name)
{
    struct histories *h = ctx;
    char dir[PATH_MAX + PROJECT_WORD + 16];
    (void)name;
    snprintf(dir, sizeof dir, "%s/remote/%s", h->m->shelf.top, word);
    int r = land_history(dir, h->text, h->n);
    h->r = r < 0 || h->r == 1 ? r : h->r;
    return r < 0 ? r : 0;
}

int import_history(struct import *m, const char *directory)
{
    struct stat st;
    auto_fd int fd = open_history(directory);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size == 0)
        return 1;
    if (st.st_size > HISTORY_MAX)
        return project_fail(m->why, m->room, EFBIG, "the history is larger than 16 MiB");
    char *text = malloc((size_t)st.st_size);
    ssize_t n = text ? read(fd, text, (size_t)st.st_size) : -1;
    int r = n < 0 ? -errno : shelf_make(&m->shelf, m->real, ".bind", m->why, m->room);
    if (r == 0) {
        struct histories h = {m, text, (size_t)n, 1};
        (void)put_of_branch(&h, ".bind", NULL);
        if (h.r >= 0)
            (void)branch_each(&m->shelf, put_of_branch, &h);
        r = h.r;
    }
    free(text);
    m->fresh = m->fresh && r != 0; /* it stays */
    return r < 0 ? project_fail(m->why, m->room, -r, "the history cannot be written") : r;
}
