"""Cases of diff, apply and undo on layers made by real overlay mounts, as one user: cases.py SCRATCH STRIKE LABEL [NAME-REGEX...]"""
import glob
import json
import os
import pty
import random
import re
import select
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
import time

import kit
import leader
import repository

SCRATCH, STRIKE, LABEL = sys.argv[1:4]
WANTED = [re.compile(word) for word in sys.argv[4:]]
ROUNDS = int(os.environ.get("LAYER_ROUNDS", "25"))  # of random schedules
KILLS = int(os.environ.get("LAYER_KILLS", "0"))  # 0: every call; else so many, spread evenly
failed = False


def check(what, *more):
    if not what:
        raise AssertionError(" ".join(str(m) for m in more))


def put(top, path, text, mode=0o644):
    path = os.path.join(top, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(text if isinstance(text, bytes) else text.encode())
    os.chmod(path, mode)


def same_trees(a, b, what):
    wrong = [f"{k}: {a.get(k)} {b.get(k)}" for k in sorted(set(a) | set(b)) if a.get(k) != b.get(k)]
    check(not wrong, what, *wrong[:8])


def small(work):
    put(work, "a", "one\ntwo\nthree\n")
    put(work, "gone", "gone")
    put(work, "dir/x", "x")
    put(work, "tree/in", "in")
    put(work, "todir", "file")
    put(work, "tofile/in", "in")
    put(work, "run.sh", "#!/bin/sh\n")
    put(work, "closed/deep", "deep")
    put(work, "same", "same")
    put(work, "two", "linked")
    os.link(os.path.join(work, "two"), os.path.join(work, "names"))
    os.symlink("a", os.path.join(work, "sl"))
    os.chmod(os.path.join(work, "closed"), 0o555)


SMALL = """echo four >>a; rm gone; rm -r tree; echo n >new; ln new hard; mkdir -p nd/ne; echo q >nd/ne/q; rm todir; mkdir todir
echo i >todir/i; rm -r tofile; echo f >tofile; chmod 755 run.sh; ln -sf dir/x sl; printf same >same; chmod 700 dir
chmod 755 closed; rm -r closed; mkdir shut; echo s >shut/s; chmod 555 shut; echo two >two; touch -d 2001-02-03 new; /usr/bin/python3 -c 'import os; os.setxattr("run.sh", "user.colour", b"red")'"""


def new_layer(name, fill, script=None, **more):
    layer = kit.Layer(kit.fresh(os.path.join(SCRATCH, name)), **more)
    fill(layer.work)
    layer.begin()
    if script:
        layer.box(script)
    return layer


def again(master, name, **more):
    """A copy of a layer that nobody has touched since: the copy's own times are taken for those of its beginning."""
    top = os.path.join(SCRATCH, name)
    kit.remove(top)
    subprocess.run(["cp", "-a", master.top, top], check=True)
    layer = kit.Layer(top, **more)
    layer.work = os.path.realpath(layer.work)
    time.sleep(0.012)
    probe = os.path.join(top, "probe2")
    with open(probe, "w"):
        pass
    began, st = os.stat(probe).st_ctime_ns, os.stat(layer.work)
    for one in glob.glob(os.path.join(os.path.dirname(layer.dir), "*", "record")):
        with open(one) as file:
            record = json.load(file)
        record.update(workspace=os.path.realpath(layer.work), ino=st.st_ino, dev=st.st_dev, t0={"sec": began // 10**9, "nsec": began % 10**9})
        with open(one, "w") as file:
            json.dump(record, file)
    time.sleep(0.012)
    return layer


# ---- what is read ----

def reads_what_the_box_sees():
    """The workspace with the changes of the diff made to it is what the box sees, for random edits by a slow shell script."""
    for seed in range(6):
        rng = random.Random(seed)
        layer = new_layer("reads", lambda work, r=rng: random_tree(work, r), None)
        before = kit.tree(layer.work)
        layer.box(random_script(rng, 60))
        box = layer.box_tree()
        told = layer.diff()
        expected = {}
        for path in set(before) | set(box):
            if path not in before:
                expected[path] = "added"
            elif path not in box:
                expected[path] = "deleted"
            elif strip(before[path]) != strip(box[path]):
                expected[path] = "edited"
        same_trees(expected, {p: c["kind"] for p, c in told.items()}, f"seed {seed}")
        # A directory without its owner's x is one that only root can look into.
        check(not [p for p, c in told.items() if c["conflict"] and (os.getuid() == 0 or "closed it" not in c["conflict"])], "a conflict that nobody made", seed)


def strip(what):
    """Without times and numbers of hard links, which are no change by themselves."""
    return [w for i, w in enumerate(what) if not (what[0] == stat.S_IFREG and (i == 3 or i == 4 and isinstance(w, str)))]


def random_tree(work, rng):
    for i in range(40):
        put(work, f"{rng.choice(['', 'd1/', 'd1/e/', 'd2/', 'd3/f/g/'])}f{i}", f"{i}\n" * rng.randint(0, 5), rng.choice([0o644, 0o755]))
    for i in range(5):
        os.symlink(f"f{i}", os.path.join(work, f"s{i}"))
    os.makedirs(os.path.join(work, "bare"))


def looked_at():
    """A look at layers that is stopped, whatever it does at that moment, holds up no box that begins on one."""
    layer = new_layer("looked", small)
    layer.pinfold("run", "-q", "--cow=kept", "--", "sh", "-c", "echo x >made")
    for look in (["layers"], ["layers", "--json"]):
        total = int(layer.pinfold(*look, wrap=(STRIKE, "count-locks"))[2].split()[-1])
        check(total > 1, look, total)
        for n in range(1, total + 1):
            begin = f"timeout 20 '{kit.PINFOLD}' run -q --cow=kept -- true </dev/null >/dev/null 2>&1"
            code, _, err = layer.pinfold(*look, ok=None, wrap=(STRIKE, "do-locks", str(n), begin))
            check(code == 0, f"{look}: a box cannot begin before call {n} of {total}", code, err)
    layer.pinfold("discard", "kept")


def other_spellings():
    """What a file system that folds case by Unicode, or drops dots and spaces at an end, takes for a guarded name is not applied, named itself or not, whatever file system it is."""
    def fill(work):
        put(work, "sub/.git/config", "[core]\n")
        put(work, "sub/f", "f")
        put(work, "sub/.v\u017fcode/there", "x")
        put(work, "mixed/refs/x", "x")
    ignored = "\u200b"
    names = [".v\u017fcode/tasks.json", f".g{ignored}it/hooks/pre-commit", f".GI{ignored}T/config", ".git./config", ".git /HEAD", ".envrc.", f"sub/.env{ignored}rc", f"sub/.gi{ignored}t/config", f".v{ignored}scode/in/.git/HEAD",
             f".v{ignored}scode/in/.git/refs/heads/main", f".v{ignored}scode/file/.git", "sub/.v\u017fcode/new", "bare/conf\u0131g", "bare/hook\u017f/post-checkout"]
    told_as_they_are = ["bare/config", "mixed/config"]
    plain = ["Stra\u00dfe/\ufb01le", "dots..", f"zero{ignored}width"]
    made = [*names, *told_as_they_are, *plain, "bare/Object\u017f/x", "bare/REFS/x", "bare/HEAD", "mixed/OBJECTS/x"]
    layer = new_layer("spelling", fill, "\n".join(f"mkdir -p '{os.path.dirname(name) or '.'}' && echo x >'{name}'" for name in made) + f"\nln -s '.gi{ignored}t' to; mkdir .clau; ln -s . '.v{ignored}scode/l'")
    told = layer.diff()
    for name in names:
        check("spelling" in told[name]["alarms"] and not told[name]["waits"], name, told[name])
    for name in told_as_they_are:
        check("guarded" in told[name]["alarms"] and "spelling" not in told[name]["alarms"], name, told[name])
    for name in plain:
        check(not told[name]["alarms"], name, told[name])
    check("link-place" in told["to"]["alarms"], told["to"])
    check("another spelling of a guarded name" in layer.pinfold("diff")[1], "diff does not say it")
    code, _, err = layer.pinfold("apply", "--all", ok=(1,))
    check(err.count("some file systems take its name") >= len(names), err)
    for name in names:
        code, _, err = layer.pinfold("apply", name, ok=(1,))
        check(code == 1 and "some file systems take its name" in err, name, err)
    layer.pinfold("apply", os.path.dirname(names[8]) + "/..", ok=(1,))
    layer.pinfold("apply", os.path.dirname(names[8]), names[10], ok=(1,))
    left = [name for name in names + told_as_they_are + ["to"] if os.path.lexists(os.path.join(layer.work, name))]
    check(not left, "applied", left)
    check(all(os.path.exists(os.path.join(layer.work, name)) for name in plain), "an ordinary name is refused")


def random_script(rng, n):
    names = ["d1", "d2", "d3", "d1/e", "d3/f", "bare", "n1", "n2/o"] + [f"{d}f{i}" for i in range(40) for d in ("", "d1/", "d1/e/", "d2/", "d3/f/g/")] + [f"s{i}" for i in range(5)]
    lines = []
    for _ in range(n):
        a, b = rng.choice(names), rng.choice(names)
        lines.append(rng.choice([f"rm -rf {a}", f"mkdir -p {a}", f"rm -rf {a}; mkdir {a}", f"echo {rng.random()} >{a}", f"mv -T {a} {b}", f"ln -sfn {b} {a}",
                                 f"chmod {rng.choice(['700', '755', '644'])} {a}", f"cp -r {a} {b}", f"ln {a} {b}", f"cat {a} >>{b}"]))
    return "\n".join(f"({line}) 2>/dev/null" for line in lines) + "\ntrue"


def tells_what_matters():
    def fill(work):
        put(work, "run", "x")
        put(work, "sub/.git/config", "[core]\n")
        put(work, "sub/f", "f")
    layer = new_layer("alarms", fill, "echo x >.envrc; mkdir .vscode; echo {} >.vscode/tasks.json; chmod +x run; ln -s ../../etc/passwd out; mkdir -p c/d; ln -s ../.. c/d/top; ln -s c/d/top/../etc over; ln -s /proc/4321/root/tmp proc; ln -s /proc/self/fd fds; "
                      "ln -s run in; mkfifo pipe; cp run suid; chmod 4755 suid; echo y >sub/.envrc; echo z >sub/.git/config; "
                      "printf 'x' >\"$(printf 'esc\\033[2Jape')\"; mkdir -p a/b node_modules/x; tee a/deep.toml a/b/deep.toml a/b/eep.toml <run >node_modules/x/deep.toml")
    put(layer.env["XDG_CONFIG_HOME"], "pinfold/policy.yaml", "guard_names: {root: ['**/deep.toml']}\n")
    told = layer.diff()
    check({path: told[path]["waits"] for path in told if path.endswith("eep.toml")} ==
          {"a/deep.toml": True, "a/b/deep.toml": True, "a/b/eep.toml": False, "node_modules/x/deep.toml": False}, told)
    check("guarded" in told[".envrc"]["alarms"] and told[".envrc"]["waits"], told[".envrc"])
    check("guarded" in told[".vscode/tasks.json"]["alarms"], "below a guarded directory")
    check("guarded" in told["sub/.envrc"]["alarms"], "at the top of a repository in the workspace")
    check("executable" in told["run"]["alarms"] and "link-out" in told["out"]["alarms"] and not told["in"]["alarms"], told["in"])
    check("special" in told["pipe"]["alarms"] and "setuid" in told["suid"]["alarms"] and "git" in told["sub/.git/config"]["alarms"], "alarms")
    check("link-out" in told["over"]["alarms"] and not told["c/d/top"]["alarms"], "a link that leads out over another")
    check(told["proc"]["waits"] and "link-out" in told["proc"]["alarms"] and not told["fds"]["waits"], "a link into a process")
    text = layer.pinfold("diff")[1]
    check("\033" not in text and "Look at these first" in text and text.index(".envrc") < text.index("~ sub/f" if "~ sub/f" in text else "changed,"), text)
    check("\033" not in layer.pinfold("diff", "--names")[1] + layer.pinfold("apply", "--all", ok=(1,))[1], "an escape reaches the terminal")
    check(not os.path.exists(os.path.join(layer.work, ".envrc")), "--all has applied a guarded name")
    for path in ("suid", "pipe", ".vscode/tasks.json", "sub/.git/config"):
        check(not os.path.lexists(os.path.join(layer.work, path)) or path == "sub/.git/config", path)
    check("z" not in open(os.path.join(layer.work, "sub/.git/config")).read(), "below .git")
    check(layer.pinfold("apply", ".vscode", ok=(1,))[0] == 1, "a directory is no guarded name named itself")
    layer.pinfold("apply", ".vscode/tasks.json", "suid", "pipe", os.path.join(layer.work, ".envrc"))
    check(os.stat(os.path.join(layer.work, "suid")).st_mode & 0o4000, "named itself")
    check(layer.pinfold("apply", "sub/.git/config", ok=(1,))[0] == 1 and "git" in layer.pinfold("apply", "sub/.git/config", ok=(1,))[2], ".git")


# ---- apply and undo ----

def applies_and_takes_back():
    layer = new_layer("apply", small, SMALL)
    before, box = kit.tree(layer.work), layer.box_tree()
    layer.pinfold("apply", "--all")
    after = kit.tree(layer.work)
    box["same"] = before["same"]  # the same bytes are no change, whatever their time
    same_trees(box, after, "apply")
    check(layer.changes() == [], "what is applied is no change any more", layer.changes())
    check(not os.path.exists(os.path.join(layer.work, ".pinfold")), "left behind")
    layer.pinfold("undo")
    same_trees(before, kit.tree(layer.work), "undo")
    check(layer.pinfold("undo", ok=(4,))[0] == 4, "nothing to take back")
    check(not [c for c in layer.changes() if c["conflict"]], [c for c in layer.changes() if c["conflict"]][:3], "its own undo is no change by the host")
    layer.pinfold("apply", "--all")
    same_trees(after, kit.tree(layer.work), "apply again")


def by_path():
    layer = new_layer("path", small, SMALL)
    layer.pinfold("apply", "nd/ne/q", "a")
    check(os.path.exists(os.path.join(layer.work, "nd/ne/q")) and not os.path.exists(os.path.join(layer.work, "new")), "only these")
    check(layer.pinfold("apply", ok=(2,))[0] == 2, "neither a path nor --all")
    check("nothing there" in layer.pinfold("apply", "dir/none", ok=(1,))[2], "no change there")
    check("not in the workspace" in layer.pinfold("apply", "/etc/passwd", ok=(2,))[2], "outside")
    check("not in the workspace" in layer.pinfold("apply", "../x", ok=(2,))[2], "outside")
    layer.pinfold("apply", "it", "todir")
    check(os.path.isdir(os.path.join(layer.work, "todir")), "a layer by its name")
    layer.pinfold("undo", "--apply", "1", "a")
    check(open(os.path.join(layer.work, "a")).read() == "one\ntwo\nthree\n" and os.path.exists(os.path.join(layer.work, "nd/ne/q")), "undo by path")
    layer.pinfold("undo", "--apply", "1")
    check(not os.path.exists(os.path.join(layer.work, "nd")), "the rest of it")
    layer.pinfold("undo", layer.ident[:6])
    check(os.path.isfile(os.path.join(layer.work, "todir")), "by the beginning of its ID")
    check(layer.pinfold("diff", cwd="/", ok=(4,))[0] == 4, "no layer here")


def host_edits():
    """What the host changed since is in the way, whatever it did and however old the file looks."""
    edits = {"in place": "echo h >>a", "replaced": "echo h >h; mv h a", "older": "echo h >h; touch -d 2001-01-01 h; mv h a", "mode": "chmod 600 a",
             "gone": "rm a", "a link": "rm a; ln -s /etc/passwd a", "a directory": "rm a; mkdir a"}
    for name, edit in edits.items():
        layer = new_layer("edits", small, "echo box >>a; echo new >made; echo deep >>dir/x")
        subprocess.run(["sh", "-c", edit], cwd=layer.work, check=True)
        before = kit.tree(layer.work)
        check(layer.diff()["a"]["conflict"], name)
        code, _, err = layer.pinfold("apply", "a", ok=None)
        check(code == 1 and "a: the host" in err, name, code, err)
        same_trees(before, kit.tree(layer.work), name)
    layer = new_layer("edits", small, "echo box >>dir/x; echo new >made; rm -r tree")
    subprocess.run(["sh", "-c", "mkdir other; echo h >other/x; touch -d 2001-01-01 other/x; rm -r dir; sleep 0.02; mv other dir; echo n >made; echo t >tree/t"],
                   cwd=layer.work, check=True)
    before = kit.tree(layer.work)
    check(layer.pinfold("apply", "--all", ok=None)[0] == 1, "a directory that was moved there, a file made there, an entry in a directory that goes")
    now = kit.tree(layer.work)
    check(now["dir/x"] == before["dir/x"] and now["made"] == before["made"] and now["tree/t"] == before["tree/t"], now)


def undo_refuses():
    layer = new_layer("refuse", small, SMALL)
    layer.pinfold("apply", "--all")
    put(layer.work, "a", "the host's")
    before = kit.tree(layer.work)
    code, _, err = layer.pinfold("undo", ok=None)
    check(code == 1 and "a: the host changed it after" in err, err)
    same_trees(before, kit.tree(layer.work), "nothing of it")
    layer.pinfold("undo", "new", "hard")
    check(not os.path.exists(os.path.join(layer.work, "new")), "by path")


def long_text(work):
    small(work)
    put(work, "long", "".join(f"line {i}\n" for i in range(60)) + "end", 0o640)
    put(work, "bin", bytes(range(256)))


LONG = """sed -i -e 's/^line 5$/five/' -e '/^line 30$/d' -e '51a more' long; printf tail >>long; sed -i s/two/zwei/ a; echo b >>bin; echo n >new; mkdir -p nd/deep
echo q >nd/deep/q; rm gone; chmod 755 run.sh; echo x >>run.sh; echo w >.envrc; mkdir bare"""


def by_hunks():
    """apply --hunks: answers choose hunks and whole changes; the rest stays in the layer, and undo takes all of it back."""
    layer = new_layer("hunks", long_text, LONG)
    os.setxattr(os.path.join(layer.work, "long"), "user.host", b"kept")  # a change by the host
    code, out, err = layer.pinfold("apply", "-p", "long", given="y\n", ok=None)
    check(code == 0 and "long: the host changed it" in err and "nothing was chosen" in err, code, out, err)
    layer = new_layer("hunks", long_text, LONG)
    before = kit.tree(layer.work)
    code, out, err = layer.pinfold("apply", "--hunks", "long", given="?\nwhat\nn\ny\nn\nn\n")
    check("(1/4) Apply this hunk of 'long' [y,n,a,d,q,?]? y - apply this" in out and "-line 30" in out and "applied long" in out, out, err)
    check(open(os.path.join(layer.work, "long")).read() == "".join(f"line {i}\n" for i in range(60) if i != 30) + "end", "one hunk")
    check(stat.S_IMODE(os.stat(os.path.join(layer.work, "long")).st_mode) == 0o640 and os.stat(os.path.join(layer.work, "long")).st_mtime > time.time() - 60, "mode and time")
    check(layer.diff()["long"]["kind"] == "edited" and not layer.diff()["long"]["conflict"] and not os.path.exists(os.path.join(layer.dir, "parts")), layer.diff()["long"])
    layer.pinfold("apply", "-p", "long", given="y\na\n")
    check(open(os.path.join(layer.work, "long")).read() == open(os.path.join(layer.dir, "upper", "long")).read() and "long" not in layer.diff(), "the rest of it")
    layer.pinfold("undo")
    layer.pinfold("undo")
    same_trees(before, kit.tree(layer.work), "undo")
    # Everything is asked in the order of the paths: a, bare, bin, gone, four hunks, nd/deep/q, new, run.sh; .envrc waits.
    code, out, err = layer.pinfold("apply", "-p", given="y\nn\ny\ny\nn\ny\nd\ny\nn\ny\n")
    asked = re.findall(r"(?:of '|all of ')([^']*)'(?: \(([^)]*)\))?", out)
    check(asked == [("a", ""), ("bare", "it is new"), ("bin", "it is binary"), ("gone", "it is deleted"), ("long", ""), ("long", ""), ("long", ""), ("nd/deep/q", "it is new"),
                    ("new", "it is new"), ("run.sh", "more than its content changes")], asked)
    check(".envrc: it has a guarded name" in err, err)
    left = {p for p, c in layer.diff().items() if not c["conflict"]}
    check(left == {"bare", "long", "new", ".envrc"} and os.path.exists(os.path.join(layer.work, "nd/deep/q")), left)
    layer.pinfold("undo")
    same_trees(before, kit.tree(layer.work), "undo of all of it")
    check("applied .envrc" in layer.pinfold("apply", "-p", ".envrc", given="y\n")[1], "a guarded name that is named itself")
    code, out, err = layer.pinfold("apply", "-p", given="y\nq\n")
    check("applied a\n" in out and out.count("?]?") == 2, "q applies what was chosen", out)
    check("nothing was chosen" in layer.pinfold("apply", "-p")[2], "an empty input")
    for words in (["--all"], ["--json"], ["--to", "/"], ["--patch", "-"]):
        check(layer.pinfold("apply", "-p", *words, ok=(2,))[0] == 2, words)


def hunks_meanwhile():
    """What changes between the question and the answer is not applied; a terminal gets nothing to obey."""
    layer = new_layer("hunks", long_text, "sed -i 's/^line 5$/fi\\x1b[2Jve/' long; echo x >>a; : >\"$(printf 'e\\033[2J')\"")
    box = Terminal(layer, "apply", "-p")
    box.until("hunk of 'a' [y,n,a,d,q,?]? ")
    box.type("y\n")
    box.until("?]? ")
    put(layer.work, "a", "the host's")
    box.type("n\n")
    box.until("hunk of 'long' [y,n,a,d,q,?]? ")
    box.type("q\n")
    status, said = box.end()
    check(status != 0 and "has changed since its hunks were listed" in said and open(os.path.join(layer.work, "a")).read() == "the host's", status, said)
    check(b"\x1b" not in box.got and b"\\x1b[2Jve" in box.got, "the terminal", box.got)


def killed_by_hunks():
    """SIGKILL while hunks are applied: the file is as it was or has the chosen ones, and the next call ends it."""
    master = new_layer("master", long_text, LONG)
    before = kit.tree(master.work)
    given, words = "y\nn\ny\nn\n", ("apply", "-p", "long")
    layer = again(master, "killed")
    total = int(layer.pinfold(*words, wrap=(STRIKE, "count"), given=given)[2].split()[-1])
    after = kit.tree(layer.work, times=False)["long"]
    step = max(1, total // KILLS) if KILLS else 1
    for n in range(1, total + 1, step):
        layer = again(master, "killed")
        code = layer.pinfold(*words, ok=None, wrap=(STRIKE, "kill", str(n)), given=given)[0]
        check(code == 99, f"call {n} of {total} was not reached", code)
        half = kit.tree(layer.work, times=False)
        check(half["long"] in (after, [w for i, w in enumerate(before["long"]) if i != 3]), n, half["long"])
        if n // step % 2:
            layer.pinfold("apply", "new")
            layer.pinfold("undo")
        check(layer.pinfold("undo", ok=None)[0] in (0, 4), f"{n}: undo")
        same_trees(before, kit.tree(layer.work), f"{n}: then undo")
        layer.pinfold(*words, given=given)
        check(kit.tree(layer.work, times=False)["long"] == after and not os.path.exists(os.path.join(layer.dir, "parts")), f"{n}: again")
    return f"{len(range(1, total + 1, step))} of {total} calls"


def elsewhere():
    """apply --to: another checkout gets the changes where it is what the box began with, and undo --to takes them back."""
    layer = new_layer("to", small, SMALL)
    before = kit.tree(layer.work)
    other = os.path.join(layer.top, "other")
    kit.copy_tree(layer.work, other)
    began, box = kit.tree(other), layer.box_tree()
    layer.pinfold("apply", "--to", other, "--all")
    box["same"] = began["same"]
    same_trees(box, kit.tree(other), "apply --to")
    same_trees(before, kit.tree(layer.work), "the workspace")
    check(layer.changes() and not [c for c in layer.changes() if c["conflict"]] and not os.path.exists(os.path.join(other, ".pinfold")), "the layer has it all still")
    check(json.loads(layer.pinfold("apply", "--json", "--to", "../other", "--all")[1])["done"] == [], "what is there already needs nothing")
    layer.pinfold("undo", "--to", other)
    same_trees(began, kit.tree(other), "undo --to")
    check(layer.pinfold("undo", "--to", other, ok=(4,))[0] == 4 and layer.pinfold("undo", ok=(4,))[0] == 4, "nothing to take back")
    layer.pinfold("apply", "it", "--to", ".", "new", "dir/../a", cwd=other)
    check(os.path.exists(os.path.join(other, "new")) and not os.path.exists(os.path.join(other, "hard")), "by paths of that directory")
    put(other, "a", "changed afterwards")
    check("a: the host changed it after it was applied" in layer.pinfold("undo", "--to", other, ok=(1,))[2], "undo of what was changed")
    layer.pinfold("undo", "--to", other, "new")
    for words in (["--to", layer.work], ["--to", layer.dir], ["--to", "../none"], ["--to", other, "--patch", "-"]):
        check(layer.pinfold("apply", *words, "--all", ok=(2,))[2], words)
    layer.pinfold("apply", "a")
    check("is in the workspace already" in layer.pinfold("apply", "--to", other, "a", ok=(1,))[2], "applied to the workspace")


def elsewhere_conflicts():
    """What is not there as the box began with it is refused path by path, whatever it is; permissions that the box did not change stay."""
    outside = os.path.join(SCRATCH, "outside")
    kit.fresh(outside)
    put(outside, "x", "x")
    script = "echo b >>a; echo b >gone; echo b >dir/x; rm tree/in; chmod 755 run.sh; ln -sf dir/x sl; echo n >new; rm two; echo w >.envrc; mkdir nd; echo q >nd/q; mkdir sub; echo w >sub/.envrc; echo b >same"
    edits = {"a": "printf 'one\\ntwo\\nthreE\\n' >a", "gone": "rm gone", "dir/x": f"rm -r dir; ln -s {outside} dir", "tree/in": "echo other >tree/in", "run.sh": "chmod 700 run.sh",
             "sl": "ln -sf b sl", "new": "echo mine >new", "two": "rm two; mkdir two", "same": "python3 -c 'import os; os.setxattr(\"same\", \"user.x\", b\"y\")'"}
    for path, edit in edits.items():
        layer = new_layer("to", small, script)
        other = os.path.join(layer.top, "other")
        kit.copy_tree(layer.work, other)
        subprocess.run(["sh", "-c", edit + "; mkdir -p sub/.git; [ -e sub/.git/HEAD ] || echo x >sub/.git/HEAD"], cwd=other, check=True)
        before = kit.tree(other)
        code, _, err = layer.pinfold("apply", "--to", other, "--all", ok=None)
        check(code == 1 and f"pinfold: {path}: " in err and "sub/.envrc: it has a guarded name" in err and "pinfold: .envrc: " in err, path, code, err)
        after = kit.tree(other)
        check(all(before[p] == after.get(p) for p in before if p == path or p.startswith(path.split("/")[0] + "/")), path, "was changed", err)
        check(open(os.path.join(other, "nd/q")).read() == "q\n", "the others are applied")
        check(os.listdir(outside) == ["x"] and open(os.path.join(outside, "x")).read() == "x", "a link was followed")
        layer.pinfold("undo", "--to", other)
        same_trees(before, kit.tree(other), path + ": undo")
    layer = new_layer("to", small, script)
    other = os.path.join(layer.top, "other")
    kit.copy_tree(layer.work, other)
    os.chmod(os.path.join(other, "a"), 0o600)
    put(layer.work, "gone", "the host's")
    check("gone: the host changed it" in layer.pinfold("apply", "--to", other, "a", "gone", ok=(1,))[2], "a base that is not known")
    check(stat.S_IMODE(os.stat(os.path.join(other, "a")).st_mode) == 0o600 and open(os.path.join(other, "a")).read().endswith("b\n"), "its permissions stay")
    os.symlink(other, os.path.join(layer.top, "way"))
    layer.pinfold("apply", "--to", "../way", "new")
    layer.pinfold("apply", "--to", other, "sub/.envrc")
    check(os.path.exists(os.path.join(other, "sub/.envrc")), "named itself")


def killed_elsewhere():
    """The same with --to: the next apply or undo --to completes it, and until then the layer is not discarded."""
    master = new_layer("master", small, SMALL)
    kit.copy_tree(master.work, os.path.join(master.top, "other"))
    began = kit.tree(os.path.join(master.top, "other"))
    layer = again(master, "killed")
    to = ("--to", os.path.join(layer.top, "other"))
    total = int(layer.pinfold("apply", *to, "--all", wrap=(STRIKE, "count"))[2].split()[-1])
    after = kit.tree(to[1])
    check(total > 60, "calls", total)
    step = max(1, total // KILLS) if KILLS else 1
    held = 0
    for n in range(1, total + 1, step):
        layer = again(master, "killed")
        code = layer.pinfold("apply", *to, "--all", ok=None, wrap=(STRIKE, "kill", str(n)))[0]
        check(code == 99, f"call {n} of {total} was not reached", code)
        half = kit.tree(to[1])
        for path in set(began) | set(after):
            if began.get(path) != after.get(path) and stat.S_IFDIR not in (began.get(path) or after.get(path))[:1]:
                check(loose(half.get(path)) in (loose(began.get(path)), loose(after.get(path))), f"{n}: {path}", half.get(path))
        if [name for folder in glob.glob(os.path.join(layer.dir, "to", "*")) for name in os.listdir(folder) if name == "journal"]:
            held += 1
            check("was interrupted" in layer.pinfold("discard", "it", ok=None)[2] and os.path.exists(layer.dir), f"{n}: discarded")
        if n // step % 2 == 1:
            layer.pinfold("apply", *to, "--all")
            same_trees(after, kit.tree(to[1]), f"{n}: then apply")
        code, _, err = layer.pinfold("undo", *to, ok=None)
        check(code in (0, 4), f"{n}: then undo", code, err)
        same_trees(began, kit.tree(to[1]), f"{n}: then undo")
        check(not os.path.exists(os.path.join(to[1], ".pinfold")), f"{n}: left behind")
    check(held, "no journal was seen")
    return f"{len(range(1, total + 1, step))} of {total} calls"


def unlisted():
    """A directory of layers that cannot be read to its end is not one with fewer layers: nothing is said about them, and none is removed on which another may stand."""
    if not shutil.which("strace"):
        return "skipped: strace is not installed"
    layer = new_layer("unlisted", small, "echo x > new")
    where = os.path.dirname(layer.dir)
    broken = ("strace", "-f", "-qq", "-o", "/dev/null", "-P", where, "-e", "trace=getdents64", "-e", "inject=getdents64:error=EIO")
    for words in (("layers",), ("diff",), ("apply", "--all"), ("discard",), ("layers", "prune")):
        code, out, err = layer.pinfold(*words, ok=None, wrap=broken)
        check(code not in (0, 99) and "cannot list" in out + err and "there is no layer" not in out + err, words, code, out, err)
    check(not os.path.exists(layer.work + "/new") and layer.diff(), "nothing has changed")


def killed(verb):
    """SIGKILL before each call that changes something: every path old or new, and the next call makes it whole."""
    master = new_layer("master", small, SMALL)
    before = kit.tree(master.work)
    layer = again(master, "killed")
    layer.pinfold("apply", "--all")
    after = kit.tree(layer.work)
    count = again(master, "killed")
    if verb == "undo":
        count.pinfold("apply", "--all")
    total = int(count.pinfold(*((verb, "--all") if verb == "apply" else (verb,)), wrap=(STRIKE, "count"))[2].split()[-1])
    check(total > 60, "calls", total)
    step = max(1, total // KILLS) if KILLS else 1
    for n in range(1, total + 1, step):
        layer = again(master, "killed")
        if verb == "undo":
            layer.pinfold("apply", "--all")
        code = layer.pinfold(*((verb, "--all") if verb == "apply" else (verb,)), ok=None, wrap=(STRIKE, "kill", str(n)))[0]
        check(code == 99, f"{verb}: call {n} of {total} was not reached", code)
        half = kit.tree(layer.work)
        for path in set(before) | set(after):
            if before.get(path) != after.get(path) and stat.S_IFDIR not in (before.get(path) or after.get(path))[:1]:
                check(loose(half.get(path)) in (loose(before.get(path)), loose(after.get(path))), f"{verb} {n}: {path}", half.get(path))
        other = n // step % 2 == 1
        if (verb == "apply") != other:
            code, _, err = layer.pinfold("apply", "--all", ok=None)
            check(code == 0, f"{verb} {n}: then apply", code, err)
            same_trees(after, kit.tree(layer.work), f"{verb} {n}: then apply")
        if verb == "undo" or other:
            code, _, err = layer.pinfold("undo", ok=None)
            check(code in (0, 4), f"{verb} {n}: then undo", code, err)
            same_trees(before, kit.tree(layer.work), f"{verb} {n}: then undo")
        left = [name for name in os.listdir(layer.dir) if name == "journal"]
        check(not os.path.exists(os.path.join(layer.work, ".pinfold")) and not left, f"{verb} {n}: left behind", left)
    return f"{len(range(1, total + 1, step))} of {total} calls"


ABOVE = "echo top >>a; echo x >new; rm run.sh; mkdir -p tree; echo back >tree/in; mkdir up; for i in 1 2 3 4 5 6; do echo $i >up/$i; done; ln up/1 up/one; rm -r todir; ln -sf same sl; chmod 750 dir; rm -r nd"


def killed_stacked():
    """The same of a layer that stands on another one, which has landed."""
    below = new_layer("master", small, SMALL)
    master = kit.Layer(below.top, ident="aabbccddeeff0011")
    master.work = below.work
    master.begin(name="top", stands_on=below)
    master.box(ABOVE)

    def ready():
        layer = again(master, "killed", ident=master.ident)
        layer.pinfold("apply", below.ident, "--all")
        return layer
    layer = ready()
    before = kit.tree(layer.work)
    layer.pinfold("apply", "top", "--all")
    after = kit.tree(layer.work)
    check(before != after and os.path.exists(os.path.join(layer.work, "tree", "in")), "it landed")
    total = int(ready().pinfold("apply", "top", "--all", wrap=(STRIKE, "count"))[2].split()[-1])
    kills = KILLS // 2
    step = max(1, total // kills) if kills else 1
    for n in range(1, total + 1, step):
        layer = ready()
        code = layer.pinfold("apply", "top", "--all", ok=None, wrap=(STRIKE, "kill", str(n)))[0]
        check(code == 99, f"call {n} of {total} was not reached", code)
        old_or_new(before, kit.tree(layer.work), after, n)
        if n // step % 2:
            layer.pinfold("apply", "top", "--all")
            same_trees(after, kit.tree(layer.work), f"{n}: then apply")
        code, _, err = layer.pinfold("undo", "top", ok=None)
        check(code in (0, 4), f"{n}: then undo", code, err)
        same_trees(before, kit.tree(layer.work), f"{n}: then undo")
        check(not os.path.exists(os.path.join(layer.work, ".pinfold")) and not os.path.exists(os.path.join(layer.dir, "journal")), f"{n}: left behind")
    return f"{len(range(1, total + 1, step))} of {total} calls"


def killed_living():
    """The same of apply and undo while the session lives that writes to the layer, and the session's view is always its own."""
    layer = kit.Layer(kit.fresh(os.path.join(SCRATCH, "living")))
    layer.work = os.path.realpath(layer.work)
    small(layer.work)
    layer.pinfold("session", "start", "--no-layers", "--cow", "s")
    try:
        layer.pinfold("exec", "s", "--", "sh", "-ec", SMALL)
        layer.dir = glob.glob(os.path.join(layer.state, "pinfold", "layers", "*"))[0]
        seen = ("exec", "s", "--", "sh", "-c", "cat a hard new nd/ne/q todir/i tofile; ls -R . | sort")
        own = layer.pinfold(*seen)[1]
        before = kit.tree(layer.work)
        count = int(layer.pinfold("apply", "--all", wrap=(STRIKE, "count"))[2].split()[-1])
        after = kit.tree(layer.work)
        undo = int(layer.pinfold("undo", wrap=(STRIKE, "count"))[2].split()[-1])
        same_trees(before, kit.tree(layer.work), "taken back")
        done = 0
        for verb, total in (("apply", count), ("undo", undo)):
            kills = KILLS // 3
            step = max(1, total // kills) if kills else 1
            for n in range(1, total + 1, step):
                if verb == "undo":
                    layer.pinfold("apply", "--all")
                words = ("apply", "--all") if verb == "apply" else ("undo",)
                code = layer.pinfold(*words, ok=None, wrap=(STRIKE, "kill", str(n)))[0]
                check(code in (0, 99), f"{verb}: call {n} of {total}", code)  # with what has landed before there are a few calls less
                done += code == 99
                old_or_new(before, kit.tree(layer.work), after, f"{verb} {n}")
                if n // step % 2:
                    layer.pinfold("apply", "--all")
                    same_trees(after, kit.tree(layer.work), f"{verb} {n}: then apply")
                check(layer.pinfold(*seen)[1] == own, f"{verb} {n}: what the session sees")
                code, _, err = layer.pinfold("undo", ok=None)
                check(code in (0, 4), f"{verb} {n}: then undo", code, err)
                same_trees(before, kit.tree(layer.work), f"{verb} {n}: then undo")
                check(layer.pinfold(*seen)[1] == own, f"{verb} {n}: what the session sees after undo")
                check(not os.path.exists(os.path.join(layer.work, ".pinfold")) and not os.path.exists(os.path.join(layer.dir, "journal")), f"{verb} {n}: left behind")
        check(done > 4, "kills", done)
        return f"{done} of {count + undo} calls"
    finally:
        layer.pinfold("session", "rm", "s", ok=None)


def old_or_new(before, half, after, what):
    for path in set(before) | set(after):
        if before.get(path) != after.get(path) and stat.S_IFDIR not in (before.get(path) or after.get(path))[:1]:
            check(loose(half.get(path)) in (loose(before.get(path)), loose(after.get(path))), f"{what}: {path}", half.get(path))


def loose(what):
    """Of a file: without the first of its hard links, which may not have been made or may be kept."""
    return what and [w for i, w in enumerate(what) if not (i == 4 and isinstance(w, str))]


def schedules():
    """A host that edits at a random moment of an apply: its bytes are there afterwards, or in what is kept of the layer."""
    master = new_layer("master", small, "for i in a gone dir/x todir two sl run.sh; do rm -rf $i; echo box$i >$i; done; rm -r tree; echo n >new; mkdir nd; echo q >nd/q")
    rng = random.Random(int(os.environ.get("LAYER_SEED", "1")))
    seen, refused = 0, 0
    for number in range(ROUNDS):
        layer = again(master, "schedule")
        path = rng.choice(["a", "gone", "dir/x", "todir", "two", "run.sh", "tree/in", "tree/more", "new", "nd/q", "nd"])
        bytes_ = f"host {number} {rng.random()}"
        edit = rng.choice([f"echo '{bytes_}' >>{path}", f"echo '{bytes_}' >tmp.h && mv -f tmp.h {path}", f"rm -rf {path} && echo '{bytes_}' >{path}",
                           f"echo '{bytes_}' >tmp.h && ln -f tmp.h {path} && rm -f tmp.h"])
        when = rng.randint(1, 130)
        code, out, err = layer.pinfold("apply", "--all", ok=None, wrap=(STRIKE, "do", str(when), f"(cd '{layer.work}' && ({edit}) && : >../edited) 2>/dev/null; true"))
        check(code in (0, 1), number, edit, when, out, err)
        refused += code
        kept = subprocess.run(["grep", "-rqF", bytes_, layer.work, layer.dir], check=False).returncode == 0
        edited = os.path.exists(os.path.join(layer.top, "edited"))
        seen += edited
        check(kept or not edited, f"round {number}: '{edit}' before call {when} of an apply, and its bytes are nowhere", out, err)
        check(not os.path.exists(os.path.join(layer.work, ".pinfold")), "left behind")
    check(seen > ROUNDS // 3, "the host came too late", seen)
    return f"{seen} edits in {ROUNDS} schedules, {refused} refused something"


def refuses_file_systems():
    layer = new_layer("nfs", small, "echo x >>a")
    before = kit.tree(layer.work)
    code, _, err = layer.pinfold("apply", "--all", ok=None, wrap=(STRIKE, "no", "22", "exchange"))
    check(code == 3 and "cannot exchange two files" in err and "--patch" in err, code, err)
    same_trees(before, kit.tree(layer.work), "nothing happened")
    check(not os.path.exists(os.path.join(layer.work, ".pinfold")), "left behind")
    layer.pinfold("apply", "--all")


def hostile():
    """Links and races of the box lead nowhere."""
    outside = os.path.join(SCRATCH, "outside")
    kit.fresh(outside)
    put(outside, "f", "safe")
    layer = new_layer("hostile", small, f"rm -r dir; ln -s {outside} dir; mkdir -p deep; ln -s ../a deep/l; ln -s /etc/passwd tree/p")
    code, _, err = layer.pinfold("apply", "--all", ok=None)
    check(code == 1 and "link in place of a directory" in err and not os.path.islink(os.path.join(layer.work, "dir")), "it waits", err)
    layer.pinfold("apply", "dir")
    check(os.path.islink(os.path.join(layer.work, "dir")) and os.listdir(outside) == ["f"], "a link is a link")
    layer = new_layer("hostile", small, "echo x >>dir/x; echo n >dir/new")
    shutil.rmtree(os.path.join(layer.work, "dir"))
    os.symlink(outside, os.path.join(layer.work, "dir"))
    check(layer.pinfold("apply", "--all", ok=None)[0] == 1 and os.listdir(outside) == ["f"], "a directory that the host has made a link")
    layer = new_layer("hostile", small, "echo x >>a")
    os.symlink(outside, os.path.join(layer.work, ".pinfold"))
    check(layer.pinfold("apply", "--all", ok=None)[0] != 0 and os.listdir(outside) == ["f"], "a staging directory that is a link")
    layer = new_layer("hostile", small, "chmod 000 a; mkdir no; echo x >no/x; chmod 000 no; for i in 1 2 3; do echo $i >\"$(printf 'n\\nl %s' $i)\"; done")
    code, _, err = layer.pinfold("apply", "--all", ok=None)
    check((code, "closed it" in err) == ((0, False) if os.getuid() == 0 else (1, True)), "a closed directory is refused to all but root", code, err)
    check(os.path.exists(os.path.join(layer.work, "no")) == (os.getuid() == 0), "a closed directory")
    check(stat.S_IMODE(os.stat(os.path.join(layer.work, "a")).st_mode) == 0 and os.path.exists(os.path.join(layer.work, "n\nl 2")), "what may not be read, newlines")
    layer.pinfold("undo")
    check(os.stat(os.path.join(layer.work, "a")).st_mode & 0o777 == 0o644 and not os.path.exists(os.path.join(layer.work, "n\nl 2")), "and back")


# Its bytes are replaced by as many others, and nothing but its time of change tells.
SWAP = """import os, sys
path, old, new = (os.fsencode(word) for word in sys.argv[1:])
st = os.lstat(path)
if os.path.islink(path):
    target = os.readlink(path).replace(old, new)
    os.unlink(path)
    more = [path]
    os.symlink(target, path)
    while os.lstat(path).st_ino != st.st_ino and len(more) < 200:
        os.rename(path, path + b"%d" % len(more))
        more.append(path + b"%d" % len(more))
        os.symlink(target, path)
    for one in more[1:]:
        os.unlink(one)
else:
    with open(path, "r+b") as file:
        text = file.read().replace(old, new)
        file.seek(0)
        file.write(text)
os.utime(path, ns=(st.st_atime_ns, st.st_mtime_ns), follow_symlinks=False)"""


def swapped_by(path, old, new):
    """A command for STRIKE: a box that lives replaces what was judged."""
    return shlex.join(["/usr/bin/python3", "-c", SWAP, path, old, new])


def judged_lands():
    """What lands of a link is what was judged, whatever a box that lives makes of it before it is copied."""
    master = new_layer("master", small, "ln -s agit/hooks l")
    for when in (3, 6, 9):
        layer = again(master, "judged")
        layer.pinfold("apply", "--all", ok=None, wrap=(STRIKE, "do", str(when), swapped_by(os.path.join(layer.dir, "upper/l"), "agit", ".git")))
        check(os.readlink(os.path.join(layer.dir, "upper/l")) == ".git/hooks", "not swapped before call", when)
        check(os.readlink(os.path.join(layer.work, "l")) == "agit/hooks", "before call", when, os.readlink(os.path.join(layer.work, "l")))


def setuid_mapped():
    """The kernel leaves a file its setuid bit when it is changed by a mapping; that waits to be named as a new bit does."""
    def fill(work):
        for name, mode in (("user", 0o4755), ("group", 0o2755), ("same", 0o4755), ("plain", 0o755)):
            put(work, name, "#!/bin/sh\n" * 500, mode)
    code = """import mmap, os, sys
for name in sys.argv[1:]:
    with open(name, "r+b") as file, mmap.mmap(file.fileno(), 4096, mmap.MAP_SHARED) as bytes_:
        bytes_[:10] = b"#!/bin/ev\\n"
"""
    layer = new_layer("setuid", fill, f"python3 -c {shlex.quote(code)} user group plain; touch same")
    check(os.stat(os.path.join(layer.dir, "upper/user")).st_mode & 0o4000, "the kernel takes the bit from what is mapped")
    told = layer.diff()
    check({p: "setuid" in c["alarms"] and c["waits"] for p, c in told.items()} == {"user": True, "group": True, "plain": False}, told)
    code, _, err = layer.pinfold("apply", "--all", ok=None)
    check(code == 1 and err.count("it is setuid or setgid; to apply it, name this path itself") == 2, code, err)
    for name, lands in (("user", False), ("group", False), ("plain", True)):
        check((b"/ev" in open(os.path.join(layer.work, name), "rb").read()) == lands, name)
    layer.pinfold("apply", "user")
    check(b"/ev" in open(os.path.join(layer.work, "user"), "rb").read() and os.stat(os.path.join(layer.work, "user")).st_mode & 0o4000, "named itself")


def terminal():
    """A terminal gets nothing to obey from names or contents, and no name that shows as another one; a pipe gets the bytes."""
    layer = new_layer("terminal", small, r"printf 'ok\tx\033]0;title\007\r\302\233\342\200\256y\nend' >f; : >\"$(printf 'x\342\200\256txt.exe')\"; : >\"$(printf 'e\033[2J')\"; "
                      r"ln -s \"$(printf '\033[31m')\" l")
    check(b"\x1b]0;title\x07\r\xc2\x9b" in layer.pinfold("diff", "--patch")[1].encode(errors="surrogateescape"), "the patch in a pipe is another")
    for words in (["diff"], ["diff", "--names"], ["diff", "--stat"], ["diff", "--patch"], ["apply", "--all"]):
        main, terminal_end = pty.openpty()
        done = subprocess.Popen([kit.PINFOLD, *words], cwd=layer.work, env=dict(layer.env, NO_COLOR="1"), stdin=subprocess.DEVNULL, stdout=terminal_end, stderr=terminal_end)
        os.close(terminal_end)
        said = b""
        while chunk := leader.read(main):
            said += chunk
        done.wait()
        os.close(main)
        check(b"txt.exe" in said, f"{words}: nothing is shown", said)
        wrong = [c for c in ("\x1b", "\x07", "\x9b", "\u202e") if c.encode() in said]
        check(not wrong and b"\r" not in said.replace(b"\r\n", b""), f"{words}: the terminal gets {wrong}", said)
        if words == ["diff", "--patch"]:
            check(b"+ok\tx\\x1b]0;title\\x07\\x0d" in said, "it shows something else", said)


def paged():
    """On a terminal the pager shows what is made safe, in colours unless these are unwanted; a pipe gets neither."""
    layer = new_layer("paged", small, r"echo four >>a; printf 'x\033[8mhidden\n' >f; echo w >.envrc")
    saw = os.path.join(layer.top, "saw")
    pager = f"tee {saw}; echo paged >&2"

    def seen(*words, **env):
        if os.path.exists(saw):
            os.unlink(saw)
        main, end = pty.openpty()
        done = subprocess.Popen([kit.PINFOLD, *words], cwd=layer.work, env={**layer.env, "PAGER": pager, "TERM": "xterm", **env}, stdin=end, stdout=end, stderr=end)
        os.close(end)
        said = b""
        while chunk := leader.read(main):
            said += chunk
        done.wait()
        os.close(main)
        return said, open(saw, "rb").read() if os.path.exists(saw) else None
    said, page = seen("diff")
    check(b"paged" in said and b"\033[1;31m~ .envrc" in page.replace(b"+", b"~").replace(b"\033[0m \033[1;31m", b" ") and b"Look at these first" in page, page)
    page = seen("diff", "--patch")[1]
    check(b"\033[32m+four\033[0m" in page and b"\\x1b[8mhidden" in page and b"\033[8m" not in page, page)
    page = seen("diff", "--patch", NO_COLOR="1")[1]
    check(b"\033" not in page and b"+four" in page, page)
    check(b"\033" not in seen("diff", "--patch", TERM="")[1], "colours for a terminal of no kind")
    for words, env in ((("diff", "--no-pager"), {}), (("diff",), {"PAGER": ""}), (("diff",), {"PAGER": "cat"})):
        said, page = seen(*words, **env)
        check(page is None and b".envrc" in said, words, said)
    said = seen("diff", PAGER="/nonexistent/pager")[0]
    check(b".envrc" in said, "a pager that is not there", said)
    check(seen("diff", "--json")[1] is None and seen("diff", "--names")[1] is None, "for programs")


def tooled():
    """A person's own tool gets copies of both sides, in a box that can change nothing and leaves nothing."""
    layer = new_layer("tooled", small, "echo four >>a; rm gone; echo n >new; ln -s /etc/passwd out; mkdir -p sub/deep; echo d >sub/deep/d; chmod 4755 run.sh; mkfifo pipe; echo x >.git-not; mkdir .git; echo y >.git/config")
    before = kit.tree(layer.work)
    code, out, err = layer.pinfold("diff", "--tool", "diff -r --no-dereference", ok=None)
    check(code == 0 and "+" not in out and "> four" in out and "Only in new: new" in out and "Only in old: gone" in out, code, out, err)
    code, out, _ = layer.pinfold("diff", "--tool", "f() { cat $1/a $2/a; readlink $2/out; stat -c %a $2/run.sh; touch $2/x; echo $?; pwd; }; f", ok=None)
    check("four" in out and "/etc/passwd\n700\n1\n" in out, out)
    check(not os.path.exists(out.splitlines()[-1]) and "pinfold-diff-" in out.splitlines()[-1], "left behind", out)
    code, out, _ = layer.pinfold("diff", "--tool", "ls -R", "sub")
    check("deep" in out and "gone" not in out, out)
    check(layer.pinfold("diff", "--tool", "exit 3;", ok=(1,))[2].count("status 3") == 1 and layer.pinfold("diff", "--tool", "no-such-tool", ok=(1,))[2].count("not in its box") == 1, "how it ended")
    check(layer.pinfold("diff", "--tool", "x", "--stat", ok=(2,))[0] == 2, "usage")
    same_trees(before, kit.tree(layer.work), "the workspace")


class Terminal:
    """A program with a terminal of its own as its controlling one."""

    def __init__(self, layer, *words, cwd=None):
        self.main, end = pty.openpty()
        self.got, self.at = b"", 0
        self.child = leader.Popen([kit.PINFOLD, *words], end, cwd=cwd or layer.work, env=dict(layer.env, NO_COLOR="1", TERM="xterm"))

    def until(self, text, seconds=30):
        """Waits for it, and returns what came since the last one."""
        end = time.monotonic() + seconds
        while (found := self.got.find(text.encode(), self.at)) < 0:
            check(select.select([self.main], [], [], max(0, end - time.monotonic()))[0], f"no {text!r} in", self.got[self.at:])
            more = leader.read(self.main)
            check(more, f"ended without {text!r}:", self.got)
            self.got += more
        said, self.at = self.got[self.at:found], found + len(text.encode())
        return said.decode(errors="replace")

    def type(self, text):
        os.write(self.main, text.encode())

    def end(self):
        """The rest of what it prints, and its status."""
        while True:
            more = leader.read(self.main)
            if not more:
                break
            self.got += more
        os.close(self.main)
        return self.child.wait(90), self.got[self.at:].decode(errors="replace")


def asked_then():
    """--cow-then ask: looked at, applied, kept and discarded by keys; what was typed before the question does nothing."""
    def boxed(script, *words):
        return Terminal(layer, "run", "--no-layers", "--cow", "--cow-then", "ask", *words, "--", "sh", "-c", script)

    def layers():
        return json.loads(layer.pinfold("layers", "--json")[1])["layers"]

    layer = kit.Layer(kit.fresh(os.path.join(SCRATCH, "then")))
    put(layer.work, "a", "one\n")
    box = boxed("echo two >>a; echo w >.envrc; mkfifo pipe")
    box.type("x\nx\n")
    said = box.until("k or x, and Enter: ")
    check("layer " in said and "1 changed, 2 new, 0 deleted; 2 of them must be applied by name, such as .envrc" in said and "a apply all that need not be named" in said, said)
    box.type("d\n")
    said = box.until("k or x, and Enter: ")
    check("Look at these first" in said and "~ a  +1 -0" in said, said)
    box.type("p\n")
    check("+two" in box.until("k or x, and Enter: "), "the patch")
    box.type("q\n")
    box.until("k or x, and Enter: ")
    check(open(os.path.join(layer.work, "a")).read() == "one\n", "applied unasked")
    box.type("a\n")
    status, said = box.end()
    check(status == 125 and ".envrc: it has a guarded name" in said and open(os.path.join(layer.work, "a")).read() == "one\ntwo\n", status, said)
    check(not os.path.lexists(os.path.join(layer.work, ".envrc")) and len(layers()) == 1, "what waits stays in the layer")
    layer.pinfold("discard")
    for key, left, word in (("k", 1, ""), ("\x04", 1, "is kept, because there was no answer"), ("\x03", 1, "is kept, because there was no answer"), ("x", 0, "was removed")):
        box = boxed("echo n >n; exit 3", "-q" if key == "k" else "--no-layers")
        box.until("k or x, and Enter: ")
        box.type(key if key < " " else key + "\n")
        status, said = box.end()
        check(status == 3 and word in said and len(layers()) == left, repr(key), status, said, layers())
        if left:
            layer.pinfold("discard")
    box = boxed("echo n >n; exit 3")
    box.until("k or x, and Enter: ")
    os.close(box.main)  # its window is closed, and whoever leads the session does not pass the SIGHUP on
    end = time.monotonic() + 60
    while not box.child.has_ended() and time.monotonic() < end:
        time.sleep(0.02)
    ended = box.child.has_ended()
    if not ended:
        box.child.kill_program()
    check(ended and box.child.wait(90) == 3 and len(layers()) == 1, "a question without a terminal waits for ever")
    layer.pinfold("discard")
    check("Enter:" not in boxed("true").end()[1] and not layers(), "nothing was changed, so nothing is asked")
    for words in ([], ["--json"]):
        code, out, err = layer.pinfold("run", "--no-layers", "--cow", "--cow-then", "ask", *words, "--", "touch", "never", ok=None)
        check(code == 125 and "no terminal to ask at" in out + err and not layers(), code, out, err)
    status, said = boxed("touch never", "--json").end()
    check(status == 125 and "no terminal to ask at with --json" in said, said)


def odd_objects():
    """What a box or a host can leave that is not everyday: times before 1970, modes that keep their owner out, huge sparse files."""
    layer = new_layer("odd", small, "echo n >new; touch -d '1960-01-01 00:00:00.5' new; mkdir nd; touch -d '1960-01-01 00:00:00.5' nd; truncate -s 3T big")
    began = time.monotonic()
    layer.pinfold("apply", "--all")
    check(os.stat(os.path.join(layer.work, "new")).st_mtime_ns == os.stat(os.path.join(layer.dir, "upper", "new")).st_mtime_ns < 0, "a time before 1970")
    check(os.stat(os.path.join(layer.work, "big")).st_size == 3 << 40 and os.stat(os.path.join(layer.work, "big")).st_blocks < 1000, "a hole takes room")
    check(layer.changes() == [], "holes are compared")
    layer.pinfold("undo")
    check(time.monotonic() - began < 60, "a sparse file takes long", time.monotonic() - began)

    def fill(work):
        small(work)
        put(work, "secret", "secret", 0)
        put(work, "shut/in", "in")
        os.chmod(os.path.join(work, "shut"), 0)
        os.makedirs(os.path.join(work, "bare"), mode=0)
    layer = new_layer("odd", fill, "chmod 600 secret; printf other. >secret; chmod 0 secret; chmod 700 shut; echo n >shut/n; rmdir bare; echo n >n")
    changed = os.stat(os.path.join(layer.work, "secret")).st_ctime_ns
    told = layer.diff()
    check(os.stat(os.path.join(layer.work, "secret")).st_ctime_ns == changed, "diff has touched the workspace")
    check({"secret", "shut/n", "bare", "n"} <= set(told) and not told["secret"]["conflict"], "what cannot be read", told)
    check((os.getuid() == 0) != bool(told["shut/n"]["conflict"]), "below a closed directory", told["shut/n"])
    check(layer.pinfold("diff", "--patch", ok=(1,))[0] == 1, "the patch of what cannot be read")
    layer.pinfold("apply", "secret", "bare", "n")
    layer.pinfold("undo")
    check(stat.S_IMODE(os.stat(os.path.join(layer.work, "secret")).st_mode) == 0 and os.path.isdir(os.path.join(layer.work, "bare")), "back")


def too_deep():
    """What a box has made too deep to be read is refused; all else is shown and applied."""
    layer = new_layer("deep", small, "(i=0; while [ $i -lt 300 ]; do mkdir x; cd x; i=$((i+1)); done); "
                      "(n=$(printf %0200d 7); i=0; while [ $i -lt 21 ]; do mkdir $n; cd -P $n 2>/dev/null || break; echo f >f; i=$((i+1)); done); echo n >new")
    told = layer.diff()
    check("too deep" in told["/".join("x" * 257)]["conflict"] and "new" in told, "too deep")
    check([c["conflict"] for c in told.values() if len(c["path"]) > 4095 and "too long" in c["conflict"]], "too long")
    _, patch, left = layer.pinfold("diff", "--patch", ok=(1,))
    check("+n\n" in patch and "too deep" in left and left.count("\n") == 2, "its patch", left)
    layer.pinfold("apply", "new")
    check(layer.pinfold("apply", "--all", ok=(1,))[0] == 1, "refused")
    layer.pinfold("undo")
    layer.pinfold("undo")
    check(os.listdir(layer.work).count("x") == 0, "undo")
    layer.pinfold("discard", "it")
    check(not os.path.exists(layer.dir), "discard")


def modes_of_directories():
    """A directory is opened before what is in it changes; what the host has made of its mode stays."""
    layer = new_layer("modes", small, "chmod 755 closed; echo x >>closed/deep; echo n >closed/n; echo y >>dir/x; echo n >dir/n; chmod 555 dir")
    before = kit.tree(layer.work)
    layer.pinfold("apply", "--all")
    check(layer.changes() == [], "all of it at once", layer.changes())
    layer.pinfold("undo")
    same_trees(before, kit.tree(layer.work), "undo")
    layer = new_layer("modes", small, "chmod 700 dir; echo x >>a")
    layer.pinfold("apply", "--all")
    os.chmod(os.path.join(layer.work, "dir"), 0o750)
    code, _, err = layer.pinfold("undo", ok=None)
    check(code == 1 and "dir: the host changed it after" in err and stat.S_IMODE(os.stat(os.path.join(layer.work, "dir")).st_mode) == 0o750, code, err)
    layer.pinfold("undo", "a")
    check(open(os.path.join(layer.work, "a")).read() == "one\ntwo\nthree\n", "the rest of it")


def apart():
    """The workspace on another file system than the layer: what is replaced is kept as a copy, and comes back from it."""
    if os.stat("/dev/shm").st_dev == os.stat(SCRATCH).st_dev:
        return "skipped: no second file system"
    layer = kit.Layer(kit.fresh(os.path.join(SCRATCH, "apart")))
    layer.state = tempfile.mkdtemp(prefix="pinfold-test-layer-", dir="/dev/shm")
    layer.dir = os.path.join(layer.state, "pinfold", "layers", layer.ident)
    layer.env["XDG_STATE_HOME"] = layer.state
    try:
        small(layer.work)
        if os.getuid() == 0:
            os.mknod(os.path.join(layer.work, "node"), stat.S_IFCHR | 0o600, os.makedev(1, 3))
        layer.begin()
        layer.box(SMALL.replace("/usr/bin/python3", ": python3") + "; rm -f node")
        before = kit.tree(layer.work)
        code, _, err = layer.pinfold("apply", "--all", ok=None)
        check((code, "node: cannot be kept" in err) == ((1, True) if os.getuid() == 0 else (0, False)), "a device cannot be kept", code, err)
        check(not os.path.exists(os.path.join(layer.dir, "journal")) and not os.path.exists(os.path.join(layer.work, ".pinfold")), "left behind")
        layer.pinfold("undo")
        # Names of one file that were kept as copies are files of their own afterwards.
        same_trees({p: loose(w) for p, w in before.items()}, {p: loose(w) for p, w in kit.tree(layer.work).items()}, "undo")
    finally:
        kit.remove(layer.state)


def keeps_what_is_left():
    """What an apply without a record has left of the host's is not in the way of the next one, nor replaced by it."""
    layer = new_layer("left", small, "echo x >>a")
    put(layer.dir, "undo/1/left-0", "the host's")
    layer.pinfold("apply", "--all")
    check(sorted(os.listdir(os.path.join(layer.dir, "undo"))) == ["1", "2"], "the number is used again", os.listdir(os.path.join(layer.dir, "undo")))
    layer.pinfold("undo")
    check(open(os.path.join(layer.dir, "undo/1/left-0")).read() == "the host's", "what was left is gone")


# ---- patches ----

def patch_round_trip():
    """git apply of the patch elsewhere gives the same tree."""
    def fill(work):
        small(work)
        put(work, "text", "".join(f"line {i}\n" for i in range(400)))
        put(work, "bin", bytes(range(256)) * 600)
        put(work, "noeol", "a\nb")
        put(work, "empty", "")
        put(work, "sp ace", "x\n")
        put(work, "uml\u00e4ut", "x\n")
    layer = new_layer("patch", fill, SMALL.replace("/usr/bin/python3", ": python3").replace("chmod 700 dir", ":").replace("chmod 555 shut", ":").replace("touch", ": touch") +
                      "; sed -i -e 5d -e '100s/.*/changed/' -e '300a more' text; printf '\\000\\001' >>bin; printf 'b2\\000' >bin2; printf c >>noeol; : >empty2; "
                      "echo y >>'sp ace'; echo y >>uml\u00e4ut; echo q >'qu\"o\\te'; rm empty; chmod +x noeol")
    other = os.path.join(SCRATCH, "patched")
    kit.remove(other)
    subprocess.run(["cp", "-a", layer.work, other], check=True)
    os.chmod(os.path.join(other, "closed"), 0o755)  # git changes no modes of directories on its way
    code, patch, err = layer.pinfold("diff", "--patch", ok=None)
    check(code == 0, err)
    done = subprocess.run(["git", "apply", "--whitespace=nowarn", "-"], input=patch.encode(errors="surrogateescape"), cwd=other, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, env=dict(layer.env, GIT_CEILING_DIRECTORIES=SCRATCH))
    check(done.returncode == 0, done.stdout.decode(), patch[:3000])
    layer.pinfold("apply", "--all")
    want, got = kit.tree(layer.work, times=False), kit.tree(other, times=False)
    keep = lambda t: {p: [w[0] & ~0o777, w[1] & 0o111 if w[0] == stat.S_IFREG else 0, *w[2:3]] for p, w in t.items() if w[0] != stat.S_IFDIR}  # noqa: E731
    same_trees(keep(want), keep(got), "git apply")
    layer = new_layer("patch", small, "mkdir bare; chmod 700 dir; mkfifo pipe")
    code, patch, err = layer.pinfold("diff", "--patch", ok=None)
    check(code == 1 and all(word in err for word in ("bare:", "dir:", "pipe:")), "what a patch cannot hold is said", code, err)


def patch_of_many_lines():
    layer = new_layer("lines", small, "head -c 20000000 /dev/zero | tr '\\0' '\\n' >lines; echo x >>same")
    check("GIT binary patch\nliteral 20000000" in layer.pinfold("diff", "--patch")[1] and "+samex" in layer.pinfold("diff", "--patch")[1], "a text of too many lines")
    check("+ lines\n" in layer.pinfold("diff", "--stat")[1], "the lines of one that has too many")


def renames():
    """A new file with the bytes of a deleted one is a rename, in the list and in the patch, which git apply takes."""
    def fill(work):
        small(work)
        put(work, "src/one", "first file\n")
        put(work, "src/two", "second one\n")
        put(work, "twin1", "twins\n")
        put(work, "twin2", "twins\n")
        put(work, "was empty", "")
        put(work, "b\nin", bytes(range(200)), 0o755)
        put(work, "edited", "as it was\n")
    layer = new_layer("renames", fill, "mkdir new; cp src/one new/one; cp src/two new/zwei; rm -r src; mv twin1 todir.x; mkdir d; mv twin2 d/twin2; mv 'was empty' 'is empty'; mv \"$(printf 'b\\nin')\" 'b in'; "
                      "chmod 644 'b in'; mv edited moved; echo more >>moved; rm todir; mkdir todir; mv gone todir/gone; rm tree/in; printf no >tree/no")
    told = layer.diff()
    pairs = {p: c.get("renamed_from") for p, c in told.items() if c["kind"] == "added"}
    check({p: f for p, f in pairs.items() if f} == {"new/one": "src/one", "new/zwei": "src/two", "todir.x": "twin1", "d/twin2": "twin2", "b in": "b\nin", "todir/gone": "gone"}, pairs)
    check(all(told[f].get("renamed_to") == p for p, f in pairs.items() if f), "the other way")
    text = layer.pinfold("diff")[1]
    check("+ new/one (renamed from src/one)" in text and "- src/one (renamed to new/one)" in text and "renamed from b\\x0ain" in text, text)
    other = os.path.join(SCRATCH, "renamed")
    kit.remove(other)
    subprocess.run(["cp", "-a", layer.work, other], check=True)
    patch = layer.pinfold("apply", "--patch", "-", "--all")[1]
    check(patch == layer.pinfold("diff", "--patch")[1] and patch.count("rename from ") == 6 and 'rename from "b\\nin"\nrename to b in' in patch and "similarity index 100%" in patch, patch)
    done = subprocess.run(["git", "apply", "-"], input=patch.encode(), cwd=other, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=dict(layer.env, GIT_CEILING_DIRECTORIES=SCRATCH))
    check(done.returncode == 0, done.stdout.decode(), patch)
    patch = layer.pinfold("diff", "--patch", "new/one", "todir.x")[1]
    check("rename" not in patch and "+first file" in patch, "with one side alone it is a new file", patch)
    layer.pinfold("apply", "--all")
    want, got = kit.tree(layer.work, times=False), kit.tree(other, times=False)
    same_trees({p: w[2:3] for p, w in want.items() if w[0] != stat.S_IFDIR}, {p: w[2:3] for p, w in got.items() if w[0] != stat.S_IFDIR}, "git apply")
    check(not os.stat(os.path.join(other, "b in")).st_mode & 0o111, "its mode")


def patch_of_chosen():
    """apply --patch: what apply would take and nothing else, as a patch; nothing is applied."""
    layer = new_layer("chosen", small, "echo four >>a; echo n >new; echo w >.envrc; rm gone; mkdir bare; echo x >>dir/x")
    put(layer.work, "dir/x", "the host's")
    before = kit.tree(layer.work)
    code, patch, err = layer.pinfold("apply", "--patch", "-", "--all", ok=None)
    check(code == 1 and all(word in err for word in (".envrc: it has a guarded name", "dir/x: the host changed it", "bare: a patch cannot hold an empty")), code, err)
    check("+four" in patch and "+++ b/new" in patch and "envrc" not in patch and "dir/x" not in patch, patch)
    check("+w" in layer.pinfold("apply", "--patch", "-", ".envrc")[1], "a guarded name that is named itself")
    code, out, err = layer.pinfold("apply", "--patch", "../p.patch", "a", "gone", "it", ok=None)
    check(code == 1 and "it: the layer changes nothing there" in err, code, err)
    os.unlink(os.path.join(layer.top, "p.patch"))
    code, out, err = layer.pinfold("apply", "--patch", "../p.patch", "it", "a", "gone")
    check("2 changes were written" in err and not out, out, err)
    done = json.loads(layer.pinfold("apply", "--json", "--patch", os.path.join(layer.top, "q.patch"), "a", "new")[1])
    check([d["path"] for d in done["done"]] == ["a", "new"] and not done["left_out"], done)
    same_trees(before, kit.tree(layer.work), "nothing is applied")
    other = os.path.join(SCRATCH, "chosen-other")
    kit.remove(other)
    subprocess.run(["cp", "-a", layer.work, other], check=True)
    subprocess.run(["git", "apply", os.path.join(layer.top, "p.patch")], cwd=other, check=True, env=dict(layer.env, GIT_CEILING_DIRECTORIES=SCRATCH))
    check(open(os.path.join(other, "a")).read().endswith("four\n") and not os.path.exists(os.path.join(other, "gone")) and not os.path.exists(os.path.join(other, "new")), "git apply")
    held = open(os.path.join(layer.top, "p.patch")).read()
    os.symlink(os.path.join(layer.top, "elsewhere"), os.path.join(layer.work, "link"))
    os.symlink(layer.top, os.path.join(layer.work, "out"))
    for where in ("../p.patch", "link", "out/new.patch"):
        code, out, err = layer.pinfold("apply", "--patch", where, "a", ok=None)
        check(code == 2 and "--patch " + where in err, where, code, err)
    check(open(os.path.join(layer.top, "p.patch")).read() == held and not os.path.exists(os.path.join(layer.top, "elsewhere"))
          and not os.path.exists(os.path.join(layer.top, "new.patch")), "written to a file that was there, or over a link")
    check(layer.pinfold("apply", "--patch", "none.patch", "bare", ok=(1,))[0] == 1 and not os.path.exists(os.path.join(layer.work, "none.patch")), "an empty patch")
    check(layer.pinfold("apply", "--patch", "-", ok=(2,))[0] == 2 and layer.pinfold("apply", "--json", "--patch", "-", "a", ok=(2,))[0] == 2, "usage")


def quick():
    """Time in proportion to the changes, not to the tree."""
    def fill(work):
        for i in range(1000):
            put(work, f"d{i % 20}/f{i}", f"{i}\n")
    layer = new_layer("many", fill, "for i in d*/f*; do echo x >>$i; done")
    began = time.monotonic()
    check(len(layer.changes()) == 1000, "changes")
    diff = time.monotonic() - began
    began = time.monotonic()
    layer.pinfold("apply", "--all")
    apply = time.monotonic() - began
    began = time.monotonic()
    layer.pinfold("undo")
    undo = time.monotonic() - began
    check(diff < 30 and apply < 120 and undo < 120, "too slow", diff, apply, undo)
    return f"1,000 files: diff {diff * 1000:.0f} ms, apply {apply * 1000:.0f} ms, undo {undo * 1000:.0f} ms"


def attributes():
    """user.* and ACLs of files and directories: told by diff, landed by apply, taken back by undo, and kept where only the content changes."""
    def run(*words, cwd):
        return subprocess.run(words, cwd=cwd, check=True, stdout=subprocess.PIPE).stdout.decode()

    def told(top, without=()):
        names = sorted(set(os.listdir(top)) - set(without))
        return run("getfattr", "-d", "-m", "^user", *names, cwd=top) + run("getfacl", "-n", *names, cwd=top)
    layer = kit.Layer(kit.fresh(os.path.join(SCRATCH, "attributes")))
    layer.work = os.path.realpath(layer.work)
    for name in ("plain", "kept", "changed", "gone", "acl", "acl-gone"):
        put(layer.work, name, name)
    put(layer.work, "dir/in", "in")
    other, mine = "65534", str(os.getuid())
    run("setfattr", "-n", "user.a", "-v", "1", "kept", "changed", "gone", cwd=layer.work)
    run("setfattr", "-n", "user.big", "-v", "0x" + "00ff" * 60, "kept", cwd=layer.work)
    run("setfacl", "-m", f"u:{other}:r,g:{other}:x", "kept", "acl-gone", cwd=layer.work)
    before = told(layer.work)
    time.sleep(0.02)
    script = f"""echo more >>kept; setfattr -n user.a -v 2 changed; setfattr -n user.new plain; setfattr -x user.a gone; setfacl -m u:{mine}:rwx acl; setfacl -b acl-gone
setfacl -d -m u:{mine}:rx dir; setfattr -n user.dir -v d dir; echo n >new; setfattr -n user.n -v n new; setfacl -m g:$(id -g):w new; mkdir made; setfacl -d -m u:{mine}:x made; echo m >made/m"""
    names = "acl acl-gone changed dir gone made new plain"
    seen = layer.pinfold("run", "-q", "--cow", "--", "sh", "-ec", script + f"; getfattr -d -m '^user' {names}; getfacl -n {names}")[1]
    changes = layer.diff()
    for path in ("changed", "plain", "gone", "acl", "acl-gone", "dir"):
        check("attributes" in changes[path]["what"] and "content" not in changes[path]["what"], path, changes[path])
    check(changes["kept"]["what"] == ["content"], "an edited file keeps its own", changes["kept"])
    text = layer.pinfold("diff")[1]
    check(re.search("changed .*attributes", text) and re.search("acl .*attributes", text), text)
    code, _, err = layer.pinfold("diff", "--patch", ok=None)
    check(code == 1 and "changed: a patch cannot hold its attributes" in err and "acl: a patch" in err, code, err)
    layer.pinfold("apply", "--all")
    now = told(layer.work, without=["kept"])  # whose ACL has users that the box does not know
    check(now == seen, "as the box saw them", now, seen)
    check(told(layer.work).count(f"user:{other}:r--") == 1 and "user.big" in told(layer.work), "what the box does not know", told(layer.work))
    check(not layer.diff(), layer.diff())
    layer.pinfold("undo")
    check(told(layer.work) == before, "undo", told(layer.work), before)


CASES = {"attributes": attributes, "reads": reads_what_the_box_sees, "alarms": tells_what_matters, "spelling": other_spellings, "looked": looked_at, "apply": applies_and_takes_back, "path": by_path, "host": host_edits,
         "undo-refuses": undo_refuses, "hunks": by_hunks, "hunks-meanwhile": hunks_meanwhile, "kill-hunks": killed_by_hunks, "to": elsewhere, "to-conflicts": elsewhere_conflicts, "kill-to": killed_elsewhere, "unlisted": unlisted, "kill-apply": lambda: killed("apply"), "kill-undo": lambda: killed("undo"), "kill-stacked": killed_stacked, "kill-living": killed_living, "schedules": schedules,
         "file-systems": refuses_file_systems, "hostile": hostile, "judged": judged_lands, "setuid": setuid_mapped, "odd": odd_objects,
         "modes": modes_of_directories, "apart": apart, "deep": too_deep, "left": keeps_what_is_left, "terminal": terminal, "paged": paged, "tool": tooled, "then": asked_then, "patch": patch_round_trip, "lines": patch_of_many_lines, "chosen": patch_of_chosen, "renames": renames, "quick": quick}


def main():
    global failed
    os.umask(0o022)
    for name, case in {**CASES, **repository.cases(sys.modules["__main__"])}.items():
        full = f"{name}-{LABEL}"
        if WANTED and not any(w.search(full) for w in WANTED):
            continue
        began = time.monotonic()
        try:
            note = case()
            took = time.monotonic() - began
            print(f"ok {full}{' ' + note if note else ''}{f' [{took:.1f} s]' if took > 2 else ''}", flush=True)
        except (AssertionError, OSError, subprocess.SubprocessError, KeyError, ValueError) as e:
            failed = True
            print(f"FAIL {full}: {type(e).__name__}", flush=True)
            for line in str(e)[:4000].splitlines():
                print("  " + line, flush=True)
    for name in os.listdir(SCRATCH):
        kit.remove(os.path.join(SCRATCH, name))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
