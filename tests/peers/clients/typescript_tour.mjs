// What every TypeScript client does through Banyan, in front of the fixture; one printed line a check.
// `tour(peer, prefix)` takes an adapter: `calls(client)`, as typescript_v1.mjs and typescript_v2.mjs finish it.
import { setTimeout as sleep } from 'node:timers/promises';

const STATIC = 'test://static-text';
const WATCHED = 'test://watched-resource';
const LIMIT_MS = 12_000;

export function say(name, ok, detail = '') {
  console.log(ok ? `ok ${name}` : `FAIL ${name} ${JSON.stringify(detail)?.slice(0, 500)}`);
}

export async function onSampling(request) {
  const text = `sampled: ${request.params.messages[0].content.text}`;
  return { role: 'assistant', model: 'peer', content: { type: 'text', text } };
}

export async function onElicitation(request) {
  if (request.params.mode === 'url') return { action: 'accept' };
  return { action: 'accept', content: { response: `answered: ${request.params.message}` } };
}

export async function onRoots() {
  return { roots: [{ uri: 'file:///peer/root' }] };
}

// The calls that both packages spell alike.
export function calls(client) {
  return {
    resources: async () => (await client.listResources()).resources.map((r) => r.uri),
    read: async (uri) => (await client.readResource({ uri })).contents[0].text,
    prompts: async () => (await client.listPrompts()).prompts.map((p) => p.name),
    prompt: async (name, params) => (await client.getPrompt({ name, arguments: params })).messages[0].content.text,
    complete: async (name, argument, value) =>
      (await client.complete({ ref: { type: 'ref/prompt', name }, argument: { name: argument, value } })).completion.values,
    watch: async (uri) => {
      if (!uri) return async () => {};
      await client.subscribeResource({ uri });
      return () => client.unsubscribeResource({ uri });
    },
  };
}

// Waits for notifications: `arrived(kind, what)` on one side, `next(kind)` on the other.
export class Events {
  #seen = [];
  #waiting = [];

  arrived(kind, what) {
    const at = this.#waiting.findIndex((w) => w.kind === kind);
    if (at >= 0) this.#waiting.splice(at, 1)[0].resolve(what);
    else this.#seen.push({ kind, what });
  }

  clear() {
    this.#seen = [];
  }

  next(kind) {
    const at = this.#seen.findIndex((s) => s.kind === kind);
    if (at >= 0) return Promise.resolve(this.#seen.splice(at, 1)[0].what);
    return new Promise((resolve) => this.#waiting.push({ kind, resolve }));
  }
}

export async function tour(peer, prefix) {
  for (const [name, work] of Object.entries(checks(peer, prefix))) {
    const limit = new AbortController();
    try {
      const late = sleep(LIMIT_MS, null, { signal: limit.signal }).then(() => {
        throw new Error(`no answer within ${LIMIT_MS} ms`);
      });
      const [ok, seen] = await Promise.race([work(), late]);
      say(name, ok, seen);
    } catch (error) {
      say(name, false, String(error.stack ?? error));
    } finally {
      limit.abort();
    }
  }
}

const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

function checks(peer, prefix) {
  const stats = async () => JSON.parse((await peer.call(`${prefix}fx_stats`))[0]);
  const toggled = async () => {
    peer.events.clear();
    const began = performance.now();
    const arrived = peer.events.next('tools');
    await peer.call(`${prefix}test_trigger_tool_change`);
    await arrived;
    return { took: performance.now() - began, there: (await peer.tools()).includes(`${prefix}test_dynamic_tool`) };
  };
  return {
    'list tools': async () => {
      const names = await peer.tools();
      return [names.includes(`${prefix}test_simple_text`) && names.includes(`${prefix}fx_echo`), names];
    },
    call: async () => {
      const got = await peer.call(`${prefix}fx_echo`, { text: 'café ✓' });
      return [same(got, ['café ✓', false]), got];
    },
    'tool error': async () => {
      const got = await peer.call(`${prefix}test_error_handling`);
      return [same(got, ['This tool intentionally returns an error for testing', true]), got];
    },
    resources: async () => {
      const uris = await peer.resources();
      const texts = [await peer.read(STATIC), await peer.read('test://template/7/data')];
      return [uris.includes(STATIC) && texts[0].startsWith('This is the content') && texts[1].includes('"7"'), texts];
    },
    'unknown resource': async () => {
      const seen = await peer.read('test://there-is-no-such-thing').then((t) => ({ t }), (error) => ({ code: error.code }));
      return [seen.code === -32602 || seen.code === -32002, seen];
    },
    prompts: async () => {
      const names = await peer.prompts();
      const got = await peer.prompt(`${prefix}test_prompt_with_arguments`, { arg1: 'one', arg2: 'two' });
      return [names.includes(`${prefix}test_simple_prompt`) && got === "Prompt with arguments: arg1='one', arg2='two'", [names, got]];
    },
    completion: async () => {
      const got = await peer.complete(`${prefix}test_prompt_with_arguments`, 'arg1', 'par');
      return [same(got, ['paris', 'park', 'party']), got];
    },
    progress: async () => {
      const seen = [];
      await peer.call(`${prefix}test_tool_with_progress`, {}, { onprogress: (p) => seen.push([p.progress, p.total]) });
      return [same(seen, [[0, 100], [50, 100], [100, 100]]), seen];
    },
    sampling: async () => {
      const got = await peer.call(`${prefix}test_sampling`, { prompt: '2+2' });
      return [same(got, ['LLM response: sampled: 2+2', false]), got];
    },
    'elicitation form': async () => {
      const got = await peer.call(`${prefix}test_elicitation`, { message: 'Say' });
      return [same(got, ['Elicitation completed: action=accept, content={"response": "answered: Say"}', false]), got];
    },
    'elicitation url': async () => {
      const got = await peer.call(`${prefix}fx_elicit_url`);
      return [same(got, ['url elicitation: accept', false]), got];
    },
    roots: async () => {
      const got = await peer.call(`${prefix}fx_roots`);
      return [same(got, ['roots: file:///peer/root', false]), got];
    },
    cancellation: async () => {
      const before = await stats();
      const stop = new AbortController();
      setTimeout(() => stop.abort(), 300);
      await peer.call(`${prefix}fx_sleep`, { ms: 6000, steps: 60 }, { signal: stop.signal }).catch(() => null);
      let after = before;
      for (let i = 0; i < 40 && after.cancelled === before.cancelled; i++) {
        await sleep(50);
        after = await stats();
      }
      return [after.cancelled > before.cancelled && after.finished === before.finished, [before, after]];
    },
    logging: async () => {
      const got = await peer.logsOf(`${prefix}test_tool_with_logging`);
      return [same(got, ['Tool execution started', 'Tool processing data', 'Tool execution completed']), got];
    },
    list_changed: async () => {
      const stop = await peer.watch();
      const [first, second] = [await toggled(), await toggled()];
      await stop();
      return [first.took < 1000 && second.took < 1000 && first.there !== second.there, [first, second]];
    },
    subscription: async () => {
      const stop = await peer.watch(WATCHED);
      peer.events.clear();
      const arrived = peer.events.next('updated');
      await peer.call(`${prefix}fx_touch`, { uri: STATIC });
      await peer.call(`${prefix}fx_touch`, { uri: WATCHED });
      const got = await arrived;
      await stop();
      return [got === WATCHED, got];
    },
    'sixteen at once': async () => {
      const wanted = Array.from({ length: 16 }, (_, i) => String(i));
      const got = await Promise.all(wanted.map(async (text) => (await peer.call(`${prefix}fx_echo`, { text }))[0]));
      return [same(got, wanted), got];
    },
  };
}
