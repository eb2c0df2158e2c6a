# Rows about images themselves, sourced by run: what of one is honoured, what it lacks, and building them.
# shellcheck shell=bash
# shellcheck disable=SC2016 # scripts for the shell in the box are quoted
# shellcheck disable=SC2015,SC2086,SC2317,SC2329,SC2154 # as in run

pf_rc() { # words of pinfold; status in $rc
    as "$who" "$PINFOLD" "$@" >"$out" 2>"$said"
    rc=$?
}

# Without a command the image's own runs, in its WORKDIR; what is not used is named.
t_image_command() {
    local id
    id=$(as "$who" id -u)
    image=kit/runs:1 box
    [ $rc = 0 ] && [ "$(cat "$out")" = "/usr/bin by-entrypoint $id" ] || { echo "status $rc, printed '$(cat "$out")'" && return; }
    told "the image's USER 'nobody' is not used: the command runs as $id:" || { echo "USER is not told" && return; }
    told WORKDIR && echo "WORKDIR is told, though it is used" && return
    image=kit/runs:1 box --entrypoint none
    [ $rc = 0 ] && [ "$(cat "$out")" = "/usr/bin $id" ] || { echo "CMD alone: status $rc, printed '$(cat "$out")'" && return; }
    image=kit/runs:1 box --cwd /etc
    [ $rc = 0 ] && printed '^/etc by-entrypoint' && told "WORKDIR '/usr/bin' is not used: the command starts in '/etc'" || { echo "--cwd: status $rc" && return; }
    image=kit/runs:1 box --entrypoint image -- sh -c 'pwd; echo $BY'
    [ $rc = 0 ] && printed by-entrypoint && printed "^$(home "$who")/work\$" && told "WORKDIR '/usr/bin' is not used: the command starts in '$(home "$who")/work'" || { echo "a command by the entrypoint: status $rc" && return; }
    image=kit/busybox:1 box
    [ $rc = 125 ] && told "the image 'kit/busybox:1' has neither an ENTRYPOINT nor a CMD" || { echo "an image without a command: status $rc" && return; }
    image=kit/starts-$who:1 box --entrypoint none
    [ $rc = 125 ] && told "has no CMD, and --entrypoint none leaves its ENTRYPOINT out" || { echo "an image without CMD: status $rc" && return; }
    image=kit/starts-$who:1 box
    [ $rc = 125 ] && told "the image's WORKDIR '$(home "$who")/work/by-the-image'" && told 'RUN mkdir' || { echo "a WORKDIR that is not there: status $rc" && return; }
    [ ! -e "$(home "$who")/work/by-the-image" ] || { echo "it was made on the host" && return; }
    pf_rc explain --engine "$engine" --image kit/runs:1
    printed '^image cmd   sh -c .*, run by the entrypoint if no command is given$' && printed '^image cwd   /usr/bin, where that starts' && printed '^image user  nobody, not used' ||
        { echo "explain does not show it" && return; }
    pf_rc explain --json --engine "$engine" --image kit/runs:1
    python3 -c 'import json, sys; r = json.load(open(sys.argv[1])); assert r["image_cmd"][0] == "sh" and r["image_workdir"] == "/usr/bin", r' "$out" 2>"$said" ||
        { echo "explain --json does not show it" && return; }
    pf_rc run --engine native
    [ $rc = 125 ] && told 'missing argument: the command' || echo "native without a command: status $rc"
}

# One line for each thing that lacks, with what mends it; nothing of the image runs, and nothing is left.
t_image_check() {
    local id
    pf_rc image check --engine "$engine" --agent kiro-cli --agent no-such-program kit/bad:1
    [ $rc = 1 ] || { echo "status $rc" && return; }
    for id in no-git no-certificates no-agent workspace-filled workdir-missing setuid path-writable sudo-scope secret; do
        grep -q "^$id: .*; " "$out" || { echo "$id is not found" && return; }
    done
    for id in no-bash volume entrypoint; do
        grep -q "^note: $id: .*; " "$out" || { echo "note $id is not found" && return; }
    done
    printed '^image:  kit/bad:1 .*Kit OS 1; USER node' && printed '/usr/local/bin/gains' && printed 'node ALL=(ALL) *NOPASSWD: ALL' && printed 'API_TOKEN' || { echo "a name is not said" && return; }
    printed sesame && echo "the secret itself is printed" && return
    printed '/bin/su[, ]' && echo "what distributions have is a finding" && return
    [ "$(grep -c '^no-agent: ' "$out")" = 2 ] || { echo "not both programs are missed" && return; }
    pf_rc image check --engine "$engine" --json --agent kiro-cli kit/agent:1
    [ $rc = 1 ] && python3 -c '
import json, sys
r = json.load(open(sys.argv[1]))
ids = {f["id"] for f in r["findings"] if not f["note"]}
assert r["engine"] == sys.argv[2] and r["good"] is False and r["user"] == "root" and "kiro-cli" in r["programs"], r
assert ids == {"no-git", "no-certificates"}, ids
assert {"user-root", "no-workspace"} <= {f["id"] for f in r["findings"] if f["note"]}, r["findings"]
assert all(f["text"] and f["remedy"] for f in r["findings"])' "$out" "$engine" || { echo "JSON: status $rc" && return; }
    pf_rc image check --engine "$engine" kit/nothing:9
    [ $rc = 3 ] && told "has no image 'kit/nothing:9'" || { echo "a missing image: status $rc" && return; }
    pf_rc image check --engine native kit/bad:1
    [ $rc = 2 ] && told 'has no images' || { echo "an engine without images: status $rc" && return; }
    [ -z "$(left)" ] || echo "a container is left"
}

# A project's own image: written by init, built from its base, used by its policy; a failing step shows its end.
t_image_build() {
    local h project name
    h=$(home "$who")
    project=$h/built-$engine
    rm -rf "$project" && as "$who" mkdir -p "$project"
    dir=$project pf_rc init --engine "$engine"
    [ $rc = 0 ] && printed 'wrote: .pinfold/Dockerfile' || { echo "init: status $rc" && return; }
    name=$(sed -n 's/^image: \([^ ]*\) .*/\1/p' "$project/.pinfold/policy.yaml")
    case $name in agent-sandbox-built-*-????????????:latest) ;; *) echo "the image is called '$name'" && return ;; esac
    dir=$project pf_rc image check .
    [ $rc = 0 ] && printed '^good' || { echo "the template has findings: status $rc" && return; }
    dir=$project pf_rc build --base-tag nothing --network none --engine "$engine"
    [ $rc = 3 ] && told "has no image 'agent-sandbox-base:nothing'" && told 'pinfold build-base' || { echo "without a base: status $rc" && return; }
    echo 'RUN echo from-the-step >/made' >>"$project/.pinfold/Dockerfile"
    dir=$project pf_rc build --base-tag kit --network none
    [ $rc = 0 ] && printed "^built: $name ($engine, " && told '^step [0-9]*/[0-9]* .* RUN echo from-the-step' || { echo "build: status $rc" && return; }
    dir=$project pf_rc build --base-tag kit --network none
    [ $rc = 0 ] && told '^step [0-9]*/[0-9]*  cached .* RUN echo from-the-step' || { echo "built again: status $rc" && return; }
    dir=$project pf_rc run -- cat /made
    [ $rc = 0 ] && printed '^from-the-step$' || { echo "a box of the project has another image: status $rc" && return; }
    if [ "$engine/$who" = docker/root ]; then # its layers are all there, so no step needs a network
        dir=$project pf_rc start --build --base-tag kit
        [ $rc = 0 ] && told '^step [0-9]*/[0-9]*  cached' || { echo "start --build: status $rc" && return; }
        dir=$project pf_rc rm
        [ $rc = 0 ] || { echo "rm: status $rc" && return; }
    fi
    printf 'ENTRYPOINT ["/bin/false"]\nRUN for i in $(seq 101 130); do echo line-$i; done; exit 7\n' >>"$project/.pinfold/Dockerfile"
    dir=$project pf_rc build --base-tag kit --network none
    [ $rc = 1 ] && told '^pinfold: build: step [0-9]*/[0-9]* failed after .*: RUN for i in' && told '^pinfold:   | line-130' || { echo "a step that fails: status $rc" && return; }
    told 'line-105' && echo "more than the last lines are shown" && return
    told '^pinfold: Dockerfile:[0-9]*: entrypoint: ' || { echo "what it must not do is not told" && return; }
    rm "$project/.pinfold/Dockerfile"
    dir=$project pf_rc build
    [ $rc = 2 ] && told 'has no Dockerfile' || echo "without a Dockerfile: status $rc"
}

# Bad arguments end before anything is started.
images_arguments() {
    local who=root engine=docker words
    while read -r words; do
        # shellcheck disable=SC2086 # words
        dir=$scratch/none pf_rc ${words%%|*}
        [ $rc = "$([ "${words%% *}" = shell ] && echo 125 || echo 2)" ] && told "${words#*|}" && ok "images/refused-${words%%|*}" || no "images/refused-${words%%|*}" "status $rc"
    done <<'EOF'
build-base --git-delta-version latest|npm does not have it
build-base --codex-version 1;id|write a number
build-base --tag a/b|a tag has
build-base other|pinfold has no image
build-base --build-arg X|write NAME=VALUE
build-base --agent x|has no option --agent
build --tag x|has no option --tag
build|has no Dockerfile
build --engine native|has no images
start --build|is not initialized
stop --build|has no option --build
shell --build|is for the session of a project
shell --base-tag x|is for the session of a project
image check|image: write
image check ./nothing|cannot read
image print nothing|pinfold has no image
list --engine docker|has no option --engine
EOF
}

# What the base image begins with: as node's own images are, a minimal Debian with node and npm beside it, here from npm's registry.
image_begin() {
    local d=$KIT/node cpu
    case $(uname -m) in aarch64) cpu=arm64 ;; *) cpu=x64 ;; esac
    mkdir -p "$d/usr/local/bin" "$d/usr/local/lib/node_modules"
    cat /etc/ssl/certs/ca-certificates.crt >"$d/ca.crt" 2>/dev/null # with those that this machine's network needs
    (cd "$d" && npm pack --silent "node-linux-$cpu@22" npm@10 && tar -xzf node-linux-*.tgz && mv package/bin/node usr/local/bin && rm -rf package &&
        tar -xzf npm-*.tgz && mv package usr/local/lib/node_modules/npm && ln -s ../lib/node_modules/npm/bin/npm-cli.js usr/local/bin/npm) >"$said" 2>&1 || return 1
    mmdebstrap --quiet --variant=apt --dpkgopt=force-unsafe-io --extract-hook="'$here/../distro/less' \"\$1\"" bookworm - 2>>"$said" |
        as root docker import - kit/minimal:1 >"$out" 2>>"$said" && printf 'FROM kit/minimal:1\nCOPY usr /usr\nCOPY ca.crt /etc/kit-ca.crt\nENV NODE_EXTRA_CA_CERTS=/etc/kit-ca.crt\n' >"$d/Dockerfile" && as root docker build -q --network none -t kit/debian:1 "$d" >"$out" 2>>"$said"
}

# The base image for real, to its end but for what needs more network than Debian's mirror and npm's registry (git-delta): all of its
# packages, npm's tools, the scripts. Then what it promises, in a box and started by hand, with its firewall in a network of the test's.
image_base() {
    local who=root engine=docker words=(--engine docker --tag kit-real --base-image kit/debian:1 --network host --git-delta-version none)
    if ! command -v mmdebstrap >/dev/null || ! command -v npm >/dev/null || ! npm view --silent npm@10 version >/dev/null 2>&1; then
        echo "skip docker/image-base: it needs mmdebstrap, npm and npm's registry"
        return
    fi
    image_begin || { no docker/image-base "no minimal Debian" && return; }
    [ "${PINFOLD_TEST_ALL-}" = 1 ] || words+=(--claude-code-version none) # 240 MB
    pf_rc build-base "${words[@]}"
    [ $rc = 0 ] && printed '^built: agent-sandbox-base:kit-real (docker, ' || { no docker/image-base "status $rc" && return; }
    grep '^step' "$said" >"$scratch/steps"
    pf_rc build-base "${words[@]}"
    [ $rc = 0 ] && ! grep '^step' "$said" | grep -v 'cached \|FROM \|ARG ' >"$out" || { no docker/image-base "built again, not everything is cached" && return; }
    pf_rc image check --agent codex --agent ast-grep --agent npm agent-sandbox-base:kit-real
    [ $rc = 0 ] && printed '^good' || { no docker/image-base "the check finds something" && return; }
    pf_rc run --engine docker --image agent-sandbox-base:kit-real --entrypoint none -- sh -c 'test -e /.agent-sandbox && cd /workspace && cd /commandhistory &&
        cd /home/node/.claude && cd /home/node/.codex && grep ^node: /etc/passwd; ! sudo -n /usr/local/bin/init-firewall.sh && echo no sudo; git -c core.hooksPath=/x commit
        for p in less fzf man unzip jq aggregate ps git gh nano vim gpg sudo nft iptables ipset ip dig curl npm codex ast-grep sg; do command -v $p >/dev/null || echo "no program $p"; done'
    printed '^node:x:1000:1000:' && printed '^no sudo' && ! printed '^no program' && told 'git -c core.hooksPath=/x is refused' || { no docker/image-base "not what it promises" && return; }
    # By hand: sudo starts the firewall and nothing else.
    as root docker run --rm --network none --entrypoint sudo agent-sandbox-base:kit-real -n id >"$out" 2>"$said" && { no docker/image-base "sudo does more" && return; }
    ok docker/image-base
    mkdir -p "$scratch/firewall"
    as root env PATH="$PATH" /usr/bin/python3 "$here/firewall.py" hand agent-sandbox-base:kit-real "$scratch/firewall" kit/busybox:1 || failures=$((failures + 1))
}
