#!/bin/sh
# needs: python3
# Relative names follow the working directory of whoever asks, also while others ask.
set -eu
python3 - <<'END'
import os
for n in range(8):
    if os.fork() == 0:
        os.mkdir(f"w{n}")
        os.chdir(f"w{n}")
        for i in range(100):
            with open("../" * (i % 2) + f"f{n}-{i}", "w") as f:
                f.write("x")
        os._exit(0)
for _ in range(8):
    assert os.wait()[1] == 0
assert len([f for f in os.listdir(".") if f.startswith("f")]) == 400
END
