/* Reads known_hosts.
   Which keys a host may have that the policy allows; hashed names are tried, patterns passed over. */
#include "ssh/known.h"

#include <sha1.h>
#include <stdio.h>

#include "ssh/wire.h"

enum { SSH_PORT = 22, HTTPS_PORT = 443 };

struct knowing {
    const struct host_rule *rules;
    size_t n;
    ssh_known_fn *found;
    void *ctx;
};

/* HMAC (RFC 2104) with SHA-1, as ssh-keygen -H makes it. */
static void hmac(struct str key, struct str text, uint8_t ret[SHA1_DIGEST_LENGTH])
{
    uint8_t pad[SHA1_BLOCK_LENGTH];
    SHA1_CTX sha;
    for (int outer = 0; outer < 2; outer++) {
        for (size_t i = 0; i < sizeof pad; i++)
            pad[i] = (uint8_t)((i < key.n ? (unsigned char)key.p[i] : 0) ^ (outer ? 0x5c : 0x36));
        SHA1Init(&sha);
        SHA1Update(&sha, pad, sizeof pad);
        SHA1Update(&sha, outer ? ret : (const uint8_t *)text.p, outer ? SHA1_DIGEST_LENGTH : text.n);
        SHA1Final(ret, &sha);
    }
}

/* Whether "|1|SALT|HASH" is `name`. */
static bool hidden_is(struct str hidden, const char *name)
{
    char salt[SHA1_DIGEST_LENGTH], hash[SHA1_DIGEST_LENGTH];
    uint8_t sum[SHA1_DIGEST_LENGTH];
    hidden = str_skip(hidden, 3);
    struct str first = str_until(&hidden, '|');
    if (ssh_base64(first, salt, sizeof salt) != sizeof salt || ssh_base64(hidden, hash, sizeof hash) != sizeof hash)
        return false;
    hmac((struct str){salt, sizeof salt}, str_of(name), sum);
    return memcmp(sum, hash, sizeof sum) == 0;
}

static void spell(const char *name, uint16_t port, char ret[HOST_NAME_MAX_TEXT + 16])
{
    snprintf(ret, HOST_NAME_MAX_TEXT + 16, port == SSH_PORT ? "%s" : "[%s]:%u", name, port);
}

static bool allowed(const struct knowing *k, const struct host *h, uint16_t port)
{
    return host_judge(k->rules, k->n, h, port, NULL) == HOST_ALLOWED;
}

/* The names that rules spell out, in the form that is hidden: the first that `hidden` is. */
static bool find_hidden(const struct knowing *k, struct str hidden, char ret[HOST_NAME_MAX_TEXT + 16])
{
    for (size_t i = 0; i < k->n; i++) {
        const struct host_rule *r = &k->rules[i];
        char name[HOST_RULE_TEXT];
        struct host h;
        if (r->verb != RULE_ALLOW ||
            (r->match != MATCH_NAME && r->match != MATCH_NET && r->match != MATCH_BELOW_OR_APEX))
            continue;
        struct host_rule bare = *r; /* the host without its ports, as clients write it */
        bare.low = 1;
        bare.high = 65535;
        bare.any_bytes = false;
        host_rule_print(&bare, name);
        struct str text = str_of(name);
        if (text.n && text.p[0] == '[')
            text = (struct str){text.p + 1, text.n - 2};
        else if (r->match == MATCH_BELOW_OR_APEX)
            text = str_skip(text, 1);
        if (host_parse(text, &h) < 0)
            continue; /* a range of addresses */
        const uint16_t ports[] = {SSH_PORT, HTTPS_PORT, r->low == r->high ? r->low : SSH_PORT};
        char plain[HOST_RULE_TEXT];
        snprintf(plain, sizeof plain, "%.*s", (int)text.n, text.p);
        for (size_t p = 0; p < sizeof ports / sizeof *ports; p++) {
            if (!allowed(k, &h, ports[p]))
                continue;
            spell(plain, ports[p], ret);
            if (hidden_is(hidden, ret))
                return true;
        }
    }
    return false;
}

/* One name of an entry: allowed as it is written? Patterns name no host of their own and are passed over. */
static bool find_plain(const struct knowing *k, struct str token, char ret[HOST_NAME_MAX_TEXT + 16])
{
    struct host h;
    uint16_t port = SSH_PORT;
    if (memchr(token.p, '*', token.n) || memchr(token.p, '?', token.n) || token.p[0] == '!')
        return false;
    int r = token.p[0] == '[' ? host_port_parse(token, SSH_PORT, &h, &port) : host_parse(token, &h);
    if (r < 0 && token.p[0] == '[') { /* "[name]:port" */
        const char *close = memchr(token.p, ']', token.n);
        char text[HOST_NAME_MAX_TEXT + 16];
        if (!close)
            return false;
        struct str inner = {token.p + 1, (size_t)(close - token.p) - 1}, rest = str_skip(token, inner.n + 2);
        if (snprintf(text, sizeof text, "%.*s%.*s", (int)inner.n, inner.p, (int)rest.n, rest.p) >= (int)sizeof text)
            return false;
        r = host_port_parse(str_of(text), SSH_PORT, &h, &port);
    }
    if (r < 0 || !allowed(k, &h, port) || token.n > HOST_NAME_MAX_TEXT + 15)
        return false;
    memcpy(ret, token.p, token.n);
    ret[token.n] = 0;
    return true;
}

static bool one_line(const struct knowing *k, struct str line)
{
    char room[SSH_MAX_HOST_KEY], host[HOST_NAME_MAX_TEXT + 16];
    bool revoked = false;
    struct str key;
    while (line.n && (line.p[line.n - 1] == '\r' || line.p[line.n - 1] == ' '))
        line.n--;
    line = str_trim(line);
    if (!line.n || line.p[0] == '#')
        return true;
    if (line.p[0] == '@') {
        revoked = str_is(str_until(&line, ' '), "@revoked");
        if (!revoked)
            return true;
        line = str_trim(line);
    }
    struct str names = str_until(&line, ' ');
    if (!ssh_public_line(line, room, &key))
        return true;
    if (revoked)
        return k->found(k->ctx, "", key, true);
    while (names.n) {
        struct str token = str_until(&names, ',');
        bool is = token.n && (str_starts(token, STR("|1|")) ? find_hidden(k, token, host) : find_plain(k, token, host));
        if (is && !k->found(k->ctx, host, key, false))
            return false;
    }
    return true;
}

bool ssh_known_hosts(struct str known, const struct host_rule *rules, size_t n, ssh_known_fn *found, void *ctx)
{
    const struct knowing k = {rules, n, found, ctx};
    while (known.n) {
        struct str line = str_until(&known, '\n');
        for (size_t i = 0; i < line.n; i++) {
            if (line.p[i] == '\t' || line.p[i] == 0) { /* rare: fields may be separated by tabs */
                char copy[3 * SSH_MAX_HOST_KEY];
                if (line.n > sizeof copy) { /* no key is that long */
                    line.n = 0;
                    break;
                }
                for (size_t c = 0; c < line.n; c++)
                    copy[c] = line.p[c] == '\t' || line.p[c] == 0 ? ' ' : line.p[c];
                if (!one_line(&k, (struct str){copy, line.n}))
                    return false;
                line.n = 0;
            }
        }
        if (line.n && !one_line(&k, line))
            return false;
    }
    return true;
}
