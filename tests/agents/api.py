#!/usr/bin/env python3
"""A model endpoint of its own on loopback, as Claude Code speaks to one (the Messages API, streamed), Gemini CLI (generateContent) and
OpenAI's chat completions. Prints its port.

It answers with the number of the person's prompts in the conversation so far, so that one that goes on is known from a new one.
api.py CALLS RESULTS: it asks for tools first, one after the other ([[NAME, INPUT], ...], a file), and writes what came of each.
"""
import http.server
import json
import sys


def answer(body):
    asked = 0
    for message in body.get("messages", []) + body.get("contents", []):
        content = message.get("content", message.get("parts"))
        parts = [content] if isinstance(content, str) else [part.get("text", "") for part in content or []]
        asked += message.get("role") == "user" and any("please count" in part for part in parts)
    return f"asked {asked} times"


def tool_call(body):
    """The next tool, or None: (number, name, input)."""
    if len(sys.argv) < 3 or not body.get("tools"):
        return None
    with open(sys.argv[1], encoding="utf-8") as file:
        calls = json.load(file)
    results = [part for message in body.get("messages", []) for part in (message["content"] if isinstance(message.get("content"), list) else [])
               if part.get("type") == "tool_result"]
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        json.dump([[bool(part.get("is_error")), part.get("content")] for part in results], file)
    return (len(results), *calls[len(results)]) if len(results) < len(calls) else None


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def reply(self, status, kind, data):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_HEAD(self):
        self.reply(200, "text/plain", b"")

    def do_GET(self):
        self.reply(404, "application/json", b"{}")

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
        if "enerateContent" in self.path:
            self.gemini(body)
            return
        if "/chat/completions" in self.path:
            self.chat(body)
            return
        if "/messages" not in self.path or "count_tokens" in self.path:
            self.reply(200, "application/json", b'{"input_tokens": 1}')
            return
        text, usage = answer(body), {"input_tokens": 1, "output_tokens": 1}
        message = {"id": "msg_1", "type": "message", "role": "assistant", "model": body.get("model", "m"), "content": [], "stop_reason": None,
                   "stop_sequence": None, "usage": usage}
        if not body.get("stream"):
            done = dict(message, content=[{"type": "text", "text": text}], stop_reason="end_turn")
            self.reply(200, "application/json", json.dumps(done).encode())
            return
        call = tool_call(body)
        if call:
            self.tool(message, usage, *call)
            return
        events = [{"type": "message_start", "message": message},
                  {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
                  {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}},
                  {"type": "content_block_stop", "index": 0},
                  {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": usage},
                  {"type": "message_stop"}]
        self.events(events)

    def gemini(self, body):
        said = {"candidates": [{"content": {"role": "model", "parts": [{"text": answer(body)}]}, "finishReason": "STOP", "index": 0}],
                "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}, "modelVersion": "m"}
        if "stream" in self.path:
            self.reply(200, "text/event-stream", f"data: {json.dumps(said)}\r\n\r\n".encode())
        else:
            self.reply(200, "application/json", json.dumps(said).encode())

    def chat(self, body):
        text, usage = answer(body), {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        head = {"id": "c1", "created": 1, "model": body.get("model", "m")}
        if not body.get("stream"):
            said = dict(head, object="chat.completion", choices=[{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}], usage=usage)
            self.reply(200, "application/json", json.dumps(said).encode())
            return
        parts = [dict(head, object="chat.completion.chunk", choices=[{"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": None}]),
                 dict(head, object="chat.completion.chunk", choices=[{"index": 0, "delta": {}, "finish_reason": "stop"}], usage=usage)]
        self.reply(200, "text/event-stream", ("".join(f"data: {json.dumps(part)}\n\n" for part in parts) + "data: [DONE]\n\n").encode())

    def tool(self, message, usage, number, name, given):
        self.events([{"type": "message_start", "message": message},
                     {"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": {}}},
                     {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": json.dumps(given)}},
                     {"type": "content_block_stop", "index": 0},
                     {"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": None}, "usage": usage},
                     {"type": "message_stop"}])

    def events(self, events):
        self.reply(200, "text/event-stream", "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events).encode())


def main():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
