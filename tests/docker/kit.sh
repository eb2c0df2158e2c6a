# Real container engines for tests: a dockerd of our own, a podman whose storage is ours, and images made without a
# registry. To be sourced by bash; kit_begin DIR first, kit_end last. Whoever sources this adds nothing to the machine:
# all state lies below DIR, and processes are ended by the numbers they were started with.
#
#     $KIT             the directory            $DOCKERD_PID   of the daemon, when there is one
#     $DOCKER_HOST     unix://... of the daemon (exported by kit_docker)
#     docker, podman   functions that run the distribution's clients against it
# shellcheck shell=bash

kit_program() { # name: the distribution's program, wherever else one may be
    local at
    for at in "/usr/sbin/$1" "/usr/bin/$1" "$(command -v "$1" 2>/dev/null)"; do
        if [ -n "$at" ] && [ -x "$at" ]; then
            echo "$at"
            return 0
        fi
    done
    return 1
}

kit_begin() { # DIR
    KIT=$1
    mkdir -p "$KIT/bin"
    # dockerd and podman find runc and their helpers on PATH; the distribution's client goes before any other.
    ln -sf "$(kit_program docker)" "$KIT/bin/docker" 2>/dev/null
    ln -sf "$(kit_program podman)" "$KIT/bin/podman" 2>/dev/null
    PATH=$KIT/bin:$PATH:/usr/sbin:/sbin
    export KIT PATH
    DOCKERD_PID=
}

# ---- docker

kit_docker() { # starts a daemon and waits until it answers
    local d=$KIT/docker i
    mkdir -p "$d"
    kit_docker_words=("$@")
    export DOCKER_HOST=unix://$d/socket
    # runc cannot raise limits that this machine's root may not raise: the container asks for what is there.
    dockerd --data-root "$d/data" --exec-root "$d/exec" --host "$DOCKER_HOST" --pidfile "$d/pid" \
        --group "${KIT_DOCKER_GROUP:-root}" --iptables=false --bridge=none --ip-forward=false --ip-masq=false \
        --default-ulimit nofile=20000:20000 "$@" >"$d/log" 2>&1 &
    DOCKERD_PID=$!
    for ((i = 0; i < 900; i++)); do
        if docker version >/dev/null 2>&1; then return 0; fi
        if ! kill -0 "$DOCKERD_PID" 2>/dev/null; then break; fi
        sleep 0.1
    done
    tail -n 20 "$d/log" >&2
    return 1
}

kit_docker_restart() { # as an upgrade does: its containers end with it; with other words for the daemon when there are any
    local i
    kill "$DOCKERD_PID" 2>/dev/null
    for ((i = 0; i < 900; i++)); do
        kill -0 "$DOCKERD_PID" 2>/dev/null || break
        sleep 0.1
    done
    wait "$DOCKERD_PID" 2>/dev/null
    [ $# = 0 ] || kit_docker_words=("$@")
    kit_docker "${kit_docker_words[@]}"
}

kit_docker_end() {
    [ -n "$DOCKERD_PID" ] || return 0
    local i left
    left=$(docker ps -aq 2>/dev/null)
    # shellcheck disable=SC2086 # a list of ids
    [ -z "$left" ] || docker rm -f $left >/dev/null 2>&1
    kill "$DOCKERD_PID" 2>/dev/null
    for ((i = 0; i < 900; i++)); do
        kill -0 "$DOCKERD_PID" 2>/dev/null || break
        sleep 0.1
    done
    kill -9 "$DOCKERD_PID" 2>/dev/null
    wait "$DOCKERD_PID" 2>/dev/null
    DOCKERD_PID=
}

# ---- podman

# Settings for podman in DIR/podman, for this user: the same runtime and limits as docker's above. Called again by another
# user with a DIR of its own.
kit_podman() { # DIR
    local d=$1 short
    # podman's own cleaning up refuses a runroot of more than fifty characters; kit_podman_end removes it.
    short=$(mktemp -d /tmp/pfk.XXXXXX) || return 1
    mkdir -p "$d/storage" "$d/conf"
    ln -sfn "$short" "$d/run"
    cat >"$d/conf/containers.conf" <<EOF
[containers]
default_ulimits = ["nofile=20000:20000", "nproc=1000:1000"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
EOF
    # podman 4 without netavark has CNI, which must be named; podman 5 knows netavark alone.
    [ -x /usr/lib/podman/netavark ] || printf '[network]\nnetwork_backend = "cni"\n' >>"$d/conf/containers.conf"
    cat >"$d/conf/storage.conf" <<EOF
[storage]
driver = "${KIT_PODMAN_DRIVER:-overlay}"
graphroot = "$d/storage"
runroot = "$short"
EOF
    cat >"$d/conf/policy.json" <<EOF
{"default": [{"type": "insecureAcceptAnything"}]}
EOF
    export CONTAINERS_CONF=$d/conf/containers.conf CONTAINERS_STORAGE_CONF=$d/conf/storage.conf
}

# ---- images

# A directory with busybox's applets, a passwd and what every image has, as a tar on stdout.
kit_busybox_tar() {
    local d=$KIT/busybox applet
    if [ ! -d "$d" ]; then
        mkdir -p "$d"/{bin,etc,tmp,proc,sys,dev,root,run,usr/bin,var/tmp,home}
        cp "$(kit_program busybox)" "$d/bin/busybox"
        for applet in $("$d/bin/busybox" --list); do
            [ -e "$d/bin/$applet" ] || ln -s busybox "$d/bin/$applet"
        done
        mkdir "$d/real" && ln -s real "$d/link"
        mkdir "$d/real/in" && echo 'behind a link' | tee "$d/real/kept" >"$d/real/in/kept"
        chmod 1777 "$d/tmp" "$d/var/tmp"
        echo 'root:x:0:0:root:/root:/bin/sh' >"$d/etc/passwd"
        echo 'root:x:0:' >"$d/etc/group"
        echo 'box image' >"$d/etc/kit-image"
        echo 'root:!:19000::::::' >"$d/etc/shadow"
        chmod 600 "$d/etc/shadow"
    fi
    tar -C "$d" --owner=0 --group=0 -cf - .
}

# busybox's image with an agent in it: it wants its login, and does as the prompt says.
kit_agent_tar() {
    local d=$KIT/agent
    if [ ! -d "$d" ]; then
        cp -a "$KIT/busybox" "$d"
        cat >"$d/bin/kiro-cli" <<'EOF'
#!/bin/sh
for prompt; do :; done
[ -s ~/.local/share/kiro-cli/data.sqlite3 ] || { echo "not logged in" >&2; exit 1; }
echo "agent in $(cat /etc/kit-image), cwd $PWD, login; $prompt"
touch by-the-agent || exit 3
case $prompt in *fail*) echo broken >&2; exit 9 ;; esac
EOF
        chmod 755 "$d/bin/kiro-cli"
    fi
    tar -C "$d" --owner=0 --group=0 -cf - .
}

# An image that somebody has to mend: a shell and little else, with powers and a secret.
kit_bad_tar() {
    local d=$KIT/bad
    if [ ! -d "$d" ]; then
        cp -a "$KIT/busybox" "$d"
        mkdir -p "$d/workspace/src" "$d/opt/open" "$d/usr/local/bin" "$d/etc/sudoers.d" "$d/home/node"
        echo 'PRETTY_NAME="Kit OS 1"' >"$d/etc/os-release"
        echo 'node:x:1000:1000::/home/node:/bin/sh' >>"$d/etc/passwd"
        printf '#!/bin/sh\n' >"$d/bin/sudo"
        printf '#!/bin/sh\n' >"$d/usr/local/bin/gains"
        rm -f "$d/bin/su" && printf '#!/bin/sh\n' >"$d/bin/su"
        chmod 4755 "$d/usr/local/bin/gains" "$d/bin/su" "$d/bin/sudo"
        chmod 777 "$d/opt/open" "$d/home/node" "$d/workspace"
        printf 'Defaults env_reset\nroot ALL=(ALL) ALL\nnode ALL=(ALL) \\\n NOPASSWD: ALL\n' >"$d/etc/sudoers"
        echo 'node ALL=(root) NOPASSWD: /usr/local/bin/init-firewall.sh ""' >"$d/etc/sudoers.d/firewall"
        chmod 440 "$d/etc/sudoers" "$d/etc/sudoers.d/firewall"
    fi
    tar -C "$d" --owner=0 --group=0 -cf - .
}

# An image with one static program and nothing else: no shell, no directories.
kit_bare_tar() {
    local d=$KIT/bare
    if [ ! -d "$d" ]; then
        mkdir -p "$d"
        cp "$(kit_program busybox)" "$d/echo"
    fi
    tar -C "$d" --owner=0 --group=0 -cf - .
}

# An archive of an image that says it is another machine's.
kit_foreign_tar() {
    python3 - "$KIT/bare.tar" <<'PY'
import hashlib, io, json, sys, tarfile
layer = open(sys.argv[1], "rb").read()
config = json.dumps({"architecture": "arm64", "os": "linux", "config": {},
                     "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(layer).hexdigest()]}}).encode()
name = hashlib.sha256(config).hexdigest() + ".json"
manifest = json.dumps([{"Config": name, "RepoTags": ["kit/foreign:1"], "Layers": ["layer.tar"]}]).encode()
with tarfile.open(fileobj=sys.stdout.buffer, mode="w|") as out:
    for path, content in ((name, config), ("layer.tar", layer), ("manifest.json", manifest)):
        info = tarfile.TarInfo(path)
        info.size = len(content)
        out.addfile(info, io.BytesIO(content))
PY
}

kit_images() { # docker|podman: imports busybox, bare
    kit_busybox_tar | "$1" import - kit/busybox:1 >/dev/null || return 1
    kit_bare_tar | "$1" import - kit/bare:1 >/dev/null
}

# What podman of this user keeps alive and mounted; before the directory is removed.
kit_podman_end() { # DIR, root|user: as tests/docker/run has them
    local pause=$1/podman/run/libpod/tmp/pause.pid short at
    as "$2" podman rm -fa >/dev/null 2>&1
    [ ! -r "$pause" ] || kill "$(cat "$pause")" 2>/dev/null
    short=$(readlink "$1/podman/run") || return 0 # it has never run; with no name here, every mount of the machine would be below it
    case $short in /tmp/pfk.?*) ;; *) return 0 ;; esac
    awk -v d="$short/" 'index($2, d) == 1 { print $2 }' /proc/self/mounts | sort -r | while read -r at; do umount -l "$at"; done
    rm -rf "$short"
}

# Mounts below the directory, which nobody else has made.
kit_end() {
    local at
    kit_docker_end
    case ${KIT%/*} in /?*) ;; *) return 0 ;; esac # or every mount of the machine would be below it
    awk '{ print $2 }' /proc/self/mounts | sort -r | while read -r at; do
        case $at in "${KIT%/*}"/*) umount -l "$at" 2>/dev/null ;; esac
    done
}
