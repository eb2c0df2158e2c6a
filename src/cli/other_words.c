/*
 * Options of docker, bubblewrap, firejail, deno and other sandboxes that people type out of habit, and what pinfold has
 * instead. They are no aliases: what looks the same promises something else there.
 */
#include "cli/cli.h"

#include <string.h>

#include "base/str.h"

static const struct {
    const char *words; /* long ones, divided by blanks */
    const char *letters;
    const char *instead;
} table[] = {
    {"network network-mode no-network no-net unshare-net disable-network", "",
     "use --net none|allow|host; default: none"},
    {"share-net", "", "use --net host, or --allow DOMAIN"},
    {"allow-net net-allow allow-host allow-hosts allow-domain allow-domains allowed-domain allowed-domains "
     "allowed-hosts host hosts "
     "domain domains",
     "", "use --allow DOMAIN"},
    {"whitelist noblacklist", "", "use --allow DOMAIN, or --rw PATH"},
    {"deny-net block-net deny-host deny-domain denied-domains block blacklist", "",
     "use --deny DOMAIN, or --hide PATH"},
    {"private", "", "use --profile restrictive, which hides the home, or --hide PATH"},
    {"noprofile no-profile", "", "use --no-layers to ignore policy files, or --profile NAME"},
    {"volume bind bind-try dev-bind bindfs", "",
     "use --rw PATH, or --mount SRC:DST where the path inside is another one"},
    {"ro-bind ro-bind-try", "", "use --ro PATH, or --mount SRC:DST:ro where the path inside is another one"},
    {"write allow-write writable read-write add-dir bind-rw", "", "use --rw PATH"},
    {"read allow-read", "", "use --ro PATH"},
    {"deny-read", "", "use --hide PATH"},
    {"deny-write", "", "use --protect PATH"},
    {"tmpfs", "", "not needed: /tmp is private; use --storage PATH for other places"},
    {"workdir working-dir chdir cd dir directory", "w",
     "use --workspace DIR, or --cwd DIR to start in a directory of the workspace"},
    {"setenv", "e", "use --env NAME=VALUE"},
    {"env-file", "", "use --env NAME for each variable; --env-files lets the command read the project's"},
    {"unsetenv unset-env rmenv clearenv", "", "use --unset NAME, or --unset '*'"},
    {"rm", "", "not needed: a box is removed when its command ends"},
    {"name", "", "use --session NAME, or 'pinfold session start NAME'"},
    {"interactive it ti", "it", "not needed: a box uses the terminal that pinfold was started from; see --tty"},
    {"detach background", "d", "use 'pinfold session start NAME', then 'pinfold exec --detach NAME COMMAND'"},
    {"uid gid", "u", "use --user UID:GID"},
    {"mem memory-limit", "m", "use --memory SIZE"},
    {"pids-limit max-procs nproc rlimit-nproc", "", "use --pids N"},
    {"ulimit nofile rlimit-nofile", "", "use --open-files N"},
    {"port ports expose", "p", "use --publish PORT"},
    {"ssh", "", "use --ssh-agent KEY"},
    {"gpg", "", "use --gpg-agent KEY"},
    {"debug trace", "", "use --verbose, --monitor, or 'pinfold explain'"},
    {"dry-run plan", "", "use 'pinfold explain' with the same options"},
    {"overlay tmp-overlay copy-on-write", "", "use --cow"},
    {"cap-drop security-opt no-new-privs seccomp unshare-all unshare-user unshare-pid unshare-ipc die-with-parent "
     "new-session "
     "nonewprivs noroot caps.drop private-tmp private-dev init proc",
     "", "not needed: every box is made like that"},
    {"cap-add privileged", "", "no box has capabilities over this machine; see --allow-nested-userns and --user root"},
    {"pid ipc uts cgroupns userns", "", "not needed: every box has namespaces of its own, and none of the machine's"},
    {"sandbox", "", "not needed: the workspace is writable, the rest read-only; --read-only makes all of it read-only"},
    {"full-auto yolo dangerously-skip-permissions dangerously-bypass-approvals-and-sandbox", "",
     "it is an agent's; to let one work without asking: pinfold claude --unattended"},
    {"version", "V", "use 'pinfold version'"},
    {"gpus device dev", "", "use --rw with the device's path, such as --rw /dev/dri"},
};

/* Subcommands of other programs, and words for what is done in another way. */
static const struct {
    const char *words, *instead;
} others[] = {
    {"ps status top containers sessions boxes", "use 'pinfold session list'"},
    {"kill terminate", "use 'pinfold session stop NAME'"},
    {"attach enter", "use 'pinfold exec SESSION COMMAND', or 'pinfold job attach SESSION JOB'"},
    {"new create up", "use 'pinfold session start NAME'"},
    {"down destroy", "use 'pinfold session rm NAME'"},
    {"clean cleanup gc", "use 'pinfold session prune' and 'pinfold layers prune'"},
    {"config settings show-policy", "use 'pinfold policy print --origins'"},
    {"allow deny grant",
     "it is an option: pinfold run --allow HOST -- COMMAND, or pinfold session update NAME --allow HOST"},
    {"audit events history", "use 'pinfold log'"},
    {"accept", "use 'pinfold apply'"},
    {"revert rollback", "use 'pinfold undo' or 'pinfold discard'"},
    {"upgrade self-update", "install the new version over this one, in the same way"},
    {"uninstall remove",
     "use 'scripts/install.sh --uninstall' with the installation's --prefix, or 'apt remove pinfold'"},
};

static bool is_one_of(struct str name, const char *words)
{
    struct str rest = str_of(words);
    while (rest.n) {
        const char *blank = memchr(rest.p, ' ', rest.n);
        const struct str one = {rest.p, blank ? (size_t)(blank - rest.p) : rest.n};
        if (str_eq(one, name))
            return true;
        rest = str_skip(rest, one.n + (blank ? 1 : 0));
    }
    return false;
}

const char *other_word(struct str name, bool is_long)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (is_long ? is_one_of(name, table[i].words) : name.n == 1 && strchr(table[i].letters, name.p[0]))
            return table[i].instead;
        if (!is_long && name.n > 1 && is_one_of(name, table[i].words)) /* -it */
            return table[i].instead;
    }
    return NULL;
}

const char *other_verb(struct str name)
{
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (is_one_of(name, others[i].words))
            return others[i].instead;
    }
    return NULL;
}
