// Rules that are learnt in a room from what people decide there: what is offered with the decisions that speak for it, what was accepted, what
// each did, and ending it. The gate learns, and acts; nothing is decided here without a person.
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { ask } from './api';
import { useAsked } from './asked';
import type { Attendance, Attended } from './attendance';
import { Seen } from './differ';
import { Confirm, Glyph } from './parts';
import { useNow } from './store';
import { clock, counted } from './text';

interface Evidence {
  proposal: string;
  by: string;
  at: number;
}

interface Limits {
  acts: number;
  an_hour: number;
  seconds: number;
}

interface Offer {
  id: number;
  says: string;
  limits: Limits;
  evidence: Evidence[];
}

interface Rule extends Offer {
  accepted_by: string;
  accepted_at: number;
  until: number;
  active: boolean;
  standing: string;
  acts: number;
}

interface Act {
  rule: number;
  proposal: string;
  at: number;
  outcome: 'done' | 'failed' | null;
}

export interface Lessons {
  learning_as: string | null;
  /** By whom the gate was asked to do nothing by itself in this room, and why. */
  paused?: string;
  decisions: number;
  offers: Offer[];
  rules: Rule[];
  acts: Act[];
}

const DAY = 86_400;
const EVERY = 5;

export function Learnt({ room, at }: { room: Attendance; at: Attended }): JSX.Element {
  const path = `/-/rooms/${encodeURIComponent(room.room)}/rules`;
  const { value, why, again } = useAsked<Lessons>(path, EVERY);
  const [wrong, setWrong] = useState<string | null>(null);
  const [leaving, setLeaving] = useState<Rule | null>(null);
  const now = useNow();
  const during = (work: Promise<unknown>): void => void work.then(() => setWrong(null), (error: Error) => setWrong(error.message)).finally(again);
  const tell = (what: string, more: object): void => during(ask('POST', `${path}/${what}`, { ...more, by: at.me }));
  const ordered = [...(value?.rules ?? [])].sort((a, b) => Number(b.active) - Number(a.active) || b.id - a.id);
  return (
    <>
      {(wrong ?? why) && <p class="error" role="alert">{wrong ?? why}</p>}
      {value && <Learning lessons={value} path={path} during={during} />}
      {value?.offers.map((offer) => <Offered key={offer.id} offer={offer} room={room} isIn={at.standing === 'there'} onAccept={(limits) => tell('accept', { offer: offer.id, ...limits })} />)}
      <ul class="plain people">
        {ordered.map((rule) => (
          <li key={rule.id} aria-label={`rule-${rule.id}`}>
            <p class="row"><b><Glyph state={rule.active ? 'ready' : 'failed'} /> rule-{rule.id}</b> <span class="dim">{rule.standing}</span></p>
            <p class="says"><Seen text={rule.says} /></p>
            <p class="dim">accepted by <b class="who"><Seen text={rule.accepted_by} /></b>, {clock(rule.accepted_at, now)}; {rule.acts} of {counted(rule.limits.acts, 'call')} made, {rule.limits.an_hour} an hour, until {clock(rule.until, now)}</p>
            <Because evidence={rule.evidence} room={room} />
            <Did acts={value?.acts.filter((act) => act.rule === rule.id) ?? []} room={room} />
            {rule.active && <button type="button" onClick={() => setLeaving(rule)} aria-label={`Revoke rule-${rule.id}`}>Revoke</button>}
          </li>
        ))}
      </ul>
      {leaving && (
        <Confirm title={`Revoke rule-${leaving.id}?`} does="Revoke" onDone={(yes) => (setLeaving(null), yes && tell('revoke', { rule: leaving.id }))}>
          What it covers waits for people again, and what was decided before speaks for no further rule. What it has done stays as it is.
        </Confirm>
      )}
    </>
  );
}

/** Whether rules are learnt here at all: somebody has to want it. */
function Learning({ lessons, path, during }: { lessons: Lessons; path: string; during: (work: Promise<unknown>) => void }): JSX.Element {
  const [name, setName] = useState('rules');
  if (lessons.learning_as !== null) {
    return (
      <div class="row">
        <p class="dim"><b class="who"><Seen text={lessons.learning_as} /></b> learns here for the gate, from people who are in by the console: {counted(lessons.decisions, 'decision')} so far. Five that agree, and none against, make an offer.</p>
        {lessons.paused !== undefined && <p class="note" role="status">It is <Seen text={lessons.paused} />: no rule does anything until it goes on, and what is proposed is for people.</p>}
        <button type="button" class="quiet" onClick={() => during(ask('DELETE', path))}>Stop learning</button>
      </div>
    );
  }
  return (
    <form class="play editor" aria-label="Learn rules" onSubmit={(event) => (event.preventDefault(), during(ask('POST', path, { as: name.trim() })))}>
      <p class="dim">The gate can sit in this room, learn from what people decide, and offer rules. It does nothing that a person did not accept.</p>
      <div class="row one-line"><input type="text" required aria-label="As whom the gate sits here" value={name} onInput={(event) => setName(event.currentTarget.value)} /><button type="submit">Learn here</button></div>
    </form>
  );
}

function Offered({ offer, room, isIn, onAccept }: { offer: Offer; room: Attendance; isIn: boolean; onAccept: (limits: { acts: number; an_hour: number; days: number }) => void }): JSX.Element {
  const [acts, setActs] = useState(offer.limits.acts);
  const [hourly, setHourly] = useState(offer.limits.an_hour);
  const [days, setDays] = useState(Math.round(offer.limits.seconds / DAY));
  const number = (label: string, value: number, most: number, set: (value: number) => void): JSX.Element => (
    <label>{label} <input type="number" min={1} max={most} step={1} required value={value} onInput={(event) => set(Number(event.currentTarget.value))} /></label>
  );
  return (
    <form class="play editor offer" aria-label={`Offer ${offer.id}`} onSubmit={(event) => (event.preventDefault(), onAccept({ acts, an_hour: hourly, days }))}>
      <p class="note">A rule could do this</p>
      <p class="says"><Seen text={offer.says} /></p>
      <Because evidence={offer.evidence} room={room} />
      <div class="row limits">{number('calls in all', acts, 10_000, setActs)}{number('an hour', hourly, 1000, setHourly)}{number('days', days, 366, setDays)}</div>
      <div class="row"><button type="submit" class="strong" disabled={!isIn}>Accept it as a rule</button></div>
    </form>
  );
}

/** The decisions that speak for it; those of which this page knows are a click away. */
function Because({ evidence, room }: { evidence: Evidence[]; room: Attendance }): JSX.Element {
  const now = useNow();
  return (
    <details>
      <summary>{counted(evidence.length, 'decision')} for it, none against</summary>
      <ol class="evidence">{evidence.map((one) => <li key={one.proposal}><Proposal id={one.proposal} room={room} /> approved by <b class="who"><Seen text={one.by} /></b>, {clock(one.at, now)}</li>)}</ol>
    </details>
  );
}

function Did({ acts, room }: { acts: Act[]; room: Attendance }): JSX.Element | null {
  const now = useNow();
  if (acts.length === 0) return null;
  return (
    <details>
      <summary>what it did: {counted(acts.length, 'call')}</summary>
      <ol class="evidence">{acts.map((one) => <li key={one.proposal}><Proposal id={one.proposal} room={room} /> {one.outcome ?? 'no answer yet'}, {clock(one.at, now)}</li>)}</ol>
    </details>
  );
}

function Proposal({ id, room }: { id: string; room: Attendance }): JSX.Element {
  const number = room.numberOf(id);
  if (number === null) return <code><Seen text={id} /></code>;
  return <button type="button" class="quiet" onClick={() => document.getElementById(`thread-${number}`)?.scrollIntoView({ block: 'center' })}>#{number}</button>;
}
