# shellcheck shell=sh
# Rows of a program in a machine of its own, which sources this: `. rows.sh`, with $part set to what begins their names. Lines of TAP.
: "${part:?}"
number=0
say() { # whether, name, why
    number=$((number + 1))
    if [ "$1" = 0 ]; then echo "ok $number - $part/$2"; else echo "not ok $number - $part/$2"; echo "$3" | sed 's/^/# /'; fi
}
has() { # NAME, output, words that must be in it
    of=$1 out=$2
    shift 2
    for word in "$@"; do
        case $out in *"$word"*) ;; *) say 1 "$of" "no '$word' in: $out"; return ;; esac
    done
    say 0 "$of"
}
