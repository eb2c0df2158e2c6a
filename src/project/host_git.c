/*
 * The git directory that a push to the checkout changes, and the box in which git answers one: it can change that directory, or only
 * read it, and does not see the checkout's files.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "project/branch.h"
#include "project/push/push.h"
#include "project/rules.h"

static bool read_line(const char *path, char ret[PATH_MAX])
{
    auto_fd int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, ret, PATH_MAX - 1);
    if (n <= 0)
        return false;
    ret[n] = 0;
    ret[strcspn(ret, "\n")] = 0;
    return true;
}

/* In its caller's frame the path would be one too many. */
__attribute__((noinline)) static bool joined(const char *base, const char *path, char ret[PATH_MAX])
{
    char room[2 * PATH_MAX];
    int n = path[0] == '/' ? snprintf(room, sizeof room, "%s", path) : snprintf(room, sizeof room, "%s/%s", base, path);
    return n > 0 && n < (int)sizeof room && realpath(room, ret);
}

/* Worktrees are kept in the repository that they are of. */
static bool is_kept_in(const char *own, const char *common)
{
    const size_t n = strlen(common);
    if (strncmp(own, common, n) != 0 || strncmp(own + n, "/worktrees/", 11) != 0)
        return false;
    const char *name = own + n + 11;
    return *name && !strchr(name, '/');
}

/*
 * Where .git is a directory, that one, unless it says that another one is the repository. Where it is a file, a box that has the checkout
 * may have written it, and what it names, too: that counts only if it lies in the repository whose worktree it says to be, which no box
 * gets to write that has not got the repository, and if it names this checkout.
 */
int host_git_directory(const char *real, char ret[PATH_MAX])
{
    char git[PATH_MAX + 8], said[PATH_MAX], own[PATH_MAX], path[PATH_MAX + 24], back[PATH_MAX];
    struct stat st;
    snprintf(git, sizeof git, "%s/.git", real);
    if (lstat(git, &st) < 0)
        return -errno;
    if (S_ISDIR(st.st_mode)) {
        snprintf(path, sizeof path, "%s/commondir", git);
        return lstat(path, &st) == 0 ? -EINVAL : realpath(git, ret) ? 0 : -errno;
    }
    if (!S_ISREG(st.st_mode) || !read_line(git, said) || strncmp(said, "gitdir: ", 8) != 0 ||
        !joined(real, said + 8, own))
        return -EINVAL;
    snprintf(path, sizeof path, "%s/gitdir", own);
    if (!read_line(path, back) || !same(back, git))
        return -EINVAL;
    snprintf(path, sizeof path, "%s/commondir", own);
    return read_line(path, said) && joined(own, said, ret) && is_kept_in(own, ret) ? 0 : -EINVAL;
}

const char *host_program(void)
{
    static char program[2 * PATH_MAX], self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = 0;
    snprintf(program, sizeof program, "%s:" REMOTE_HERE ":ro", self);
    return program;
}

int host_git_box(const struct host_git *h, struct pinfold_error *error)
{
    static char stage[2 * PATH_MAX], more[2 * PATH_MAX];
    snprintf(stage, sizeof stage, "%s:" PUSH_IN_BOX "%s", h->stage ? h->stage : "", h->writes ? ":ro" : "");
    struct pinfold_option options[16] = {{"workspace", h->git}, {"hide", h->real},  {"net", "none"},
                                         {"tty", "never"},      {"timeout", "15m"}, {"mount", host_program()}};
    size_t n_options = 6;
    options[n_options++] = h->writes ? (struct pinfold_option){"rw", h->git} : (struct pinfold_option){"ro", h->git};
    if (!h->writes)
        options[n_options++] = (struct pinfold_option){"read-only", NULL};
    if (h->stage)
        options[n_options++] = (struct pinfold_option){"mount", stage};
    snprintf(more, sizeof more, "%s:" MORE_IN_BOX ":ro", h->more ? h->more : "");
    if (h->more)
        options[n_options++] = (struct pinfold_option){"mount", more};
    const struct pinfold_policy_options po = {.size = sizeof po, .options = options, .cwd = h->git, .no_layers = 1};
    const char *argv[RULES_WORDS + 2] = {REMOTE_HERE, h->word};
    (void)push_rules_words(h->rules, argv + 2);
    auto_fd int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    const struct pinfold_run_options o = {.size = sizeof o,
                                          .argv = argv,
                                          .cwd = h->git,
                                          .use_fds = 1,
                                          .stdin_fd = h->in ? h->in : h->fd,
                                          .stdout_fd = h->fd,
                                          .stderr_fd = nothing};
    struct pinfold_policy *policy;
    struct pinfold_result *result;
    int r = pinfold_policy_load(&po, &policy, error);
    if (r < 0)
        return r;
    r = pinfold_run(policy, &o, &result, error);
    pinfold_policy_free(policy);
    if (r < 0)
        return r;
    r = pinfold_result_status(result);
    pinfold_result_free(result);
    return r;
}
