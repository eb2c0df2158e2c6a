// The official TypeScript SDK as client. sdk.mjs CACHE stdio PINFOLD CWD | sdk.mjs CACHE http URL TOKEN CWD
// Prints "ok NAME" and "FAIL NAME: why".
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import fs from 'node:fs';
import path from 'node:path';

const [cache, how, ...words] = process.argv.slice(2);
const sdk = (name) => import(pathToFileURL(createRequire(path.join(cache, 'x.js')).resolve('@modelcontextprotocol/sdk/' + name)));
const { Client } = await sdk('client/index.js');
const { StdioClientTransport } = await sdk('client/stdio.js');
const { StreamableHTTPClientTransport } = await sdk('client/streamableHttp.js');
const { ElicitRequestSchema, LoggingMessageNotificationSchema, ResourceUpdatedNotificationSchema, ResourceListChangedNotificationSchema } = await sdk('types.js');

const cwd = words[words.length - 1];
let failed = false;
const logs = [];
let questions = [], allow = true;

function transport() {
    if (how === 'stdio') return new StdioClientTransport({ command: words[0], args: ['mcp'], cwd, stderr: 'ignore', env: process.env });
    return new StreamableHTTPClientTransport(new URL(words[0]), { requestInit: { headers: { Authorization: 'Bearer ' + words[1] } } });
}
async function connect(capabilities) {
    const client = new Client({ name: 'test', version: '1' }, { capabilities });
    if (capabilities.elicitation)
        client.setRequestHandler(ElicitRequestSchema, async (request) => {
            questions.push(request.params.message);
            return allow ? { action: 'accept', content: { allow: true } } : { action: 'decline' };
        });
    client.setNotificationHandler(LoggingMessageNotificationSchema, (n) => { logs.push(n.params); });
    await client.connect(transport());
    return client;
}
async function test(name, body) {
    try {
        const why = await body();
        if (why) { failed = true; console.log(`FAIL ${how}/${name}: ${why}`); } else console.log(`ok ${how}/${name}`);
    } catch (e) {
        failed = true;
        console.log(`FAIL ${how}/${name}: ${String(e && e.message || e).split('\n')[0]}`);
    }
}
const text = (r) => r.content.map((c) => c.text).join('');
const run = (c, args, options) => c.callTool({ name: 'run', arguments: args }, undefined, options);
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

const client = await connect({ elicitation: {} });
const plain = how === 'stdio' ? await connect({}) : await connect({});

await test('server-info', () => client.getServerVersion().name === 'pinfold' && client.getInstructions().includes('policy') ? '' : 'wrong info');
await test('ping', async () => { await client.ping(); });
await test('tools-list', async () => {
    const { tools } = await client.listTools();
    const runner = tools.find((t) => t.name === 'run');
    const options = runner.inputSchema.properties.options.properties;
    if (!options.memory || options.net.enum.join() !== 'none,allow,host' || options.deny.type !== 'array') return 'options are not the table of keys';
    if (!runner.annotations.destructiveHint || runner.annotations.readOnlyHint) return 'annotations';
    return tools.find((t) => t.name === 'policy').annotations.readOnlyHint ? '' : 'policy is no reader';
});
await test('every-tool-has-an-output-schema', async () => {
    const without = (await client.listTools()).tools.filter((t) => t.outputSchema?.type !== 'object').map((t) => t.name);
    return without.join();
});
await test('run', async () => {
    const r = await run(client, { command: 'echo out; echo err >&2; exit 3' });
    const s = r.structuredContent;
    if (r.isError || s.exit_code !== 3 || s.stdout !== 'out\n' || s.stderr !== 'err\n' || s.ended !== 'exit') return JSON.stringify(s);
    return text(r) === 'out\nerr\n[exit status 3]\n' ? '' : JSON.stringify(text(r));
});
await test('run-words-env-stdin', async () => {
    const r = await run(client, { argv: ['sh', '-c', 'echo "$A $0 $1"; cat', 'x', 'a  b'], env: { A: 'é "q"' }, stdin: 'in\u0000put' });
    return r.structuredContent.stdout === 'é "q" x a  b\nin\u0000put' ? '' : JSON.stringify(r.structuredContent.stdout);
});
await test('run-in-workspace', async () => {
    await run(client, { command: 'echo kept > made; echo lost > /tmp/made' });
    return fs.readFileSync(path.join(cwd, 'made'), 'utf8') === 'kept\n' && !fs.existsSync('/tmp/made') ? '' : 'files';
});
await test('run-not-text', async () => {
    const r = await run(client, { command: 'printf "\\377\\376"' });
    return r.structuredContent.encoding === 'base64' && Buffer.from(r.structuredContent.stdout, 'base64').equals(Buffer.from([255, 254])) ? '' : JSON.stringify(r.structuredContent);
});
await test('run-no-such-program', async () => {
    const r = await run(client, { argv: ['no-such-program'] });
    return r.isError && /no-such-program/.test(text(r)) ? '' : text(r);
});
await test('run-cut-output', async () => {
    const r = await run(client, { command: 'yes | head -c 100000', max_output: 10 });
    return r.structuredContent.stdout.length === 10 && r.structuredContent.stdout_truncated && /longer/.test(text(r)) ? '' : text(r);
});
await test('run-timeout', async () => {
    const r = await run(client, { command: 'sleep 60', timeout_ms: 200 });
    return r.isError && /ended by timeout/.test(text(r)) ? '' : text(r);
});
await test('denial-told', async () => {
    const r = await run(client, { command: 'echo x > .envrc' });
    const s = r.structuredContent;
    if (!/denied: file create .*\.envrc/.test(text(r)) || s.denials[0].origin !== undefined) return text(r);
    const told = () => logs.some((l) => l.level === 'warning' && l.logger === 'pinfold.denied' && /\.envrc/.test(l.data.message));
    for (let i = 0; i < 1800 && !told(); i++) await sleep(50);
    return told() ? '' : 'nothing in the log: ' + JSON.stringify(logs);
});
await test('less-is-given', async () => {
    questions = [];
    const r = await run(client, { command: 'echo x > new', options: { 'read-only': true, pids: '50' } });
    return r.structuredContent.exit_code !== 0 && questions.length === 0 && !fs.existsSync(path.join(cwd, 'new')) ? '' : text(r);
});
await test('more-is-asked-for', async () => {
    questions = [];
    allow = true;
    const outside = path.join(path.dirname(cwd), 'outside');
    fs.mkdirSync(outside, { recursive: true });
    const r = await run(client, { command: `echo x > ${outside}/f`, options: { rw: [outside] } });
    return questions.length === 1 && questions[0].includes(outside) && fs.existsSync(outside + '/f') ? '' : text(r) + JSON.stringify(questions);
});
await test('more-is-declined', async () => {
    questions = [];
    allow = false;
    const r = await run(client, { command: 'true', options: { net: 'host' } });
    return r.isError && questions.length === 1 && /did not allow/.test(text(r)) ? '' : text(r);
});
await test('more-cannot-be-asked-for', async () => {
    const r = await run(plain, { command: 'true', options: { net: 'host' } });
    return r.isError && /does not support questions/.test(text(r)) ? '' : text(r);
});
await test('variables-stay-closed', async () => {
    const r = await run(client, { command: 'true', options: { hide: ['/${HOME}'] } });
    return r.isError && /no.* is expanded/.test(text(r)) && !text(r).includes(process.env.HOME) ? '' : text(r);
});
await test('policy', async () => {
    const r = await client.callTool({ name: 'policy' });
    return /network: none/.test(text(r)) && r.structuredContent.workspace === cwd && !JSON.stringify(r.structuredContent).includes('"origin"') ? '' : text(r);
});
await test('explain', async () => {
    const r = await client.callTool({ name: 'explain', arguments: { options: { memory: '64M', 'read-only': true } } });
    return /memory 64M/.test(text(r)) && !/^writable: /m.test(text(r)) ? '' : text(r);
});
await test('progress', async () => {
    const seen = [];
    await run(client, { command: 'sleep 2.5' }, { onprogress: (p) => seen.push(p), resetTimeoutOnProgress: true });
    if (!(seen.length >= 2 && seen[1].progress > seen[0].progress)) return JSON.stringify(seen);
    seen.length = 0;
    await run(client, { command: 'echo first; sleep 0.1; echo half done >&2; sleep 2.5' }, { onprogress: (p) => seen.push(p), resetTimeoutOnProgress: true });
    return seen.some((p) => p.message === 'first' || p.message === 'half done') ? '' : JSON.stringify(seen);
});
await test('cancel', async () => {
    const stop = new AbortController();
    const mark = path.join(cwd, 'alive');
    fs.rmSync(mark, { force: true });
    const call = run(client, { command: 'while :; do date +%N > alive; sleep 0.05; done' }, { signal: stop.signal });
    for (let i = 0; i < 1800 && !fs.existsSync(mark); i++) await sleep(50);
    stop.abort('enough');
    await call.catch(() => {});
    let then, now = fs.readFileSync(mark, 'utf8');
    for (let i = 0; i < 20 && now !== then; i++) { // until it stays as it is
        then = now;
        await sleep(500);
        now = fs.readFileSync(mark, 'utf8');
    }
    if (now !== then) return 'the command still runs';
    await client.ping();
});
await test('many-at-once', async () => {
    const all = await Promise.all(Array.from({ length: 24 }, (_, i) => run(client, { command: `sleep 0.2; echo ${i}` })));
    return all.every((r, i) => r.structuredContent.stdout === `${i}\n`) ? '' : 'answers were mixed up';
});
await test('resources', async () => {
    const updated = [];
    let lists = 0;
    client.setNotificationHandler(ResourceUpdatedNotificationSchema, (n) => { updated.push(n.params.uri); });
    client.setNotificationHandler(ResourceListChangedNotificationSchema, () => { lists++; });
    fs.writeFileSync(path.join(cwd, 'watched'), 'one');
    await client.callTool({ name: 'session_start', arguments: { session: 'for resources' } });
    const { resources } = await client.listResources();
    const entry = resources.find((r) => r.name === 'watched');
    if (!entry || entry.size !== 3 || !resources.some((r) => r.uri === 'pinfold://session/for%20resources/audit')) return JSON.stringify(resources);
    if ((await client.listResourceTemplates()).resourceTemplates.length !== 2) return 'templates';
    if ((await client.readResource({ uri: entry.uri })).contents[0].text !== 'one') return 'read';
    const refused = await client.readResource({ uri: 'pinfold://session/for%20resources/files/etc/shadow' }).catch((e) => e);
    if (!(refused instanceof Error)) return 'what a command may not read was read';
    await client.subscribeResource({ uri: entry.uri });
    fs.writeFileSync(path.join(cwd, 'watched'), 'another');
    for (let i = 0; i < 1800 && !updated.length; i++) await sleep(50);
    await client.unsubscribeResource({ uri: entry.uri });
    const complete = async (name, value, more) => (await client.complete({ ref: { type: 'ref/resource', uri: 'pinfold://session/{session}/files{+path}' },
        argument: { name, value }, ...more })).completion.values;
    const names = await complete('session', 'for '), paths = await complete('path', cwd + '/mad', { context: { arguments: { session: 'for resources' } } });
    if (names.join() !== 'for resources' || paths.join() !== cwd + '/made') return JSON.stringify({ names, paths });
    if (!(await complete('prompt', '').catch((e) => e) instanceof Error)) return 'an unknown variable';
    await client.callTool({ name: 'session_stop', arguments: { session: 'for resources' } });
    for (let i = 0; i < 1800 && lists < 2; i++) await sleep(50);
    return updated[0] === entry.uri && lists >= 2 ? '' : JSON.stringify({ updated, lists });
});
await test('wrong-arguments', async () => {
    for (const args of [{}, { command: 1 }, { command: 'a', argv: ['b'] }, { command: 'a', nonsense: 1 }, { command: 'a', options: { nonsense: 'x' } },
        { command: 'a', options: { memory: 1 } }, { command: 'a', timeout_ms: -1 }, { argv: [] }, { command: 'a\u0000b' }, { command: 'a', cwd: 'relative' }]) {
        const r = await run(client, args).catch((e) => e);
        if (!(r instanceof Error) && !r.isError) return JSON.stringify(args);
    }
    const e = await client.callTool({ name: 'nonsense', arguments: {} }).catch((e) => e);
    return e.code === -32602 ? '' : String(e);
});
await test('still-well', async () => { await client.ping(); await plain.ping(); });
await client.close();
await plain.close();
process.exit(failed ? 1 : 0);
