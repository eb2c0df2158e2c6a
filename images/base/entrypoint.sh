#!/bin/sh
# Entry point of the base image. In a box of pinfold's the network is the box's, and no program gains rights there, so that sudo does
# nothing; started by hand, the container sets up its firewall first, and does not start without it.
if [ -z "${PINFOLD-}" ] || ! grep -q '^NoNewPrivs:[[:space:]]*1$' /proc/self/status; then
    if ! sudo -n /usr/local/bin/init-firewall.sh; then
        echo "entrypoint: the firewall could not be set up, so nothing is started; give the container --cap-add NET_ADMIN, or use pinfold run" >&2
        exit 1
    fi
fi
[ $# -gt 0 ] || set -- bash
exec "$@"
