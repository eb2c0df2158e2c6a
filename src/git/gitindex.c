/*
 * The index (.git/index; git's documentation, gitformat-index.txt). git checks the paths of trees when it reads them, but not those of
 * an index: it takes the file for its own, and `git restore .` writes what it names, `.git/hooks/post-checkout` as well, and then runs it.
 * So an index may only name paths within the work tree, and must be one that git cannot read in another way than this does.
 */
#include <errno.h>
#include <stdint.h>
#include "git/gitconfig.h"

enum { HEAD_BYTES = 12, STAT_BYTES = 40, NAME_BITS = 0xfff, EXTENDED = 0x4000, PATH_BYTES = 4096 };

struct index {
    struct str text; /* without the hash at the end */
    size_t hash, at; /* of an object's name; of the next entry */
    uint32_t version, n;
    size_t name_n;
    char name[PATH_BYTES];
    bool whole; /* the name does not depend on the one before (version 4) */
};

static uint32_t number_at(const char *p)
{
    const uint8_t *b = (const uint8_t *)p;
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static bool index_open(struct index *x, struct str text, size_t hash)
{
    if (text.n < HEAD_BYTES + hash || !str_starts(text, STR("DIRC")))
        return false;
    x->text = (struct str){text.p, text.n - hash};
    x->hash = hash;
    x->at = HEAD_BYTES;
    x->version = number_at(text.p + 4);
    x->n = number_at(text.p + 8);
    x->name_n = 0;
    return x->version >= 2 && x->version <= 4;
}

/* Version 4: how much of the last name goes, as a number of git's, and what is added, up to a NUL. */
static bool compressed_name(struct index *x, size_t at)
{
    uint64_t less = 0;
    for (unsigned i = 0;; i++) {
        if (i == 4 || at >= x->text.n)
            return false;
        const uint8_t byte = (uint8_t)x->text.p[at++];
        less = (i ? (less + 1) << 7 : 0) | (byte & 0x7f);
        if (!(byte & 0x80))
            break;
    }
    const char *end = memchr(x->text.p + at, 0, x->text.n - at);
    size_t more = end ? (size_t)(end - x->text.p) - at : 0;
    if (!end || less > x->name_n || more > sizeof x->name - (x->name_n - less))
        return false;
    x->whole = less == x->name_n;
    x->name_n -= (size_t)less;
    memcpy(x->name + x->name_n, x->text.p + at, more);
    x->name_n += more;
    x->at = at + more + 1;
    return true;
}

/* The next entry's name; false: there is none within the file. */
static bool next_entry(struct index *x)
{
    size_t at = x->at + STAT_BYTES + x->hash;
    if (at + 2 > x->text.n)
        return false;
    const unsigned flags = (unsigned)(uint8_t)x->text.p[at] << 8 | (uint8_t)x->text.p[at + 1];
    if (flags & EXTENDED && x->version < 3)
        return false;
    at += flags & EXTENDED ? 4 : 2;
    if (at > x->text.n)
        return false;
    if (x->version == 4)
        return compressed_name(x, at);
    const char *end = memchr(x->text.p + at, 0, x->text.n - at);
    size_t n = flags & NAME_BITS;
    if (!end || n > sizeof x->name || n > x->text.n - at)
        return false;
    if (n == NAME_BITS)
        n = (size_t)(end - x->text.p) - at;
    if (n > sizeof x->name)
        return false;
    memcpy(x->name, x->text.p + at, n);
    x->name_n = n;
    x->at += (at - x->at + n + 8) & ~(size_t)7;
    return x->at <= x->text.n;
}

/* Outside of the work tree, or in a repository. */
bool gitindex_leads_out(struct str name)
{
    const char *end = name.n ? memchr(name.p, 0, name.n) : NULL; /* git's functions of files see no more */
    name.n = end ? (size_t)(end - name.p) : name.n;
    if (name.n && name.p[0] == '/')
        return true;
    while (name.n) {
        struct str part = str_until(&name, '/');
        if (str_is(part, "..") || str_is_nocase(part, ".git") || str_is_nocase(part, "git~1"))
            return true;
    }
    return false;
}

/* Which no tree could give. */
static bool is_wrong(struct str name)
{
    if (name.n && name.p[name.n - 1] == '/') /* a directory of a sparse checkout */
        name.n--;
    if (name.n == 0 || memchr(name.p, 0, name.n) || name.p[name.n - 1] == '/')
        return true;
    while (name.n) {
        struct str part = str_until(&name, '/');
        if (part.n == 0 || str_is(part, "."))
            return true;
    }
    return false;
}

struct odd_names {
    bool wrong;
    size_t n; /* of the first name that leads out */
    char name[200];
};

/* Walks to `n` entries; false: there are fewer. */
static bool walk(struct index *x, uint32_t n, struct odd_names *found)
{
    for (; n; n--) {
        if (!next_entry(x))
            return false;
        struct str name = {x->name, x->name_n};
        if (!found)
            continue;
        found->wrong |= is_wrong(name);
        if (!found->n && gitindex_leads_out(name)) {
            found->n = name.n < sizeof found->name ? name.n : sizeof found->name;
            memcpy(found->name, name.p, found->n);
        }
    }
    return true;
}

/* The table by which several threads read: each part must begin where the walk finds its first entry. */
static bool parts_fit(const struct index *x, struct str table)
{
    struct index again = *x;
    uint32_t n = 0;
    again.at = HEAD_BYTES;
    again.name_n = 0;
    if (table.n < 4 || number_at(table.p) != 1)
        return false;
    for (table = str_skip(table, 4); table.n; table = str_skip(table, 8)) {
        if (table.n < 8 || number_at(table.p) != again.at)
            return false;
        const uint32_t part = number_at(table.p + 4);
        if (part == 0 || part > x->n - n || !walk(&again, 1, NULL) || (x->version == 4 && !again.whole) ||
            !walk(&again, part - 1, NULL))
            return false;
        n += part;
    }
    return n == x->n;
}

/* What follows the entries: parts with a name and a length. */
static int extensions(const struct index *x, bool *ret_two_files)
{
    const size_t jump = 12 + x->hash; /* by which git finds them without reading the entries */
    if (x->text.n >= jump && memcmp(x->text.p + x->text.n - jump, "EOIE", 4) == 0 &&
        number_at(x->text.p + x->text.n - jump + 8) != x->at)
        return -EBADMSG;
    for (size_t at = x->at; at < x->text.n;) {
        const char *head = x->text.p + at;
        if (x->text.n - at < 8 || number_at(head + 4) > x->text.n - at - 8)
            return -EBADMSG;
        struct str one = {head + 8, number_at(head + 4)};
        if (memcmp(head, "IEOT", 4) == 0 && !parts_fit(x, one))
            return -EBADMSG;
        if (memcmp(head, "link", 4) == 0) {
            *ret_two_files = true;
            return -EACCES;
        }
        at += 8 + one.n;
    }
    return 0;
}

int gitindex_judge(struct str text, struct buf *why)
{
    static const size_t hashes[] = {20, 32}; /* the repository's configuration says which */
    bool good = false, two = false;
    if (text.n == 0)
        return 0;
    for (size_t i = 0; i < sizeof hashes / sizeof *hashes; i++) {
        struct index x;
        struct odd_names found = {.wrong = false};
        /* Read with the other hash it is soon out of bounds; else it was made for both. */
        if (!index_open(&x, text, hashes[i]) || !walk(&x, x.n, &found))
            continue;
        if (found.n) {
            struct str name = {found.name, found.n};
            if (why)
                buf_printf(why, "an index that names '%.*s', which git would write", STR_SAID(name));
            return -EACCES;
        }
        good |= extensions(&x, &two) == 0 && !found.wrong;
    }
    if (good)
        return 0;
    if (why)
        buf_text(why, two ? "an index in two files (core.splitIndex), of which only one can be judged"
                          : "an index that git would not read, or could read in two ways");
    return -EACCES;
}
