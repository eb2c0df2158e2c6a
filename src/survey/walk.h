/*
 * What the parts of the survey share: every directory on some path is a node, examined once (one statx) and found again by
 * (parent node, name).
 */
#pragma once
#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "match/proctext.h"
#include "plan/facts.h"
#include "policy/policy.h"

#define MAX_LINKS 40 /* for one path, as in the kernel (path_resolution(7)) */

struct survey_node {
    struct survey_node *parent; /* the root's is itself */
    const char *name, *real;    /* the name is the end of the path */
    enum path_type type;
    int no;
    bool is_link;
    uint32_t hash;
    uint32_t mode, uid, gid;
    uint64_t dev, ino, born, bytes;
    uint64_t mount;                                   /* id of the mount it is seen through; 0: not known */
    const char *target;                               /* text of the link */
    struct dir_listing *listing;                      /* what it does not contain, if many names are asked for */
    bool searched, unlisted;                          /* a name was looked for in it; never list it */
    enum { NOT_ASKED, NOT_WRITTEN, WRITTEN } written; /* by a box: checked when a link in it is followed */
    struct survey_node *next;                         /* in the same bucket */
};

struct surveyor {
    struct arena *mem;
    struct survey_node *root;
    struct survey_node **buckets;
    size_t n_buckets, n_nodes;
    int links_left;
    uint32_t uid;                     /* of the caller */
    const struct mount_rule **mounts; /* sorted by target */
    size_t n_mounts;
    const char *memory;
    struct {
        uint64_t dev;
        bool known, local; /* listing_is_local() */
    } systems[4];
    struct survey_mount {
        uint64_t id, system;   /* the file system, by its device */
        const char *root, *at; /* what it shows of that, and where */
        bool twice;            /* another mount shows a part of that elsewhere */
    } * table;
    size_t n_table;
    bool twice;                  /* there are such mounts */
    bool judging;                /* links are judged while they are followed */
    struct survey_node *planted; /* the first that a box may have created */
    struct asked_list {
        struct survey_asked {
            const char *path;
            bool host; /* a path of the host, whatever a mount shows the box there */
        } * at;
        size_t n;
    } asked; /* all paths, sorted */
    char text[PATH_MAX];
};

/* End of a walk: `rest` is what follows a node that is missing, no directory, or may not be searched. */
struct place_found {
    struct survey_node *at, *link;
    const char *rest;
};

/* ---- walk.c: nodes and paths; all return 0 or -errno ---- */

enum path_type survey_type(uint32_t mode);
/* listing_is_local(), asked once for a file system. */
bool survey_is_local(struct surveyor *s, uint64_t dev, const char *path);
/* Examines a node; -ENOMEM alone is an error: what cannot be examined is a fact. */
int survey_look(struct surveyor *s, struct survey_node *n);
/* Follows `path` from a node, over links by their text. -ELOOP sets `*ret`, too. */
int survey_walk(struct surveyor *s, struct survey_node *from, const char *path, struct place_found *ret);
int survey_path(struct surveyor *s, const char *path, struct path_fact *f);

/* ---- asked.c: what the plan will look up ---- */

int survey_ask(struct surveyor *s, struct asked_list *a, const char *path, bool host);
/*
 * A rule for a path below a mount's target means what the box sees there, so the path to examine is below that mount's
 * source; of several the deepest target counts. NULL without memory.
 */
const char *survey_through_mounts(struct surveyor *s, const char *path);
/* Whether the caller may not read it. */
bool survey_is_refused(struct surveyor *s, const struct facts *f, const char *real, uint64_t dev, uint32_t uid,
                       uint32_t mode);
int survey_paths(struct surveyor *s, const struct policy *p, struct facts *f);

/* ---- the others; each needs what those before it found ---- */

/* planted.c: refuses given paths that lead over a link which a box may have created, with a sentence in `e`. */
int survey_judge_links(struct surveyor *s, const struct policy *p, struct facts *f, struct err *e);
/* clone.c: what ./pinfold builds from, where a box could write around it. */
int survey_clone(struct surveyor *s, const struct policy *p, struct facts *f);
/* aliases.c: survey_mounts() reads the table of mounts, before anything else is asked there. */
int survey_mounts(struct surveyor *s);
/* Other paths of what is hidden, protected or pinfold's own. */
int survey_aliases(struct surveyor *s, const struct policy *p, struct facts *f);
/* Whether another mount shows `real`, a part of it or what it is in: 1, 0 or -errno. */
int survey_is_twice(struct surveyor *s, const char *real);
/* patterns.c: what patterns match now. `e` says which bound was met. */
int survey_patterns(struct surveyor *s, const struct policy *p, struct facts *f, struct err *e);
enum path_type survey_entry_type(const char *dir, const struct dirent *d);
bool survey_is_dots(const char *name);
/* directories.c: for the Landlock tier, whose rules can only allow: everything beside a hidden place. */
int survey_dirs(struct surveyor *s, const struct policy *p, struct facts *f);
