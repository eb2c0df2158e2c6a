/*
 * What a variable of git's configuration makes git run, and whether that is what everybody has: git-lfs, an editor, ssh with a
 * key. For the person who is told what git on the host would run from a tree (survey/gitlook.c); the guard's judge needs no
 * such list, because it refuses what it does not know.
 *
 * Pure.
 */
#pragma once
#include "git/gitconfig.h"

enum gitruns {
    GITRUNS_NOTHING, /* as far as is known */
    GITRUNS_COMMAND, /* for a shell, or a program by its path */
    GITRUNS_ALIAS,   /* a command for whoever types its name */
    GITRUNS_HOOKS,   /* a directory whose programs git runs */
    GITRUNS_INCLUDE, /* a file that is read as configuration */
    GITRUNS_REMOTE   /* a location that names a program: ext::COMMAND, fd::N; or leave to take such */
};

enum gitruns gitruns_of(const struct gitconfig_entry *e);

/*
 * Whether a command is one of the everyday programs, found by PATH or at an absolute place, with words that are no code: nothing
 * that a shell would take apart, no option that names another program. False for all that is not known.
 */
bool gitruns_everyday(const struct gitconfig_entry *e);

/* Whether the first word of a command is a program that runs the file which it is given: sh, python3, node, ... */
bool gitruns_interprets(struct str command);
