#!/bin/sh
# needs: node
set -eu
node -e '
const { Worker } = require("worker_threads");
const { execFileSync } = require("child_process");
const fs = require("fs");
fs.writeFileSync("a.txt", "hello");
fs.watch(".", () => {}).close();
if (execFileSync("cat", ["a.txt"]).toString() !== "hello") process.exit(1);
new Worker("require(\"worker_threads\").parentPort.postMessage(42)", { eval: true }).on("message", m => process.exit(m === 42 ? 0 : 1));
'
