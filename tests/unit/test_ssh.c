/*
 * The filter of the ssh-agent: what requests it understands, and what it decides. And what known_hosts says.
 */
#include <stdio.h>

#include "ssh/decide.h"
#include "ssh/known.h"
#include "unit.h"

#define KEY  "ssh-key-one"
#define HOST "host-key-one"

struct wire {
    char p[8192];
    size_t n;
};

static void put_byte(struct wire *w, int c)
{
    w->p[w->n++] = (char)c;
}

static void put_number(struct wire *w, size_t v)
{
    for (int i = 3; i >= 0; i--)
        put_byte(w, (int)(v >> (8 * i) & 255));
}

static void put_bytes(struct wire *w, const void *p, size_t n)
{
    put_number(w, n);
    memcpy(w->p + w->n, p, n);
    w->n += n;
}

static void put_string(struct wire *w, const char *s)
{
    put_bytes(w, s, strlen(s));
}

static struct str all(const struct wire *w)
{
    return (struct str){w->p, w->n};
}

static enum ssh_what what_of(const struct wire *w, struct ssh_request *r)
{
    ssh_request_parse(all(w), r);
    assert_true((r->what == SSH_REFUSED) == (r->why != NULL));
    return r->what;
}

struct login {
    const char *session, *user, *service, *method, *key, *host;
    int type, has;
};
#define LOGIN ((struct login){"SESSION", "git", "ssh-connection", "publickey", KEY, NULL, 50, 1})

static struct wire login(struct login l)
{
    struct wire d = {.n = 0}, w = {.n = 0};
    put_string(&d, l.session);
    put_byte(&d, l.type);
    put_string(&d, l.user);
    put_string(&d, l.service);
    put_string(&d, l.method);
    put_byte(&d, l.has);
    put_string(&d, "ssh-ed25519");
    put_string(&d, l.key);
    if (l.host)
        put_string(&d, l.host);
    put_byte(&w, SSH_TYPE_SIGN);
    put_string(&w, KEY);
    put_bytes(&w, d.p, d.n);
    put_number(&w, 0);
    return w;
}

static struct wire signature(const char *purpose, const char *reserved, const char *hash, size_t sum)
{
    struct wire d = {.n = 0}, w = {.n = 0};
    char zero[100] = {0};
    memcpy(d.p, "SSHSIG", 6);
    d.n = 6;
    put_string(&d, purpose);
    put_string(&d, reserved);
    put_string(&d, hash);
    put_bytes(&d, zero, sum);
    put_byte(&w, SSH_TYPE_SIGN);
    put_string(&w, KEY);
    put_bytes(&w, d.p, d.n);
    put_number(&w, 0);
    return w;
}

static struct wire bind_request(const char *host, const char *session, int forwarding)
{
    struct wire w = {.n = 0};
    put_byte(&w, SSH_TYPE_EXTENSION);
    put_string(&w, "session-bind@openssh.com");
    put_string(&w, host);
    put_string(&w, session);
    put_string(&w, "signature");
    put_byte(&w, forwarding);
    return w;
}

/* Each cut of a message, and each with one byte more, is refused. */
static void refuses_all_but(struct wire w)
{
    struct ssh_request r;
    const size_t n = w.n;
    assert_int_not_equal(what_of(&w, &r), SSH_REFUSED);
    for (w.n = 0; w.n < n; w.n++)
        assert_int_equal(what_of(&w, &r), SSH_REFUSED);
    w.n = n;
    put_byte(&w, 0);
    assert_int_equal(what_of(&w, &r), SSH_REFUSED);
}

static void requests(void **state)
{
    (void)state;
    struct ssh_request r;
    struct wire w = {.p = {SSH_TYPE_LIST}, .n = 1};
    refuses_all_but(w);
    refuses_all_but(login(LOGIN));
    refuses_all_but(signature("git", "", "sha512", 64));
    refuses_all_but(bind_request(HOST, "SESSION", 0));
    for (int type = 0; type < 256; type++) { /* every other request, also with a body that would fit */
        w = login(LOGIN);
        w.p[0] = (char)type;
        if (type != SSH_TYPE_SIGN)
            assert_int_equal(what_of(&w, &r), SSH_REFUSED);
    }
    w = login(LOGIN);
    assert_int_equal(what_of(&w, &r), SSH_LOGIN);
    assert_true(str_is(r.user, "git") && str_is(r.session, "SESSION") && !r.host_key.n);
    struct login l = LOGIN;
    l.method = "publickey-hostbound-v00@openssh.com";
    w = login(l);
    assert_int_equal(what_of(&w, &r), SSH_REFUSED); /* without the host's key */
    l.host = HOST;
    refuses_all_but(login(l));
    l = LOGIN;
    l.host = HOST; /* with one that does not belong there */
    w = login(l);
    assert_int_equal(what_of(&w, &r), SSH_REFUSED);
}

static void other_data(void **state)
{
    (void)state;
    struct ssh_request r;
    struct login wrong[7] = {LOGIN, LOGIN, LOGIN, LOGIN, LOGIN, LOGIN, LOGIN};
    wrong[0].type = 51;
    wrong[1].service = "ssh-userauth";
    wrong[2].method = "hostbased";
    wrong[3].has = 0;
    wrong[4].has = 2;
    wrong[5].key = "another key";
    wrong[6].session = "";
    for (size_t i = 0; i < 7; i++) {
        struct wire w = login(wrong[i]);
        assert_int_equal(what_of(&w, &r), SSH_REFUSED);
    }
    struct wire w = signature("file", "", "sha512", 64);
    assert_int_equal(what_of(&w, &r), SSH_REFUSED);
    assert_string_equal(r.why, "a signature for another purpose than git");
    const struct wire bad[] = {signature("git", "x", "sha512", 64), signature("git", "", "md5", 16),
                               signature("git", "", "sha512", 32),  signature("", "", "sha512", 64),
                               signature("git2", "", "sha512", 64), signature("GIT", "", "sha512", 64)};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(what_of(&bad[i], &r), SSH_REFUSED);
    w = bind_request(HOST, "SESSION", 2);
    assert_int_equal(what_of(&w, &r), SSH_REFUSED);
    w = (struct wire){.p = {SSH_TYPE_EXTENSION}, .n = 1};
    put_string(&w, "restrict-destination-v00@openssh.com");
    assert_int_equal(what_of(&w, &r), SSH_REFUSED);
}

static struct ssh_decision decide(const struct ssh_rules *rules, const struct ssh_bound *b, const struct wire *w)
{
    struct ssh_request r;
    struct ssh_decision d;
    ssh_request_parse(all(w), &r);
    ssh_decide(rules, b, &r, &d);
    assert_true(d.pass == (d.why == NULL));
    return d;
}

static void bind_to(struct ssh_bound *b, const char *host, const char *session, int forwarding)
{
    struct ssh_request r;
    struct wire w = bind_request(host, session, forwarding);
    assert_int_equal(what_of(&w, &r), SSH_BIND);
    ssh_bound_add(b, &r);
}

static void decisions(void **state)
{
    (void)state;
    const struct ssh_named_key keys[] = {{STR("other"), "other", true}, {STR(KEY), "one", true}};
    const struct ssh_login logins[] = {
        {STR("foreign"), "foreign.example", 2}, {STR(HOST), "git.example", 2}, {STR("others"), "others.example", 1}};
    struct ssh_rules rules = {.keys = keys, .n_keys = 2, .logins = logins, .n_logins = 3};
    static struct ssh_bound b;
    const struct wire in = login(LOGIN), git = signature("git", "", "sha256", 32);

    b = (struct ssh_bound){0};
    assert_non_null(strstr(decide(&rules, &b, &in).why, "verified"));
    assert_true(decide(&rules, &b, &git).pass);
    bind_to(&b, HOST, "SESSION", 0);
    struct ssh_decision d = decide(&rules, &b, &in);
    assert_true(d.pass && d.key == 1 && same(d.host, "git.example"));
    assert_false(decide(&rules, &b, &git).pass);
    struct login l = LOGIN;
    l.session = "ANOTHER";
    struct wire w = login(l);
    assert_non_null(strstr(decide(&rules, &b, &w).why, "another session"));
    l = LOGIN;
    l.method = "publickey-hostbound-v00@openssh.com";
    l.host = "foreign";
    w = login(l);
    assert_non_null(strstr(decide(&rules, &b, &w).why, "another host"));
    l.host = HOST;
    w = login(l);
    assert_true(decide(&rules, &b, &w).pass);
    rules.gullible = true;
    assert_non_null(strstr(decide(&rules, &b, &w).why, "without verifying"));
    rules.gullible = false;
    bind_to(&b, HOST, "SESSION", 0);
    assert_non_null(strstr(decide(&rules, &b, &in).why, "twice"));

    b = (struct ssh_bound){0};
    bind_to(&b, HOST, "SESSION", 1);
    assert_non_null(strstr(decide(&rules, &b, &in).why, "forwarded"));
    b = (struct ssh_bound){0};
    bind_to(&b, "unknown", "SESSION", 0);
    assert_string_equal(decide(&rules, &b, &in).why, SSH_WHY_HOST);
    b = (struct ssh_bound){0};
    bind_to(&b, "others", "SESSION", 0);
    assert_string_equal(decide(&rules, &b, &in).why, SSH_WHY_OTHER_HOST);

    b = (struct ssh_bound){0};
    rules.n_keys = 1;
    assert_string_equal(decide(&rules, &b, &git).why, SSH_WHY_KEY);
    const struct ssh_named_key no_git = {STR(KEY), "one", false};
    rules.keys = &no_git;
    assert_string_equal(decide(&rules, &b, &git).why, SSH_WHY_NOT_GIT);
}

static bool keep_key(const void *ctx, struct str key)
{
    return str_is(key, ctx);
}

static void identities(void **state)
{
    (void)state;
    struct wire w = {.p = {SSH_TYPE_IDENTITIES}, .n = 1};
    put_number(&w, 3);
    put_string(&w, "a");
    put_string(&w, "comment of a");
    put_string(&w, KEY);
    put_string(&w, "mine");
    put_string(&w, "b");
    put_string(&w, "comment of b");
    struct wire cut = w;
    cut.n--;
    assert_int_equal(ssh_identities_keep(cut.p, cut.n, keep_key, KEY), 0);
    size_t n = ssh_identities_keep(w.p, w.n, keep_key, KEY);
    struct wire one = {.p = {SSH_TYPE_IDENTITIES}, .n = 1};
    put_number(&one, 1);
    put_string(&one, KEY);
    put_string(&one, "mine");
    assert_int_equal(n, one.n);
    assert_memory_equal(w.p, one.p, n);
    char failure = SSH_TYPE_FAILURE;
    assert_int_equal(ssh_identities_keep(&failure, 1, keep_key, KEY), 0);
}

#define ED    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAINx1FcEQcV/Pwqs2QywUBP4WvW0GVGdUBrxg7Uldjnod"
#define PRINT "SHA256:m+uHTZZvsLVHaKlgxGXsMwXGLnBM3xw/ta2UT1URMIU"

static void fingerprints(void **state)
{
    (void)state;
    char room[SSH_MAX_HOST_KEY], sum[SSH_FINGERPRINT];
    struct str key;
    assert_true(ssh_public_line(STR(ED " me@test"), room, &key));
    ssh_fingerprint(key, sum);
    assert_string_equal(sum, PRINT);
    assert_false(ssh_public_line(STR("ssh-rsa AAAAC3NzaC1lZDI1NTE5AAAAINx1FcEQcV/Pwqs2QywUBP4WvW0GVGdUBrxg7Uldjnod"),
                                 room, &key));
    assert_false(ssh_public_line(STR("-----BEGIN OPENSSH PRIVATE KEY-----"), room, &key));
    assert_false(ssh_public_line(STR(""), room, &key));
    assert_int_equal(ssh_base64(STR("QUJD"), room, 3), 3);
    assert_int_equal(ssh_base64(STR("QUI="), room, 3), 2);
    assert_int_equal(ssh_base64(STR("QUJD"), room, 2), -1);
    assert_int_equal(ssh_base64(STR("QU=D"), room, 3), -1);
    assert_int_equal(ssh_base64(STR("QUJ"), room, 3), -1);
}

struct hosts {
    char text[512];
};

static bool note_host(void *ctx, const char *host, struct str key, bool revoked)
{
    struct hosts *h = ctx;
    size_t n = strlen(h->text);
    assert_int_equal(key.n, 51);
    snprintf(h->text + n, sizeof h->text - n, "%s%s ", revoked ? "revoked" : "", host);
    return true;
}

static const char *hosts_of(const char *known, const char *const *allow, const char *const *deny)
{
    static struct hosts h;
    struct host_rule rules[8];
    size_t n = 0;
    h.text[0] = 0;
    for (; *allow; allow++)
        assert_int_equal(host_rule_parse(str_of(*allow), RULE_ALLOW, &rules[n++], NULL), 0);
    for (; deny && *deny; deny++)
        assert_int_equal(host_rule_parse(str_of(*deny), RULE_DENY, &rules[n++], NULL), 0);
    assert_true(ssh_known_hosts(str_of(known), rules, n, note_host, &h));
    return h.text;
}
#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

static void known_hosts(void **state)
{
    (void)state;
    static const char known[] = "# comment\n\ngit.example,203.0.113.5 " ED "\n[git.example]:2222 " ED " c\n"
                                "a.corp.example\t" ED "\r\n*.corp.example " ED "\n"
                                "@cert-authority *.git.example " ED "\n@revoked * " ED "\nbroken line\n"
                                "git.example ssh-rsa "
                                "AAAA\n[203.0.113.9]:2222 " ED;
    assert_string_equal(hosts_of(known, LIST("git.example"), NULL), "git.example [git.example]:2222 revoked ");
    assert_string_equal(hosts_of(known, LIST("git.example:2222"), NULL), "[git.example]:2222 revoked ");
    assert_string_equal(hosts_of(known, LIST("git.example:443"), NULL), "revoked ");
    assert_string_equal(hosts_of(known, LIST("GIT.example:22"), NULL), "git.example revoked ");
    assert_string_equal(hosts_of(known, LIST("*.corp.example"), NULL), "a.corp.example revoked ");
    assert_string_equal(hosts_of(known, LIST("203.0.113.0/24"), NULL), "203.0.113.5 revoked [203.0.113.9]:2222 ");
    assert_string_equal(hosts_of(known, LIST("*.example"), LIST("a.corp.example")),
                        "git.example [git.example]:2222 revoked ");
    assert_string_equal(hosts_of(known, LIST("git.example"), LIST("*:22")), "[git.example]:2222 revoked ");
    assert_string_equal(hosts_of(known, LIST("example"), NULL), "revoked ");
    static char after[4 * SSH_MAX_HOST_KEY]; /* a line with a tab that is too long for any key hides no other */
    memset(after, 'x', 3 * SSH_MAX_HOST_KEY + 1);
    after[1] = '\t';
    snprintf(after + 3 * SSH_MAX_HOST_KEY + 1, SSH_MAX_HOST_KEY - 1, "\n@revoked * " ED "\n");
    assert_string_equal(hosts_of(after, LIST("git.example"), NULL), "revoked ");
}

/* As `ssh-keygen -H` made them of git.example, [git.example]:2222 and 203.0.113.5. */
static void hidden_hosts(void **state)
{
    (void)state;
    static const char known[] = "|1|H8Nv8R6BtFkIfj+Tw7ooQRlvyeg=|MfRyKGvSuQrL8pAA6Ksvjgpfb0w= " ED "\n"
                                "|1|0dUAg2GKV+95hsucy8ofj6D7EyA=|ZRH5i3MDRm8UBozV7JeaofJb2UE= " ED "\n"
                                "|1|jb9IRcvErb1AhM795qM5IFkjh+o=|qEwokAx0Vn5nZc6TFFgAytOOI5M= " ED "\n";
    assert_string_equal(hosts_of(known, LIST("git.example"), NULL), "git.example ");
    assert_string_equal(hosts_of(known, LIST("git.example:2222"), NULL), "[git.example]:2222 ");
    assert_string_equal(hosts_of(known, LIST("203.0.113.5"), NULL), "203.0.113.5 ");
    assert_string_equal(hosts_of(known, LIST(".git.example"), NULL), "git.example ");
    assert_string_equal(hosts_of(known, LIST("git.example"), LIST("git.example")), "");
    assert_string_equal(hosts_of(known, LIST("other.example"), NULL), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests),     cmocka_unit_test(other_data),   cmocka_unit_test(decisions),
        cmocka_unit_test(identities),   cmocka_unit_test(fingerprints), cmocka_unit_test(known_hosts),
        cmocka_unit_test(hidden_hosts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
