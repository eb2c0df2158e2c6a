# Has the person's hooks judge one commit as git would have at its making: a new work tree with its files, an index with its tree, its
# first parent as HEAD, its author in the environment. In a box of its own, which is thrown away.
#
#     NAME        of the project, and of the directory
#     REAL        the checkout's path
#     HOOKS       the directory of the hooks
#     COMMIT TREE REF PARENTS
#
# Ends with 0 if it passed. 91: a hook failed; 92: it changed files; 93: it changed the message; these write what there is to say.
# Anything else: the hooks could not be run.
# shellcheck shell=sh
name=$1 real=$2 hooks=$3 commit=$4 tree=$5 ref=$6 parents=$7
push=/repo-push dir=/repo-check/$name said=/repo-check/.said
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_OBJECT_DIRECTORY
export GIT_NO_REPLACE_OBJECTS=1 GIT_TERMINAL_PROMPT=0

mkdir -p "$dir/.git/objects/info" "$dir/.git/objects/pack" "$dir/.git/info" "$dir/.git/${ref%/*}" && cd "$dir" || exit 95
case ${#commit} in
40) printf '[core]\n\trepositoryformatversion = 0\n' ;;
*) printf '[core]\n\trepositoryformatversion = 1\n[extensions]\n\tobjectformat = sha256\n' ;;
esac >.git/config
[ ! -e "$push/repo/shallow" ] || cat "$push/repo/shallow" >.git/shallow
printf 'ref: %s\n' "$ref" >.git/HEAD
printf '%s/repo/objects\n' "$push" >.git/objects/info/alternates
[ "$parents" = - ] || printf '%s\n' "${parents%%,*}" >".git/$ref"
case $parents in
*,*) printf '%s\n' "${parents#*,}" | tr , '\n' >.git/MERGE_HEAD ;;
esac
git -c core.hooksPath=/dev/null read-tree -u --reset "$tree" >"$said" 2>&1 || {
    tail -n 3 "$said"
    exit 95
}
# What tools have installed beside the checkout's files is the person's; a work tree that is new has none of it.
for at in node_modules .venv venv; do
    if [ -d "$real/$at" ] && [ ! -e "$at" ]; then
        ln -s "$real/$at" "$at" && printf '/%s\n' "$at" >>.git/info/exclude
    fi
done
{
    read -r author
    read -r mail
    read -r date
} <"$push/commits/$commit.author"

run() { # hook, its arguments
    hook=$1
    shift
    (
        export GIT_AUTHOR_NAME="$author" GIT_AUTHOR_EMAIL="$mail" GIT_AUTHOR_DATE="$date"
        export GIT_INDEX_FILE=.git/index GIT_EDITOR=: GIT_PREFIX=
        unset GIT_NO_REPLACE_OBJECTS
        exec "$hooks/$hook" "$@"
    ) >"$said" 2>&1 </dev/null
    status=$?
    [ "$status" != 0 ] || return 0
    printf 'the hook %s failed with status %s\n' "$hook" "$status"
    tail -n 12 "$said" | cut -c 1-300
    exit 91
}

# The message first: it is judged before anything of this tree can have run.
if [ -x "$hooks/commit-msg" ]; then
    cat "$push/commits/$commit" >.git/COMMIT_EDITMSG
    run commit-msg .git/COMMIT_EDITMSG
    cmp -s "$push/commits/$commit" .git/COMMIT_EDITMSG || {
        printf 'the hook commit-msg changes the message\n'
        exit 93
    }
fi
[ -x "$hooks/pre-commit" ] || exit 0
run pre-commit
if git diff --quiet --no-ext-diff --ignore-submodules && git diff-index --cached --quiet --ignore-submodules "$tree"; then
    exit 0
fi
printf 'the hook pre-commit changes files\n'
{
    git diff --name-only --no-ext-diff --ignore-submodules
    git diff-index --cached --name-only --ignore-submodules "$tree"
} | sort -u | head -n 8
exit 92
