// Between the conformance suite and the server: adds the bearer token, which the suite cannot send, and speaks of the server's own tools.
// bearer.mjs URL TOKEN PROFILE.json; prints its port. The profile says what is asked in place of what the suite has of its own example:
// {"texts": {FROM: TO}, "tools": {NAME: {"name", "arguments"}}, "completion": {"ref", "argument"}}. Answers are passed on as they are.
import fs from 'node:fs';
import http from 'node:http';
const [to, token, file] = process.argv.slice(2);
const profile = JSON.parse(fs.readFileSync(file, 'utf8'));

function asked(text) {
  for (const [from, instead] of Object.entries(profile.texts)) text = text.replaceAll(JSON.stringify(from), JSON.stringify(instead));
  let message;
  try { message = JSON.parse(text); } catch { return text; }
  const tool = message.method === 'tools/call' && profile.tools[message.params.name];
  if (tool) Object.assign(message.params, tool);
  else if (message.method === 'completion/complete') Object.assign(message.params, profile.completion);
  else return text;
  return JSON.stringify(message);
}

const server = http.createServer((q, a) => {
  const u = new URL(to), parts = [];
  q.on('data', (part) => parts.push(part));
  q.on('end', () => {
    const body = Buffer.from(asked(Buffer.concat(parts).toString()));
    const headers = { ...q.headers, authorization: 'Bearer ' + token };
    if (body.length) headers['content-length'] = body.length;
    delete headers['transfer-encoding'];
    const r = http.request({ host: u.hostname, port: u.port, path: u.pathname, method: q.method, headers }, (s) => { a.writeHead(s.statusCode, s.headers); s.pipe(a); });
    r.on('error', () => a.destroy()); a.on('close', () => r.destroy()); r.end(body);
  });
});
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
