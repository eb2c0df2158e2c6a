/*
 * Reads the refs of one reftable (extensions.refStorage = reftable; git's documentation, reftable.txt): names, and targets of symbolic ones.
 * A box may have written it, so whatever could show git another name than the walk finds makes the table unreadable: places of restart
 * points and of the index that are not where the walk found a record or a block, a footer that differs from the header.
 */
#include <errno.h>
#include <stdint.h>
#include "git/gitconfig.h"

enum { HEADER = 24, HEADER_2 = 28, POSITIONS = 5 * 8, CHECKSUM = 4, NAME = 4096, LEVELS = 6, PATIENCE = 16 << 20 };

struct reftable {
    struct str text; /* without the footer */
    size_t header, object, block_size;
    gitref_each *each;
    void *ctx;
    unsigned level;    /* of the index */
    uint32_t patience; /* steps in it: a hostile one can lead anywhere any number of times */
    size_t name_n;
    char name[NAME];
};

static uint64_t big_endian(const char *p, unsigned n)
{
    uint64_t v = 0;
    for (unsigned i = 0; i < n; i++)
        v = v << 8 | (uint8_t)p[i];
    return v;
}

static bool number(struct str *s, uint64_t *ret)
{
    uint64_t v = 0;
    for (unsigned i = 0; i < 9 && s->n; i++) {
        const uint8_t byte = (uint8_t)s->p[0];
        *s = str_skip(*s, 1);
        v = (i ? (v + 1) << 7 : 0) | (byte & 0x7f);
        if (!(byte & 0x80)) {
            *ret = v;
            return true;
        }
    }
    return false;
}

static bool skip(struct str *s, uint64_t n)
{
    if (n > s->n)
        return false;
    *s = str_skip(*s, (size_t)n);
    return true;
}

static int index_block(struct reftable *t, size_t start);

/* The last name, with what this record adds to its beginning. */
static bool key(struct reftable *t, struct str *s, bool restart, unsigned *ret_type)
{
    uint64_t kept, more;
    if (!number(s, &kept) || !number(s, &more) || kept > t->name_n || (restart && kept))
        return false;
    *ret_type = more & 7;
    more >>= 3;
    if (more > s->n || more > sizeof t->name - kept)
        return false;
    memcpy(t->name + kept, s->p, (size_t)more);
    t->name_n = (size_t)(kept + more);
    return skip(s, more);
}

static int ref_record(struct reftable *t, struct str *s, unsigned type)
{
    uint64_t update, n;
    struct str target = {"", 0};
    if (!number(s, &update) || type > 3)
        return -EBADMSG;
    if (type == 3) {
        if (!number(s, &n) || n > s->n)
            return -EBADMSG;
        target = (struct str){s->p, (size_t)n};
    } else {
        n = type * t->object;
    }
    if (!skip(s, n))
        return -EBADMSG;
    return type ? t->each(t->ctx, (struct str){t->name, t->name_n}, target) : 0; /* 0: it was removed */
}

/* The length of the block of this kind at `start`, without what fills it up; 0: there is none. */
static size_t block_length(const struct reftable *t, size_t start, char kind)
{
    const size_t head = start ? 0 : t->header;
    if (start > t->text.n || t->text.n - start < head + 6 || t->text.p[start + head] != kind)
        return 0;
    size_t n = (size_t)big_endian(t->text.p + start + head + 1, 3);
    return n < head + 6 || n > t->text.n - start || (t->block_size && n > t->block_size) ? 0 : n;
}

/* As git finds it: a block is filled up to the size of blocks unless something follows it at once. */
static size_t next_block(const struct reftable *t, size_t start, size_t length)
{
    const bool follows = length < t->block_size && start + length < t->text.n && t->text.p[start + length] != 0;
    return start + (t->block_size && !follows ? t->block_size : length);
}

/* Records from behind the block's head to its restart points, each of which must be a record's place. */
static int records(struct reftable *t, size_t start, size_t length, char kind)
{
    const char *block = t->text.p + start;
    const size_t head = (start ? 0 : t->header) + 4, points = (size_t)big_endian(block + length - 2, 2);
    if (points * 3 + 2 > length - head)
        return -EBADMSG;
    const size_t end = length - 2 - points * 3;
    size_t point = 0;
    struct str s = {block + head, end - head};
    t->name_n = 0;
    while (s.n) {
        unsigned type;
        uint64_t place;
        const size_t at = (size_t)(s.p - block);
        const bool restart = point < points && big_endian(block + end + point * 3, 3) == at;
        if (!key(t, &s, restart, &type))
            return -EBADMSG;
        point += restart;
        int no = kind == 'r' ? ref_record(t, &s, type) : 0;
        if (kind == 'i')
            no = !t->patience-- || !number(&s, &place) || place > t->text.n ? -EBADMSG : index_block(t, (size_t)place);
        if (no)
            return no;
    }
    return point == points ? 0 : -EBADMSG;
}

/* What the index leads to: a block that the walk has found, or more of the index. */
static int index_block(struct reftable *t, size_t start)
{
    size_t length = start ? block_length(t, start, 'i') : 0;
    if (!length) {
        size_t at = 0, n;
        while (at < start && (n = block_length(t, at, 'r')) > 0 && t->patience && t->patience--)
            at = next_block(t, at, n);
        return at == start && block_length(t, at, 'r') ? 0 : -EBADMSG;
    }
    if (t->level == LEVELS)
        return -EBADMSG;
    char kept[NAME];
    const size_t kept_n = t->name_n;
    memcpy(kept, t->name, kept_n);
    t->level++;
    int no = records(t, start, length, 'i');
    t->level--;
    memcpy(t->name, kept, kept_n);
    t->name_n = kept_n;
    return no;
}

int gitref_table(struct str text, gitref_each *each, void *ctx)
{
    struct reftable t = {.each = each, .ctx = ctx, .patience = PATIENCE};
    const uint8_t version = text.n > 4 ? (uint8_t)text.p[4] : 0;
    t.header = version == 1 ? HEADER : HEADER_2;
    const size_t footer = t.header + POSITIONS + CHECKSUM;
    if (!str_starts(text, STR("REFT")) || version < 1 || version > 2 || text.n < t.header + footer)
        return -EBADMSG;
    const char *end = text.p + text.n - footer;
    if (memcmp(text.p, end, t.header) != 0)
        return -EBADMSG;
    t.text = (struct str){text.p, text.n - footer};
    t.object = version == 2 && memcmp(end + HEADER, "s256", 4) == 0 ? 32 : 20;
    t.block_size = (size_t)big_endian(end + 5, 3);
    const uint64_t index = big_endian(end + t.header, 8);
    size_t n, at = 0;
    for (; (n = block_length(&t, at, 'r')) > 0; at = next_block(&t, at, n)) {
        int no = records(&t, at, n, 'r');
        if (no)
            return no;
    }
    const size_t kind = at + (at ? 0 : t.header);
    if (kind < t.text.n && t.text.p[kind] == 'r') /* one that cannot be right */
        return -EBADMSG;
    if (index == 0)
        return 0;
    return index > t.text.n || !block_length(&t, (size_t)index, 'i') ? -EBADMSG : index_block(&t, (size_t)index);
}
