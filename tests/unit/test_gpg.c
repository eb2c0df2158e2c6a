/*
 * The filter of the gpg-agent: each command of gpg's. Which pass, what they become, and what is refused.
 */
#include "gpg/assuan.h"
#include "unit.h"

#define GRIP  "0123456789ABCDEF0123456789ABCDEF01234567"
#define OTHER "FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF"
#define HASH  "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static const struct gpg_named_key named[] = {{GRIP, "me"}};
static const struct gpg_rules rules = {.keys = named, .n_keys = 1};

static struct gpg_request of(const char *line)
{
    struct gpg_request r;
    gpg_request_parse(str_of(line), &r);
    return r;
}

static void passes(const char *line, enum gpg_what what, const char *as)
{
    const struct gpg_request r = of(line);
    assert_int_equal(r.what, what);
    assert_string_equal(r.line, as);
}

static void what_passes(void **state)
{
    (void)state;
    passes("SIGKEY " GRIP, GPG_KEY, "SIGKEY " GRIP "\n");
    passes("SETKEY  " GRIP " ", GPG_KEY, "SIGKEY " GRIP "\n");
    passes("SETHASH 8 " HASH, GPG_HASH, "SETHASH 8 " HASH "\n");
    passes("SETHASH --hash=sha256 " HASH, GPG_HASH, "SETHASH --hash=sha256 " HASH "\n");
    passes("KEYINFO " GRIP, GPG_ABOUT, "KEYINFO " GRIP "\n");
    passes("KEYINFO --ssh-fpr -- " GRIP, GPG_ABOUT, "KEYINFO " GRIP "\n");
    passes("READKEY --no-data -- " GRIP, GPG_ABOUT, "READKEY --no-data -- " GRIP "\n");
    passes("GETINFO version", GPG_PASS, "GETINFO version\n");
    passes("GETINFO cmd_has_option READKEY no-data", GPG_PASS, "GETINFO cmd_has_option READKEY no-data\n");
    assert_int_equal(of("PKSIGN").what, GPG_SIGN);
    assert_int_equal(of("PKSIGN -- A1B2").what, GPG_SIGN);
    assert_int_equal(of("HAVEKEY --list=1000").what, GPG_LIST);
    assert_int_equal(of("HAVEKEY " OTHER " " GRIP).what, GPG_HAVE);
    assert_int_equal(of("OPTION ttyname=/dev/pts/9").what, GPG_FINE);
    assert_int_equal(of("SETKEYDESC anything+at+all").what, GPG_FINE);
    assert_int_equal(of("RESET").what, GPG_RESET);
}

static void what_is_refused(void **state)
{
    (void)state;
    static const char *const lines[] = {"",
                                        " ",
                                        "PKDECRYPT",
                                        "EXPORT_KEY " GRIP,
                                        "PASSWD " GRIP,
                                        "GENKEY",
                                        "IMPORT_KEY",
                                        "DELETE_KEY " GRIP,
                                        "GET_PASSPHRASE a b c d",
                                        "SCD SERIALNO",
                                        "KILLAGENT",
                                        "RELOADAGENT",
                                        "PRESET_PASSPHRASE " GRIP " -1 41",
                                        "OPTION pinentry-mode=loopback",
                                        "OPTION s2k-count=1",
                                        "GETINFO restricted",
                                        "GETINFO socket_name",
                                        "GETINFO cmd_has_option A",
                                        "GETINFO cmd_has_option A b c",
                                        "GETINFO cmd_has_option A b%0a",
                                        "sigkey " GRIP,
                                        "SIGKEY " GRIP " " OTHER,
                                        "SIGKEY 0123",
                                        "SIGKEY " GRIP "\rPKDECRYPT",
                                        "SIGKEY\t" GRIP,
                                        "SETHASH 8 012",
                                        "SETHASH --inquire",
                                        "SETHASH 8 " HASH " x",
                                        "SETHASH --hash=tls-md5sha1 " HASH,
                                        "SETHASH 1234 " HASH,
                                        "HAVEKEY",
                                        "HAVEKEY x",
                                        "KEYINFO --list",
                                        "READKEY 1",
                                        "KEYINFO --data " GRIP,
                                        "PUTVAL a b",
                                        "PKSIGN\n"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        const struct gpg_request r = of(lines[i]);
        if (r.what != GPG_REFUSED || !r.why || r.line[0])
            fail_msg("'%s' is not refused", lines[i]);
    }
    char longest[GPG_MAX_LINE + 2];
    memset(longest, ' ', sizeof longest);
    memcpy(longest, "NOP", 3);
    struct gpg_request r;
    gpg_request_parse((struct str){longest, GPG_MAX_LINE}, &r);
    assert_int_equal(r.what, GPG_FINE);
    gpg_request_parse((struct str){longest, GPG_MAX_LINE + 1}, &r);
    assert_int_equal(r.what, GPG_REFUSED);
    gpg_request_parse((struct str){"NOP\0", 4}, &r);
    assert_int_equal(r.what, GPG_REFUSED);
}

static void keys_are_named(void **state)
{
    (void)state;
    size_t i = 9;
    assert_true(gpg_key_named(&rules, STR(OTHER " " GRIP), &i) && i == 0);
    assert_true(gpg_key_named(&rules, STR("0123456789abcdef0123456789abcdef01234567"), &i));
    assert_false(gpg_key_named(&rules, STR(OTHER), &i));
    assert_false(gpg_key_named(&rules, STR(""), &i));
    assert_false(gpg_key_named(&(struct gpg_rules){0}, STR(GRIP), &i));
}

static void lists_are_escaped(void **state)
{
    (void)state;
    static const struct gpg_named_key odd[] = {{"250A0D4142434445464748494A4B4C4D4E4F5051", "odd"}};
    const struct gpg_rules r = {.keys = odd, .n_keys = 1};
    char room[GPG_MAX_LINE];
    size_t n = gpg_list_line(&r, room, sizeof room);
    room[n] = 0;
    assert_string_equal(room, "D %25%0A%0DABCDEFGHIJKLMNOPQ\n");
    assert_int_equal(gpg_list_line(&r, room, 20), 0);
}

static void answers(void **state)
{
    (void)state;
    assert_int_equal(gpg_answer_parse(STR("OK")), GPG_ANSWER_OK);
    assert_int_equal(gpg_answer_parse(STR("OK closing")), GPG_ANSWER_OK);
    assert_int_equal(gpg_answer_parse(STR("OKAY")), GPG_ANSWER_BAD);
    assert_int_equal(gpg_answer_parse(STR("ERR 1 x")), GPG_ANSWER_ERR);
    assert_int_equal(gpg_answer_parse(STR("D (7:sig-val)")), GPG_ANSWER_DATA);
    assert_int_equal(gpg_answer_parse(STR("S PROGRESS")), GPG_ANSWER_STATUS);
    assert_int_equal(gpg_answer_parse(STR("INQUIRE PASSPHRASE")), GPG_ANSWER_ASKS);
    assert_int_equal(gpg_answer_parse(STR("# x")), GPG_ANSWER_NOTHING);
    assert_int_equal(gpg_answer_parse(STR("")), GPG_ANSWER_BAD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_passes), cmocka_unit_test(what_is_refused),
                                       cmocka_unit_test(keys_are_named), cmocka_unit_test(lists_are_escaped),
                                       cmocka_unit_test(answers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
