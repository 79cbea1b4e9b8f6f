// A room from within: what happens in the order in which it does, who is there, and what one says and decides.
import type { JSX } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { type Attendance, type Attended, type Moment } from './attendance';
import { exported } from './chain';
import { Seen } from './differ';
import { Glyph } from './parts';
import { Learnt } from './learnt';
import { type Mismatch, covers } from './participant';
import { type Person, People } from './people';
import { Propose } from './propose';
import { go } from './route';
import type { RoomStatus, State } from './shapes';
import { useStore } from './store';
import { clock, counted, duration } from './text';
import { Card, To, nameOf } from './thread';

/** So near to its end, in pixels, a list stays at its end. */
const NEAR = 60;
const LONG = 2000;
const LOOK: Record<Attended['standing'], State> = { coming: 'starting', there: 'ready', lost: 'degraded', over: 'failed' };
const WRONG: Record<Mismatch, string> = {
  chat: 'it is chat without a text', context: 'its kind names one thing, its payload another', envelope: 'it is no envelope of MCPx',
  method: 'its kind names one method, its payload another', reserved: 'it pretends to be the gate', response: 'it is no answer', unreadable: 'it can be read in two ways',
};

interface Props {
  room: Attendance;
  people: Person[];
  status: RoomStatus | undefined;
  filter: string;
  onLeave: () => void;
  onMoved: () => void;
}

export function Talk({ room, people, status, filter, onLeave, onMoved }: Props): JSX.Element {
  const at = useStore(room.store);
  // Who came or went, and what somebody may send since.
  const there = [at.me, ...at.present.keys(), ...at.capabilities].join('\n');
  useEffect(onMoved, [there]);
  const [proposes, setProposes] = useState(false);
  const opener = useRef<HTMLButtonElement>(null);
  const done = (): void => (setProposes(false), opener.current?.focus());
  const mayPropose = covers(at.capabilities, 'mcp/proposal:tools/call') || at.capabilities.some((pattern) => pattern.startsWith('mcp/proposal:'));
  const here = people.filter((one) => at.standing !== 'there' || one.id === at.me || at.present.has(one.id));
  return (
    <>
      <header class="room-bar">
        <h2>{room.room}</h2>
        <p class={`state ${LOOK[at.standing]}`} role="status"><Glyph state={LOOK[at.standing]} /> <Standing at={at} name={room.name} /></p>
        <div class="row">
          {at.standing === 'over' && <button type="button" class="strong" onClick={() => void room.open()}>Come in again</button>}
          <button ref={opener} type="button" data-key="p" aria-expanded={proposes} disabled={at.standing !== 'there' || !mayPropose} onClick={() => setProposes(!proposes)} aria-keyshortcuts="p">Propose a call</button>
          <button type="button" onClick={() => save(room)} disabled={room.participant.threads.all.length === 0}>Export chains</button>
          <button type="button" onClick={onLeave}>Leave</button>
          <button type="button" class="quiet back" onClick={() => go('rooms')} aria-keyshortcuts="Escape">All rooms</button>
        </div>
      </header>
      <div class="talk">
        <div class="said">
          <Waiting at={at} />
          <Timeline room={room} at={at} filter={filter} />
          {proposes && <Propose room={room} at={at} onDone={done} />}
          <Say room={room} at={at} />
        </div>
        <aside class="aside" aria-label="Who is here, and what was learnt">
          <details open={!narrow()}>
            <summary><h3>Who is here <span class="dim">{here.length}{status && status.cut > 0 ? `, ${counted(status.cut, 'slow reader')} cut off` : ''}</span></h3></summary>
            <People people={here} room={room.room} inside={room} onChanged={onMoved} />
          </details>
          <details open={!narrow()}>
            <summary><h3>Learnt rules</h3></summary>
            <Learnt room={room} at={at} />
          </details>
        </aside>
      </div>
    </>
  );
}

const narrow = (): boolean => matchMedia('(max-width: 1000px)').matches;

function Standing({ at, name }: { at: Attended; name: string }): JSX.Element {
  if (at.standing === 'there') return <>you are in, as <b><Seen text={at.me} /></b></>;
  if (at.standing === 'coming') return <>coming in as <b><Seen text={name} /></b></>;
  return <>{at.standing === 'lost' ? 'not connected, tried again by itself' : 'you are out'}{at.why && <>: <Seen text={at.why} /></>}</>;
}

/** What waits for somebody, wherever in the timeline it stands. */
function Waiting({ at }: { at: Attended }): JSX.Element | null {
  const open = at.moments.flatMap((one) => (one.is === 'thread' && one.thread.state === 'open' && one.thread.proposal ? [{ number: one.number, proposal: one.thread.proposal }] : []));
  if (open.length === 0) return null;
  const show = (number: number): void => {
    const card = document.getElementById(`thread-${number}`);
    card?.scrollIntoView({ block: 'center' });
    card?.focus({ preventScroll: true });
  };
  return (
    <nav class="waiting" aria-label="Proposals that wait">
      <span class="note">{counted(open.length, 'proposal')} {open.length === 1 ? 'waits' : 'wait'}</span>
      {open.slice(-8).map(({ number, proposal }) => <button key={number} type="button" onClick={() => show(number)}>#{number} <Seen text={nameOf(proposal).slice(0, 40)} /></button>)}
    </nav>
  );
}

function Timeline({ room, at, filter }: { room: Attendance; at: Attended; filter: string }): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const [isAtEnd, setAtEnd] = useState(true);
  const toEnd = (): void => void box.current?.scrollTo({ top: box.current.scrollHeight });
  useLayoutEffect(() => void (isAtEnd && toEnd()), [at.moments]);
  const shown = filter === '' ? at.moments : at.moments.filter((one) => told(one).toLowerCase().includes(filter));
  const last = at.moments.at(-1)?.key ?? 0;
  const seen = useRef(last);
  if (isAtEnd) seen.current = last;
  return (
    <div class="timeline-box">
      <div ref={box} class="canvas timeline" role="log" aria-label="What happens in this room" tabIndex={0} onScroll={({ currentTarget: e }) => setAtEnd(e.scrollHeight - e.scrollTop - e.clientHeight < NEAR)}>
        {at.gone > 0 && <p class="edge dim">{counted(at.gone, 'earlier thing')} {at.gone === 1 ? 'is' : 'are'} not kept here any more: this page keeps the latest.</p>}
        {at.gone === 0 && at.moments.length > 0 && !at.moments.some((one) => one.is === 'past') && <p class="edge dim">This room keeps no history: this is what happened since you came in.</p>}
        {filter !== '' && shown.length < at.moments.length && <p class="edge dim">{at.moments.length - shown.length} of {at.moments.length} are filtered out.</p>}
        {shown.map((one) => <One key={one.key} one={one} at={at} room={room} />)}
      </div>
      {!isAtEnd && <button type="button" class="to-end" onClick={() => (setAtEnd(true), toEnd())}>{last > seen.current ? `${counted(last - seen.current, 'new thing')} below` : 'To the end'} ↓</button>}
    </div>
  );
}

/** What the filter looks at. */
function told(one: Moment): string {
  if (one.is === 'thread') return [one.thread.proposal, one.thread.request, one.thread.response, one.thread.end].map((step) => step?.raw ?? '').join(' ');
  return Object.values(one).join(' ');
}

function One({ one, at, room }: { one: Moment; at: Attended; room: Attendance }): JSX.Element {
  const now = Date.now() / 1000;
  const time = <time dateTime={new Date(one.at).toISOString()}>{clock(one.at / 1000, now)}</time>;
  switch (one.is) {
    case 'thread':
      return <div class="moment">{time}<Card thread={one.thread} number={one.number} at={at} room={room} /></div>;
    case 'chat':
      return <div class={`moment chat ${one.from === at.me ? 'own' : ''}`}>{time}<div><p><b class="who"><Seen text={one.from} /></b>{one.to.length > 0 && <span class="dim"> to <To to={one.to} me={at.me} /></span>}</p><Text text={one.text} /></div></div>;
    case 'moved':
      return <div class="moment moved">{time}<p class="dim"><b class="who"><Seen text={one.who} /></b> {one.came ? 'is here' : 'has left'}</p></div>;
    case 'may':
      return <div class="moment">{time}<div class="changed"><p>An admin has changed what you may send.</p>{one.gained.length > 0 && <p class="patterns"><span class="badge ready">may now</span> {one.gained.map((pattern) => <code key={pattern}><Seen text={pattern} /></code>)}</p>}{one.lost.length > 0 && <p class="patterns"><span class="badge failed">may no more</span> {one.lost.map((pattern) => <code key={pattern}><Seen text={pattern} /></code>)}</p>}</div></div>;
    case 'refused':
      return <div class="moment">{time}<p class="error">The gate refused what you sent: <Seen text={one.message} />{one.kind && <> <code><Seen text={one.kind} /></code></>}</p></div>;
    case 'dropped':
      return <div class="moment">{time}<p class="note">{one.times > 1 ? `${one.times} messages` : 'A message'}{one.from && <> of <b class="who"><Seen text={one.from} /></b></>} dropped: {WRONG[one.why]}.</p></div>;
    case 'odd':
      return <div class="moment">{time}<p class="note"><b class="who"><Seen text={one.from} /></b>: <code><Seen text={one.kind} /></code> {one.note}{one.times > 1 && ` (${one.times} times)`}.</p></div>;
    case 'gap':
      return <div class="gap" role="note"><span>You were away for {duration((one.at - one.since) / 1000)}, from {clock(one.since / 1000, now)} to {clock(one.at / 1000, now)}. What was said meanwhile is not here, unless the room keeps it and it follows.</span></div>;
    case 'past':
      return <p class="edge dim">{counted(one.count, 'message')} from before, as the room has kept {one.count === 1 ? 'it' : 'them'}{one.more && '; others before are not here'}.</p>;
  }
}

function Text({ text }: { text: string }): JSX.Element {
  const [all, setAll] = useState(false);
  return (
    <p class="text">
      <Seen text={all ? text : text.slice(0, LONG)} />
      {text.length > LONG && !all && <button type="button" class="quiet" onClick={() => setAll(true)}>… show the other {counted(text.length - LONG, 'character')}</button>}
    </p>
  );
}

function Say({ room, at }: { room: Attendance; at: Attended }): JSX.Element {
  const [text, setText] = useState('');
  const [why, setWhy] = useState<string | null>(null);
  const may = covers(at.capabilities, 'chat');
  const say = (): void => {
    if (text.trim() === '') return;
    if (room.chat(text)) (setText(''), setWhy(null));
    else setWhy('It was not said: you are not connected, or may not talk here.');
  };
  return (
    <form class="say" aria-label="Say something" onSubmit={(event) => (event.preventDefault(), say())}>
      <textarea
        rows={Math.min(6, text.split('\n').length)}
        data-key="c"
        aria-label="Say to everybody here"
        aria-keyshortcuts="c"
        placeholder={at.standing !== 'there' ? 'not connected' : may ? 'Say to everybody here' : 'you may not talk in this room'}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
          event.preventDefault();
          say();
        }}
      />
      <button type="submit" disabled={at.standing !== 'there' || !may || text.trim() === ''}>Say</button>
      {why && <p class="error" role="alert">{why}</p>}
    </form>
  );
}

/** The chains as a file, a line of JSON each: what `/export` writes at a terminal. */
function save(room: Attendance): void {
  const lines = room.participant.threads.all.map((thread) => `${exported(thread)}\n`);
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob(lines, { type: 'application/x-ndjson' }));
  link.download = `${room.room.replaceAll(/[^\w.-]+/g, '-')}-chains.jsonl`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
