"""When a refused connection is reset: reset.py HOST PORT. Not before the client's first words, nor never."""
import select
import socket
import sys
import time


def until_reset(words, patience):
    """Seconds from before the connection to its reset; None: there was none. `words` are said at once."""
    began = time.monotonic()
    with socket.create_connection((sys.argv[1], int(sys.argv[2]))) as s:
        if words:
            s.send(words)
        p = select.poll()
        p.register(s, select.POLLIN)
        return time.monotonic() - began if p.poll(patience * 1000) else None


# One that was not looked at in time by this program says nothing about pinfold.
soon = [until_reset(b"", 0.03) for _ in range(20)]
print("too early" if any(s is not None and s < 0.09 for s in soon) else "waits for words")
print("reset" if until_reset(b"x", 10) and until_reset(b"", 10) else "never")
