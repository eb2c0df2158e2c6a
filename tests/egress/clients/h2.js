// An HTTP/2 server: over TLS with ALPN "h2" only, as a gRPC service has it, and in clear by prior knowledge.
const http2 = require('http2'), fs = require('fs');
const [host, tls, clear, key, cert] = process.argv.slice(2);
const serve = s => s.on('stream', t => { t.on('error', () => {}); t.respond({':status': 200}); t.end('hello\n'); });
serve(http2.createSecureServer({key: fs.readFileSync(key), cert: fs.readFileSync(cert)})).listen(+tls, host);
serve(http2.createServer()).listen(+clear, host);
