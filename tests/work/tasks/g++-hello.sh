#!/bin/sh
# needs: g++
set -eu
printf '#include <iostream>\n#include <thread>\nint main() { std::thread t([] { std::cout << "hello\\n"; }); t.join(); }\n' >hello.cc
g++ -O1 -pthread -o hello hello.cc
test "$(./hello)" = hello
