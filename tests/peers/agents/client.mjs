// A client made with the official JavaScript SDK of A2A: the operations and answers of `client.py`, but for `card`, `list`, `push-get` and `push-list`.
//
//     client.mjs SDK URL BINDING OPERATION [--token TOKEN] [--skill ID] [--arguments JSON] [--task ID] [--push JSON]
//
// SDK is the directory of `@a2a-js/sdk`.
import { randomUUID } from "node:crypto";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";

const { values: asked, positionals } = parseArgs({
  allowPositionals: true,
  options: Object.fromEntries(["token", "skill", "arguments", "task", "push"].map((name) => [name, { type: "string" }])),
});
const [sdk, url, binding, operation] = positionals;
const load = (path) => import(pathToFileURL(`${sdk}/dist/${path}`));
const { SendMessageRequest, StreamResponse, Task, TaskPushNotificationConfig } = await load("index.js");
const { ClientFactory, DefaultAgentCardResolver, JsonRpcTransportFactory, RestTransportFactory } = await load("client/index.js");

const fetchImpl = (input, init = {}) => {
  const headers = new Headers(init.headers);
  headers.set("Authorization", `Bearer ${asked.token}`);
  return fetch(input, { ...init, headers });
};

const message = () => SendMessageRequest.fromJSON({
  message: {
    messageId: randomUUID(),
    role: "ROLE_USER",
    parts: [{ data: JSON.parse(asked.arguments ?? "{}") }],
    ...(asked.skill ? { metadata: { "io.banyan/skill": asked.skill } } : {}),
    ...(asked.task ? { taskId: asked.task } : {}),
  },
});

const all = async (events) => {
  const seen = [];
  for await (const event of events) seen.push(StreamResponse.toJSON(event));
  return seen;
};

const operate = async () => {
  const Transport = binding === "JSONRPC" ? JsonRpcTransportFactory : RestTransportFactory;
  const cardResolver = new DefaultAgentCardResolver({ fetchImpl });
  const client = await new ClientFactory({ transports: [new Transport({ fetchImpl })], cardResolver }).createFromUrl(url);
  const wish = { taskId: asked.task, ...JSON.parse(asked.push ?? "{}") };
  switch (operation) {
    case "send": return { task: Task.toJSON(await client.sendMessage(message())) };
    case "stream": return all(client.sendMessageStream(message()));
    case "subscribe": return all(client.resubscribeTask({ tenant: "", id: asked.task }));
    case "get": return Task.toJSON(await client.getTask({ tenant: "", id: asked.task }));
    case "push-create": return TaskPushNotificationConfig.toJSON(await client.createTaskPushNotificationConfig(TaskPushNotificationConfig.fromJSON(wish)));
    case "push-delete": return { deleted: await client.deleteTaskPushNotificationConfig({ tenant: "", taskId: asked.task, id: wish.id }) };
    case "cancel": return Task.toJSON(await client.cancelTask({ tenant: "", id: asked.task }));
    default: throw new Error(`no operation ${operation}`);
  }
};

const refused = (error) => ({ refused: error.name === "Error" ? error.constructor.name : error.name, message: error.message });
console.log(JSON.stringify(await operate().catch(refused)));
