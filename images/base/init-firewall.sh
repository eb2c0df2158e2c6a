#!/bin/bash
# The firewall of a container that is started by hand: what is in allowed-hosts and GitHub can be reached, nothing else, and nothing
# comes in but to ports that were published (AGENT_SANDBOX_PUBLISH). Run as root, with NET_ADMIN, by the entry point, and by `sudo`
# whenever it should be set up anew. Everything is closed first, so a failure at any point leaves it closed. It ends with a check of
# what it did; without that it fails, and the entry point starts nothing. A process then resolves the names again each minute: an
# address that no answer has had for an hour is closed, also if that process dies.
#
# nftables where there is nft and the kernel takes it, otherwise iptables with ipset.
set -u
PATH=/usr/sbin:/usr/bin:/sbin:/bin
umask 077
export PATH LC_ALL=C

settings=/etc/agent-sandbox      # allowed-hosts; refresh: seconds until names are resolved again
state=/run/agent-sandbox         # root's: what was published, locks
meta=https://api.github.com/meta # the ranges of GitHub
lasts=3600                       # seconds that an address stays after the last answer that had it, and the ranges until they are fetched anew
way=                             # nft or iptables
published=                       # ports
resolvers=()                     # addresses

say() { echo "init-firewall: $*" >&2; }
fail() {
    [ -z "$way" ] || "${way}_close" 2>/dev/null # without an address that is allowed
    say "$*; the network stays closed"
    exit 1
}

# ---- what is public: a name must not open what lies around the container

is_public() { # ADDRESS[/BITS]
    case $1 in
    0.* | 10.* | 127.* | 169.254.* | 192.168.* | 22[4-9].* | 2[3-5]?.* | 100.6[4-9].* | 100.[7-9]?.* | 100.1[01]?.* | 100.12[0-7].*) return 1 ;;
    172.1[6-9].* | 172.2?.* | 172.3[01].* | 192.0.0.* | 192.0.2.* | 198.1[89].*) return 1 ;;
    */[0-7]) return 1 ;;
    2002:* | 2001:db8:* | 2001:0:* | 2001::*) return 1 ;; # tunnels of IPv4 addresses; documentation
    [23]???:*) case $1 in *[!0-9a-f:/]*) return 1 ;; esac ;;
    *[!0-9./]* | '') return 1 ;;
    *.*.*.*) ;;
    *) return 1 ;;
    esac
}

# ---- nftables: one table of our own

nft_works() { command -v nft >/dev/null && nft list tables >/dev/null 2>&1; }
nft_close() {
    local a ports='' resolve=''
    for a in "${resolvers[@]}"; do
        case $a in *:*) resolve+="ip6 daddr $a meta l4proto { tcp, udp } th dport 53 accept; " ;; *) resolve+="ip daddr $a meta l4proto { tcp, udp } th dport 53 accept; " ;; esac
    done
    for a in $published; do ports+="tcp dport $a accept; "; done
    nft -f - <<END
table inet sandbox
delete table inet sandbox
table inet sandbox {
    set hosts4 { type ipv4_addr; flags timeout; }
    set hosts6 { type ipv6_addr; flags timeout; }
    set ranges4 { type ipv4_addr; flags interval; auto-merge; }
    set ranges6 { type ipv6_addr; flags interval; auto-merge; }
    chain input {
        type filter hook input priority 0; policy drop;
        iif lo accept
        ct state established accept
        ct state related meta l4proto { icmp, ipv6-icmp } accept
        icmpv6 type { nd-router-advert, nd-neighbor-solicit, nd-neighbor-advert } ip6 hoplimit 255 accept
        $ports
    }
    chain forward { type filter hook forward priority 0; policy drop; }
    chain output {
        type filter hook output priority 0; policy drop;
        oif lo accept
        ct state established accept
        icmpv6 type { nd-router-solicit, nd-neighbor-solicit, nd-neighbor-advert } ip6 hoplimit 255 accept
        $resolve
        ip daddr @hosts4 tcp dport { 80, 443 } accept
        ip6 daddr @hosts6 tcp dport { 80, 443 } accept
        ip daddr @ranges4 tcp dport { 22, 80, 443 } accept
        ip6 daddr @ranges6 tcp dport { 22, 80, 443 } accept
        counter reject with icmpx type admin-prohibited
    }
}
END
}
nft_hosts() { # addresses; one that is there lasts again: its old entry goes in the same step
    local a set
    for a; do
        case $a in *:*) set=hosts6 ;; *) set=hosts4 ;; esac
        printf 'add element inet sandbox %s { %s }\ndelete element inet sandbox %s { %s }\nadd element inet sandbox %s { %s timeout %ss }\n' $set "$a" $set "$a" $set "$a" $lasts
    done | nft -f -
}
nft_ranges() { # 4 or 6, ranges
    local family=$1
    shift
    { echo "flush set inet sandbox ranges$family" && printf "add element inet sandbox ranges$family { %s }\n" "$@"; } | nft -f -
}
nft_is_closed() {
    local chain
    for chain in input output forward; do
        nft list chain inet sandbox $chain 2>/dev/null | grep -q "hook $chain .*policy drop;" || return 1
    done
}
nft_rejected() { nft list chain inet sandbox output | sed -n 's/.*counter packets \([0-9]*\) .* reject.*/\1/p'; }

# ---- iptables with ipset

iptables_works() { command -v iptables >/dev/null && command -v ip6tables >/dev/null && command -v ipset >/dev/null && ipset list -n >/dev/null 2>&1; }
iptables_rules() { # iptables|ip6tables 4|6 icmp
    local t=$1 n=$2 a
    $t -P INPUT DROP && $t -P OUTPUT DROP && $t -P FORWARD DROP && $t -F && $t -X &&
        $t -A INPUT -i lo -j ACCEPT && $t -A OUTPUT -o lo -j ACCEPT &&
        $t -A INPUT -m conntrack --ctstate ESTABLISHED -j ACCEPT && $t -A OUTPUT -m conntrack --ctstate ESTABLISHED -j ACCEPT &&
        $t -A INPUT -p "$3" -m conntrack --ctstate RELATED -j ACCEPT || return 1
    for a in $published; do $t -A INPUT -p tcp --dport "$a" -j ACCEPT || return 1; done
    for a in "${resolvers[@]}"; do
        case $n$a in 4*:* | 6*.*) continue ;; esac
        $t -A OUTPUT -p udp -d "$a" --dport 53 -j ACCEPT && $t -A OUTPUT -p tcp -d "$a" --dport 53 -j ACCEPT || return 1
    done
    if [ "$n" = 6 ]; then
        for a in 133 135 136; do $t -A OUTPUT -p ipv6-icmp --icmpv6-type $a -m hl --hl-eq 255 -j ACCEPT || return 1; done
        for a in 134 135 136; do $t -A INPUT -p ipv6-icmp --icmpv6-type $a -m hl --hl-eq 255 -j ACCEPT || return 1; done
    fi
    $t -A OUTPUT -p tcp -m multiport --dports 80,443 -m set --match-set "sandbox-hosts$n" dst -j ACCEPT &&
        $t -A OUTPUT -p tcp -m multiport --dports 22,80,443 -m set --match-set "sandbox-ranges$n" dst -j ACCEPT
}
iptables_close() {
    local n
    for n in 4 6; do
        ipset create -exist "sandbox-hosts$n" hash:ip family "inet${n#4}" timeout $lasts && ipset flush "sandbox-hosts$n" &&
            ipset create -exist "sandbox-ranges$n" hash:net family "inet${n#4}" && ipset flush "sandbox-ranges$n" || return 1
    done
    iptables_rules iptables 4 icmp && iptables -A OUTPUT -j REJECT --reject-with icmp-admin-prohibited &&
        iptables_rules ip6tables 6 ipv6-icmp && ip6tables -A OUTPUT -j REJECT --reject-with icmp6-adm-prohibited
}
iptables_hosts() {
    local a n
    for a; do
        case $a in *:*) n=6 ;; *) n=4 ;; esac
        echo "add sandbox-hosts$n $a timeout $lasts"
    done | ipset restore -exist
}
iptables_ranges() {
    local n=$1
    shift
    ipset create -exist sandbox-new hash:net family "inet${n#4}" && ipset flush sandbox-new && printf 'add sandbox-new %s\n' "$@" | ipset restore -exist &&
        ipset swap sandbox-new "sandbox-ranges$n" && ipset destroy sandbox-new
}
iptables_is_closed() {
    local t chain
    for t in iptables ip6tables; do
        for chain in INPUT OUTPUT FORWARD; do
            $t -S $chain 2>/dev/null | grep -qx -e "-P $chain DROP" || return 1
        done
    done
}
iptables_rejected() { iptables -nvxL OUTPUT | awk '$3 == "REJECT" { print $1 }'; }

# ---- what is allowed

# Every name at once: where no resolver answers, all of them together take as long as one.
resolve() { # prints addresses
    local host work address
    work=$(mktemp -d "$state/names.XXXXXX") || return 1
    while read -r host _; do
        case $host in '' | '#'* | *[!A-Za-z0-9.-]*) continue ;; esac
        timeout 20 getent ahosts "$host" | awk '{ print $1 }' >"$work/$host" &
    done < <(
        cat $settings/allowed-hosts
        echo
        echo api.github.com
    )
    wait
    for host in "$work"/*; do
        [ -s "$host" ] || say "${host##*/} does not resolve: not allowed"
        while read -r address _; do
            if is_public "$address"; then echo "$address"; else say "${host##*/} is at $address, which is no public address: not allowed"; fi
        done < <(sort -u "$host")
    done
    rm -rf "$work"
}
allow_hosts() {
    local addresses
    mapfile -t addresses < <(resolve)
    [ ${#addresses[@]} -gt 0 ] && "${way}_hosts" "${addresses[@]}" && allowed=${#addresses[@]}
}
# GitHub says its ranges itself; its address is among those of the names.
allow_github() {
    local document range ranges4=() ranges6=()
    document=$(curl -fsS --max-time 20 --max-filesize 4000000 "$meta") || return 1
    for range in $(jq -er '(.web + .api + .git)[]' <<<"$document"); do
        is_public "$range" || continue
        case $range in *:*) ranges6+=("$range") ;; *) ranges4+=("$range") ;; esac
    done
    [ ${#ranges4[@]} -gt 0 ] && "${way}_ranges" 4 "${ranges4[@]}" || return 1
    [ ${#ranges6[@]} = 0 ] || "${way}_ranges" 6 "${ranges6[@]}" || return 1
    ranges=$((${#ranges4[@]} + ${#ranges6[@]}))
}

# ---- beginning

choose_way() {
    if nft_works; then
        way=nft
    elif iptables_works; then
        way=iptables
    else
        fail "the packet filter cannot be used: it needs root, NET_ADMIN (docker run --cap-add NET_ADMIN), and nft, or iptables with ipset"
    fi
}

# The container's own resolvers, and those that docker's resolver on the loopback asks from here (ExtServers).
find_resolvers() {
    local word address rest
    while read -r word address rest; do
        case $word$address in
        nameserver*) address=${address%%%*} ;;
        '#ExtServers:') address=$(tr -d '[]' <<<"$rest") ;;
        *) continue ;;
        esac
        for word in $address; do
            case $word in
            127.* | *[!0-9a-f.:]*) ;; # through the loopback, or asked from elsewhere: host(...)
            *) resolvers+=("$word") ;;
            esac
        done
    done </etc/resolv.conf
}

# Ports that were published are said when the container is started, in a variable that sudo lets through. It counts the first time
# only, when the entry point calls this before anything else has run.
find_published() {
    local word
    if [ ! -e $state/published ]; then
        for word in ${AGENT_SANDBOX_PUBLISH//,/ }; do
            [[ $word =~ ^[0-9]{1,5}$ ]] && [ "$word" -ge 1 ] && [ "$word" -le 65535 ] || fail "AGENT_SANDBOX_PUBLISH: '$word' is no port; write numbers, such as 3000,8080"
            echo "$word"
        done >$state/published.new || fail "$state cannot be written"
        mv $state/published.new $state/published || fail "$state cannot be written"
    fi
    published=$(tr '\n' ' ' <$state/published) || fail "$state/published cannot be read"
}

begin() {
    [ "$(id -u)" = 0 ] || fail "it must be run by root: sudo /usr/local/bin/init-firewall.sh"
    [ -d $state ] || mkdir -m 700 $state || fail "$state cannot be made (a read-only container needs --tmpfs /run)"
    if [ ! -O $state ] || [ -L $state ]; then fail "$state is not root's"; fi
    exec 9>$state/lock || fail "$state cannot be written"
    flock -w 120 9 || fail "another init-firewall.sh has not ended for two minutes"
    choose_way
}

# ---- checked: the rules as the kernel has them, and a connection to where nothing is allowed

check() {
    local before after address
    "${way}_is_closed" || fail "the rules are not in the kernel as they should be ($way)"
    before=$("${way}_rejected")
    for address in 2001:db8::1 192.0.2.1; do
        if timeout 5 bash -c "</dev/tcp/$address/443" 2>/dev/null; then fail "an address that is not allowed ($address) was reached"; fi
    done
    after=$("${way}_rejected")
    [ "${after:-0}" -gt "${before:-0}" ] ||
        fail "whether the rules are in the way of packets cannot be checked: one to 192.0.2.1 was not refused by them (is there a network?)"
}

keep_fresh() {
    local every=60 next=$((SECONDS + lasts)) allowed ranges=0
    [ ! -r $settings/refresh ] || every=$(tr -dc 0-9 <$settings/refresh)
    exec 8>$state/refresh && flock -n 8 || exit 0 # one is enough; it takes the sets by their names
    while sleep "${every:-60}"; do
        : >$state/log # of the last time
        flock -w 120 9 || continue
        allow_hosts
        if [ $SECONDS -ge $next ]; then allow_github && next=$((SECONDS + lasts)); fi
        flock -u 9
    done
}

begin
if [ "${1-}" = keep-fresh ]; then # by itself: sudo takes no arguments
    flock -u 9
    keep_fresh
fi
allowed=0 ranges=0
find_resolvers
find_published
"${way}_close" || fail "a rule could not be set ($way): it needs root and NET_ADMIN"
allow_hosts || fail "no host could be resolved"
allow_github || say "GitHub's ranges cannot be fetched from $meta: only api.github.com is allowed"
check
setsid "$0" keep-fresh </dev/null >>$state/log 2>&1 9>&- &
say "$allowed addresses and $ranges ranges of GitHub are allowed ($way), and nothing else"
