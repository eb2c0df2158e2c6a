/*
 * What git on the host runs when a person goes into a directory: the hooks, and the programs that the repository's and the
 * person's configuration name. It is asked for two things:
 *   - files and directories in the tree that git leads to: the survey protects them (targets.c);
 *   - what may not be the person's own: a program among the files of the tree, a command that is none of everybody's, a
 *     configuration that came with the tree. It is said when a box starts, and in full by `pinfold doctor`.
 *
 * The look at one repository is bounded: five configurations, what these include (GITLOOK_INCLUDED), and a few small files. A
 * repository that is not there costs two calls.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include "base/arena.h"

#define GITLOOK_INCLUDED 16

enum git_odd {
    GIT_USUAL,   /* a program that is everybody's, or the person's own */
    GIT_IN_TREE, /* it lies among the files of the tree, where whoever changes these changes it */
    GIT_IN_TEMPORARY /* or where every user of the machine writes */,
    GIT_COMMAND,    /* a command of the repository's own */
    GIT_CAME_ALONG, /* the configuration itself lies among the files of the tree */
    GIT_TRANSPORT,  /* a remote that is a command */
    GIT_WAITS,      /* what a rebase or a cherry-pick goes on with */
    GIT_OPTION,     /* a branch, tag or remote whose name is an option */
    GIT_PLACE,      /* the repository lies among the files of the tree */
    GIT_ODDS
};

struct git_run {
    const char *file; /* where it is said */
    const char *key;  /* the variable, or NULL */
    const char *value;
    const char *leads; /* the file or directory it names, if it is there */
    enum git_odd odd;
};

struct git_look {
    struct arena *mem;
    const char *top;         /* the work tree: real */
    const char *home;        /* of the person, or NULL */
    const char *config_home; /* or NULL */
    bool below; /* it lies in a tree that was looked at: only what is its own; a bare repository came with the tree */
    bool whole; /* also what takes long: all refs, the programs in the directory for hooks */
    /* A path that a configuration names; (directory) a directory or a name that is free counts, too. May be NULL. */
    void (*names)(void *ctx, const char *path, bool directory);
    void (*runs)(void *ctx, const struct git_run *r);
    /* Whether a place in the tree is one that nobody but the person changes. May be NULL. */
    bool (*is_kept)(void *ctx, const char *path);
    void *ctx;
    /* What it found, NULL without a repository: its own directory, and the one it shares with its work trees. */
    const char *own, *common;
    size_t
        not_read; /* configurations that would have been one too many, or too large; a directory for hooks with too much in it */
    /* Its own. */
    const char *base; /* of the configuration at hand */
    const char *file;
    enum { GITLOOK_REPOSITORY, GITLOOK_CAME, GITLOOK_PERSON } level;
    unsigned left;
};

/* 0, or -ENOMEM. What cannot be read is not there to git, either. */
int git_look(struct git_look *l);

/* Whether the directory, by its three names, is a repository: HEAD, objects and refs. */
bool git_look_is_bare(struct arena *mem, const char *directory);

/* Why it is told, a clause; "" for what is usual. And what to do about it, for one that is not. */
const char *git_odd_text(enum git_odd odd);
/* As one word of a shell. */
const char *git_quoted(struct arena *mem, const char *text);
const char *git_odd_remedy(struct arena *mem, const struct git_run *r);
/* "FILE: KEY = VALUE", as much of it as a line holds, for people. */
const char *git_run_text(struct arena *mem, const struct git_run *r, const char *below);
