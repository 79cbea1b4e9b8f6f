// What belongs to one entry of the record, as it lay in time: waits for somebody, the call, and other calls of the same trace; each entry with
// whether it is proved.
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { ask } from './api';
import { type Entry, type Span, joined, look, placeOf, relatives, spans, told } from './entry';
import { gate } from './gate';
import { Copy, Glyph, Said } from './parts';
import { type Proved, type Seen, doubt, prove, type Proof } from './proof';
import { write } from './route';
import type { Mount } from './shapes';
import { useNow, useStore } from './store';
import { instant, millis } from './text';

const SEEN = 'banyan-record';
/** Entries of one trace beyond these are not fetched here. */
const MOST = 200;
/** So many are proved unasked; of more, each when it is opened. */
const PROVED = 24;

/** What belongs to `entry`, it included, the earliest first. */
export function useRelated(entry: Entry | null): Entry[] {
  const [found, set] = useState<Entry[]>([]);
  const place = entry ? placeOf(entry) : '';
  useEffect(() => {
    let isLeft = false;
    set([]);
    void (async () => {
      let all = entry ? [entry] : [];
      const done = new Set<string>();
      // One leads to another: a call to who agreed to it, that to the call which came back.
      for (let more = all.flatMap(relatives); more.length > 0 && all.length < MOST; more = all.flatMap(relatives).filter((query) => !done.has(query))) {
        const query = more[0] as string;
        if (done.has(query)) break;
        done.add(query);
        const { entries } = await ask<{ entries: Entry[] }>('GET', `/-/audit?${query}&limit=${MOST}`);
        all = joined(all, entries);
      }
      if (!isLeft) set(all.sort((a, b) => a.time - b.time || a.seq - b.seq));
    })().catch(() => undefined);
    return () => void (isLeft = true);
  }, [place]);
  return found.length > 0 ? found : entry ? [entry] : [];
}

export function Timeline({ entries, chosen }: { entries: Entry[]; chosen: string }): JSX.Element {
  const now = useNow();
  const lay = spans(entries);
  const from = Math.min(...lay.map((span) => span.from));
  const to = Math.max(...lay.map((span) => span.to), from + 1);
  const trace = entries.find((entry) => entry.trace)?.trace;
  const first = new Set(entries.map((entry) => entry.route?.split('.')[0]));
  const next = useStore(gate).status?.mounts.filter((mount) => mount.gate && first.has(mount.name)) ?? [];
  return (
    <section aria-label="In time">
      <h3>In time</h3>
      {lay.length > 0 && <ol class="spans">{lay.map((span, i) => <Bar key={i} span={span} from={from} to={to} />)}</ol>}
      <ol class="plain entries">
        {entries.map((entry, i) => (
          <li key={placeOf(entry)} class={placeOf(entry) === chosen ? 'chosen' : ''}>
            <a href={write('record', placeOf(entry))} aria-current={placeOf(entry) === chosen ? 'true' : undefined}>
              <span class="number">{instant(entry.time, now)}</span> <Glyph state={look(entry)} /> {told(entry)}
            </a>
            {(i < PROVED || placeOf(entry) === chosen) && <Badge place={placeOf(entry)} />}
          </li>
        ))}
      </ol>
      {trace && <Trace id={trace} next={next} />}
    </section>
  );
}

/** The trace, and where the record of the next gate on the way says the rest. */
function Trace({ id, next }: { id: string; next: Mount[] }): JSX.Element {
  return (
    <div class="trace">
      <p class="dim">Trace <code>{id}</code> <Copy text={id} what="the trace" /></p>
      {next.map((mount) => (
        <p key={mount.name}>
          {mount.console ? <>It goes on in <a href={`${mount.console}${write('record', `trace:${id}`)}`} target="_blank" rel="noreferrer">the record of {mount.name}</a>.</>
            : <Said text={`It goes on in the record of ${mount.name}, which that gate's own console shows: \`banyan audit list --trace ${id}\` there.`} />}
        </p>
      ))}
    </div>
  );
}

function Bar({ span, from, to }: { span: Span; from: number; to: number }): JSX.Element {
  const percent = (micros: number): number => (micros / (to - from)) * 100;
  const width = Math.max(0.6, percent(span.to - span.from));
  return (
    <li>
      <span><span class="name">{span.what}</span> <span class="dim">{span.says}</span></span>
      <span class="number">{span.isOpen ? 'open' : millis((span.to - span.from) / 1000)}</span>
      <span class="lane" aria-hidden="true"><i class={`${span.state} ${span.isOpen ? 'open' : ''}`} style={{ left: `${Math.min(99.4, percent(span.from - from))}%`, width: `${span.isOpen ? 100 - percent(span.from - from) : width}%` }} /></span>
    </li>
  );
}

type Standing = Proved | { is: 'pending' | 'unknown'; why: string } | { is: 'doubt'; why: string };

/** Fetches the proof of an entry and checks it here; what this browser saw before is held against it. */
async function check(place: string): Promise<Standing> {
  const [chain, seq] = place.split('/');
  const proof = await ask<Proof>('GET', `/-/audit/entry?chain=${chain}&seq=${seq}`);
  const proved = await prove(proof);
  if (proved.is === 'broken') return proved;
  const before = JSON.parse(localStorage.getItem(SEEN) ?? 'null') as Seen | null;
  const seen: Seen = { key: proof.key, chain: proof.entry.chain, size: proved.checkpoint.size, root: proved.checkpoint.root };
  // An entry of an older chain says nothing of how long the record is now.
  if (before && seen.chain < before.chain && seen.key === before.key) return proved;
  const why = doubt(before, seen);
  if (why) return { is: 'doubt', why };
  localStorage.setItem(SEEN, JSON.stringify(seen));
  return proved;
}

const WORDS: Record<Standing['is'], [string, string]> = {
  proved: ['proved', 'ready'], unsigned: ['proved, signature unchecked', 'starting'], broken: ['broken', 'failed'], doubt: ['not as before', 'failed'],
  pending: ['being checked', 'starting'], unknown: ['not proved yet', 'starting'],
};

/** Whether an entry is proved, checked in this very browser. */
export function Badge({ place }: { place: string }): JSX.Element {
  const [is, set] = useState<Standing>({ is: 'pending', why: '' });
  useEffect(() => {
    let isLeft = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const tried = (left: number): void => void check(place).catch((error: Error): Standing => ({ is: 'unknown', why: error.message })).then((found) => {
      if (isLeft) return;
      set(found);
      // The gate signs about once a second.
      if (found.is === 'unknown' && left > 0) timer = setTimeout(() => tried(left - 1), 1500);
    });
    tried(3);
    return () => {
      isLeft = true;
      clearTimeout(timer);
    };
  }, [place]);
  const [word, color] = WORDS[is.is];
  return <span class={`badge ${color}`} title={means(is)}>{word}{'why' in is && is.is !== 'pending' && is.is !== 'unknown' && `: ${is.why}`}</span>;
}

function means(is: Standing): string {
  if (is.is === 'proved') return `Checked in this browser: it is one of the ${is.checkpoint.size} entries that the gate's key has signed for.`;
  if (is.is === 'unsigned') return 'Its place in the tree was checked in this browser, which can not check Ed25519 signatures; banyan audit verify does.';
  return is.why;
}
