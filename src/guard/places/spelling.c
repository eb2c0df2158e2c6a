/*
 * Names that only the file system takes for guarded ones: where it folds case by Unicode, `.v\u017fcode` opens
 * `.vscode`, where it has short names, `git~1` opens `.git`, and where it has streams, `.git/config:` opens `.git/config`. A file system
 * does not say for each directory which spellings it takes (casefold is a flag of a directory, FAT's table an option of the mount), so all
 * but short names are refused everywhere: nobody uses them. git refuses the same (core.protectHFS, core.protectNTFS; CVE-2014-9390).
 */
#include "guard/inside.h"
#include "match/spelling.h"

/* What rules say of a path. */
static unsigned said_of(const struct rules *r, struct str path)
{
    struct rooted w = {.begun = false};
    const struct rule *rule;
    size_t end;
    return (rules_guarded(r, path, &end) ? 1u : 0) | (rules_hidden(r, path) ? 2u : 0) |
           (rules_rooted(r, path, &w) ? 4u : 0) | (rules_counts(r, path) ? 8u : 0) |
           (path_git_directory(path.p) ? 16u : 0) | (rules_refs(r, path, &rule) != REFS_NONE ? 32u : 0);
}

/* Whether they say more of the plain spelling. */
static bool is_special(const struct rules *r, struct str plain, struct str path)
{
    return (said_of(r, plain) & ~said_of(r, path)) || rules_decider(r, plain) != rules_decider(r, path);
}

/* Whether the name may have several spellings: it has bytes beyond ASCII, a colon, a backslash, or dots or spaces at an end; *ret_short: or
   "~1". */
static bool is_odd(struct str path, bool *ret_short)
{
    bool odd = false;
    *ret_short = false;
    for (size_t i = 0; i < path.n; i++) {
        const char c = path.p[i], next = i + 1 < path.n ? path.p[i + 1] : '/';
        odd |= (unsigned char)c >= 0x80 || c == ':' || c == '\\' || ((c == '.' || c == ' ') && next == '/');
        *ret_short |= c == '~' && next >= '0' && next <= '9';
    }
    return odd;
}

int place_spelling(struct guard *g, const struct place *p)
{
    char plain[PLACE_PATH];
    size_t n;
    bool is_short;
    const struct str path = place_path(p);
    const bool odd = is_odd(path, &is_short);
    if (!odd && !is_short)
        return 0;
    const struct str root = rules_root(&g->rules, path);
    if (!root.n || root.n > path.n || rules_free(&g->rules, path))
        return 0;
    bool own = true;
    (void)is_odd(str_skip(path, root.n), &own);
    if (own && sys_has_short_names(p->dir))
        return deny(g, DENIAL_CREATE, NULL, path, "it may be the short form of another name here; use one without ~");
    if (!odd || !path_respell(path, root.n == 1 ? 0 : root.n, plain, &n) ||
        !is_special(&g->rules, (struct str){plain, n}, path))
        return 0;
    return deny(g, DENIAL_CREATE, NULL, path,
                "some file systems take it for a name that is guarded, protected or hidden; use another name");
}
