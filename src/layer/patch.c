/*
 * Patches as git makes and applies them: text by lines; anything else as a binary literal, in base 85 and in the form of zlib
 * without compression, which needs no library. Hashes are those of blobs (SHA-1), which `git apply` checks for binary files.
 */
#include <limits.h>
#include <sha1.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/hex.h"

#include "layer/change.h"
#include "layer/lines.h"
#include "layer/side.h"
#include "sys/fd.h"

#define NO_HASH     "0000000000000000000000000000000000000000"
#define HASH_DIGITS 40

/* ---- names and modes ---- */

/* As git quotes names: whole in double quotes if any byte needs it. */
void patch_put_name(struct buf *out, const char *before, const char *path)
{
    static const char special[] = "\a\b\t\n\v\f\r\"\\", letters[] = "abtnvfr\"\\";
    bool plain = true;
    for (const unsigned char *p = (const unsigned char *)path; *p; p++)
        plain &= *p >= 0x20 && *p < 0x7f && *p != '"' && *p != '\\';
    if (plain) {
        buf_printf(out, "%s%s", before, path);
        return;
    }
    buf_printf(out, "\"%s", before);
    for (const unsigned char *p = (const unsigned char *)path; *p; p++) {
        const char *letter = strchr(special, *p);
        if (letter)
            buf_printf(out, "\\%c", letters[letter - special]);
        else if (*p < 0x20 || *p >= 0x7f)
            buf_printf(out, "\\%03o", *p);
        else
            buf_char(out, (char)*p);
    }
    buf_char(out, '"');
}

unsigned patch_mode(const struct layer_object *o)
{
    return object_is(o, S_IFLNK) ? 0120000 : o->mode & 0100 ? 0100755 : 0100644;
}

/* The name that may contain blanks ends at a tab. */
static void put_file_line(struct buf *out, const char *sign, const char *before, const char *path)
{
    buf_text(out, sign);
    patch_put_name(out, before, path);
    buf_text(out, strchr(path, ' ') ? "\t\n" : "\n");
}

/* ---- binary ---- */

static void blob_hash(struct str bytes, char ret[HASH_DIGITS + 1])
{
    SHA1_CTX context;
    uint8_t digest[SHA1_DIGEST_LENGTH];
    char head[32];
    int n = snprintf(head, sizeof head, "blob %zu", bytes.n) + 1;
    SHA1Init(&context);
    SHA1Update(&context, (const uint8_t *)head, (size_t)n);
    SHA1Update(&context, (const uint8_t *)(bytes.p ? bytes.p : ""), bytes.n);
    SHA1Final(digest, &context);
    hex_digits(digest, sizeof digest, ret);
}

/* Blocks that are stored as they are (RFC 1950, 1951). */
static void put_stored(struct buf *out, struct str bytes)
{
    uint32_t a = 1, b = 0;
    buf_put(out, "\x78\x01", 2);
    for (size_t at = 0; at < bytes.n || at == 0;) {
        const size_t n = bytes.n - at < 65535 ? bytes.n - at : 65535;
        const unsigned char head[5] = {at + n == bytes.n, (unsigned char)n, (unsigned char)(n >> 8), (unsigned char)~n,
                                       (unsigned char)(~n >> 8)};
        buf_put(out, head, sizeof head);
        buf_put(out, bytes.p + at, n);
        at += n;
        if (!n)
            break;
    }
    for (size_t i = 0; i < bytes.n; i++) {
        a = (a + (unsigned char)bytes.p[i]) % 65521;
        b = (b + a) % 65521;
    }
    const unsigned char sum[4] = {(unsigned char)(b >> 8), (unsigned char)b, (unsigned char)(a >> 8), (unsigned char)a};
    buf_put(out, sum, sizeof sum);
}

/* Lines of at most 52 bytes: a letter for their number, then five digits for each four. */
static void put_base85(struct buf *out, struct str bytes)
{
    static const char digits[] =
        "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";
    for (size_t at = 0; at < bytes.n; at += 52) {
        const size_t n = bytes.n - at < 52 ? bytes.n - at : 52;
        buf_char(out, (char)(n <= 26 ? 'A' + n - 1 : 'a' + n - 27));
        for (size_t i = 0; i < n; i += 4) {
            uint32_t v = 0;
            char word[6] = {0};
            for (size_t k = 0; k < 4; k++)
                v = v << 8 | (i + k < n ? (unsigned char)bytes.p[at + i + k] : 0);
            for (int k = 4; k >= 0; k--, v /= 85)
                word[k] = digits[v % 85];
            buf_text(out, word);
        }
        buf_char(out, '\n');
    }
    buf_char(out, '\n');
}

static void put_binary(struct buf *out, const struct side *a, const struct side *b)
{
    char from[HASH_DIGITS + 1] = NO_HASH, to[HASH_DIGITS + 1] = NO_HASH;
    auto_buf struct buf packed = BUF(SIDE_MAX * 2);
    if (a->o->mode)
        blob_hash(a->bytes, from);
    if (b->o->mode)
        blob_hash(b->bytes, to);
    put_stored(&packed, b->bytes);
    buf_printf(out, "index %s..%s\nGIT binary patch\nliteral %zu\n", from, to, b->bytes.n);
    if (!buf_ok(&packed))
        out->broken = true;
    put_base85(out, buf_view(&packed));
}

/* ---- one change ---- */

/* An object that is not there is none of whatever type the other one is. */
static int put_one(const char *path, const struct side *a, const struct side *b, struct buf *out)
{
    const bool there_a = a->o->mode, there_b = b->o->mode, both = there_a && there_b;
    buf_text(out, "diff --git ");
    patch_put_name(out, "a/", path);
    buf_char(out, ' ');
    patch_put_name(out, "b/", path);
    buf_char(out, '\n');
    if (!there_a)
        buf_printf(out, "new file mode %06o\n", patch_mode(b->o));
    else if (!there_b)
        buf_printf(out, "deleted file mode %06o\n", patch_mode(a->o));
    else if (patch_mode(a->o) != patch_mode(b->o))
        buf_printf(out, "old mode %06o\nnew mode %06o\n", patch_mode(a->o), patch_mode(b->o));
    if (str_eq(a->bytes, b->bytes) && (both || (!a->bytes.n && !b->bytes.n)))
        return 0;
    auto_arena struct arena *mem = arena_new(LAYER_READ_MAX * 4);
    struct line_diff d;
    int r = !side_is_text(a) || !side_is_text(b) ? -EFBIG : mem ? lines_compare(a->bytes, b->bytes, mem, &d) : -ENOMEM;
    if (r == -EFBIG) {
        put_binary(out, a, b);
        return 0;
    }
    if (r < 0)
        return r;
    if (there_a)
        put_file_line(out, "--- ", "a/", path);
    else
        buf_text(out, "--- /dev/null\n");
    if (there_b)
        put_file_line(out, "+++ ", "b/", path);
    else
        buf_text(out, "+++ /dev/null\n");
    lines_put_hunks(&d, out);
    return 0;
}

static bool is_bare_directory(const struct layer_trees *t, const char *path)
{
    char room[1024] __attribute__((aligned(8)));
    const char *name;
    own_fd int parent = object_parent(t->upper, path, &name);
    own_fd int dir = parent < 0 ? parent : object_open(parent, name, S_IFDIR);
    struct sys_entries entries = {.dir = dir, .room = room, .bytes = sizeof room};
    return dir >= 0 && !sys_next_entry(&entries) && entries.no == 0;
}

/* What of the change a patch cannot say; NULL: nothing. */
static const char *beyond_patches(const struct layer_trees *t, const struct change *c)
{
    const struct layer_object *a = &c->old, *b = &c->new;
    if (c->alarms & ALARM_GIT)
        return "it is below .git";
    if (object_is(b, S_IFDIR) && !in_patches(a)) {
        if (c->kind == CHANGE_ADDED)
            return is_bare_directory(t, c->path) ? "a patch cannot hold an empty directory" : NULL;
        return "a patch cannot hold permissions and attributes of a directory";
    }
    if (b->mode && !in_patches(b) && !object_is(b, S_IFDIR))
        return "a patch cannot hold it: it is neither file, directory nor link";
    if (c->what & CHANGED_OWNER)
        return "a patch cannot hold its owner";
    if (c->what & CHANGED_ATTRIBUTES)
        return "a patch cannot hold its attributes";
    if (object_is(b, S_IFREG) && b->mode & 07000)
        return "a patch cannot hold the bits setuid, setgid and sticky";
    if (c->what & CHANGED_MODE && patch_mode(a) == patch_mode(b))
        return "a patch cannot hold permissions but the executable bit";
    return NULL;
}

int patch_of(const struct layer_trees *t, const struct change *c, struct buf *out, const char **ret_why, struct err *e)
{
    static const struct layer_object nothing;
    struct side a = {.o = &nothing}, b = {.o = &nothing};
    const struct side none = {.o = &nothing};
    auto_arena struct arena *mem = arena_new(SIDES_ROOM);
    *ret_why = c->unread ? c->conflict : beyond_patches(t, c);
    if (c->unread || c->alarms & ALARM_GIT)
        return 0;
    int r = !mem                  ? -ENOMEM
            : in_patches(&c->old) ? side_read(t, t->workspace, c->path, &c->old, c->old_link, mem, &a)
                                  : 0;
    if (r == 0 && in_patches(&c->new))
        r = side_read(t, t->upper, c->path, &c->new, c->new_link, mem, &b);
    if (r == -EFBIG || r == -EACCES) {
        *ret_why = r == -EFBIG ? "it is larger than 512 MiB" : "its mode keeps it from being read";
        return 0;
    }
    const bool whole = a.o->mode && b.o->mode && c->what & CHANGED_TYPE; /* as git tells a change of type */
    const bool told = (a.o->mode && b.o->mode && (!str_eq(a.bytes, b.bytes) || patch_mode(a.o) != patch_mode(b.o))) ||
                      (!a.o->mode != !b.o->mode);
    if (r == 0 && told)
        r = put_one(c->path, &a, whole ? &none : &b, out);
    if (r == 0 && whole)
        r = put_one(c->path, &none, &b, out);
    if (r == 0 && !buf_ok(out))
        r = -ENOMEM;
    return r < 0 ? err_sys(e, ERR_SYSTEM, -r, "layer %s: cannot make a patch of '%.300s'", t->id, c->path) : told;
}

void patch_of_rename(const struct change *from, const struct change *to, struct buf *out)
{
    const unsigned before = patch_mode(&from->old), after = patch_mode(&to->new);
    buf_text(out, "diff --git ");
    patch_put_name(out, "a/", from->path);
    buf_char(out, ' ');
    patch_put_name(out, "b/", to->path);
    if (before != after)
        buf_printf(out, "\nold mode %06o\nnew mode %06o", before, after);
    buf_text(out, "\nsimilarity index 100%\nrename from ");
    patch_put_name(out, "", from->path);
    buf_text(out, "\nrename to ");
    patch_put_name(out, "", to->path);
    buf_char(out, '\n');
}

int patch_count(const struct layer_trees *t, const struct change *c, uint64_t *added, uint64_t *removed)
{
    static const struct layer_object nothing;
    struct side a = {.o = &nothing}, b = {.o = &nothing};
    auto_arena struct arena *mem = arena_new(LAYER_READ_MAX * 4);
    struct line_diff d;
    int r = mem ? 0 : -ENOMEM;
    if (!in_patches(&c->old) && !in_patches(&c->new))
        return 0;
    if (r == 0 && in_patches(&c->old))
        r = side_read(t, t->workspace, c->path, &c->old, c->old_link, mem, &a);
    if (r == 0 && in_patches(&c->new))
        r = side_read(t, t->upper, c->path, &c->new, c->new_link, mem, &b);
    if (r < 0 || !side_is_text(&a) || !side_is_text(&b))
        return r;
    r = lines_compare(a.bytes, b.bytes, mem, &d);
    if (r == -EFBIG)
        return 0;
    *added = *removed = 0;
    for (size_t i = 0; r == 0 && i < d.n_old; i++)
        *removed += d.removed[i];
    for (size_t i = 0; r == 0 && i < d.n_new; i++)
        *added += d.added[i];
    return r < 0 ? r : 1;
}
