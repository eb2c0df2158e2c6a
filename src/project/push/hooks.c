/*
 * Has the person's hooks judge one commit as git would have at its making: a new work tree with its files, an index with its tree, its
 * first parent as HEAD, its author in the environment. In a box of its own, which is thrown away; checks.c starts it.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "project/push/push.h"

#define SAID CHECK_IN_BOX "/.said" /* what the last program has written */

enum { TEXT_MAX = 64 << 20, TAIL = 4096, TAIL_LINES = 12, NAMES_SHOWN = 8, TREE_DEPTH = 256, TICKS = 100 };

struct judged {
    const char *name, *real;                   /* of the project, and of its directory here; the checkout's path */
    const char *hooks;                         /* their directory */
    const char *commit, *tree, *ref, *parents; /* of the commit; the last with commas, "-" for none */
};

static int wrote(const char *sentence)
{
    printf("%s\n", sentence);
    return HOOKS_CANNOT;
}

/* The end of what the last program has written. */
static void show_end(unsigned lines)
{
    static char end[TAIL + 1];
    auto_fd int fd = open(SAID, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    off_t size = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
    ssize_t n = size > 0 ? pread(fd, end, TAIL, size > TAIL ? size - TAIL : 0) : 0;
    size_t at = n > 0 ? (size_t)n : 0;
    end[at] = 0;
    for (unsigned seen = 0; at; at--) {
        if (end[at - 1] == '\n' && end[at] && ++seen == lines)
            break;
    }
    printf("%s", end + at);
}

static bool make_path(char *path)
{
    for (char *at = path + 1; (at = strchr(at, '/')); at++) {
        *at = 0;
        bool good = mkdir(path, 0755) == 0 || errno == EEXIST;
        *at = '/';
        if (!good)
            return false;
    }
    return true;
}

/* A file below the work tree, with the directories on the way to it. */
static bool lay_file(const char *name, const char *text)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s", name);
    return make_path(path) && push_keep(name, str_of(text));
}

static bool copy_file(const char *from, const char *to)
{
    auto_buf struct buf text = BUF(TEXT_MAX);
    return push_recall(from, &text) && push_keep(to, buf_view(&text));
}

/* What tools have installed beside the checkout's files is the person's; a work tree that is new has none of it. */
static void link_tools(const struct judged *j)
{
    static const char *const tools[] = {"node_modules", ".venv", "venv"};
    auto_buf struct buf ignored = BUF(4096);
    for (size_t i = 0; i < sizeof tools / sizeof *tools; i++) {
        char path[PATH_MAX];
        struct stat st;
        snprintf(path, sizeof path, "%s/%s", j->real, tools[i]);
        if (stat(path, &st) == 0 && S_ISDIR(st.st_mode) && symlink(path, tools[i]) == 0)
            buf_printf(&ignored, "/%s\n", tools[i]);
    }
    if (ignored.n)
        (void)lay_file(".git/info/exclude", buf_cstr(&ignored));
}

static bool prepare_repository(const struct judged *j)
{
    char top[PATH_MAX], parent[80], path[PATH_MAX];
    auto_buf struct buf text = BUF(PATH_MAX);
    const size_t first = strcspn(j->parents, ",");
    snprintf(top, sizeof top, CHECK_IN_BOX "/%s/", j->name);
    if (!make_path(top) || chdir(top) < 0)
        return false;
    buf_printf(&text, "[core]\n\trepositoryformatversion = %d\n", strlen(j->commit) == 64);
    buf_text(&text, strlen(j->commit) == 64 ? "[extensions]\n\tobjectformat = sha256\n" : "");
    bool good = lay_file(".git/config", buf_cstr(&text)) &&
                lay_file(".git/objects/info/alternates", PUSH_IN_BOX "/repo/objects\n");
    buf_free(&text);
    text = BUF(PATH_MAX);
    buf_printf(&text, "ref: %s\n", j->ref);
    good = good && lay_file(".git/HEAD", buf_cstr(&text)) && (mkdir(".git/refs", 0755) == 0);
    if (good && access(PUSH_IN_BOX "/repo/shallow", F_OK) == 0)
        good = copy_file(PUSH_IN_BOX "/repo/shallow", ".git/shallow");
    if (!good || same(j->parents, "-"))
        return good;
    snprintf(parent, sizeof parent, "%.*s\n", (int)first, j->parents);
    snprintf(path, sizeof path, ".git/%s", j->ref);
    if (!lay_file(path, parent))
        return false;
    if (!j->parents[first])
        return true;
    auto_buf struct buf merged = BUF(4096);
    for (struct str rest = str_of(j->parents + first + 1); rest.n;) {
        struct str id = str_until(&rest, ',');
        buf_printf(&merged, "%.*s\n", (int)id.n, id.p);
    }
    return lay_file(".git/MERGE_HEAD", buf_cstr(&merged));
}

/* Starts git; what it writes is in SAID. */
static pid_t begin_git(const char *const *argv)
{
    auto_fd int said = open(SAID, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    return said < 0 ? -1 : push_git(argv, NULL, -1, said, said);
}

/* The variables that git sets for hooks of a commit. */
static void set_author(const struct judged *j)
{
    static const char *const names[] = {"GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_DATE"};
    char path[PATH_MAX];
    auto_buf struct buf text = BUF(TEXT_MAX);
    snprintf(path, sizeof path, PUSH_IN_BOX "/commits/%s.author", j->commit);
    (void)push_recall(path, &text);
    struct str rest = buf_view(&text);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        auto_buf struct buf one = BUF(TEXT_MAX);
        buf_str(&one, str_until(&rest, '\n'));
        (void)setenv(names[i], buf_cstr(&one), 1);
    }
    (void)setenv("GIT_INDEX_FILE", ".git/index", 1);
    (void)setenv("GIT_EDITOR", ":", 1);
    (void)setenv("GIT_PREFIX", "", 1);
}

/* Whether there is such a hook, by its path. As git has it, one that cannot be executed is none. */
static bool find_hook(const struct judged *j, const char *hook, char path[PATH_MAX])
{
    snprintf(path, PATH_MAX, "%s/%s", j->hooks, hook);
    return access(path, X_OK) == 0;
}

/* 0 if it passed, or what the box ends with. */
static int run_hook(const struct judged *j, const char *hook, const char *arg)
{
    char path[PATH_MAX];
    auto_fd int said = open(SAID, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (said < 0 || !find_hook(j, hook, path))
        return wrote("the hooks have no place for what they write");
    pid_t child = fork();
    if (child == 0) {
        int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
        (void)dup2(nothing, 0);
        (void)dup2(said, 1);
        (void)dup2(said, 2);
        set_author(j);
        for (int s = 1; s < 32; s++)
            (void)signal(s, SIG_DFL); /* what the process that serves the remote ignores is its own affair */
        (void)execl(path, path, arg, (char *)NULL);
        if (errno == ENOEXEC)
            (void)execl("/bin/sh", "sh", path, arg, (char *)NULL);
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        _exit(127);
    }
    int status = push_wait(child);
    if (status == 0)
        return 0;
    printf("the hook %s failed with status %d\n", hook, status);
    show_end(TAIL_LINES);
    return HOOKS_FAILED;
}

static int judge_message(const struct judged *j)
{
    static const char edited[] = ".git/COMMIT_EDITMSG";
    char path[PATH_MAX];
    auto_buf struct buf before = BUF(TEXT_MAX), after = BUF(TEXT_MAX);
    if (!find_hook(j, "commit-msg", path))
        return 0;
    snprintf(path, sizeof path, PUSH_IN_BOX "/commits/%s", j->commit);
    if (!push_recall(path, &before) || !push_keep(edited, buf_view(&before)))
        return wrote("its message cannot be read");
    int r = run_hook(j, "commit-msg", edited);
    if (r != 0 || (push_recall(edited, &after) && str_eq(buf_view(&before), buf_view(&after))))
        return r;
    printf("the hook commit-msg changes the message\n");
    return HOOKS_CHANGE_MESSAGE;
}

/* ---- whether hooks change files ---- */

struct looks {
    struct buf text; /* of each name in the work tree its path, what it is, and when it was last changed */
    struct timespec last;
};

static bool is_later(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec != b->tv_sec ? a->tv_sec > b->tv_sec : a->tv_nsec > b->tv_nsec;
}

/* False: it cannot be seen. */
static bool look_into(int dir, const char *path, unsigned depth, struct looks *to)
{
    auto_fd int own = openat(dir, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = own < 0 || depth == TREE_DEPTH ? NULL : fdopendir(own);
    bool good = d != NULL;
    if (d)
        (void)take_fd(&own);
    while (good) {
        struct stat st;
        errno = 0;
        const struct dirent *e = readdir(d);
        if (!e) {
            good = errno == 0;
            break;
        }
        if (same(e->d_name, ".") || same(e->d_name, "..") || (depth == 0 && same(e->d_name, ".git")))
            continue;
        good = fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0;
        if (!good)
            break;
        if (is_later(&st.st_ctim, &to->last))
            to->last = st.st_ctim;
        buf_printf(&to->text, "%s %llx %o %llx %llx.%lx\n", e->d_name, (unsigned long long)st.st_ino, st.st_mode,
                   (unsigned long long)st.st_size, (unsigned long long)st.st_ctim.tv_sec, st.st_ctim.tv_nsec);
        good = buf_ok(&to->text) && (!S_ISDIR(st.st_mode) || look_into(dirfd(d), e->d_name, depth + 1, to));
    }
    if (d)
        (void)closedir(d);
    return good;
}

/*
 * How all files are before a hook runs. It counts only if the kernel's clock of files has ticked since the last of them was changed: then
 * whatever changes one gives it another time, which nobody can set. The work tree was laid a program ago, so that is soon.
 */
static bool look_before(struct looks *to)
{
    static const struct timespec shortly = {.tv_nsec = 200000};
    struct timespec now;
    *to = (struct looks){.text = BUF(TEXT_MAX)};
    if (!look_into(AT_FDCWD, ".", 0, to))
        return false;
    for (int i = 0; i < TICKS; i++) {
        if (clock_gettime(CLOCK_REALTIME_COARSE, &now) == 0 && is_later(&now, &to->last))
            return true;
        (void)nanosleep(&shortly, NULL);
    }
    return false;
}

static bool is_untouched(const struct looks *before)
{
    struct looks now = {.text = BUF(TEXT_MAX)};
    const bool good = look_into(AT_FDCWD, ".", 0, &now) && str_eq(buf_view(&now.text), buf_view(&before->text));
    buf_free(&now.text);
    return good;
}

/* Names that differ, of those that git tracks. */
static int changed(const char *const *argv)
{
    auto_buf struct buf names = BUF(TEXT_MAX);
    if (push_wait(begin_git(argv)) != 0 || !push_recall(SAID, &names))
        return wrote("whether the hooks have changed files cannot be seen");
    struct str rest = buf_view(&names);
    if (!rest.n)
        return 0;
    printf("the hook pre-commit changes files\n");
    for (int i = 0; i < NAMES_SHOWN && rest.n; i++) {
        struct str line = str_until(&rest, '\n');
        printf("%.*s\n", (int)line.n, line.p);
    }
    return HOOKS_CHANGE_FILES;
}

static int judge_files(const struct judged *j)
{
    static const char *const in_tree[] = {"git", "diff", "--name-only", "--no-ext-diff", "--ignore-submodules", NULL};
    const char *const in_index[] = {"git",   "diff-index", "--cached", "--name-only", "--ignore-submodules",
                                    j->tree, NULL};
    char path[PATH_MAX];
    auto_buf struct buf before = BUF(TEXT_MAX), after = BUF(TEXT_MAX);
    if (!find_hook(j, "pre-commit", path))
        return 0;
    const bool known = push_recall(".git/index", &before);
    struct looks looks;
    const bool looked = look_before(&looks);
    int r = run_hook(j, "pre-commit", NULL);
    const bool same_index = known && push_recall(".git/index", &after) && str_eq(buf_view(&before), buf_view(&after));
    /* git is asked which of them differ from the index only if any can: also if a hook has left new files. */
    if (r == 0 && !(looked && same_index && is_untouched(&looks)))
        r = changed(in_tree);
    if (r == 0 && !same_index)
        r = changed(in_index);
    buf_free(&looks.text);
    return r;
}

/* The work tree, when read-tree ends with 0. -1: it cannot be made. */
pid_t hooks_begin(char *const *words)
{
    const struct judged j = {words[0], words[1], words[2], words[3], words[4], words[5], words[6]};
    const char *const fill[] = {"git", "read-tree", "-u", "--reset", j.commit, NULL};
    (void)setenv("GIT_TERMINAL_PROMPT", "0", 1);
    (void)setenv("GIT_LFS_SKIP_SMUDGE", "1",
                 1); /* there is nobody to have the large files from: pointers stay pointers */
    return prepare_repository(&j) ? begin_git(fill) : -1;
}

int hooks_end(char *const *words, pid_t filling)
{
    const struct judged j = {words[0], words[1], words[2], words[3], words[4], words[5], words[6]};
    int r = 0;
    if (filling < 0)
        return wrote("a work tree for it cannot be made");
    if (push_wait(filling) != 0) {
        show_end(3);
        r = HOOKS_CANNOT;
    }
    link_tools(&j);
    if (r == 0)
        r = judge_message(&j); /* first: before anything of this tree can have run */
    if (r == 0)
        r = judge_files(&j);
    return fflush(stdout) == 0 ? r : HOOKS_CANNOT;
}

int hooks_judge(char *const *words)
{
    return hooks_end(words, hooks_begin(words));
}
