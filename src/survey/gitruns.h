/*
 * What a variable of git's configuration makes git run, and whether that is usual: git-lfs, an editor, ssh with a key.
 * Used to tell a person what git on the host would run from a tree (survey/gitlook.c). The guard's judge does not use
 * this list: it refuses what it does not know.
 *
 * Pure.
 */
#pragma once
#include "git/gitconfig.h"

enum gitruns {
    GITRUNS_NOTHING, /* as far as is known */
    GITRUNS_COMMAND, /* for a shell, or a program's path */
    GITRUNS_ALIAS,   /* a command for a person who types its name */
    GITRUNS_HOOKS,   /* a directory whose programs git runs */
    GITRUNS_INCLUDE, /* a file that is read as configuration */
    GITRUNS_REMOTE   /* a remote that names a program: ext::COMMAND, fd::N; or permission for such remotes */
};

enum gitruns gitruns_of(const struct gitconfig_entry *e);

/*
 * Whether a command is a well-known program, found by PATH or by an absolute path, with harmless arguments: nothing
 * that a shell would expand, no option that names another program. False for everything unknown.
 */
bool gitruns_everyday(const struct gitconfig_entry *e);

/* Whether the command's first word is a program that executes a file it is given: sh, python3, node, ... */
bool gitruns_interprets(struct str command);
