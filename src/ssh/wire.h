/*
 * What OpenSSH's programs exchange, as bytes: requests to an agent (PROTOCOL.agent, draft-miller-ssh-agent), what they ask to be
 * signed (RFC 4252 section 7, PROTOCOL.sshsig, PROTOCOL), lists of identities and lines of public keys. Pure. Slices borrow
 * from the message.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/str.h"

#define SSH_MAX_MESSAGE  (256u << 10) /* as OpenSSH's AGENT_MAX_LEN, without the length in front */
#define SSH_MAX_SESSION  128          /* a session's id is a hash: 64 bytes at most */
#define SSH_MAX_HOST_KEY 4096         /* an RSA key of 16384 bits has half of that */

enum ssh_type { /* of messages */
                SSH_TYPE_FAILURE = 5,
                SSH_TYPE_SUCCESS = 6,
                SSH_TYPE_LIST = 11,
                SSH_TYPE_IDENTITIES = 12,
                SSH_TYPE_SIGN = 13,
                SSH_TYPE_SIGNATURE = 14,
                SSH_TYPE_EXTENSION = 27,
                SSH_TYPE_EXTENSION_FAILURE = 28,
                SSH_TYPE_EXTENSION_ANSWER = 29
};

enum ssh_what { SSH_REFUSED, SSH_LIST, SSH_LOGIN, SSH_GIT, SSH_QUERY, SSH_BIND };
struct ssh_request {
    enum ssh_what what;
    const char *why;     /* SSH_REFUSED: a phrase */
    struct str key;      /* of a signature: the public key that is to sign */
    struct str user;     /* SSH_LOGIN */
    struct str session;  /* SSH_LOGIN, SSH_BIND */
    struct str host_key; /* SSH_BIND; SSH_LOGIN: as the client says ("hostbound"), or empty */
    bool forwarding;     /* SSH_BIND */
};
/* Parses one request, without the length in front. What is not understood to its last byte is SSH_REFUSED. */
void ssh_request_parse(struct str message, struct ssh_request *ret);

/*
 * Takes the first string (four bytes of length, then bytes) off `rest`; false if there is none. A list of identities is
 * SSH_TYPE_IDENTITIES, a count of four bytes, and for each a string (the key) and a string (the comment).
 */
bool ssh_take_string(struct str *rest, struct str *ret);
bool ssh_take_number(struct str *rest, uint32_t *ret);
/* The type of a message; 0 for an empty one. */
static inline unsigned ssh_message_type(struct str message)
{
    return message.n ? (unsigned char)message.p[0] : 0;
}
/* Removes all identities but those that `keep` wants from an answer, in place. The new size; 0: it is no such answer. */
size_t ssh_identities_keep(char *message, size_t n, bool (*keep)(const void *ctx, struct str key), const void *ctx);

#define SSH_FINGERPRINT 51 /* "SHA256:", 43 characters, NUL */
void ssh_fingerprint(struct str key, char ret[SSH_FINGERPRINT]);
/* Decodes base64 without blanks into `room`; the number of bytes, or -1. */
long ssh_base64(struct str text, char *room, size_t n);
/*
 * One line of a public key file: "TYPE BASE64 [COMMENT]". The key is decoded into `room` (SSH_MAX_HOST_KEY bytes); false
 * if it is no such line, or the type in the key is not the one in front of it.
 */
bool ssh_public_line(struct str line, char *room, struct str *ret_key);
