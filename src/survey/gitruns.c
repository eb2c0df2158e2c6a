/*
 * Which keys of git's configuration name programs: those that git-config(1) of git 2.51 and the manuals of git-lfs
 * describe with "command", "program" or "script". gitlook.c looks for them in the host's configuration.
 */
#include "survey/gitruns.h"

/* ---- keys ---- */

/* `sub`: SECTION.any.NAME; otherwise SECTION.NAME. The name "*" is any. */
static const struct {
    const char *section;
    bool sub;
    const char *names;
    enum gitruns what;
} keys[] = {
    {"core", false, " fsmonitor sshcommand gitproxy askpass editor pager alternaterefscommand ", GITRUNS_COMMAND},
    {"core", false, " hookspath ", GITRUNS_HOOKS},
    {"init", false, " templatedir ", GITRUNS_HOOKS},
    {"include", false, " path ", GITRUNS_INCLUDE},
    {"includeif", true, " path ", GITRUNS_INCLUDE},
    {"alias", false, " * ", GITRUNS_ALIAS},
    {"alias", true, " command ", GITRUNS_ALIAS},
    {"sequence", false, " editor ", GITRUNS_COMMAND},
    {"interactive", false, " difffilter ", GITRUNS_COMMAND},
    {"pager", false, " * ", GITRUNS_COMMAND},
    {"diff", false, " external ", GITRUNS_COMMAND},
    {"diff", true, " command textconv ", GITRUNS_COMMAND},
    {"merge", true, " driver ", GITRUNS_COMMAND},
    {"filter", true, " clean smudge process ", GITRUNS_COMMAND},
    {"hook", true, " command ", GITRUNS_COMMAND},
    {"gpg", false, " program ", GITRUNS_COMMAND},
    {"gpg", true, " program defaultkeycommand ", GITRUNS_COMMAND},
    {"credential", false, " helper ", GITRUNS_COMMAND},
    {"credential", true, " helper ", GITRUNS_COMMAND},
    {"difftool", true, " cmd path ", GITRUNS_COMMAND},
    {"mergetool", true, " cmd path ", GITRUNS_COMMAND},
    {"browser", true, " cmd path ", GITRUNS_COMMAND},
    {"man", true, " cmd path ", GITRUNS_COMMAND},
    {"guitool", true, " cmd ", GITRUNS_COMMAND},
    {"tar", true, " command ", GITRUNS_COMMAND},
    {"trailer", true, " command cmd ", GITRUNS_COMMAND},
    {"uploadpack", false, " packobjectshook ", GITRUNS_COMMAND},
    {"remote", true, " uploadpack receivepack ", GITRUNS_COMMAND},
    {"remote", true, " url pushurl ", GITRUNS_REMOTE},
    {"submodule", true, " url ", GITRUNS_REMOTE},
    {"submodule", true, " update ", GITRUNS_COMMAND},
    {"url", true, " insteadof pushinsteadof ", GITRUNS_REMOTE},
    {"protocol", true, " allow ", GITRUNS_REMOTE},
    {"protocol", false, " allow ", GITRUNS_REMOTE},
    {"sendemail", false, " sendmailcmd smtpserver tocmd cccmd headercmd ", GITRUNS_COMMAND},
    {"sendemail", true, " sendmailcmd smtpserver tocmd cccmd headercmd ", GITRUNS_COMMAND},
    {"imap", false, " tunnel ", GITRUNS_COMMAND},
    {"instaweb", false, " httpd ", GITRUNS_COMMAND},
    {"lfs", true, " path clean smudge ", GITRUNS_COMMAND}, /* lfs.customtransfer.X.path, lfs.extension.X.clean */
};

/* Whether `word` is in `list` (each word between spaces). */
static bool among(const char *list, struct str word)
{
    while (word.n && *list) {
        list += strspn(list, " ");
        size_t n = strcspn(list, " ");
        if (n && ((n == 1 && *list == '*') || str_eq((struct str){list, n}, word)))
            return true;
        list += n;
    }
    return false;
}

/* Splits into "section", "any subsection", "name". */
static bool take_apart(struct str key, struct str *section, struct str *sub, struct str *name)
{
    const char *first = memchr(key.p, '.', key.n), *last = memrchr(key.p, '.', key.n);
    if (!first)
        return false;
    *section = (struct str){key.p, (size_t)(first - key.p)};
    *name = str_skip(key, (size_t)(last - key.p) + 1);
    *sub = first == last ? (struct str){NULL, 0} : (struct str){first + 1, (size_t)(last - first) - 1};
    return true;
}

static bool is_boolean(struct str value)
{
    static const char *const all[] = {"true", "false", "yes", "no", "on", "off", "1", "0"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (str_is_nocase(value, all[i]))
            return true;
    return value.n == 0;
}

static bool names_program(const struct gitconfig_entry *e, struct str section, struct str sub)
{
    if (str_is(section, "protocol")) /* ext and fd are off by default */
        return str_is_nocase(e->value, "always") && (sub.n == 0 || str_is(sub, "ext") || str_is(sub, "fd"));
    if (str_is(section, "remote") && str_starts(sub, STR("-")))
        return true; /* `git fetch --all` takes the name for an option, as --upload-pack=COMMAND */
    struct str location = str_is(section, "url") ? sub : e->value;
    return str_starts(location, STR("ext::")) || str_starts(location, STR("fd::")) || str_starts(location, STR("-"));
}

enum gitruns gitruns_of(const struct gitconfig_entry *e)
{
    struct str section, sub, name;
    if (!take_apart(e->key, &section, &sub, &name) || e->value.n == 0)
        return GITRUNS_NOTHING;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (!str_is(section, keys[i].section) || keys[i].sub != (sub.p != NULL) || !among(keys[i].names, name))
            continue;
        if (keys[i].what == GITRUNS_REMOTE && !names_program(e, section, sub))
            return GITRUNS_NOTHING;
        if (keys[i].what == GITRUNS_ALIAS && !str_starts(e->value, STR("!")))
            return GITRUNS_NOTHING;
        if (str_is(section, "submodule") && str_is(name, "update") && !str_starts(e->value, STR("!")))
            return GITRUNS_NOTHING;
        return keys[i].what == GITRUNS_COMMAND && is_boolean(e->value) ? GITRUNS_NOTHING : keys[i].what;
    }
    return GITRUNS_NOTHING;
}

/* ---- commands ---- */

/* The next word, as a shell would split it without expansions; removes quotes around it. */
static struct str cut_word(struct str *line)
{
    *line = str_trim(*line);
    if (line->n == 0)
        return *line;
    char quote = line->p[0] == '"' || line->p[0] == '\'' ? line->p[0] : 0;
    if (quote) {
        *line = str_skip(*line, 1);
        return str_until(line, quote);
    }
    size_t n = 0;
    while (n < line->n && line->p[n] != ' ' && line->p[n] != '\t')
        n++;
    struct str one = {line->p, n};
    *line = str_skip(*line, n);
    return one;
}

static struct str base_name_of(struct str path)
{
    const char *slash = path.n ? memrchr(path.p, '/', path.n) : NULL;
    return slash ? str_skip(path, (size_t)(slash - path.p) + 1) : path;
}

bool gitruns_interprets(struct str command)
{
    static const char all[] =
        " sh bash dash zsh ksh fish busybox env python python2 python3 perl ruby node nodejs deno bun php "
        "lua awk gawk sed make npx npm pnpm yarn uv uvx pipx cargo go java ";
    if (str_starts(command, STR("!")))
        command = str_skip(command, 1);
    struct str program = base_name_of(cut_word(&command));
    return among(all, program) || str_starts(program, STR("python"));
}

/* `words`: arguments that may follow, "*" for any. */
static const struct {
    const char *programs, *words;
} everyday[] = {
    {" git-lfs git-crypt git-annex git-annex-shell transcrypt nbstripout git-nbdiffdriver git-nbmergedriver "
     "git-lfs-agent ",
     " * "},
    {" ssh autossh plink tortoiseplink ", " * "}, /* but see is_code() */
    {" gpg gpg2 gpgsm ssh-keygen op-ssh-sign smimesign gitsign ", ""},
    {" less more most cat delta diff-so-fancy bat true false : git-split-diffs ",
     " -R -F -X -S -r -FX -FR -RX -FRX -RFX -FRSX -SR -+X --color-only --paging=never -p --style=plain --tabs=1,5 "
     "-x1,5 -x4 -x2 "
     "--tabs=4 -FXRS "},
    {" vi vim nvim nano emacs emacsclient code codium subl hx micro gedit kate mate kak joe mcedit notepad ",
     " -w --wait -n --new-window --nofork -f -nw -t -c -b --block "},
    {" gh glab ", " auth git-credential "},
    {" exiftool pdftotext odt2txt docx2txt antiword catdoc xlsx2csv hexdump xxd od strings file jq gunzip zcat sops "
     "sqlite3 ",
     " - -C -layout -a -raw -d --decrypt "},
    {" git-upload-pack git-receive-pack ", ""},
    {" meld kdiff3 vimdiff opendiff p4merge bcompare tkdiff kompare ", ""},
};

static const char helpers[] = " store cache osxkeychain manager manager-core libsecret wincred gnome-keyring netrc "
                              "oauth pass lastpass 1password ";

/* An option of a known program that names another one. */
static bool is_code(struct str program, struct str one)
{
    static const char *const of_ssh[] = {"command", "provider"};
    if (!str_is(program, "ssh") && !str_is(program, "autossh"))
        return false;
    if (str_starts(one, STR("-I"))) /* a library */
        return true;
    for (size_t i = 0; i < sizeof of_ssh / sizeof *of_ssh; i++) {
        struct str part = str_of(of_ssh[i]);
        for (size_t at = 0; at + part.n <= one.n; at++)
            if (str_is_nocase((struct str){one.p + at, part.n}, of_ssh[i]))
                return true;
    }
    return false;
}

/* Whether a shell would expand something in it; also true for a newline. */
static bool is_script(struct str command)
{
    for (size_t i = 0; i < command.n; i++)
        if (strchr(";|&`$()<>{}\\\n\r", command.p[i]))
            return true;
    return false;
}

static bool program_is_known(struct str program, struct str rest)
{
    struct str name = base_name_of(program);
    if (program.n > name.n && program.p[0] != '/') /* a path relative to where git is started */
        return false;
    for (size_t i = 0; i < sizeof everyday / sizeof *everyday; i++) {
        if (!among(everyday[i].programs, name))
            continue;
        for (struct str one = cut_word(&rest); one.n; one = cut_word(&rest))
            if (is_code(name, one) || !(among(everyday[i].words, one) || one.p[0] == '%'))
                return false;
        return true;
    }
    return false;
}

bool gitruns_everyday(const struct gitconfig_entry *e)
{
    struct str section, sub, name, command = e->value;
    bool helper = take_apart(e->key, &section, &sub, &name) && str_is(section, "credential");
    bool shell = str_starts(command, STR("!"));
    if (is_script(command))
        return false;
    if (shell)
        command = str_skip(command, 1);
    struct str program = cut_word(&command);
    if (helper && !shell && among(helpers, program))
        return true;
    if (str_is(e->key, "core.fsmonitor") && str_starts(program, STR(".git/hooks/")))
        return true; /* watchman's, where git's documentation installs it */
    return (!helper || shell || str_starts(program, STR("/"))) && program_is_known(program, command);
}
