// One proposal or call in a room, from its beginning to its end: exactly what is asked for, who decided, by which rule, and what came of it.
import type { ComponentChildren, JSX } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import { inbox } from './approval';
import type { Attendance, Attended } from './attendance';
import { Differences, Seen } from './differ';
import { differences } from './difference';
import { heldFor } from './held';
import { indented, members } from './json';
import { Copy, Glyph } from './parts';
import { EXPIRY, type Envelope, type Thread, covers, isFailed, params, parts, ruleOf } from './participant';
import { write } from './route';
import type { State } from './shapes';
import { useNow, useStore } from './store';
import { clock, counted, duration } from './text';

/** So many characters are shown at once. */
const SHOWN = 3000;

export const LOOK: Record<Thread['state'], State> = { open: 'degraded', requested: 'starting', answered: 'ready', rejected: 'failed', withdrawn: 'failed', expired: 'failed' };

export function lookOf({ state, response }: Thread): State {
  return response && isFailed(response) ? 'failed' : LOOK[state];
}

function wordOf({ state, response }: Thread): string {
  if (state === 'open') return 'waits';
  if (state === 'requested') return 'no answer yet';
  return state === 'answered' ? (response && isFailed(response) ? 'failed' : 'done') : state;
}

/** The tool, or the method and what it is about. */
export function nameOf({ kind, payload }: Envelope): string {
  const [, method = '', context] = parts(kind);
  const about = (payload.params ?? {}) as Record<string, unknown>;
  const name = context ?? [about.name, about.uri].find((one): one is string => typeof one === 'string');
  return name === undefined ? method : method === 'tools/call' ? name : `${method} ${name}`;
}

/** What is asked for as it was written: of a tool, its arguments, where nothing else stands beside them. */
export function asked(envelope: Envelope): string | undefined {
  const text = params(envelope);
  if (text === undefined) return undefined;
  const found = members(text);
  const own = parts(envelope.kind)[1] === 'tools/call' && [...found.keys()].every((key) => key === 'name' || key === 'arguments');
  return own ? found.get('arguments') : text;
}

export function Card({ thread, number, at, room }: { thread: Thread; number: number; at: Attended; room: Attendance }): JSX.Element {
  const [all, setAll] = useState(false);
  const first = (thread.proposal ?? thread.request) as Envelope;
  const text = useMemo(() => asked(first), [first]);
  const whole = useMemo(() => (text === undefined ? '' : indented(text)), [text]);
  const isCut = whole.length > SHOWN && !all;
  const label = `#${number}, ${nameOf(first)}`;
  return (
    <article class={`thread ${lookOf(thread)}`} id={`thread-${number}`} aria-label={label} tabIndex={-1}>
      <header>
        <h3><Glyph state={lookOf(thread)} /> <span class="dim">#{number}</span> <b><Seen text={nameOf(first)} /></b></h3>
        <span class="standing">{thread.state === 'open' ? <Left thread={thread} /> : <span class={`badge ${lookOf(thread)}`}>{wordOf(thread)}</span>}</span>
      </header>
      <p class="dim"><Who name={first.from} me={at.me} /> {thread.proposal ? 'proposes it to' : 'calls it at'} <To to={first.to} me={at.me} />{!thread.proposal && <Rule proposal={undefined} request={first} />}</p>
      {text !== undefined && (
        <div class="asked">
          <pre tabIndex={0} role="region" aria-label={`Arguments of ${label}`}><Seen text={isCut ? whole.slice(0, SHOWN) : whole} /></pre>
          <Copy text={text} what={`the arguments of ${label}`} />
          {isCut && <button type="button" onClick={() => setAll(true)}>Show the other {counted(whole.length - SHOWN, 'character')}</button>}
        </div>
      )}
      <Steps thread={thread} me={at.me} />
      {thread.response && <Outcome response={thread.response} label={label} />}
      {thread.state === 'open' && room.doubtful.has(thread) && <p class="note">You were away meanwhile: somebody may have decided this.</p>}
      {thread.state === 'open' && thread.proposal && <Inbox proposal={thread.proposal} room={room.room} />}
      {thread.state === 'open' && <Decide thread={thread} at={at} room={room} label={label} isCut={isCut} />}
    </article>
  );
}

function Who({ name, me }: { name: string; me: string }): JSX.Element {
  return <b class="who"><Seen text={name} />{name === me && <span class="dim"> (you)</span>}</b>;
}

export function To({ to, me }: { to: readonly string[]; me: string }): JSX.Element {
  if (to.length === 0) return <>everybody</>;
  return <>{to.map((name, i) => <span key={i}>{i > 0 && ', '}<Who name={name} me={me} /></span>)}</>;
}

function Left({ thread }: { thread: Thread }): JSX.Element {
  const now = useNow();
  const left = Math.max(0, Math.ceil((thread.began + EXPIRY) / 1000) - now);
  const part = Math.min(1, (left * 1000) / EXPIRY);
  return <span class="countdown" title="Nobody's decision is a no"><span class="gauge" aria-hidden="true"><i class={part < 0.2 ? 'failed' : ''} style={{ width: `${part * 100}%` }} /></span> <span class="number">{duration(left)} left</span></span>;
}

/** What came after its beginning. */
function Steps({ thread, me }: { thread: Thread; me: string }): JSX.Element | null {
  const { proposal, request, response, end, state } = thread;
  const now = Date.now() / 1000;
  const step = (at: number, text: ComponentChildren): JSX.Element => <li><time dateTime={new Date(at).toISOString()}>{clock(at / 1000, now)}</time> <span>{text}</span></li>;
  if (state === 'open' || (!proposal && !response)) return null;
  return (
    <ol class="course">
      {proposal && request && step(request.at, <>approved by <Who name={request.from} me={me} /><Rule proposal={proposal} request={request} />{proposal.to.length === 0 && <>, for <To to={request.to} me={me} /></>}</>)}
      {proposal && request && <Amended proposal={proposal} request={request} />}
      {response && step(response.at, <>{isFailed(response) ? 'answered with an error' : 'carried out'} by <Who name={response.from} me={me} /></>)}
      {end && step(end.at, <>{state === 'withdrawn' ? 'taken back' : 'rejected'} by <Who name={end.from} me={me} />{typeof end.payload.reason === 'string' && <>: <q><Seen text={end.payload.reason.slice(0, 1000)} /></q></>}</>)}
      {state === 'expired' && step(thread.began + EXPIRY, 'nobody decided in time, which is a no')}
    </ol>
  );
}

/** A rule that whoever fulfils names. One that the proposer wrote there is no rule of anybody. */
function Rule({ proposal, request }: { proposal: Envelope | undefined; request: Envelope }): JSX.Element | null {
  const rule = ruleOf(request);
  if (!rule) return null;
  if (proposal && ruleOf(proposal)?.id === rule.id) return <span class="error">, naming a rule that the proposer wrote in: nobody's</span>;
  return <> by <b class="who"><Seen text={rule.id} /></b>{rule.by !== undefined && <>, which <b class="who"><Seen text={rule.by} /></b> accepted</>}</>;
}

/** What goes out is not always what was proposed. */
function Amended({ proposal, request }: { proposal: Envelope; request: Envelope }): JSX.Element | null {
  const other = useMemo(() => {
    // The rule by which it was approved is told elsewhere.
    const bare = (text: string): string => JSON.stringify({ ...(JSON.parse(text) as object), _meta: undefined });
    const [before, after] = [params(proposal) ?? '{}', params(request) ?? '{}'];
    return before === after ? [] : differences(bare(before), bare(after));
  }, [proposal, request]);
  return other.length === 0 ? null : <li class="amended"><p class="note">It was approved with other arguments:</p><Differences of={other} what="argument" /></li>;
}

/** Where the gate holds the same call for a passkey. */
function Inbox({ proposal, room }: { proposal: Envelope; room: string }): JSX.Element | null {
  const held = heldFor(useStore(inbox)?.approvals ?? [], room, proposal);
  return held ? <p><a href={write('approvals', held.id)}>The gate holds this call in the inbox</a></p> : null;
}

/** What came of it, as a person reads it. */
function Outcome({ response, label }: { response: Envelope; label: string }): JSX.Element {
  const { result, error } = response.payload as { result?: { content?: unknown }; error?: { message?: unknown; code?: unknown } };
  const content = Array.isArray(result?.content) ? (result.content as { type?: unknown; text?: unknown }[]) : [];
  const texts = content.filter(({ type, text }) => type === 'text' && typeof text === 'string').map(({ text }) => text as string);
  const said = typeof error?.message === 'string' ? [`${error.message} (${String(error.code)})`] : texts;
  const text = said.join('\n');
  const raw = useMemo(() => indented(members(members(response.raw).get('payload') ?? '').get(error ? 'error' : 'result') ?? ''), [response]);
  return (
    <div class={`outcome ${isFailed(response) ? 'failed' : ''}`}>
      {text !== '' && <pre tabIndex={0} role="region" aria-label={`Answer to ${label}`}><Seen text={text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text} /></pre>}
      {(text === '' || text.length > SHOWN || content.length !== texts.length || Object.keys(result ?? {}).some((key) => key !== 'content' && key !== 'isError')) && (
        <details>
          <summary>{text === '' ? 'The answer' : 'All of the answer'}, as it came</summary>
          <pre tabIndex={0} role="region" aria-label={`All of the answer to ${label}`}><Seen text={raw.slice(0, 100_000)} /></pre>
        </details>
      )}
    </div>
  );
}

/** Makes the call that is proposed, as it is, or speaks against it. */
function Decide({ thread, at, room, label, isCut }: { thread: Thread; at: Attended; room: Attendance; label: string; isCut: boolean }): JSX.Element | null {
  const [reason, setReason] = useState('');
  const [target, setTarget] = useState('');
  const [sent, setSent] = useState(false);
  const proposal = thread.proposal as Envelope;
  const may = (name: string): boolean => covers(at.capabilities, proposal.kind.replace('mcp/proposal', name));
  if (at.standing !== 'there') return null;
  const during = (done: boolean): void => {
    setSent(done);
    // The room shows what became of it. Where it said no, one may try again.
    if (done) setTimeout(() => setSent(false), 4000);
  };
  if (proposal.from === at.me) {
    return (
      <div class="decision row" role="group" aria-label={`Decide ${label}`}>
        {may('mcp/withdraw') && <button type="button" disabled={sent} onClick={() => during(room.withdraw(thread))} aria-label={`Withdraw ${label}`}>Withdraw</button>}
        <p class="dim">It is your own: somebody else decides.</p>
      </div>
    );
  }
  if (!may('mcp/request') && !may('mcp/reject')) return <p class="dim">You may not decide this: your capabilities here do not cover it.</p>;
  const wanting = proposal.to.length === 0;
  return (
    <div class="decision" role="group" aria-label={`Decide ${label}`}>
      {may('mcp/request') && (
        <div class="row">
          {wanting && (
            <select aria-label={`Who carries out ${label}`} value={target} onInput={(event) => setTarget(event.currentTarget.value)}>
              <option value="">who carries it out?</option>
              {[...at.present.keys()].map((name) => <option key={name} value={name}>{name}</option>)}
            </select>
          )}
          <button type="button" class="strong" disabled={sent || isCut || (wanting && target === '')} onClick={() => during(room.approve(thread, wanting ? [target] : []))} aria-label={`Approve ${label}`}>Approve</button>
          {isCut && <span class="dim">once all of it is shown</span>}
        </div>
      )}
      {may('mcp/reject') && (
        <form class="row" onSubmit={(event) => (event.preventDefault(), during(room.reject(thread, reason)))}>
          <input type="text" aria-label={`Why not ${label}`} placeholder="Why not: everybody is told" maxLength={1000} value={reason} onInput={(event) => setReason(event.currentTarget.value)} />
          <button type="submit" disabled={sent} aria-label={`Reject ${label}`}>Reject</button>
        </form>
      )}
    </div>
  );
}
