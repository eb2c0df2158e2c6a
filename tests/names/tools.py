"""The guarded names and the real tools that run them. ROWS: name of the entry, what it needs, the script that plants it ($RAN is what must
appear), what a person does then, and what is there before. UNTRIED: entries without a row, and why.

A tool is a program of the system, or a package of npm's registry in $NPM: the small ones always, those of LARGE with PINFOLD_TEST_ALL=1.
"""
from collections import namedtuple

Row = namedtuple("Row", "needs plant act before at", defaults=("true", None))  # at: where it is, if not at the top
SMALL = ["lefthook@2.2.2", "lint-staged@15.5.2", "nano-staged@0.8.0", "pnpm@10.34.9", "yarn@1.22.22", "@yarnpkg/cli-dist@4.9.2"]
LARGE = ["@commitlint/cli@21.2.4", "@jdxcode/mise-linux-x64", "@oven/bun-linux-x64", "opencode-ai", "@google/gemini-cli", "@qwen-code/qwen-code", "@mariozechner/pi-coding-agent", "pnpm-latest@npm:pnpm"]

CONFLICT = "echo 1 > a; git add a; git commit -qm 1; git checkout -qb o; echo 2 > a; git commit -qam 2; git checkout -q -; echo 3 > a; git commit -qam 3; git rebase -q o >/dev/null 2>&1; true"
MAIL = ("echo 1 > a; git add a; git commit -qm 1; echo 2 > a; git commit -qam 2; echo 3 > a; git commit -qam 3; git format-patch -q -2; git reset -q --hard HEAD~2; echo 9 > a; git commit -qam 9; "
        "git am 000* >/dev/null 2>&1; true")
SOME = "1" * 40
PROMPT_FILES = "echo \"\\$(touch $RAN)\" > m; echo 1 > e;"
PROMPT = "bash -c '. \"$(git --exec-path)/git-sh-prompt\"; __git_ps1 a b; : \"${PS1@P}\"'"
PRE_COMMIT = "repos: [{repo: local, hooks: [{id: x, name: x, language: system, entry: touch $RAN, pass_filenames: false, always_run: true}]}]"
SCRIPT = "printf '#!/bin/sh\\ntouch %s\\n' $RAN > s; chmod +x s"  # a program s
NODE = "echo 'require(\"fs\").writeFileSync(process.env.RAN, \"\")' > p.cjs"
MODULE = "echo 'require(\"fs\").writeFileSync(process.env.RAN, \"\"); module.exports = {hooks: {}}' > "
CTAGS = "mkdir -p .ctags.d ctags.d; printf -- '--output-format=xref\\n--_xformat=%%N\\n-o%s\\n' $RAN > "
GTAGS = ("echo 'void f(void);' > a.c; printf '#include <fcntl.h>\\n#include <stdlib.h>\\n__attribute__((constructor)) static void g(void) { creat(getenv(\"RAN\"), 0600); }\\n"
         "void parser(void *p) { (void)p; }\\n' > e.c; cc -shared -fPIC -o e.so e.c && rm e.c; printf 'default:langmap=c\\\\:.c:gtags_parser=c\\\\:%s:\\n' $PWD/e.so > ")
SERVER = "echo \"{\\\"mcpServers\\\": {\\\"x\\\": {\\\"command\\\": \\\"touch\\\", \\\"args\\\": [\\\"$RAN\\\"]}}}\" > "
PACKAGE = "echo '{\"name\": \"x\", \"version\": \"1.0.0\", \"scripts\": {\"test\": \"true\"}}' > package.json; "
LEFTHOOK = "printf 'pre-commit:\\n  commands:\\n    x:\\n      run: touch %s\\n' $RAN > "
LEFTHOOK_RUN = "git add .; node $NPM/lefthook/bin/index.js install; git commit -qm x --allow-empty"
NIX = ("export NIX_STORE_DIR=$HOME/s NIX_STATE_DIR=$HOME/v NIX_LOG_DIR=$HOME/l NIX_CONF_DIR=$HOME/c; mkdir -p $HOME/c $HOME/std; echo 'runHook() { eval \"${!1}\"; }' > $HOME/std/setup; "
       "printf 'sandbox = false\\nbuild-users-group =\\nexperimental-features = nix-command flakes\\n' > $HOME/c/nix.conf; ")
SHELL = "name = \\\"x\\\"; builder = \\\"/bin/bash\\\"; shellHook = \\\"touch $RAN\\\"; stdenv = \\\"$HOME/std\\\"; "
EMACS = "echo \"((nil . ((eval . (call-process \\\"touch\\\" nil nil nil \\\"$RAN\\\")))))\" > "
EMACS_RUN = "emacs --batch --eval '(progn (setq enable-local-eval t enable-local-variables :all) (find-file \"x.txt\"))'"
VIM = "echo \"silent !touch $RAN\" > "
VIM_RUN = "echo set exrc > ~/.vimrc; vim -T dumb --not-a-term -c qa </dev/null"
SHELL_FILE = "echo touch $RAN > "
POM = "echo '<project><modelVersion>4.0.0</modelVersion><groupId>a</groupId><artifactId>a</artifactId><version>1</version></project>' > pom.xml; mvn -q -o validate"

ROWS = {  # by the entry without its last slash
    # git and what works as it does
    "rebase-merge/git-rebase-todo": Row("git", "echo exec touch $RAN > t; mv -f t .git/rebase-merge/git-rebase-todo", "echo b > a; git add a; GIT_EDITOR=true git rebase --continue", CONFLICT),
    "rebase-apply/apply-opt": Row("git", "printf %s \"'--build-fake-ancestor=$RAN'\" > o; mv -f o .git/rebase-apply/apply-opt", "git am --skip", MAIL),
    "MERGE_RR": Row("git", f"mkdir -p .git/rr-cache/{SOME}; printf '{SOME}\\t../conflict\\0' > m; mv -f m .git/MERGE_RR; touch .git/rr-cache/{SOME}/preimage",
                    f"echo 5 > a; git commit -qam 5; ! test -e .git/rr-cache/{SOME}/postimage || touch $RAN", "echo > ../conflict; echo 1 > a; git add a; git commit -qm 1"),
    "rebase-merge/msgnum": Row("git", f"mkdir .git/rebase-merge; {PROMPT_FILES} mv -f m .git/rebase-merge/msgnum; mv -f e .git/rebase-merge/end", PROMPT),
    "rebase-merge/end": Row("git", f"mkdir .git/rebase-merge; {PROMPT_FILES} mv -f e .git/rebase-merge/msgnum; mv -f m .git/rebase-merge/end", PROMPT),
    "rebase-apply/next": Row("git", f"mkdir .git/rebase-apply; {PROMPT_FILES} mv -f m .git/rebase-apply/next; mv -f e .git/rebase-apply/last", PROMPT),
    "rebase-apply/last": Row("git", f"mkdir .git/rebase-apply; {PROMPT_FILES} mv -f e .git/rebase-apply/next; mv -f m .git/rebase-apply/last", PROMPT),
    "rebase-merge/update-refs": Row("git", "printf 'refs/replace/%s\\n%040d\\n%s\\n' $(git rev-parse o~) 0 $(git rev-parse o) > u; mv -f u .git/rebase-merge/update-refs",
                                    "echo b > a; git add a; GIT_EDITOR=true git rebase --continue; ! test -e .git/refs/replace || touch $RAN", CONFLICT),
    "rebase-merge/head-name": Row("git", "echo refs/replace/$(git rev-parse o~) > h; mv -f h .git/rebase-merge/head-name",
                                  "git rebase --abort; ! test -e .git/refs/replace || touch $RAN", CONFLICT),
    ".git/safe": Row("git", "mkdir -p bin; " + SCRIPT + "; mv s bin/pwd-of-us; mkdir .git/safe", "PATH=.git/safe/../../bin:$PATH; pwd-of-us"),
    ".hg/hgrc": Row("hg", "printf '[hooks]\\npre-status = touch %s\\n' $RAN > .hg/hgrc", "hg status", "hg init ."),
    ".hg/hgrc-not-shared": Row("hg", "printf '[hooks]\\npre-status = touch %s\\n' $RAN > .hg/hgrc-not-shared", "hg status", "hg init .; echo share-safe >> .hg/requires"),
    ".hg/sharedpath": Row("hg", "mkdir e; cp -r .hg e; printf '[hooks]\\npre-status = touch %s\\n' $RAN > e/hgrc; cp -r e/.hg/* e; echo $PWD/e > .hg/sharedpath", "hg status",
                          "hg init .; echo shared >> .hg/requires"),
    "_darcs/prefs/defaults": Row("darcs", "printf 'ALL posthook touch %s\\nALL run-posthook\\n' $RAN > _darcs/prefs/defaults", "echo x > f; darcs add f", "darcs init"),
    ".husky": Row("git", "mkdir .husky; printf '#!/bin/sh\\ntouch %s\\n' $RAN > .husky/pre-commit; chmod +x .husky/pre-commit", "git config core.hooksPath .husky; git commit -qm x --allow-empty"),
    ".githooks": Row("git", "mkdir .githooks; printf '#!/bin/sh\\ntouch %s\\n' $RAN > .githooks/pre-commit; chmod +x .githooks/pre-commit",
                     "git config core.hooksPath .githooks; git commit -qm x --allow-empty"),
    ".gitconfig": Row("git", "printf '[core]\\n\\tfsmonitor = \"touch %s; false\"\\n' $RAN > .gitconfig", "HOME=$PWD git status"),
    ".pre-commit-config.yaml": Row("pre-commit", f"echo \"{PRE_COMMIT}\" > .pre-commit-config.yaml", "git add .; pre-commit install; git commit -qm x"),
    "lefthook.yml": Row("npm:lefthook", LEFTHOOK + "lefthook.yml", LEFTHOOK_RUN),
    "lefthook-local.yml": Row("npm:lefthook", LEFTHOOK + "lefthook-local.yml", "echo 'pre-commit: {}' > lefthook.yml; " + LEFTHOOK_RUN),
    ".config/lefthook.jsonc": Row("npm:lefthook", "mkdir .config; echo \"{\\\"pre-commit\\\": {\\\"commands\\\": {\\\"x\\\": {\\\"run\\\": \\\"touch $RAN\\\"}}}}\" > .config/lefthook.jsonc", LEFTHOOK_RUN),
    ".lefthook": Row("npm:lefthook", "mkdir -p .lefthook/pre-commit; echo touch $RAN > .lefthook/pre-commit/x; chmod +x .lefthook/pre-commit/x",
                     "printf 'pre-commit:\\n  scripts:\\n    x:\\n      runner: sh\\n' > lefthook.yml; " + LEFTHOOK_RUN),
    ".lintstagedrc": Row("npm:lint-staged", "echo \"{\\\"*\\\": \\\"touch $RAN\\\"}\" > .lintstagedrc",
                         PACKAGE + "git add .; git commit -qm 0; printf '#!/bin/sh\\nnode %s/lint-staged/bin/lint-staged.js\\n' $NPM > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit; "
                         "echo y > f; git add .; git commit -qm x"),
    ".lintstagedrc.json": Row("npm:lint-staged", "mkdir -p sub; echo \"{\\\"*\\\": \\\"touch $RAN\\\"}\" > sub/.lintstagedrc.json",
                              PACKAGE + "git add .; git commit -qm 0; printf '#!/bin/sh\\nnode %s/lint-staged/bin/lint-staged.js\\n' $NPM > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit; "
                              "mkdir -p sub; echo y > sub/f; git add .; git commit -qm x", at="sub/.lintstagedrc.json"),
    ".nano-staged.json": Row("npm:nano-staged", "echo \"{\\\"*\\\": \\\"touch $RAN\\\"}\" > .nano-staged.json",
                             PACKAGE + "git add .; git commit -qm 0; printf '#!/bin/sh\\nnode %s/nano-staged/lib/bin.js\\n' $NPM > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit; "
                             "echo y > f; git add .; git commit -qm x"),
    ".commitlintrc.json": Row("npm:@commitlint/cli", NODE + "; echo '{\"extends\": [\"./p.cjs\"]}' > .commitlintrc.json", "echo 'feat: x' | node $NPM/@commitlint/cli/cli.js"),
    ".commitlintrc": Row("npm:@commitlint/cli", NODE + "; echo 'extends: [./p.cjs]' > .commitlintrc", "echo 'feat: x' | node $NPM/@commitlint/cli/cli.js"),
    # Editors
    ".exrc": Row("vim", VIM + ".exrc", VIM_RUN),
    ".vimrc": Row("vim", VIM + ".vimrc", VIM_RUN),
    ".nvimrc": Row("nvim", VIM + ".nvimrc", "mkdir -p ~/.config/nvim; echo set exrc > ~/.config/nvim/init.vim; nvim --headless -c qa"),
    ".dir-locals.el": Row("emacs", EMACS + ".dir-locals.el", EMACS_RUN),
    ".dir-locals-2.el": Row("emacs", EMACS + ".dir-locals-2.el", EMACS_RUN),
    ".emacs": Row("emacs", "echo \"(call-process \\\"touch\\\" nil nil nil \\\"$RAN\\\")\" > .emacs", "HOME=$PWD emacs --batch --eval '(load \"~/.emacs\")'"),
    # What writes tags: any text in a new file, and libraries
    ".ctags.d": Row("ctags", CTAGS + ".ctags.d/x.ctags", "echo 'x = 1' > m.py; ctags -R ."),
    "ctags.d": Row("ctags", CTAGS + "ctags.d/x.ctags", "echo 'x = 1' > m.py; ctags -R ."),
    "gtags.conf": Row("gtags", GTAGS + "gtags.conf", "gtags"),
    ".globalrc": Row("gtags", GTAGS + ".globalrc", "HOME=$PWD gtags"),
    # Agents
    ".pi": Row("npm:@mariozechner/pi-coding-agent", "mkdir -p .pi/extensions; echo 'import {writeFileSync} from \"fs\"; export default function () { writeFileSync(process.env.RAN, \"\") }' > .pi/extensions/x.ts",
               "$NPM/.bin/pi --list-models"),
    ".qwen": Row("npm:@qwen-code/qwen-code", "mkdir .qwen; " + SERVER + ".qwen/settings.json", "$NPM/.bin/qwen mcp list"),
    ".gemini": Row("npm:@google/gemini-cli", "mkdir .gemini; " + SERVER + ".gemini/settings.json",
                   "mkdir -p ~/.gemini; echo \"{\\\"$PWD\\\": \\\"TRUST_FOLDER\\\"}\" > ~/.gemini/trustedFolders.json; $NPM/.bin/gemini mcp list"),
    "opencode.json": Row("npm:opencode-ai", "echo \"{\\\"mcp\\\": {\\\"x\\\": {\\\"type\\\": \\\"local\\\", \\\"command\\\": [\\\"touch\\\", \\\"$RAN\\\"], \\\"enabled\\\": true}}}\" > opencode.json",
                         "$NPM/.bin/opencode mcp list"),
    ".opencode": Row("npm:opencode-ai", "mkdir -p .opencode/plugin; echo 'export const X = async () => { require(\"fs\").writeFileSync(process.env.RAN, \"\"); return {} }' > .opencode/plugin/x.js",
                     "timeout 60 $NPM/.bin/opencode run hi"),
    # Shells, interpreters and debuggers
    ".envrc.local": Row("direnv", SHELL_FILE + ".envrc.local", "echo source_env_if_exists .envrc.local > .envrc; direnv allow; direnv export bash"),
    ".envrc": Row("direnv", SHELL_FILE + "e; echo 'source_env e' > .envrc", "direnv allow; direnv export bash"),
    "mise.toml": Row("npm:@jdxcode/mise-linux-x64", "echo \"env.X = '{{exec(command=\\\"touch $RAN\\\")}}'\" > mise.toml", "$NPM/@jdxcode/mise-linux-x64/bin/mise trust; $NPM/@jdxcode/mise-linux-x64/bin/mise env"),
    ".bashrc": Row("bash", SHELL_FILE + ".bashrc", "HOME=$PWD bash -ic true"),
    ".profile": Row("bash", SHELL_FILE + ".profile", "HOME=$PWD bash -lc true"),
    ".bash_profile": Row("bash", SHELL_FILE + ".bash_profile", "HOME=$PWD bash -lc true"),
    ".bash_login": Row("bash", SHELL_FILE + ".bash_login", "HOME=$PWD bash -lc true"),
    ".bash_logout": Row("bash", SHELL_FILE + ".bash_logout", "HOME=$PWD bash -lc exit"),
    ".zshenv": Row("zsh", SHELL_FILE + ".zshenv", "HOME=$PWD zsh -c true"),
    ".zshrc": Row("zsh", SHELL_FILE + ".zshrc", "HOME=$PWD zsh -ic true"),
    ".zprofile": Row("zsh", SHELL_FILE + ".zprofile", "HOME=$PWD zsh -lc true"),
    ".zlogin": Row("zsh", SHELL_FILE + ".zlogin", "HOME=$PWD zsh -lc true"),
    ".zlogout": Row("zsh", SHELL_FILE + ".zlogout", "echo exit | HOME=$PWD zsh -il"),
    ".cshrc": Row("tcsh", SHELL_FILE + ".cshrc", "HOME=$PWD tcsh -c true"),
    ".login": Row("tcsh", SHELL_FILE + ".login", "echo exit | HOME=$PWD tcsh -l"),
    ".kshrc": Row("ksh", SHELL_FILE + ".kshrc", "echo exit | HOME=$PWD ksh -i"),
    ".mkshrc": Row("mksh", SHELL_FILE + ".mkshrc", "echo exit | HOME=$PWD mksh -i"),
    ".yashrc": Row("yash", SHELL_FILE + ".yashrc", "echo exit | HOME=$PWD yash -i"),
    ".config/fish": Row("fish", "mkdir -p .config/fish; echo touch $RAN > .config/fish/config.fish", "HOME=$PWD XDG_CONFIG_HOME= fish -c true"),
    ".tmux.conf": Row("tmux", "echo \"run-shell 'touch $RAN'\" > .tmux.conf", "HOME=$PWD TMUX_TMPDIR=$PWD tmux -L x start-server \\; run-shell true"),
    ".gdbinit": Row("gdb", "echo \"shell touch $RAN\" > .gdbinit", "echo set auto-load safe-path / > ~/.gdbinit; gdb -batch"),
    ".lldbinit": Row("lldb", "echo \"platform shell touch $RAN\" > .lldbinit", "lldb --local-lldbinit --batch"),
    ".pdbrc": Row("python3", "echo 'import os; os.system(\"touch $RAN\")' > .pdbrc", "echo 1 > a.py; echo q | python3 -m pdb a.py"),
    ".perldb": Row("perl", "echo 'BEGIN { system(\"touch $ENV{RAN}\") } 1;' > .perldb", "echo q | perl -d -e 1"),
    ".irbrc": Row("irb", "echo 'system(\"touch $RAN\")' > .irbrc", "echo exit | irb"),
    ".pryrc": Row("pry", "echo 'system(\"touch $RAN\")' > .pryrc", "echo exit | pry"),
    ".Rprofile": Row("R", "echo 'system(\"touch $RAN\")' > .Rprofile", "R -q -e 1"),
    ".Renviron": Row("R", "echo 'system(\"touch $RAN\")' > p.R; echo R_PROFILE_USER=$PWD/p.R > .Renviron", "R -q -e 1"),
    ".RData": Row("R", "R -q --vanilla -e '.First <- function() system(\"touch $RAN\"); save.image()'", "R -q -e 1"),
    "renv/activate.R": Row("R", "mkdir -p renv; echo 'system(\"touch $RAN\")' > renv/activate.R", "echo 'source(\"renv/activate.R\")' > .Rprofile; R -q -e 1"),
    ".octaverc": Row("octave-cli", "echo 'system(\"touch $RAN\");' > .octaverc", "octave-cli --eval 1"),
    "startup.m": Row("octave-cli", "echo 'system(\"touch $RAN\");' > startup.m", "octave-cli --eval 1"),
    "finish.m": Row("octave-cli", "echo 'system(\"touch $RAN\");' > finish.m", "echo quit | octave-cli"),
    ".ghci": Row("ghci", "echo \":!touch $RAN\" > .ghci", "echo :q | ghci"),
    ".iex.exs": Row("iex", "echo \"System.cmd(\\\"touch\\\", [\\\"$RAN\\\"])\" > .iex.exs", "echo System.halt | iex"),
    ".ocamlinit": Row("ocaml", "echo \"Sys.command \\\"touch $RAN\\\";;\" > .ocamlinit", "echo 'exit 0;;' | ocaml"),
    ".latexmkrc": Row("latexmk", "echo \"system('touch $RAN');\" > .latexmkrc", "echo x > a.tex; latexmk a"),
    # Package managers and builders
    ".npmrc": Row("npm", SCRIPT + "; echo script-shell=$PWD/s > .npmrc", PACKAGE + "npm test"),
    ".yarnrc": Row("npm:yarn", NODE + "; echo 'yarn-path \"./p.cjs\"' > .yarnrc", "node $NPM/yarn/bin/yarn.js --version"),
    ".yarnrc.yml": Row("npm:@yarnpkg/cli-dist", NODE + "; echo 'yarnPath: ./p.cjs' > .yarnrc.yml", PACKAGE + "node $NPM/@yarnpkg/cli-dist/bin/yarn.js --version"),
    ".yarn/releases": Row("npm:@yarnpkg/cli-dist", NODE + "; mkdir -p .yarn/releases; mv p.cjs .yarn/releases/yarn.cjs",
                          PACKAGE + "echo 'yarnPath: .yarn/releases/yarn.cjs' > .yarnrc.yml; node $NPM/@yarnpkg/cli-dist/bin/yarn.js --version"),
    ".yarn/plugins": Row("npm:@yarnpkg/cli-dist", "mkdir -p .yarn/plugins; echo 'module.exports = {name: \"x\", factory: () => { require(\"fs\").writeFileSync(process.env.RAN, \"\"); return {default: {}} }}' > .yarn/plugins/x.cjs",
                         PACKAGE + "echo 'plugins: [{path: .yarn/plugins/x.cjs, spec: x}]' > .yarnrc.yml; node $NPM/@yarnpkg/cli-dist/bin/yarn.js config"),
    ".pnpmfile.cjs": Row("npm:pnpm", MODULE + ".pnpmfile.cjs", PACKAGE + "node $NPM/pnpm/bin/pnpm.cjs install --offline"),
    ".pnpmfile.mjs": Row("npm:pnpm-latest", "echo 'import fs from \"fs\"; fs.writeFileSync(process.env.RAN, \"\"); export const hooks = {}' > .pnpmfile.mjs", PACKAGE + "node $NPM/pnpm-latest/bin/pnpm.mjs install --offline"),
    "pnpm-workspace.yaml": Row("npm:pnpm", MODULE + "p.cjs; echo 'pnpmfile: p.cjs' > pnpm-workspace.yaml", PACKAGE + "node $NPM/pnpm/bin/pnpm.cjs install --offline"),
    "bunfig.toml": Row("npm:@oven/bun-linux-x64", NODE + "; echo 'preload = [\"./p.cjs\"]' > bunfig.toml", "echo 1 > a.js; $NPM/@oven/bun-linux-x64/bin/bun a.js"),
    ".tool-versions": Row("npm:@jdxcode/mise-linux-x64", "mkdir -p d/bin; " + SCRIPT + "; mv s d/bin/node; echo node path:$PWD/d > .tool-versions", "$NPM/@jdxcode/mise-linux-x64/bin/mise exec -- node --version"),
    ".cargo/config.toml": Row("cargo", "mkdir -p .cargo; printf '#!/bin/sh\\ntouch %s\\nexec \"$@\"\\n' $RAN > w; chmod +x w; printf '[build]\\nrustc-wrapper = \"%s\"\\n' $PWD/w > .cargo/config.toml",
                              "cargo init -q --name x .; cargo build -q --offline"),
    ".cargo/config": Row("cargo", "mkdir -p .cargo; printf '#!/bin/sh\\ntouch %s\\nexec \"$@\"\\n' $RAN > w; chmod +x w; printf '[build]\\nrustc-wrapper = \"%s\"\\n' $PWD/w > .cargo/config",
                         "cargo init -q --name x .; cargo build -q --offline"),
    ".bazelrc": Row("bazel", SCRIPT + "; echo build --workspace_status_command=$PWD/s > .bazelrc", "touch WORKSPACE; echo 'filegroup(name = \"a\")' > BUILD; bazel --batch --host_jvm_args=-XX:TieredStopAtLevel=1 --host_jvm_args=-XX:+UseSerialGC build //:a"),
    "tools/bazel": Row("bazel", SCRIPT + "; mkdir tools; mv s tools/bazel", "touch WORKSPACE; bazel version"),
    ".mvn/jvm.config": Row("mvn", "mkdir .mvn; echo -Xlog:gc:file=$RAN > .mvn/jvm.config", POM),
    ".mvn/maven.config": Row("mvn", "mkdir .mvn; printf -- '-l\\n%s\\n' $RAN > .mvn/maven.config", POM),
    "gradle/wrapper": Row("gradle", "mkdir -p gradle/wrapper; echo \"package org.gradle.wrapper; public class GradleWrapperMain { public static void main(String[] a) throws Exception "
                          "{ new java.io.File(\\\"$RAN\\\").createNewFile(); } }\" > GradleWrapperMain.java; javac -d c GradleWrapperMain.java && jar cf gradle/wrapper/gradle-wrapper.jar -C c .",
                          "sh gradlew help", "touch build.gradle; gradle -q --offline --no-daemon wrapper; rm -r gradle .gradle"),
    "gradle.properties": Row("gradle", "mkdir -p j/bin j/lib; touch j/lib/tools.jar; " + SCRIPT + "; mv s j/bin/java; echo org.gradle.java.home=$PWD/j > gradle.properties", "gradle --offline --no-daemon help"),
    "ansible.cfg": Row("ansible", "printf '[defaults]\\ncallback_plugins = ./p\\nstdout_callback = evil\\n' > ansible.cfg",
                       "mkdir p; echo \"import os; os.system('touch $RAN'); from ansible.plugins.callback.minimal import CallbackModule\" > p/evil.py; ansible localhost -m ping"),
    "shell.nix": Row("nix", "echo \"derivation { " + SHELL + "system = builtins.currentSystem; }\" > shell.nix", NIX + "nix-shell --run true"),
    "flake.nix": Row("nix", "echo \"{ outputs = _: { devShells.x86_64-linux.default = derivation { " + SHELL + "system = \\\"x86_64-linux\\\"; outputs = [ \\\"out\\\" ]; }; }; }\" > flake.nix",
                     "git add .; " + NIX + "nix --offline develop -c true"),
}

# Entries that are another spelling of one above, for the same tool, are not listed.
UNTRIED = {
    "judged by content, in the suites guard and escape": ".git/config .git/config.worktree .gitmodules rebase-merge/strategy rebase-apply/head-name sequencer/opts sequencer/todo .git/hooks .git/info/attributes .git/commondir refs/replace info/grafts",
    "neither Debian nor npm has the tool": ".rvmrc .plzconfig .plzconfig.local .plzconfig_linux_amd64 .plzconfig_linux_arm64 .bloop/bloop.settings.json .jj/repo .jj/repo/config.toml .jj/workspace-config.toml .git/sl/config .sl/config .sl/sharedpath .pijul/config .overcommit.yml .trunk .lvimrc devenv.nix devbox.json pixi.toml .pixi/config.toml "
                                           "rust-toolchain rust-toolchain.toml .mvn/wrapper .mvn/extensions.xml .mvn/mvnd.properties .flox/env .shadowenv.d bin/activate-hermit bin/hermit bin/hermit.hcl "
                                           ".tmux-sessionizer .pants.bootstrap pkgx.yaml pkgx.yml .pkgx.yaml .pkgx.yml .config/nushell .sdkmanrc global.json hk.pkl hk.local.pkl .config/hk.pkl .config/hk.local.pkl packrat/init.R rv/scripts devenv.yaml devenv.local.nix devenv.local.yaml "
                                           ".moon/hooks .flox/env.json .jvmopts .sbtopts .mill-jvm-opts .mill-opts .gh-dash.yml .rusty-hook.toml rusty-hook.toml captainhook.json captainhook.config.json "
                                           "grumphp.yml grumphp.yaml grumphp.yml.dist grumphp.yaml.dist",
    "what it names is downloaded first": "lean-toolchain .corepack.env .bazeliskrc .bazelversion gradle/gradle-daemon-jvm.properties .prototools mise.lock mise.local.lock .config/mise.lock mise/mise.lock flake.lock devenv.lock devbox.lock pixi.lock .flox/env.lock",
    "a tool of npm, PyPI, Ruby or R, that is large for one row": ".sbtrc .poetry .pdm-plugins .xonshrc .git/gbp.conf .gbp.conf .git/lazygit.yml .lazygit.yml .bzr/branch/branch.conf .p4config .gclient .reviewboardrc .arcconfig prek.toml sgconfig.yml .rbenv-vars .lintr .lintr.R .git-hooks .gitlint .czrc .cz.json",
    "an editor's language server, or an editor's plugin": ".solargraph.yml .mcphub .gutctags *.sublime-project omnisharp.json .neoconf.json .nlsp-settings .lazy.lua .ycm_extra_conf.py .lite_project.lua rust-analyzer.toml .lsp/config.edn buildServer.json hie.yaml .hie-bios .sourcekit-lsp .kateproject .joyride .factorypath",
    "a login to a desktop or to systemd": ".local/share/systemd/user .config/user-tmpfiles.d .local/share/user-tmpfiles.d .local/share/dbus-1/services .config/plasma-workspace .xsession .xserverrc .config/autostart .config/systemd/user .config/environment.d .pam_environment .xprofile .xsessionrc .xinitrc",
    "graphical, or a service": ".vscode *.code-workspace .idea .run .fleet .zed .theia .nova .vs .settings .idx .project .externalToolBuilders .cproject conductor.json .conductor .superset .mux .cmux .workmux.yaml .devcontainer .devcontainer.json .helix",
    "an agent that starts only with a login or a person's answer": ".mcp.json .claude .claude.json .codex .cursor .kiro .windsurf .continue .clinerules .cline .roo .kilocode .amazonq .amp .openhands .antigravity "
    ".github/extensions .github/lsp.json lsp.json .lsp.json lsp.yaml .lsp.yaml lsp.yml .lsp.yml dap.json .dap.json dap.yaml .dap.yaml dap.yml .dap.yml .devin .kilo kilo.json kilo.jsonc .omp .eca .letta .mastracode .commandcode .neovate .kode .pochi .bob .warp "
    ".agent .agents .hermes .copilot .github/copilot .github/hooks .github/agents .goose .crush .crush.json crush.json .junie .augment .trae .factory .vibe .iflow .codebuddy .qoder .grok .kimi .rovodev .tabnine .github/mcp.json .github/skills gptme.toml .aider.conf.yml .aider.model.settings.yml",
    "read where another file of the list is, by the same code": ".ctags .nvim.lua .tcshrc .logout .config/tmux .screenrc .gvimrc .vim .emacs.d opencode.jsonc mise.local.toml .mise.toml .mise.local.toml .mise .config/mise.toml .config/mise .bash_aliases "
    ".pre-commit-config.yml .inputrc mise/config.toml mise/config.local.toml .miserc.toml .config/miserc.toml .config/git default.nix",
    "pinfold reads it as the policy of its own start, which tests/project and tests/paths do": ".pinfold .agent-sandbox",
    "ssh takes its home from the user database, not from HOME": ".ssh",
}
FAMILIES = ("lefthook", ".lefthook", ".config/lefthook", ".lintstagedrc", "lint-staged.config", ".huskyrc", "husky.config", ".commitlintrc", "commitlint.config", ".nano-staged", "nano-staged", ".nanostagedrc")  # spellings of one file
