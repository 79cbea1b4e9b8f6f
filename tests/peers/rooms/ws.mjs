// A participant by Node's `ws`, which sends a header, written from the specification's text: it calls `lights` at whoever says that it has it, proposes
// a call that it may not make, and goes when the answer to that has come.
import { createRequire } from 'node:module';

const [address, token, me, other] = process.argv.slice(2);
const WebSocket = createRequire(`${process.env.PEERS_NODE_MODULES}/here.cjs`)('ws');
const socket = new WebSocket(address, { headers: { authorization: `Bearer ${token}` }, perMessageDeflate: false });
let number = 0;
const say = (kind, payload, more) => {
  const id = `${me}-${(number += 1)}`;
  socket.send(JSON.stringify({ protocol: 'mcpx/v0.1', id, ts: new Date().toISOString(), from: me, kind, payload, ...more }));
  return id;
};
const call = { method: 'tools/call', params: { name: 'lights', arguments: { on: true } } };
let proposed;
let fulfilled;

socket.on('unexpected-response', (_, answer) => (console.log(`refused ${answer.statusCode}`), process.exit(0)));
socket.on('message', (data, isBinary) => {
  const message = JSON.parse(data.toString());
  if (isBinary || message.protocol !== 'mcpx/v0.1') process.exit(4);
  if (message.kind === 'system/welcome') {
    console.log(`here as ${message.payload.you.id}`);
    say('mcp/request:tools/call:lights', { jsonrpc: '2.0', id: 1, ...call }, { to: [other] });
  } else if (message.kind === 'system/error') {
    console.log(`${message.payload.error} ${message.correlation_id}`);
    proposed = say('mcp/proposal:tools/call:lights', call, { to: [other] });
  } else if (message.kind === 'mcp/request:tools/call:lights' && message.correlation_id === proposed) {
    fulfilled = message.id;
  } else if (message.kind === 'mcp/response:tools/call:lights' && message.correlation_id === fulfilled) {
    console.log(`done ${message.payload.result.n}`);
    socket.close(1000);
  }
});
socket.on('close', (code) => process.exit(code === 1000 ? 0 : 3));
