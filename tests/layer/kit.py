"""A workspace, a layer of it made by a real overlay mount, and what is read of trees: for tests of diff, apply and undo."""
import json
import os
import shutil
import stat
import subprocess
import time

PINFOLD = os.environ["PINFOLD"]


class Layer:
    """WORKSPACE below `top`, and STATE/layers/ID; command(s) run with an overlay of both as their directory."""

    def __init__(self, top, ident="00112233445566aa"):
        self.top = top
        self.work = os.path.join(top, "work")
        self.state = os.path.join(top, "state")
        self.dir = os.path.join(self.state, "pinfold", "layers", ident)
        self.ident = ident
        self.below = []  # directories of changes of the layers that it stands on, the uppermost first
        self.env = dict(os.environ, XDG_STATE_HOME=self.state, XDG_CONFIG_HOME=os.path.join(top, "config"), HOME=os.path.join(top, "home"))
        del self.env["PINFOLD"]  # a program that finds it set believes to be in a box
        for path in (self.work, os.path.join(top, "home"), os.path.join(top, "config")):
            os.makedirs(path, exist_ok=True)

    def begin(self, name="it", stands_on=None):
        """The record, and T0 from a file touched on the workspace's file system."""
        if stands_on:
            self.below = [os.path.join(stands_on.dir, "upper"), *stands_on.below]
        for part in ("upper", "wrk", "merged"):
            os.makedirs(os.path.join(self.dir, part), mode=0o700)
        os.chmod(os.path.join(self.state, "pinfold"), 0o700)
        time.sleep(0.02)  # past the tick in which the tree was made
        probe = os.path.join(self.top, "probe")
        with open(probe, "w"):
            pass
        began = os.stat(probe).st_ctime_ns
        time.sleep(0.02)
        st = os.stat(self.work)
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            boot = file.read().strip()
        record = {"v": 1, "id": self.ident, "name": name, "workspace": os.path.realpath(self.work), "dev": st.st_dev, "ino": st.st_ino,
                  "t0": {"sec": began // 10**9, "nsec": began % 10**9}, "boot": boot, "created": int(time.time()), "synced": True,
                  "from": stands_on and stands_on.ident, "session": None, "command": ["sh"]}
        with open(os.path.join(self.dir, "record"), "w") as file:
            json.dump(record, file)

    def box(self, script):
        """Runs a shell script in the overlay."""
        mount = ('mount -t overlay overlay -o "userxattr,volatile,lowerdir=$1,upperdir=$2/upper,workdir=$2/wrk" "$2/merged" && '
                 'cd "$2/merged" && eval "$3"; r=$?; cd /; umount "$2/merged"; chmod -R 700 "$2/wrk"; rm -rf "$2/wrk"; mkdir -p "$2/wrk"; exit $r')
        subprocess.run(["unshare", "-Urm", "sh", "-c", mount, "sh", ":".join([*self.below, self.work]), self.dir, script], check=True)

    def box_tree(self):
        """What the box sees."""
        code = "import sys, json; sys.path.insert(0, sys.argv[1]); import kit; json.dump(kit.tree('.'), sys.stdout)"
        here = os.path.dirname(os.path.abspath(__file__))
        mount = ('mount -t overlay overlay -o "userxattr,volatile,lowerdir=$1,upperdir=$2/upper,workdir=$2/wrk" "$2/merged" && '
                 'cd "$2/merged" && python3 -c "$3" "$4"; r=$?; cd /; umount "$2/merged"; chmod -R 700 "$2/wrk"; rm -rf "$2/wrk"; mkdir -p "$2/wrk"; exit $r')
        done = subprocess.run(["unshare", "-Urm", "sh", "-c", mount, "sh", self.work, self.dir, code, here], check=True, stdout=subprocess.PIPE)
        return json.loads(done.stdout)

    def pinfold(self, *words, ok=(0,), cwd=None, wrap=(), given=""):
        done = subprocess.run([*wrap, PINFOLD, *words], cwd=cwd or self.work, env=self.env, input=given.encode(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        out, err = done.stdout.decode(errors="surrogateescape"), done.stderr.decode(errors="surrogateescape")
        if ok is not None and done.returncode not in ok:
            raise AssertionError(f"pinfold {' '.join(words)}: {done.returncode}\n{out}{err}")
        return done.returncode, out, err

    def changes(self):
        return json.loads(self.pinfold("diff", "--json")[1])["changes"]

    def diff(self):
        return {c["path"]: c for c in self.changes()}


def tree(top, times=True):
    """Everything below `top` but staging directories: type, mode, bytes, target, user attributes, and of files their time."""
    found, inodes = {}, {}
    for folder, folders, files in os.walk(os.fsencode(top)):
        for name in sorted(folders + files):
            path = os.path.join(folder, name)
            st = os.lstat(path)
            rel = os.path.relpath(path, os.fsencode(top)).decode(errors="backslashreplace")
            kind = stat.S_IFMT(st.st_mode)
            what = [kind, st.st_mode & 0o7777 if kind != stat.S_IFLNK else 0]
            if kind == stat.S_IFREG:
                with open(path, "rb") as file:
                    what.append(file.read().hex())
                if times:
                    what.append(st.st_mtime_ns)
                if st.st_nlink > 1:
                    what.append(inodes.setdefault(st.st_ino, rel))
            elif kind == stat.S_IFLNK:
                what.append(os.readlink(path).decode(errors="backslashreplace"))
            if kind in (stat.S_IFREG, stat.S_IFDIR):
                what.append(sorted([n, os.getxattr(path, n).hex()] for n in os.listxattr(path)
                                   if n.startswith("user.") and not n.startswith("user.overlay.")))
            found[rel] = what
    return found


def remove(top):
    """Also what its owner may not search (overlayfs leaves work/work so)."""
    if os.path.isdir(top):
        for folder, folders, _ in os.walk(top):
            for name in folders:
                if not os.path.islink(os.path.join(folder, name)):
                    os.chmod(os.path.join(folder, name), 0o700)
        shutil.rmtree(top)


def fresh(top):
    remove(top)
    os.makedirs(top)
    return top


def copy_tree(a, b):
    subprocess.run(["cp", "-a", a, b], check=True)

