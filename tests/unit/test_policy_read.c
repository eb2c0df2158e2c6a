/*
 * Reading policies: each mistake with its sentence and place. And what is taken as it should be.
 */
#include "policy_help.h"

static const struct {
    const char *text, *sentence;
} mistakes[] = {
    {"", "/home/u/p/f: there is nothing in it; a policy needs at least 'version: 1'"},
    {"# only a comment\n", "/home/u/p/f: there is nothing in it; a policy needs at least 'version: 1'"},
    {"version: 2\n", "/home/u/p/f:1:10: version: unknown version '2'; the only version is 1"},
    {"[1, 2]\n", "/home/u/p/f:1:1: a policy must be a mapping (lines of KEY: VALUE), not a list"},
    {"network: {allow: [a.test]}\n", "/home/u/p/f:1:1: unknown key 'network' (did you mean 'net'?)"},
    {"paths: [x]\n", "/home/u/p/f:1:1: unknown key 'paths' (did you mean 'files'?)"},
    {"files: {write: [x]}\n", "/home/u/p/f:1:9: unknown key 'files.write' (did you mean 'files.rw'?)"},
    {"net: {allowedDomains: [a.test]}\n",
     "/home/u/p/f:1:7: unknown key 'net.allowedDomains' (did you mean 'net.allow'?)"},
    {"memry: 5\n", "/home/u/p/f:1:1: unknown key 'memry' (did you mean 'limits.memory'?)"},
    {"memory: 512M\n", "/home/u/p/f:1:1: unknown key 'memory' (did you mean 'limits.memory'?)"},
    {"limits: {memry: 512M}\n", "/home/u/p/f:1:10: unknown key 'limits.memry' (did you mean 'limits.memory'?)"},
    {"limits: {memory: 512X}\n", "/home/u/p/f:1:18: limits.memory: '512X' is not a size (write 512M, 2G or none)"},
    {"limits: {memory: 0}\n",
     "/home/u/p/f:1:18: limits.memory: '0' is less than the minimum of 4M; write none for no limit"},
    {"limits: {memory: -1}\n", "/home/u/p/f:1:18: limits.memory: '-1' is not a size (write 512M, 2G or none)"},
    {"limits: {memory: 1e30}\n", "/home/u/p/f:1:18: limits.memory: '1e30' is not a size (write 512M, 2G or none)"},
    {"limits: {memory: 99999999999999999999}\n", "/home/u/p/f:1:18: limits.memory: '99999999999999999999' is more than "
                                                 "the maximum of 1048576T; write none for no limit"},
    {"limits: {memory: 100000000T}\n",
     "/home/u/p/f:1:18: limits.memory: '100000000T' is more than the maximum of 1048576T; write none for no limit"},
    {"limits: {pids: 1}\n",
     "/home/u/p/f:1:16: limits.pids: '1' is less than the minimum of 2; write none for no limit"},
    {"limits: {pids: 1.5}\n", "/home/u/p/f:1:16: limits.pids: '1.5' is not a count (write 50 or none)"},
    {"limits: {cpus: 0}\n",
     "/home/u/p/f:1:16: limits.cpus: '0' is less than the minimum of 0.01; write none for no limit"},
    {"limits: {cpus: lots}\n",
     "/home/u/p/f:1:16: limits.cpus: 'lots' is not a number of processors (write 0.5, 2, 50% or none)"},
    {"limits: {timeout: 1m1h}\n",
     "/home/u/p/f:1:19: limits.timeout: '1m1h' is not a time (write 90s, 2m, 1h30m or none)"},
    {"limits: {timeout: 0}\n",
     "/home/u/p/f:1:19: limits.timeout: '0' is less than the minimum of 1ms; write none for no limit"},
    {"limits: {grace: none}\n", "/home/u/p/f:1:17: limits.grace: 'none' is not a time (write 5s or 500ms)"},
    {"limits: [1]\n", "/home/u/p/f:1:9: limits must be a mapping, not a list"},
    {"limits:\n", "/home/u/p/f:1:8: limits has no value (write a mapping, or leave the key out)"},
    {"files: {rw: /data}\n", "/home/u/p/f:1:13: files.rw must be a list, as in [A, B], not text"},
    {"files: {rw: [{pth: /data}]}\n", "/home/u/p/f:1:15: unknown key 'pth' in files.rw (known: path, optional)"},
    {"files: {rw: [{path: [1]}]}\n",
     "/home/u/p/f:1:14: files.rw: an entry must be PATH or {path: PATH, optional: true}"},
    {"files: {rw: [[1]]}\n", "/home/u/p/f:1:14: an entry of files.rw must be a string, not a list"},
    {"files: {rw: ['']}\n", "/home/u/p/f:1:14: files.rw: the path is empty"},
    {"files: {rw: [null]}\n", "/home/u/p/f:1:14: an entry of files.rw is empty"},
    {"files: {rw: [/a], hide: [/a]}\n", "/home/u/p/f:1:26: files.hide: '/a' is also declared rw in line 1"},
    {"files: {rw: [/]}\n", "/home/u/p/f:1:14: files.rw: '/' is the whole file system; name directories below it"},
    {"files: {hide: [{path: /a, optional: true}]}\n",
     "/home/u/p/f:1:27: unknown key 'optional' in files.hide (known: path, absent)"},
    {"files: {hide: [{absent: true}]}\n",
     "/home/u/p/f:1:16: files.hide: an entry must be PATH or {path: PATH, absent: true}"},
    {"files: {hide: [{path: /a, absent: 1}]}\n", "/home/u/p/f:1:35: files.hide: absent is true or false"},
    {"files: {ro: [{path: /a, absent: true}]}\n",
     "/home/u/p/f:1:25: unknown key 'absent' in files.ro (known: path, optional)"},
    {"files: {hide: [/]}\n", "/home/u/p/f:1:16: files.hide: '/' is the whole file system; name directories below it"},
    {"files: {hide: [.]}\n", "/home/u/p/f:1:16: files.hide: '/home/u/p' is the workspace itself"},
    {"files: {hide: [\"/a/*/b\"]}\n",
     "/home/u/p/f:1:16: files.hide: '/a/*/b': only the last part of a path can have wildcards"},
    {"files: {hide: [\"/a/**\"]}\n", "/home/u/p/f:1:16: files.hide: '/a/**': ** must be followed by a name; a "
                                     "directory's name already includes everything below it"},
    {"files: {hide: [\"**/../x\"]}\n", "/home/u/p/f:1:16: files.hide: '**/../x': '.' and '..' cannot follow **"},
    {"files: {hide: [\"**/**/x\"]}\n", "/home/u/p/f:1:16: files.hide: '**/**/x': only the last part of a path can have "
                                       "wildcards, and ** can be used once"},
    {"files: {hide: [\"/a[b\"]}\n",
     "/home/u/p/f:1:16: files.hide: '/a[b' has a '[' without a ']'; write \\[ for the character"},
    {"files: {hide: [\"$NOPE/x\"]}\n", "/home/u/p/f:1:16: files.hide: '$NOPE/x': the variable NOPE is not set"},
    {"files: {hide: [\"${NOPE\"]}\n",
     "/home/u/p/f:1:16: files.hide: '${NOPE': '$' begins a variable, as in ${HOME}; write \\$ for the character"},
    {"files: {hide: [\"~root/x\"]}\n", "/home/u/p/f:1:16: files.hide: '~root/x': only ~ and ~/ are supported, not "
                                       "another user's home; write \\~ for the character"},
    {"files: {hide: [\"a\\0b\"]}\n", "/home/u/p/f:1:16: files.hide: 'a' contains a NUL byte"},
    {"files: {hide: [\"a\\\\\"]}\n",
     "/home/u/p/f:1:16: files.hide: 'a\\': a backslash escapes the next character; there is none"},
    {"version: 1\nversion: 1\n", "/home/u/p/f:2:1: duplicate key 'version', first in line 1"},
    {"a: &x 1\n", "/home/u/p/f:1:4: anchors (&name) are not supported; write the value out"},
    {"a: *x\n",
     "/home/u/p/f:1:4: aliases (*name) are not supported; write the value out, in quotes if it begins with '*'"},
    {"a: !!str x\n", "/home/u/p/f:1:4: tags (!name) are not supported; remove the tag"},
    {"--- \nversion: 1\n---\nversion: 1\n",
     "/home/u/p/f:3:1: a second document begins here; a policy is a single document"},
    {"version: 1\n\tx: 2\n", "/home/u/p/f:2:1: tab character; YAML is indented with spaces"},
    {"files:\n\trw: [/a]\n", "/home/u/p/f:2:1: tab character; YAML is indented with spaces"},
    {"files:\n  hide: [**/.env]\n",
     "/home/u/p/f:2:11: a YAML string that begins with '*' needs quotes, as in \"**/.env\""},
    {"\xef\xbb\xbfversion: 1\nfiles:\n  hide: [**/.env]\n",
     "/home/u/p/f:3:11: a YAML string that begins with '*' needs quotes, as in \"**/.env\""},
    {"env: {set: {A: `x`}}\n", "/home/u/p/f:1:16: a YAML string that begins with '`' needs quotes, as in \"`name\""},
    {"\xff\xfev", "/home/u/p/f:1:1: this is UTF-16: save the file as UTF-8"},
    {"net: {allow: [localhost]}\n", "/home/u/p/f:1:15: net.allow: 'localhost': inside the box this address is the box "
                                    "itself; for a service of this machine: net.reach (--reach 127.0.0.1:PORT)"},
    {"net: {allow: [\"127.0.0.1:80\"]}\n",
     "/home/u/p/f:1:15: net.allow: '127.0.0.1:80': inside the box this address is the box itself; for a service of "
     "this machine: net.reach (--reach 127.0.0.1:PORT)"},
    {"{\"version\": 1, \"limits\": {\"pids\": 50}\n",
     "/home/u/p/f:2:1: neither YAML nor JSON: while parsing a flow mapping, did not find expected ',' or '}'"},
    {"net: {mode: maybe}\n", "/home/u/p/f:1:13: net.mode: 'maybe' is not one of none, allow, host"},
    {"net: {mode: alow}\n",
     "/home/u/p/f:1:13: net.mode: 'alow' is not one of none, allow, host (did you mean 'allow'?)"},
    {"net: {allow: [exa mple.com]}\n", "/home/u/p/f:1:15: net.allow: 'exa mple.com' is not DOMAIN[:PORT], *.DOMAIN, an "
                                       "address or a CIDR range such as 10.0.0.0/8"},
    {"net: {allow: [\"-x.com\"]}\n",
     "/home/u/p/f:1:15: net.allow: '-x.com' is not a domain: one of its labels begins or ends with '-'"},
    {"net: {allow: [\"x..com\"]}\n",
     "/home/u/p/f:1:15: net.allow: 'x..com' is not a domain: one of its labels is empty"},
    {"net: {allow: [\"1.2.3\"]}\n", "/home/u/p/f:1:15: net.allow: '1.2.3' ends in a number but is not a complete "
                                    "address; write all four decimal numbers, such as 192.0.2.10"},
    {"net: {allow: [\"10.0.0.1/8\"]}\n",
     "/home/u/p/f:1:15: net.allow: '10.0.0.1/8' has bits set after its prefix; write the range's first address"},
    {"net: {allow: [\"10.0.0.0/33\"]}\n",
     "/home/u/p/f:1:15: net.allow: '10.0.0.0/33' has a prefix length that is not a number from 0 to 32"},
    {"net: {allow: [\"x.com:0\"]}\n",
     "/home/u/p/f:1:15: net.allow: 'x.com:0' has a port that is not a number from 1 to 65535"},
    {"net: {allow: [\"x.com:70000\"]}\n",
     "/home/u/p/f:1:15: net.allow: 'x.com:70000' has a port that is not a number from 1 to 65535"},
    {"net: {allow: [\"[::1:443\"]}\n", "/home/u/p/f:1:15: net.allow: '[::1:443' has no ']' after the address"},
    {"net: {allow: [\"fe80::1/10\"]}\n",
     "/home/u/p/f:1:15: net.allow: 'fe80::1/10' has bits set after its prefix; write the range's first address"},
    {"net: {mode: none, allow: [x.com]}\n",
     "/home/u/p/f:1:27: net.allow: allowing hosts needs the network 'allow', not 'none' (use mode: allow)"},
    {"net: {mode: host, allow: [x.com]}\n",
     "/home/u/p/f:1:27: net.allow: allowing hosts needs the network 'allow', not 'host' (use mode: allow)"},
    {"net: {mode: host, ask: true}\n",
     "/home/u/p/f:1:24: net.ask: asking for hosts needs the network 'allow', not 'host' (use mode: allow)"},
    {"net: {ask: maybe}\n", "/home/u/p/f:1:12: net.ask: 'maybe' is not true or false"},
    {"net: {ask_time: none}\n", "/home/u/p/f:1:17: net.ask_time: 'none' is not a time (write 30s)"},
    {"net: {ask_time: 2h}\n", "/home/u/p/f:1:17: net.ask_time: '2h' is more than the maximum of 1h"},
    {"net: {ask_time: 10ms}\n", "/home/u/p/f:1:17: net.ask_time: '10ms' is less than the minimum of 1s"},
    {"net: {deny_ports: [0]}\n",
     "/home/u/p/f:1:20: net.deny_ports: '0' is not a port from 1 to 65535 or a range such as 6000-6063"},
    {"net: {deny_ports: [70000]}\n",
     "/home/u/p/f:1:20: net.deny_ports: '70000' is not a port from 1 to 65535 or a range such as 6000-6063"},
    {"net: {deny_ports: [10-5]}\n",
     "/home/u/p/f:1:20: net.deny_ports: '10-5': the end of the range is below its start"},
    {"net: {publish: [\"x:1\"]}\n", "/home/u/p/f:1:17: net.publish: 'x:1' is not [ADDR:][HOST:]BOX with ports from 1 "
                                    "to 65535, such as 3000, 8080:3000 or [::1]:8080:3000"},
    {"net: {reach: [x.com]}\n",
     "/home/u/p/f:1:15: net.reach: 'x.com' is not HOST:PORT of one service, such as 127.0.0.1:5432"},
    {"env: {pass: [\"A=B\"]}\n",
     "/home/u/p/f:1:14: env.pass: 'A=B' is not a variable's name or a prefix followed by '*'"},
    {"env: {pass: [\"A*B\"]}\n",
     "/home/u/p/f:1:14: env.pass: 'A*B' is not a variable's name or a prefix followed by '*'"},
    {"env: {set: [A]}\n", "/home/u/p/f:1:12: env.set must be a mapping of NAME: VALUE, not a list"},
    {"env: {set: {A: }}\n", "/home/u/p/f:1:13: env.set: A has no value (write \"\" for an empty one)"},
    {"env: {set: {\"A B\": 1}}\n", "/home/u/p/f:1:13: env.set: 'A B' is not a variable's name"},
    {"user: nobody\n", "/home/u/p/f:1:7: user: 'nobody' is not keep, root or UID:GID"},
    {"user: \"1000\"\n", "/home/u/p/f:1:7: user: '1000' is not keep, root or UID:GID"},
    {"user: \"1000:4294967295\"\n", "/home/u/p/f:1:7: user: '1000:4294967295' is not keep, root or UID:GID"},
    {"image: -v/:/host\n", "/home/u/p/f:1:8: image: '-v/:/host' is not an image's name, such as debian:12"},
    {"hostname: a_b\n",
     "/home/u/p/f:1:11: hostname: 'a_b' is not a host name: only letters, digits, '-' and '.' are allowed"},
    {"engine: dockr\n", "/home/u/p/f:1:9: engine: 'dockr' is not one of auto, native, bwrap, firejail, nsjail, docker, "
                        "podman, vm, seatbelt (did you mean 'docker'?)"},
    {"may_lose: [pid-namspace]\n",
     "/home/u/p/f:1:12: may_lose: unknown guarantee 'pid-namspace' (did you mean 'pid-namespace'?)"},
    {"may_lose: [zzz]\n",
     "/home/u/p/f:1:12: may_lose: unknown guarantee 'zzz'; for their names see: pinfold doctor, man pinfold-policy"},
    {"guard_names: {root: [\"a/*\"]}\n",
     "/home/u/p/f:1:22: guard_names.root: 'a/*': guarded names are exact, without wildcards"},
    {"guard_names: {root: [\"**/a/b\"]}\n",
     "/home/u/p/f:1:22: guard_names.root: '**/a/b': **/ must be followed by one name, without a slash"},
    {"guard_names: {root: [\"**/\"]}\n", "/home/u/p/f:1:22: guard_names.root: '**/' is not a name"},
    {"guard_names: {any_depth: [\"**/a\"]}\n",
     "/home/u/p/f:1:27: guard_names.any_depth: '**/a': guarded names are exact, without wildcards"},
    {"guard_names: {root: [\"/a\"]}\n", "/home/u/p/f:1:22: guard_names.root: '/a': a guarded name is relative to a "
                                        "writable tree; use files.protect for a single path"},
    {"guard_names: {root: [\"a//b\"]}\n", "/home/u/p/f:1:22: guard_names.root: 'a//b' is not a plain relative name"},
    {"guard_names: {allow: [.vscod]}\n",
     "/home/u/p/f:1:23: guard_names.allow: '.vscod' is not a guarded name; list them with: pinfold policy print"},
    {"guard_names: {allow: [.vscode], root: [.vscode/]}\n",
     "/home/u/p/f:1:23: guard_names.allow: '.vscode' is both guarded and allowed here"},
    {"extends: workspce\n", "/home/u/p/f:1:10: unknown profile 'workspce' (did you mean 'workspace'?)"},
    {"extends: ./nope.yaml\n", "/home/u/p/f:1:10: the file that this extends does not exist: /home/u/p/nope.yaml"},
    {"extends: zzzzzz\n", "/home/u/p/f:1:10: unknown profile 'zzzzzz' (known: workspace, readonly, untrusted, "
                          "restrictive, permissive; write a file as ./FILE)"},
    {"workspace: /\n", "/home/u/p/f:1:12: the workspace would be '/', the whole file system; change to a project's "
                       "directory or use --workspace DIR"},
    {"workspace: ~\n", "/home/u/p/f:1:12: the workspace would be your whole home directory; change to a project's "
                       "directory or use --workspace DIR"},
    {"workspace: /home\n", "/home/u/p/f:1:12: the workspace '/home' contains your home directory; change to a "
                           "project's directory or use --workspace DIR"},
    {"allow_nested_userns: yes\n", "/home/u/p/f:1:22: allow_nested_userns: 'yes' is not true or false"},
    {"tty: [1]\n", "/home/u/p/f:1:6: tty must be text, not a list"},
    {"files: {rw: [~/.config/pinfold/x]}\n",
     "/home/u/p/f:1:14: path '/home/u/.config/pinfold/x' belongs to pinfold and stays hidden in every box"},
    {"files: {mounts: [\"~/.config/pinfold:/c\"]}\n",
     "/home/u/p/f:1:18: mount '/home/u/.config/pinfold' belongs to pinfold and stays hidden in every box"},
    {"files: {storage: [/]}\n",
     "/home/u/p/f:1:19: files.storage: '/' is the whole file system; name directories below it"},
    {"files: {mounts: [\"/a\"]}\n", "/home/u/p/f:1:18: files.mounts: '/a' is not SRC:DST, SRC:DST:ro or "
                                    "SRC:DST:nolinks (write \\: for a colon in a path)"},
    {"files: {mounts: [\"/a:b\"]}\n",
     "/home/u/p/f:1:18: files.mounts: 'b' is relative; the path inside the box must be absolute"},
    {"files: {mounts: [\"/a:/b:xx\"]}\n", "/home/u/p/f:1:18: files.mounts: '/a:/b:xx' is not SRC:DST, SRC:DST:ro or "
                                          "SRC:DST:nolinks (write \\: for a colon in a path)"},
    {"files: {mounts: [{from: /a}]}\n",
     "/home/u/p/f:1:18: an entry of files.mounts must be SRC:DST[:ro] or {from: SRC, to: DST, read_only: true}"},
    {"files: {rw: [./.pinfold]}\n",
     "/home/u/p/f:1:14: path '/home/u/p/.pinfold' belongs to pinfold and stays as it is in every box"},
    {"net: {unix_sockets: [/etc/pinfold/s]}\n",
     "/home/u/p/f:1:22: socket '/etc/pinfold/s' belongs to pinfold and stays as it is in every box"},
    {"files: {rw: [/etc/pinfold]}\n",
     "/home/u/p/f:1:14: path '/etc/pinfold' belongs to pinfold and stays as it is in every box"},
    {"files: {protct: [x]}\n", "/home/u/p/f:1:9: unknown key 'files.protct' (did you mean 'files.protect'?)"},
    {"file: {rw: [x]}\n", "/home/u/p/f:1:1: unknown key 'file' (did you mean 'files'?)"},
    {"limit: {memory: 1G}\n", "/home/u/p/f:1:1: unknown key 'limit' (did you mean 'limits'?)"},
    {"files.rw: [x]\n", "/home/u/p/f:1:1: unknown key 'files.rw': sections are nested; write files: {rw: ...}"},
};

static void each_mistake_has_its_sentence_and_place(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++)
        bad(mistakes[i].text, mistakes[i].sentence);
}

static void json_is_read_as_the_yaml_that_it_is(void **state)
{
    (void)state;
    struct policy *a = good("\t\n\t {\"version\": 1, \"files\": {\"rw\": [\"\\/data\\u002fx\", \"\\uD83D\\uDE00\"]},\n"
                            "\t\"limits\":{\"pids\":50,\"memory\":\"512M\"},\"net\":{\"allow\":[\"x.com:443\"]}}");
    assert_non_null(rule_for(a, "/data/x"));
    assert_non_null(rule_for(a, "/home/u/p/\xF0\x9F\x98\x80"));
    assert_int_equal(a->limits.processes.value, 50);
    assert_int_equal(a->limits.memory.value, 512 << 20);
    assert_int_equal(a->net, NET_ALLOW);
    struct policy *b = good("version: 1\nfiles:\n  rw:\n  - /data/x\n  - \"\\U0001F600\"\n"
                            "limits: {pids: 50, memory: 512M}\nnet: {allow: ['x.com:443']}\n");
    assert_true(policy_equal(a, b));
    policy_free(a);
    policy_free(b);
}

static void names_may_hold_any_byte(void **state)
{
    (void)state;
    struct policy *p =
        good("files: {rw: [\"/a\\xFF\\x80b\", '/c d', \"/e\\nf\\\"g\", /h'i, \"/\\u00ff\", \"/\xC3\xA9\\xe9\"]}");
    assert_non_null(rule_for(p, "/a\xFF\x80"
                                "b"));
    assert_non_null(rule_for(p, "/c d"));
    assert_non_null(rule_for(p, "/e\nf\"g"));
    assert_non_null(rule_for(p, "/h'i"));
    assert_non_null(rule_for(p, "/\xC3\xBF"));
    assert_non_null(rule_for(p, "/\xC3\xA9\xE9"));
    policy_free(p);
}

static void a_stranger_cannot_write_on_the_terminal(void **state)
{
    (void)state;
    bad("net: {mode: \"\\e[31mred\\u009b\"}",
        "/home/u/p/f:1:13: net.mode: '\\x1b[31mred\\xc2\\x9b' is not one of none, allow, host");
}

static void size_depth_and_number_have_ceilings(void **state)
{
    (void)state;
    struct buf deep = BUF(1 << 20), wide = BUF(4 << 20), large = BUF(4 << 20);
    buf_text(&deep, "files: ");
    for (int i = 0; i < 40; i++)
        buf_char(&deep, '[');
    bad(buf_cstr(&deep), "/home/u/p/f:1:39: the policy is nested too deeply");
    buf_text(&wide, "files:\n  rw:\n");
    for (int i = 0; i < MAX_POLICY_RULES + 1; i++)
        buf_printf(&wide, "  - /d/%d\n", i);
    bad(buf_cstr(&wide), "/home/u/p/f:20003:5: too many rules (a policy can have 20000)");
    for (unsigned i = 0; i < MAX_POLICY_TEXT; i++)
        buf_char(&large, '#');
    buf_char(&large, '\n');
    bad(buf_cstr(&large), "/home/u/p/f: the file has 1048577 bytes; a policy can have at most 1048576");
    buf_free(&deep);
    buf_free(&wide);
    buf_free(&large);
}

static void flags_say_what_keys_say(void **state)
{
    (void)state;
    static const char *const flags[] = {"rw",
                                        "/data",
                                        "ro",
                                        "sub",
                                        "hide",
                                        "**/.env",
                                        "protect",
                                        "Makefile",
                                        "mount",
                                        "/src:/dst:ro",
                                        "memory",
                                        "1G",
                                        "cpus",
                                        "50%",
                                        "pids",
                                        "50",
                                        "disk",
                                        "1G",
                                        "timeout",
                                        "60s",
                                        "grace",
                                        "1",
                                        "output",
                                        "16M",
                                        "env",
                                        "A=b=c",
                                        "env",
                                        "B",
                                        "unset",
                                        "LC_*",
                                        "user",
                                        "root",
                                        "tty",
                                        "never",
                                        "engine",
                                        "native",
                                        "image",
                                        "debian:12",
                                        "allow",
                                        "Example.COM.",
                                        "deny",
                                        "*",
                                        "deny-port",
                                        "25",
                                        "publish",
                                        "3000",
                                        "reach",
                                        "db:5432",
                                        "unix-socket",
                                        "/run/x",
                                        "guard",
                                        "existing",
                                        "expand",
                                        "start",
                                        "hostname",
                                        "box",
                                        "allow-nested-userns",
                                        NULL,
                                        "read-only",
                                        NULL,
                                        "may-lose",
                                        "hides",
                                        "open-files",
                                        "1024",
                                        "cache",
                                        "/c",
                                        "must-have",
                                        "pid-namespace",
                                        NULL};
    struct policy *p = flags_good(flags);
    assert_int_equal(rule_for(p, "/data")->access, PATH_RW);
    assert_int_equal(rule_for(p, "/home/u/p/sub")->access, PATH_RO);
    const struct path_rule *env = rule_for(p, ".env");
    assert_true(env->any_depth && !env->pattern && env->access == PATH_HIDE);
    assert_string_equal(env->below, "/");
    assert_int_equal(rule_for(p, "/home/u/p/Makefile")->access, PATH_PROTECT);
    assert_int_equal(rule_for(p, "/c")->access, PATH_CACHE);
    assert_int_equal(p->n_mounts, 1);
    assert_true(p->mounts[0].read_only);
    assert_int_equal(p->limits.cpus.value, 500);
    assert_true(p->limits.cpus.asked);
    assert_int_equal(p->limits.timeout.value, 60000);
    assert_int_equal(p->limits.open_files.value, 1024);
    assert_int_equal(p->user, USER_ROOT);
    assert_int_equal(p->tty, TTY_NEVER);
    assert_string_equal(p->engine, "native");
    assert_string_equal(p->image, "debian:12");
    assert_int_equal(p->net, NET_ALLOW);
    assert_int_equal(p->guard, GUARD_EXISTING);
    assert_int_equal(p->expand, EXPAND_START);
    assert_true(p->allow_nested_userns && p->workspace_read_only);
    assert_true(p->may_lose & F(HIDES));
    assert_false(p->may_lose & F(PID_NAMESPACE));
    bool set = false, passed = false, removed = false, allowed = false, published = false;
    for (size_t i = 0; i < p->n_env; i++) {
        set = set || (same(p->env[i].name, "A") && same(p->env[i].value, "b=c"));
        passed = passed || (same(p->env[i].name, "B") && !p->env[i].value && !p->env[i].remove);
        removed = removed || (same(p->env[i].name, "LC_*") && p->env[i].remove);
    }
    for (size_t i = 0; i < p->n_net_rules; i++) {
        allowed = allowed || (p->net_rules[i].verb == NET_RULE_ALLOW && same(p->net_rules[i].text, "example.com"));
        published = published || (p->net_rules[i].verb == NET_RULE_PUBLISH && same(p->net_rules[i].text, "3000:3000"));
    }
    assert_true(set && passed && removed && allowed && published);
    char text[64];
    assert_string_equal(policy_origin(p, rule_for(p, "/data")->origin, text, sizeof text), "--rw");
    policy_free(p);
}

static void mistakes_in_flags_name_the_flag(void **state)
{
    (void)state;
    flags_bad((const char *const[]){"memory", "512X", NULL}, "--memory: '512X' is not a size (write 512M, 2G or none)");
    flags_bad((const char *const[]){"memmory", "1G", NULL}, "--memmory: unknown option (did you mean --memory?)");
    flags_bad((const char *const[]){"zzzzzzzz", "1G", NULL}, "--zzzzzzzz: unknown option");
    flags_bad((const char *const[]){"rw", NULL, NULL}, "--rw: needs a value, PATH");
    flags_bad((const char *const[]){"rw", "/a", "hide", "/a", NULL}, "--hide: '/a' is also declared rw by --rw");
    flags_bad((const char *const[]){"net", "host", "allow", "x.com", NULL},
              "--allow: allowing hosts needs the network 'allow', not 'host' (use --net allow, or leave --net out)");
    flags_bad((const char *const[]){"profile", "untrustd", NULL},
              "--profile: unknown profile 'untrustd' (did you mean 'untrusted'?)");
    flags_bad((const char *const[]){"workspace", "/", NULL},
              "--workspace: the workspace would be '/', the whole file system; change to a project's directory or use "
              "--workspace DIR");
    flags_bad((const char *const[]){"rw", "/etc/pinfold/x", NULL},
              "--rw: path '/etc/pinfold/x' belongs to pinfold and stays as it is in every box");
    flags_bad(
        (const char *const[]){"mount", "/a:/b:/c:/d:/e", NULL},
        "--mount: '/a:/b:/c:/d:/e' is not SRC:DST, SRC:DST:ro or SRC:DST:nolinks (write \\: for a colon in a path)");
    flags_bad((const char *const[]){"mount", "/a:/b:ro\\", NULL},
              "--mount: '/a:/b:ro\\' is not SRC:DST, SRC:DST:ro or SRC:DST:nolinks (write \\: for a colon in a path)");
    flags_bad(
        (const char *const[]){"mount", "/a\\:b:/c:zz", NULL},
        "--mount: '/a\\:b:/c:zz' is not SRC:DST, SRC:DST:ro or SRC:DST:nolinks (write \\: for a colon in a path)");
}

static void the_table_answers_for_every_key(void **state)
{
    (void)state;
    size_t n;
    const struct policy_key *keys = policy_keys(&n);
    assert_true(n > 40);
    for (size_t i = 0; i < n; i++) {
        assert_true(keys[i].help && keys[i].help[strlen(keys[i].help) - 1] == '.');
        assert_true(keys[i].takes_value == (keys[i].value != NULL));
        assert_true((keys[i].type == TYPE_CHOICE) == (keys[i].choices != NULL));
        if (keys[i].flag)
            assert_ptr_equal(policy_key_by_flag(keys[i].flag), &keys[i]);
    }
    assert_null(policy_key_by_flag("nonesuch"));
}

static void paths_are_relative_to_who_says_them(void **state)
{
    (void)state;
    static const struct {
        enum policy_layer layer;
        const char *file, *path;
    } where[] = {{LAYER_USER, "~/.config/other/policy.yaml", "/home/u/.config/other/x"},
                 {LAYER_SYSTEM, "/etc/policies/p.yaml", "/etc/policies/x"},
                 {LAYER_PROJECT, "/home/u/p/.pinfold/policy.yaml", "/home/u/p/x"},
                 {LAYER_FLAGS, "some/p.yaml", "/home/u/p/some/x"},
                 {LAYER_FLAGS, "policy text", "/home/u/p/x"},
                 {LAYER_FLAGS, "/p.yaml", "/x"}};
    for (size_t i = 0; i < sizeof where / sizeof *where; i++) {
        struct policy *p = NULL;
        struct err e;
        struct layer_said said[] = {{where[i].layer, POLICY_YAML, where[i].file, "files: {rw: [x]}", true}, {0}};
        assert_int_equal(build_in(&test_world, said, NULL, &p, &e), 0);
        assert_non_null(rule_for(p, where[i].path));
        policy_free(p);
    }
}

static void paths_are_expanded_and_cleaned(void **state)
{
    (void)state;
    static const struct {
        const char *text, *path;
    } good_paths[] = {{"~", "/home/u"},
                      {"~/a/../b//c/.", "/home/u/b/c"},
                      {"/../..", "/"},
                      {"${HOME}/x", "/home/u/x"},
                      {"$HOME/x", "/home/u/x"},
                      {"${WORKSPACE}/x", "/home/u/p/x"},
                      {"/v/${USER}y", "/v/uy"},
                      {"${DATA}/x", "/data/with*star/x"},
                      {"$REL/x", "/home/u/p/sub/dir/x"},
                      {"/a\\*b\\$c\\\\d", "/a*b$c\\d"},
                      {"\\~/x", "/home/u/p/~/x"},
                      {"./x", "/home/u/p/x"},
                      {"../x", "/home/u/x"},
                      {".hidden", "/home/u/p/.hidden"},
                      {"...", "/home/u/p/..."},
                      {"/a/..b/.c./d", "/a/..b/.c./d"}};
    for (size_t i = 0; i < sizeof good_paths / sizeof *good_paths; i++) {
        static const char *const none[] = {"profile", "none", NULL};
        char text[128];
        struct layer_said said[] = {{LAYER_USER, POLICY_YAML, "/home/u/p/f", text, true}, {0}};
        struct policy *p = NULL;
        struct err e;
        snprintf(text, sizeof text, "files: {ro: ['%s']}", good_paths[i].text);
        if (build_in(&test_world, said, none, &p, &e) < 0)
            fail_msg("%s", e.text);
        if (!rule_for(p, good_paths[i].path))
            fail_msg("'%s' is not '%s'", good_paths[i].text, good_paths[i].path);
        policy_free(p);
    }
}

/* The shell has expanded what there was to expand; what is left are names. */
static void paths_of_flags_are_literal(void **state)
{
    (void)state;
    static const struct {
        const char *text, *path;
    } good_paths[] = {{"~", "/home/u"},
                      {"~/a/../b//c/.", "/home/u/b/c"},
                      {"~x", "/home/u/p/~x"},
                      {"~x/~", "/home/u/p/~x/~"},
                      {"a~/b", "/home/u/p/a~/b"},
                      {"$HOME/x", "/home/u/p/$HOME/x"},
                      {"${NO_SUCH}", "/home/u/p/${NO_SUCH}"},
                      {"do$l", "/home/u/p/do$l"},
                      {"a[b]", "/home/u/p/a[b]"},
                      {"[", "/home/u/p/["},
                      {"st*ar/q?m", "/home/u/p/st*ar/q?m"},
                      {"**/x", "/home/u/p/**/x"},
                      {"back\\slash", "/home/u/p/back\\slash"},
                      {"end\\", "/home/u/p/end\\"},
                      {"/a\\/b", "/a\\/b"},
                      {"\\$x", "/home/u/p/\\$x"},
                      {" a b\nc ", "/home/u/p/ a b\nc "}};
    for (size_t i = 0; i < sizeof good_paths / sizeof *good_paths; i++) {
        static const char *const keys[] = {"ro", "rw", "cache"};
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
            const char *const flags[] = {keys[k], good_paths[i].text, "profile", "none", NULL};
            struct policy *p = flags_good(flags);
            const struct path_rule *r = rule_for(p, good_paths[i].path);
            if (!r || r->pattern || r->any_depth)
                fail_msg("--%s '%s' is not '%s'", keys[k], good_paths[i].text, good_paths[i].path);
            policy_free(p);
        }
        const char *const where[] = {"workspace", good_paths[i].text, "storage", good_paths[i].text, NULL};
        if (good_paths[i].text[0] == '~' && !good_paths[i].text[1])
            continue; /* the home directory is no workspace */
        struct policy *p = flags_good(where);
        assert_string_equal(p->workspace, good_paths[i].path);
        assert_int_equal(p->n_storages, 1);
        assert_string_equal(p->storages[0].path, good_paths[i].path);
        policy_free(p);
    }
}

static void mounts_of_flags_are_literal_but_for_colons(void **state)
{
    (void)state;
    static const struct {
        const char *text, *from, *to;
        bool read_only;
    } good_mounts[] = {{"a[b]:/st*ar", "/home/u/p/a[b]", "/st*ar", false},
                       {"do$l:/${X}:ro", "/home/u/p/do$l", "/${X}", true},
                       {"back\\slash:/x\\y", "/home/u/p/back\\slash", "/x\\y", false},
                       {"a\\:b:/c\\:d:rw", "/home/u/p/a:b", "/c:d", false},
                       {"end\\\\:/x", "/home/u/p/end\\", "/x", false},
                       {"a:/end\\", "/home/u/p/a", "/end\\", false},
                       {"~/a:/x", "/home/u/a", "/x", false},
                       {"~a:/~/x", "/home/u/p/~a", "/~/x", false}};
    for (size_t i = 0; i < sizeof good_mounts / sizeof *good_mounts; i++) {
        const char *const flags[] = {"mount", good_mounts[i].text, NULL};
        struct policy *p = flags_good(flags);
        assert_int_equal(p->n_mounts, 1);
        assert_string_equal(p->mounts[0].from, good_mounts[i].from);
        assert_string_equal(p->mounts[0].to, good_mounts[i].to);
        assert_int_equal(p->mounts[0].read_only, good_mounts[i].read_only);
        policy_free(p);
    }
}

/* Only hide and protect know patterns; a dollar is one behind a backslash. */
static void places_in_files_are_no_patterns(void **state)
{
    (void)state;
    static const char *const keys[] = {"rw", "ro", "cache"};
    static const struct {
        const char *text, *path;
    } good_paths[] = {
        {"/a/*", "/a/*"},     {"/a[b]/c", "/a[b]/c"}, {"/q?m", "/q?m"},     {"**/x", "/home/u/p/**/x"},
        {"/do\\$l", "/do$l"}, {"/a\\*", "/a*"},       {"/b\\\\s", "/b\\s"}, {"${DATA}/*", "/data/with*star/*"}};
    for (size_t i = 0; i < sizeof good_paths / sizeof *good_paths; i++) {
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
            static const char *const none[] = {"profile", "none", NULL};
            char text[128];
            struct layer_said said[] = {{LAYER_USER, POLICY_YAML, "/home/u/p/f", text, true}, {0}};
            struct policy *p = NULL;
            struct err e;
            snprintf(text, sizeof text, "files: {%s: ['%s']}", keys[k], good_paths[i].text);
            if (build_in(&test_world, said, none, &p, &e) < 0)
                fail_msg("%s", e.text);
            const struct path_rule *r = rule_for(p, good_paths[i].path);
            if (!r || r->pattern || r->any_depth)
                fail_msg("%s '%s' is not '%s'", keys[k], good_paths[i].text, good_paths[i].path);
            policy_free(p);
        }
    }
}

static void patterns_keep_their_meaning(void **state)
{
    (void)state;
    static const struct {
        const char *text, *path, *below;
        bool any_depth, pattern;
    } rules[] = {{"**/.env", ".env", "/", true, false},
                 {"**/.env*", ".env*", "/", true, true},
                 {"src/**/a/*.pem", "a/*.pem", "/home/u/p/src", true, true},
                 {"./**/x", "x", "/home/u/p", true, false},
                 {"/**/x", "x", "/", true, false},
                 {"~/.ssh/id_*", "/home/u/.ssh/id_*", NULL, false, true},
                 {"$DATA/k?y", "/home/u/p/$DATA/k?y", NULL, false, true},
                 {"/a/\\*x*", "/a/\\*x*", NULL, false, true},
                 {"/do$l\\*", "/do$l*", NULL, false, false},
                 {"/back\\\\s\\[x]", "/back\\s[x]", NULL, false, false},
                 {"~x", "/home/u/p/~x", NULL, false, false},
                 {"/a/[a-c]x", "/a/[a-c]x", NULL, false, true}};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        const char *const flags[] = {"hide", rules[i].text, "profile", "none", NULL};
        struct policy *p = flags_good(flags);
        const struct path_rule *r = rule_for(p, rules[i].path);
        if (!r || r->any_depth != rules[i].any_depth || r->pattern != rules[i].pattern ||
            !same(r->below, rules[i].below))
            fail_msg("'%s' was read otherwise", rules[i].text);
        policy_free(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_mistake_has_its_sentence_and_place),
                                       cmocka_unit_test(json_is_read_as_the_yaml_that_it_is),
                                       cmocka_unit_test(names_may_hold_any_byte),
                                       cmocka_unit_test(a_stranger_cannot_write_on_the_terminal),
                                       cmocka_unit_test(size_depth_and_number_have_ceilings),
                                       cmocka_unit_test(flags_say_what_keys_say),
                                       cmocka_unit_test(mistakes_in_flags_name_the_flag),
                                       cmocka_unit_test(the_table_answers_for_every_key),
                                       cmocka_unit_test(paths_are_relative_to_who_says_them),
                                       cmocka_unit_test(paths_are_expanded_and_cleaned),
                                       cmocka_unit_test(paths_of_flags_are_literal),
                                       cmocka_unit_test(mounts_of_flags_are_literal_but_for_colons),
                                       cmocka_unit_test(places_in_files_are_no_patterns),
                                       cmocka_unit_test(patterns_keep_their_meaning)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
