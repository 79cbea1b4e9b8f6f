// A device behind a gate as an official TypeScript client sees it; one printed line a check.
//   device_tour.mjs PACKAGE MODE URL DESCRIPTION
//   PACKAGE: v1 (`@modelcontextprotocol/sdk`) or v2 (`@modelcontextprotocol/client`); MODE: legacy or 2026-07-28
import { createRequire } from 'node:module';
import { setTimeout as sleep } from 'node:timers/promises';

const require = createRequire(`${process.env.PEERS_NODE_MODULES}/here.cjs`);
const [kind, mode, url, description] = process.argv.slice(2);
const LAN = 'network:///interface/lan0';

function say(name, ok, detail = '') {
  console.log(ok ? `ok ${name}` : `FAIL ${name} ${JSON.stringify(detail)?.slice(0, 500)}`);
}

const updates = [];
let client;
if (kind === 'v1') {
  const { Client } = require('@modelcontextprotocol/sdk/client/index.js');
  const { StreamableHTTPClientTransport } = require('@modelcontextprotocol/sdk/client/streamableHttp.js');
  const { ResourceUpdatedNotificationSchema } = require('@modelcontextprotocol/sdk/types.js');
  client = new Client({ name: 'banyan-device-ts1', version: '1' }, { capabilities: {} });
  client.setNotificationHandler(ResourceUpdatedNotificationSchema, (n) => void updates.push(n.params.uri));
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
} else {
  const { Client, StreamableHTTPClientTransport } = require('@modelcontextprotocol/client');
  client = new Client(
    { name: 'banyan-device-ts2', version: '1' },
    { capabilities: {}, versionNegotiation: { mode: mode.startsWith('2') ? { pin: mode } : mode } },
  );
  client.setNotificationHandler('notifications/resources/updated', (n) => void updates.push(n.params.uri));
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  say('connect', client.getNegotiatedProtocolVersion() === (mode === 'legacy' ? '2025-11-25' : mode), client.getNegotiatedProtocolVersion());
}
await sleep(200); // the session's GET stream opens beside the first requests

const named = {};
for (const tool of (await client.listTools()).tools) named[tool.name.replace(/[_.]+/g, '.')] = tool.name;
say('tools', ['network.cli.exec', 'network.cli.configure', 'network.commit', 'network.rollback'].every((name) => named[name]), Object.keys(named));
const call = (name, args = {}) => client.callTool({ name: named[name], arguments: args });

const read = async (uri) => (await client.readResource({ uri })).contents[0].text;
say('read', (await read('network:///file/running-config')).includes('router ospf'));

const stream = mode.startsWith('2') ? await client.listen({ resourceSubscriptions: [LAN] }) : await client.subscribeResource({ uri: LAN });
const shown = await call('network.cli.configure', { commands: ['interface lan0', `description ${description}`] });
say('diff', shown.structuredContent.diff.includes(`+ description ${description}`), shown);
const done = await call('network.commit', { confirmed: 30, hash: shown.structuredContent.hash });
say('commit', done.structuredContent.status === 'committed', done);
for (let turn = 0; turn < 60 && !updates.includes(LAN); turn += 1) await sleep(100);
say('subscribe', updates.includes(LAN) && (await read(LAN)).includes(description), updates);
const kept = await call('network.commit', { confirm: true });
say('confirm', kept.structuredContent.status === 'confirmed', kept);

let code;
try {
  const failed = await call('network.cli.exec', { cmd: 'show nonsense' });
  code = failed.isError && failed.structuredContent.code;
} catch (error) {
  code = error.code;
}
say('error', code === -32084, code);

if (mode.startsWith('2')) stream.close();
else await client.unsubscribeResource({ uri: LAN });
await client.close();
process.exit(0);
