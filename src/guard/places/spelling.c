/*
 * Names that only the file system takes for guarded ones: where it folds case by Unicode, `.v\u017fcode` opens
 * `.vscode`, where it has short names, `git~1` opens `.git`, and where it has streams, `.git/config:` opens `.git/config`. A file system
 * does not say for each directory which spellings it takes (casefold is a flag of a directory, FAT's table an option of the mount), so all
 * but short names are refused everywhere: nobody uses them. git refuses the same (core.protectHFS, core.protectNTFS; CVE-2014-9390).
 */
#include "guard/rules/rules.h"
#include "judge/layout.h"

int place_spelling(struct guard *g, const struct place *p)
{
    bool is_short;
    const struct str path = place_path(p);
    const bool other = rules_misspelled(&g->rules, path, &is_short);
    if (is_short && sys_has_short_names(p->dir))
        return deny(g, DENIAL_CREATE, NULL, path, "it may be the short form of another name here; use one without ~");
    if (!other)
        return 0;
    return deny(g, DENIAL_CREATE, NULL, path,
                "some file systems take it for a name that is guarded, protected or hidden; use another name");
}
