// Who is in a room, since when, and what each may send; and changing that, with what it would mean for the messages seen so far.
import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { ask } from './api';
import { type Attendance } from './attendance';
import { type Meaning, meaning, remark, unsound } from './capability';
import { Seen } from './differ';
import { Confirm, Said } from './parts';
import { useNow } from './store';
import { counted, duration } from './text';

export interface Person {
  id: string;
  capabilities: string[];
  routing: string;
  since: number;
}

export function People({ people, room, inside, onChanged }: { people: Person[]; room: string; inside: Attendance | undefined; onChanged: () => void }): JSX.Element {
  const now = useNow();
  const [open, setOpen] = useState<string | null>(null);
  const me = inside?.participant.me;
  const sorted = [...people].sort((a, b) => Number(b.id === me) - Number(a.id === me) || a.since - b.since);
  if (people.length === 0) return <p class="dim">Nobody.</p>;
  return (
    <ul class="plain people">
      {sorted.map((one) => {
        const dropped = inside?.participant.misbehaved.get(one.id) ?? 0;
        return (
          <li key={one.id}>
            <p class="row">
              <b class="who"><Seen text={one.id} />{one.id === me && <span class="dim"> (you)</span>}</b>
              <span class="dim number">{one.since > 0 && duration(now - one.since)}</span>
            </p>
            {dropped > 0 && <p class="note">{counted(dropped, 'message')} dropped: kind and payload differed</p>}
            {one.routing === 'directed' && <p class="dim">gets only what is for it, or for everybody</p>}
            {open === one.id ? (
              <Editor person={one} room={room} inside={inside} onChanged={onChanged} onClose={() => setOpen(null)} />
            ) : (
              <div class="has">
                <p class="patterns">{one.capabilities.length === 0 ? <span class="dim">may send nothing</span> : one.capabilities.map((pattern) => <code key={pattern}><Seen text={pattern} /></code>)}</p>
                <button type="button" class="quiet" onClick={() => setOpen(one.id)} aria-label={`Change what ${one.id} may send`}>Change</button>
              </div>
            )}
          </li>
        );
      })}
    </ul>
  );
}

const MEANS: Record<Meaning, string> = { gained: 'may now', lost: 'may no more', kept: 'may still', never: 'may not' };
const LOOKS: Record<Meaning, string> = { gained: 'ready', lost: 'failed', kept: '', never: '' };

function Editor({ person, room, inside, onChanged, onClose }: { person: Person; room: string; inside: Attendance | undefined; onChanged: () => void; onClose: () => void }): JSX.Element {
  const [added, setAdded] = useState<string[]>([]);
  const [removed, setRemoved] = useState<ReadonlySet<string>>(new Set());
  const [pattern, setPattern] = useState('');
  const [told, setTold] = useState<{ is: 'error' | 'done'; text: string } | null>(null);
  const [isLeaving, setLeaving] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const form = useRef<HTMLFormElement>(null);
  // Where there is little room it opens out of sight.
  useEffect(() => (form.current?.scrollIntoView({ block: 'nearest' }), form.current?.focus({ preventScroll: true })), []);
  const path = `/-/rooms/${encodeURIComponent(room)}/participants/${encodeURIComponent(person.id)}`;
  const wrong = pattern === '' ? null : (unsound(pattern) ?? (person.capabilities.includes(pattern) || added.includes(pattern) ? 'it is there already' : null));
  const writing = pattern !== '' && !wrong ? [...added, pattern] : added;
  const after = [...person.capabilities.filter((one) => !removed.has(one)), ...writing];
  const isChanged = writing.length > 0 || removed.size > 0;
  const turn = (one: string): void => {
    const next = new Set(removed);
    if (!next.delete(one)) next.add(one);
    setRemoved(next);
  };
  const during = (work: Promise<unknown>, done: string): void => {
    setBusy(true);
    void work.then(
      () => (setTold({ is: 'done', text: done }), setAdded([]), setRemoved(new Set()), setPattern(''), onChanged()),
      (error: Error) => setTold({ is: 'error', text: error.message }),
    ).finally(() => setBusy(false));
  };
  const apply = (): void => {
    if (wrong || !isChanged) return;
    during(ask('POST', `${path}/capabilities`, { add: writing, remove: [...removed] }), `${person.id} has been told, and it holds from its next message on.`);
  };
  return (
    <form ref={form} tabIndex={-1} class="play editor" aria-label={`What ${person.id} may send`} onSubmit={(event) => (event.preventDefault(), apply())}>
      <ul class="plain">
        {person.capabilities.map((one) => (
          <li key={one} class="row">
            <code class={removed.has(one) ? 'gone' : ''}><Seen text={one} /></code>
            <button type="button" class="quiet" aria-pressed={removed.has(one)} aria-label={`Take away ${one}`} onClick={() => turn(one)}>{removed.has(one) ? 'Keep' : 'Take away'}</button>
          </li>
        ))}
        {added.map((one) => (
          <li key={one} class="row">
            <code class="fresh"><Seen text={one} /></code>
            <button type="button" class="quiet" aria-label={`Do not add ${one}`} onClick={() => setAdded(added.filter((other) => other !== one))}>Leave out</button>
          </li>
        ))}
      </ul>
      <div class="field">
        <label for="room-pattern">Another kind, or a pattern</label>
        <div class="row one-line">
          <input id="room-pattern" type="text" list="room-kinds" autocomplete="off" spellcheck={false} placeholder="mcp/request:tools/call:NAME" aria-invalid={wrong !== null} aria-describedby="room-pattern-said" value={pattern} onInput={(event) => (setPattern(event.currentTarget.value), setTold(null))} />
          <button type="button" disabled={pattern === '' || wrong !== null} onClick={() => (setAdded([...added, pattern]), setPattern(''))}>Add</button>
        </div>
        <datalist id="room-kinds">{[...(inside?.seen.keys() ?? [])].map((kind) => <option key={kind} value={kind} />)}</datalist>
        <p id="room-pattern-said" class={wrong ? 'error' : 'dim'}><Said text={wrong ?? (pattern === '' ? null : remark(pattern)) ?? '`*` at the end takes all that is left, elsewhere what lies before the next colon'} /></p>
      </div>
      <Preview person={person} after={after} inside={inside} />
      <div class="row">
        <button type="submit" class="strong" disabled={isBusy || !isChanged || wrong !== null}>Apply</button>
        <button type="button" onClick={onClose}>Close</button>
        <button type="button" class="quiet" onClick={() => setLeaving(true)} aria-label={`Put out ${person.id}`}>Put out</button>
      </div>
      {told && <p class={told.is === 'error' ? 'error' : 'state ready'} role={told.is === 'error' ? 'alert' : 'status'}>{told.text}</p>}
      {isLeaving && (
        <Confirm title={`Put ${person.id} out of ${room}?`} does="Put out" onDone={(yes) => (setLeaving(false), yes && during(ask('DELETE', path), `${person.id} is out.`))}>
          Its connection is closed. It may come in again by its token: to keep it out, change the configuration.
        </Confirm>
      )}
    </form>
  );
}

/** Each kind that was seen since this page came in, and whether it would be this one's to send. */
function Preview({ person, after, inside }: { person: Person; after: string[]; inside: Attendance | undefined }): JSX.Element {
  const seen = [...(inside?.seen.values() ?? [])].map((one) => ({ ...one, means: meaning(person.capabilities, after, one.kind) }));
  const order: Meaning[] = ['gained', 'lost', 'kept', 'never'];
  const sorted = seen.sort((a, b) => order.indexOf(a.means) - order.indexOf(b.means) || b.times - a.times);
  if (!inside) return <p class="dim">Come in to see what of the messages in this room it would be about.</p>;
  return (
    <section class="preview" aria-label="What was seen so far, and what it would mean">
      <h4>Of what was seen here so far</h4>
      {sorted.length === 0 && <p class="dim">Nothing was.</p>}
      <ul class="plain">
        {sorted.slice(0, 30).map(({ kind, times, from, means }) => (
          <li key={kind}><span class={`badge ${LOOKS[means]}`}>{MEANS[means]}</span> <code><Seen text={kind} /></code> <span class="dim">{times}×{from.has(person.id) ? ', its own too' : ''}</span></li>
        ))}
      </ul>
      {sorted.length > 30 && <p class="dim">and {sorted.length - 30} more</p>}
    </section>
  );
}
