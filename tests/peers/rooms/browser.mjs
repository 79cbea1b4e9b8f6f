// A participant with nothing but the WebSocket that Node and browsers have, written from the specification's text: it answers `tools/list`
// until it is told to go. Its token stands in the address.
const [address, me] = process.argv.slice(2);
const socket = new WebSocket(address);
let number = 0;
const say = (kind, payload, more) =>
  socket.send(JSON.stringify({ protocol: "mcpx/v0.1", id: `${me}-${++number}`, from: me, kind, payload, ...more }));

socket.onmessage = (event) => {
  const message = JSON.parse(event.data);
  if (message.kind === "system/welcome") {
    console.log(`here as ${message.payload.you.id}`);
  } else if (message.kind === "mcp/request:tools/list" && message.to?.includes(me) && message.payload.method === "tools/list") {
    const result = { tools: [{ name: "lights", inputSchema: { type: "object" } }] };
    say("mcp/response:tools/list", { jsonrpc: "2.0", id: message.payload.id, result }, { to: [message.from], correlation_id: message.id });
  } else if (message.kind === "chat" && message.payload.text === "go") {
    socket.close(1000);
  }
};
socket.onerror = () => process.exit(2);
socket.onclose = (event) => process.exit(event.code === 1000 ? 0 : 3);
