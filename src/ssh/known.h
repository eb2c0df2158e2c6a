/*
 * known_hosts (sshd(8), "SSH_KNOWN_HOSTS FILE FORMAT"): which keys belong to the hosts that rules name. Pure.
 */
#pragma once
#include "match/host.h"
#include "base/str.h"

/*
 * Calls `found` for each key in the text `known` that belongs to a host and port which `rules` allow and none of them denies.
 * Entries that hide their names are tried with the names that rules spell out, at port 22, 443 and the rule's own. Keys of
 * certificate authorities are none of a host; a key that the text revokes is told with `revoked`.
 * `host` is "NAME" or "[NAME]:PORT". Stops, and returns false, when `found` does.
 */
typedef bool ssh_known_fn(void *ctx, const char *host, struct str key, bool revoked);
bool ssh_known_hosts(struct str known, const struct host_rule *rules, size_t n, ssh_known_fn *found, void *ctx);
