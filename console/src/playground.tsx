// One tool: what it says of itself, a form for its arguments, a call, and what came back, down to the JSON-RPC.
import type { JSX } from 'preact';
import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { asText } from './api';
import { command, curl, request } from './copy';
import { Form } from './form';
import { gate } from './gate';
import { Copy, Facts, Json, Said } from './parts';
import { Answer } from './result';
import { fieldsOf, initial } from './schema';
import type { Definition, Tool } from './shapes';
import { useStore } from './store';
import { millis } from './text';
import { Way } from './way';

interface Sent {
  request: string;
  response: string;
  ms: number;
}

export function Playground({ tool, owner }: { tool: Tool; owner: boolean }): JSX.Element {
  const { definition } = tool;
  const fields = useMemo(() => fieldsOf(definition.inputSchema), [definition]);
  const [args, setArgs] = useState<Record<string, unknown>>(() => initial(fields));
  const [raw, setRaw] = useState<string | null>(null);
  const [wrong, setWrong] = useState<ReadonlySet<string>>(new Set());
  const [sent, setSent] = useState<Sent | null>(null);
  const [isBusy, setBusy] = useState(false);
  const [why, setWhy] = useState<string | null>(null);
  const form = useRef<HTMLFormElement>(null);
  const text = raw ?? JSON.stringify(args);
  const bad = raw === null ? (wrong.size > 0 ? 'some fields can not be read' : null) : problem(raw);

  const call = async (): Promise<void> => {
    if (bad || isBusy) return;
    setBusy(true);
    setWhy(null);
    const began = performance.now();
    try {
      const response = await asText('POST', '/-/call', `{"tool":${JSON.stringify(tool.tool.dotted)},"arguments":${text},"raw":true}`);
      setSent({ request: request(tool.tool.shown, text), response, ms: performance.now() - began });
    } catch (error) {
      setWhy((error as Error).message);
    } finally {
      setBusy(false);
    }
  };
  const submitted = (event: Event): void => {
    event.preventDefault();
    void call();
  };
  const pressed = (event: KeyboardEvent): void => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) submitted(event);
  };
  return (
    <>
      <About tool={tool} />
      <form ref={form} class="play" onSubmit={submitted} onKeyDown={pressed} aria-label="Arguments">
        <div class="row">
          <h3>Arguments</h3>
          <div class="tabs" role="group" aria-label="How arguments are written">
            <button type="button" aria-pressed={raw === null} onClick={() => back(raw, setArgs, setRaw, setWhy)}>Form</button>
            <button type="button" aria-pressed={raw !== null} onClick={() => raw === null && setRaw(JSON.stringify(args, null, 2))}>JSON</button>
          </div>
        </div>
        {raw === null ? <Form fields={fields} value={args} onChange={setArgs} onWrong={setWrong} /> : (
          <textarea class="raw" rows={Math.min(20, raw.split('\n').length + 1)} spellcheck={false} aria-label="Arguments as JSON" aria-invalid={bad !== null} value={raw} onInput={(event) => setRaw(event.currentTarget.value)} />
        )}
        {bad && <p class="error" role="alert">{bad}</p>}
        <div class="row">
          {owner ? (
            <button type="submit" class="strong" disabled={isBusy || bad !== null}>{isBusy ? 'Calling…' : 'Call'} <kbd>ctrl ⏎</kbd></button>
          ) : (
            <p class="dim"><Said text="To call from here, sign in with `banyan console`." /></p>
          )}
          <Copies name={tool.tool.shown} dotted={tool.tool.dotted} args={text} />
        </div>
      </form>
      {why && <p class="error" role="alert">{why}</p>}
      {sent && <Result sent={sent} />}
      <Way tool={tool.tool.dotted} owner={owner} />
      <details>
        <summary>Definition, as its server wrote it</summary>
        <Json text={tool.written} label="Definition" />
      </details>
    </>
  );
}

function About({ tool: { tool, definition } }: { tool: Tool }): JSX.Element {
  return (
    <>
      <header>
        <h2>{tool.dotted}</h2>
        {(definition.title ?? definition.annotations?.title) && <p>{definition.title ?? definition.annotations?.title}</p>}
        <p class="badges">{risks(definition).map(([word, look]) => <span key={word} class={`badge ${look}`}>{word}</span>)}</p>
      </header>
      {definition.description && <p class="description">{definition.description}</p>}
      <Facts
        of={[
          ['shown as', tool.shown !== tool.dotted && <code>{tool.shown}</code>],
          ['its own name', tool.original !== tool.dotted.split('.').at(-1) && <code>{tool.original}</code>],
          ['costs a model', `about ${tool.tokens} tokens`],
          ['expected to be', tool.latency_class],
          ['hops', tool.hops > 1 && String(tool.hops)],
        ]}
      />
    </>
  );
}

/** What a call may do, as its server says: a hint, not a promise. */
function risks(definition: Definition): [string, string][] {
  const hints = definition.annotations ?? {};
  const found: [string, string][] = [];
  if (hints.readOnlyHint) found.push(['only reads', 'ready']);
  else if (hints.destructiveHint === false) found.push(['changes things', 'starting']);
  else if (hints.destructiveHint) found.push(['may destroy', 'failed']);
  if (hints.idempotentHint && !hints.readOnlyHint) found.push(['twice is once', 'plain']);
  if (hints.openWorldHint) found.push(['reaches outside', 'plain']);
  if (definition._meta?.['x-mcpax-safety'] === 'irreversible_mutable') found.push(['irreversible', 'failed']);
  const cost = definition._meta?.['x-mcpax-cost-class'];
  if (typeof cost === 'string' && !['free', 'metered'].includes(cost)) found.push([`costs: ${cost}`, 'plain']);
  return found;
}

function Copies({ name, dotted, args }: { name: string; dotted: string; args: string }): JSX.Element {
  const { needsToken } = useStore(gate);
  return (
    <span class="row">
      <Copy text={curl(`${location.origin}/mcp`, name, args, needsToken)} what="as curl">as curl</Copy>
      <Copy text={command(dotted, args)} what="as command">as command</Copy>
      <Copy text={request(name, args)} what="as JSON-RPC">as JSON-RPC</Copy>
    </span>
  );
}

function Result({ sent }: { sent: Sent }): JSX.Element {
  const [tab, setTab] = useState<'answer' | 'rpc'>('answer');
  const here = useRef<HTMLElement>(null);
  // Before it is drawn: what is under the pointer must not move away once it was seen.
  useLayoutEffect(() => here.current?.scrollIntoView({ block: 'nearest' }), [sent]);
  return (
    <section ref={here} class="result" aria-label="Result" aria-live="polite">
      <div class="row">
        <h3>Answer <span class="dim">{millis(sent.ms)}</span></h3>
        <div class="tabs" role="group" aria-label="How the answer is shown">
          <button type="button" aria-pressed={tab === 'answer'} onClick={() => setTab('answer')}>Answer</button>
          <button type="button" aria-pressed={tab === 'rpc'} onClick={() => setTab('rpc')}>JSON-RPC</button>
        </div>
      </div>
      {tab === 'answer' ? <Answer text={sent.response} /> : (
        <>
          <h4>sent</h4>
          <Json text={sent.request} label="Request" />
          <h4>came back</h4>
          <Json text={sent.response} label="Response" />
        </>
      )}
    </section>
  );
}

/** From JSON to the form, where it is an object. */
function back(raw: string | null, setArgs: (args: Record<string, unknown>) => void, setRaw: (raw: null) => void, setWhy: (why: string | null) => void): void {
  if (raw === null) return;
  const why = problem(raw);
  setWhy(why);
  if (why) return;
  setArgs(JSON.parse(raw) as Record<string, unknown>);
  setRaw(null);
}

function problem(raw: string): string | null {
  try {
    const value: unknown = JSON.parse(raw);
    return value !== null && typeof value === 'object' && !Array.isArray(value) ? null : 'arguments are a JSON object';
  } catch (error) {
    return (error as Error).message;
  }
}
