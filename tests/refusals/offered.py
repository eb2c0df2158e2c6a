"""Every remedy that is printed about a row of the table (table.py), wherever it is printed: each option is tried, each sentence is for a person outside.

The same refusal is told in the events with and without --monitor, in lines on standard error, by `pinfold why`, by MCP in its text, result and log, and
in a session. There it is something else that allows it: an argument of the tool, about which the person is asked, an option of the server, or of
`pinfold session start`. Each option is also tried in these ways, once. Where there are two users, root's events with --monitor alone are read: whoever
asks, all others offer what events say.
"""
import json
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib"), os.path.join(HERE, "..", "mcp")]
import client  # noqa: E402
import remedies  # noqa: E402

ACTS = {"read": "read", "write": "write", "create": "create", "exec": "exec", "remove": "write", "change": "write", "link": "create", "rename": "create",
        "git-config": "write", "connect": "connect", "signal": "signal"}


KINDS = re.compile(r"pinfold: (file|network|socket|process|namespace|syscall|timeout|memory|output): ")


def lines_of(done):
    """About refusals; others say what a box leaves behind, or how it ended."""
    return [line for line in done.err.decode("utf-8", "replace").splitlines() if KINDS.match(line)]


class Offers:
    """Of one row: remedy (words of an option, or a sentence) -> where it was printed."""

    def __init__(self):
        self.found, self.channels, self.wrong = {}, set(), []

    def text(self, channel, text, line=False):
        """A remedy as text; a whole `line` says more than that."""
        self.channels.add(channel)
        words = remedies.options_in(text)
        if text.startswith("--") and not line:  # an option and its value, which may have blanks
            name, _, value = text.partition(" ")
            words = [[name, value] if value else [name]]
        for option in words:
            self.found.setdefault(tuple(option), f"{channel}: {text}")
        if not words:
            self.found.setdefault(text, channel)

    def events(self, channel, events):
        for event in events:
            if event.get("remedy"):
                self.text(channel, event["remedy"])

    def there(self, channel, remedy, way):
        """A remedy that is for one place alone: `way` takes it apart, and returns what an option of it is as words, or None."""
        self.channels.add(channel)
        words = way(remedy)
        if words and not words[-1].isupper():
            self.found.setdefault(tuple(words), f"{channel}: {remedy}")
        elif remedies.options_in(remedy) and not remedies.is_for_a_person(remedy):
            self.wrong.append(f"{channel}: an option of what? {remedy}")
        else:
            self.found.setdefault(remedy, channel)


def ask_why(place, options, events, offers):
    """`pinfold why` about what the events name."""
    asked = set()
    for event in events:
        act, target = ACTS.get(event["action"]), event["target"]
        if event["action"] == "remove":  # from a directory
            target = os.path.dirname(target)
        if not act or event["kind"] not in ("file", "network", "socket", "process") or target[:1] in "(@" or (act, target) in asked:
            continue
        asked.add((act, target))
        done = place.pinfold("why", "--json", *options, act, target)
        try:
            remedy = json.loads(done.out)["remedy"] or {}
        except (ValueError, KeyError):
            continue
        if "options" in remedy:
            offers.text("why", " ".join(remedy["options"]))
        if "outside" in remedy:
            offers.text("why", remedy["outside"])


class Asking(client.Stdio):
    """A server, a person who says yes, and what was tried of its remedies."""

    def __init__(self, place, *words):
        self.tried = set()
        super().__init__(place.user, place.home, place.work, words, capabilities={"elicitation": {}})

    def hear(self, limit=60):
        message = super().hear(limit)
        while message and message.get("method") == "elicitation/create":
            self.say({"jsonrpc": "2.0", "id": message["id"], "result": {"action": "accept", "content": {"allow": True}}})
            message = super().hear(limit)
        return message


def wished(remedy):
    wish = remedies.wish_in(remedy)
    return remedies.words_of(wish[0]) if wish else None


def refused_in(answer):
    """Of a tool's answer: (what was refused, whether the command succeeded, its text)."""
    result = (answer or {}).get("result", {})
    structured, text = result.get("structuredContent", {}), "".join(part.get("text", "") for part in result.get("content", []))
    return [d for d in structured.get("denials", []) if d["kind"] != "limit"], structured.get("success"), text


def told_in_text(channel, denials, text, offers):
    """The model reads the text: each refusal is there with its remedy, the same as in the structured result."""
    for denial in denials[:8]:
        if not denial.get("remedy") or f"; {denial['remedy']}]\n" not in text:
            offers.wrong.append(f"{channel}: the text has no remedy for {denial}: {text[-2000:]}")


def less(before, answer):
    """Whether a command was refused less in this answer."""
    after, good, _ = refused_in(answer)
    return good or {(d["action"], d["target"]) for d in after} < {(d["action"], d["target"]) for d in before}


def ask_mcp(place, server, command, offers):
    """The command as an agent's: in the text, in the result, and in the log while it runs; the first of each option as it is offered."""
    del server.seen[:]
    denials, _, text = refused_in(server.tool("run", {"argv": command}))
    told_in_text("MCP's text", denials, text, offers)
    logged = [message["params"]["data"] for message in server.seen
              if message.get("method") == "notifications/message" and message["params"].get("logger") == "pinfold.denied"]
    for channel, events in (("MCP's result", denials), ("MCP's log", logged)):
        for event in events:
            if event.get("remedy"):
                offers.there(channel, event["remedy"], wished)
    for denial in denials:
        wish = remedies.wish_in(denial.get("remedy") or "")
        name = next(iter(wish[0])) if wish else None
        if not wish or name in server.tried or remedies.words_of(wish[0])[-1].isupper() or name == "allow":  # trying it takes the internet
            continue
        server.tried.add(name)
        place.undo()
        again = server.tool("run", {"argv": command, "options": wish[0]})
        if not less(denials, again):
            offers.wrong.append(f"MCP's argument: {denial['remedy']} does not help: {again}")


SESSION = "offered"


def started(remedy):
    """The option of a session's remedy."""
    return next(iter(remedies.options_in(remedies.START.sub("", remedy))), None) if remedies.START.search(remedy) else None


def ask_session(place, tried, command, offers):
    """The command in a session: in its result and in the lines; the first of each option with the line that is offered."""
    done = place.pinfold("exec", "--json", SESSION, *command)
    place.undo()
    try:
        denials = [d for d in json.loads(done.out)["denials"] if d["kind"] != "limit"]
    except (ValueError, KeyError):
        offers.wrong.append("session: no result: " + done.said())
        return
    for denial in denials:
        if not denial.get("remedy"):
            offers.wrong.append(f"session: no remedy: {denial}")
            continue
        offers.there("a session's result", denial["remedy"], started)
        option = started(denial["remedy"])
        if not option or option[0] in tried or option[-1].isupper() or option[0] == "--allow":
            continue
        tried.add(option[0])
        lines = lines_of(place.pinfold("exec", SESSION, *command))
        place.undo()
        way = remedies.START.search(denial["remedy"])[0]
        if not denial.get("guess") and not any(" ".join(option) in line and way in line for line in lines):  # its own words are not read there
            offers.wrong.append(f"session: the lines do not say {denial['remedy']!r}: {lines}")
        start = place.pinfold("session", "start", SESSION, "--as-before", "--recreate", *option)
        again = place.pinfold("exec", "--json", SESSION, *command)
        place.undo()
        after = json.loads(again.out) if start.status == 0 else {}
        if not less(denials, {"result": {"structuredContent": after}}):
            offers.wrong.append(f"session: {denial['remedy']} does not help: {start.said()} {again.said()}")
        place.pinfold("session", "rm", SESSION)
        start_session(place)


def start_session(place):
    done = place.pinfold("session", "start", SESSION)
    if done.status:
        raise RuntimeError("no session: " + done.said())


class Readers:
    """Where the rows without options are also tried: a server whose person can be asked, and a session."""

    def __init__(self, place):
        self.place, self.server, self.tried = place, Asking(place), set()
        start_session(place)

    def ask(self, command, offers):
        ask_mcp(self.place, self.server, command, offers)
        self.place.undo()
        ask_session(self.place, self.tried, command, offers)

    def end(self):
        self.server.end()
        self.place.pinfold("session", "rm", SESSION)


def servers_options(place):
    """What is wrong with the remedies of a server that cannot ask anybody: its options, which are tried as such; and of a session's shell."""
    wrong, plain = [], client.Stdio(place.user, place.home, place.work)
    for command in (["touch", place.other + "/new"], ["cat", place.home + "/.ssh/id_rsa"], ["cat", ".env"], ["sh", "-c", "echo x > .envrc"]):
        denials, _, text = refused_in(plain.tool("run", {"argv": command}))
        remedy = (denials[0].get("remedy") or "") if denials else ""
        option = next(iter(remedies.options_in(remedies.SERVERS.sub("", remedy))), None)
        if not option or not remedies.SERVERS.search(remedy) or f"; {remedy}]\n" not in text:
            wrong.append(f"no option of the server: {denials} {text}")
            continue
        allowed = client.Stdio(place.user, place.home, place.work, option)
        place.undo()
        if not less(denials, allowed.tool("run", {"argv": command})):
            wrong.append(f"as an option of the server it does not help: {remedy}")
        allowed.end()
        place.undo()
    plain.end()
    asking = Asking(place)
    command = f"touch {place.other}/new"
    denials, _, text = refused_in(asking.tool("bash", {"command": command}))
    offers = Offers()
    told_in_text("MCP's shell", denials, text, offers)
    wish = remedies.wish_in(denials[0].get("remedy") or "") if denials else None
    if not wish or "session_start" not in wish[1]:
        wrong.append(f"a session's shell is not told how: {denials} {text}")
    else:
        asking.tool("session_start", {"options": wish[0], "recreate": True})
        if not less(denials, asking.tool("bash", {"command": command})):
            wrong.append(f"it does not help there: {denials}")
    asking.end()
    place.undo()
    return wrong + offers.wrong


def of_row(place, row, results, readers):
    options, command = row[:2]
    offers = Offers()
    if not readers:  # its events alone
        offers.events("--monitor", results["--monitor"]["denials"])
        return offers
    for channel, result in results.items():
        offers.events(channel, result["denials"])
    for line in lines_of(place.pinfold("run", *options, "--", *command)):
        offers.text("standard error", line, True)
    place.undo()
    ask_why(place, options, results["--monitor"]["denials"], offers)
    if not options:
        readers.ask(command, offers)
        place.undo()
    return offers


def keys(result):
    return {(event["kind"], event["action"], event["target"]) for event in result["denials"]}


def fails(place, row, words, before, good):
    """What is wrong with an option, or None: with it the command succeeds, and is in `good` then, or what it is for is refused no more."""
    options, command, _, form = row
    if remedies.is_forbidden(words):
        return f"{words} is offered"
    if form == "why" or words[0] == "--allow":  # trying it takes the internet
        return None if words[0] == "--allow" and place.pinfold("why", *options, *words, "connect", words[1]).status == 0 else f"{words} does not help"
    after, done = place.result(["--monitor", *options, *words], command)
    place.undo()
    if after["success"]:
        good.add(" ".join(words))
    return None if after["success"] or (after["success"] is False and keys(after) < keys(before)) else f"{words} does not help: {done.said()}"


def wrong_ones(place, row, results, readers, good):
    """What is wrong with the remedies of a row, how many options were tried, and where remedies were printed."""
    offers, wrong, tried = of_row(place, row, results, readers), [], 0
    wrong += offers.wrong
    for remedy, where in offers.found.items():
        if isinstance(remedy, tuple):
            tried += 1
            said = fails(place, row, list(remedy), results["--monitor"], good)
            if said:
                wrong.append(f"{where}: {said}")
        elif not remedies.is_for_a_person(remedy):
            wrong.append(f"{where}: neither an option nor something for a person outside: {remedy}")
    return wrong, tried, offers.channels
