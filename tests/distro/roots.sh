# For suites that work in another Debian's root, read by bash: . tests/distro/roots.sh     ($scratch, and wanted(), are the suite's)
# The minimal root of a Debian is made by mmdebstrap from the mirror that this machine's apt uses, or PINFOLD_DEBIAN_MIRROR, with the
# packages that wanted() prints, separated by commas. It is kept as an archive in PINFOLD_TEST_CACHE where that is set, for a week.
# shellcheck shell=bash disable=SC2154

# shellcheck disable=SC2016 # apt's words
mirror=${PINFOLD_DEBIAN_MIRROR-$(apt-get indextargets --format '$(ORIGIN) $(LABEL) $(REPO_URI)' 2>/dev/null | awk '$1 == "Debian" && $2 == "Debian" { print $3; exit }')}

# Ubuntu's archive, or PINFOLD_UBUNTU_MIRROR: Debian has no keys for it, so what comes is not checked, and runs in that root alone.
line_of() { # name: what apt reads its packages from
    case $1 in
    jammy | noble | questing | resolute) echo "deb [trusted=yes] ${PINFOLD_UBUNTU_MIRROR-http://archive.ubuntu.com/ubuntu} $1 main universe" ;;
    *) echo "deb $mirror $1 main" ;;
    esac
}

reachable() { # name
    python3 - "$(line_of "$1" | sed 's/.* \(http[^ ]*\|file[^ ]*\) .*/\1/')" "$1" <<'END'
import sys
import urllib.request
urllib.request.urlopen(f"{sys.argv[1].rstrip('/')}/dists/{sys.argv[2]}/InRelease", timeout=30).read(1)
END
}

root_of() { # name: makes $scratch/NAME, fresh
    local name=$1 archive='' kept=${PINFOLD_TEST_CACHE-}
    if [ -n "$kept" ] && mkdir -p "$kept"; then
        archive=$kept/$name-$(wanted | cksum | cut -d ' ' -f 1).tar
        [ -z "$(find "$archive" -mtime +7 2>/dev/null)" ] || rm -f "$archive"
    fi
    rm -rf "${scratch:?}/$name"
    if [ -z "$kept" ]; then # an archive would only be written and read once
        made "$name" directory "$scratch/$name" || return 1
        rm -rf "${scratch:?}/$name"/dev/*
        return 0
    fi
    if [ ! -e "$archive" ]; then
        made "$name" tar "$archive.new" || return 1
        mv "$archive.new" "$archive"
    fi
    mkdir "$scratch/$name"
    tar -xf "$archive" -C "$scratch/$name" --exclude='./dev/*'
}
# A mirror may be behind: how old its lists are is no matter here.
# shellcheck disable=SC2016 # for the hook's shell, which starts where this one is
made() { # name, format, place
    mmdebstrap --format="$2" --variant=minbase --include="$(wanted)" --aptopt='Acquire::Check-Valid-Until "false"' \
        --dpkgopt=force-unsafe-io --extract-hook='tests/distro/less "$1"' \
        "$1" "$3" "$(line_of "$1")" >"$scratch/$1.log" 2>&1
}

# This tree as a clone would have it.
copy_tree() { # directory
    mkdir -p "$1"
    if git -c safe.directory='*' rev-parse --git-dir >/dev/null 2>&1; then
        git -c safe.directory='*' ls-files -z -co --exclude-standard | while IFS= read -r -d '' file; do [ -e "$file" ] && printf '%s\0' "$file"; done
    else
        find . -path './build*' -prune -o -type f -print0
    fi | tar -c --null -T - | tar -x -C "$1"
}
