/* Parses requests to an agent, what they ask to be signed, and public keys.
   Pure: a request is understood to its last byte, or refused. */
#include "ssh/wire.h"

#include <sha2.h>

bool ssh_take_number(struct str *rest, uint32_t *ret)
{
    const unsigned char *p = (const unsigned char *)rest->p;
    if (rest->n < 4)
        return false;
    *ret = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
    *rest = str_skip(*rest, 4);
    return true;
}

bool ssh_take_string(struct str *rest, struct str *ret)
{
    struct str now = *rest;
    uint32_t n;
    if (!ssh_take_number(&now, &n) || n > now.n)
        return false;
    *ret = (struct str){now.p, n};
    *rest = str_skip(now, n);
    return true;
}

static bool take_byte(struct str *rest, unsigned *ret)
{
    if (!rest->n)
        return false;
    *ret = (unsigned char)rest->p[0];
    *rest = str_skip(*rest, 1);
    return true;
}

/*
 * What a client signs to log in: the session's id, then its request to the server. The key in it must be the one that
 * signs, or the server's answer would be about another.
 */
static bool login_data(struct str data, struct ssh_request *r)
{
    enum { USERAUTH_REQUEST = 50 };
    struct str service, method, algorithm, key;
    unsigned type, has_signature;
    if (!ssh_take_string(&data, &r->session) || !take_byte(&data, &type) || type != USERAUTH_REQUEST ||
        !ssh_take_string(&data, &r->user) || !ssh_take_string(&data, &service) || !ssh_take_string(&data, &method) ||
        !take_byte(&data, &has_signature) || has_signature != 1 || !ssh_take_string(&data, &algorithm) ||
        !ssh_take_string(&data, &key))
        return false;
    const bool host_bound = str_is(method, "publickey-hostbound-v00@openssh.com");
    if (host_bound && (!ssh_take_string(&data, &r->host_key) || !r->host_key.n))
        return false;
    return data.n == 0 && (host_bound || str_is(method, "publickey")) && str_is(service, "ssh-connection") &&
           str_eq(key, r->key) && r->session.n && algorithm.n;
}

/* 1: a signature of git's; 0: of another purpose; -1: not a signature of this kind. */
static int file_data(struct str data)
{
    struct str purpose, reserved, hash, sum;
    if (!str_starts(data, STR("SSHSIG")))
        return -1;
    data = str_skip(data, 6);
    if (!ssh_take_string(&data, &purpose) || !ssh_take_string(&data, &reserved) || !ssh_take_string(&data, &hash) ||
        !ssh_take_string(&data, &sum) || data.n || reserved.n)
        return -1;
    if (!(str_is(hash, "sha512") && sum.n == 64) && !(str_is(hash, "sha256") && sum.n == 32))
        return -1;
    return str_is(purpose, "git");
}

static void refuse_request(struct ssh_request *r, const char *why)
{
    *r = (struct ssh_request){.what = SSH_REFUSED, .why = why};
}

static void sign_request(struct str rest, struct ssh_request *r)
{
    struct str data;
    uint32_t flags;
    if (!ssh_take_string(&rest, &r->key) || !ssh_take_string(&rest, &data) || !ssh_take_number(&rest, &flags) ||
        rest.n || !r->key.n) {
        refuse_request(r, "not a valid request");
        return;
    }
    int git = file_data(data);
    if (git == 1)
        r->what = SSH_GIT;
    else if (git == 0)
        refuse_request(r, "a signature for another purpose than git");
    else if (login_data(data, r))
        r->what = SSH_LOGIN;
    else
        refuse_request(r, "a signature of data that is neither a login nor git's");
}

static void extension_request(struct str rest, struct ssh_request *r)
{
    struct str name, signature;
    unsigned forwarding;
    if (!ssh_take_string(&rest, &name)) {
        refuse_request(r, "not a valid request");
    } else if (str_is(name, "query")) {
        r->what = SSH_QUERY;
        if (rest.n)
            refuse_request(r, "not a valid request");
    } else if (!str_is(name, "session-bind@openssh.com")) {
        refuse_request(r, "an extension other than query and session-bind");
    } else if (!ssh_take_string(&rest, &r->host_key) || !ssh_take_string(&rest, &r->session) ||
               !ssh_take_string(&rest, &signature) || !take_byte(&rest, &forwarding) || rest.n || forwarding > 1 ||
               !r->host_key.n || r->host_key.n > SSH_MAX_HOST_KEY || !r->session.n || r->session.n > SSH_MAX_SESSION) {
        refuse_request(r, "not a valid request");
    } else {
        r->what = SSH_BIND;
        r->forwarding = forwarding == 1;
    }
}

void ssh_request_parse(struct str message, struct ssh_request *ret)
{
    struct str rest = str_skip(message, 1);
    *ret = (struct ssh_request){.what = SSH_REFUSED};
    switch (ssh_message_type(message)) {
    case SSH_TYPE_LIST:
        ret->what = SSH_LIST;
        if (rest.n)
            refuse_request(ret, "not a valid request");
        return;
    case SSH_TYPE_SIGN:
        sign_request(rest, ret);
        return;
    case SSH_TYPE_EXTENSION:
        extension_request(rest, ret);
        return;
    default: /* keys added, removed, locked; smartcards; version 1 */
        ret->why = "a request other than listing keys and signing";
    }
}

size_t ssh_identities_keep(char *message, size_t n, bool (*keep)(const void *ctx, struct str key), const void *ctx)
{
    struct str rest = {message + 1, n ? n - 1 : 0};
    uint32_t count, kept = 0;
    if (ssh_message_type((struct str){message, n}) != SSH_TYPE_IDENTITIES || !ssh_take_number(&rest, &count))
        return 0;
    size_t at = 5;
    for (uint32_t i = 0; i < count; i++) {
        const char *from = rest.p;
        struct str key, comment;
        if (!ssh_take_string(&rest, &key) || !ssh_take_string(&rest, &comment))
            return 0;
        if (!keep(ctx, key))
            continue;
        memmove(message + at, from, (size_t)(rest.p - from));
        at += (size_t)(rest.p - from);
        kept++;
    }
    for (int i = 0; i < 4; i++)
        message[1 + i] = (char)(kept >> (24 - 8 * i));
    return rest.n ? 0 : at;
}

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void ssh_fingerprint(struct str key, char ret[SSH_FINGERPRINT])
{
    uint8_t sum[SHA256_DIGEST_LENGTH + 1] = {0};
    SHA2_CTX sha;
    SHA256Init(&sha);
    SHA256Update(&sha, (const uint8_t *)key.p, key.n);
    SHA256Final(sum, &sha);
    memcpy(ret, "SHA256:", 7);
    for (size_t i = 0; i < 43; i++) {
        unsigned bits = (unsigned)sum[i * 6 / 8] << 8 | (i * 6 / 8 + 1 < sizeof sum ? sum[i * 6 / 8 + 1] : 0);
        ret[7 + i] = alphabet[bits >> (10 - i * 6 % 8) & 63];
    }
    ret[SSH_FINGERPRINT - 1] = 0;
}

long ssh_base64(struct str text, char *room, size_t n)
{
    uint32_t bits = 0;
    unsigned have = 0;
    size_t at = 0;
    if (text.n % 4)
        return -1;
    while (text.n && text.p[text.n - 1] == '=' && text.n % 4 != 2)
        text.n--;
    for (size_t i = 0; i < text.n; i++) {
        const char *c = text.p[i] ? strchr(alphabet, text.p[i]) : NULL;
        if (!c)
            return -1;
        bits = bits << 6 | (uint32_t)(c - alphabet);
        have += 6;
        if (have < 8)
            continue;
        have -= 8;
        if (at == n)
            return -1;
        room[at++] = (char)(bits >> have);
    }
    return (long)at;
}

bool ssh_public_line(struct str line, char *room, struct str *ret_key)
{
    line = str_trim(line);
    struct str type = str_until(&line, ' ');
    line = str_trim(line);
    struct str key = str_until(&line, ' '), inner;
    long n = type.n ? ssh_base64(key, room, SSH_MAX_HOST_KEY) : -1;
    *ret_key = (struct str){room, n > 0 ? (size_t)n : 0};
    struct str rest = *ret_key;
    return n > 0 && ssh_take_string(&rest, &inner) && str_eq(inner, type);
}
