#!/bin/sh
# needs: python3
set -eu
python3 - <<'END'
import os, shutil
for i in range(2000):
    d = f"d{i % 20}"
    os.makedirs(d, exist_ok=True)
    with open(f"{d}/f{i}", "w") as f:
        f.write(str(i))
assert sum(len(f) for _, _, f in os.walk(".")) >= 2000
for i in range(20):
    shutil.rmtree(f"d{i}")
END
