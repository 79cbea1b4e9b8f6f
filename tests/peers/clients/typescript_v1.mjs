// The TypeScript SDK 1.32 as a client of Banyan (2025-11-25 at most).
//   typescript_v1.mjs legacy http URL | typescript_v1.mjs legacy stdio PREFIX COMMAND ARGUMENT...
import { createRequire } from 'node:module';
import { setTimeout as sleep } from 'node:timers/promises';
import { Events, calls, onElicitation, onRoots, onSampling, say, tour } from './typescript_tour.mjs';

const require = createRequire(`${process.env.PEERS_NODE_MODULES}/here.cjs`);
const { Client } = require('@modelcontextprotocol/sdk/client/index.js');
const { StreamableHTTPClientTransport } = require('@modelcontextprotocol/sdk/client/streamableHttp.js');
const { StdioClientTransport } = require('@modelcontextprotocol/sdk/client/stdio.js');
const types = require('@modelcontextprotocol/sdk/types.js');

const [, transport, target, command, ...args] = process.argv.slice(2);
const prefix = transport === 'stdio' ? target : '';
const events = new Events();
let logs = [];

const client = new Client(
  { name: 'banyan-peer-ts1', version: '1' },
  { capabilities: { sampling: {}, elicitation: { form: {}, url: {} }, roots: { listChanged: true } } },
);
client.setRequestHandler(types.CreateMessageRequestSchema, onSampling);
client.setRequestHandler(types.ElicitRequestSchema, onElicitation);
client.setRequestHandler(types.ListRootsRequestSchema, onRoots);
client.setNotificationHandler(types.LoggingMessageNotificationSchema, (n) => void logs.push(n.params.data));
client.setNotificationHandler(types.ToolListChangedNotificationSchema, () => events.arrived('tools'));
client.setNotificationHandler(types.ResourceUpdatedNotificationSchema, (n) => events.arrived('updated', n.params.uri));

const peer = {
  ...calls(client),
  events,
  tools: async () => (await client.listTools()).tools.map((t) => t.name),
  call: async (name, params = {}, options = {}) => {
    const result = await client.callTool({ name, arguments: params }, undefined, options);
    return [result.content[0].text, Boolean(result.isError)];
  },
  logsOf: async (name) => {
    logs = [];
    await client.setLoggingLevel('info');
    await peer.call(name);
    await sleep(100);
    return logs;
  },
};

await client.connect(
  transport === 'http'
    ? new StreamableHTTPClientTransport(new URL(target))
    : new StdioClientTransport({ command, args, env: process.env, stderr: 'ignore' }),
);
say('connect', Boolean(client.getServerVersion()?.name), client.getServerVersion());
await sleep(200); // the session's GET stream opens beside the first requests
await tour(peer, prefix);
await client.close();
process.exit(0);
