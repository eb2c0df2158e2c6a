/*
 * gitconfig_parse() reads the syntax of git-config(1) like git's own reader, byte by byte: BOM, CR LF, comments,
 * continuation lines, quotes and escapes, `[section]`, `[section "Sub"]` and `[section.sub]`. A syntax error for git is
 * one here (-EBADMSG): if two readers disagree, a judge can be deceived. A NUL is an error here although git accepts
 * it: git would cut the string there and see something else.
 *
 * The judge collects the protected entries of both contents and compares the two lists. What passes is a table.
 */
#include "git/gitconfig.h"
#include <errno.h>
#include <stdlib.h>
#include "base/arena.h"
#include "base/json.h"

/* ---- reading ---- */

#define KEY_MAX   1024u       /* bytes of one key, subsection included */
#define VALUE_MAX (64u << 10) /* bytes of one value */

struct config_reader {
    struct str rest;
    const char *begin;
    unsigned line;
    bool end;
    struct buf key, value;
    size_t section; /* length of the section in `key` */
};

/* The next byte; CR LF becomes LF; at the end LF, with r->end set. */
static int next(struct config_reader *r)
{
    if (r->rest.n == 0) {
        r->end = true;
        r->line++;
        return '\n';
    }
    int c = (unsigned char)r->rest.p[0];
    size_t used = 1;
    if (c == '\r' && r->rest.n > 1 && r->rest.p[1] == '\n') {
        c = '\n';
        used = 2;
    }
    r->rest = str_skip(r->rest, used);
    if (c == '\n')
        r->line++;
    return c;
}

/* git's own character classes: ASCII in any locale; its isspace() excludes vertical tab and form feed. */
static bool is_space(int c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}
static bool is_alpha(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
static bool is_key(int c)
{
    return is_alpha(c) || (c >= '0' && c <= '9') || c == '-';
}
static char lower(int c)
{
    return (char)(c >= 'A' && c <= 'Z' ? c + 32 : c);
}

/* After `[section` and a space: `"Sub"]`. */
static int read_subsection(struct config_reader *r, int c)
{
    do {
        if (c == '\n')
            return -EBADMSG;
        c = next(r);
    } while (is_space(c));
    if (c != '"')
        return -EBADMSG;
    buf_char(&r->key, '.');
    for (;;) {
        c = next(r);
        if (c == '\n')
            return -EBADMSG;
        if (c == '"')
            break;
        if (c == '\\') {
            c = next(r);
            if (c == '\n')
                return -EBADMSG;
        }
        if (c == 0)
            return -EBADMSG;
        buf_char(&r->key, (char)c);
    }
    return next(r) == ']' ? 0 : -EBADMSG;
}

static int read_section(struct config_reader *r)
{
    r->key.n = 0;
    for (;;) {
        int c = next(r);
        if (r->end)
            return -EBADMSG;
        if (c == ']')
            break;
        if (is_space(c)) {
            if (read_subsection(r, c) < 0)
                return -EBADMSG;
            break;
        }
        if (!is_key(c) && c != '.')
            return -EBADMSG;
        buf_char(&r->key, lower(c));
    }
    if (r->key.n == 0)
        return -EBADMSG;
    buf_char(&r->key, '.');
    r->section = r->key.n;
    return 0;
}

static int read_escape(struct config_reader *r, char *ret)
{
    switch (next(r)) {
    case '\n':
        return r->end ? -EBADMSG : 0; /* a continuation; git accepts a lone \ at the end, an error is harmless */
    case 't':
        *ret = '\t';
        return 1;
    case 'b':
        *ret = '\b';
        return 1;
    case 'n':
        *ret = '\n';
        return 1;
    case '\\':
        *ret = '\\';
        return 1;
    case '"':
        *ret = '"';
        return 1;
    default:
        return -EBADMSG;
    }
}

/* White space within a value stays as it is, as since git 2.45: before, each became a blank. */
static int read_value(struct config_reader *r)
{
    bool quoted = false, comment = false;
    size_t end = 0;
    r->value.n = 0;
    for (;;) {
        int c = next(r);
        if (c == '\n') {
            r->value.n = end;
            return quoted ? -EBADMSG : 0;
        }
        if (c == 0)
            return -EBADMSG;
        if (comment)
            continue;
        if (is_space(c) && !quoted) {
            if (r->value.n)
                buf_char(&r->value, (char)c);
            continue;
        }
        if (!quoted && (c == ';' || c == '#')) {
            comment = true;
            continue;
        }
        end = r->value.n;
        if (c == '"') {
            quoted = !quoted;
            continue;
        }
        char byte = (char)c;
        int n = c == '\\' ? read_escape(r, &byte) : 1;
        if (n < 0)
            return n;
        if (n)
            buf_char(&r->value, byte);
        end = r->value.n;
    }
}

/* Reads a variable whose name begins with `c`. */
static int read_variable(struct config_reader *r, int c, struct gitconfig_entry *ret)
{
    r->key.n = r->section;
    ret->line = r->line;
    buf_char(&r->key, lower(c));
    for (c = next(r); !r->end && is_key(c); c = next(r))
        buf_char(&r->key, lower(c));
    while (c == ' ' || c == '\t')
        c = next(r);
    bool valued = c == '=';
    if (c != '\n' && !valued)
        return -EBADMSG;
    ret->at = (size_t)(r->rest.p - r->begin);
    if (valued && read_value(r) < 0)
        return -EBADMSG;
    if (!buf_ok(&r->key) || !buf_ok(&r->value))
        return -EBADMSG;
    ret->key = buf_view(&r->key);
    ret->value = valued ? buf_view(&r->value) : (struct str){NULL, 0};
    ret->end = (size_t)(r->rest.p - r->begin);
    return 0;
}

static int parse(struct config_reader *r, int (*each)(void *ctx, const struct gitconfig_entry *e), void *ctx)
{
    bool comment = false;
    if (str_starts(r->rest, STR("\xef\xbb\xbf")))
        r->rest = str_skip(r->rest, 3);
    for (;;) {
        int c = next(r);
        if (c == '\n') {
            if (r->end)
                return 0;
            comment = false;
            continue;
        }
        if (c == 0)
            return -EBADMSG;
        if (comment || is_space(c))
            continue;
        if (c == '#' || c == ';') {
            comment = true;
            continue;
        }
        int no = 0;
        if (c == '[') {
            no = read_section(r);
        } else if (is_alpha(c)) {
            struct gitconfig_entry e = {0};
            no = read_variable(r, c, &e);
            if (no == 0)
                no = each(ctx, &e);
        } else {
            no = -EBADMSG;
        }
        if (no != 0)
            return no;
        if (r->end)
            return 0;
    }
}

int gitconfig_parse(struct str text, int (*each)(void *ctx, const struct gitconfig_entry *e), void *ctx,
                    unsigned *ret_line)
{
    struct config_reader r = {.rest = text, .begin = text.p, .line = 1, .key = BUF(KEY_MAX), .value = BUF(VALUE_MAX)};
    int no = text.n > GITCONFIG_MAX_BYTES ? -EBADMSG : parse(&r, each, ctx);
    if (no == 0 && (!buf_ok(&r.key) || !buf_ok(&r.value)))
        no = -EBADMSG;
    if (ret_line)
        *ret_line = r.line;
    buf_free(&r.key);
    buf_free(&r.value);
    return no;
}

/* ---- what passes ---- */

enum sub { BARE /* section.name */, NAMED /* section.any.name */, EITHER };
enum value {
    ANY,
    NO_OPTION, /* not an option: programs put it on git's command lines */
    TAGOPT,    /* what is a remote's tagopt, and nothing else */
    URL,       /* a plain transport, or the name of a remote */
    REFSPEC,   /* what a fetch writes: no replacements, no options */
    UPDATE,    /* what to do with a submodule, if not a command */
    INSIDE,    /* a path inside the writable tree, only in a submodule's repository */
    RELATIVE,  /* a path below, without .. */
    ACCESS,    /* git-lfs: method of authentication */
    REMOTES,   /* locations or names of remotes, separated by spaces */
    WORD       /* letters and digits: a format by name, not a location (files:///elsewhere) */
};

/* `names`: separated by spaces, " * " for all; those in `not` are still protected. */
struct passing {
    const char *section;
    enum sub sub;
    enum value value;
    const char *names, *not ;
};

static const struct passing repository[] = {
    {"branch", NAMED, URL, " remote pushremote ", NULL},
    {"branch", NAMED, ANY, " description ", NULL},
    {"branch", NAMED, NO_OPTION, " * ", " mergeoptions "}, /* options of git merge can name a program: --strategy */
    {"branch", BARE, ANY, " autosetupmerge autosetuprebase sort ", NULL},
    {"remote", NAMED, URL, " url pushurl ", NULL},
    {"remote", NAMED, TAGOPT, " tagopt ", NULL},
    {"remote", NAMED, REFSPEC, " fetch ", NULL},
    {"remote", NAMED, NO_OPTION,
     " push mirror prune prunetags skipdefaultupdate skipfetchall promisor partialclonefilter "
     "followremotehead gh-resolved ",
     NULL},
    {"remote", BARE, URL, " pushdefault ", NULL},
    {"remotes", BARE, REMOTES, " * ", NULL},
    {"user", BARE, ANY, " name email useconfigonly ", NULL},
    {"user", BARE, NO_OPTION, " signingkey ", NULL},
    {"author", BARE, ANY, " name email ", NULL},
    {"committer", BARE, ANY, " name email ", NULL},
    {"core", BARE, ANY,
     " bare filemode ignorecase logallrefupdates repositoryformatversion symlinks precomposeunicode autocrlf eol "
     "safecrlf quotepath trustctime checkstat bigfilethreshold compression loosecompression abbrev whitespace "
     "sparsecheckout sparsecheckoutcone untrackedcache preloadindex commentchar splitindex "
     "multipackindex commitgraph longpaths fscache hidedotfiles usereplacerefs warnambiguousrefs "
     "deltabasecachelimit packedgitlimit packedgitwindowsize packedrefstimeout filesreflocktimeout ",
     NULL},
    {"core", BARE, INSIDE, " worktree ", NULL},
    {"init", BARE, NO_OPTION, " defaultbranch defaultobjectformat defaultrefformat ", NULL},
    {"pull", BARE, ANY, " rebase ff ", NULL},
    {"push", BARE, ANY,
     " default autosetupremote followtags gpgsign recursesubmodules useforceifincludes negotiate usebitmaps "
     "pushoption ",
     NULL},
    {"fetch", BARE, ANY,
     " prune prunetags recursesubmodules parallel fsckobjects unpacklimit output negotiationalgorithm "
     "showforcedupdates writecommitgraph all ",
     NULL},
    {"merge", BARE, ANY,
     " ff conflictstyle log renamelimit renames directoryrenames renormalize stat autostash verbosity branchdesc "
     "suppressdest verifysignatures defaulttoupstream ",
     NULL},
    {"rebase", BARE, ANY,
     " autosquash autostash stat missingcommitscheck abbreviatecommands updaterefs rebasemerges forkpoint "
     "reschedulefailedexec ",
     NULL},
    {"rerere", BARE, ANY, " enabled autoupdate ", NULL},
    {"commit", BARE, ANY, " cleanup status verbose gpgsign ", NULL},
    {"tag", BARE, ANY, " sort gpgsign forcesignannotated ", NULL},
    {"extensions", BARE, NO_OPTION,
     " worktreeconfig objectformat compatobjectformat preciousobjects noop noop-v1 relativeworktrees ", NULL},
    {"extensions", BARE, URL, " partialclone ",
     NULL}, /* a remote, which what is missing is fetched from; without one the location */
    {"extensions", BARE, WORD, " refstorage ", NULL},
    {"submodule", NAMED, URL, " url ", NULL},
    {"submodule", NAMED, UPDATE, " update ", NULL},
    {"submodule", NAMED, NO_OPTION, " active branch ignore shallow fetchrecursesubmodules ", NULL},
    {"submodule", BARE, ANY,
     " active recurse fetchjobs propagatebranches alternatelocation alternateerrorstrategy "
     "stickyrecursivesubmoduleclone ",
     NULL},
    {"lfs", BARE, ANY, " repositoryformatversion ", NULL},
    {"lfs", NAMED, ACCESS, " access ", NULL},
    {"lfs", NAMED, ANY, " locksverify ", NULL},
    {"gc", EITHER, ANY,
     " auto autopacklimit autodetach pruneexpire worktreepruneexpire reflogexpire reflogexpireunreachable packrefs "
     "rerereresolved rerereunresolved aggressivedepth aggressivewindow bigpackthreshold writecommitgraph logexpiry "
     "cruftpacks maxcruftsize ",
     NULL},
    {"maintenance", EITHER, ANY, " auto autodetach strategy enabled schedule ", NULL},
    {"pack", BARE, ANY,
     " threads window depth windowmemory compression packsizelimit indexversion usesparse usebitmaps "
     "writebitmaphashcache writebitmaplookuptable writereverseindex readreverseindex deltacachesize deltacachelimit "
     "allowpackreuse ",
     NULL},
    {"repack", BARE, ANY, " usedeltabaseoffset packkeptobjects usedeltaislands writebitmaps updateserverinfo ", NULL},
    {"index", BARE, ANY, " version threads sparse skiphash recordendofindexentries recordoffsettable ", NULL},
    {"feature", BARE, ANY, " manyfiles experimental ", NULL},
    {"sparse", BARE, ANY, " expectfilesoutsideofpatterns ", NULL},
    {"status", BARE, ANY,
     " showuntrackedfiles short branch submodulesummary relativepaths showstash aheadbehind renames renamelimit ",
     NULL},
    {"color", EITHER, ANY, " * ", NULL},
    {"column", BARE, ANY, " * ", NULL},
    {"advice", BARE, ANY, " * ", NULL},
    {"diff", BARE, ANY,
     " renames renamelimit algorithm mnemonicprefix noprefix submodule context colormoved colormovedws "
     "interhunkcontext "
     "statgraphwidth ignoresubmodules wserrorhighlight indentheuristic suppressblankempty relative autorefreshindex "
     "wordregex dirstat ",
     NULL},
    {"log", BARE, ANY, " date decorate abbrevcommit follow showroot excludedecoration diffmerges ", NULL},
    {"checkout", BARE, NO_OPTION, " defaultremote ", NULL},
    {"checkout", BARE, ANY, " guess workers thresholdforparallelism ", NULL},
    {"clean", BARE, ANY, " requireforce ", NULL},
    {"clone", BARE, NO_OPTION, " defaultremotename rejectshallow filtersubmodules ", NULL},
    {"receive", BARE, ANY,
     " denycurrentbranch denynonfastforwards denydeletes denydeletecurrent autogc unpacklimit fsckobjects "
     "shallowupdate advertisepushoptions advertiseatomic keepalive maxinputsize updateserverinfo hiderefs ",
     NULL},
    {"uploadpack", BARE, ANY,
     " allowfilter allowanysha1inwant allowtipsha1inwant allowreachablesha1inwant hiderefs allowrefinwant keepalive "
     "allowsidebandall ",
     NULL},
    {"transfer", BARE, ANY, " fsckobjects hiderefs unpacklimit advertisesid advertiseobjectinfo ", NULL},
    {"http", BARE, ANY, " postbuffer version lowspeedlimit lowspeedtime maxrequests ", NULL},
    {"protocol", BARE, ANY, " version ", NULL},
    {"stash", BARE, ANY, " showpatch showstat showincludeuntracked ", NULL},
    {"worktree", BARE, ANY, " guessremote userelativepaths ", NULL},
    {"blame", BARE, ANY, " date showemail showroot blankboundary coloring ", NULL},
    {"apply", BARE, ANY, " whitespace ignorewhitespace ", NULL},
    {"am", BARE, ANY, " keepcr threeway ", NULL},
    {"grep", BARE, ANY, " linenumber patterntype extendedregexp threads fullname column ", NULL},
    {"gui", BARE, ANY, " geometry wmstate ", NULL},
    {"gitflow", NAMED, NO_OPTION, " master develop feature bugfix release hotfix support versiontag ", NULL},
    {"i18n", BARE, ANY, " commitencoding logoutputencoding ", NULL},
    {NULL, BARE, ANY, NULL, NULL},
};

static const struct passing modules[] = {
    {"submodule", NAMED, RELATIVE, " path ", NULL},
    {"submodule", NAMED, URL, " url ", NULL},
    {"submodule", NAMED, UPDATE, " update ", NULL},
    {"submodule", NAMED, NO_OPTION, " branch ignore shallow fetchrecursesubmodules ", NULL},
    {NULL, BARE, ANY, NULL, NULL},
};

/* Whether `word` is in `list` (each word between spaces). */
static bool listed(const char *list, struct str word)
{
    if (!list || word.n == 0 || memchr(word.p, ' ', word.n))
        return false;
    for (const char *p = list; *p;) {
        p += strspn(p, " ");
        size_t n = strcspn(p, " ");
        if (n && ((n == 1 && *p == '*') || str_eq((struct str){p, n}, word)))
            return true;
        p += n;
    }
    return false;
}

static bool has_control(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char)s.p[i] < 0x20 || s.p[i] == 0x7f)
            return true;
    return false;
}

/* As git decodes a URL: what is no escape stays as it is. */
static void put_decoded(struct buf *to, struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        const int high = s.p[i] == '%' && i + 2 < s.n ? hex_digit(s.p[i + 1]) : -1;
        const int low = high >= 0 ? hex_digit(s.p[i + 2]) : -1;
        buf_char(to, low >= 0 ? (char)(high * 16 + low) : s.p[i]);
        i += low >= 0 ? 2 : 0;
    }
}

static bool is_number(struct str s)
{
    size_t digits = 0;
    while (digits < s.n && s.p[digits] >= '0' && s.p[digits] <= '9')
        digits++;
    return s.n && digits == s.n;
}

static bool is_process(struct str part)
{
    return is_number(part) || str_is(part, "self") || str_is(part, "thread-self");
}

/*
 * Whether a path goes through /proc, or through /dev, which has links into it: /proc/PID/root is another root directory, a box's too, and
 * there it has repositories whose configuration and hooks nobody judged. Where a relative path begins is unknown, so dots at its beginning
 * may lead to the root, as may those behind a home ("~"); but ../dev may as well be a repository beside this one, and only what is in
 * /proc alone counts then.
 */
static bool path_in_proc(struct str path)
{
    const bool absolute = str_starts(path, STR("/"));
    bool climbed = absolute;
    struct str top = {NULL, 0};
    for (size_t down = 0; path.n;) { /* components below the root, or below what cannot be known */
        const struct str part = str_until(&path, '/');
        if (part.n == 0 || str_is(part, "."))
            continue;
        if (str_is(part, "..")) {
            climbed = climbed || down == 0;
            down -= down > 0;
            continue;
        }
        if (down == 0)
            top = part;
        if (absolute && down == 0 && (str_is(part, "proc") || str_is(part, "dev")))
            return true;
        if (climbed && down == 1 && str_is(top, "proc") && is_process(part))
            return true;
        if (climbed && down == 1 && str_is(top, "dev") && str_is(part, "fd"))
            return true;
        down += climbed || down || !str_starts(part, STR("~"));
    }
    return false;
}

/*
 * The same at any depth behind dots: what is before them may be a link, and then they lead elsewhere than the text says
 * (/var/run/../proc is /proc). And a path that git may append to another, which ends in proc, names a process first.
 */
static bool names_process(struct str path)
{
    struct str before = {NULL, 0}, last = {NULL, 0};
    bool dots = str_starts(path, STR("./"));
    while (path.n) {
        const struct str part = str_until(&path, '/');
        if (part.n == 0 || str_is(part, "."))
            continue;
        const bool first = before.n == 0 || str_is(before, "..");
        if (dots && first && is_process(last) &&
            (str_is(part, "root") || str_is(part, "cwd") || str_is(part, "fd") || str_is(part, "task")))
            return true;
        if (dots && ((str_is(last, "proc") && is_process(part)) ||
                     (str_is(before, "dev") && str_is(last, "fd") && is_number(part))))
            return true;
        dots = dots || str_is(part, "..");
        before = last;
        last = part;
    }
    return false;
}

/* As git tells a path from host:path and from a URL; a directory may have a colon in its name, too. */
static bool maybe_local(struct str location)
{
    const char *colon = memchr(location.p, ':', location.n), *slash = memchr(location.p, '/', location.n);
    if (!colon || (slash && slash < colon))
        return true;
    for (struct str rest = location; rest.n;)
        if (str_is(str_until(&rest, '/'), ".."))
            return true;
    return false;
}

static bool in_proc(struct str location)
{
    static const struct str file = {"file:", 5};
    if (location.n < file.n || strncasecmp(location.p, file.p, file.n) != 0)
        return path_in_proc(location) || (maybe_local(location) && names_process(location));
    auto_buf struct buf path = BUF(VALUE_MAX);
    put_decoded(&path, str_skip(location, file.n));
    struct str whole = buf_view(&path), local = whole; /* git drops the host of file://HOST/PATH, whatever it is */
    if (str_starts(local, STR("//"))) {
        local = str_skip(local, 2);
        while (local.n && local.p[0] != '/')
            local = str_skip(local, 1);
    }
    return !buf_ok(&path) || path_in_proc(whole) || path_in_proc(local) || names_process(whole);
}

/*
 * A location that git reaches without a helper program: https, http, ssh, git, file, ftp, host:path, a path, or the
 * name of a remote. `x::y` and `x://y` with any other x start a program git-remote-x (gitremote-helpers(7)). A leading
 * dash, also of the host, was once taken as an option by ssh (CVE-2017-1000117).
 */
static bool plain_location(struct str s)
{
    static const char schemes[] = " https http ssh git file git+ssh ssh+git ftp ftps ";
    if (s.p == NULL || has_control(s) || str_starts(s, STR("-")) || in_proc(s))
        return false;
    size_t n = 0;
    while (n < s.n && (is_key((unsigned char)s.p[n]) || s.p[n] == '+' || s.p[n] == '.'))
        n++;
    struct str rest = str_skip(s, n);
    if (str_starts(rest, STR("::")))
        return false;
    if (str_starts(rest, STR("://"))) {
        char scheme[16];
        if (n == 0 || n >= sizeof scheme)
            return false;
        for (size_t i = 0; i < n; i++)
            scheme[i] = lower((unsigned char)s.p[i]);
        if (!listed(schemes, (struct str){scheme, n}) || str_starts(rest, STR("://-")))
            return false;
    }
    for (size_t i = 0; i + 1 < s.n; i++)
        if (s.p[i] == '@' && s.p[i + 1] == '-')
            return false;
    return true;
}

void gitconfig_follow(struct str base, struct str path, struct buf *out)
{
    if (!str_starts(path, STR("/")))
        buf_str(out, base);
    while (path.n && buf_ok(out)) {
        struct str part = str_until(&path, '/');
        if (part.n == 0 || str_is(part, "."))
            continue;
        if (str_is(part, "..")) {
            while (out->n && out->p[out->n - 1] != '/')
                out->n--;
            if (out->n)
                out->n--;
            continue;
        }
        buf_char(out, '/');
        buf_str(out, part);
    }
}

static bool below(struct str path, struct str directory)
{
    return directory.n && str_starts(path, directory) && path.n > directory.n && path.p[directory.n] == '/';
}

/* Number of components. */
static size_t depth(struct str path)
{
    size_t n = 0;
    while (path.n)
        n += str_until(&path, '/').n > 0;
    return n;
}

static bool is_git_directory(struct str part)
{
    return part.n == 4 && strncasecmp(part.p, ".git", 4) == 0;
}

/* Any number of "..", then only names: such a path leads where it says, unless a link is on it. */
static bool up_then_down(struct str value, size_t *ret_up)
{
    *ret_up = 0;
    for (bool down = str_starts(value, STR("/")); value.n;) {
        struct str part = str_until(&value, '/');
        if (str_is(part, "..") && !down)
            ++*ret_up;
        else if (str_is(part, "..") || str_is(part, ".") || is_git_directory(part))
            return false;
        else
            down = true;
    }
    return true;
}

bool gitconfig_owner(struct str directory, struct str root, struct str *ret)
{
    static const struct str mark = {"/.git/modules/", 14};
    if (root.n == 0 || !str_starts(directory, root))
        return false;
    for (size_t i = root.n == 1 ? 0 : root.n; i + mark.n <= directory.n; i++) {
        *ret = (struct str){directory.p, i};
        if (memcmp(directory.p + i, mark.p, mark.n) == 0)
            return true;
    }
    return false;
}

/* core.worktree: git sets it in a submodule's repository, to the submodule's place. Elsewhere it would make a
   person's next `git checkout` write where the value says. */
bool gitconfig_worktree(struct str directory, struct str root, struct str value, struct buf *ret)
{
    struct str owner;
    size_t up;
    if (!gitconfig_owner(directory, root, &owner) || value.p == NULL || has_control(value) ||
        !up_then_down(value, &up) || up > depth(directory) - depth(owner))
        return false;
    size_t from = ret->n;
    gitconfig_follow(directory, value, ret);
    struct str place = str_skip(buf_view(ret), from);
    if (!buf_ok(ret) || !(owner.n ? below(place, owner) : place.n > 1))
        return false;
    for (struct str inside = str_skip(place, root.n); inside.n;) /* what the dots left of the directory's own path */
        if (is_git_directory(str_until(&inside, '/')))
            return false;
    return true;
}

static bool worktree_inside(const struct gitconfig_ask *ask, struct str value)
{
    struct buf path = BUF(64u << 10);
    bool inside = gitconfig_worktree(ask->directory, ask->root, value, &path);
    buf_free(&path);
    return inside;
}

static bool plain_relative(struct str s)
{
    if (s.n == 0 || s.p[0] == '/' || s.p[0] == '-' || has_control(s))
        return false;
    for (struct str rest = s; rest.n;) {
        const char *slash = memchr(rest.p, '/', rest.n);
        struct str part = {rest.p, slash ? (size_t)(slash - rest.p) : rest.n};
        if (str_is(part, "..") || is_git_directory(part))
            return false;
        rest = str_skip(rest, part.n + (slash != NULL));
    }
    return true;
}

/*
 * SOURCE:DESTINATION. A later fetch outside writes refs by these names, so they are judged as a box's own: none is an option, and none a
 * replacement (refs/replace), which shows one object in place of another. A mirror takes all there is; the fetch of one is refused where a
 * branch is checked out.
 */
static bool plain_refspec(struct str s)
{
    if (s.n == 0 || has_control(s))
        return false;
    struct str to = str_skip(s, s.p[0] == '+'), from = str_until(&to, ':');
    if (str_starts(from, STR("-")) || (to.n && memchr(to.p, ':', to.n)))
        return false;
    if (to.n == 0 || (str_is(from, "refs/*") && str_is(to, "refs/*")))
        return true;
    for (struct str rest = to; rest.n;)
        if (str_starts(str_until(&rest, '/'), STR("-")))
            return false;
    if (!str_starts(to, STR("refs/")))
        return !memchr(to.p, '*', to.n) && !str_is(to, "HEAD");
    struct str rest = str_skip(to, 5), space = str_until(&rest, '/');
    return rest.n && !memchr(space.p, '*', space.n) && !str_is_nocase(space, "replace");
}

static bool plain_remotes(struct str s)
{
    while (s.n)
        if (!plain_location(str_until(&s, ' ')))
            return false;
    return true;
}

static bool is_word(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!is_key((unsigned char)s.p[i]))
            return false;
    return s.n > 0;
}

static bool value_passes(const struct gitconfig_ask *ask, enum value rule, struct str v)
{
    switch (rule) {
    case ANY:
        return true;
    case NO_OPTION:
        return !str_starts(v, STR("-"));
    case TAGOPT:
        return str_is(v, "--tags") || str_is(v, "--no-tags");
    case URL:
        return plain_location(v);
    case REFSPEC:
        return plain_refspec(v);
    case UPDATE:
        return str_is(v, "checkout") || str_is(v, "rebase") || str_is(v, "merge") || str_is(v, "none");
    case INSIDE:
        return worktree_inside(ask, v);
    case RELATIVE:
        return plain_relative(v);
    case ACCESS:
        return str_is(v, "none") || str_is(v, "basic") || str_is(v, "negotiate");
    case REMOTES:
        return plain_remotes(v);
    case WORD:
        return is_word(v);
    }
    return false;
}

static bool passes(const struct gitconfig_ask *ask, const struct gitconfig_entry *e)
{
    const char *first = memchr(e->key.p, '.', e->key.n);
    if (!first)
        return false;
    const char *last = memrchr(e->key.p, '.', e->key.n);
    struct str section = {e->key.p, (size_t)(first - e->key.p)};
    struct str name = str_skip(e->key, (size_t)(last - e->key.p) + 1);
    enum sub sub = first == last ? BARE : NAMED;
    /* `git fetch --all` gives the name of each remote to another git, which takes one that begins with a dash for an option
       (--upload-pack=COMMAND), and one without a url for the url itself. */
    if (sub == NAMED && !plain_location((struct str){first + 1, (size_t)(last - first) - 1}))
        return false;
    for (const struct passing *p = ask->kind == GITCONFIG_MODULES ? modules : repository; p->section; p++) {
        if (!str_is(section, p->section) || (p->sub != EITHER && p->sub != sub) || !listed(p->names, name))
            continue;
        return !listed(p->not, name) && value_passes(ask, p->value, e->value);
    }
    return false;
}

/* ---- judging ---- */

struct entries {
    const struct gitconfig_ask *ask;
    struct arena *mem;
    struct gitconfig_entry *list;
    size_t n;
};

static int keep_protected(void *ctx, const struct gitconfig_entry *e)
{
    struct entries *all = ctx;
    if (passes(all->ask, e))
        return 0;
    struct gitconfig_entry *kept = arena_push(all->mem, &all->list, &all->n, sizeof *kept);
    if (!kept)
        return -ENOMEM;
    *kept = *e;
    kept->key.p = arena_str(all->mem, e->key);
    if (e->value.p)
        kept->value.p = arena_str(all->mem, e->value);
    return kept->key.p && (!e->value.p || kept->value.p) ? 0 : -ENOMEM;
}

static bool entry_eq(const struct gitconfig_entry *a, const struct gitconfig_entry *b)
{
    return str_eq(a->key, b->key) && (a->value.p == NULL) == (b->value.p == NULL) && str_eq(a->value, b->value);
}

static int refuse(struct buf *why, const struct gitconfig_entry *e, const char *what)
{
    if (why) {
        utf8_safe(why, (struct str){e->key.p, e->key.n < 200 ? e->key.n : 200}); /* it is untrusted */
        buf_printf(why, " %s (line %u): only keys that name no program, hook, include or path elsewhere can be changed",
                   what, e->line);
    }
    return -EACCES;
}

static int compare(const struct entries *old, const struct entries *new, struct buf *why)
{
    size_t i = 0;
    for (; i < new->n; i++) {
        if (i >= old->n)
            return refuse(why, &new->list[i], "is added");
        if (entry_eq(&old->list[i], &new->list[i]))
            continue;
        if (str_eq(old->list[i].key, new->list[i].key))
            return refuse(why, &new->list[i], "is changed");
        return refuse(why, &new->list[i], "is added or moved, or another one before it is removed");
    }
    return i < old->n ? refuse(why, &old->list[i], "is removed") : 0;
}

int gitconfig_judge(const struct gitconfig_ask *ask, struct buf *why)
{
    auto_arena struct arena *mem = arena_new(8u << 20);
    if (!mem)
        return -ENOMEM;
    struct entries old = {.ask = ask, .mem = mem}, new = {.ask = ask, .mem = mem};
    unsigned line = 0;
    if (gitconfig_parse(ask->old_text, keep_protected, &old, NULL) < 0)
        old.n = 0; /* git cannot read it either, so nothing in it is effective */
    int no = gitconfig_parse(ask->new_text, keep_protected, &new, &line);
    if (no < 0) {
        if (why && no == -EBADMSG)
            buf_printf(why, "the new content cannot be read as git configuration (line %u)", line);
        return no;
    }
    return compare(&old, &new, why);
}

bool gitconfig_inert(enum gitconfig_kind kind, struct str text, struct str directory, struct str root)
{
    struct gitconfig_ask ask = {.kind = kind, .new_text = text, .directory = directory, .root = root};
    return gitconfig_judge(&ask, NULL) == 0;
}

/* ---- places of submodules ---- */

bool gitconfig_is_worktree(const struct gitconfig_entry *e)
{
    return str_is(e->key, "core.worktree");
}

struct relative {
    struct str text, directory, root, owner;
    struct buf *to;
    size_t done; /* bytes of `text` that are in `to` already */
};

static int put_relative(void *ctx, const struct gitconfig_entry *e)
{
    struct relative *r = ctx;
    auto_buf struct buf place = BUF(64u << 10);
    if (!gitconfig_is_worktree(e) || !str_starts(e->value, STR("/")) ||
        !gitconfig_worktree(r->directory, r->root, e->value, &place))
        return 0;
    buf_str(r->to, (struct str){r->text.p + r->done, e->at - r->done});
    buf_text(r->to, " \"");
    for (size_t i = depth(str_skip(r->directory, r->owner.n)); i; i--)
        buf_text(r->to, i > 1 ? "../" : "..");
    for (struct str rest = str_skip(buf_view(&place), r->owner.n); rest.n; rest = str_skip(rest, 1)) {
        if (rest.p[0] == '"' || rest.p[0] == '\\')
            buf_char(r->to, '\\');
        buf_char(r->to, rest.p[0]);
    }
    buf_text(r->to, "\"\n");
    r->done = e->end;
    return 0;
}

int gitconfig_relative(struct str text, struct str directory, struct str root, struct buf *ret)
{
    struct relative r = {.text = text, .directory = directory, .root = root, .to = ret};
    if (!gitconfig_owner(directory, root, &r.owner))
        return 0;
    if (gitconfig_parse(text, put_relative, &r, NULL) < 0)
        return -EBADMSG;
    if (r.done)
        buf_str(ret, str_skip(text, r.done));
    return buf_ok(ret) ? r.done > 0 : -ENOMEM;
}
