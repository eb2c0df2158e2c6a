const assert = require("assert");
const { spawnSync } = require("child_process");
const left = require("left");
assert.strictEqual(left("x", 3), "  x");
const child = spawnSync(process.execPath, ["-p", "require('left')('y', 2)"], { cwd: __dirname });
assert.strictEqual(child.stdout.toString(), " y\n");
console.log("2 tests passed");
