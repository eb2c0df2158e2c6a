# Volumes that agent-sandbox made, with real engines, sourced by run: `pinfold volume import` reads them, and leaves them as they are.
# shellcheck shell=bash
# shellcheck disable=SC2015,SC2016,SC2086,SC2154,SC2317,SC2329 # as in run

# What the tool's specification has a container do, and what somebody does in it afterwards.
SEED_WORK='export HOME=/tmp; git config --global --add safe.directory "*"; git config --global user.name a; git config --global user.email a@b.test
[ -e /repo-shelf/repo/.git ] || git clone -q --no-checkout "file:///workspace/$NAME" /repo-shelf/repo
git -C /repo-shelf/repo remote add host "file:///workspace/$NAME"
for b in feature/one clean; do git -C /repo-shelf/repo worktree add -q -B $b /repo-shelf/worktrees/$(echo $b | sed s,/,__,g) origin/main; done
cd /repo-shelf/worktrees/feature__one; echo two >a.txt; git commit -qam second; echo staged >s; git add s; echo loose >u; chmod 4755 u; mknod null c 1 3 2>/dev/null || :; mkfifo fifo; ln -s /etc/passwd link; ln u hard
printf "make of-the-tool\n" >/commandhistory/.bash_history; echo "# mine" >/home/node/.claude/CLAUDE.md; echo "{}" >/home/node/.claude/.credentials.json'

t_volumes() {
    local top hash name shelf word before
    top=$(home "$who")/volumes-$engine
    name=${top##*/} hash=$(printf %s "$top" | md5sum | cut -c1-32)
    shelf=$(home "$who")/home/state/pinfold-shelves/agent-sbx-repo-$hash
    as "$who" "$engine" import "$KIT/git.tar" kit/git:1 >/dev/null 2>"$said" || { echo "no image with git" && return; }
    as "$who" sh -c 'git init -q -b main "$1" && cd "$1" && git config user.name a && git config user.email a@b.test && echo one >a.txt && git add a.txt && git commit -q -m first' - "$top" || return
    as "$who" "$engine" run --rm --network none -e NAME="$name" -v "agent-sbx-repo-$hash:/repo-shelf" -v "$top:/workspace/$name:ro" -v "agent-sandbox-$hash-history:/commandhistory" -v agent-sandbox-claude-code-config:/home/node/.claude \
        kit/git:1 sh -ec "$SEED_WORK" >"$out" 2>"$said" </dev/null || { echo "the tool's own work" && return; }
    before=$(as "$who" "$engine" ps -aq | wc -l)
    dir=$top pf_rc init
    [ $rc = 0 ] && printed "$engine has volumes of agent-sandbox for this directory" || { echo "init: status $rc" && return; }
    dir=$top pf_rc volume
    printed "agent-sbx-repo-$hash  *agent-sandbox's  *$top" || { echo "volume" && return; }
    dir=$top pf_rc volume import
    [ $rc = 0 ] && printed 'branch feature/one: imported, 1 commit that no remote has, 4 changed files' && printed '^branch clean: imported' && printed 'history: imported' && printed 'CLAUDE.md was taken over' && printed 'credentials.json is a login and was not taken over' ||
        { echo "import: status $rc" && return; }
    printed "$engine volume rm agent-sbx-repo-$hash" || { echo "how the volumes are removed" && return; }
    word=$shelf/shelf/worktrees/feature__one
    [ "$(cat "$word/u" "$word/a.txt" "$shelf/remote/.bind/history")" = "$(printf 'loose\ntwo\nmake of-the-tool')" ] && [ "$(readlink "$word/link")" = /etc/passwd ] || { echo "what came along" && return; }
    [ ! -e "$word/null" ] && [ ! -e "$word/fifo" ] && [ ! -u "$word/u" ] && [ "$(stat -c %U "$word/u")" = "$(as "$who" id -un)" ] || { echo "a device, a FIFO, a setuid file or another owner" && return; }
    dir=$top pf_rc volume import --branch feature/one
    [ $rc = 0 ] && printed 'feature/one: it is here already, as it is there' || { echo "again: status $rc" && return; }
    [ "$(as "$who" "$engine" ps -aq | wc -l)" = "$before" ] && [ -z "$(as "$who" "$engine" images -q --filter label=io.pinfold.export)" ] || { echo "a container or an image is left" && return; }
    [ "$(as "$who" "$engine" run --rm --network none -v "agent-sbx-repo-$hash:/v" kit/git:1 cat /v/worktrees/feature__one/u)" = loose ] || { echo "the volume" && return; }
    # While somebody works in it, nothing is read.
    as "$who" "$engine" run -d --rm --network none --name seed-at-work -v "agent-sbx-repo-$hash:/v" kit/git:1 sleep 600 >/dev/null
    dir=$top pf_rc volume import --branch clean
    as "$who" "$engine" rm -f seed-at-work >/dev/null 2>&1
    [ $rc = 1 ] && told "the container 'seed-at-work' works in it; stop it first: $engine stop seed-at-work" || { echo "a container at work: status $rc" && return; }
    dir=$top pf_rc rm --force
    as "$who" "$engine" volume rm "agent-sbx-repo-$hash" "agent-sandbox-$hash-history" agent-sandbox-claude-code-config >/dev/null 2>&1
    rm -rf "$top"
}
