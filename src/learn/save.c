/*
 * Reads the project's policy before the passes, and writes it after them: completely or not at all, checked, and
 * trusted. The file may be another's meanwhile: what changed since it was read is not overwritten.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "learn/learn.h"
#include "user/replace.h"
#include "user/umask.h"

#define BESIDE ".policy.yaml.learned"
#define NAME   "policy.yaml"

enum { MAX_FILE = 1 << 20 };

/* The file's text in `mem`; NULL with 0: there is none. */
static int read_policy(struct learn *l, int dir, const char **ret, struct pinfold_error *error)
{
    struct stat st;
    auto_buf struct buf text = BUF(MAX_FILE);
    auto_fd int fd = openat(dir, NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    *ret = NULL;
    if (fd < 0 && errno == ENOENT)
        return 0;
    if (fd < 0 || fstat(fd, &st) < 0)
        return learn_fail(error, errno, "cannot read '%s/" LEARN_POLICY "': %s", l->workspace, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return learn_fail(error, EINVAL, "'%s/" LEARN_POLICY "' must be a file", l->workspace);
    const int no = fd_read_all(fd, &text);
    if (no < 0)
        return learn_fail(error, -no, "cannot read '%s/" LEARN_POLICY "': %s", l->workspace,
                          no == -EFBIG ? "it is too large" : strerror(-no));
    if (memchr(buf_cstr(&text), 0, text.n))
        return learn_fail(error, EINVAL, "'%s/" LEARN_POLICY "' must be a text", l->workspace);
    *ret = arena_text(l->mem, buf_cstr(&text));
    return *ret ? 0 : learn_memory(error);
}

static int open_directory(const struct learn *l, bool make, struct pinfold_error *error)
{
    auto_fd int top = open(l->workspace, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (top < 0)
        return learn_fail(error, errno, "cannot open '%s': %s", l->workspace, strerror(errno));
    if (make && mkdirat(top, ".pinfold", 0755) < 0 && errno != EEXIST)
        return learn_fail(error, errno, "cannot create '%s/.pinfold': %s", l->workspace, strerror(errno));
    int fd = openat(top, ".pinfold", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && (make || errno != ENOENT))
        return learn_fail(error, errno, "'%s/.pinfold' must be a directory, no link", l->workspace);
    return fd < 0 ? -ENOENT : fd;
}

int learn_look(struct learn *l, struct pinfold_error *error)
{
    auto_fd int dir = open_directory(l, false, error);
    l->before = NULL;
    return dir == -ENOENT ? 0 : dir < 0 ? dir : read_policy(l, dir, &l->before, error);
}

/* The text for itself; its relative paths start at the project, as they do in the file that it becomes. */
static int check_written(const struct learn *l, const char *text, struct pinfold_error *error)
{
    const struct pinfold_policy_options o = {.size = sizeof o, .text = text, .no_layers = 1, .cwd = l->workspace};
    struct pinfold_policy *policy;
    int r = pinfold_policy_load(&o, &policy, error);
    if (r == 0)
        pinfold_policy_free(policy);
    return r;
}

static int write_beside(const struct learn *l, int dir, struct str text, struct pinfold_error *error)
{
    struct stat st = {.st_mode = umask_leaves(0644)};
    (void)fstatat(dir, NAME, &st, AT_SYMLINK_NOFOLLOW);
    const int r = file_make(dir, BESIDE, text, st.st_mode & 0777);
    return r < 0 ? learn_fail(error, -r, "cannot write '%s/" LEARN_POLICY "': %s", l->workspace, strerror(-r)) : 0;
}

/* The directory whose policy this is may be another user's; what they change meanwhile is not overwritten. */
static int replace(struct learn *l, int dir, struct str text, struct pinfold_error *error)
{
    const char *now;
    int r = write_beside(l, dir, text, error);
    if (r == 0)
        r = check_written(l, text.p, error);
    if (r == 0)
        r = read_policy(l, dir, &now, error);
    if (r == 0 && (!now != !l->before || (now && strcmp(now, l->before) != 0)))
        r = learn_fail(error, EINVAL, "'%s/" LEARN_POLICY "' was changed while the command ran; nothing was written",
                       l->workspace);
    if (r < 0) {
        (void)unlinkat(dir, BESIDE, 0);
        return r;
    }
    r = file_take_place(dir, BESIDE, NAME);
    return r < 0 ? learn_fail(error, -r, "cannot write '%s/" LEARN_POLICY "': %s", l->workspace, strerror(-r)) : 0;
}

/* With the rest of what is in force here, and with the options that were given. */
static int stands(const struct learn *l, struct pinfold_error *error)
{
    struct pinfold_policy *policy;
    int r = pinfold_policy_load(&l->policy, &policy, error);
    if (r == 0)
        pinfold_policy_free(policy);
    return r;
}

/* But not over what somebody else has put there since. */
static void put_back(struct learn *l, int dir, const char *path, const char *written)
{
    struct pinfold_error ignored = {0};
    const char *now = NULL;
    if (read_policy(l, dir, &now, &ignored) < 0 || !now || strcmp(now, written) != 0)
        return;
    if (!l->before) {
        (void)unlinkat(dir, NAME, 0);
    } else if (write_beside(l, dir, str_of(l->before), &ignored) == 0 && file_take_place(dir, BESIDE, NAME) == 0) {
        (void)l->trust(path, str_of(l->before), &ignored);
    }
}

int learn_save(struct learn *l, const char **ret_path, struct pinfold_error *error)
{
    auto_buf struct buf text = BUF(2 * MAX_FILE);
    size_t n = 0;
    *ret_path = NULL;
    for (size_t i = 0; i < l->n_rules; i++)
        n += l->rules[i]->answer == LEARN_ALLOW && !l->rules[i]->gone;
    if (n == 0)
        return 0;
    int r = learn_merge(l, l->before, &text, error);
    auto_fd int dir = r < 0 ? -1 : open_directory(l, true, error);
    if (r == 0)
        r = dir < 0 ? dir : replace(l, dir, buf_view(&text), error);
    if (r < 0)
        return r;
    *ret_path = arena_printf(l->mem, "%s/" LEARN_POLICY, l->workspace);
    if (!*ret_path)
        return learn_memory(error);
    /* The old text was in force when the passes began, so it was trusted or did not need to be. */
    r = l->trust(*ret_path, buf_view(&text), error);
    if (r >= 0)
        r = stands(l, error);
    if (r < 0)
        put_back(l, dir, *ret_path, buf_cstr(&text));
    return r < 0 ? r : 0;
}
