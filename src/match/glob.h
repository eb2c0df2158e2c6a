/*
 * The only grammar of name patterns. A pattern matches one name: one component of a path, without '/'. The section
 * PATTERNS of pinfold-policy(5) tells users the same.
 *
 *     *           any number of characters, also none
 *     ?           one character
 *     [abc] [a-f] one character of the set; a range covers all code points from its first character to its last
 *     [!abc]      one character that is not in the set; [^abc] means the same
 *     \c          the character c itself, also in a set
 *     c           any other character stands for itself
 *
 * A character is a code point in valid UTF-8 (RFC 3629). An invalid byte is a character of its own, which matches
 * itself and cannot end a range. Nothing is normalised. `*`, `?` and sets match a leading dot, but never '/' or NUL.
 *
 * In a set, `]` is a member if it comes first (after `!` or `^`, if present); `-` if it comes first, last or after a
 * range; `!` and `^` anywhere but at the beginning. An empty set cannot be written.
 *
 * Not a pattern (glob_wrong() says why): '[' without ']'; '\' at the end; a range whose end is below its start, or that
 * starts or ends with an invalid byte; `[:`, `[=` and `[.` in a set, which other languages read as a class; '/' and
 * NUL.
 *
 * GLOB_ANY_CASE is for rules that forbid: a name matches if it does with any of its ASCII letters in the other case, so
 * that the rule also holds on file systems that fold case. `[!b]` therefore matches both b and B, and `[!bB]` neither.
 * GLOB_EXACT is for rules that allow, and for searches. GLOB_LINE is for a line of text that is no name: '/' is a character
 * as others there, which `*`, `?` and sets match, too.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "base/buf.h"
#include "base/str.h"

enum glob_case { GLOB_EXACT, GLOB_ANY_CASE, GLOB_LINE };

/* NULL if it is a pattern; otherwise what is wrong and the remedy, to follow the quoted pattern: "has a '[' ...". */
const char *glob_wrong(struct str pattern);
const char *glob_wrong_line(struct str pattern); /* the same for GLOB_LINE */
/*
 * Whether the name matches. At worst quadratic time, constant space. Check the pattern with glob_wrong() first: an
 * invalid one gives the answer that forbids more (true with GLOB_ANY_CASE, false with the others).
 */
bool glob_match(struct str pattern, struct str name, enum glob_case how);
/* Appends a character (or byte), escaped so that it stands for itself, also in a set. */
void glob_put_literal(struct buf *out, char c);

/* ---- the parts of a pattern, one after the other, to translate it into another language */

enum glob_kind {
    GLOB_END,
    GLOB_CHARACTER,
    GLOB_ONE,  /* ? */
    GLOB_MANY, /* * */
    GLOB_SET,
    GLOB_WRONG /* the rest is not a pattern */
};
enum { GLOB_BYTES = 0x110000 }; /* an invalid byte is represented by this plus its value */
struct glob_part {
    uint32_t character; /* GLOB_CHARACTER */
    bool negated;       /* GLOB_SET */
    struct str members; /* GLOB_SET: for glob_member() */
};
/* Cuts off the next part. */
enum glob_kind glob_next(struct str *pattern, struct glob_part *ret);
/* Cuts off the next member of a set, `low` to `high`. False at the end. */
bool glob_member(struct str *members, uint32_t *low, uint32_t *high);
