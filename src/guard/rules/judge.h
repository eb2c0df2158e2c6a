/*
 * What the rules of a guard table say about a name. Pure: canonical paths in, verdicts out; the guard asks the file
 * system what a verdict depends on (does `rest` exist below the moved directory?) and comes back.
 *
 * Paths are canonical, absolute, as seen in the box. What forbids (hidden, protected and guarded names, pins, and the trees
 * that names hold in) is compared without regard to ASCII case, so that it holds on file systems that fold it; what frees
 * (private trees, a writable tree inside something hidden or protected, directories of foreign code, sockets) by the bytes.
 */
#pragma once
#include <stdbool.h>
#include "base/arena.h"
#include "base/str.h"
#include "match/path.h"
#include "policy/policy.h"
#include "protocol/guard_table.h"

#define RULE_PARTS 8  /* components of one any-depth rule */
#define RULE_BITS  64 /* words of a bitmap of hashes      */

/* A guarded or hidden absolute place, or (any_depth) a run of components below some root. */
struct rule {
    const struct guard_rule *said;
    uint32_t index;  /* in the table, for denials */
    struct str path; /* absolute place; any-depth: the text */
    bool any_depth;
    bool pattern; /* the last part is one (match/glob.h) */
    bool direct;  /* any-depth: only directly in `below` after all */
    /* Of `rooted`: a file of a repository that is not git's. It holds in those alone that the box did not make, also at the
       top of a writable tree. */
    bool in_repository;
    struct str below;  /* any-depth: holds below this tree, "/" everywhere */
    struct str *parts; /* any-depth: its components */
    size_t n_parts;
    struct str tail; /* of several components below a writable tree: those behind the first */
};

struct rules {
    enum guard_mode mode;
    struct rule *guarded; /* NAME (absolute for GUARD_ROOT, one per root; any-depth) and PROTECT */
    size_t n_guarded;
    struct rule *hidden; /* HIDE and HIDE_NAME */
    size_t n_hidden;
    struct rule *pinned, *sockets, *private_trees, *roots;
    size_t n_pinned, n_sockets, n_private, n_roots;
    struct rule *rooted; /* NAME of GUARD_ROOT, once more: as components below the root of a repository */
    size_t n_rooted;
    bool any_depth;       /* some guarded name holds at any depth */
    bool git;             /* git configuration is judged: repositories are looked at, whatever they are called */
    bool rooted_patterns; /* some of `rooted` is a pattern */
    /* Which hashes of first components occur in any-depth rules, and in `rooted`. */
    uint64_t first[RULE_BITS], rooted_first[RULE_BITS];
    /* The same of rules of several components: of those behind the first, and of those before the last. */
    uint64_t later[RULE_BITS], above[RULE_BITS];
};

/* Compiles a table into `mem`; `strings` are the plan's. -ENOMEM, -EBADMSG for an offset or kind that cannot be. */
int rules_load(struct rules *ret, const struct guard_table *table, size_t bytes, const char *strings,
               size_t strings_bytes, struct arena *mem);

/* Of ROOT, PROTECT, HIDE and PRIVATE rules, the longest at or above `path`; NULL when there is none. */
const struct rule *rules_decider(const struct rules *r, struct str path);
/* The rule that guards `path`: the first *ret_end bytes of it are the guarded name, the rest is below. NULL: none. */
const struct rule *rules_guarded(const struct rules *r, struct str path, size_t *ret_end);
/* The rule that hides `path`, itself or (unless a longer rule opens it again) something above it. */
const struct rule *rules_hidden(const struct rules *r, struct str path);
/*
 * Rules whose place lies strictly below `path`: the next one from *at on, with what remains of its name in `ret_rest`
 * ("hooks" for ".git"). Goes over guarded, hidden (both without patterns) and pinned places. NULL: no more. Begin
 * with 0.
 */
const struct rule *rules_below(const struct rules *r, struct str path, size_t *at, struct str *ret_rest);
/*
 * Names of the `root` list in a tree: the next one that `path` has in one of the directories above it, which holds there
 * when that is the root of a repository (reporoot.c). Begin with a zeroed one.
 */
struct rooted {
    const struct rule *rule;
    struct str directory; /* the first bytes of the path; "" for the root directory */
    size_t end;           /* where the name ends in the path                    */
    struct str rest;      /* _below: what remains of the name below the path    */
    size_t i;
    bool begun;
};
bool rules_rooted(const struct rules *r, struct str path, struct rooted *w);
/* The same of names whose first components end in `path`. */
bool rules_rooted_below(const struct rules *r, struct str path, struct rooted *w);
bool rules_is_marker(struct str name); /* what makes the directory it stands in the root of a repository */
bool rules_is_root(const struct rules *r, struct str path); /* the top of a writable tree */
/* A rule with a pattern of several components, some first ones of which `path` ends in: the directory must stay. */
const struct rule *rules_pattern_prefix(const struct rules *r, struct str path, bool guarded_only);
/* Whether moving a directory between these places takes it out of an any-depth rule's reach, or into one's. */
const struct rule *rules_crossing(const struct rules *r, struct str from, struct str to);
/* PIN: the place itself or something below it stands at `path`. */
const struct rule *rules_pinned(const struct rules *r, struct str path);
/* Whether some rule of several components has this one behind its first, and so holds or not with what is above it. */
bool rules_later(const struct rules *r, struct str part);
/* Whether what comes to stand at `path` may bring what a rule guards, hides or rests on below that name. */
bool rules_counts(const struct rules *r, struct str path);
bool rules_private(const struct rules *r, struct str path);
/* In a private tree of which nobody outside has a name: no guarded name holds there. */
bool rules_free(const struct rules *r, struct str path);
const struct rule *rules_socket(const struct rules *r, struct str path);
/* The innermost writable or kept tree around `path`, "" when there is none: where names hold, so in any case of letters. */
struct str rules_root(const struct rules *r, struct str path);
/* Whether `path` lies below a directory of foreign code, where any-depth rules hold for git's names only. */
bool rules_foreign(struct str path);
/* Whether the rule is one that git itself fills when it makes a repository. */
bool rule_is_git_hooks(const struct rule *r);
bool rule_is_git_config(const struct rule *r);
