/*
 * What the rules of a guard table say about a name. Pure: takes canonical paths, returns verdicts. Where a verdict
 * depends on the file system (does `rest` exist below the moved directory?) the guard looks there and calls again.
 *
 * Paths are absolute paths in the box. Rules that forbid (hidden, protected and guarded names, pins, and the trees
 * where names apply) ignore ASCII case, so that they also hold on file systems that do; rules that permit (private
 * trees, a writable tree inside something hidden or protected, directories of foreign code, sockets) compare bytes.
 */
#pragma once
#include <stdbool.h>
#include "base/arena.h"
#include "base/str.h"
#include "match/path.h"
#include "policy/policy.h"
#include "protocol/guard_table.h"

#define RULE_PARTS  8 /* components of one any-depth rule */
#define RULE_HASHES (1 << 12)
#define RULE_ANY    RULE_HASHES
#define RULE_WHOLE  (8u << 10) /* bytes of the top of a tree and a name below it */

/* A guarded or hidden absolute path, or (any_depth) a run of components below some root. */
struct rule {
    const struct guard_rule *said;
    uint32_t index;  /* in the table, for denials */
    struct str path; /* absolute path; any-depth, and names of the top of trees: the text */
    bool any_depth;
    bool pattern; /* the last component is a pattern (match/glob.h) */
    bool direct;  /* any-depth: only directly in `below` */
    /* In `rooted`: a file of the repository that does not belong to git. The rule applies only to repositories that
       the box did not create, and to the top of a writable tree. */
    bool in_repository;
    struct str below;  /* any-depth: applies below this tree, "/" everywhere */
    struct str *parts; /* any-depth: its components */
    char last;         /* of a pattern: the letter that every match ends in, or 0 */
    unsigned begins;   /* rule_hash() of the first component, or RULE_ANY for a pattern */
    size_t n_parts;
    struct str tail; /* of several components below a writable tree: those after the first */
};

/* One of the absolute paths that a query compares. Here is what tells most of them apart from the path, without a look at the rule. */
struct rule_path {
    size_t n; /* length */
    const struct rule *rule;
};

/* The same of a rule of components, by its first one. */
struct rule_run {
    unsigned begins; /* as in the rule */
    const struct rule *rule;
};

/*
 * What a component may be, by its hash. A bit that is not set rules that out; one that is set does not say that it is so.
 * LATER and ABOVE: in a rule of several components, any but the first, and any but the last.
 */
enum rule_may {
    MAY_BEGIN = 1,        /* the first component of an any-depth guarded name */
    MAY_BEGIN_ROOTED = 2, /* of `rooted` */
    MAY_BE_LATER = 4,
    MAY_BE_ABOVE = 8,
    MAY_BE_CONFIG = 16, /* a name whose content is judged */
    MAY_BE_GITS = 32,   /* a name of rules_gits */
    MAY_BE_FOREIGN = 64 /* a directory of foreign code */
};

/* What the components of the path that was asked about last may be: a call asks about one path many times. */
struct rules_seen {
    size_t n;
    unsigned may;
    char text[512]; /* of longer paths nothing is kept */
};

struct rules {
    enum guard_mode mode;
    struct rule *guarded; /* NAME of any depth, and PROTECT */
    size_t n_guarded;
    struct rule *names; /* NAME of GUARD_ROOT, below the top of each of `roots`: kept once for all of them */
    size_t n_names;
    struct rule *hidden; /* HIDE and HIDE_NAME */
    size_t n_hidden;
    struct rule *pinned, *sockets, *private_trees, *roots;
    size_t n_pinned, n_sockets, n_private, n_roots;
    struct rule *branches; /* `below` is the repository */
    size_t n_branches;
    struct rule *rooted; /* NAME of GUARD_ROOT again, as components below the root of a repository */
    size_t n_rooted;
    bool deep; /* some of them hold in all directories of a repository */
    /* Of the lists above, made once they are complete: the rules that rules_decider() compares, so that the first one at or above a
       path decides; the patterns of `rooted`. */
    struct rule_path *trees, *patterns;
    size_t n_trees, n_patterns;
    bool any_depth;        /* some guarded name applies at any depth */
    bool git;              /* judge git configurations: look at repositories whatever their name */
    struct rule_run *runs; /* any-depth names of `guarded` */
    size_t n_runs;
    unsigned char may[RULE_HASHES]; /* of each hash */
    struct rules_seen *seen;
};

/* ASCII alone, whatever the locale. */
static inline int rule_fold(int c)
{
    return c >= 'A' && c <= 'Z' ? c + 32 : c;
}
/* A number for a component, whatever its case: by its length and three letters, which is cheap, since what it lets through is
   compared whole. */
static inline unsigned rule_hash(struct str s)
{
    unsigned h = (unsigned)s.n;
    const size_t at[] = {0, s.n / 2, s.n - 1};
    for (size_t i = 0; s.n && i < sizeof at / sizeof *at; i++)
        h = h * 251 + (unsigned)rule_fold((unsigned char)s.p[at[i]]);
    return h * 2654435769u >> 20; /* 12 bits */
}

/* Compiles a table into `mem`; `strings` are the plan's. -ENOMEM, or -EBADMSG for an invalid offset or kind. */
int rules_load(struct rules *ret, const struct guard_table *table, size_t bytes, const char *strings,
               size_t strings_bytes, struct arena *mem);

/* The longest of the ROOT, PROTECT, HIDE and PRIVATE rules at or above `path`, or NULL. */
const struct rule *rules_decider(const struct rules *r, struct str path);
/* Whether no link may be made there; and whether a rename could bring one there, or into such a place below what is moved. */
bool rules_no_links(const struct rules *r, struct str path);
bool rules_may_bring_links(const struct rules *r, struct str from, struct str to);
/* The rule that guards `path`: its first *ret_end bytes are the guarded name, the rest is below. NULL: none. */
const struct rule *rules_guarded(const struct rules *r, struct str path, size_t *ret_end);
/* The rule that hides `path`, itself or (unless a longer rule makes it visible again) as a descendant. */
const struct rule *rules_hidden(const struct rules *r, struct str path);
/* Iterates over guarded, hidden (both without patterns) and pinned places strictly below `path`. Begin with `at` 0. NULL: no more. */
struct below {
    size_t at;
    struct str rest; /* of the name: "hooks" for ".git" */
    char text[RULE_WHOLE];
};
const struct rule *rules_below(const struct rules *r, struct str path, struct below *b);
/* The same over the guarded names at the tops of all writable trees: `text` gets the absolute path, whose length is *ret_n. */
const struct rule *rules_top(const struct rules *r, size_t *at, char text[RULE_WHOLE], size_t *ret_n);
/* Iterates over names of the `root` list in `path` that would be guarded if the directory they are in is the root of a
   repository (reporoot.c). Begin with a zeroed struct. */
struct rooted {
    const struct rule *rule;
    struct str directory; /* the first bytes of the path; "" for the root directory */
    size_t end;           /* where the name ends in the path */
    struct str rest;      /* _below: the rest of the name below the path */
    size_t from;          /* where the outermost writable tree ends in the path */
    size_t i;
    bool begun;
};
bool rules_rooted(const struct rules *r, struct str path, struct rooted *w);
/* The same for names whose first components are the end of `path`. */
bool rules_rooted_below(const struct rules *r, struct str path, struct rooted *w);
bool rules_is_marker(struct str name); /* a name that makes its directory the root of a repository */
bool rules_is_root(const struct rules *r, struct str path); /* the top of a writable tree */
/* A rule of several components with a pattern whose first components `path` ends with: the directory must stay
   there. */
const struct rule *rules_pattern_prefix(const struct rules *r, struct str path, bool guarded_only);
/* Whether moving a directory between these places moves it out of or into the scope of an any-depth rule. */
const struct rule *rules_crossing(const struct rules *r, struct str from, struct str to);
/* The rule of `rooted` that holds in all directories of a repository and that this name is one of; NULL: none. */
const struct rule *rules_deep(const struct rules *r, struct str name);
/* PIN: `path` or something below it is pinned. */
const struct rule *rules_pinned(const struct rules *r, struct str path);
/* Whether a rule of several components contains this one after the first, so that it depends on what is above. */
bool rules_later(const struct rules *r, struct str part);
/* Whether something new at `path` may bring along names that a rule guards, hides or depends on. */
bool rules_counts(const struct rules *r, struct str path);
/* In a tree of the box's own, or behind its layer. */
bool rules_private(const struct rules *r, struct str path);
/* In a private tree that is not visible outside, or behind a layer: guarded names do not apply. */
bool rules_free(const struct rules *r, struct str path);
const struct rule *rules_socket(const struct rules *r, struct str path);
/* The innermost writable or kept tree around `path`, "" if none: guarded names apply there, so any case of letters. */
struct str rules_root(const struct rules *r, struct str path);
/* Whether `path` is below a directory of foreign code, where of the any-depth rules only git's names apply. */
bool rules_foreign(struct str path);
static inline bool rule_is_deep(const struct rule *r)
{
    return r->said->flags & GUARD_RULE_DEEP;
}
/* Whether the rule is for a directory that git itself fills when it creates a repository. */
bool rule_is_git_hooks(const struct rule *r);
bool rule_is_git_config(const struct rule *r);
/* Whether a rule_is_git_config() may end in this component: by its hash, which tells almost all others apart. */
bool rules_may_be_config(const struct rules *r, struct str last);
/* What the components of `path` may be (enum rule_may): by their hashes. */
unsigned rules_may(const struct rules *r, struct str path);
/* The same of one component: any of these. */
static inline bool rules_part_may(const struct rules *r, struct str part, unsigned may)
{
    return r->may[rule_hash(part)] & may;
}
/* Names that git gives meaning to in a repository, besides those of the table: marked as MAY_BE_GITS when the rules are loaded. Whoever
   looks for another one (hold.c, verdict.c) adds it here, since a path without any of them is not looked at. */
extern const char *const rules_gits[];

/* What of a repository with protected branches a path names. */
enum rules_refs {
    REFS_NONE,
    REFS_BRANCH,   /* the file of a protected branch */
    REFS_PACKED,   /* packed-refs */
    REFS_TABLE,    /* reftable, or something in it */
    REFS_DIRECTORY /* refs, refs/heads, or another name in it */
};
/* `ret_rule`: for all but REFS_NONE. */
enum rules_refs rules_refs(const struct rules *r, struct str path, const struct rule **ret_rule);
/* The rule that protects the branch `ref` ("refs/heads/x") of the repository that `of` is about, or NULL. */
const struct rule *rules_branch(const struct rules *r, const struct rule *of, struct str ref);
