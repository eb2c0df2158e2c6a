/*
 * Requests to the ssh-agent and known_hosts: what is passed on is one of five kinds, its parts lie in the message, a cut message is
 * never passed, and a host is only found for a rule that allows it.
 */
#include "fuzz.h"
#include "ssh/decide.h"
#include "ssh/known.h"

static bool lies_in(struct str part, struct str whole)
{
    return part.n == 0 || (part.p >= whole.p && part.p + part.n <= whole.p + whole.n);
}

static void check_request(struct str in)
{
    struct ssh_request r;
    struct ssh_decision d;
    static struct ssh_bound none;
    ssh_request_parse(in, &r);
    MUST((r.what == SSH_REFUSED) == (r.why != NULL));
    MUST(lies_in(r.key, in) && lies_in(r.user, in) && lies_in(r.session, in) && lies_in(r.host_key, in));
    if (r.what == SSH_BIND) {
        static struct ssh_bound b;
        b = none;
        ssh_bound_add(&b, &r);
        MUST(b.n == 1 && b.session_n == r.session.n && b.host_key_n == r.host_key.n && b.forwarding == r.forwarding);
    }
    const struct ssh_named_key key = {.key = r.key, .name = "k", .git = true};
    const struct ssh_rules rules = {.keys = &key, .n_keys = 1};
    ssh_decide(&rules, &none, &r, &d);
    MUST(d.pass == (d.why == NULL));
    MUST(!d.pass || (r.what != SSH_LOGIN && r.what != SSH_REFUSED));
    if (r.what == SSH_REFUSED)
        return;
    for (size_t n = 0; n < in.n; n++) {
        struct ssh_request cut;
        ssh_request_parse((struct str){in.p, n}, &cut);
        MUST(cut.what == SSH_REFUSED);
    }
}

static bool found(void *ctx, const char *host, struct str key, bool revoked)
{
    MUST(key.n > 0 && key.n <= SSH_MAX_HOST_KEY);
    MUST(revoked || same(host, "git.example") || same(host, "[git.example]:443") ||
         strcasecmp(host, "git.example") == 0 || strcasecmp(host, "[git.example]:443") == 0 ||
         strcasecmp(host, "git.example.") == 0 || strncasecmp(host, "[git.example", 12) == 0);
    ++*(size_t *)ctx;
    return true;
}

static bool keep_none(const void *ctx, struct str key)
{
    (void)ctx;
    (void)key;
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct str in = {(const char *)data, size};
    struct host_rule rules[2];
    size_t hosts = 0;
    char room[SSH_MAX_HOST_KEY], copy[4096];
    struct str key;
    check_request(in);
    MUST(host_rule_parse(STR("git.example"), RULE_ALLOW, &rules[0], NULL) == 0);
    MUST(host_rule_parse(STR("*:2222"), RULE_DENY, &rules[1], NULL) == 0);
    (void)ssh_known_hosts(in, rules, 2, found, &hosts);
    if (ssh_public_line(in, room, &key))
        MUST(key.n <= sizeof room);
    if (size && size <= sizeof copy) {
        memcpy(copy, data, size);
        size_t n = ssh_identities_keep(copy, size, keep_none, NULL);
        MUST(n == 0 || (n == 5 && memcmp(copy + 1, "\0\0\0\0", 4) == 0));
    }
    return 0;
}
