// An MCP server that puts itself into the tree of a Banyan gate, with the official TypeScript SDK.
//
//     node registrant.ts GATE SEGMENT [ID]       e.g. node registrant.ts http://127.0.0.1:7411/mcp plant
//
// The gate needs a section [registry] whose `principals` name the caller: ["local"] where it asks for no token. The server itself is an
// ordinary one; all that MCP-AX adds are three requests to the gate:
// mcpax/register at the start, mcpax/heartbeat while it lives, mcpax/deregister at the end. A token for the gate may stand in
// $BANYAN_TOKEN. Whoever sends the same ID after a restart is known for the same server.
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";

const INTERVAL = 1000; // milliseconds between heartbeats; three missed ones end the registration
const VERSION = "2026-07-28"; // the revision of MCP that the gate is asked in: no handshake, each request stands alone

type Answer = { result?: any; error?: { code: number; message: string; data?: any } };

function server(): McpServer {
  const made = new McpServer({ name: "registrant", version: "1.0.0" });
  // Without a proof of authority a gate shows only what changes nothing.
  const about = { description: "For how long this server has been running.", annotations: { readOnlyHint: true } };
  made.registerTool("uptime", about, async () => ({
    content: [{ type: "text", text: `${process.uptime().toFixed(1)} s in TypeScript, process ${process.pid}` }],
  }));
  return made;
}

// One request to the gate; its answer.
let number = 0;
async function ask(gate: string, method: string, params: object): Promise<Answer> {
  const _meta = { "io.modelcontextprotocol/protocolVersion": VERSION, "io.modelcontextprotocol/clientCapabilities": {} };
  const headers: Record<string, string> = {
    "Content-Type": "application/json",
    Accept: "application/json, text/event-stream",
    "MCP-Protocol-Version": VERSION,
    "Mcp-Method": method,
  };
  if (process.env.BANYAN_TOKEN) headers.Authorization = `Bearer ${process.env.BANYAN_TOKEN}`;
  const body = JSON.stringify({ jsonrpc: "2.0", id: ++number, method, params: { ...params, _meta } });
  const reply = await fetch(gate, { method: "POST", headers, body, signal: AbortSignal.timeout(5000) });
  return (await reply.json()) as Answer;
}

const sleep = (ms: number) => new Promise((done) => setTimeout(done, ms));

// Registers, and again whenever the gate has forgotten us, until `isOver`; then says good-bye.
async function belong(gate: string, registration: { segment: string }, isOver: () => boolean) {
  let session: string | undefined;
  while (!isOver()) {
    try {
      const answer = session
        ? await ask(gate, "mcpax/heartbeat", { session_id: session })
        : await ask(gate, "mcpax/register", registration);
      if (answer.error) {
        console.error(`${answer.error.message} (${answer.error.code}): ${answer.error.data?.hint ?? ""}`);
        // A gate that has forgotten a session takes the next registration at once.
        const pause = session ? 0 : 1000;
        session = undefined;
        await sleep(answer.error.data?.retry_after_ms ?? pause);
        continue;
      }
      if (!session) console.log(`registered as ${registration.segment}`);
      session ??= answer.result.session_id;
    } catch (error) {
      console.error(`the gate can't be reached: ${error}`);
    }
    await sleep(INTERVAL / 2);
  }
  if (session) await ask(gate, "mcpax/deregister", { session_id: session }).catch(() => undefined);
}

const [gate, segment, id = randomUUID()] = process.argv.slice(2);
const web = createServer(async (request, response) => {
  // Without sessions: a server and a transport for each request.
  const [own, transport] = [server(), new StreamableHTTPServerTransport({ sessionIdGenerator: undefined })];
  response.on("close", () => void own.close());
  await own.connect(transport);
  await transport.handleRequest(request, response);
});
web.listen(0, "127.0.0.1", async () => {
  let over = false;
  for (const name of ["SIGTERM", "SIGINT"]) process.on(name, () => (over = true));
  const registration = {
    subserver_id: id,
    segment,
    url: `http://127.0.0.1:${(web.address() as AddressInfo).port}/mcp`,
    capabilities: { tools: true },
    heartbeat_interval_ms: INTERVAL,
    transport_class: "http",
    auth_scope: "read",
  };
  await belong(gate, registration, () => over);
  process.exit(0);
});
