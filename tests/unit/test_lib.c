/* lib/: places and files, messages, trust, words. What needs boxes is in tests/lib and tests/escape. */
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/fd.h"
#include "base/sha256.h"
#include "run/load.h"
#include "client/messages.h"
#include "run/private.h"
#include "run/trust.h"
#include "run/words.h"
#include "run/world.h"

static char top[] = "/tmp/pinfold-test-lib-XXXXXX";

static const char *in(const char *name)
{
    static char path[32][512];
    static unsigned next;
    char *to = path[next++ % 32];
    snprintf(to, sizeof path[0], "%s/%s", top, name);
    return to;
}

/* Of a file on FAT, whose type the kernel would say; not every machine has that file system. */
static bool fat;
int fstatfs(int fd, struct statfs *ret)
{
    const long r = syscall(SYS_fstatfs, fd, ret);
    if (r == 0 && fat)
        ret->f_type = 0x4d44;
    return (int)r;
}

static void put(const char *name, const char *text, mode_t mode)
{
    int fd = open(in(name), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
}

static void home_is_found(void **state)
{
    auto_arena struct arena *mem = arena_new(8u << 20);
    struct world w;
    struct err e = {0};
    (void)state;
    setenv("HOME", "/somewhere//u/", 1);
    setenv("XDG_STATE_HOME", "relative", 1);
    setenv("XDG_CONFIG_HOME", "/conf", 1);
    assert_int_equal(world_look(mem, NULL, &w, &e), 0);
    assert_string_equal(w.home, "/somewhere/u");
    assert_string_equal(w.state, "/somewhere/u/.local/state/pinfold"); /* a relative one is to be ignored */
    assert_string_equal(w.config, "/conf/pinfold");
    unsetenv("XDG_STATE_HOME");
    unsetenv("XDG_CONFIG_HOME");
    unsetenv("HOME");
    if (getuid() == 0) {
        assert_int_equal(world_look(mem, NULL, &w, &e), 0);
        assert_string_equal(w.home, "/root");
    }
    setenv("HOME", "not/absolute", 1);
    if (getuid() == 0) {
        assert_int_equal(world_look(mem, NULL, &w, &e), 0);
        assert_string_equal(w.home, "/root");
    }
    setenv("HOME", top, 1);
    assert_true(world_look(mem, "/not/there", &w, &e) < 0);
    assert_non_null(strstr(e.text, "/not/there"));
}

static void files_that_decide_are_judged(void **state)
{
    auto_arena struct arena *mem = arena_new(1 << 20);
    struct str s;
    struct err e = {0};
    (void)state;
    put("good", "text", 0600);
    assert_int_equal(read_whole(mem, in("good"), 100, FILE_OWN, false, false, &s, &e), 0);
    assert_true(str_is(s, "text"));
    assert_int_equal(s.p[s.n], 0);
    assert_true(read_whole(mem, in("good"), 3, FILE_OWN, false, false, &s, &e) < 0);
    assert_non_null(strstr(e.text, "larger than 3"));
    assert_int_equal(read_whole(mem, in("absent"), 100, FILE_OWN, false, true, &s, &e), -ENOENT);
    assert_true(read_whole(mem, in("absent"), 100, FILE_OWN, false, false, &s, &e) < 0);
    put("loose", "text", 0602);
    assert_int_equal(read_whole(mem, in("loose"), 100, FILE_OWN, false, false, &s, &e), -EPERM);
    assert_non_null(strstr(e.text, "; run: chmod go-w '"));
    fat = true; /* where that would change nothing */
    assert_int_equal(read_whole(mem, in("loose"), 100, FILE_OWN, false, false, &s, &e), -EPERM);
    fat = false;
    assert_non_null(strstr(e.text, "mount that with umask=022"));
    assert_null(strstr(e.text, "chmod"));
    assert_int_equal(read_whole(mem, in("loose"), 100, FILE_SYSTEM, false, false, &s, &e), -EPERM);
    assert_int_equal(read_whole(mem, in("loose"), 100, FILE_ANYBODYS, false, false, &s, &e), 0);
    assert_int_equal(symlink("good", in("link")), 0);
    assert_int_equal(read_whole(mem, in("link"), 100, FILE_ANYBODYS, true, true, &s, &e), -EPERM);
    assert_int_equal(read_whole(mem, in("link"), 100, FILE_ANYBODYS, false, false, &s, &e), 0);
    assert_int_equal(mkfifo(in("fifo"), 0600), 0);
    assert_true(read_whole(mem, in("fifo"), 100, FILE_ANYBODYS, false, false, &s, &e) < 0); /* and does not hang */
    assert_non_null(strstr(e.text, "regular"));
    if (getuid() == 0) {
        assert_int_equal(chown(in("good"), 12345, 12345), 0);
        assert_int_equal(read_whole(mem, in("good"), 100, FILE_OWN, false, false, &s, &e), -EPERM);
        assert_int_equal(chmod(in("good"), 0620), 0); /* a group that is somebody's own is nobody else */
        assert_int_equal(chown(in("good"), 0, 0), 0);
        assert_int_equal(chmod(in("good"), 0620), 0);
        assert_int_equal(read_whole(mem, in("good"), 100, FILE_SYSTEM, false, false, &s, &e), 0);
        assert_int_equal(chown(in("good"), 0, 12345), 0);
        assert_int_equal(chmod(in("good"), 0620), 0);
        assert_int_equal(read_whole(mem, in("good"), 100, FILE_SYSTEM, false, false, &s, &e), -EPERM);
    }
}

static void hashes_are_sha256(void **state)
{
    char sum[65];
    (void)state;
    sha256_hex(STR("abc"), sum); /* FIPS 180-4, appendix */
    assert_string_equal(sum, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

static void trust_is_in_the_content(void **state)
{
    auto_arena struct arena *mem = arena_new(4u << 20);
    const char *said = NULL, *store = in("state"), *file = in("project/.pinfold/policy.yaml");
    struct err e = {0};
    (void)state;
    assert_int_equal(mkdir(in("project"), 0700), 0);
    assert_int_equal(mkdir(in("project/.pinfold"), 0700), 0);
    put("project/.pinfold/policy.yaml", "version: 1\n", 0600);
    assert_false(trust_given(mem, store, file, STR("version: 1\n")));
    assert_int_equal(trust_say(mem, store, in("project"), false, &said, &e), 0);
    assert_non_null(strstr(said, "policy.yaml"));
    assert_true(trust_given(mem, store, file, STR("version: 1\n")));
    assert_false(trust_given(mem, store, file, STR("version: 1\n ")));
    /* Who has written a policy trusts no other that was put in its place. */
    assert_int_equal(trust_say(mem, store, in("project"), true, &said, &e), 0);
    assert_int_equal(trust_content(mem, store, file, STR("version: 1\n "), &e), -EINVAL);
    assert_false(trust_given(mem, store, file, STR("version: 1\n")) ||
                 trust_given(mem, store, file, STR("version: 1\n ")));
    assert_int_equal(trust_content(mem, store, file, STR("version: 1\n"), &e), 0);
    assert_true(trust_given(mem, store, file, STR("version: 1\n")));
    assert_false(trust_given(mem, store, in("other/.pinfold/policy.yaml"), STR("version: 1\n")));
    /* A record that others may write is no trust. */
    char sum[65];
    sha256_hex(str_of(file), sum);
    assert_int_equal(chmod(arena_printf(mem, "%s/trust/%s", store, sum), 0666), 0);
    assert_false(trust_given(mem, store, file, STR("version: 1\n")));
    assert_int_equal(trust_say(mem, store, in("project"), true, &said, &e), 0);
    assert_false(trust_given(mem, store, file, STR("version: 1\n")));
    assert_non_null(strstr(said, "no longer trusted: "));
    /* What is not trusted is so: nothing went wrong. The trust in a file that is gone can be taken back, too. */
    assert_int_equal(trust_say(mem, store, in("project"), true, &said, &e), 0);
    assert_non_null(strstr(said, "was not trusted: "));
    assert_int_equal(trust_say(mem, store, in("project"), false, &said, &e), 0);
    assert_int_equal(unlink(file), 0);
    assert_int_equal(trust_say(mem, store, in("project"), true, &said, &e), 0);
    assert_non_null(strstr(said, "no longer trusted: "));
    assert_int_equal(trust_say(mem, store, in("project"), true, &said, &e), 0);
    assert_true(trust_say(mem, store, in("project"), false, &said, &e) < 0);
    assert_int_equal(trust_say(mem, store, in("nowhere"), true, &said, &e), 0);
    assert_non_null(strstr(said, "was not trusted: "));
    put("project/.pinfold/policy.yaml", "version: 1\n", 0600);
    assert_int_equal(trust_say(mem, store, in("project"), false, &said, &e), 0);
    assert_int_equal(unlink(file), 0);
    assert_int_equal(rmdir(in("project/.pinfold")), 0);
    assert_int_equal(rmdir(in("project")), 0);
    assert_int_equal(trust_say(mem, store, in("project"), true, &said, &e), 0);
    assert_non_null(strstr(said, "no longer trusted: "));
    assert_true(trust_say(mem, store, in("nowhere"), false, &said, &e) < 0);
}

static void messages_come_whole(void **state)
{
    auto_arena struct arena *mem = arena_new(1 << 20);
    auto_buf struct buf sent = BUF(1 << 20);
    auto_buf struct buf got = BUF(1 << 20);
    const char *const words[] = {"a", "", "b c", NULL};
    const char *const *list;
    const char *text;
    struct str bytes, rest;
    uint64_t number;
    int pair[2], fds[MESSAGE_FDS];
    (void)state;

    message_text(&sent, 1, "text");
    message_text(&sent, 1, NULL);
    message_bytes(&sent, 2, STR("x\0y"));
    message_number(&sent, 3, UINT64_MAX);
    message_list(&sent, 4, words);
    message_list(&sent, 4, NULL);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    int pass[2] = {pair[0], pair[1]};
    assert_int_equal(message_send(pair[0], &sent, pass, 2), 0);
    assert_int_equal(message_receive(pair[1], &got, fds), 0);
    assert_true(fds[0] >= 0 && fds[1] >= 0 && fds[2] == -1);
    assert_int_equal(fcntl(fds[0], F_GETFD), FD_CLOEXEC);
    close(fds[0]), close(fds[1]);

    rest = buf_view(&got);
    assert_int_equal(message_take_number(&rest, 1, &number), -EBADMSG); /* the wrong type leaves everything */
    assert_int_equal(message_take_text(&rest, 2, mem, &text), -EBADMSG);
    assert_int_equal(message_take_text(&rest, 1, mem, &text), 0);
    assert_string_equal(text, "text");
    assert_int_equal(message_take_text(&rest, 1, mem, &text), 0);
    assert_null(text);
    assert_int_equal(message_take_bytes(&rest, 2, mem, &bytes), 0);
    assert_true(str_eq(bytes, STR("x\0y")));
    assert_int_equal(message_peek(rest), 3);
    assert_int_equal(message_take_number(&rest, 3, &number), 0);
    assert_true(number == UINT64_MAX);
    assert_int_equal(message_take_list(&rest, 4, mem, &list), 0);
    assert_string_equal(list[2], "b c");
    assert_null(list[3]);
    assert_int_equal(message_take_list(&rest, 4, mem, &list), 0);
    assert_null(list);
    assert_int_equal(rest.n, 0);

    /* Every prefix of it is refused somewhere, and nothing is read beyond its end. */
    for (size_t n = 0; n < got.n; n++) {
        char *cut = malloc(n ? n : 1);
        memcpy(cut, got.p, n);
        struct str s = {cut, n};
        bool whole = message_take_text(&s, 1, mem, &text) == 0 && message_take_text(&s, 1, mem, &text) == 0 &&
                     message_take_bytes(&s, 2, mem, &bytes) == 0 && message_take_number(&s, 3, &number) == 0 &&
                     message_take_list(&s, 4, mem, &list) == 0 && message_take_list(&s, 4, mem, &list) == 0;
        assert_false(whole);
        free(cut);
    }
    /* A length beyond the ceiling, and an end in the middle. */
    uint64_t huge = UINT64_MAX;
    buf_free(&got);
    assert_int_equal(write(pair[0], &huge, sizeof huge), sizeof huge);
    assert_int_equal(message_receive(pair[1], &got, NULL), -EBADMSG);
    huge = 100;
    assert_int_equal(write(pair[0], &huge, sizeof huge), sizeof huge);
    close(pair[0]);
    assert_int_equal(message_receive(pair[1], &got, NULL), -ECONNRESET);
    close(pair[1]);
}

/* Something of its own in every field of a message. */
static void fill(const struct message_shape *shape, void *to, unsigned salt)
{
    static const char *const words[2][4] = {{"one", "", "t h r e e", NULL}, {"four", NULL}};
    static const struct pinfold_option options[] = {{"rw", "/data"}, {"allow-something", NULL}, {NULL, NULL}};
    static char texts[64][32];
    size_t at = 0;
    for (size_t i = 0; i < shape->n; i++) {
        void *field = (char *)to + message_next(shape->fields[i].kind, &at);
        switch (shape->fields[i].kind) {
        case MESSAGE_TEXT:
            snprintf(texts[i], sizeof texts[i], "%s %u", shape->fields[i].name, salt);
            *(const char **)field = (i + salt) % 5 ? texts[i] : NULL;
            break;
        case MESSAGE_LIST:
            *(const char *const **)field = (i + salt) % 3 ? words[(i + salt) % 2] : NULL;
            break;
        case MESSAGE_NUMBER:
            *(uint64_t *)field = i * 1000003u + salt;
            break;
        case MESSAGE_BYTES:
            snprintf(texts[i], sizeof texts[i], "%s", shape->fields[i].name);
            *(struct str *)field = (struct str){texts[i], strlen(texts[i]) + 1};
            break;
        case MESSAGE_OPTIONS:
            *(const struct pinfold_option **)field = options;
            break;
        }
    }
    assert_int_equal(at, shape->bytes);
}

/* What one end of the client library puts into a message is what the other end takes out: of every message there is. */
static void every_message_comes_back(void **state)
{
    (void)state;
    for (unsigned id = 0; id < SHAPE_COUNT; id++) {
        const struct message_shape *shape = &message_shapes[id];
        for (unsigned salt = 0; salt < 15; salt++) {
            auto_arena struct arena *mem = arena_new(1 << 20);
            auto_buf struct buf sent = BUF(1 << 20), again = BUF(1 << 20);
            void *from = calloc(1, shape->bytes), *to = calloc(1, shape->bytes);
            fill(shape, from, salt);
            message_put(&sent, TAG_REQUEST, id, from);
            struct str rest = buf_view(&sent);
            assert_int_equal(message_take(&rest, TAG_REQUEST, id, mem, to), 0);
            assert_int_equal(rest.n, 0);
            message_put(&again, TAG_REQUEST, id, to);
            assert_int_equal(again.n, sent.n);
            assert_memory_equal(again.p, sent.p, sent.n);
            rest = buf_view(&sent);
            assert_int_equal(message_take(&rest, TAG_ANSWER, id, mem, to), -EBADMSG); /* another kind of message */
            for (size_t n = 0; n < sent.n; n++) {
                char *cut = malloc(n ? n : 1);
                memcpy(cut, sent.p, n);
                struct str part = {cut, n};
                assert_int_equal(message_take(&part, TAG_REQUEST, id, mem, to), -EBADMSG);
                free(cut);
            }
            free(from);
            free(to);
        }
    }
    for (unsigned op = 0; op < REQUEST_COUNT; op++) {
        assert_non_null(message_requests[op].name);
        assert_true(message_requests[op].request < SHAPE_COUNT && message_requests[op].answer < SHAPE_COUNT);
    }
    /* The names stand for what they say. */
    const struct message_load asked = {.profile = "workspace", .cwd = "/w", .no_layers = 1};
    struct message_load got;
    auto_arena struct arena *mem = arena_new(1 << 16);
    auto_buf struct buf sent = BUF(1 << 16);
    message_put(&sent, TAG_REQUEST, SHAPE_load, &asked);
    struct str rest = buf_view(&sent);
    assert_int_equal(message_take(&rest, TAG_REQUEST, SHAPE_load, mem, &got), 0);
    assert_string_equal(got.profile, "workspace");
    assert_string_equal(got.cwd, "/w");
    assert_null(got.settings);
    assert_true(got.no_layers == 1);
    assert_null(got.options[0].name);
}

static void words_obey_nobody(void **state)
{
    auto_buf struct buf out = BUF(1000);
    (void)state;
    words_safe(&out, "a\033[2Jb\nc\x7f\xc2\x9bz \xc3\xa4 \xff\xe2\x82");
    assert_string_equal(buf_cstr(&out), "a\\x1b[2Jb\\x0ac\\x7f\\xc2\\x9bz \xc3\xa4 \\xff\\xe2\\x82");
    static const struct {
        uint64_t bytes;
        const char *said;
    } sizes[] = {{0, "0B"}, {1023, "1023B"}, {1024, "1K"}, {1536, "1.5K"}, {512u << 20, "512M"}, {UINT64_MAX, "15.9E"}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        buf_free(&out);
        buf_amount(&out, sizes[i].bytes);
        assert_string_equal(buf_cstr(&out), sizes[i].said);
    }
    static const struct {
        uint64_t us;
        const char *said;
    } times[] = {{1234, "1.2 ms"}, {850000, "850 ms"}, {12345678, "12.3 s"}, {250000000, "4m10s"}};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        buf_free(&out);
        words_duration(&out, times[i].us);
        assert_string_equal(buf_cstr(&out), times[i].said);
    }
}

/* What one process loaded means the same in another, whatever the files and variables say by then. */
static void layers_travel(void **state)
{
    auto_arena struct arena *mem = arena_new(16u << 20);
    auto_arena struct arena *other = arena_new(16u << 20);
    auto_buf struct buf packed = BUF(1u << 20);
    struct layers l, copy;
    struct policy *p = NULL, *q = NULL;
    struct err e = {0};
    (void)state;

    assert_int_equal(mkdir(in("conf"), 0700), 0);
    assert_int_equal(mkdir(in("conf/pinfold"), 0700), 0);
    assert_int_equal(mkdir(in("work"), 0700), 0);
    put("base.yaml", "version: 1\nlimits:\n  memory: 512M\n", 0600);
    put("conf/pinfold/policy.yaml", "version: 1\nfiles:\n  hide: [\"/srv/${WHICH}\"]\n", 0600);
    put("more.yaml", "version: 1\nfiles:\n  hide: [secret]\n", 0600);
    setenv("XDG_CONFIG_HOME", in("conf"), 1);
    setenv("WHICH", "FIRST", 1);
    const struct pinfold_option options[] = {
        {"workspace", in("work")}, {"policy", in("more.yaml")}, {"memory", "1G"}, {NULL, NULL}};
    struct pinfold_policy_options o = {.size = sizeof o, .options = options, .cwd = in("work")};
    int r = layers_load(&o, mem, &l, &p, &e);
    if (r < 0)
        fail_msg("%s", e.text);
    assert_int_equal(p->limits.memory.value, 1u << 30);
    layers_pack(&l, &packed);
    assert_true(buf_ok(&packed));

    setenv("WHICH", "SECOND", 1);
    assert_int_equal(unlink(in("more.yaml")), 0);
    assert_int_equal(layers_unpack(buf_view(&packed), other, &copy), 0);
    r = layers_build(&copy, &q, &e);
    if (r < 0)
        fail_msg("%s", e.text);
    assert_true(policy_equal(p, q));
    for (size_t n = 0; n < packed.n; n += 7) {
        auto_arena struct arena *scratch = arena_new(16u << 20);
        assert_int_equal(layers_unpack((struct str){packed.p, n}, scratch, &copy), -EBADMSG);
    }
    policy_free(p);
    policy_free(q);
}

static void own_places_are_never_opened(void **state)
{
    static const char *const flags[][2] = {{"rw", ".local/state/pinfold"},
                                           {"rw", ".local/state/pinfold/trust"},
                                           {"mount", ".local/state/pinfold:/mnt"},
                                           {"workspace", ".local/state/pinfold"}};
    (void)state;
    setenv("HOME", top, 1);
    unsetenv("XDG_CONFIG_HOME");
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        auto_arena struct arena *mem = arena_new(16u << 20);
        struct layers l;
        struct policy *p = NULL;
        struct err e = {0};
        const struct pinfold_option options[] = {{flags[i][0], in(flags[i][1])}, {NULL, NULL}};
        struct pinfold_policy_options o = {.size = sizeof o, .options = options, .cwd = "/usr"};
        int r = layers_load(&o, mem, &l, &p, &e);
        if (r >= 0 || e.kind != ERR_REFUSED)
            fail_msg("--%s %s: %d %s", flags[i][0], flags[i][1], r, e.text);
    }
}

static int begin(void **state)
{
    (void)state;
    return mkdtemp(top) ? 0 : -1;
}

static int end(void **state)
{
    char command[256];
    (void)state;
    snprintf(command, sizeof command, "rm -rf '%s'", top);
    return system(command);
}

/* Of several boxes at once each holds a slot before it plans, the first that is free. */
static void slots_are_guessed(void **state)
{
    (void)state;
    struct private_dirs first = PRIVATE_DIRS, second = PRIVATE_DIRS, third = PRIVATE_DIRS;
    const char *slots = in("slots");
    assert_int_equal(mkdir(slots, 0700), 0);
    private_guess(&first, slots);
    assert_int_equal(first.lock, -1); /* nothing is made for a plan that may want none */
    assert_int_equal(first.slot, 0);
    assert_int_equal(mkdir(in("slots/0"), 0700), 0);
    assert_int_equal(mkdir(in("slots/1"), 0700), 0);
    private_guess(&first, slots);
    private_guess(&second, slots);
    private_guess(&third, slots);
    assert_true(first.lock >= 0 && first.slot == 0);
    assert_true(second.lock >= 0 && second.slot == 1);
    assert_true(third.lock < 0 && third.slot == 2);
    private_unguess(&first);
    assert_int_equal(first.lock, -1);
    private_guess(&third, slots);
    assert_true(third.lock >= 0 && third.slot == 0);
    private_unguess(&second);
    private_unguess(&third);
}

int main(void)
{
    const struct CMUnitTest tests[] = {

        cmocka_unit_test(home_is_found),
        cmocka_unit_test(slots_are_guessed),
        cmocka_unit_test(files_that_decide_are_judged),
        cmocka_unit_test(hashes_are_sha256),
        cmocka_unit_test(trust_is_in_the_content),
        cmocka_unit_test(messages_come_whole),
        cmocka_unit_test(every_message_comes_back),
        cmocka_unit_test(words_obey_nobody),
        cmocka_unit_test(layers_travel),
        cmocka_unit_test(own_places_are_never_opened),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
