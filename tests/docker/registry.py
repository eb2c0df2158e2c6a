#!/usr/bin/env python3
"""A registry of one image for --pull: registry.py TAR NAME TAG. It serves the distribution protocol's GETs on a port of 127.0.0.1
that it prints, and says on standard error what it was asked for."""
import gzip
import hashlib
import http.server
import json
import sys

layer_tar = open(sys.argv[1], "rb").read()
name, tag = sys.argv[2], sys.argv[3]
blobs = {}


def blob(content, kind):
    digest = "sha256:" + hashlib.sha256(content).hexdigest()
    blobs[digest] = content
    return {"mediaType": kind, "size": len(content), "digest": digest}


KIND = "application/vnd.docker.distribution.manifest.v2+json"
layer = blob(gzip.compress(layer_tar, 1, mtime=0), "application/vnd.docker.image.rootfs.diff.tar.gzip")
config = blob(json.dumps({"architecture": "amd64", "os": "linux", "config": {"Env": ["FROM_REGISTRY=yes"]},
                          "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(layer_tar).hexdigest()]}}).encode(),
              "application/vnd.docker.container.image.v1+json")
manifest = json.dumps({"schemaVersion": 2, "mediaType": KIND, "config": config, "layers": [layer]}).encode()
digest = blob(manifest, KIND)["digest"]


class Registry(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status, content=b"", kind="application/json"):
        self.send_response(status)
        self.send_header("Docker-Distribution-Api-Version", "registry/2.0")
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        if kind == KIND:
            self.send_header("Docker-Content-Digest", digest)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)

    def do_GET(self):  # noqa: N802 (a name of http.server's)
        path = self.path.split("?")[0]
        if path == "/v2/":
            self.answer(200, b"{}")
        elif path in (f"/v2/{name}/manifests/{tag}", f"/v2/{name}/manifests/{digest}"):
            self.answer(200, manifest, KIND)
        elif path.startswith(f"/v2/{name}/blobs/") and path.rsplit("/", 1)[1] in blobs:
            self.answer(200, blobs[path.rsplit("/", 1)[1]], "application/octet-stream")
        else:
            self.answer(404, b'{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]}')

    do_HEAD = do_GET


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Registry)
print(server.server_port, flush=True)
server.serve_forever()
