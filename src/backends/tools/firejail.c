/*
 * The engine firejail. It runs as root (set-user-ID) and gives an ordinary user's box no capabilities, so pinfold-init
 * creates a user namespace of its own inside and builds the box in it, as the native engine does on the host (`outer`
 * is empty). Around that there is what firejail adds: its own pid, mount, IPC and network namespaces, no capabilities,
 * no new privileges, no supplementary groups, its blacklists.
 *
 * It masks parts of /proc, and the kernel permits mounting a new one only to processes that see an unmasked one:
 * fresh-proc is a loss. The /proc in the box is firejail's, which shows firejail's processes and the guard besides the
 * box's, and none of the host's.
 *
 * --read-write, --read-only and --whitelist are not used: a process of root's would follow those paths.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/fd.h"
#include "backends/probe.h"
#include "backends/tools/tool.h"
#include "user/packages.h"

/*
 * In a container firejail says so in a warning and starts the command without a sandbox. It takes for one whatever has no
 * thread of the kernel among the first ten processes (its check_kernel_procs()).
 */
static bool is_container(void)
{
    static const char threads[][12] = {"kthreadd", "ksoftirqd", "kworker", "rcu_sched", "rcu_bh"};
    for (unsigned pid = 1; pid <= 10; pid++) {
        char path[40], name[64] = "";
        snprintf(path, sizeof path, "/proc/%u/comm", pid);
        auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || read(fd, name, sizeof name - 1) <= 0)
            continue;
        for (size_t i = 0; i < sizeof threads / sizeof *threads; i++)
            if (strncmp(name, threads[i], strlen(threads[i])) == 0)
                return false;
    }
    return true;
}

static int firejail_probe(struct facts *f, struct arena *mem, bool thorough, struct err *e)
{
    int r = native_probe(f, mem, thorough, e);
    f->engine = "firejail";
    if (r < 0)
        return r;
    f->tool = tool_find(mem, "firejail");
    if (!f->tool)
        return err_say(e, ERR_CANNOT, "firejail is not installed (%s)",
                       package_install("firejail", (char[PACKAGE_WORDS]){0}));
    if (f->tier != TIER_NAMESPACES)
        return tool_no_namespaces(f, e);
    if (is_container())
        return err_say(e, ERR_CANNOT,
                       "firejail makes no sandbox in a container or another process namespace: use another engine");
    f->can &= ~F(FRESH_PROC);
    f->why_not[FEATURE_FRESH_PROC] = "firejail masks parts of /proc, and the kernel then refuses a new /proc";
    return 0;
}

static int firejail_argv(const struct plan *plan, const struct tool_ask *ask, struct arena *mem,
                         const char *const **ret, struct err *e)
{
    const struct plan_image *image = plan->image;
    struct tool_words w = {.mem = mem};
    tool_word(&w, ask->program);
    tool_word(&w, "--quiet");
    tool_word(&w, "--noprofile");
    tool_word(&w, "--nonewprivs");
    tool_word(&w, "--nogroups");
    /* Mapping uid 0 into another user namespace requires this capability (user_namespaces(7)). */
    tool_word(&w, plan->facts->uid == 0 ? "--caps.keep=setfcap" : "--caps.drop=all");
    tool_word(&w, "--ipc-namespace");
    if (plan->policy->net != NET_HOST)
        tool_word(&w, "--net=none");
    const char *name = tool_hostname(image);
    if (name)
        tool_word(&w, arena_printf(mem, "--hostname=%s", name));
    /* The host's files as they are: the plan decides which the box gets. */
    tool_word(&w, "--allusers");
    tool_word(&w, "--writable-etc");
    tool_word(&w, "--writable-var");
    tool_word(&w, "--writable-var-log");
    tool_word(&w, "--keep-var-tmp");
    tool_word(&w, "--keep-dev-shm");
    tool_word(&w, arena_printf(mem, "--keep-fd=%d,%d", TOOL_CHECKIN, TOOL_INIT));
    tool_word(&w, "--");
    return tool_end(&w, plan, TOOL_INIT_PATH, NULL, ret, e);
}

static int firejail_start(const struct start_request *ask, struct started *ret, struct err *e)
{
    const struct tool_way way = {.engine = &engine_firejail, .program = ask->plan->facts->tool};
    return tool_start(&way, ask, ret, e);
}

const struct engine engine_firejail = {.name = "firejail",
                                       .program = "firejail",
                                       .package = "firejail",
                                       .probe = firejail_probe,
                                       .argv = firejail_argv,
                                       .start = firejail_start,
                                       .finish = tool_finish};
