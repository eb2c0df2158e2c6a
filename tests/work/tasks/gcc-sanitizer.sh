#!/bin/sh
# needs: gcc
# AddressSanitizer's leak check stops its own threads with ptrace, as a debugger does.
set -eu
printf '#include <stdlib.h>\nint main(void) { char *p = malloc(4); int r = p[0] = 0; free(p); return r; }\n' >a.c
gcc -g -fsanitize=address,undefined -o a a.c
./a
