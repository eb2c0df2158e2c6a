#!/bin/bash
# The firewall of a container that is started by hand: nothing goes out but to the hosts below, nothing comes in. Run as root, with
# NET_ADMIN, by the entry point, and again whenever addresses should be resolved anew. First everything is closed, so that a failure at
# any point leaves it closed; it ends with a check of what it did.
set -u
PATH=/usr/sbin:/usr/bin:/sbin:/bin
umask 077
export PATH LC_ALL=C

hosts=(
    registry.npmjs.org
    openrouter.ai
    api.openai.com auth.openai.com chatgpt.com
    api.anthropic.com console.anthropic.com claude.ai
    sentry.io
    statsig.anthropic.com statsig.com api.statsig.com
)
meta=https://api.github.com/meta # the ranges of GitHub

say() { echo "init-firewall: $*" >&2; }
fail() {
    say "$*; the network stays closed"
    exit 1
}

# ---- closed: from here on only what is added below passes

set -e
trap 'fail "a rule could not be set (line $LINENO): it needs root, NET_ADMIN, iptables and ipset"' ERR
for tables in iptables ip6tables; do
    $tables -P INPUT DROP
    $tables -P OUTPUT DROP
    $tables -P FORWARD DROP
    $tables -F
    $tables -X
    $tables -A INPUT -i lo -j ACCEPT
    $tables -A OUTPUT -o lo -j ACCEPT
    $tables -A INPUT -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT
    $tables -A OUTPUT -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT
done
ipset create -exist sandbox-allowed hash:net
ipset create -exist sandbox-new hash:net
ipset flush sandbox-new
trap - ERR
set +e

# Names are resolved by the container's own resolvers alone; those on the loopback (docker's) need no rule.
while read -r word address _; do
    [ "$word" = nameserver ] || continue
    case $address in
    *:*) ip6tables -A OUTPUT -p udp -d "$address" --dport 53 -j ACCEPT ;;
    *) iptables -A OUTPUT -p udp -d "$address" --dport 53 -j ACCEPT && iptables -A OUTPUT -p tcp -d "$address" --dport 53 -j ACCEPT ;;
    esac || fail "the resolver $address cannot be allowed"
done </etc/resolv.conf

# ---- what is allowed

is_public() { # ADDRESS[/BITS]: a name must not open what lies around the container
    case $1 in
    0.* | 10.* | 127.* | 169.254.* | 192.168.* | 22[4-9].* | 2[3-5]?.* | 100.6[4-9].* | 100.[7-9]?.* | 100.1[01]?.* | 100.12[0-7].*) return 1 ;;
    172.1[6-9].* | 172.2?.* | 172.3[01].*) return 1 ;;
    */[0-7]) return 1 ;;
    *[!0-9./]* | '') return 1 ;;
    esac
}
allowed=0
allow() {
    is_public "$1" || return 1
    ipset add -exist sandbox-new "$1" && allowed=$((allowed + 1))
}
for host in "${hosts[@]}"; do
    found=0
    for address in $(getent ahostsv4 "$host" | awk '{ print $1 }' | sort -u); do
        if allow "$address"; then found=1; else say "$host is at $address, which is no public address: not allowed"; fi
    done
    [ $found = 1 ] || say "$host does not resolve: not allowed"
done

# GitHub's ranges come from GitHub itself, whose address must be reachable for that.
iptables -A OUTPUT -p tcp --dport 443 -m set --match-set sandbox-allowed dst -j ACCEPT || fail "the list of addresses cannot be used"
iptables -A OUTPUT -p tcp --dport 22 -m set --match-set sandbox-allowed dst -j ACCEPT
iptables -A OUTPUT -p tcp --dport 80 -m set --match-set sandbox-allowed dst -j ACCEPT
for address in $(getent ahostsv4 api.github.com | awk '{ print $1 }' | sort -u); do allow "$address"; done
ipset swap sandbox-new sandbox-allowed || fail "the list of addresses cannot be used"
if ranges=$(curl -fsS --max-time 20 "$meta") && ranges=$(jq -er '(.web + .api + .git)[] | select(contains(":") | not)' <<<"$ranges"); then
    for range in $(aggregate -q <<<"$ranges"); do
        is_public "$range" && ipset add -exist sandbox-allowed "$range" && allowed=$((allowed + 1))
    done
else
    say "GitHub's ranges cannot be fetched: only api.github.com is allowed"
fi
ipset destroy sandbox-new
iptables -A OUTPUT -j REJECT --reject-with icmp-admin-prohibited
ip6tables -A OUTPUT -j REJECT --reject-with icmp6-adm-prohibited

# ---- checked: the policies as the kernel has them, and a host that is not listed

for tables in iptables ip6tables; do
    for chain in INPUT OUTPUT FORWARD; do
        $tables -S $chain 2>/dev/null | grep -qx -e "-P $chain DROP" || fail "$tables does not close $chain"
    done
done
if curl -sS --max-time 5 -o /dev/null https://example.com 2>/dev/null; then
    iptables -F OUTPUT
    fail "a host that is not allowed (example.com) was reached"
fi
[ $allowed -gt 0 ] || fail "no host could be resolved"
say "$allowed addresses and ranges are allowed, and nothing else"
