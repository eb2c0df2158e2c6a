#!/bin/bash
# What a box of docker or podman costs beside the engine's own run of a container with the same mounts, network and limits:
# whole process of `true`, A B A B, medians. The daemon, the storage and the image are this script's own (tests/docker/kit.sh).
# containers.sh [PINFOLD] [ROUNDS]; as root for docker.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/docker/kit.sh
. "$here/../tests/docker/kit.sh"
pinfold=$(realpath "${1-$here/../build/pinfold}")
rounds=${2-15}
scratch=$(mktemp -d /var/tmp/pinfold-bench.XXXXXX)
mkdir "$scratch/work"
trap 'kit_podman_mine; kit_end; rm -rf "$scratch"' EXIT
kit_begin "$scratch/kit"
as() {
    shift
    "$@"
}
kit_podman_mine() { [ ! -d "$scratch/podman" ] || kit_podman_end "$scratch" root; }

milliseconds() { # words: how long they take
    local begin=${EPOCHREALTIME/./} end
    "$@" >/dev/null 2>&1 || { echo "bench: $* failed" >&2 && exit 1; }
    end=${EPOCHREALTIME/./}
    echo $(((end - begin) / 100))
}
median() { sort -n | awk '{ v[NR] = $1 } END { printf "%.1f", v[int((NR + 1) / 2)] / 10 }'; }

one() { # engine
    local engine=$1 own=(--rm --network none --read-only --cap-drop ALL --security-opt no-new-privileges --pids-limit 4162
        --tmpfs /tmp --tmpfs /var/tmp --tmpfs /run --tmpfs "$HOME" -v "$scratch/work:$scratch/work" -w "$scratch/work" --pull never)
    local i a=$scratch/a b=$scratch/b
    : >"$a"
    : >"$b"
    cd "$scratch/work"
    for ((i = 0; i < rounds + 2; i++)); do
        milliseconds "$engine" run "${own[@]}" kit/busybox:1 true >>"$a"
        sleep 0.3
        milliseconds "$pinfold" run -q --engine "$engine" --image kit/busybox:1 -- true >>"$b"
        sleep 0.5 # what the engine tidies up afterwards is nobody's time
    done
    sed -i 1,2d "$a" "$b"
    local x y
    x=$(median <"$a")
    y=$(median <"$b")
    printf '%-8s %8s ms    pinfold %8s ms    ratio %s\n' "$engine" "$x" "$y" "$(awk "BEGIN { printf \"%.2f\", $y / $x }")"
}

if [ "$(id -u)" = 0 ]; then
    kit_docker --experimental=false
    kit_images docker
    one docker
fi
kit_podman "$scratch/podman"
kit_images podman 2>/dev/null
one podman
