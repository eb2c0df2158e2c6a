/*
 * git/gitconfig.c: git's syntax, and which changes pass. What git would run or read because of a key is refused.
 */
#include "unit.h"
#include "git/gitconfig.h"

/* ---- reading ---- */

static int print_entry(void *ctx, const struct gitconfig_entry *e)
{
    struct buf *out = ctx;
    buf_str(out, e->key);
    if (e->value.p) {
        buf_char(out, '=');
        buf_str(out, e->value);
    }
    buf_char(out, ';');
    return 0;
}
static void reads_n(const char *text, size_t n, const char *expected, int line)
{
    struct buf out = BUF(10000);
    int r = gitconfig_parse((struct str){text, n}, print_entry, &out, NULL);
    const char *got = r < 0 ? "error" : buf_cstr(&out);
    if (strcmp(got, expected) != 0)
        fail_msg("line %d: expected '%s', got '%s'", line, expected, got);
    buf_free(&out);
}
#define READS(text, expected) reads_n(text, sizeof(text) - 1, expected, __LINE__)

static void syntax_is_gits(void **state)
{
    (void)state;
    READS("", "");
    READS("\n# c\n; c\n", "");
    READS("[core]\n\tbare = false\n", "core.bare=false;");
    READS("\xef\xbb\xbf[core]\nbare=1", "core.bare=1;");
    READS("[core] bare = 1 # c\r\n\r\n[x]\r\ny=z\r\n", "core.bare=1;x.y=z;");
    READS("[CoRe]\nBaRe", "core.bare;");
    READS("[a]b[c]\nd", "error");
    READS("[a]b\n[c]d", "a.b;c.d;");
    READS("[remote \"O.r\"]\nUrl = x\n", "remote.O.r.url=x;");
    READS("[remote \"a\\\"b\\\\c\\d\"]\nx=1\n", "remote.a\"b\\cd.x=1;");
    READS("[Branch.Foo.Bar]\nx=1\n", "branch.foo.bar.x=1;");
    READS("[a   \"b\"]\nx=1\n", "a.b.x=1;");
    READS("[a\t\"b\"]x=1\n", "a.b.x=1;");
    READS("[a \"b\" ]\nx=1\n", "error");
    READS("[a \"b]\nx=1\n", "error");
    READS("[a b]\nx=1\n", "error");
    READS("[a_b]\nx=1\n", "error");
    READS("[a\n]x=1\n", "error");
    READS("[]\nx=1\n", "error");
    READS("[a", "error");
    READS("[a \"b", "error");
    READS("x = 1\n", "x=1;");
    READS("[a]\n1x = 1\n", "error");
    READS("[a]\nx1-y = 1\n", "a.x1-y=1;");
    READS("[a]\nx_y = 1\n", "error");
    READS("[a]\nx\ny =\nz = \"\"\n", "a.x;a.y=;a.z=;");
    READS("[a]\nx = \"  b c  \" \n", "a.x=  b c  ;");
    READS("[a]\nx =  b  c  \n", "a.x=b  c;");
    READS("[a]\nx = \tb \tc\t \n", "a.x=b \tc;");
    READS("[a]\nx = b;c\n", "a.x=b;");
    READS("[a]\nx = \"b;c#d\"e#f\n", "a.x=b;c#de;");
    READS("[a]\nx = a\\\nb\n", "a.x=ab;");
    READS("[a]\nx = a\\\r\nb\n", "a.x=ab;");
    READS("[a]\nx = \\t\\n\\b\\\\\\\"\n", "a.x=\t\n\b\\\";");
    READS("[a]\nx = \\q\n", "error");
    READS("[a]\nx = \"b\n", "error");
    READS("[a]\nx = # c \\\ny = 1\n", "a.x=;a.y=1;");
    READS("[a]\nx ! 1\n", "error");
    READS("[a]\nx = b\0c\n", "error");
    READS("[a \"b\0c\"]\nx = 1\n", "error");
    READS("#\0\n", "error");
    READS("[a]\rx=1\n", "a.x=1;");
    READS("]\n", "error");
}

/* ---- judging ---- */

static void judged(const char *old, const char *new, enum gitconfig_kind kind, bool expected, const char *word,
                   int line)
{
    struct buf why = BUF(2000);
    struct gitconfig_ask ask = {kind, str_of(old), str_of(new), STR("/w/p/.git/modules/s"), STR("/w/p")};
    int r = gitconfig_judge(&ask, &why);
    if ((r == 0) != expected)
        fail_msg("line %d: '%s' -> '%s': %d %s", line, old, new, r, buf_cstr(&why));
    if (word && !strstr(buf_cstr(&why), word))
        fail_msg("line %d: no '%s' in '%s'", line, word, buf_cstr(&why));
    if (r == 0)
        assert_string_equal(buf_cstr(&why), "");
    buf_free(&why);
}
#define PASSES(old, new)        judged(old, new, GITCONFIG_REPOSITORY, true, NULL, __LINE__)
#define REFUSED(old, new, word) judged(old, new, GITCONFIG_REPOSITORY, false, word, __LINE__)

static void what_git_writes_itself_passes(void **state)
{
    (void)state;
    PASSES("", "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n");
    PASSES("", "[remote \"origin\"]\n\turl = git@github.com:a/b.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n"
               "[branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n\tvscode-merge-base = origin/main\n");
    PASSES("", "[user]\n\tname = A B\n\temail = a@b\n\tsigningkey = X\n");
    PASSES("", "[submodule]\n\tactive = .\n[submodule \"x\"]\n\turl = ../x.git\n\tactive = true\n");
    PASSES("", "[submodule \"x\"]\n\turl = ../dev\n[submodule \"y\"]\n\turl = ../../proc/y.git\n");
    PASSES("", "[remote \"x\"]\n\turl = host:/proc/1/x\n\tpushurl = /home/proc/1/a%20b\n\tpushurl = "
               "file:///srv/a%20b\n\tpushurl = file://localhost/srv/a\n");
    PASSES("", "[submodule \"x\"]\n\turl = ../../1/x.git\n[submodule \"y\"]\n\turl = ./self/y.git\n");
    PASSES("", "[remote \"x\"]\n\turl = git@host:proc/self\n\tpushurl = ../../proc/y\n");
    PASSES("", "[extensions]\n\tpartialClone = origin\n");
    PASSES("", "[extensions]\n\tworktreeConfig = true\n\tobjectformat = sha256\n");
    PASSES("", "[core]\n\tworktree = ../../../s\n");
    PASSES("",
           "[remote \"o\"]\nfetch = main\nfetch = main:\nfetch = ^refs/heads/x\nfetch = a:b\nfetch = +refs/*:refs/*\n"
           "fetch = +refs/pull/*/head:refs/remotes/origin/pr/*\nfetch = +refs/changes/*:refs/changes/*\n"
           "fetch = refs/notes/*:refs/notes/*\nfetch = +refs/tags/*:refs/tags/*\nfetch = +refs/heads/*:refs/heads/*\n");
    PASSES("", "[remotes]\n\tdefault = origin  https://example.org/x\n[extensions]\n\trefStorage = reftable\n");
    PASSES(
        "",
        "[lfs]\n\trepositoryformatversion = 0\n[lfs \"https://x/info/lfs\"]\n\taccess = basic\n\tlocksverify = true\n");
    PASSES("", "[pull]\nrebase = true\n[push]\ndefault = current\nautoSetupRemote\n[gc]\nauto = 0\n[fetch]\nprune\n");
    PASSES("",
           "[remote \"o\"]tagOpt = --no-tags\n[branch \"b\"]description = - one\n[core]whitespace = -trailing-space\n"
           "[tag]sort = -creatordate\n[checkout]workers = -1\n");
    PASSES("[a]b=c", "[a]b=c\n[user]name=x");
    PASSES("[user]name=x\n[a]b=c", "[a]b=c\n");
    PASSES("[include]path=p\n[core]fsmonitor=x\n", "[include]\n path = \"p\" ; same\n[core]\nFSMonitor = x\nbare=true");
    PASSES("not a config", "[core]\nbare=true");
}

static void what_names_programs_is_protected(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "[core]fsmonitor=./x",
        "[core]hooksPath=h",
        "[core]sshCommand=x",
        "[core]pager=x",
        "[core]editor=x",
        "[core]gitProxy=x",
        "[core]attributesFile=x",
        "[core]excludesFile=/x",
        "[core]askPass=x",
        "[core]alternateRefsCommand=x",
        "[core]protectHFS=false",
        "[core]worktree=/etc",
        "[remotes]default = origin ext::sh",
        "[remotes]x = \"a\\tfoo::bar\"",
        "[extensions]refStorage = files:///etc/x",
        "[extensions]refStorage",
        "[core]worktree=../../../..",
        "[core]worktree",
        "[include]path=x",
        "[includeIf \"gitdir:/\"]path=x",
        "[alias]x=!sh",
        "[alias]x=log",
        "[filter \"x\"]clean=x",
        "[diff]external=x",
        "[diff \"x\"]textconv=x",
        "[diff \"x\"]command=x",
        "[merge \"x\"]driver=x",
        "[merge]tool=x",
        "[mergetool \"x\"]cmd=x",
        "[difftool \"x\"]cmd=x",
        "[credential]helper=x",
        "[credential \"u\"]helper=x",
        "[gpg]program=x",
        "[gpg \"ssh\"]program=x",
        "[gpg \"ssh\"]defaultKeyCommand=x",
        "[url \"x\"]insteadOf=y",
        "[url \"x\"]pushInsteadOf=y",
        "[sequence]editor=x",
        "[pager]log=x",
        "[interactive]diffFilter=x",
        "[trailer \"x\"]command=x",
        "[trailer \"x\"]cmd=x",
        "[uploadpack]packObjectsHook=x",
        "[protocol \"ext\"]allow=always",
        "[remote \"o\"]vcs=x",
        "[remote \"o\"]uploadpack=x",
        "[remote \"o\"]receivepack=x",
        "[remote \"o\"]proxy=x",
        "[remote \"o\"]url=ext::sh -c x",
        "[remote \"o\"]url=foo://x",
        "[remote \"o\"]pushurl=x::y",
        "[remote \"o\"]url=-x",
        "[remote \"o\"]url=ssh://-oProxyCommand=x/y",
        "[remote \"o\"]url=a@-b:c",
        "[remote \"o\"]url=/proc/1/root/tmp/r", /* a directory of the box's own */
        "[remote \"o\"]url=//proc/1/cwd",
        "[remote \"o\"]url=/home/../proc/self/fd/3",
        "[remote \"o\"]url=../../../proc/1/root/tmp/r",
        "[remote \"o\"]url=x/../../proc/sys/../1/root/tmp/r",
        "[remote \"o\"]url=~/../../proc/1/root/tmp/r",
        "[remote \"o\"]url=/dev/fd/../../1/root/tmp/r",
        "[remote \"o\"]url=../../dev/fd/../../1/root/tmp/r",
        "[remote \"o\"]pushurl=file:///proc/1/root/tmp/r",
        "[remote \"o\"]url=file://localhost/proc/1/root/tmp/r",
        "[remote \"o\"]url=file://x%2fproc/1/root/tmp/r",
        "[submodule \"o\"]url=file://x/dev/fd/3/r",
        "[remote \"o\"]pushurl=FILE://proc/1/root/tmp/r",
        "[remote \"o\"]pushurl=file:///%70roc%2f1/root/tmp/r",
        "[branch \"b\"]remote=/proc/1/root/tmp/r",
        "[submodule \"x\"]url=/proc/1/root/tmp/r",
        "[remote \"o\"]url=/var/run/../proc/1/root/tmp/r", /* /var/run is a link to /run */
        "[remote \"o\"]url=/usr/bin/X11/../../proc/1/root/tmp/r",
        "[remote \"o\"]url=a/../b/proc/self/root/tmp/r",
        "[remote \"o\"]url=/var/run/../dev/fd/3/r",
        "[remote \"o\"]pushurl=file:///var/run/%2e%2e/proc/1/root/tmp/r",
        "[branch \"b\"]remote=/var/run/../proc/1/root/tmp/r",
        "[submodule \"x\"]url=./1/root/tmp/r", /* behind ../../../proc */
        "[submodule \"x\"]url=../1/root/tmp/r",
        "[extensions]partialClone=../../../proc/1/root/tmp/r",
        "[extensions]partialClone=x::y",
        "[remote \"o\"]url",
        "[remote \"o\"]url=\"a\\nb\"",
        "[remote]pushDefault=x::y",
        "[branch \"b\"]remote=ext::x",
        "[branch \"b\"]mergeOptions=-s x",
        "[init]templateDir=x",
        "[commit]template=x",
        "[http]proxy=x",
        "[http]sslVerify=false",
        "[http \"x\"]extraHeader=y",
        "[submodule \"x\"]update=!cmd",
        "[submodule \"x\"]url=ext::x",
        "[gc]recentObjectsHook=x",
        "[web]browser=x",
        "[browser \"x\"]cmd=x",
        "[man \"x\"]cmd=x",
        "[sendemail]smtpserver=/x",
        "[tar \"x\"]command=x",
        "[lfs]url=x",
        "[lfs \"customtransfer.x\"]path=x",
        "[lfs \"extension.x\"]clean=x",
        "[lfs \"u\"]access=!x",
        "[pull]twohead=x",
        "[safe]directory=*",
        "[new-in-git-9]key=x",
        "[core]sharedRepository=0666", /* later files of git can be changed by every user */
        "[core]sharedRepository=group",
        "[core]newkey=x",
        "[branch]x.mergeoptions=y",
        "x=1",
        "[core \"sub\"]bare=true",
        "[user \"sub\"]name=x",
        "[remote \"a.url=b\"]vcs=x",
        "[remote \"o\"]serverOption=x",
        "[fetch]bundleURI=x",
        "[extensions]unknown=1",
        /* Options of git, where a name was meant. */
        "[remote \"--upload-pack=x\"]url=y",
        "[remote \"-x\"]fetch=y",
        "[remote \"ext::sh -c x\"]fetch=y",
        "[remote \"o\"]tagOpt=--upload-pack=x",
        "[remote \"o\"]tagOpt",
        "[remote \"o\"]fetch=--upload-pack=x",
        "[remote \"o\"]fetch",
        "[remote \"o\"]fetch=+refs/heads/*:refs/replace/*",
        "[remote \"o\"]fetch=refs/heads/a:refs/Replace/b",
        "[remote \"o\"]fetch=+refs/x/*:refs/*",
        "[remote \"o\"]fetch=+refs/*:refs/re*",
        "[remote \"o\"]fetch=+refs/heads/*:*",
        "[remote \"o\"]fetch=+a:HEAD",
        "[remote \"o\"]fetch=a:refs/heads/--b",
        "[remote \"o\"]fetch=a:-b",
        "[remote \"o\"]fetch=a:b:refs/replace/c",
        "[remote \"o\"]fetch=a:refs/",
        "[remote \"o\"]push=--receive-pack=x",
        "[branch \"b\"]merge=--upload-pack=x",
        "[branch \"-b\"]merge=x",
        "[extensions]partialClone=--upload-pack=x",
        "[submodule \"x\"]branch=--upload-pack=x",
        "[submodule \"--x\"]url=y",
        "[gitflow \"branch\"]master=--upload-pack=x",
        "[checkout]defaultRemote=-x",
        "[clone]defaultRemoteName=-x",
        "[user]signingKey=-x",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct gitconfig_ask ask = {GITCONFIG_REPOSITORY, STR(""), str_of(bad[i]), STR("/w/p/.git"), STR("/w/p")};
        if (gitconfig_judge(&ask, NULL) == 0)
            fail_msg("'%s' passes", bad[i]);
        ask.directory = STR("/w/p/.git/modules/s");
        if (gitconfig_judge(&ask, NULL) == 0)
            fail_msg("'%s' passes in a submodule", bad[i]);
    }
}

static void protected_entries_stay_as_they_were(void **state)
{
    (void)state;
    REFUSED("[core]hooksPath=a b", "[core]hooksPath=a\tb",
            "core.hookspath is changed"); /* another place since git 2.45 */
    REFUSED("[core]fsmonitor=x", "", "is removed");
    REFUSED("[core]fsmonitor=x", "[core]fsmonitor=y", "core.fsmonitor is changed");
    REFUSED("[core]fsmonitor=x", "[core]fsmonitor", "is changed");
    REFUSED("[core]fsmonitor=x", "[core]fsmonitor=x\nfsmonitor=y", "is added");
    REFUSED("[core]fsmonitor=x\npager=y", "[core]pager=y\nfsmonitor=x", "core.pager");
    REFUSED("[remote \"o\"]vcs=x", "[remote \"O\"]vcs=x", "remote.O.vcs");
    REFUSED("", "[core]\n\n\tpager = x\n", "line 3");
    REFUSED("", "[core", "cannot be read");
    REFUSED("broken", "[core]pager=x", "core.pager");
    /* What cannot be read today was not in force: it may be mended. */
    PASSES("[core]pager=\"x", "[core]bare=true");
}

static void place_n(const char *directory, const char *value, const char *expected, int line)
{
    struct buf place = BUF(1000);
    bool passes = gitconfig_worktree(str_of(directory), STR("/w/p"), str_of(value), &place);
    if (!same(passes ? buf_cstr(&place) : NULL, expected))
        fail_msg("line %d: '%s', not '%s'", line, passes ? buf_cstr(&place) : "refused",
                 expected ? expected : "refused");
    buf_free(&place);
}
#define PLACE(directory, value, expected) place_n(directory, value, expected, __LINE__)

static void places_of_submodules(void **state)
{
    (void)state;
    PLACE("/w/p/.git", "../s", NULL);
    PLACE("/w/p/.git/modules/s", "../../../s", "/w/p/s");
    PLACE("/w/p/.git/modules/s", "../../../s/t/", "/w/p/s/t");
    PLACE("/w/p/.git/modules/a/b", "../../../../a/b", "/w/p/a/b");
    PLACE("/w/p/.git/modules/a/modules/b", "../../../../../a/b", "/w/p/a/b");
    PLACE("/w/p/d/.git/modules/s", "../../../s", "/w/p/d/s");
    PLACE("/w/p/.git/modules/s", "/w/p/s", "/w/p/s");
    PLACE("/w/p/.git/modules/s", "/w/p2/s", NULL);
    PLACE("/w/p/.git/modules/s", "/w/p", NULL);
    PLACE("/w/p/.git/modules/s", "../../..", NULL);
    PLACE("/w/p/.git/modules/s", "../../../../../../w/p", NULL);
    PLACE("/w/p/.git/modules/s", "../../../../p/s", NULL); /* the same only as long as p is called so */
    PLACE("/w/p/.git/modules/s", "../../../t/../s", NULL); /* t may be a link */
    PLACE("/w/p/.git/modules/s", "../../../s/./t", NULL);
    PLACE("/w/p/.git/modules/s", "../../../.git/hooks", NULL);
    PLACE("/w/p/.git/modules/s", "../../../s/.GIT/hooks", NULL);
    PLACE("/w/p/.git/modules/s", "../../hooks", NULL);
    PLACE("/w/p/.git/modules/s", "../t", NULL);
    PLACE("/w/p/.git/modules/s", "/w/p/t/../s", NULL);
    PLACE("/w/p/.git/x/.git/modules/s", "../../../s", NULL); /* files of a repository's own */
    PLACE("/v/.git/modules/s", "../../../s", NULL);
}

static void relative_n(const char *text, const char *expected, int line)
{
    struct buf out = BUF(1000);
    int r = gitconfig_relative(str_of(text), STR("/w/p/.git/modules/a/b"), STR("/w/p"), &out);
    if (!same(r > 0 ? buf_cstr(&out) : r ? "error" : NULL, expected))
        fail_msg("line %d: %d '%s'", line, r, buf_cstr(&out));
    buf_free(&out);
}
#define RELATIVE(text, expected) relative_n(text, expected, __LINE__)

static void absolute_places_become_relative(void **state)
{
    (void)state;
    RELATIVE("[core]\n\tworktree = ../../../../a/b\n", NULL);
    RELATIVE("[core]\n\tbare = false\n\tworktree = /w/p/a/b # c\n[x]\ny=z",
             "[core]\n\tbare = false\n\tworktree = \"../../../../a/b\"\n[x]\ny=z");
    RELATIVE("[core]worktree=/w/p//a\\\nb", "[core]worktree= \"../../../../ab\"\n");
    RELATIVE("[core]\r\nworktree=\"/w/p/\\\"a b\\\\\"\r\nbare\r\n",
             "[core]\r\nworktree= \"../../../../\\\"a b\\\\\"\nbare\r\n");
    RELATIVE("[core]\nworktree=/elsewhere\n", NULL);
    RELATIVE("[core", "error");
}

static void worktree_elsewhere_only_for_submodules(void **state)
{
    (void)state;
    struct gitconfig_ask ask = {GITCONFIG_REPOSITORY, STR(""), STR("[core]worktree=../s"), STR("/w/p/.git"),
                                STR("/w/p")};
    assert_int_not_equal(gitconfig_judge(&ask, NULL), 0);
    ask.directory = STR("/w/p/.git/modules/s");
    ask.new_text = STR("[core]worktree=../../../s");
    assert_int_equal(gitconfig_judge(&ask, NULL), 0);
    ask.new_text = STR("[core]worktree=/w/p2/s");
    assert_int_not_equal(gitconfig_judge(&ask, NULL), 0);
    ask.root = STR("");
    ask.new_text = STR("[core]worktree=../../../s");
    assert_int_not_equal(gitconfig_judge(&ask, NULL), 0);
}

#define MODULE(text, yes) judged("", "[submodule \"x\"]\n" text, GITCONFIG_MODULES, yes, NULL, __LINE__)
static void gitmodules_has_keys_of_its_own(void **state)
{
    (void)state;
    MODULE("path=a/b\nurl=https://x/y\nbranch=.\nignore=dirty\nshallow=true\nfetchRecurseSubmodules=on-demand\n", true);
    MODULE("url=./x\n", true);
    MODULE("update=rebase\n", true);
    MODULE("update=!x\n", false);
    MODULE("update\n", false);
    MODULE("path=../a\n", false);
    MODULE("path=/a\n", false);
    MODULE("path=-a\n", false);
    MODULE("path=a/.git/x\n", false);
    MODULE("path=a/.GIT\n", false);
    MODULE("url=ext::x\n", false);
    MODULE("url=-u./x\n", false);
    MODULE("active=true\n", false);
    MODULE("[core]fsmonitor=x\n", false);
}

static void inert_says_nothing_protected(void **state)
{
    (void)state;
    assert_true(gitconfig_inert(GITCONFIG_REPOSITORY, STR("[core]bare=true"), STR("/w/.git"), STR("/w")));
    assert_true(gitconfig_inert(GITCONFIG_REPOSITORY, STR(""), STR("/w/.git"), STR("/w")));
    assert_false(gitconfig_inert(GITCONFIG_REPOSITORY, STR("[core]pager=x"), STR("/w/.git"), STR("/w")));
    assert_false(gitconfig_inert(GITCONFIG_REPOSITORY, STR("[core"), STR("/w/.git"), STR("/w")));
}

static void too_much_is_refused(void **state)
{
    (void)state;
    size_t n = GITCONFIG_MAX_BYTES + 1;
    char *big = malloc(n);
    memset(big, '\n', n);
    assert_int_not_equal(gitconfig_parse((struct str){big, n}, print_entry, NULL, NULL), 0);
    assert_int_equal(gitconfig_parse((struct str){big, n - 1}, print_entry, NULL, NULL), 0);
    memset(big, 'a', n);
    memcpy(big, "[a]\nb=", 6);
    struct buf out = BUF(2 << 20);
    assert_int_not_equal(gitconfig_parse((struct str){big, 100000}, print_entry, &out, NULL), 0);
    buf_free(&out);
    free(big);
}

/* ---- operations in progress ---- */

static void state_passes(enum gitconfig_kind kind, struct str text, bool yes)
{
    struct buf why = BUF(1000);
    struct gitconfig_ask ask = {.kind = kind, .new_text = text};
    if ((git_judge(&ask, &why) == 0) != yes || (why.n == 0) != yes)
        fail_msg("'%.*s': %s", STR_SAID(text), yes ? buf_cstr(&why) : "passes");
    buf_free(&why);
}

static void options_of_git_am(void **state)
{
    (void)state;
    assert_int_equal(gitconfig_kind_of(STR("/w/.git/rebase-apply/apply-opt")), GITCONFIG_APPLY);
    state_passes(GITCONFIG_APPLY,
                 STR(" '--whitespace=fix' '-C3' '-p2' '--reject' '--ignore-whitespace' '--directory=a b'\n"), true);
    state_passes(GITCONFIG_APPLY, STR(""), true);
    state_passes(GITCONFIG_APPLY, STR("'--build-fake-ancestor=/x'"), false);
    state_passes(GITCONFIG_APPLY, STR("'-p1' '--build-fake-anc=/x'"), false);
    state_passes(GITCONFIG_APPLY, STR("--build-fake-ancestor=/x"), false);
    state_passes(GITCONFIG_APPLY, STR("'-p1'--build-fake-ancestor=/x"), false);
    state_passes(GITCONFIG_APPLY, STR("'-p1'\\'' --build-fake-ancestor=/x'"), false);
    state_passes(GITCONFIG_APPLY, STR("'--unsafe-paths'"), false);
}

#define CONFLICT "0123456789012345678901234567890123456789"

static void recorded_conflicts(void **state)
{
    (void)state;
    assert_int_equal(gitconfig_kind_of(STR("/w/.git/MERGE_RR")), GITCONFIG_CONFLICTS);
    state_passes(GITCONFIG_CONFLICTS, STR(CONFLICT "\ta/b\0" CONFLICT ".1\tc\td\0"), true);
    state_passes(GITCONFIG_CONFLICTS, STR(""), true);
    state_passes(GITCONFIG_CONFLICTS, STR(CONFLICT "\ta/../../b\0"), false);
    state_passes(GITCONFIG_CONFLICTS, STR(CONFLICT "\ta\0" CONFLICT "\t/etc/x"), false);
    state_passes(GITCONFIG_CONFLICTS, STR(CONFLICT "\t.git/config\0"), false);
    state_passes(GITCONFIG_CONFLICTS, STR(CONFLICT), false);
}

static void numbers_that_prompts_show(void **state)
{
    (void)state;
    assert_int_equal(gitconfig_kind_of(STR("/w/.git/rebase-merge/msgnum")), GITCONFIG_NUMBER);
    assert_int_equal(gitconfig_kind_of(STR("/w/.git/worktrees/x/rebase-merge/end")), GITCONFIG_NUMBER);
    assert_int_equal(gitconfig_kind_of(STR("/w/.git/rebase-apply/next")), GITCONFIG_NUMBER);
    assert_int_equal(gitconfig_kind_of(STR("/w/.git/rebase-apply/last")), GITCONFIG_NUMBER);
    state_passes(GITCONFIG_NUMBER, STR("12\n"), true);
    state_passes(GITCONFIG_NUMBER, STR(""), true);
    state_passes(GITCONFIG_NUMBER, STR("$(touch x)\n"), false);
    state_passes(GITCONFIG_NUMBER, STR("1\n`x`"), false);
    state_passes(GITCONFIG_NUMBER, STR("1\0$"), false);
    state_passes(GITCONFIG_NUMBER, STR("1 \\u"), false);
}

static void refs_that_a_rebase_writes(void **state)
{
    (void)state;
    assert_int_equal(gitconfig_kind_of(STR("/w/.git/rebase-merge/update-refs")), GITCONFIG_REFS);
    assert_int_equal(gitconfig_kind_of(STR("/w/.git/worktrees/x/rebase-merge/head-name")), GITCONFIG_REFS);
    assert_int_equal(gitconfig_kind_of(STR("/w/.git/rebase-apply/head-name")), GITCONFIG_REFS);
    state_passes(GITCONFIG_REFS, STR("refs/heads/main"), true);
    state_passes(GITCONFIG_REFS, STR("detached HEAD\n"), true);
    state_passes(GITCONFIG_REFS,
                 STR("refs/heads/a\n" CONFLICT "\n" CONFLICT "\nrefs/heads/b/-c\n" CONFLICT "\n" CONFLICT "\n"), true);
    state_passes(GITCONFIG_REFS, STR(""), true);
    state_passes(GITCONFIG_REFS, STR("refs/heads/a\n" CONFLICT "\n" CONFLICT "\nrefs/replace/" CONFLICT "\n"), false);
    state_passes(GITCONFIG_REFS, STR("refs/Replace/" CONFLICT), false);
    state_passes(GITCONFIG_REFS, STR("refs/heads/-x\n"), false);
    state_passes(GITCONFIG_REFS, STR("-x"), false);
    state_passes(GITCONFIG_REFS, STR("refs/heads/a\0b"), false);
    state_passes(GITCONFIG_REFS, STR("refs/replace/" CONFLICT "\r\n"), false);
    state_passes(GITCONFIG_TODO, STR("update-ref refs/heads/a\n"), true);
    state_passes(GITCONFIG_TODO, STR("u\trefs/replace/" CONFLICT "\n"), false);
}

/* ---- names of refs ---- */

static void head_names_a_ref(void **state)
{
    (void)state;
    struct str name;
    assert_true(gitref_of_head(STR("ref: refs/heads/x\n"), &name) && str_is(name, "refs/heads/x"));
    assert_true(gitref_of_head(STR("ref:refs/heads/-x \t\r\nmore"), &name) && str_is(name, "refs/heads/-x"));
    assert_true(gitref_of_head(STR("ref: \n refs/heads/x"), &name) && str_is(name, "refs/heads/x"));
    assert_false(gitref_of_head(STR("ref: "), &name));
    assert_false(gitref_of_head(STR("0123456789012345678901234567890123456789\n"), &name));
    assert_false(gitref_of_head((struct str){NULL, 0}, &name));
}

#define OBJECT "0123456789012345678901234567890123456789"

static void packed_refs_are_read(void **state)
{
    (void)state;
    struct str name, text = STR("# pack-refs with: peeled\n" OBJECT " refs/heads/a\n^" OBJECT "\n\n" OBJECT "\n" OBJECT
                                "0123 refs/tags/-b\nshort refs/heads/-c\n" OBJECT " refs/heads/-d");
    assert_true(gitref_next_packed(&text, &name) && str_is(name, "refs/heads/a"));
    assert_true(gitref_next_packed(&text, &name) && str_is(name, "refs/tags/-b"));
    assert_true(gitref_next_packed(&text, &name) && str_is(name, "refs/heads/-d"));
    assert_false(gitref_next_packed(&text, &name));
    text = (struct str){NULL, 0};
    assert_false(gitref_next_packed(&text, &name));
}

static void options_are_names_with_a_dash(void **state)
{
    (void)state;
    static const char *const are[] = {"refs/heads/-x", "refs/tags/--exec=a", "refs/remotes/-o/x", "-x"};
    static const char *const none[] = {
        "refs/heads/x-", "refs/heads/a/-b", "refs/remotes/origin/-x", "refs/heads/", "refs", ""};
    for (size_t i = 0; i < sizeof are / sizeof *are; i++)
        assert_true(gitref_is_option(str_of(are[i])));
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_false(gitref_is_option(str_of(none[i])));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(syntax_is_gits),
        cmocka_unit_test(what_git_writes_itself_passes),
        cmocka_unit_test(what_names_programs_is_protected),
        cmocka_unit_test(protected_entries_stay_as_they_were),
        cmocka_unit_test(worktree_elsewhere_only_for_submodules),
        cmocka_unit_test(places_of_submodules),
        cmocka_unit_test(absolute_places_become_relative),
        cmocka_unit_test(gitmodules_has_keys_of_its_own),
        cmocka_unit_test(inert_says_nothing_protected),
        cmocka_unit_test(too_much_is_refused),
        cmocka_unit_test(head_names_a_ref),
        cmocka_unit_test(options_of_git_am),
        cmocka_unit_test(recorded_conflicts),
        cmocka_unit_test(numbers_that_prompts_show),
        cmocka_unit_test(refs_that_a_rebase_writes),
        cmocka_unit_test(packed_refs_are_read),
        cmocka_unit_test(options_are_names_with_a_dash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
