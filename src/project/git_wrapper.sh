#!/bin/sh
# git in the boxes of a project: says in one sentence why what goes around the person's checks is refused. It is for the message
# alone; what holds is below it (the remote `host`, guarded names).
self=${0%/*}
refuse() {
    printf 'pinfold: git %s is refused in this box: %s\n' "$1" "$2" >&2
    exit 1
}
hooks='the hooks are the checks of whoever owns this repository; mend what they report, or ask for the commit to be made outside'
force='it rewrites what others have; push a new branch, or ask for it to be pushed outside'

# The policy may allow it for some branches (git.allow_force); the remote `host` knows which.
forced() {
    [ -e "${self%/bin}/force" ] || refuse "push $1" "$force"
}

config() { # NAME=VALUE
    case $1 in
    [Cc][Oo][Rr][Ee].[Hh][Oo][Oo][Kk][Ss][Pp][Aa][Tt][Hh]*) refuse "-c $1" "$hooks" ;;
    esac
}
case ${GIT_CONFIG_PARAMETERS-}${GIT_CONFIG_KEY_0-}${GIT_CONFIG_KEY_1-} in
*[Hh][Oo][Oo][Kk][Ss][Pp][Aa][Tt][Hh]*) refuse "with core.hooksPath in the environment" "$hooks" ;;
esac

# The first word that is no option of git's own is the command.
command='' value='' rest=''
for word; do
    if [ -n "$value" ]; then
        [ "$value" != -c ] || config "$word"
        value=''
    elif [ -z "$command" ]; then
        case $word in
        -C | --git-dir | --work-tree | --namespace | --exec-path | --super-prefix | --config-env | -c) value=$word ;;
        --config-env=*) config "${word#*=}" ;;
        -*) ;;
        *) command=$word ;;
        esac
    elif [ "$rest" != -- ]; then
        case $command:$word in
        *:--) rest=-- ;;
        *:--no-veri*) refuse "$command --no-verify" "$hooks" ;;
        commit:-[mFCct] | commit:--message | commit:--file | commit:--author | commit:--date | push:-o | push:--repo | push:--receive-pack) value=value ;;
        commit:--*) ;;
        commit:-*n*) # letters before one that takes a value
            letters=${word#-}
            letters=${letters%%[mFCctuS]*}
            case $letters in *n*) refuse 'commit -n' "$hooks" ;; esac
            case $word in *[mFCct]) value=value ;; esac
            ;;
        commit:-*[mFCct]) value=value ;;
        push:--force | push:--force-w* | push:--mirror) forced "$word" ;;
        push:--*) ;;
        push:-*f*) forced --force ;;
        push:+*) forced "$word" ;;
        esac
    fi
done

IFS=:
for at in $PATH; do
    if [ "$at" != "$self" ] && [ -x "$at/git" ] && [ ! -d "$at/git" ]; then
        unset IFS
        exec "$at/git" "$@"
    fi
done
printf 'git: command not found\n' >&2
exit 127
