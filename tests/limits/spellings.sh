#!/bin/sh
# Names that a file system which folds case by Unicode takes for guarded ones: none can be made in a box. On a disk with casefold, in a
# machine of its own (guest.sh --disk), as root. Lines of TAP.
#     spellings.sh PINFOLD
# shellcheck disable=SC2016 # the inner shells' words
# shellcheck disable=SC2319 # say takes the status of a condition
set -u
pinfold=$1
ignored=$(printf '\342\200\213') # U+200B
export HOME=/root
mkdir -p /root
if ! mount -t ext4 /dev/vda /mnt || ! mkdir /mnt/work || ! /usr/bin/chattr +F /mnt/work || ! cd /mnt/work; then
    echo "not ok 1 - spellings/disk"
    exit 1
fi

number=0
say() { # whether, name, why
    number=$((number + 1))
    if [ "$1" = 0 ]; then echo "ok $number - $2"; else echo "not ok $number - $2"; echo "# $3"; fi
}

try='mkdir -p ".vſcode"; echo x >".vſcode/tasks.json"; mkdir -p ".g${1}it/hooks"; echo x >".g${1}it/hooks/pre-commit"; echo x >".env${1}rc"; echo x >".gitconﬁg"; echo x >"Straße"'
made() {
    for name in .vscode .git .envrc .gitconfig; do [ ! -e $name ] || echo $name; done
}
echo 'echo secret' >.env
sh -c "$try" sh "$ignored" >/dev/null 2>&1
[ "$(made | tr '\n' ' ')" = ".vscode .git .envrc .gitconfig " ] && [ -e .git/hooks/pre-commit ]
say $? spellings/outside-they-are-the-guarded-ones "made: $(made)"
rm -rf .vscode .git .envrc .gitconfig Straße
said=$("$pinfold" run -- sh -c "$try"'; cat ".en${1}v"' sh "$ignored" 2>&1)
[ -z "$(made)" ] && [ -e Straße ] && [ "${said#*secret}" = "$said" ]
say $? spellings/in-a-box-they-are-refused "made: $(made); $said"
mkdir .vscode
said=$("$pinfold" run -- sh -c 'echo x >".vſcode/tasks.json"; mv ".vſcode" away; echo x >".vſcode"' 2>&1)
[ -d .vscode ] && [ -z "$(ls .vscode)" ]
say $? spellings/of-a-directory-that-is-there "$said; $(ls -la . .vscode)"
# In a layer such names can stand all the same, if another program made them: apply puts none on the disk.
rm -rf .vscode .env Straße
mkdir -p /root/plain && cd /root/plain || exit 1
"$pinfold" run -q --cow -- sh -c 'echo x >a' 2>&1
upper=$(find "$HOME/.local/state/pinfold/layers" -name a)
cd "${upper%/a}" && sh -c "$try" sh "$ignored"
cd /root/plain && said=$("$pinfold" apply --to /mnt/work --all 2>&1)
cd /mnt/work || exit 1
[ -e a ] && [ -e Straße ] && [ -z "$(made)" ]
say $? spellings/apply-refuses-them "made: $(made); $said"
echo "1..$number"
