/*
 * What names mean in a repository, and in paths that the guard judges: pure, as all of judge/. Where a name means something only if
 * its directory is a repository, the guard looks there (guard/rules/repository.c).
 */
#pragma once
#include "judge/judge.h"

#define GUARD_TEMP ".pinfold-guard-" /* prefix of names that only the guard creates */

/* Names in which git still reads remotes, each as a file, as before there were configuration files. */
bool layout_holds_remotes(struct str name);
/* What of a repository's own a directory below "objects", "refs" ... is: a submodule's repository is never among these. NULL at the end. */
extern const char *const layout_own_files[];
bool layout_is_own_file(struct str name);
/* One of the two names that make their directory a repository; `ret_other` gets the second. */
bool layout_is_half(struct str name, const char **ret_other);
/*
 * Samples with which git fills the hooks of a new repository, before it is one, and libgit2 (cargo) after. `end`: of ".../hooks" in
 * `path`. Nothing runs names that end so.
 */
bool layout_is_hook_sample(struct str path, size_t end, bool directory, bool file);
bool layout_has_git(struct str path); /* a component is ".git" */
/* Temporary names of the guard, and all below: a directory may be on its way to a name that counts. */
bool layout_is_reserved(struct str path);
struct str layout_last(struct str path);
bool layout_has(struct str path, struct str part);

/* In no writable tree and no tree of the box's own. */
bool rules_outside(const struct rules *r, struct str path);
/* In a writable tree that is the host's, too. */
bool rules_of_host(const struct rules *r, struct str path);
/* Where repositories are judged: strict, in a writable tree, and not in a place that is the box's alone. */
bool rules_judges_git(const struct rules *r, struct str path);
/* The path matters to what makes a directory a repository: the lock of names is taken exclusively. */
bool rules_exclusive(const struct rules *r, struct str path);
/* Below a .git, or (`or_at`) at one, where repositories are judged. */
bool rules_of_git(const struct rules *r, struct str path, bool or_at);
/* A branch, tag or remote whose short name begins with "-". git creates none, but scripts that pass such a name to git pass an option
   ("--mirror", "--upload-pack=..."). Its full name would be refs/KIND/-NAME. */
bool rules_is_option_ref(const struct rules *r, struct str path);
/* From one tree behind a copy-on-write layer to the same one. */
bool rules_in_one_layer(const struct rules *r, struct str from, struct str to);
bool layout_is_system(struct str path); /* in a directory of programs and libraries */
/* A link in `directory` with this text leads out of all trees, judging by the text, and not to programs of the system; or the text does
   not tell, because dots come behind a name. */
bool rules_leads_out(const struct rules *r, struct str directory, struct str text);
/* Why the rule refuses. */
const char *rule_reason(const struct rule *rule);
/* Whether the name of the rule may be created, empty, to mount over it; `path` is all of it (guard/rules/point.c). */
bool rule_may_be_point(const struct rule *rule, struct str path, bool directory);

/*
 * Iterates over what `path` would be in a repository, whatever that is called: "X/hooks" (and below), "X/config", "X/index",
 * "X/commondir" (which says that the two are elsewhere), "X/info/attributes", or something in "X/remotes". Begin with a zeroed struct.
 */
struct repository_name {
    size_t x;    /* the length of "X", which must be a repository ... */
    bool index;  /* ... or have an index */
    bool any;    /* ... or need not be looked at */
    size_t end;  /* of the name in the path */
    bool config; /* judged by its content */
    unsigned step;
    size_t at;
};
bool rules_next_repository_name(const struct rules *r, struct str path, struct repository_name *w);

/*
 * Iterates over the directories on the path that no other box may change between verdict and act (guard/rules/hold.c says which and
 * why): the first `n` bytes. Begin with a zeroed struct.
 */
struct held_directory {
    size_t n;
    size_t at, root;
    struct str before;
};
bool rules_next_held(const struct rules *r, struct str path, struct held_directory *w);

/*
 * Whether the path of a place in a tree has another spelling, for a file system that takes both for the same name, and rules say more of
 * that (guard/places/spelling.c). *ret_short: part of it may be the short form of another name.
 */
bool rules_misspelled(const struct rules *r, struct str path, bool *ret_short);
