/*
 * Error messages for the two numbers that the builder and pid 1 report: the step and its errno. The words are found
 * here, where the plan is, with what is known of this machine and would help.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include "base/buf.h"
#include "backends/engine.h"
#include "protocol/control.h"
#include "sys/fd.h"
#include "sys/stat.h"

static const char *failed_step(uint32_t where)
{
    switch (where) {
    case WHERE_CLONE:
        return "cannot start pid 1 of the box";
    case WHERE_MAPS:
        return "cannot write the box's user and group maps";
    case WHERE_NET:
        return "cannot create the box's network namespace";
    case WHERE_CHILD:
        return "cannot prepare the command's process";
    case WHERE_STDIO:
        return "cannot pass standard input, output and error to the command";
    case WHERE_PTY:
        return "cannot create the box's terminal";
    case WHERE_GUARD:
        return "cannot start the guard";
    case WHERE_CGROUP:
        return "cannot enter the control group";
    case WHERE_CHECK:
        return "cannot verify the plan";
    case WHERE_USER:
        return "cannot switch to the box's user";
    case WHERE_MACHINE:
        return "the virtual machine";
    default:
        return NULL;
    }
}

/*
 * A user namespace that grants nothing, or not enough: AppArmor's restriction permits creating it and then refuses its use, and a profile
 * that confines this process refuses what changes mounts, with EACCES.
 */
static bool namespace_refused(const struct plan *p, uint32_t where, int no)
{
    if (where == WHERE_NET)
        return no == EPERM || no == EACCES || no == ENOSPC || no == EUSERS || no == EINVAL || no == ENOSYS;
    if (where == WHERE_CLONE)
        return p->image->namespaces && (no == ENOSPC || no == EUSERS); /* pid namespaces have a limit of their own */
    if (!p->image->namespaces || (no != EPERM && no != EACCES))
        return false;
    if (where == WHERE_MAPS)
        return true;
    if (where >= p->image->n_steps)
        return false;
    return plan_steps(p->image)[where].kind <= STEP_MQUEUE; /* what makes the tree */
}

/* Whether a name finds files in capitals and small letters there (FAT, exFAT; ext4 and others, chattr +F). */
static bool folds_case(const char *path)
{
    uint64_t flags = 0;
    struct statfs fs = {0};
    own_fd int fd = sys_openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd >= 0 && sys_fstatfs(fd, &fs) == 0 && (fs.f_type == SYS_FAT || fs.f_type == SYS_EXFAT))
        return true;
    return fd >= 0 && sys_ioctl(fd, SYS_GET_FLAGS, &flags) == 0 && flags & SYS_FOLDS_CASE;
}

/* The workspace's layer: the directory below it, in a line, and three more lines. Of a cache there are two. */
static bool is_workspace_layer(const struct plan *p, const struct step *s, char lower[PATH_MAX])
{
    const char *text = plan_string(p->image, s->b);
    size_t lines = 0;
    for (const char *at = text; (at = strchr(at, '\n')); at++)
        lines++;
    return s->kind == STEP_OVERLAY && lines >= 3 &&
           snprintf(lower, PATH_MAX, "%.*s", (int)strcspn(text, "\n"), text) < PATH_MAX;
}

static int cow_failed(const char *workspace, struct err *e)
{
    const int r = err_say(
        e, ERR_CANNOT, "--cow: the workspace %s cannot get a copy-on-write layer: %s", workspace,
        folds_case(workspace)
            ? "names there are the same in capitals and small letters (casefold), which overlayfs does not accept"
            : "a file system is mounted below it, or its own can fold case (ext4 -O casefold)");
    return err_hint(e, r, "unmount what is below it, use another directory, or run without --cow");
}

/* Whether what an overlay would be written to is the caller's, but of a group that is not known in the box. */
static bool has_other_group(const struct plan *p, const struct step *s)
{
    char upper[PATH_MAX];
    struct stat st;
    const char *text = plan_string(p->image, s->b), *at = strchr(text, '\n');
    return at && p->facts && snprintf(upper, sizeof upper, "%.*s", (int)strcspn(at + 1, "\n"), at + 1) < PATH_MAX &&
           stat(upper, &st) == 0 && st.st_uid == p->facts->uid && st.st_gid != p->facts->gid;
}

static const char *hint(const struct plan *p, uint32_t where, int no)
{
    const uint8_t kind = where < p->image->n_steps ? plan_steps(p->image)[where].kind : STEP_NONE;
    if (kind == STEP_SOURCE && (no == ELOOP || no == ENOENT))
        return "it was moved or replaced while the box was being made; run the command again";
    if (kind == STEP_OVERLAY && no == EINVAL)
        return "a file system is mounted below this directory, which a layer cannot show: unmount it";
    if (kind == STEP_OVERLAY && no == EACCES && has_other_group(p, plan_steps(p->image) + where))
        return "pinfold's directory there has another group than yours, from a directory above that hands its own down "
               "(setgid): give it yours, with chgrp -R and chmod -R g-s";
    if (no == EACCES && p->facts && p->facts->uid == 0 &&
        (kind == STEP_VEIL || kind == STEP_COVER || kind == STEP_DENY))
        return "it, or a directory above it, belongs to another user, and root has no capabilities in a box: run "
               "pinfold as that user; or, if HOME names it, with HOME=/root";
    if ((kind == STEP_SOURCE || kind == STEP_STUB || kind == STEP_OVERLAY) && no == EACCES && p->facts &&
        p->facts->uid == 0)
        return "it, or a directory above it, belongs to another user, and root has no capabilities in a box: run "
               "pinfold as that user, with that user's home";
    if (kind == STEP_ATTACH && no == ELOOP)
        return "the image has a symbolic link on the way there, so it would be somewhere else, where no rule for it "
               "holds: use another image, or mount it at a path without links (--mount DIR:/workspace)";
    if (kind == STEP_SOURCE && no == EMFILE)
        return "raise the hard limit of open files: ulimit -Hn";
    if (kind == STEP_PROC && (no == EPERM || no == EACCES))
        return "a container that masks parts of /proc does not allow a new /proc inside";
    if (kind == STEP_DEVICES && no == ENOENT)
        return "a box has the machine's null, zero, full, random, urandom and tty, and one of them is missing in /dev "
               "here: mount -t devtmpfs dev /dev, or make it with mknod";
    if ((kind == STEP_ATTACH || kind == STEP_ROOT || kind == STEP_ROOT_EMPTY) && no == ENOSPC)
        return "too many mounts in one place: sudo sysctl -w fs.mount-max=100000, or unmount some";
    if (kind == STEP_CATCH && no == ENOTUNIQ)
        return "the network namespace has a route that bypasses the fake IPs";
    if (kind == STEP_LISTEN && no == EADDRINUSE)
        return "pinfold itself listens on this port";
    if (kind == STEP_ENTER && no == EPERM)
        return "a container's filter of system calls refuses pivot_root(2), which this needs: start the container with "
               "--security-opt seccomp=unconfined";
    if (kind == STEP_ENTER && no == EINVAL)
        return "the root file system is the kernel's initial one, which pivot_root cannot leave";
    if (no == EAGAIN && (where == WHERE_CLONE || where == WHERE_CHILD || where == WHERE_GUARD))
        return ERR_MORE_PROCESSES;
    if (where == WHERE_GUARD && no == ENOMEM)
        return "the policy has more rules than the guard keeps (16 MiB), or memory is short: name directories instead "
               "of the many files in them (--hide, --protect, --unix-socket)";
    return NULL;
}

/* The process is itself supervised, in a box; the thorough probe finds that out. */
static bool is_second_supervisor(const struct plan *p, uint32_t where, int no)
{
    return where < p->image->n_steps && plan_steps(p->image)[where].kind == STEP_FILTER && no == EBUSY;
}

/* Connections cannot be redirected by the assumed method: the thorough probe finds the next best. */
static bool catch_refused(const struct plan *p, uint32_t where)
{
    return where < p->image->n_steps && plan_steps(p->image)[where].kind == STEP_CATCH && !p->facts->catch_why &&
           p->policy->net_catch == NET_CATCH_AUTO;
}

static int cwd_failed(const struct plan *p, const struct step *s, int no, struct err *e)
{
    const struct image_fact *image = p->facts ? p->facts->image : NULL;
    const char *dir = plan_string(p->image, s->a);
    const bool of_image = image && image->workdir && same(image->workdir, dir);
    int r = err_sys(e, ERR_POLICY, no, "the %s '%s'%s, as the box sees it",
                    of_image ? "image's WORKDIR" : "start directory", dir, of_image ? "" : " (cwd)");
    return err_hint(e, r, "%s",
                    of_image ? "create it in the Dockerfile (RUN mkdir), or choose another directory with --cwd"
                    : no == EACCES && p->facts && p->facts->uid == 0
                        ? "root has no capabilities in a box: run pinfold as the user that it belongs to"
                        : "use a directory that exists in the box, or omit cwd to start in the workspace");
}

int engine_verdict(const struct plan *p, uint32_t where, int no, struct err *e)
{
    auto_buf struct buf line = BUF(8192);
    const char *name = failed_step(where);
    if (name) {
        buf_text(&line, name);
    } else if (where < p->image->n_steps) {
        const struct step *s = plan_steps(p->image) + where;
        char origin[256];
        if (s->kind == STEP_CWD) {
            return cwd_failed(p, s, no, e);
        }
        if (no == EMFILE && s->kind != STEP_SOURCE) /* which one it met first says nothing */
            return err_sys(e, ERR_CANNOT, no, "the box's files cannot be set up");
        char workspace[PATH_MAX];
        if (no == EINVAL && is_workspace_layer(p, s, workspace))
            return cow_failed(workspace, e);
        buf_printf(&line, "step %u, ", where + 1);
        step_print(p->image, s, &line);
        buf_printf(&line, " (%s)", policy_origin(p->policy, s->origin, origin, sizeof origin));
    } else {
        return err_say(e, ERR_BUG, "the box failed at an unknown place (%u, error %d)", where, no);
    }
    int r = err_sys(e, ERR_CANNOT, no, "%s", buf_cstr(&line));
    const char *remedy = hint(p, where, no);
    if (remedy)
        (void)err_hint(e, r, "%s", remedy);
    return namespace_refused(p, where, no) || is_second_supervisor(p, where, no) || catch_refused(p, where)
               ? -ENGINE_STALE
               : r;
}
