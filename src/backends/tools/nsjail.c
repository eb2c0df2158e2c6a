/*
 * The engine nsjail: like bwrap (backends/tools/bwrap.c), with other options. Its defaults are turned off: limits of
 * memory, processor time, file size and files (the plan has its own), ten minutes of run time, the lowest priority, and
 * a /proc of its own pid namespace.
 */
#include <sched.h>
#include <string.h>

#include "backends/probe.h"
#include "backends/tools/tool.h"

#define NSJAIL_NAMESPACES (CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNET)

static int nsjail_probe(struct facts *f, struct arena *mem, bool thorough, struct err *e)
{
    int r = native_probe(f, mem, thorough, e);
    f->engine = "nsjail";
    if (r < 0)
        return r;
    f->tool = tool_find(mem, "nsjail");
    if (!f->tool)
        return err_say(e, ERR_CANNOT, "nsjail is not installed (build it from github.com/google/nsjail)");
    if (f->tier != TIER_NAMESPACES)
        return tool_no_namespaces(f, e);
    return 0;
}

/* -B takes SRC:DST, and a colon cannot be escaped. */
static void nsjail_bind(struct tool_words *w, const char *place, bool device)
{
    (void)device;
    w->failed |= strchr(place, ':') != NULL;
    tool_two(w, "--bindmount", place);
}

static int nsjail_argv(const struct plan *plan, const struct tool_ask *ask, struct arena *mem, const char *const **ret,
                       struct err *e)
{
    const struct plan_image *image = plan->image;
    struct tool_words w = {.mem = mem};
    bool writable = tool_root_writable(image);
    tool_word(&w, ask->program);
    tool_two(&w, "--mode", "o");
    tool_word(&w, "--quiet");
    tool_two(&w, "--time_limit", "0");
    tool_word(&w, "--disable_rlimits");
    tool_two(&w, "--nice_level", "0");
    tool_two(&w, "--user", arena_printf(mem, "%u:%u:1", image->uid, plan->facts->uid));
    tool_two(&w, "--group", arena_printf(mem, "%u:%u:1", image->gid, plan->facts->gid));
    tool_word(&w, "--disable_clone_newpid");
    tool_word(&w, "--disable_clone_newcgroup");
    if (!(image->namespaces & CLONE_NEWIPC))
        tool_word(&w, "--disable_clone_newipc");
    if (!(image->namespaces & CLONE_NEWNET))
        tool_word(&w, "--disable_clone_newnet");
    const char *name = tool_hostname(image);
    if (name)
        tool_two(&w, "--hostname", name);
    tool_word(&w, "--keep_caps");
    tool_word(&w, "--disable_proc");
    tool_two(&w, "--chroot", "/");
    if (writable)
        tool_word(&w, "--rw");
    else
        tool_places(plan, &w, nsjail_bind);
    if (w.failed && !arena_failed(mem))
        return err_say(e, ERR_CANNOT, "nsjail does not support paths with a colon");
    tool_number(&w, "--pass_fd", TOOL_CHECKIN);
    tool_number(&w, "--pass_fd", TOOL_INIT);
    tool_word(&w, "--");
    return tool_end(&w, plan, TOOL_INIT_PATH, NULL, ret, e);
}

static int nsjail_start(const struct start_request *ask, struct started *ret, struct err *e)
{
    const struct tool_way way = {.engine = &engine_nsjail, .program = ask->plan->facts->tool};
    return tool_start(&way, ask, ret, e);
}

const struct engine engine_nsjail = {.name = "nsjail",
                                     .program = "nsjail",
                                     .probe = nsjail_probe,
                                     .namespaces = NSJAIL_NAMESPACES,
                                     .argv = nsjail_argv,
                                     .start = nsjail_start,
                                     .finish = tool_finish};
