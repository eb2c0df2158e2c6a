"""What pinfold offers to who was refused something: options, which can be tried, or words for what only a person outside of the box can do.

A remedy is taken from wherever it is printed: an event's `remedy`, an answer of `pinfold why`, a line on standard error, MCP. Any that is neither
an option nor one of the sentences below is a mistake: nobody has said who could do it.
"""
import json
import re

OPTION = re.compile(r"(--(?:allow-nested-userns|rw|ro|allow|reach|unix-socket|guard-allow|guard|hide|env-files|net)\b)(?: ([^\s;,']+))?")
ALONE = ("--env-files", "--allow-nested-userns", "--read-only=false")
METADATA = ("169.254.", "100.100.100.200", "fd00:ec2::")
LOOPBACK = re.compile(r"\[?(127\.|::1|localhost)")
# Done outside of the box, by somebody who can. With a word like HOST in an option's place that person has to say which.
OUTSIDE = [re.compile(pattern) for pattern in (
    r"(do|change|raise|signal|create) (it|them) (first|outside|from outside|on the host)", r"cannot be changed in a box", r"change (the|that) rule", r"remove the deny rule",
    r"credentials of its own|give the command some of its own", r"no option (allows|shares) it", r"give the file to yourself", r"let others reach it with --publish",
    r"--(allow|rw) (HOST|DIR)\b", r"run with --guard off", r"is the kernel's, and read-only in every box", r"\(--read-only, or workspace_read_only", r"no option of the sandbox would help", r"allow more with (--(timeout|memory|output|disk|pids) |options)", r"options \{\"(allow|rw)\": ?\[\"(HOST|DIR)\"\]\}", r"start pinfold as an ordinary user", r"run with options \{\"guard\": ?\"off\"\}")]


def options_in(text):
    """The options of a text, each with a value of its own; not those with a word like HOST in its place, nor the rule's origin, which stands in brackets."""
    text = re.sub(r"\([^()]*\)", "", text)
    found = [[name, value] if value else [name] for name, value in OPTION.findall(text) if not value.isupper() or not value]
    return [words[:1] if words[0] in ALONE else words for words in found if len(words) == 2 or words[0] in ALONE]


# Where what is offered is an option of: in an answer of MCP's to who can be asked and who cannot, and in a session's.
WISH = re.compile(r"options (\{.*\}) \((of this tool|of session_start, with 'recreate'); the person is asked\)$")
SERVERS = re.compile(r" \(an option of pinfold mcp, which the person can start it with\)$")
START = re.compile(r" \(an option of: pinfold session start '([^']+)' --as-before --recreate\)$")


def wish_in(text):
    """What a tool of MCP's would take as `options`, and whose argument that is; or None."""
    found = WISH.search(text)
    return (json.loads(found.group(1)), found.group(2)) if found else None


def words_of(wish):
    """The same as options of a command line."""
    (name, value), = wish.items()
    return [f"--{name}" if value is True else f"--{name}={value}".lower()] if isinstance(value, bool) else ["--" + name, *(value if isinstance(value, list) else [value])]


def is_for_a_person(text):
    return any(pattern.search(text) for pattern in OUTSIDE)


def is_forbidden(words):
    """A plain allow for a cloud's credentials or this machine's own services."""
    return words[0] == "--allow" and len(words) == 2 and (any(part in words[1] for part in METADATA) or LOOPBACK.match(words[1]) is not None)
