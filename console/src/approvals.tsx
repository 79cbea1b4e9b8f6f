// Calls that wait for somebody to agree: all of what would go out, what is other than last time, and the two answers.
import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { type Approval, type Below, type Operator, type Standing, deceit, inbox, isLink, look } from './approval';
import { ask } from './api';
import { DiffText, Differences, Seen, TextDiff } from './differ';
import { differences, texts } from './difference';
import { gate } from './gate';
import { Grants } from './grants';
import { Operators } from './operators';
import { OnePin, PinLine, idOf, nameOf, pins } from './pins';
import { Close, Copy, Countdown, Facts, Glyph, Said } from './parts';
import { type RequestOptions, bytes, hex, sign } from './passkey';
import { indented } from './json';
import { go, route, write } from './route';
import type { State } from './shapes';
import { useNow, useStore } from './store';
import { clock, counted, duration } from './text';

const LOOK: Record<Standing, State> = {
  pending: 'degraded', released: 'starting', dispatched: 'starting', below: 'starting', done: 'ready',
  denied: 'failed', expired: 'failed', withdrawn: 'failed', void: 'failed', outcome_unknown: 'failed',
};
const MEANS: Record<Standing, string> = {
  pending: 'It waits for somebody to agree.',
  released: 'Enough have agreed. It goes out when its caller comes back for it, once.',
  dispatched: 'It is going out.',
  below: 'It was agreed to here, and waits at a gate below.',
  done: 'It went out, and its answer came.',
  denied: 'Somebody said no.',
  expired: 'Nobody said anything in time, which is a no.',
  withdrawn: 'Its caller took it back.',
  void: 'What it is about has changed, so that nothing can become of it.',
  outcome_unknown: 'The gate ended while it was going out. Whether it took effect is for a person to find out: nobody makes it again.',
};
/** Characters of a call's arguments in the list. */
const GIVEN = 120;
const CAUSES = { mode: 'the mode of this gate', policy: 'a rule of the policy', below: 'a gate below', proposal: 'it is proposed in a room' };

export function Approvals({ filter }: { filter: string }): JSX.Element {
  const found = useStore(inbox);
  const { what } = useStore(route);
  const held = useStore(pins) ?? [];
  const text = filter.trim().toLowerCase();
  const wanted = found?.approvals.filter((one) => `${one.tool} ${one.caller} ${one.standing} ${one.arguments}`.toLowerCase().includes(text)) ?? [];
  const open = wanted.filter((one) => one.standing === 'pending');
  const over = wanted.filter((one) => one.standing !== 'pending').reverse();
  const [shown, next] = usePinned(what, open[0]?.id ?? '');
  const one = found?.approvals.find((a) => a.id === shown);
  const other = found?.below.find((b) => b.id === what);
  const pinned = held.filter((pin) => nameOf(pin).toLowerCase().includes(text));
  const pin = held.find((one) => idOf(one) === what);
  return (
    <div class={`split tools ${what ? 'with-detail' : ''}`}>
      <div class="names inbox">
        <p class="sum">{counted(open.length + (found?.below.length ?? 0), 'call')} waiting <Bell /> <span class="links"><a href={write('approvals', 'operators')}>who may agree</a> <a href={write('approvals', 'grants')}>grants</a></span></p>
        <div class="canvas" tabIndex={0} role="region" aria-label="Calls">
          {open.length === 0 && found?.below.length === 0 && pinned.length === 0 && <p class="empty">No call waits for a person.</p>}
          <ul class="plain flow">
            {found?.below.map((held) => <Line key={held.id} id={held.id} state="degraded" tool={held.data.tool ?? '?'} more={`held behind ${held.mount}, by gate ${held.gate.slice(0, 8)}`} isOpen={held.id === what} />)}
            {open.map((a) => <Line key={a.id} id={a.id} state="degraded" tool={a.tool} more={a.room === undefined ? a.caller : `${a.caller}, in ${a.room}`} given={a.arguments} expires={a.expires} isOpen={a.id === shown} />)}
          </ul>
          {pinned.length > 0 && <h2 class="part">Definitions that wait, or were refused</h2>}
          <ul class="plain flow">{pinned.map((one) => <PinLine key={idOf(one)} pin={one} isOpen={one === pin} />)}</ul>
          {over.length > 0 && <h2 class="part">Before</h2>}
          <ul class="plain flow">
            {over.slice(0, 200).map((a) => <Line key={a.id} id={a.id} state={LOOK[a.standing]} tool={a.tool} more={`${a.standing.replace('_', ' ')}, ${a.caller}`} isOpen={a.id === what} />)}
          </ul>
        </div>
      </div>
      {what ? (
        <section class="detail one" aria-label="About this call">
          <Close onClick={() => go('approvals')} />
          {what === 'operators' ? <Operators /> : /^grants(:|$)/.test(what) ? <Grants like={found?.approvals.find((a) => `grants:${a.id}` === what)} ahead={found?.ahead ?? 0} /> : pin ? <OnePin key={pin.hash} pin={pin} /> : one ? <One key={one.id} one={one} ahead={found?.ahead ?? 0} /> : other ? <Held held={other} /> : <p class="dim">There is no such approval any more.</p>}
        </section>
      ) : (
        <section class="detail one beside" aria-label={one ? 'The call that waits longest' : 'How approvals work'}>
          {shown !== '' && one?.standing !== 'pending' && <Settled onNext={next} />}
          {one ? <One key={one.id} one={one} ahead={found?.ahead ?? 0} /> : shown === '' && <Explained />}
        </section>
      )}
    </div>
  );
}

/** The call that stands beside the list after a choice of nobody: `kept` as long as there is one, so that no call takes the place of another. */
export function pinned(chosen: string, kept: string, first: string): string {
  return chosen === '' && kept === '' ? first : chosen === '' ? kept : '';
}

/** The call that is shown, and a way on to the one that waits longest. */
function usePinned(chosen: string, first: string): [string, () => void] {
  const kept = useRef('');
  const [, draw] = useState(0);
  kept.current = pinned(chosen, kept.current, first);
  return [chosen || kept.current, () => ((kept.current = ''), draw((count) => count + 1))];
}

/** In place of a call that somebody read when it was settled elsewhere. */
function Settled({ onNext }: { onNext: () => void }): JSX.Element {
  return <p class="note" role="status">The call that stood here is settled or has expired. <button type="button" onClick={onNext}>Show the next call</button></p>;
}

/** What the view is for, while nothing waits. */
function Explained(): JSX.Element {
  const asks = useStore(gate).status?.mounts.filter((mount) => mount.asks) ?? [];
  return (
    <>
      <header><h2>{asks.length > 0 ? 'Calls wait here for a person' : 'No call waits for a person yet'}</h2></header>
      <p>{asks.length > 0 ? `This gate holds calls of ${counted(asks.length, 'server')} until somebody approves: ${asks.slice(0, 6).map((mount) => mount.name).join(', ')}${asks.length > 6 ? ' …' : ''}.` : 'The configuration names no call that needs an approval. These lines in banyan.toml hold every call that can not be undone:'}</p>
      {asks.length === 0 && <pre tabIndex={0} role="region" aria-label="What to write into banyan.toml">{'[approvals]\nmode = "irreversible"'}</pre>}
      <p class="dim">A waiting call is shown with all of its arguments. A passkey signs exactly what is shown, and the call goes out once. A denial goes to the caller with its reason.</p>
      <p class="row"><a class="button" href={write('approvals', 'operators')}>Who may approve</a> <a class="button" href={write('approvals', 'grants')}>Grants</a></p>
    </>
  );
}

/** Asks the browser whether it may tell of calls that wait while nobody looks. */
function Bell(): JSX.Element | null {
  const [is, set] = useState(typeof Notification === 'undefined' ? 'denied' : Notification.permission);
  if (is !== 'default') return null;
  return <button type="button" class="quiet" onClick={() => void Notification.requestPermission().then(set)}>Tell me</button>;
}

interface LineProps {
  id: string;
  state: State;
  tool: string;
  more: string;
  /** Arguments, of which the beginning is shown. */
  given?: string;
  expires?: number;
  isOpen: boolean;
}

function Line({ id, state, tool, more, given, expires, isOpen }: LineProps): JSX.Element {
  const now = useNow();
  return (
    <li>
      <a href={write('approvals', id)} aria-current={isOpen ? 'true' : undefined}>
        <span class="name"><Glyph state={state} /> {tool}</span>
        <span class="dim">{more}</span>
        {expires !== undefined && <span class="number">{duration(expires - now)}</span>}
        {given !== undefined && <span class="given name"><Seen text={given.slice(0, GIVEN)} /></span>}
      </a>
    </li>
  );
}

function One({ one, ahead }: { one: Approval; ahead: number }): JSX.Element {
  const now = useNow() + ahead;
  const [wrong, setWrong] = useState<string | null>('it is being checked');
  useEffect(() => void deceit(one).then(setWrong, (error: Error) => setWrong(error.message)), [one.challenge, one.arguments, one.others, one.client, one.preview]);
  const isOpen = one.standing === 'pending';
  return (
    <>
      <header>
        <h2>{one.tool}</h2>
        <p class={`state ${LOOK[one.standing]}`}><Glyph state={LOOK[one.standing]} /> {MEANS[one.standing]}</p>
      </header>
      {one.reason && <p class="note">{one.reason}</p>}
      <Facts
        of={[
          ['asked by', <b>{one.caller}</b>],
          ['room', one.room !== undefined && <a href={write('rooms', one.room)}><Seen text={one.room} /></a>],
          ['way', <Way route={one.route} />],
          ['because of', one.causes.map((cause) => CAUSES[cause]).join(', ')],
          ['risk', <Risk annotation={one.annotation} />],
          ['caller', isOpen && (one.attended ? 'waits for the answer' : 'has left, and may come back for it')],
          ['asked', clock(one.requested, now)],
          ['agreed', `${one.votes.length} of ${one.required}${one.votes.length > 0 ? `: ${one.votes.map((vote) => vote.person).join(', ')}` : ''}`],
          ['time left', isOpen && <Countdown from={one.requested} to={one.expires} now={now} />],
        ]}
      />
      <Arguments text={one.arguments} />
      {one.others && <Arguments text={one.others} what="Other members" />}
      {one.client && <Arguments text={one.client} what="What it says of its client" />}
      <Preview of={one} />
      {one.previous && <Compared one={one} previous={one.previous} now={now} />}
      <details>
        <summary>What is signed</summary>
        <pre tabIndex={0} role="region" aria-label="What is signed">{one.challenge}</pre>
        <p class="dim">Its SHA-256, which a passkey signs: <code>{one.digest}</code></p>
      </details>
      {!isOpen && <p><a href={write('record', `approval:${one.id}`)}>What the record says of it</a></p>}
      <p><a href={write('approvals', `grants:${one.id}`)}>Let calls like this one through for a while</a></p>
      {isOpen && (wrong ? <p class="error" role="alert">This can not be agreed to here: {wrong}.</p> : <Decide one={one} />)}
    </>
  );
}

/** All of the arguments: no box that scrolls, nothing cut off, and what can not be seen is spelled out. */
function Arguments({ text, what = 'Arguments' }: { text: string; what?: string }): JSX.Element {
  return (
    <section aria-label={what}>
      <div class="row"><h3>{what}, all of them</h3><Copy text={text} what={`the ${what.toLowerCase()}`} /></div>
      <pre class="whole"><Seen text={indented(text)} /></pre>
      {texts(text).map(([path, value]) => (
        <section key={path} aria-label={`The text of ${path}`}>
          <h4>{path}, as a text of {counted(value.split('\n').length, 'line')}</h4>
          <pre class="whole text"><Seen text={value} /></pre>
        </section>
      ))}
    </section>
  );
}

/** What the call would do, in its server's own words: all of it, as lines of a diff where it is one. */
function Preview({ of }: { of: Partial<Approval> }): JSX.Element | null {
  if (of.preview_missing !== undefined) return <p class="note">There is no preview of it: {of.preview_missing}.</p>;
  if (of.preview === undefined) return null;
  const text = of.preview;
  return (
    <section aria-label="Preview">
      <div class="row"><h3>What it would do, in its server's own words</h3><Copy text={text} what="the preview" /></div>
      <DiffText text={text} />
      <p class="dim">Right before the call goes out it is asked for again. Where it is another one by then, the call does not go out.</p>
    </section>
  );
}

function Compared({ one, previous, now }: { one: Approval; previous: { arguments: string; since: number }; now: number }): JSX.Element {
  const found = differences(previous.arguments, one.arguments);
  const [before, after] = [previous.arguments, one.arguments].map((text) => new Map(texts(text))) as [Map<string, string>, Map<string, string>];
  const lined = found.filter(({ path }) => before.has(path) && after.has(path));
  const rest = found.filter((difference) => !lined.includes(difference));
  return (
    <section aria-label="What differs from last time">
      <h3>What differs from the call that was agreed to {duration(now - previous.since)} ago</h3>
      {found.length === 0 ? <p class="dim">Nothing: the arguments are the same.</p> : rest.length > 0 && <Differences of={rest} what="argument" />}
      {lined.map(({ path }) => <TextDiff key={path} path={path} before={before.get(path) ?? ''} after={after.get(path) ?? ''} />)}
    </section>
  );
}

function Decide({ one }: { one: Approval }): JSX.Element {
  const [why, setWhy] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  const [reason, setReason] = useState('');
  const during = async (work: () => Promise<unknown>): Promise<void> => {
    setBusy(true);
    setWhy(null);
    await work().then(look).catch((error: Error) => setWhy(error.name === 'NotAllowedError' ? 'The passkey was not used: it was called off, took too long, or is none that may agree here.' : error.message));
    setBusy(false);
  };
  const approve = async (): Promise<unknown> => {
    const options = await ask<RequestOptions>('GET', `/-/approvals/${one.id}/webauthn`);
    if (options.allowCredentials.length === 0) throw new Error('no passkey of anybody who may agree is known here: add one under "who may agree"');
    if (hex(bytes(options.challenge)) !== one.digest) throw new Error('the gate asks for a signature over something else than is shown here: nothing was signed');
    const credential = await sign(options);
    return ask('POST', `/-/approvals/${one.id}/confirm`, { proof: { type: 'webauthn', credential } });
  };
  const [hasKey, setHasKey] = useState<boolean | null>(null);
  useEffect(() => void ask<{ operators: Operator[] }>('GET', '/-/operators').then(({ operators }) => setHasKey(operators.some((one) => one.passkey)), () => undefined), []);
  const deny = (): Promise<unknown> => ask('POST', `/-/approvals/${one.id}/deny`, { reason });
  return (
    <section class="decide" aria-label="Decide">
      <div class="row">
        <button type="button" class="strong" disabled={isBusy || hasKey === false} onClick={() => void during(approve)}>Approve with a passkey</button>
        <span class="dim"><Said text={`or \`banyan approve ${one.id}\``} /></span>
      </div>
      {hasKey === false && <p class="note">No passkey may approve here yet. <a href={write('approvals', 'operators')}>Add one</a> first.</p>}
      <form class="row" onSubmit={(event) => (event.preventDefault(), void during(deny))}>
        <input type="text" aria-label="Why not: the caller is told" placeholder="Why not: the caller is told" value={reason} onInput={(event) => setReason(event.currentTarget.value)} />
        <button type="submit" disabled={isBusy}>Deny</button>
      </form>
      {why && <p class="error" role="alert">{why}</p>}
    </section>
  );
}

/** A call that a gate below holds: it decides by its own keys. */
function Held({ held }: { held: Below }): JSX.Element {
  const { data } = held;
  return (
    <>
      <header>
        <h2>{data.tool ?? held.id}</h2>
        <p class="state degraded"><Glyph state="degraded" /> A gate below, behind {held.mount}, holds it.</p>
      </header>
      <p>That gate decides, by the keys that it knows: agree in its console{isLink(data.url) ? '' : ', or by `banyan approve` with a key of its own'}.</p>
      <Facts of={[
        ['gate', <code><Seen text={held.gate} /></code>],
        ['behind', <code>{held.mount}</code>],
        ['its word', !held.vouched && 'Only the server there says that it is a gate: agree at that gate itself, unless you know this id.'],
      ]} />
      {isLink(data.url) && <p><a href={data.url} target="_blank" rel="noopener noreferrer">{data.url}</a></p>}
      {data.arguments && <Arguments text={data.arguments} />}
      {data.others && <Arguments text={data.others} what="Other members" />}
      {data.client && <Arguments text={data.client} what="What it says of its client" />}
      <Preview of={data} />
      {data.challenge && <p><Said text={`From here, with a key that it knows: \`banyan approve ${held.id}\``} /></p>}
    </>
  );
}

function Way({ route: way }: { route: string[] }): JSX.Element {
  return <span class="way">{way.map((segment, i) => <span key={i}>{i > 0 && <span class="dim"> → </span>}<code>{segment}</code></span>)}</span>;
}

function Risk({ annotation }: { annotation: Record<string, unknown> }): JSX.Element | null {
  const said = Object.entries(annotation).filter(([, value]) => ['string', 'boolean', 'number'].includes(typeof value));
  if (said.length === 0) return null;
  // What can't be undone is what one has to see.
  const isBad = (key: string, value: unknown): boolean => (key === 'reversible' && value === false && annotation['mutable'] !== false) || /irreversible/.test(String(value));
  return <span class="badges">{said.map(([key, value]) => <span key={key} class={`badge ${isBad(key, value) ? 'failed' : ''}`}>{key.replace('x-mcpax-', '')}: {String(value)}</span>)}</span>;
}

