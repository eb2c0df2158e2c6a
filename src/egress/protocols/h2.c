/*
 * HTTP/2 in the clear, as far as the client says whom a request is for (RFC 9113): frames, and the header compression
 * (RFC 7541) of its header blocks. Only names that matter are kept of the compression's table, so that it costs some bytes
 * an entry whatever stands in it; a server that reads what the standards say reads what is read here.
 */
#include <strings.h>
#include "egress/protocols/proto.h"

static const char preface[H2_PREFACE_BYTES + 1] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

bool h2_looks_like(struct str in, size_t least)
{
    size_t n = in.n < H2_PREFACE_BYTES ? in.n : H2_PREFACE_BYTES;
    return n >= least && memcmp(in.p, preface, n) == 0;
}

void h2_begin(struct h2 *h)
{
    *h = (struct h2){.most = H2_TABLE_BEGIN};
}

/* ---- Huffman codes (RFC 7541, appendix B): canonical, so the symbols in the order of their codes and how many there are of each length say all ---- */

enum { EOS = 256, LONGEST = 30 };
static const uint8_t of_length[LONGEST + 1] = {0, 0, 0, 0, 0, 10, 26, 32, 6,  0, 5,  3,  2,  6, 2, 3,
                                               0, 0, 0, 3, 8, 13, 26, 29, 12, 4, 15, 19, 29, 0, 4};
static const uint16_t symbols[EOS + 1] = {
    48,  49,  50,  97,  99,  101, 105, 111, 115, 116, 32,  37,  45,  46,  47,  51,  52,  53,  54,  55,  56,  57,
    61,  65,  95,  98,  100, 102, 103, 104, 108, 109, 110, 112, 114, 117, 58,  66,  67,  68,  69,  70,  71,  72,
    73,  74,  75,  76,  77,  78,  79,  80,  81,  82,  83,  84,  85,  86,  87,  89,  106, 107, 113, 118, 119, 120,
    121, 122, 38,  42,  44,  59,  88,  90,  33,  34,  40,  41,  63,  39,  43,  124, 35,  62,  0,   36,  64,  91,
    93,  126, 94,  125, 60,  96,  123, 92,  195, 208, 128, 130, 131, 162, 184, 194, 224, 226, 153, 161, 167, 172,
    176, 177, 179, 209, 216, 217, 227, 229, 230, 129, 132, 133, 134, 136, 146, 154, 156, 160, 163, 164, 169, 170,
    173, 178, 181, 185, 186, 187, 189, 190, 196, 198, 228, 232, 233, 1,   135, 137, 138, 139, 140, 141, 143, 147,
    149, 150, 151, 152, 155, 157, 158, 165, 166, 168, 174, 175, 180, 182, 183, 188, 191, 197, 231, 239, 9,   142,
    144, 145, 148, 159, 171, 206, 215, 225, 236, 237, 199, 207, 234, 235, 192, 193, 200, 201, 202, 205, 210, 213,
    218, 219, 238, 240, 242, 243, 255, 203, 204, 211, 212, 214, 221, 222, 223, 241, 244, 245, 246, 247, 248, 250,
    251, 252, 253, 254, 2,   3,   4,   5,   6,   7,   8,   11,  12,  14,  15,  16,  17,  18,  19,  20,  21,  23,
    24,  25,  26,  27,  28,  29,  30,  31,  127, 220, 249, 10,  13,  22,  256,
};

/* No field has these in it (RFC 9113, 8.2.1): a server that repeats it in HTTP/1 would begin another line with them. */
static bool ends_line(char c)
{
    return c == 0 || c == '\n' || c == '\r';
}

/* Into out[room] as far as there is room; how long it is, or -EBADMSG. */
static ssize_t huffman(struct str in, char *out, size_t room)
{
    uint32_t code = 0, first = 0, index = 0;
    unsigned length = 0;
    size_t n = 0;
    for (size_t i = 0; i < in.n * 8; i++) {
        code = code << 1 | ((uint8_t)in.p[i / 8] >> (7 - i % 8) & 1u);
        first <<= 1;
        if (++length > LONGEST)
            return -EBADMSG;
        if (code - first >= of_length[length]) {
            first += of_length[length];
            index += of_length[length];
            continue;
        }
        uint16_t symbol = symbols[index + code - first];
        if (symbol == EOS || ends_line((char)symbol))
            return -EBADMSG;
        if (n < room)
            out[n] = (char)symbol;
        n++;
        code = first = index = length = 0;
    }
    return length < 8 && code == (1u << length) - 1 ? (ssize_t)n : -EBADMSG; /* padding: the first bits of EOS */
}

/* ---- header blocks ---- */

/* What a field is to us. Values of H2_FOR were judged before they were put into the table. */
enum { H2_OTHER, H2_FOR /* :authority, host */, H2_METHOD, H2_CONNECT /* :method CONNECT */, H2_PROTOCOL, H2_PATH };
enum { STATIC = 61, ENTRY = 32 };
static const uint8_t static_length[STATIC + 1] = {
    0,  10, 7, 7, 5, 5, 7, 7, 7, 7,  7,  7, 7,  7,  7, 14, 15, 15, 13, 6, 27, 3, 5,  13, 13, 19, 16, 16, 14, 16, 13,
    12, 6,  4, 4, 6, 7, 4, 4, 8, 17, 13, 8, 19, 13, 4, 8,  12, 18, 19, 5, 7,  7, 11, 6,  10, 25, 17, 10, 4,  3,  16};

struct h2_block {
    struct h2 *h;
    struct str in;
    http_judge *may;
    void *context;
    bool has_method, has_host, connect, protocol;
};

/* An integer behind a prefix of `bits` in the first byte. */
static bool h2_number(struct str *in, unsigned bits, uint32_t *ret)
{
    uint32_t most = (1u << bits) - 1, v;
    if (!in->n)
        return false;
    v = (uint8_t)in->p[0] & most;
    *in = str_skip(*in, 1);
    for (unsigned shift = 0; v >= most; shift += 7) {
        if (!in->n || shift > 14) /* nothing here is longer than that */
            return false;
        uint8_t byte = (uint8_t)in->p[0];
        *in = str_skip(*in, 1);
        v += (uint32_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            break;
    }
    *ret = v;
    return true;
}

/* A string: its length, and as much of it as there is room for. */
static ssize_t text(struct str *in, char *out, size_t room)
{
    uint32_t n;
    bool coded = in->n && in->p[0] & 0x80;
    if (!h2_number(in, 7, &n) || n > in->n)
        return -EBADMSG;
    struct str s = {in->p, n};
    *in = str_skip(*in, n);
    if (coded)
        return huffman(s, out, room);
    for (size_t i = 0; i < s.n; i++)
        if (ends_line(s.p[i]))
            return -EBADMSG;
    memcpy(out, s.p, n < room ? n : room);
    return (ssize_t)n;
}

static struct h2_entry *entry(struct h2 *h, uint32_t index)
{
    uint32_t i = index - STATIC - 1;
    return i < h->n ? &h->table[(h->head + H2_ENTRIES - 1 - i) % H2_ENTRIES] : NULL;
}

static void evict(struct h2 *h, uint32_t room)
{
    while (h->n && h->size > h->most - (room < h->most ? room : h->most))
        h->size -= h->table[(h->head + H2_ENTRIES - h->n--) % H2_ENTRIES].size;
}

static void insert(struct h2 *h, uint8_t kind, size_t n_name, size_t n_value)
{
    size_t size = n_name + n_value + ENTRY;
    evict(h, (uint32_t)size);
    if (size > h->most)
        return;
    h->table[h->head] = (struct h2_entry){.size = (uint16_t)size, .name = (uint16_t)n_name, .kind = kind};
    h->head = (uint16_t)((h->head + 1) % H2_ENTRIES);
    h->n++;
    h->size += (uint32_t)size;
}

static bool is(const char *text, size_t n, const char *word)
{
    return n == strlen(word) && strncasecmp(text, word, n) == 0;
}

/* The name with this index: what it is and how long. */
static int name_at(struct h2 *h, uint32_t index, uint8_t *ret_kind, size_t *ret_n)
{
    static const uint8_t kinds[] = {H2_OTHER, H2_FOR, H2_METHOD, H2_METHOD, H2_PATH, H2_PATH};
    *ret_kind = index < sizeof kinds ? kinds[index] : index == 38 ? H2_FOR : H2_OTHER;
    if (index <= STATIC) {
        *ret_n = static_length[index];
        return index ? 0 : -EBADMSG;
    }
    const struct h2_entry *e = entry(h, index);
    if (!e)
        return -EBADMSG;
    *ret_kind = e->kind == H2_CONNECT ? (uint8_t)H2_METHOD : e->kind;
    *ret_n = e->name;
    return 0;
}

static void note(struct h2_block *b, uint8_t kind)
{
    b->has_host = b->has_host || kind == H2_FOR;
    b->has_method = b->has_method || kind == H2_METHOD || kind == H2_CONNECT;
    b->connect = b->connect || kind == H2_CONNECT;
    b->protocol = b->protocol || kind == H2_PROTOCOL;
}

static int literal(struct h2_block *b, unsigned bits, bool kept)
{
    char word[H2_VALUE];
    uint32_t index;
    uint8_t kind;
    size_t n_name;
    if (!h2_number(&b->in, bits, &index))
        return -EBADMSG;
    if (index == 0) {
        ssize_t n = text(&b->in, word, sizeof word);
        if (n < 0)
            return -EBADMSG;
        n_name = (size_t)n;
        kind = is(word, n_name, ":authority") || is(word, n_name, "host") ? H2_FOR
               : is(word, n_name, ":method")                              ? H2_METHOD
               : is(word, n_name, ":protocol")                            ? H2_PROTOCOL
               : is(word, n_name, ":path")                                ? H2_PATH
                                                                          : H2_OTHER;
    } else if (name_at(b->h, index, &kind, &n_name) < 0) {
        return -EBADMSG;
    }
    ssize_t n_value = text(&b->in, word, sizeof word);
    if (n_value < 0)
        return -EBADMSG;
    if (kind == H2_METHOD && is(word, (size_t)n_value, "CONNECT"))
        kind = H2_CONNECT;
    /* A whole URL in it would name a second host (RFC 9113, 8.3.1), which a server of HTTP/1 behind this one believes first. */
    if (kind == H2_PATH && !(n_value && word[0] == '/') && !is(word, (size_t)n_value, "*"))
        return -EBADMSG;
    if (kind == H2_FOR) {
        uint16_t port;
        if ((size_t)n_value > sizeof word ||
            http_authority((struct str){word, (size_t)n_value}, 80, &b->h->said, &port) < 0)
            return -EBADMSG;
        if (!b->may(b->context, &b->h->said))
            return -EACCES;
    }
    note(b, kind);
    if (kept)
        insert(b->h, kind, n_name, (size_t)n_value);
    return 0;
}

static int indexed(struct h2_block *b)
{
    uint32_t index;
    uint8_t kind;
    size_t n;
    if (!h2_number(&b->in, 7, &index))
        return -EBADMSG;
    const struct h2_entry *e = index > STATIC ? entry(b->h, index) : NULL;
    if (index == 1 || index == 38 || name_at(b->h, index, &kind, &n) < 0) /* a host of no letters */
        return -EBADMSG;
    note(b, e ? e->kind : kind);
    return 0;
}

static int header_block(struct h2 *h, struct str in, http_judge *may, void *context)
{
    struct h2_block b = {.h = h, .in = in, .may = may, .context = context};
    int r = 0;
    while (r == 0 && b.in.n) {
        uint8_t first = (uint8_t)b.in.p[0];
        if (first & 0x80) {
            r = indexed(&b);
        } else if (first & 0x40) {
            r = literal(&b, 6, true);
        } else if (first & 0x20) {
            uint32_t most;
            if (!h2_number(&b.in, 5, &most))
                return -EBADMSG;
            if (most > H2_TABLE)
                return -EMSGSIZE;
            h->most = most;
            evict(h, 0);
        } else {
            r = literal(&b, 4, false);
        }
    }
    if (r == 0 && b.has_method && !b.has_host)
        return -EBADMSG;
    return r == 0 && b.connect && !b.protocol ? -EOPNOTSUPP : r;
}

/* ---- frames ---- */

enum { FRAME = 9, HEADERS = 1, PUSH_PROMISE = 5, CONTINUATION = 9, END_HEADERS = 4, PADDED = 8, PRIORITY = 0x20 };

struct h2_frame {
    uint32_t n, stream;
    uint8_t type, flags;
};

static struct h2_frame frame_of(const char *at)
{
    const uint8_t *b = (const uint8_t *)at;
    return (struct h2_frame){.n = (uint32_t)b[0] << 16 | (uint32_t)b[1] << 8 | b[2],
                             .type = b[3],
                             .flags = b[4],
                             .stream =
                                 (uint32_t)(b[5] & 0x7f) << 24 | (uint32_t)b[6] << 16 | (uint32_t)b[7] << 8 | b[8]};
}

/* The fragment in a HEADERS frame, without padding and priority. */
static bool fragment(struct h2_frame f, struct str *s)
{
    size_t front = 0, back = 0;
    if (f.flags & PADDED) {
        if (s->n < 1)
            return false;
        back = (uint8_t)s->p[0];
        front = 1;
    }
    front += f.flags & PRIORITY ? 5 : 0;
    if (front + back > s->n)
        return false;
    *s = (struct str){s->p + front, s->n - front - back};
    return true;
}

/* A header block in one frame or several, from its first one on: the bytes of these, 0 for more. */
static ssize_t headers(struct h2 *h, struct str in, http_judge *may, void *context)
{
    static char joined[H2_HEADERS];
    struct h2_frame first = frame_of(in.p), f = first;
    size_t at = 0, n = 0;
    struct str whole = {0};
    for (bool begins = true;; begins = false) {
        if (in.n - at < FRAME)
            return 0;
        f = frame_of(in.p + at);
        if (!begins && (f.type != CONTINUATION || f.stream != first.stream))
            return -EBADMSG;
        if (f.n > H2_HEADERS || n + f.n > H2_HEADERS)
            return -EMSGSIZE;
        if (in.n - at - FRAME < f.n)
            return 0;
        struct str part = {in.p + at + FRAME, f.n};
        if (begins && (f.stream == 0 || !fragment(f, &part)))
            return -EBADMSG;
        bool ends = f.flags & END_HEADERS;
        if (begins && ends)
            whole = part;
        else
            memcpy(joined + n, part.p, part.n);
        n += part.n;
        at += FRAME + f.n;
        if (ends)
            break;
    }
    if (!whole.p)
        whole = (struct str){joined, n};
    int r = header_block(h, whole, may, context);
    return r < 0 ? r : (ssize_t)at;
}

ssize_t h2_eat(struct h2 *h, struct str in, http_judge *may, void *context)
{
    size_t at = 0;
    if (!h->begun) {
        if (!h2_looks_like(in, 0))
            return -EBADMSG;
        if (in.n < H2_PREFACE_BYTES)
            return 0;
        h->begun = true;
        at = H2_PREFACE_BYTES;
    }
    while (at < in.n) {
        struct str rest = str_skip(in, at);
        if (h->left) {
            size_t n = rest.n < h->left ? rest.n : h->left;
            h->left -= (uint32_t)n;
            at += n;
            continue;
        }
        if (rest.n < FRAME)
            break;
        struct h2_frame f = frame_of(rest.p);
        if (f.type == PUSH_PROMISE || f.type == CONTINUATION)
            return -EBADMSG;
        if (f.type == HEADERS) {
            ssize_t n = headers(h, rest, may, context);
            if (n < 0)
                return n;
            if (n == 0)
                break;
            at += (size_t)n;
        } else {
            h->left = f.n;
            at += FRAME;
        }
    }
    return (ssize_t)at;
}
