// Adds the bearer token: the conformance suite can send none. bearer.mjs URL TOKEN [FROM=TO]...; prints its port.
// FROM=TO: what the suite calls FROM (its own example's resources) is asked for as TO.
import http from 'node:http';
const [to, token, ...names] = process.argv.slice(2);
const renamed = (text) => names.reduce((t, n) => t.replaceAll('"' + n.slice(0, n.indexOf('=')) + '"', '"' + n.slice(n.indexOf('=') + 1) + '"'), text);
const server = http.createServer((q, a) => {
  const u = new URL(to), parts = [];
  q.on('data', (part) => parts.push(part));
  q.on('end', () => {
    const body = Buffer.from(renamed(Buffer.concat(parts).toString()));
    const headers = { ...q.headers, authorization: 'Bearer ' + token };
    if (body.length) headers['content-length'] = body.length;
    delete headers['transfer-encoding'];
    const r = http.request({ host: u.hostname, port: u.port, path: u.pathname, method: q.method, headers }, (s) => { a.writeHead(s.statusCode, s.headers); s.pipe(a); });
    r.on('error', () => a.destroy()); a.on('close', () => r.destroy()); r.end(body);
  });
});
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
