/*
 * Words about what this machine refused to the native engine's trial, and what would help: the settings of the machine, and the rules of
 * its security modules, are looked up after the refusal. Nothing is decided by them.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "survey/refused.h"
#include "sys/fd.h"
#include "sys/file.h"
#include "sys/process.h"

long machine_switch(const char *path)
{
    char text[32];
    return sys_read_text(AT_FDCWD, path, text, sizeof text) <= 0 ? -1 : strtol(text, NULL, 10);
}

/* Of the limits that a user's namespaces have, one for each kind, the lowest is reached first. The kernel does not say which was. */
static struct reason lowest_limit(struct arena *mem)
{
    static const char kinds[][8] = {"user", "mnt", "net", "pid", "ipc", "uts", "cgroup"};
    enum { ENOUGH = 15000 };
    const char *lowest = kinds[0];
    long least = LONG_MAX;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        char path[64];
        snprintf(path, sizeof path, "/proc/sys/user/max_%s_namespaces", kinds[i]);
        const long limit = machine_switch(path);
        if (limit < 0 || limit >= least)
            continue;
        least = limit;
        lowest = kinds[i];
    }
    const char *why =
        least == 0
            ? arena_printf(mem, "%s namespaces are disabled (user.max_%s_namespaces is 0)", lowest, lowest)
            : arena_printf(mem, "a limit of namespaces is reached (user.max_%s_namespaces is the lowest)", lowest);
    const char *remedy = arena_printf(mem, "sudo sysctl -w user.max_%s_namespaces=%ld", lowest,
                                      least < ENOUGH         ? ENOUGH
                                      : least < LONG_MAX / 2 ? 2 * least
                                                             : least);
    return (struct reason){why ? why : "a limit of namespaces is reached", remedy};
}

/* How a security module names this process, as it is in its file; "" where there is none, or no such module. */
static void own_label(const char *path, char *label, size_t room)
{
    label[0] = 0;
    (void)sys_read_text(AT_FDCWD, path, label, room);
    label[strcspn(label, "\n")] = 0;
}

/* What a profile of AppArmor's is attached to: where packages and install.sh put pinfold, and where this program lies. A path that a shell
   or AppArmor could read otherwise than letter by letter is not printed. */
static const char *attachment(struct arena *mem)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/._+-";
    static const char usual[] = "/usr/{,local/}{bin/pinfold,libexec/pinfold/pinfold-bwrap}";
    char path[PATH_MAX];
    const long n = sys_readlinkat(AT_FDCWD, "/proc/self/exe", path, sizeof path - 1);
    path[n > 0 ? n : 0] = 0;
    if (path[0] != '/' || strncmp(path, "/usr/", 5) == 0 || path[strspn(path, letters)])
        return usual;
    const char *both = arena_printf(mem, "/{%s,%s}", usual + 1, path + 1);
    return both ? both : usual;
}

/* The shell's words that permit pinfold to create user namespaces: the profile of Debian's package (debian/apparmor/pinfold). */
static const char *profile_remedy(struct arena *mem)
{
    return arena_printf(mem,
                        "printf 'abi <abi/4.0>,\\ninclude <tunables/global>\\nprofile pinfold %s flags=(unconfined) "
                        "{\\n  userns,\\n}\\n' | sudo tee /etc/apparmor.d/pinfold && "
                        "sudo apparmor_parser -r /etc/apparmor.d/pinfold",
                        attachment(mem));
}

/* What lifts a profile that confines this process: containers' have options of the program that starts them. */
static const char *confined_remedy(struct arena *mem, const char *profile)
{
    if (strncmp(profile, "docker-", 7) == 0 || strncmp(profile, "containers-default-", 19) == 0)
        return "start the container with --security-opt apparmor=unconfined";
    if (strncmp(profile, "cri-containerd", 14) == 0)
        return "set appArmorProfile: {type: Unconfined} in the container's securityContext";
    if (strstr(profile, "unprivileged_userns") || strstr(profile, "unpriv_"))
        return "start pinfold outside of this user namespace, from which AppArmor has taken the capabilities";
    if (strncmp(profile, "lxc-", 4) == 0)
        return "set lxc.apparmor.profile = unconfined in the container's configuration";
    return arena_printf(mem, "add the rules userns, mount, umount, pivot_root, capability and file to the profile %s",
                        profile);
}

static bool is_filtered(void)
{
    return sys_prctl(PR_GET_SECCOMP, 0, 0, 0, 0) != 0;
}

/* The name of AppArmor's profile that confines this process, in `label`; false: none does. */
static bool is_confined(char *label, size_t room)
{
    own_label("/proc/self/attr/apparmor/current", label, room);
    char *mode = strstr(label, " (");
    if (!mode || strcmp(mode, " (unconfined)") == 0)
        return false;
    *mode = 0;
    return true;
}

/* SELinux's refusal of `what` to its type of this process, which the rule permits. False: it does not enforce. */
static bool of_selinux(struct arena *mem, const char *what, const char *rule, struct reason *ret)
{
    char label[256];
    own_label("/proc/self/attr/current", label, sizeof label);
    char *type = strchr(label, ':');
    type = type ? strchr(type + 1, ':') : NULL;
    if (!type || machine_switch("/sys/fs/selinux/enforce") != 1)
        return false;
    type[1 + strcspn(type + 1, ":")] = 0;
    *ret = (struct reason){
        arena_printf(mem, "SELinux's policy forbids %s to %s", what, type + 1),
        arena_printf(mem, "echo '(allow %s self (%s))' >pinfold.cil && sudo semodule -i pinfold.cil", type + 1, rule)};
    return ret->why && ret->remedy;
}

struct reason refused_proc(struct arena *mem, const struct tried *t)
{
    struct reason r;
    if (t->no[TRIAL_PROC] == -EACCES && of_selinux(mem, "mounts over a process's files in /proc", "file (mounton)", &r))
        return r;
    char kind[64] = "";
    (void)sys_read_text(AT_FDCWD, "/run/systemd/container", kind, sizeof kind);
    /* A container of LXC, Incus, LXD or Proxmox; the file is there without systemd, too. */
    if (strncmp(kind, "lxc", 3) == 0 || sys_may(AT_FDCWD, "/dev/.lxc-boot-id", 0) == 0)
        return (struct reason){
            "a new /proc is refused, because LXC masks parts of /proc in this container",
            "allow nesting in the container: lxc.include = /usr/share/lxc/config/nesting.conf (Incus and "
            "LXD: security.nesting=true; Proxmox: nesting=1)"};
    if (strncmp(kind, "systemd-nspawn", sizeof "systemd-nspawn" - 1) == 0)
        return (struct reason){"a new /proc is refused, because systemd-nspawn masks parts of /proc in this container",
                               "as root of the container: mkdir -p /run/proc && mount -t proc proc /run/proc"};
    if (sys_may(AT_FDCWD, "/run/.containerenv", 0) == 0) /* podman-run(1) */
        return (struct reason){"a new /proc is refused, because podman masks parts of /proc in this container",
                               "start the container with --security-opt unmask=ALL"};
    return (struct reason){"a new /proc is refused, as in a container that masks parts of /proc",
                           "start the container with --security-opt systempaths=unconfined"};
}

/*
 * AppArmor refuses with EACCES what its rules do not permit, and with EPERM a capability in a namespace that it let somebody create
 * (Ubuntu). SELinux refuses the creation alone, with EACCES. A container's filter of system calls refuses the creation with EPERM, too.
 */
static bool of_security_module(struct arena *mem, const struct tried *t, struct reason *ret)
{
    char label[256];
    bool refused = t->clone == -EACCES || (t->clone == -EPERM && !is_filtered());
    for (int i = 0; i <= TRIAL_ATTACH; i++)
        refused |= t->clone == 0 && (t->no[i] == -EACCES || t->no[i] == -EPERM);
    if (!refused)
        return false;
    if (is_confined(label, sizeof label)) {
        *ret = (struct reason){arena_printf(mem,
                                            "the profile %s of AppArmor confines pinfold here, and does not permit "
                                            "what boxes are made of",
                                            label),
                               confined_remedy(mem, label)};
    } else if (machine_switch("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") > 0) {
        *ret = (struct reason){"AppArmor restricts user namespaces (kernel.apparmor_restrict_unprivileged_userns)",
                               profile_remedy(mem)};
    } else if (t->clone == -EACCES) {
        return of_selinux(mem, "user namespaces", "user_namespace (create)", ret);
    } else {
        return false;
    }
    return ret->why && ret->remedy;
}

/* Why user namespaces cannot be created, or grant nothing. */
struct reason refused_namespaces(struct arena *mem, const struct tried *t)
{
    if (machine_switch("/proc/sys/user/max_user_namespaces") == 0)
        return (struct reason){"user namespaces are disabled (user.max_user_namespaces is 0)",
                               "sudo sysctl -w user.max_user_namespaces=15000"};
    if (machine_switch("/proc/sys/kernel/unprivileged_userns_clone") == 0)
        return (struct reason){"user namespaces are for root only (kernel.unprivileged_userns_clone is 0)",
                               "sudo sysctl -w kernel.unprivileged_userns_clone=1"};
    struct reason r;
    if (of_security_module(mem, t, &r))
        return r;
    if (t->clone == -EPERM) {
        char label[256];
        return (struct reason){
            "creating namespaces is refused, as in a container with a system call filter or in a chroot",
            is_confined(label, sizeof label)
                ? "start the container with --security-opt seccomp=unconfined --security-opt apparmor=unconfined"
                : "start the container with --security-opt seccomp=unconfined"};
    }
    if (t->clone == -ENOSPC || t->clone == -EUSERS)
        return lowest_limit(mem);
    if (t->clone)
        return (struct reason){trial_clause(mem, "the kernel refuses namespaces", -t->clone),
                               t->clone == -EAGAIN ? ERR_MORE_PROCESSES : NULL};
    if (t->no[TRIAL_MAPS] == -ENOENT && access("/proc/self", F_OK) < 0)
        return (struct reason){"/proc is not mounted here", "mount -t proc proc /proc"};
    for (int i = 0; i <= TRIAL_ATTACH; i++) {
        static const char what[][40] = {"a user namespace's id maps", "mounts in a user namespace",
                                        "a tmpfs in a user namespace", "attaching a mount in a user namespace"};
        if (t->no[i])
            return (struct reason){trial_clause(mem, what[i], -t->no[i]), NULL};
    }
    return (struct reason){"user namespaces do not work here", NULL};
}
