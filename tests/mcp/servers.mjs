// Real MCP servers from npm as `pinfold run` starts them, as an entry of .mcp.json would. servers.mjs CACHE PINFOLD CWD
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import fs from 'node:fs';
import path from 'node:path';

const [cache, pinfold, cwd] = process.argv.slice(2);
const sdk = (name) => import(pathToFileURL(createRequire(path.join(cache, 'x.js')).resolve('@modelcontextprotocol/sdk/' + name)));
const { Client } = await sdk('client/index.js');
const { StdioClientTransport } = await sdk('client/stdio.js');
let failed = false;
const text = (r) => r.content.map((c) => c.text).join('');

async function server(name, args, body) {
    const entry = { command: pinfold, args: ['run', '-q', '--ro', cache, '--', process.execPath, path.join(cache, 'node_modules/@modelcontextprotocol', name), ...args] };
    const client = new Client({ name: 'test', version: '1' });
    try {
        await client.connect(new StdioClientTransport({ ...entry, cwd, env: process.env, stderr: 'ignore' }));
        const why = await body(client);
        if (why) throw new Error(why);
        console.log(`ok servers/${name.split('/')[0]}`);
    } catch (e) {
        failed = true;
        console.log(`FAIL servers/${name.split('/')[0]}: ${String(e.message).split('\n')[0]}`);
    }
    await client.close().catch(() => {});
}

fs.writeFileSync(path.join(cwd, 'here.txt'), 'in the workspace\n');
await server('server-filesystem/dist/index.js', [cwd], async (client) => {
    const r = await client.callTool({ name: 'read_text_file', arguments: { path: path.join(cwd, 'here.txt') } });
    if (text(r) !== 'in the workspace\n') return text(r);
    await client.callTool({ name: 'write_file', arguments: { path: path.join(cwd, 'there.txt'), content: 'written' } });
    if (fs.readFileSync(path.join(cwd, 'there.txt'), 'utf8') !== 'written') return 'nothing was written';
    // What the server itself would allow, the box does not: a guarded name.
    const denied = await client.callTool({ name: 'write_file', arguments: { path: path.join(cwd, '.envrc'), content: 'x' } });
    return denied.isError && !fs.existsSync(path.join(cwd, '.envrc')) ? '' : 'a guarded name was written';
});
await server('server-everything/dist/index.js', ['stdio'], async (client) => {
    const { tools } = await client.listTools();
    if (!tools.some((t) => t.name === 'echo')) return 'no echo';
    const r = await client.callTool({ name: 'echo', arguments: { message: 'from the box' } });
    return /from the box/.test(text(r)) ? '' : text(r);
});
process.exit(failed ? 1 : 0);
