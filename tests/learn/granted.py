"""Grants while the command runs: only what was answered, only that object, only by a yes in time; what else fails as always."""
import json
import os
import pty
import select
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import pf  # noqa: E402

# With the descriptor of a file that was granted for appending: what that must not be good for, each with its errno's name.
BEYOND = r"""
import errno, json, os
fd, own = os.open(PATH, os.O_WRONLY | os.O_APPEND), "/proc/self/fd/%d"
os.write(fd, b"new\n")
found = {}
def attempt(name, act):
    try:
        act()
        found[name] = "done"
    except OSError as e:
        found[name] = errno.errorcode[e.errno]
attempt("mode", lambda: os.fchmod(fd, 0o777))
attempt("mode by the descriptor's name", lambda: os.chmod(own % fd, 0o777))
attempt("times", lambda: os.utime(fd, (1, 1)))
attempt("an attribute", lambda: os.setxattr(fd, "user.x", b"x"))
attempt("a link to it", lambda: os.link(own % fd, "stolen"))
attempt("what lies beside it", lambda: os.open(own % fd + "/../two", os.O_WRONLY))
attempt("another file", lambda: os.open(OTHER, os.O_WRONLY))
attempt("its name", lambda: os.unlink(PATH))
attempt("a new name", lambda: os.open(PATH + ".new", os.O_WRONLY | os.O_CREAT))
attempt("by a link of the box's", lambda: (os.symlink(OTHER, "link"), os.open("link", os.O_WRONLY)))
attempt("by another name of it", lambda: os.open(TWICE, os.O_WRONLY))
print(json.dumps(found))
"""


def see(so, what, detail=""):
    if not so:
        raise AssertionError(f"{what}\n{detail.said() if isinstance(detail, pf.Done) else detail}")


def only_what_was_answered(s):
    """One pass; and with the descriptor nothing is possible that was not answered."""
    one, two, twice = s.put("other/data.txt", "old\n"), s.put("other/two", "2\n"), s.put("other/twice", "t\n")
    os.link(twice, s.other + "/also")
    code = BEYOND.replace("PATH", repr(one)).replace("OTHER", repr(two)).replace("TWICE", repr(twice))
    found, done = s.learn(["python3", "-c", code], answers=["allow files.rw: ../other/data.txt", "allow files.rw: ../other/twice"], *["--passes", "1"])
    see(done.status == 0, "not granted", done)
    granted = {r["value"]: r["count"] for r in found["add"] if r["granted"]}
    see(granted == {"../other/data.txt": 1}, "other grants", found)
    beyond = json.loads(done.err)
    allowed = {name: errno for name, errno in beyond.items() if errno == "done"}
    see(not allowed and len(beyond) == 11, "the descriptor is good for more", beyond)
    mode = os.stat(one).st_mode & 0o777
    see(s.read("other/data.txt") == "old\nnew\n" and s.read("other/two") == "2\n" and s.read("other/twice") == "t\n" and mode == 0o644, "other contents", f"{mode:o}")
    see(sorted(os.listdir(s.other)) == ["also", "data.txt", "twice", "two"] and not os.path.lexists(s.work + "/stolen"), "other names", os.listdir(s.other))


def never_what_needs_more(s):
    """What a rule hides or protects, pinfold's own files and a device are not asked about, whatever the answers allow."""
    state = s.put("home/.config/pinfold/policy.yaml", "{}\n")
    s.put("other/kept", "k\n")
    s.do("git", "-c", "init.defaultBranch=m", "init", "-q", s.other + "/repo")
    hook = s.put("other/repo/.git/hooks/pre-commit", "#!/bin/sh\n")
    config = s.read("other/repo/.git/config")
    targets = [s.home + "/.ssh/id_rsa", state, s.other + "/kept", hook, s.other + "/repo/.git/config"]
    found, done = s.learn(["sh", "-c", "for f in " + " ".join(targets) + "; do echo x >> $f; done; true"], "--protect", s.other + "/kept", "--passes", "1",
                          answers=["allow files.rw: " + t for t in targets] + ["allow files.rw: ../other/repo"])
    see(not [r for r in found["add"] if r["granted"]], "granted", found)
    see(s.read("other/repo/.git/hooks/pre-commit") == "#!/bin/sh\n" and s.read("other/repo/.git/config") == config, "a repository's own files were written", done)
    see((s.read("home/.ssh/id_rsa"), s.read("home/.config/pinfold/policy.yaml"), s.read("other/kept")) == ("secret\n", "{}\n", "k\n"), "written", done)


def a_host_meanwhile(s):
    """A host is allowed while the command waits for it: one pass, and only by that name and port."""
    found, done = s.learn(["curl", "-sS", "-m", "5", "http://granted.example:8080/", "http://other.example:81/"], answers=["allow net.allow: granted.example:8080"], *["--passes", "1"])
    granted = [r["value"] for r in found["add"] if r["granted"]]
    see(granted == ["granted.example:8080"] and any(r["value"] == "other.example:81" and r["answer"] == "open" for r in found["add"]), "other grants", f"{found}\n{done.said()}")


def at_the_terminal(s, command, act, *options):
    """Runs it with a terminal; `act` gets the text so far at each question and returns what is typed, None: nothing."""
    main, other = pty.openpty()
    seen, over = [""], threading.Event()

    def person():
        at = 0
        while not over.is_set():
            if not select.select([main], [], [], 0.1)[0]:
                continue
            seen[0] += os.read(main, 4096).decode()
            if seen[0].endswith("[y/N] ") and len(seen[0]) > at:
                at = len(seen[0])
                typed = act(seen[0])
                if typed is not None:
                    os.write(main, typed.encode() + b"\n")
    thread = threading.Thread(target=person)
    thread.start()
    done = s.pinfold("learn", "--json", "--passes", "1", *options, "--", *command, stdin=other, stderr=other)
    over.set()
    thread.join()
    os.close(other)
    os.close(main)
    return json.loads(done.out), seen[0]


def replaced_while_asked(s):
    """The host puts another file, then a link to a key, in the place of what is shown: neither is written after the yes."""
    one = s.put("other/data.txt", "old\n")
    command = ["sh", "-c", f"echo new >> {one}"]

    def replace(_):
        os.rename(s.put("other/fresh", "fresh\n"), one)
        return "y"
    found, seen = at_the_terminal(s, command, replace)
    see(s.read("other/data.txt") == "fresh\n" and f"sh waits to write {one})? [y/N]" in seen, "written, or not asked", f"{found}\n{seen}")

    def link(_):
        os.unlink(one)
        os.symlink(s.home + "/.ssh/id_rsa", one)
        return "y"
    at_the_terminal(s, command, link)
    see(s.read("home/.ssh/id_rsa") == "secret\n", "the key was written")
    # The same question with nobody in between.
    os.unlink(one)
    s.put("other/data.txt", "old\n")
    found, seen = at_the_terminal(s, command, lambda _: "y")
    see(s.read("other/data.txt") == "old\nnew\n" and found["exit_code"] == 0, "not granted", f"{found}\n{seen}")


def no_answer_is_a_no(s):
    """Nobody answers in time: refused, and the command goes on; what it prints is no answer and no question."""
    one = s.put("other/data.txt", "old\n")
    script = f"echo 'pinfold: allow files.rw: / (sh waits to write /)? [y/N] y'; echo new >> {one}; echo went on"
    found, seen = at_the_terminal(s, ["sh", "-c", script], lambda text: None if text.count("waits to write") < 3 and "refused)" not in text else "n", "--ask-time", "1s")
    see(s.read("other/data.txt") == "old\n" and "went on" in seen and not [r for r in found["add"] if r["granted"]], "granted, or stuck", f"{found}\n{seen}")


CASES = [only_what_was_answered, never_what_needs_more, a_host_meanwhile, replaced_while_asked, no_answer_is_a_no]
