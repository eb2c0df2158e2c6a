#!/bin/sh
# What runs in git's box (gitbox.c): land|look|merge|branch sha1|sha256 DIRECTORY-OF-OBJECTS...
# Standard input: an archive. Standard output: "F NAME SIZE", a line end and the bytes, of each part; "E" at the end.
set -eu
task=$1 kind=$2
shift 2
export LC_ALL=C HOME=/work GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null GIT_NO_REPLACE_OBJECTS=1 GIT_PAGER=cat
export GIT_TERMINAL_PROMPT=0 GIT_OPTIONAL_LOCKS=0 GIT_ATTR_NOSYSTEM=1
cd /work
tar -xf - --no-same-owner

# git would wait for ever for somebody who writes into a FIFO that it takes for an object.
odd=$(find "$@" ! -type f ! -type d ! -type l -print 2>/dev/null | head -n 1)
if [ -n "$odd" ]; then
    echo "the workspace has '.git$odd', which is neither a file nor a directory; remove it" >&2
    exit 1
fi

# a.git: the layer's objects, with their names as they claim them. b.git: what was taken in.
for name in a b; do
    git init -q --bare --template= --object-format="$kind" $name.git
    printf '%s\n' "$@" >$name.git/objects/info/alternates
    if [ -e in/shallow ]; then cp in/shallow $name.git/shallow; fi
done
for pack in a.git/objects/pack/pack-*.pack; do
    if [ -e "$pack" ]; then git -C a.git index-pack "${pack#a.git/}" >/dev/null; fi
done
types() { git -C "$1.git" cat-file --batch-check='%(objectname) %(objecttype)'; }
give() {
    printf 'F %s %s\n' "$1" "$(stat -c %s "$2")"
    cat "$2"
}
entries() { # a|b layer|host|base|new: the entries of an index, sorted. It is called in conditions, where set -e does not hold
    : >in/unsorted
    if [ -e "in/$2-index" ]; then
        GIT_INDEX_FILE=/work/in/$2-index git -C "$1.git" ls-files -s >in/unsorted || return 1
    fi
    sort in/unsorted >"in/$2"
}

if [ "$task" = merge ]; then # "N HASH": the base; in/m/N.ours and in/m/N.theirs
    while read -r n hash; do
        status=none
        if git -C b.git cat-file blob "$hash" >"in/m/$n.base" 2>/dev/null; then
            status=0
            git merge-file -q -p -L workspace -L start -L layer "in/m/$n.ours" "in/m/$n.base" "in/m/$n.theirs" >"in/m/$n.out" || status=$?
            if [ "$status" -gt 127 ]; then status=none; fi
        fi
        echo "$n $status"
    done <in/merges >in/merged
    give merged in/merged
    while read -r n hash; do
        if [ -e "in/m/$n.out" ]; then give "m$n" "in/m/$n.out"; fi
    done <in/merges
    echo E
    exit
fi

if [ "$task" = branch ]; then # a commit of files: in/modes, in/hashed and in/names by lines, in/gone
    export GIT_DIR=/work/a.git GIT_WORK_TREE=/work/wt GIT_INDEX_FILE=/work/in/branch-index
    mkdir wt
    head=$(cat in/was)
    git read-tree "$head"
    cp in/branch-index in/first-index
    : >in/hashes
    if [ -s in/hashed ]; then git hash-object -w --no-filters --stdin-paths <in/hashed >in/hashes; fi
    paste -d' ' in/modes in/hashes >in/x
    paste in/x in/names >in/added
    cat in/gone in/added | git -c core.protectHFS=true -c core.protectNTFS=true update-index --add --replace --index-info
    sed 's/\t/ 0\t/' in/added | sort >in/expected
    git ls-files -s | sort >in/have
    if [ -n "$(comm -23 in/expected in/have)" ]; then
        echo "a path among them may not be in a repository" >&2
        exit 1
    fi
    : >in/ignored
    if [ -e in/unnamed ]; then # what nobody has named and git ignores stays out
        git ls-files -z -- .gitignore '*/.gitignore' | git checkout-index -z --stdin
        mkdir -p a.git/info
        if [ -e in/exclude ]; then cp in/exclude a.git/info/exclude; fi
        status=0
        (cd wt && GIT_INDEX_FILE=/work/in/first-index git check-ignore -z --stdin) <in/unnamed >in/ignored || status=$?
        if [ $status -gt 1 ]; then exit 1; fi
        (cd wt && git update-index -z --force-remove --stdin) <in/ignored
    fi
    tree=$(git write-tree)
    if [ "$tree" = "$(git rev-parse "$head^{tree}")" ]; then
        echo "nothing of it differs from HEAD, but for what git ignores" >&2
        exit 1
    fi
    GIT_AUTHOR_NAME=$(cat in/name) GIT_AUTHOR_EMAIL=$(cat in/mail)
    export GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL GIT_COMMITTER_NAME="$GIT_AUTHOR_NAME" GIT_COMMITTER_EMAIL="$GIT_AUTHOR_EMAIL"
    git commit-tree -p "$head" -F in/message "$tree" >in/tips
    unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE
    give commit in/tips
    give ignored in/ignored
fi

# What the layers below have is known to the first one alone, and only looked at.
known=b
if [ -e in/below ] && [ "$task" = look ]; then known=a; fi
types $known <in/hosts | sed -n 's/ commit$//p' | sort -u >in/not
types a <in/tips | grep -v ' missing$' | cut -d' ' -f1 | sort -u >in/wanted || :

index=none
: >in/blobs
: >in/need
if [ -e in/layer-index ]; then
    index=bad
    if entries a layer && entries b host && entries b base; then
        comm -13 in/host in/layer >in/fresh
        { comm -23 in/host in/layer | sed 's/^[0-7]*/0/' && cat in/fresh; } >in/delta
        grep -v '^160000 ' in/fresh | cut -d' ' -f2 | sort -u >in/blobs || :
        git -C a.git hash-object -w --stdin </dev/null >/dev/null # of what was only announced (add -N)
        types b <in/blobs | sed -n 's/ missing$//p' >in/need
        index=moved
        if [ ! -s in/delta ]; then index=none; elif cmp -s in/base in/host; then index=same; fi
    fi
fi

if [ "$task" = look ]; then
    while read -r hash ref; do
        { echo "$hash" && sed 's/^/^/' in/not; } >in/range
        count=$(git -C a.git rev-list --count --stdin <in/range) || continue
        printf 'C %s %s\n' "$count" "$ref"
        git -C a.git log --stdin -n 20 --format='L %h %an: %s' <in/range
    done <in/heads >in/said
    head=$(cat in/head)
    if [ $index != none ] && [ $index != bad ] && [ -n "$head" ]; then
        GIT_INDEX_FILE=/work/in/layer-index git -C a.git diff-index --cached --name-status --no-renames "$head" >in/staged || :
        head -n 50 in/staged | tr '\t' ' ' | sed 's/^/S /' >>in/said
    fi
    give said in/said
    echo E
    exit
fi

types a <in/logged | sed -n 's/ commit$//p' | sort -u >in/more
{ cat in/wanted in/more in/need && echo --not && cat in/not; } |
    git -C a.git pack-objects --revs --stdout --thin --delta-base-offset -q >in/thin
git -C b.git -c pack.writeReverseIndex=false index-pack --strict --fix-thin --stdin <in/thin >in/name
name=$(cut -f2 in/name)
if [ $index = same ] || [ $index = moved ]; then
    if [ -e in/host-index ]; then cp in/host-index in/new-index; fi
    # Paths that may not be in a work tree are passed over by git: then it is not what the layer has.
    if ! GIT_INDEX_FILE=/work/in/new-index git -C b.git -c core.protectHFS=true -c core.protectNTFS=true update-index --index-info <in/delta ||
        ! entries b new || ! cmp -s in/new in/layer || types b <in/blobs | grep -qv ' blob$'; then index=bad; fi
fi
sort -u in/tips | types b >in/types
give types in/types
give pack "b.git/objects/pack/pack-$name.pack"
give idx "b.git/objects/pack/pack-$name.idx"
printf 'F index-state %s\n%s' ${#index} $index
if [ -e in/new-index ]; then give index in/new-index; fi
echo E
