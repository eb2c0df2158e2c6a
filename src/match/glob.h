/*
 * The only grammar of patterns of names. A pattern stands for one name: one component of a path, which never holds '/'.
 * pinfold-policy(5), section PATTERNS, says the same to people.
 *
 *     *           any number of characters, none as well
 *     ?           one character
 *     [abc] [a-f] one character of the set; of a range, all from its first character to its last, by code point
 *     [!abc]      one character that is not in the set; [^abc] means the same
 *     \c          the character c itself, inside a set, too
 *     c           any other character stands for itself
 *
 * A character is a code point in valid UTF-8 (RFC 3629). A byte that is part of none is a character of its own, which stands
 * for itself and is no end of a range. Nothing is normalised. `*`, `?` and sets match a dot at the beginning, and never
 * '/' or NUL.
 *
 * In a set: `]` first (behind the `!` or `^`, where there is one) is a member; `-` first or last is a member, and so is one
 * that follows a range; `!` and `^` are members but at the beginning. An empty set cannot be written.
 *
 * No pattern (glob_wrong() says why): '[' without its ']'; '\' at the end; a range that ends before it begins, or has a byte
 * that is no character at an end; `[:`, `[=` and `[.` in a set, which other languages read as a class; '/' and NUL.
 *
 * GLOB_ANY_CASE is for rules that forbid: a name matches when it does with any of its ASCII letters in the other case, so that
 * a rule holds on file systems that fold case. `[!b]` therefore matches both b and B, and `[!bB]` neither. GLOB_EXACT is for
 * what allows, or only searches.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "base/buf.h"
#include "base/str.h"

enum glob_case { GLOB_EXACT, GLOB_ANY_CASE };

/* NULL for a pattern; otherwise what is wrong and the remedy, to stand behind the quoted pattern: "has a '[' ...". */
const char *glob_wrong(struct str pattern);
/*
 * Whether the name matches. Quadratic in time at worst, constant in space. To be asked of patterns only: where something
 * else is met on the way, the answer is what forbids more (true with GLOB_ANY_CASE, false with GLOB_EXACT).
 */
bool glob_match(struct str pattern, struct str name, enum glob_case how);
/* Appends a character (or byte) such that it stands for itself in a pattern, in a set as well. */
void glob_put_literal(struct buf *out, char c);

/* ---- to translate a pattern into another language: its parts, one after the other */

enum glob_kind {
    GLOB_END,
    GLOB_CHARACTER,
    GLOB_ONE,  /* ? */
    GLOB_MANY, /* * */
    GLOB_SET,
    GLOB_WRONG /* no pattern from here on */
};
enum { GLOB_BYTES = 0x110000 }; /* a byte that is no character is this and its value */
struct glob_part {
    uint32_t character; /* GLOB_CHARACTER */
    bool negated;       /* GLOB_SET */
    struct str members; /* GLOB_SET: for glob_member() */
};
/* Cuts the next part off. */
enum glob_kind glob_next(struct str *pattern, struct glob_part *ret);
/* Cuts the next member of a set off: all from `low` to `high`. False at the end. */
bool glob_member(struct str *members, uint32_t *low, uint32_t *high);
