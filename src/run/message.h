/*
 * How requests and answers between libpinfold and `pinfold --serve` are written (what is in them: client/messages.h), and a policy's
 * layers: a length, then fields. Same machine, native byte order.
 *
 *     message  u64 bytes that follow
 *     field    u16 tag, u16 type, u32 zero, u64 bytes, then the bytes: text, bytes or one u64
 *
 * Fields have a fixed order; any other is an error. Both ends belong to one user, but neither trusts a length: limits
 * below. Descriptors are sent with the first byte of a request.
 */
#pragma once
#include <stdint.h>
#include "base/arena.h"
#include "base/buf.h"

#define MAX_REQUEST_BYTES (64u << 20)
#define MAX_ANSWER_BYTES  ((size_t)4 << 30)
#define MESSAGE_FDS       5

void message_text(struct buf *b, uint16_t tag, const char *text); /* NULL stays NULL */
void message_bytes(struct buf *b, uint16_t tag, struct str bytes);
void message_number(struct buf *b, uint16_t tag, uint64_t value);
/* A NULL-terminated array; NULL stays NULL. */
void message_list(struct buf *b, uint16_t tag, const char *const *list);

/* The tag of the field at the start of `rest`, or 0. */
uint16_t message_peek(struct str rest);
/* Each removes one field from `rest`, or returns -EBADMSG and leaves everything. Texts are copied into `mem`. */
int message_take_text(struct str *rest, uint16_t tag, struct arena *mem, const char **ret);
int message_take_bytes(struct str *rest, uint16_t tag, struct arena *mem, struct str *ret);
int message_take_view(struct str *rest, uint16_t tag, struct str *ret); /* borrowed from `rest` */
int message_take_number(struct str *rest, uint16_t tag, uint64_t *ret);
int message_take_list(struct str *rest, uint16_t tag, struct arena *mem, const char *const **ret);

/* Sends one whole message with `n_fds` descriptors; 0 or -errno. Never raises SIGPIPE. */
int message_send(int socket, const struct buf *b, const int *fds, unsigned n_fds);
/*
 * Receives one message of at most `b->max` bytes into the empty `b`. `fds` (room for MESSAGE_FDS, or NULL) get the
 * descriptors received, close-on-exec, the others -1. 0, -ECONNRESET at the end of the stream, -EBADMSG, -errno.
 */
int message_receive(int socket, struct buf *b, int *fds);
