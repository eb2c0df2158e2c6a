#!/bin/sh
set -eu
seq 1 1000 | xargs -P4 -n10 echo | tr ' ' '\n' | sort -n | tail -1 | grep -q '^1000$'
(sleep 0.1; echo late) | grep -q late
yes | head -n 100000 | wc -l | grep -q 100000
printf '#!/bin/sh\necho script\n' >s
chmod +x s
test "$(./s)" = script
cat >pipe.txt <<END
$(date +%Y)
END
sleep 100 &
kill $!
wait $! || test $? = 143
timeout 0.2 sleep 5 || test $? = 124
