/*
 * "pattern\nname": the grammar against the slow reference, which is written from the manual, and against what it says itself:
 * in any case matches no less than exactly, a literal spelling means itself, and what is cut into parts is all of it.
 */
#include "../unit/glob_reference.h"
#include "fuzz.h"
#include "match/path.h"

static bool is_short(struct str s)
{
    unsigned letters = 0, stars = 0;
    for (size_t i = 0; i < s.n; i++) {
        letters += reference_is_letter((unsigned char)s.p[i]);
        stars += s.p[i] == '*';
    }
    return s.n < 48 && letters <= REFERENCE_LETTERS && stars < 6;
}

static void check_match(struct str pattern, struct str name)
{
    bool exact = glob_match(pattern, name, GLOB_EXACT), any = glob_match(pattern, name, GLOB_ANY_CASE);
    MUST(any || !exact);
    MUST(!exact || glob_match(pattern, name, GLOB_LINE));
    MUST(glob_wrong(pattern) || !glob_wrong_line(pattern));
    MUST(name_fits(pattern, true, name) == any);
    if (!is_short(pattern) || !is_short(name))
        return;
    struct reference_pattern slow = reference_parse(pattern.p, pattern.n);
    MUST(slow.wrong == (glob_wrong(pattern) != NULL));
    if (!slow.wrong)
        MUST(reference_match(&slow, name.p, name.n, false) == exact &&
             reference_match(&slow, name.p, name.n, true) == any);
    reference_free(&slow);
}

static void check_parts(struct str pattern)
{
    struct glob_part part;
    struct str rest = pattern;
    enum glob_kind kind;
    size_t left = pattern.n + 1;
    while ((kind = glob_next(&rest, &part)) != GLOB_END && kind != GLOB_WRONG) {
        uint32_t low, high;
        size_t members = 0;
        MUST(rest.n < left);
        left = rest.n;
        if (kind != GLOB_SET)
            continue;
        for (struct str m = part.members; glob_member(&m, &low, &high); members++)
            MUST(low <= high);
        MUST(members);
    }
    MUST((kind == GLOB_WRONG) == (glob_wrong(pattern) != NULL));
}

static void check_literal(struct str name)
{
    auto_buf struct buf text = BUF(1 << 20);
    for (size_t i = 0; i < name.n; i++)
        glob_put_literal(&text, name.p[i]);
    if (memchr(name.p, '/', name.n) || memchr(name.p, 0, name.n) || !buf_ok(&text))
        return;
    MUST(!glob_wrong(buf_view(&text)) && glob_match(buf_view(&text), name, GLOB_EXACT));
}

static void check_path(struct str path)
{
    auto_arena struct arena *mem = arena_new(1 << 20);
    if (path.n > 4096 || memchr(path.p, 0, path.n))
        return;
    const char *clean = path_clean_at(mem, "/a/b", path);
    MUST(clean && clean[0] == '/' && same(path_clean(mem, clean), clean) && !strstr(clean, "//"));
    MUST(path_in_exactly(str_of(clean), STR("/")) && path_in_exactly(str_of(clean), str_of(clean)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str in = {(const char *)data, size}, rest = in;
    struct str pattern = str_until(&rest, '\n');
    if (size == 0 || size > 400)
        return 0;
    check_match(pattern, rest);
    check_parts(pattern);
    check_literal(in);
    check_path(in);
    return 0;
}
