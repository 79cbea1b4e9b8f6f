// The TypeScript client package 2.4 as a client of a root, for as long as its standard input lasts.
//   typescript_root.mjs MODE URL       MODE: auto or legacy
// Each line says what there is: {NAME: TEXT}, where TEXT is how the tool's answer ends, and null says that its server is lost.
// All of it is listed and called; `ok` or `FAIL ...` comes back. What gates offer themselves does not count.
// The token is in $BANYAN_TOKEN.
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';

const require = createRequire(`${process.env.PEERS_NODE_MODULES}/here.cjs`);
const { Client, StreamableHTTPClientTransport } = require('@modelcontextprotocol/client');
const LOST = -32002;
const OWN = 'notifications_dropped';

async function listed(client) {
  const names = [];
  for (let cursor; ; ) {
    const page = await client.listTools(cursor ? { cursor } : undefined, { cacheMode: 'refresh' });
    names.push(...page.tools.map((tool) => tool.name).filter((name) => !name.endsWith(OWN)));
    cursor = page.nextCursor;
    if (!cursor) return names;
  }
}

async function answer(client, name) {
  try {
    return (await client.callTool({ name, arguments: {} })).content[0].text;
  } catch (error) {
    return error.code === LOST ? null : String(error);
  }
}

async function wrong(client, wanted) {
  const names = await listed(client);
  const other = [...names.filter((n) => !(n in wanted)), ...Object.keys(wanted).filter((n) => !names.includes(n))];
  if (other.length) return { listed: other };
  const found = {};
  for (const [name, text] of Object.entries(wanted)) {
    const got = await answer(client, name);
    if (got !== text && !(got && text && got.endsWith(text))) found[name] = got;
  }
  return found;
}

const [mode, url] = process.argv.slice(2);
const client = new Client({ name: 'banyan-root-ts2', version: '1' }, { capabilities: {}, versionNegotiation: { mode } });
const headers = { Authorization: `Bearer ${process.env.BANYAN_TOKEN}` };
await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }));
for await (const line of createInterface({ input: process.stdin })) {
  const found = await wrong(client, JSON.parse(line));
  console.log(Object.keys(found).length ? `FAIL ${JSON.stringify(found)}` : 'ok');
}
await client.close();
process.exit(0);
