/*
 * Messages between libpinfold and the program that it starts: written from and read into the structs of one table.
 * Both ends are compiled from that table (messages.h), so that a new field is one row.
 */
#include "client/messages.h"

#include <errno.h>
#include <stdalign.h>

#define FIELD(kind_, name_) {.kind = MESSAGE_##kind_, .name = #name_},
#define FIELDS(shape)       static const struct message_field fields_of_##shape[] = {FIELDS_##shape(FIELD)};
MESSAGE_SHAPES(FIELDS)

#define SHAPE(shape)                                                                                                   \
    [SHAPE_##shape] = {.name = #shape,                                                                                 \
                       .fields = fields_of_##shape,                                                                    \
                       .n = sizeof fields_of_##shape / sizeof *fields_of_##shape,                                      \
                       .bytes = sizeof(struct message_##shape)},
const struct message_shape message_shapes[SHAPE_COUNT] = {MESSAGE_SHAPES(SHAPE)};

#define REQUEST(name_, request_, answer_)                                                                              \
    [REQUEST_##name_] = {.name = #name_, .request = SHAPE_##request_, .answer = SHAPE_##answer_},
const struct message_request message_requests[REQUEST_COUNT] = {MESSAGE_REQUESTS(REQUEST)};

size_t message_next(enum message_kind kind, size_t *at)
{
    static const struct {
        size_t size, align;
    } layouts[] = {[MESSAGE_TEXT] = {sizeof(const char *), alignof(const char *)},
                   [MESSAGE_LIST] = {sizeof(const char *const *), alignof(const char *const *)},
                   [MESSAGE_NUMBER] = {sizeof(uint64_t), alignof(struct message_nothing)},
                   [MESSAGE_BYTES] = {sizeof(struct str), alignof(struct str)},
                   [MESSAGE_OPTIONS] = {sizeof(struct pinfold_option *), alignof(struct pinfold_option *)}};
    size_t align = layouts[kind].align, here = (*at + align - 1) / align * align;
    *at = here + layouts[kind].size;
    return here;
}

static void put_options(struct buf *b, uint16_t tag, const struct pinfold_option *options)
{
    uint64_t n = 0;
    while (options && options[n].name)
        n++;
    message_number(b, tag, n);
    for (uint64_t i = 0; i < n; i++) {
        message_text(b, tag, options[i].name);
        message_text(b, tag, options[i].value);
    }
}

static int take_options_field(struct str *rest, uint16_t tag, struct arena *mem, const struct pinfold_option **ret)
{
    struct pinfold_option *options = NULL, *one;
    uint64_t n, count = 0;
    size_t taken = 0;
    if (message_take_number(rest, tag, &n) < 0)
        return -EBADMSG;
    for (; count < n; count++) {
        one = arena_push(mem, &options, &taken, sizeof *one);
        if (!one || message_take_text(rest, tag, mem, &one->name) < 0 ||
            message_take_text(rest, tag, mem, &one->value) < 0 || !one->name)
            return -EBADMSG;
    }
    if (!arena_push(mem, &options, &taken, sizeof *options))
        return -EBADMSG;
    *ret = options;
    return 0;
}

void message_put(struct buf *b, enum message_tag tag, enum message_shape_id shape, const void *from)
{
    const struct message_shape *s = &message_shapes[shape];
    size_t at = 0;
    for (size_t i = 0; i < s->n; i++) {
        const char *field = (const char *)from + message_next(s->fields[i].kind, &at);
        switch (s->fields[i].kind) {
        case MESSAGE_TEXT:
            message_text(b, tag, *(const char *const *)(const void *)field);
            break;
        case MESSAGE_LIST:
            message_list(b, tag, *(const char *const *const *)(const void *)field);
            break;
        case MESSAGE_NUMBER:
            message_number(b, tag, *(const uint64_t *)(const void *)field);
            break;
        case MESSAGE_BYTES:
            message_bytes(b, tag, *(const struct str *)(const void *)field);
            break;
        case MESSAGE_OPTIONS:
            put_options(b, tag, *(const struct pinfold_option *const *)(const void *)field);
            break;
        }
    }
}

static int take_field(struct str *rest, uint16_t tag, enum message_kind kind, struct arena *mem, void *to)
{
    switch (kind) {
    case MESSAGE_TEXT:
        return message_take_text(rest, tag, mem, to);
    case MESSAGE_LIST:
        return message_take_list(rest, tag, mem, to);
    case MESSAGE_NUMBER:
        return message_take_number(rest, tag, to);
    case MESSAGE_BYTES:
        return message_take_view(rest, tag, to);
    case MESSAGE_OPTIONS:
        return take_options_field(rest, tag, mem, to);
    }
    return -EBADMSG;
}

int message_take(struct str *rest, enum message_tag tag, enum message_shape_id shape, struct arena *mem, void *ret)
{
    const struct message_shape *s = &message_shapes[shape];
    size_t at = 0;
    memset(ret, 0, s->bytes);
    for (size_t i = 0; i < s->n; i++) {
        enum message_kind kind = s->fields[i].kind;
        if (take_field(rest, tag, kind, mem, (char *)ret + message_next(kind, &at)) < 0) {
            memset(ret, 0, s->bytes);
            return -EBADMSG;
        }
    }
    return 0;
}
