#!/bin/sh
# The box's own name leads to itself without a name server, as on every machine: Java, MPI and sudo look it up.
# needs: python3 java javac getent
# Java without its second compiler, which a program of a moment only waits for.
# outside: no
set -eu
getent hosts "$(hostname)" >/dev/null
[ "$(hostname -f)" = "$(hostname)" ]
getent hosts localhost >/dev/null
python3 -c 'import socket; assert socket.gethostbyname(socket.gethostname()).startswith("127."), "elsewhere"'
cat >Own.java <<'X'
public class Own {
    public static void main(String[] args) throws Exception {
        if (!java.net.InetAddress.getLocalHost().isLoopbackAddress())
            throw new Exception("elsewhere");
    }
}
X
java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto Own.java
X=$(getent hosts no-such-name.invalid) || exit 0
echo "a name is resolved without a network: $X"
exit 1
