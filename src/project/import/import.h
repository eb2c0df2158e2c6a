/*
 * `pinfold volume import`: what the volumes of the tool agent-sandbox have for a project, moved to where pinfold has it. The archive of a
 * volume is unpacked in a box (unpack.sh), and git looks at it in another (import.sh): nothing on the host reads what is in it but
 * histories, as bytes. Nothing that is here already is written over.
 */
#pragma once
#include "project/branch.h"

#define IMPORT_IN_BOX "/repo-import" /* where boxes have what was unpacked */

/* What a volume of that tool is, by its name and the MD5 of a project's path. */
enum import_kind { IMPORT_NOT_OURS, IMPORT_SHELF, IMPORT_SHELLS, IMPORT_CLAUDE, IMPORT_CODEX };
#define IMPORT_PREFIX "agent-s" /* with it names of all of them begin */
enum import_kind import_kind(const char *volume, const char *hash);

enum { IMPORT_BRANCHES = 256, IMPORT_FOUND = 512 /* volumes that are looked at, at most */ };

enum import_state { IMPORT_NEW, IMPORT_SAME, IMPORT_OTHER };
struct import_branch {
    char name[BRANCH_NAME_MAX + 1];
    unsigned commits, files; /* that no remote is known to have; changed and not committed */
    enum import_state state; /* SAME: it is here as it is there; OTHER: a branch of this name is here */
};

struct import {
    const char *real; /* the checkout */
    struct shelf shelf;
    char scratch[PATH_MAX]; /* shelf_scratch(): of this process */
    int held;
    bool fresh; /* the shelf was not there before */
    void (*say)(const char *line);
    char *why;
    size_t room;
    struct import_branch branches[IMPORT_BRANCHES];
    size_t n_branches;
};

/* Each: 0, or -errno with a sentence in `why`. After import_begin() comes import_end(), whatever happens. */
int import_begin(struct import *m);
void import_end(struct import *m);
/* Makes a directory of this name in the scratch; `ret` is its path. */
int import_directory(struct import *m, const char *name, char ret[PATH_MAX]);
/* Unpacks the archive that `fd` gives into it. `kind`: "branches", or another word. */
int import_unpack(struct import *m, const char *directory, const char *kind, int fd);
/* Fills m->branches from an unpacked volume of branches; `only`: this branch alone, or NULL. */
int import_look(struct import *m, const char *directory, const char *only);
/* Makes that branch here; -EEXIST: one of its name is here. */
int import_branch(struct import *m, const char *directory, const char *name);
/* What else the volume has: stashes, tags, and the state of branches that were not made. */
int import_rest(struct import *m, const char *directory, const char *only);
/* The history of shells, as what a shell of the checkout's session and of its branches begins with that has none. 0, 1: one was imported already. */
int import_history(struct import *m, const char *directory);
