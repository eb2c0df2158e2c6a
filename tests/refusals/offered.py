"""Every remedy that is printed about a row of the table (table.py), wherever it is printed: each option is tried, each sentence is for a person outside.

The same refusal is told in the events with and without --monitor, in lines on standard error, by `pinfold why`, and by MCP in its result and log.
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
        self.found, self.channels = {}, set()

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


def ask_mcp(server, command, offers):
    """The command as an agent's: in the result, and in the log while it runs."""
    del server.seen[:]
    answer = server.tool("run", {"argv": command}) or {}
    result = answer.get("result", {})
    offers.events("MCP's result", result.get("structuredContent", {}).get("denials", []))
    for message in server.seen:
        if message.get("method") == "notifications/message" and message["params"].get("logger") == "pinfold.denied":
            offers.events("MCP's log", [message["params"]["data"]])


def of_row(place, row, results, server):
    options, command = row[:2]
    offers = Offers()
    for channel, result in results.items():
        offers.events(channel, result["denials"])
    for line in lines_of(place.pinfold("run", *options, "--", *command)):
        offers.text("standard error", line, True)
    place.undo()
    ask_why(place, options, results["--monitor"]["denials"], offers)
    if server and not options:
        ask_mcp(server, command, offers)
        place.undo()
    return offers


def keys(result):
    return {(event["kind"], event["action"], event["target"]) for event in result["denials"]}


def fails(place, row, words, before):
    """What is wrong with an option, or None: with it the command succeeds, or what it is for is refused no more."""
    options, command, _, form = row
    if remedies.is_forbidden(words):
        return f"{words} is offered"
    if form == "why" or words[0] == "--allow":  # trying it takes the internet
        return None if words[0] == "--allow" and place.pinfold("why", *options, *words, "connect", words[1]).status == 0 else f"{words} does not help"
    after, done = place.result(["--monitor", *options, *words], command)
    place.undo()
    return None if after["success"] or (after["success"] is False and keys(after) < keys(before)) else f"{words} does not help: {done.said()}"


def wrong_ones(place, row, results, server):
    """What is wrong with the remedies of a row, how many options were tried, and where remedies were printed."""
    offers, wrong, tried = of_row(place, row, results, server), [], 0
    for remedy, where in offers.found.items():
        if isinstance(remedy, tuple):
            tried += 1
            said = fails(place, row, list(remedy), results["--monitor"])
            if said:
                wrong.append(f"{where}: {said}")
        elif not remedies.is_for_a_person(remedy):
            wrong.append(f"{where}: neither an option nor something for a person outside: {remedy}")
    return wrong, tried, offers.channels


def start_server(place):
    return client.Stdio(place.user, place.home, place.work)
