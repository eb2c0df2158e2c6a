/*
 * The engine bubblewrap (bwrap). It creates the user, mount, IPC, UTS and network namespaces, the root and every
 * writable place in it. pinfold-init gets the capabilities of its user namespace, runs the rest of the plan, and drops
 * them before the first command (docs/internals/backends.md).
 *
 * Why no more of bwrap's options are used:
 *   --bind SRC DST  follows links (CVE-2026-87766), so a place that another box can write around is only bound on itself:
 *                   the plan's own step then clones it by descriptor, refusing links, and ENTER makes the rest read-only
 *   --tmpfs, --dir  their mount points would be created, or followed, in the same way; and ENTER would close them
 *   --dev           moves into a second user namespace afterwards, whose capabilities do not apply to the mounts
 *   --proc          shows the processes of its pid namespace; pid 1 of the box has its own, below
 *   --unshare-pid   the guard must be an ancestor of every process of the box, but not among them
 *   --setenv        shows values to everybody who may list processes
 *   --seccomp       pid 1 must install the filter with the guard's listener
 */
#include <sched.h>
#include <sys/stat.h>

#include "backends/probe.h"
#include "backends/tools/tool.h"
#include "user/packages.h"

#define BWRAP_NAMESPACES (CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNET)

static int bwrap_probe(struct facts *f, struct arena *mem, bool thorough, struct err *e)
{
    struct stat st;
    int r = native_probe(f, mem, thorough, e);
    f->engine = "bwrap";
    if (r < 0)
        return r;
    f->tool = tool_find(mem, "bwrap");
    if (!f->tool)
        return err_say(e, ERR_CANNOT, "bwrap is not installed (%s)",
                       package_install("bubblewrap", (char[PACKAGE_WORDS]){0}));
    if (f->tier != TIER_NAMESPACES)
        return tool_no_namespaces(f, e);
    if (stat(f->tool, &st) == 0 && st.st_mode & S_ISUID && f->uid != 0)
        return err_say(e, ERR_CANNOT, "%s is set-user-ID and then gives its box no capabilities (chmod u-s %s)",
                       f->tool, f->tool);
    return 0;
}

static void bind_place(struct tool_words *w, const char *place, bool device)
{
    tool_word(w, device ? "--dev-bind" : "--bind");
    tool_two(w, place, place);
}

static int bwrap_argv(const struct plan *plan, const struct tool_ask *ask, struct arena *mem, const char *const **ret,
                      struct err *e)
{
    const struct plan_image *image = plan->image;
    struct tool_words w = {.mem = mem};
    bool writable = tool_root_writable(image);
    tool_word(&w, ask->program);
    tool_word(&w, "--unshare-user");
    tool_number(&w, "--uid", image->uid);
    tool_number(&w, "--gid", image->gid);
    tool_word(&w, "--unshare-uts");
    if (image->namespaces & CLONE_NEWIPC)
        tool_word(&w, "--unshare-ipc");
    if (image->namespaces & CLONE_NEWNET)
        tool_word(&w, "--unshare-net");
    const char *name = tool_hostname(image);
    if (name)
        tool_two(&w, "--hostname", name);
    tool_two(&w, "--cap-add", "ALL");
    tool_word(&w, writable ? "--bind" : "--ro-bind");
    tool_two(&w, "/", "/");
    if (!writable)
        tool_places(plan, &w, bind_place);
    tool_word(&w, "--");
    return tool_end(&w, plan, TOOL_INIT_PATH, NULL, ret, e);
}

static int bwrap_start(const struct start_request *ask, struct started *ret, struct err *e)
{
    const struct tool_way way = {.engine = &engine_bwrap, .program = ask->plan->facts->tool};
    return tool_start(&way, ask, ret, e);
}

const struct engine engine_bwrap = {.name = "bwrap",
                                    .program = "bwrap",
                                    .package = "bubblewrap",
                                    .probe = bwrap_probe,
                                    .namespaces = BWRAP_NAMESPACES,
                                    .argv = bwrap_argv,
                                    .start = bwrap_start,
                                    .finish = tool_finish};
