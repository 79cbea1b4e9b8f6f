// The TypeScript client package 2.4 as a client of Banyan.
//   typescript_v2.mjs MODE http URL | typescript_v2.mjs MODE stdio PREFIX COMMAND ARGUMENT...
//   MODE: auto, legacy or 2026-07-28; over HTTP the names begin with PEERS_PREFIX, where it is set
import { createRequire } from 'node:module';
import { setTimeout as sleep } from 'node:timers/promises';
import { Events, calls, onElicitation, onRoots, onSampling, say, tour } from './typescript_tour.mjs';

const require = createRequire(`${process.env.PEERS_NODE_MODULES}/here.cjs`);
const { Client, StreamableHTTPClientTransport } = require('@modelcontextprotocol/client');
const { StdioClientTransport } = require('@modelcontextprotocol/client/stdio');

const [mode, transport, target, command, ...args] = process.argv.slice(2);
const prefix = transport === 'stdio' ? target : (process.env.PEERS_PREFIX ?? '');
const events = new Events();
let logs = [];

const client = new Client(
  { name: 'banyan-peer-ts2', version: '1' },
  {
    capabilities: { sampling: {}, elicitation: { form: {}, url: {} }, roots: { listChanged: true } },
    versionNegotiation: { mode: mode.startsWith('2') ? { pin: mode } : mode },
  },
);
client.setRequestHandler('sampling/createMessage', onSampling);
client.setRequestHandler('elicitation/create', onElicitation);
client.setRequestHandler('roots/list', onRoots);
client.setNotificationHandler('notifications/message', (n) => void logs.push(n.params.data));
client.setNotificationHandler('notifications/tools/list_changed', () => events.arrived('tools'));
client.setNotificationHandler('notifications/resources/updated', (n) => events.arrived('updated', n.params.uri));

const modern = () => client.getNegotiatedProtocolVersion() >= '2026';
const alike = calls(client);
const peer = {
  ...alike,
  events,
  tools: async () => (await client.listTools(undefined, { cacheMode: 'refresh' })).tools.map((t) => t.name),
  call: async (name, params = {}, options = {}, meta = undefined) => {
    const result = await client.callTool({ name, arguments: params, ...(meta ? { _meta: meta } : {}) }, options);
    return [result.content[0].text, Boolean(result.isError)];
  },
  logsOf: async (name) => {
    logs = [];
    if (!modern()) await client.setLoggingLevel('info');
    await peer.call(name, {}, {}, modern() ? { 'io.modelcontextprotocol/logLevel': 'info' } : undefined);
    await sleep(100);
    return logs;
  },
  watch: async (uri) => {
    if (!modern()) return alike.watch(uri);
    const stream = await client.listen(uri ? { resourceSubscriptions: [uri] } : { toolsListChanged: true });
    return () => stream.close();
  },
};

await client.connect(
  transport === 'http'
    ? new StreamableHTTPClientTransport(new URL(target))
    : new StdioClientTransport({ command, args, env: process.env, stderr: 'ignore' }),
);
const version = client.getNegotiatedProtocolVersion();
say('connect', version === (mode === 'legacy' ? '2025-11-25' : '2026-07-28'), version);
await sleep(200); // the session's GET stream opens beside the first requests
await tour(peer, prefix);
await client.close();
process.exit(0);
