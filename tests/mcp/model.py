#!/usr/bin/env python3
"""A model endpoint of its own on loopback, as codex speaks to one (the Responses API, streamed). model.py DIRECTORY; prints its port.

It asks for one command (the text of the prompt's last line that begins with "please run: "), then answers with what the command
printed. Every request's body is kept in DIRECTORY, numbered.
"""
import http.server
import json
import os
import re
import sys
import threading

KEEP = sys.argv[1]
LOCK, COUNT = threading.Lock(), [0]


def texts(body):
    """All that was said so far, and the output of the command when there is one already in this turn."""
    said, output = [], None
    for item in body.get("input", []):
        if item.get("type") == "message" and item.get("role") == "user":
            said += [part.get("text", "") for part in item.get("content", [])]
            output = None
        elif item.get("type") in ("function_call_output", "custom_tool_call_output", "local_shell_call_output"):
            output = item.get("output")
    return said, output


def tool_call(body, command):
    """The call of whatever this version has for running a command."""
    names = {tool.get("name") or tool.get("type"): tool for tool in body.get("tools", [])}
    if "exec_command" in names:
        name, arguments = "exec_command", {"cmd": command}
    elif "shell_command" in names:
        name, arguments = "shell_command", {"command": command}
    else:
        name, arguments = "shell", {"command": ["sh", "-c", command]}
    return {"type": "function_call", "id": "fc_1", "call_id": f"call_{COUNT[0]}", "name": name, "arguments": json.dumps(arguments)}


def answer(body):
    said, output = texts(body)
    wanted = re.findall(r"please run: (.*)", said[-1] if said else "")
    if wanted and output is None:
        return tool_call(body, wanted[-1])
    before = len([s for s in said if "please" in s])
    text = f"the model was asked {before} times; the command said: {output if isinstance(output, str) else json.dumps(output)}"
    return {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": text, "annotations": []}]}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.send_response(404)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_POST(self):
        data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        with LOCK:
            COUNT[0] += 1
            number = COUNT[0]
        with open(os.path.join(KEEP, f"request-{number}"), "wb") as out:
            out.write(f"{self.path} {self.headers.get('Authorization')}\n".encode() + data)
        try:
            item = answer(json.loads(data))
        except ValueError:
            self.send_error(415)
            return
        done = {"id": f"resp_{number}", "object": "response", "status": "completed", "output": [item],
                "usage": {"input_tokens": 1, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 1,
                          "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 2}}
        events = [{"type": "response.created", "response": {"id": done["id"]}},
                  {"type": "response.output_item.added", "output_index": 0, "item": item},
                  {"type": "response.output_item.done", "output_index": 0, "item": item},
                  {"type": "response.completed", "response": done}]
        stream = "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(stream)))
        self.end_headers()
        self.wfile.write(stream)


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
