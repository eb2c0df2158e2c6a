/*
 * Splits a byte stream into lines with a maximum length. Of a line that is too long the id is still found, so that
 * the client gets an answer to it.
 */
#include "mcp/transport/pipe.h"

static void take_whole(struct lines *l, void (*line)(void *ctx, struct str text), void *ctx)
{
    struct str rest = buf_view(&l->in);
    const char *end;

    while (rest.n > l->looked && (end = memchr(rest.p + l->looked, '\n', rest.n - l->looked))) {
        struct str text = {rest.p, (size_t)(end - rest.p)};
        rest = str_skip(rest, text.n + 1);
        l->looked = 0;
        if (text.n && text.p[text.n - 1] == '\r')
            text.n--;
        if (text.n)
            line(ctx, text);
    }
    l->looked = rest.n;
    if (rest.n == l->in.n)
        return;
    if (rest.n == 0 && l->in.room > 1u << 17) {
        buf_free(&l->in);
        return;
    }
    memmove(l->in.p, rest.p, rest.n);
    l->in.n = rest.n;
}

static void end_word(struct id_search *s, char c)
{
    if (c == ':') {
        s->is_id = s->n_word == 2 && memcmp(s->word, "id", 2) == 0 && !s->n_id;
        s->value = true;
    } else if (c == ',') {
        s->value = false;
        s->n_word = 0;
    }
}

void id_search(struct id_search *s, struct str bytes)
{
    for (size_t i = 0; i < bytes.n; i++) {
        char c = bytes.p[i];
        bool was_text = s->text, top = s->depth == 1;
        if (s->escaped) {
            s->escaped = false;
        } else if (s->text && c == '\\') {
            s->escaped = true;
        } else if (c == '"') {
            s->text = !s->text;
        } else if (!s->text && (c == '}' || c == ']')) {
            s->depth -= s->depth > 0;
        } else if (!s->text && top && (c == ':' || c == ',')) {
            end_word(s, c);
            continue;
        }
        if (top && !s->value && was_text && s->text) { /* in a name: one that is longer than "id" is another */
            s->word[s->n_word < sizeof s->word ? s->n_word : 0] = c;
            s->n_word++;
        } else if (top && s->value && s->is_id && (s->depth == 1 || s->text)) {
            if (s->n_id < sizeof s->id)
                s->id[s->n_id] = c;
            s->n_id++;
        }
        if (!s->text && !was_text && (c == '{' || c == '['))
            s->depth++;
    }
}

struct str id_found(const struct id_search *s)
{
    return s->n_id <= sizeof s->id ? str_trim((struct str){s->id, s->n_id}) : (struct str){0};
}

void lines_take(struct lines *l, struct str bytes, void (*line)(void *ctx, struct str text),
                void (*too_long)(void *ctx, struct str id), void *ctx)
{
    if (!l->in.max)
        l->in = BUF(2 * l->max + (1u << 20));
    while (bytes.n) {
        const char *end = memchr(bytes.p, '\n', bytes.n);
        if (l->skipping) {
            size_t n = end ? (size_t)(end - bytes.p) : bytes.n;
            id_search(&l->search, (struct str){bytes.p, n});
            bytes = str_skip(bytes, end ? n + 1 : n);
            l->skipping = !end;
            if (end)
                too_long(ctx, id_found(&l->search));
            continue;
        }
        buf_str(&l->in, bytes);
        bytes = str_skip(bytes, bytes.n);
        take_whole(l, line, ctx);
        if (l->in.n > l->max || !buf_ok(&l->in)) {
            l->search = (struct id_search){0};
            id_search(&l->search, buf_view(&l->in));
            buf_free(&l->in);
            l->in = BUF(2 * l->max + (1u << 20));
            l->looked = 0;
            l->skipping = true;
        }
    }
}
