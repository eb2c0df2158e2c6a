/*
 * A person's own tool compares copies of both sides of a layer's changes, in a box of its own: it sees them read-only, has no network, and
 * whatever a file of the layer makes it do, it does there. Its directory is removed when it ends.
 */
#include "run/layer/layer_tool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "run/direct.h"
#include "sys/remove.h"

#define TOOL_LINE 4096

/* $1: the person's command, as a shell reads it; it gets both directories. */
static int run_tool(const char *tool, const char *dir, int *ret_status, struct err *e)
{
    const struct pinfold_option options[] = {{"workspace", dir}, {"read-only", NULL}, {"net", "none"}, {NULL, NULL}};
    const struct pinfold_policy_options po = {.size = sizeof po, .options = options, .cwd = dir, .no_layers = 1};
    char line[TOOL_LINE];
    const char *argv[] = {"sh", "-c", line, NULL};
    struct pinfold_policy *policy = NULL;
    struct pinfold_result *result = NULL;
    struct pinfold_error error = {0};
    const struct pinfold_run_options o = {.size = sizeof o, .argv = argv, .cwd = dir, .foreground = 1};
    if ((size_t)snprintf(line, sizeof line, "%s old new", tool) >= sizeof line)
        return err_say(e, ERR_POLICY, "--tool: the command is longer than %d bytes", TOOL_LINE);
    int r = pinfold_policy_load(&po, &policy, &error);
    if (r == 0)
        r = pinfold_run(policy, &o, &result, &error);
    if (r < 0)
        r = err_say(e, ERR_CANNOT, "--tool: there is no box for it: %s", error.text);
    else
        *ret_status = pinfold_result_status(result);
    pinfold_result_free(result);
    pinfold_policy_free(policy);
    return r;
}

static int copy_sides(const struct layer_trees *t, const struct changes *all, const bool *take, const char *dir,
                      struct arena *mem, struct apply_outcome *out, struct err *e)
{
    auto_fd int top = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (top < 0 || mkdirat(top, "old", 0700) < 0 || mkdirat(top, "new", 0700) < 0)
        return err_sys(e, ERR_SYSTEM, errno, "--tool: cannot make a directory in '%s'", dir);
    auto_fd int old = openat(top, "old", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    auto_fd int new = openat(top, "new", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (old < 0 || new < 0)
        return err_sys(e, ERR_SYSTEM, errno, "--tool: cannot open a directory in '%s'", dir);
    return sides_export(t, all, take, old, new, mem, out, e);
}

int layer_tool(const struct layer_trees *t, const struct changes *all, const bool *take, const char *tool,
               struct arena *mem, struct apply_outcome *out, int *ret_status, struct err *e)
{
    const char *tmp = getenv("TMPDIR");
    char *dir = arena_printf(mem, "%s/pinfold-diff-XXXXXX", tmp && *tmp == '/' ? tmp : "/var/tmp");
    if (!dir || !mkdtemp(dir))
        return err_sys(e, ERR_SYSTEM, dir ? errno : ENOMEM, "--tool: cannot make the directory '%s'", dir ? dir : "");
    int r = copy_sides(t, all, take, dir, mem, out, e);
    if (r == 0 && out->n_done)
        r = run_tool(tool, dir, ret_status, e);
    remove_tree(AT_FDCWD, dir);
    return r;
}
