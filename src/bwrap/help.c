/*
 * --help. The layout is bubblewrap's, which programs search for the options that they want to use.
 */
#include <stdio.h>

#include "bwrap/bwrap.h"

static const char help_text[] =
    "    --help                       Show this list\n"
    "    --version                    Show the version of bubblewrap that this follows\n"
    "    --args FD                    Read more options from FD, separated by NUL\n"
    "    --argv0 VALUE                The name under which the program is started\n"
    "    --level-prefix               Begin each message with its severity, as <3>\n"
    "    --unshare-all                New namespaces of all kinds (users and cgroups if possible)\n"
    "    --share-net                  Keep the network, after --unshare-all or --unshare-net\n"
    "    --unshare-user               New user namespace (always, unless root starts this)\n"
    "    --unshare-user-try           The same if possible\n"
    "    --unshare-ipc                New IPC namespace\n"
    "    --unshare-pid                New PID namespace\n"
    "    --unshare-net                New network namespace, with loopback alone\n"
    "    --unshare-uts                New UTS namespace\n"
    "    --unshare-cgroup             New cgroup namespace\n"
    "    --unshare-cgroup-try         The same if possible\n"
    "    --userns FD                  Use this user namespace\n"
    "    --userns2 FD                 Switch to this user namespace once all is set up\n"
    "    --disable-userns             No further user namespaces inside (needs --unshare-user)\n"
    "    --assert-userns-disabled     Fail if further user namespaces can be made inside\n"
    "    --pidns FD                   Use this PID namespace, or make the new one below it\n"
    "    --uid UID                    User inside (needs a user namespace)\n"
    "    --gid GID                    Group inside (needs a user namespace)\n"
    "    --hostname NAME              Host name inside (needs --unshare-uts)\n"
    "    --chdir DIR                  Working directory\n"
    "    --clearenv                   Remove all environment variables\n"
    "    --setenv VAR VALUE           Set an environment variable\n"
    "    --unsetenv VAR               Remove an environment variable\n"
    "    --lock-file DEST             Hold a lock on DEST as long as the sandbox exists\n"
    "    --sync-fd FD                 Keep FD open as long as the sandbox exists\n"
    "    --bind SRC DEST              SRC of the host at DEST, writable\n"
    "    --bind-try SRC DEST          The same if SRC exists\n"
    "    --dev-bind SRC DEST          SRC of the host at DEST, writable, with devices\n"
    "    --dev-bind-try SRC DEST      The same if SRC exists\n"
    "    --ro-bind SRC DEST           SRC of the host at DEST, read-only\n"
    "    --ro-bind-try SRC DEST       The same if SRC exists\n"
    "    --bind-fd FD DEST            The file or directory that FD is at DEST, writable\n"
    "    --ro-bind-fd FD DEST         The same, read-only\n"
    "    --remount-ro DEST            Make the mount at DEST read-only, not those below it\n"
    "    --overlay-src SRC            A lower layer of the next overlay; the first is the lowest\n"
    "    --overlay RWSRC WORKDIR DEST Overlay at DEST; what is written goes to RWSRC\n"
    "    --tmp-overlay DEST           Overlay at DEST; what is written is lost at the end\n"
    "    --ro-overlay DEST            Overlay at DEST, read-only\n"
    "    --exec-label LABEL           Not supported: there are no labels here\n"
    "    --file-label LABEL           Not supported: there are no labels here\n"
    "    --proc DEST                  New /proc at DEST\n"
    "    --dev DEST                   New /dev at DEST, with the usual devices\n"
    "    --tmpfs DEST                 New tmpfs at DEST\n"
    "    --mqueue DEST                New mqueue at DEST\n"
    "    --dir DEST                   Make the directory DEST\n"
    "    --file FD DEST               Copy what FD contains into the file DEST\n"
    "    --bind-data FD DEST          Mount what FD contains as the file DEST\n"
    "    --ro-bind-data FD DEST       The same, read-only\n"
    "    --symlink SRC DEST           Make DEST a symbolic link to SRC\n"
    "    --seccomp FD                 Load the seccomp program that FD contains (once)\n"
    "    --add-seccomp-fd FD          Load the seccomp program that FD contains (any number)\n"
    "    --block-fd FD                Wait until something can be read from FD\n"
    "    --userns-block-fd FD         Wait on FD until somebody else has set the id maps\n"
    "    --info-fd FD                 Write the process id and the namespaces to FD, as JSON\n"
    "    --json-status-fd FD          Write start and exit status to FD, as lines of JSON\n"
    "    --new-session                New terminal session\n"
    "    --die-with-parent            End the sandbox when this program or its parent ends\n"
    "    --as-pid-1                   The command itself is process 1 (needs --unshare-pid)\n"
    "    --cap-add CAP                Give the capability CAP, or ALL\n"
    "    --cap-drop CAP               Take the capability CAP, or ALL, away\n"
    "    --perms OCTAL                Mode for the next --dir, --tmpfs, --file or --bind-data\n"
    "    --size BYTES                 Size of the next --tmpfs\n"
    "    --chmod OCTAL PATH           Change the mode of PATH, which exists\n"
    "    --not-a-security-boundary    Accepted; nothing here would be skipped because of it\n";

void bw_help(const char *name, bool to_stderr)
{
    FILE *to = to_stderr ? stderr : stdout;
    fprintf(to, "usage: %s [OPTIONS...] [--] COMMAND [ARGS...]\n\n%s", name, help_text);
    if (!to_stderr)
        fprintf(to,
                "\nThis is pinfold-bwrap " PINFOLD_VERSION ", with the command line of bubblewrap " BWRAP_LIKE ".\n");
    (void)fflush(to);
}
