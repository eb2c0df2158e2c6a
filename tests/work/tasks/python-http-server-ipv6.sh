#!/bin/sh
# needs: python3
set -eu
python3 - <<'END'
import http.server, socket, threading, urllib.request
class Server(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6
class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *a): pass
s = Server(("::1", 0), Handler)
threading.Thread(target=s.serve_forever, daemon=True).start()
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
assert opener.open(f"http://[::1]:{s.server_port}/").status == 200
END
