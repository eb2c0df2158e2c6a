/*
 * What git on the host would run when a person works in a directory: the hooks, and the programs that the
 * configurations of repository and person name. Used for two things:
 *   - files and directories in the tree that git leads to: the survey protects them (targets.c);
 *   - what may not be the person's own: a program among the files of the tree, an unusual command, a configuration that
 *     came with the tree. A start mentions it, `pinfold doctor` lists it.
 *
 * The look at one repository is bounded: five configurations, their includes (GITLOOK_INCLUDED), and a few small files.
 * Where there is no repository it costs two system calls.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include "base/arena.h"
#include "survey/listing.h"

#define GITLOOK_INCLUDED 16

enum git_odd {
    GIT_USUAL,   /* a well-known program, or the person's own */
    GIT_IN_TREE, /* it is among the files of the tree, where whoever changes these can change it */
    GIT_IN_TEMPORARY /* or in a directory that every user can write */,
    GIT_COMMAND,    /* a command that only this repository uses */
    GIT_CAME_ALONG, /* the configuration itself is among the files of the tree */
    GIT_TRANSPORT,  /* a remote that is a command */
    GIT_WAITS,      /* an interrupted rebase or cherry-pick will use it */
    GIT_OPTION,     /* a branch, tag or remote whose name looks like an option */
    GIT_PLACE,      /* the repository is among the files of the tree */
    GIT_ODDS
};

struct git_run {
    const char *file; /* where it is written */
    const char *key;  /* the variable, or NULL */
    const char *value;
    const char *leads; /* the file or directory that it names, if that exists */
    enum git_odd odd;
};

struct git_look {
    struct arena *mem;
    const char *top;         /* the work tree: a real path */
    const char *home;        /* of the person, or NULL */
    const char *config_home; /* or NULL */
    /* it is inside a tree that is examined: report only its own things; a bare repository came with the tree */
    bool below;
    bool whole; /* also what takes long: all refs, the programs in the hooks directory */
    /* Called for a path that a configuration names; (directory) also for a directory or a free name. Or NULL. */
    void (*names)(void *ctx, const char *path, bool directory);
    void (*runs)(void *ctx, const struct git_run *r);
    /* Whether only the person changes this place in the tree. Or NULL. */
    bool (*is_kept)(void *ctx, const char *path);
    void *ctx;
    /* Result, NULL without a repository: its own directory, and the one shared by its work trees. */
    const char *own, *common;
    const struct dir_listing *listing; /* of `own`; or NULL */
    size_t
        not_read; /* configurations beyond the limit, too large or not readable; a hooks directory with too many entries */
    /* Private. */
    const char *base; /* of the current configuration */
    const char *file;
    enum { GITLOOK_REPOSITORY, GITLOOK_CAME, GITLOOK_PERSON } level;
    unsigned left;
};

/* 0, or -ENOMEM. What cannot be read does not exist for git, either. */
int git_look(struct git_look *l);

/* Whether the directory is a repository: it has HEAD, objects and refs. */
bool git_look_is_bare(struct arena *mem, const char *directory);

/* Why it is reported, a clause; "" if it is usual. And the remedy, if it is not. */
const char *git_odd_text(enum git_odd odd);
/* Quoted for a shell. */
const char *git_quoted(struct arena *mem, const char *text);
const char *git_odd_remedy(struct arena *mem, const struct git_run *r);
/* "FILE: KEY = VALUE", shortened to one line, for people. */
const char *git_run_text(struct arena *mem, const struct git_run *r, const char *below);
