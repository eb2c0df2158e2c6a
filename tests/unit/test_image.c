/*
 * What images are judged by, without an engine: rules of sudo, and a project's Dockerfile. Real images are in
 * tests/docker/images.sh.
 */
#include "unit.h"

#include <stdio.h>

#include "base/buf.h"
#include "run/image/build.h"

static void rules_of_sudo(void **state)
{
    static const char *const groups[] = {"node", "sudo", NULL};
    static const struct {
        const char *line;
        enum sudo_scope scope;
    } all[] = {
        {"node ALL=(root) NOPASSWD: /usr/local/bin/init-firewall.sh", SUDO_FIREWALL},
        {"node ALL=(root) NOPASSWD: /usr/local/bin/init-firewall.sh \"\"", SUDO_FIREWALL},
        {"node\tALL = NOPASSWD: SETENV: /usr/local/bin/init-firewall.sh", SUDO_FIREWALL},
        {"node ALL=(ALL) NOPASSWD: ALL", SUDO_WIDER},
        {"node ALL=(root) NOPASSWD: /usr/local/bin/init-firewall.sh, /bin/sh", SUDO_WIDER},
        {"node ALL=(root) NOPASSWD: /usr/local/bin/init-firewall.sh *", SUDO_WIDER},
        {"node ALL=(root) NOPASSWD: /usr/local/bin/", SUDO_WIDER},
        {"node ALL", SUDO_WIDER},
        {"%sudo ALL=(ALL:ALL) ALL", SUDO_WIDER},
        {"%wheel ALL=(ALL:ALL) ALL", SUDO_NOT_THEIRS},
        {"root ALL=(ALL:ALL) ALL", SUDO_NOT_THEIRS},
        {"root, node ALL=(ALL:ALL) ALL", SUDO_WIDER},
        {"root ,node ALL=(ALL:ALL) ALL", SUDO_WIDER},
        {"root,games ALL=(ALL:ALL) ALL", SUDO_NOT_THEIRS},
        {"ALL ALL=(ALL) NOPASSWD: /bin/true", SUDO_WIDER},
        {"#1000 ALL=(ALL) ALL", SUDO_WIDER},
        {"%#1000 ALL=(ALL) ALL", SUDO_WIDER},
        {"ADMINS ALL=(ALL) ALL", SUDO_WIDER},
        {"node ALL=(root) NOPASSWD: FIREWALL", SUDO_WIDER},
        {"User_Alias ADMINS = node", SUDO_NOT_THEIRS},
        {"Defaults:node !authenticate", SUDO_NOT_THEIRS},
    };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (image_sudo_scope(str_of(all[i].line), "node", groups) != all[i].scope)
            fail_msg("%s: %d", all[i].line, image_sudo_scope(str_of(all[i].line), "node", groups));
    }
}

static void put_found(void *ctx, unsigned line, const struct image_finding *f)
{
    struct buf *out = ctx;
    assert_true(f->text[0] && f->remedy[0]);
    buf_printf(out, "%u %s%s;", line, f->id, f->note ? "?" : "");
}

#define BASE "FROM agent-sandbox-base:${BASE_IMAGE_TAG}\n"
static void dockerfiles(void **state)
{
    static const struct {
        const char *text, *found;
    } all[] = {
        {"ARG BASE_IMAGE_TAG=latest\n" BASE "# RUN apt-get install git\n", ""},
        {"FROM debian:12\n", "1 from;"},
        {"# nothing\n", "1 from;"},
        {"FROM golang:1 AS build\nRUN apt-get update && apt-get install -y --no-install-recommends git && rm -rf "
         "/var/lib/apt/lists/*\n" BASE,
         "2 reinstall;"},
        {BASE "USER root\nRUN apt-get update && apt-get install -y --no-install-recommends libpq-dev \\\n  # why\n  "
              "postgresql-client=15 \\\n && rm -rf /var/lib/apt/lists/*\nUSER node\n",
         ""},
        {BASE "USER root\nRUN apt-get update && apt-get install -y libpq-dev\nUSER node:node\n",
         "3 recommends?;3 apt-lists?;"},
        {BASE "USER root\n", "2 user;"},
        {BASE "user 0\n", "2 user;"},
        {BASE "RUN npm i -g @openai/codex@1.2.3 cowsay\n", "2 reinstall;"},
        {BASE "RUN npm install -g typescript@5 @openai/codex-sdk\n", ""},
        {BASE "RUN [\"npm\", \"install\", \"-g\", \"@anthropic-ai/claude-code\"]\n", "2 reinstall;"},
        {BASE "RUN apt-get update; apt-get install -y --no-install-recommends jq=1.6-2 vim/bookworm; rm -rf "
              "/var/lib/apt/lists/*\n",
         "2 reinstall;2 reinstall;"},
        {BASE "RUN echo git && true\n", ""},
        {BASE "COPY . /app\n", "2 application;"},
        {BASE "COPY package.json /workspace/\n", "2 application;"},
        {BASE "COPY --from=build . /opt/tool\nCOPY tool.conf /etc/tool.conf\n", ""},
        {BASE "COPY my/init-firewall.sh /usr/local/bin/\n", "2 scripts;"},
        {BASE "ADD x /usr/local/bin/git-wrapper.sh\n", "2 scripts;"},
        {BASE "\n\nENTRYPOINT [\"/bin/sh\"]\r\nCMD [\"x\"]\n", "4 entrypoint;"},
        {BASE "RUN apt-get install \\", "2 recommends?;2 apt-lists?;"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        auto_buf struct buf out = BUF(4096);
        image_dockerfile_check(str_of(all[i].text), put_found, &out);
        if (!same(buf_cstr(&out), all[i].found))
            fail_msg("%s-> %s", all[i].text, buf_cstr(&out));
    }
}

/* Lines as docker 20.10, BuildKit 0.11 and podman 4.3 print them. */
static void lines_of_builders(void **state)
{
    static const struct {
        const char *line;
        enum image_line is;
        unsigned number, total;
        const char *text;
    } all[] = {
        {"Sending build context to Docker daemon  4.608kB", IMAGE_LINE_NOTHING, 0, 0, NULL},
        {"Step 2/13 : RUN set -eu; apt-get update", IMAGE_LINE_STEP, 2, 13, "RUN set -eu; apt-get update"},
        {" ---> Using cache", IMAGE_LINE_CACHED, 0, 0, NULL},
        {" ---> 1f2d3c", IMAGE_LINE_NOTHING, 0, 0, NULL},
        {" ---> Running in 5d3c", IMAGE_LINE_NOTHING, 0, 0, NULL},
        {"Removing intermediate container 5d3c", IMAGE_LINE_NOTHING, 0, 0, NULL},
        {"Get:1 http://deb.debian.org/debian bookworm InRelease", IMAGE_LINE_OUTPUT, 0, 0,
         "Get:1 http://deb.debian.org/debian bookworm InRelease"},
        {"Step by step", IMAGE_LINE_OUTPUT, 0, 0, "Step by step"},
        {"Step 5/3 : RUN x", IMAGE_LINE_OUTPUT, 0, 0, "Step 5/3 : RUN x"},
        {"Step 0/3 : RUN x", IMAGE_LINE_OUTPUT, 0, 0, "Step 0/3 : RUN x"},
        {"Successfully built 1f2d", IMAGE_LINE_NOTHING, 0, 0, NULL},
        {"#5 [2/9] RUN true", IMAGE_LINE_STEP, 2, 9, "RUN true"},
        {"#5 [base 2/9] RUN true", IMAGE_LINE_STEP, 2, 9, "RUN true"},
        {"#1 [internal] load build definition from Dockerfile", IMAGE_LINE_NOTHING, 0, 0, NULL},
        {"#5 CACHED", IMAGE_LINE_CACHED, 0, 0, NULL},
        {"#5 0.345 hello", IMAGE_LINE_OUTPUT, 0, 0, "hello"},
        {"#5 DONE 0.4s", IMAGE_LINE_NOTHING, 0, 0, NULL},
        {"#5 ERROR: process did not complete", IMAGE_LINE_OUTPUT, 0, 0, "ERROR: process did not complete"},
        {"#no comment", IMAGE_LINE_OUTPUT, 0, 0, "#no comment"},
        {"STEP 3/7: COPY a b", IMAGE_LINE_STEP, 3, 7, "COPY a b"},
        {"[1/2] STEP 1/3: FROM x AS y", IMAGE_LINE_STEP, 1, 3, "FROM x AS y"},
        {"--> Using cache 1f2d", IMAGE_LINE_CACHED, 0, 0, NULL},
        {"--> 1f2d", IMAGE_LINE_NOTHING, 0, 0, NULL},
        {"COMMIT kit/x:1", IMAGE_LINE_NOTHING, 0, 0, NULL},
        {"[x", IMAGE_LINE_OUTPUT, 0, 0, "[x"},
        {"#5 [", IMAGE_LINE_NOTHING, 0, 0, NULL},
        {"#5 [99999999999/9] RUN", IMAGE_LINE_NOTHING, 0, 0, NULL},
        {"", IMAGE_LINE_NOTHING, 0, 0, NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct image_step step = {0};
        struct str text;
        enum image_line is = image_build_line(str_of(all[i].line), &text, &step);
        if (is != all[i].is || step.number != all[i].number || step.total != all[i].total)
            fail_msg("'%s': %d, step %u/%u", all[i].line, is, step.number, step.total);
        if (all[i].text && !(is == IMAGE_LINE_STEP ? same(step.text, all[i].text) : str_is(text, all[i].text)))
            fail_msg("'%s': '%s' '%.*s'", all[i].line, step.text, (int)text.n, text.p);
    }
}

/* Each file that a Dockerfile of ours copies is one that is there. */
static void own_files(void **state)
{
    static const char *const images[] = {"base", "budgie"};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct str rest = str_of(image_own_file(images[i], "Dockerfile"));
        unsigned copied = 0;
        assert_true(rest.n > 0);
        while (rest.n) {
            struct str line = str_until(&rest, '\n'), word;
            if (!str_starts(line, STR("COPY ")))
                continue;
            (void)str_until(&line, ' ');
            while ((word = str_until(&line, ' ')).n && line.n) {
                char name[64];
                snprintf(name, sizeof name, "%.*s", (int)word.n, word.p);
                if (!image_own_file(images[i], name))
                    fail_msg("%s: there is no '%s'", images[i], name);
                copied++;
            }
        }
        assert_true(copied > 0);
    }
    assert_null(image_own_file("base", "nothing"));
    assert_null(image_own_file("nothing", "Dockerfile"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rules_of_sudo), cmocka_unit_test(dockerfiles),
                                       cmocka_unit_test(lines_of_builders), cmocka_unit_test(own_files)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
