/*
 * Names of the `root` list at the roots of repositories: they hold in every one that the box did not make itself, however
 * it, its marker or the names are moved; in its own the box is free. Each scene is a script with a fresh workspace;
 * `host` runs before it, outside.
 */
#include "harness.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IDENTITY                                                                                                       \
    "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b HOME=/tmp "            \
    "GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null; git() { command git -c protocol.file.allow=always "      \
    "-c init.defaultBranch=main \"$@\"; }; set -e\n"
#define NOT                                                                                                            \
    "no() { if \"$@\" 2>/dev/null; then echo \"should have failed: $*\" >&2; exit 1; fi; }\n"                          \
    "swap() { python3 -c 'import ctypes, sys; sys.exit(ctypes.CDLL(None).renameat2(-100, sys.argv[1].encode(), -100, " \
    "sys.argv[2].encode(), 2) != 0)' \"$@\"; }\n"

/* Repositories of the host's: proj, deep/er/one, w (a work tree of proj), m (Mercurial), and a directory without. */
#define HOST                                                                                                           \
    "git init -q proj; cd proj; echo 1 > a; git add a; git commit -qm one; git worktree add -q ../w -b w; cd ..; "     \
    "mkdir -p deep/er; git init -q deep/er/one; mkdir -p m/.hg plain; "

/* up.git tracks .envrc, .vscode/tasks.json and .config/mise/config.toml. */
#define TRACKS                                                                                                         \
    "git init -q t; cd t; mkdir -p .vscode .config/mise; echo 1 > .envrc; echo {} > .vscode/tasks.json; echo > "       \
    ".config/mise/config.toml; echo > x.code-workspace; git add -A; git commit -qm t; cd ..; git clone -q --bare t "   \
    "up.git; rm -rf t; "

static const struct box_rule rules[] = {
    {GUARD_RULE_NAME, ".git/hooks", GUARD_ANY_DEPTH, GUARD_REFUSE, true, NULL},
    {GUARD_RULE_NAME, ".git/config", GUARD_ANY_DEPTH, GUARD_GIT_CONFIG, false, NULL},
    {GUARD_RULE_NAME, ".gitmodules", GUARD_ANY_DEPTH, GUARD_GIT_CONFIG, false, NULL},
    {GUARD_RULE_NAME, ".vscode", GUARD_ROOT, GUARD_REFUSE, true, NULL},
    {GUARD_RULE_NAME, ".envrc", GUARD_ROOT, GUARD_REFUSE, false, NULL},
    {GUARD_RULE_NAME, ".npmrc", GUARD_ROOT, GUARD_REFUSE, false, NULL},
    {GUARD_RULE_NAME, ".config/mise", GUARD_ROOT, GUARD_REFUSE, true, NULL},
    {GUARD_RULE_NAME, "*.code-workspace", GUARD_ROOT, GUARD_REFUSE, false, NULL, true},
};

struct scene {
    const char *name, *host, *box;
    enum guard_mode mode;
};

static const struct scene scenes[] = {
    {"the root of every repository of the host's", HOST,
     "for d in . proj deep/er/one w m; do no touch $d/.envrc; no touch $d/.ENVRC; no mkdir $d/.vscode; no touch "
     "$d/x.code-workspace; no ln -s /tmp $d/.vscode; no ln -s a $d/.envrc; mkdir -p $d/.config; no mkdir "
     "$d/.config/mise; touch f; no mv f $d/.envrc; no ln f $d/.envrc; mkdir -p v; no mv v $d/.vscode; no mkfifo "
     "$d/.envrc; rm -rf $d/.config; no ln -s /tmp $d/.config; no test -L $d/.config; touch $d/envrc; done; "
     "for d in plain deep proj/src; do mkdir -p $d; touch $d/.envrc $d/x.code-workspace; mkdir $d/.vscode; done"},
    {"what is there already",
     HOST "for d in proj w; do mkdir -p $d/.vscode $d/.config/mise; echo 1 > $d/.envrc; echo "
          "{} > $d/.vscode/tasks.json; echo > $d/.config/mise/config.toml; done",
     "for d in proj w; do no sh -c \"echo 2 > $d/.envrc\"; no sh -c \"echo 2 >> $d/.vscode/tasks.json\"; no rm "
     "$d/.envrc; no mv $d/.envrc e; no chmod +x $d/.envrc; no truncate -s 0 $d/.envrc; no rm -rf $d/.vscode; no mv "
     "$d/.vscode v; no mv $d/.config c; no rm $d/.config/mise/config.toml; no ln $d/.envrc e; touch f; no swap f "
     "$d/.envrc; mkdir -p d; no swap d $d/.config; no touch $d/.vscode/new; test $(cat $d/.envrc) = 1; cat "
     "$d/.vscode/tasks.json; done; mv proj/a proj/b; git -C w status >/dev/null"},
    {"a clone that the box makes checks out what is tracked", TRACKS,
     "git clone -q up.git c; test -f c/.envrc; test -f c/.vscode/tasks.json; test -f c/.config/mise/config.toml; test "
     "-z \"$(git -C c status --porcelain)\"; echo 2 > c/.envrc; mkdir c/.vscode/more; git -C c commit -qam two; git -C "
     "c push -q; git clone -q up.git c2; git -C c pull -q; git -C c checkout -q HEAD~1; git -C c worktree add -q "
     "../cw HEAD; test -f cw/.envrc; git -C c worktree remove ../cw; mv c d; echo 3 > d/.envrc; git -C d stash -q; git "
     "-C d stash pop -q; cp -r d e; echo 4 > e/.envrc; git init -q n; mkdir n/.vscode; rm -rf c2 d e n; test ! -e d"},
    {"a work tree and a submodule of the host's repository that the box makes",
     HOST TRACKS "cd proj; git fetch -q ../up.git; git branch tracks FETCH_HEAD; cd ..; ",
     "cd proj; git worktree add -q ../pw tracks; test -f ../pw/.envrc; git worktree remove --force ../pw; git "
     "submodule --quiet add ../up.git sub; test -f sub/.envrc; test -f sub/.vscode/tasks.json; git commit -qm sub; git "
     "submodule --quiet deinit -f sub; git submodule --quiet update --init; test -f sub/.envrc; cd ..; git clone -q "
     "proj pc; cd pc; git config submodule.sub.url ../up.git; git submodule --quiet update --init; test -f sub/.envrc"},
    {"packages bring such names", HOST,
     "mkdir -p proj/node_modules/x/.vscode proj/vendor/y; echo > proj/node_modules/x/.npmrc; echo > "
     "proj/node_modules/.npmrc; mv proj/node_modules/x proj/node_modules/.x-1; mv proj/node_modules/.x-1 "
     "proj/node_modules/x; mkdir proj/vendor/y/.vscode; rm -rf proj/node_modules proj/vendor"},
    {"the marker goes away, and something else takes its place", HOST,
     "for d in proj w m; do for g in .git .hg; do test ! -e $d/$g || mv $d/$g $d/g; done; no touch $d/.envrc; no mkdir "
     "$d/.vscode; git init -q $d; no touch $d/.envrc; rm -rf $d/.git; git init -q n; mv n/.git $d/.git; no touch "
     "$d/.envrc; mkdir $d/.config; no mkdir $d/.config/mise; rm -rf n; done"},
    {"the marker is copied, and the copy put in its place", HOST,
     "cp -r proj/.git g; rm -rf proj/.git; no touch proj/.envrc; mv g proj/.git; no touch proj/.envrc; git -C proj "
     "status >/dev/null; cp w/.git g; rm w/.git; cp g w/.git; no mkdir w/.vscode; cp -r deep/er/one/.git g2; no swap "
     "g2 "
     "deep/er/one/.git; no touch deep/er/one/.envrc"},
    {"the marker comes to names that wait for it", HOST,
     "mkdir -p x/.vscode y/.config/mise z q; touch z/a.code-workspace; no mv proj/.git x/.git; no mv proj/.git "
     "y/.git; no mv proj/.git z/.git; no mv w/.git x/.git; no mv m/.hg x/.hg; git init -q q2; no swap proj/.git "
     "x/nothing; mkdir x/.git; no swap proj/.git x/.git; mv proj/.git q/.git; no touch q/.envrc; no touch proj/.envrc; "
     "mv q/.git proj/.git; git -C proj status >/dev/null; git -C q2 status >/dev/null"},
    {"a repository moves, and one of the box's takes its place", HOST,
     "mv proj old; no touch old/.envrc; mkdir proj; no touch proj/.envrc; rmdir proj; cp -r old new; touch "
     "new/.envrc; no mv new proj; mkdir n2; touch n2/.envrc; no mv n2 proj; rm new/.envrc; mv new proj; no touch "
     "proj/.envrc; rm -rf proj; mv old proj; no touch proj/.envrc; git -C proj status >/dev/null"},
    {"a directory with repositories moves", HOST,
     "mv deep old; no touch old/er/one/.envrc; cp -r old new; touch new/er/one/.envrc; no mv new deep; mkdir deep; no "
     "mv new/er deep/er; mkdir deep/er; no mv new/er/one deep/er/one; mkdir deep/er/one; no touch deep/er/one/.envrc; "
     "git init -q deep/er/one; no touch deep/er/one/.envrc; rm -rf deep; mv old deep; no mkdir deep/er/one/.vscode; "
     "mkdir e; cp -r deep e/deep; touch e/deep/er/one/.envrc; no swap e/deep deep; no swap deep e/deep"},
    {"a directory that nobody may read moves, and a repository of the box's takes its place", HOST,
     "for d in proj m; do chmod 0 $d; mv $d old; chmod 755 old; mkdir $d; git init -q $d; no touch $d/.envrc; rm -rf "
     "$d "
     "old; done; chmod 0 deep/er; mv deep old; chmod 755 old/er; mkdir -p deep/er/one; no touch deep/er/.envrc; git "
     "init "
     "-q deep/er; no touch deep/er/.envrc; mkdir x; touch x/a.code-workspace; chmod 333 x; no mv w/.git x/.git"},
    {"a removed repository", HOST,
     "cp -r proj new; touch new/.envrc; rm -rf proj; no mv new proj; mkdir proj; no mkdir proj/.vscode; rm -rf m; "
     "mkdir -p m/.hg; no touch m/.envrc"},
    {"another name of somebody's marker is not the box's own", HOST,
     "mkdir x; ln w/.git x/.git; no touch w/.envrc; no touch x/.envrc; no ln -s ../proj/.git plain/.git; no touch "
     "proj/.envrc; echo gitdir: $PWD/proj/.git > plain/.git; no touch proj/.envrc; touch plain/.envrc"},
    {"what existed before the box alone", HOST "echo 1 > proj/.envrc",
     "no sh -c 'echo 2 > proj/.envrc'; mkdir proj/.vscode; echo {} > proj/.vscode/tasks.json; echo 1 > w/.envrc; echo "
     "2 > w/.envrc; rm w/.envrc; no rm proj/.envrc; no mv proj/.envrc e",
     GUARD_EXISTING},
};

int main(int argc, char **argv)
{
    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++) {
        const struct scene *s = &scenes[i];
        if (argc > 1 && !strstr(s->name, argv[1]))
            continue;
        char *ws = box_workspace(), text[8192];
        struct box box = {.workspace = ws, .rules = rules, .n_rules = sizeof rules / sizeof *rules, .mode = s->mode};
        snprintf(text, sizeof text, "cd %s; " IDENTITY "%s\ntrue", ws, s->host);
        FILE *sh = popen("bash", "w");
        fputs(text, sh);
        CHECK(pclose(sh) == 0, "%s: outside", s->name);
        snprintf(text, sizeof text, IDENTITY NOT "%s", s->box);
        struct box_result r;
        int status = box_shell(&box, text, &r);
        CHECK(status == 0, "%s: status %d", s->name, status);
        for (size_t k = 0; status && k < r.n_denials && k < DENIALS_KEPT; k++)
            fprintf(stderr, "    denied %u %s: %s\n", r.denials[k].action, r.denials[k].text,
                    r.denials[k].text + strlen(r.denials[k].text) + 1);
        box_workspace_end(ws);
    }
    return check_report("guard roots");
}
