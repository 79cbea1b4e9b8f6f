// Entries of the record as the gate shows them, what belongs together among them, and how what was recorded lay in time. Fetches nothing.
import type { State } from './shapes';

export interface Entry {
  chain: number;
  seq: number;
  /** Microseconds since 1970. */
  time: number;
  event: string;
  call?: string;
  approval?: string;
  principal?: string;
  route?: string;
  trace?: string;
  outcome?: string;
  /** How many refusals the entry sums up, where more than one. */
  count?: number;
  changed?: string[];
  took_us?: number;
  line?: Record<string, unknown>;
}

/** Its name in addresses. */
export function placeOf(entry: Entry): string {
  return `${entry.chain}/${entry.seq}`;
}

/** A stretch of time in which something was under way. */
export interface Span {
  what: string;
  state: State;
  /** Microseconds since 1970. */
  from: number;
  to: number;
  /** Whether its end is not recorded. */
  isOpen: boolean;
  says: string;
}

const SAYS: Record<string, string> = {
  called: 'called', intended: 'about to leave', ended: 'ended', refused: 'refused', approval_asked: 'somebody was asked', approval_decided: 'decided',
  registration: 'registration', changed: 'changed', started: 'the gate began', stopped: 'the gate ended', broke_here: 'cut short', gap: 'entries are missing',
};

export function says(entry: Entry): string {
  return SAYS[entry.event] ?? entry.event;
}

/** What happened and how it ended, each word once. */
export function told(entry: Entry): string {
  const [what, outcome] = [says(entry), entry.outcome ?? ''];
  return outcome === '' || outcome === what || outcome.startsWith(`${what}: `) ? outcome || what : `${what}: ${outcome}`;
}

const GOOD = /^(done|approved|released|registered)/;
/** Calls that were refused because their server was away: errors of that server. */
export const AWAY = /^refused: (subserver_unreachable|tool_degraded)$/;
const OPEN = /^(|intended|asked)$/;

export function look(entry: Entry): State {
  const outcome = entry.outcome ?? '';
  if (/^(gap|broke_here)$/.test(entry.event)) return 'degraded';
  if (entry.outcome === undefined) return OPEN.test(entry.event.replace(/^approval_/, '')) ? 'starting' : 'ready';
  if (entry.event === 'refused') return AWAY.test(outcome) ? 'failed' : 'degraded';
  if (GOOD.test(outcome) || entry.event === 'changed') return 'ready';
  return /^(cancelled|unknown|timed_out)/.test(outcome) ? 'degraded' : 'failed';
}

/** What was under way, the earliest first: each call, and each wait for somebody. */
export function spans(entries: Entry[]): Span[] {
  const sorted = [...entries].sort((a, b) => a.time - b.time || a.seq - b.seq);
  const found: Span[] = [];
  const open = new Map<string, Span>();
  const begin = (key: string, span: Span): void => void (found.push(span), open.set(key, span));
  const end = (key: string, entry: Entry): void => {
    const span = open.get(key);
    if (!span) return;
    Object.assign(span, { to: Math.max(span.from, entry.time), isOpen: false, state: look(entry), says: [entry.outcome ?? says(entry), entry.event === 'approval_decided' && entry.principal].filter(Boolean).join(', by ') });
  };
  for (const entry of sorted) {
    const what = entry.route ?? says(entry);
    const here = { what, state: look(entry), from: entry.time, to: entry.time, isOpen: false, says: entry.outcome ?? '' };
    if (entry.event === 'called') found.push({ ...here, from: entry.time - (entry.took_us ?? 0) });
    else if (entry.event === 'intended') begin(`call ${entry.call}`, { ...here, isOpen: true, says: 'how it ended is not recorded' });
    else if (entry.event === 'ended') end(`call ${entry.call}`, entry);
    else if (entry.event === 'approval_asked') begin(`approval ${entry.approval}`, { ...here, what: `somebody is asked about ${what}`, isOpen: true, says: 'nobody has said anything' });
    else if (entry.event === 'approval_decided') end(`approval ${entry.approval}`, entry);
    else if (entry.event === 'refused') found.push(here);
  }
  return found;
}

/** What to ask the record for, so that what belongs to an entry comes too. */
export function relatives(entry: Entry): string[] {
  const by: [string, string | undefined][] = [['trace', entry.trace], ['id', entry.approval], ['id', entry.call]];
  return by.flatMap(([key, value]) => (value ? [`${key}=${encodeURIComponent(value)}`] : []));
}

/** All of both, each once. */
export function joined(some: Entry[], others: Entry[]): Entry[] {
  const known = new Map(some.map((entry) => [placeOf(entry), entry]));
  for (const entry of others) known.set(placeOf(entry), entry);
  return [...known.values()];
}

/** Entries that a page of the record holds at most. */
export const HELD = 4000;

/** A list without holes that has taken in the newest page of `size`. Where more came at once than a page holds, it begins anew. */
export function newest(entries: Entry[], old: Entry[], size: number): { entries: Entry[]; isCut: boolean; isNew: boolean } {
  const first = old[0];
  if (!first || (entries[0] && placeOf(first) === placeOf(entries[0]))) return { entries: first ? old : entries, isCut: false, isNew: false };
  const known = new Set(old.map(placeOf));
  if (entries.length >= size && !entries.some((entry) => known.has(placeOf(entry)))) return { entries, isCut: true, isNew: true };
  const all = joined(entries, old);
  return { entries: all.slice(0, HELD), isCut: all.length > HELD, isNew: false };
}

/** The newest first, of several pages of at most `size`: only as far down as each of them reaches. */
export function merged(pages: Entry[][], size: number): Entry[] {
  const floor = pages.reduce((most, page) => (page.length >= size ? Math.max(most, page.at(-1)?.time ?? 0) : most), 0);
  return joined([], pages.flat()).filter((entry) => entry.time >= floor).sort((a, b) => b.time - a.time || b.seq - a.seq);
}

/** A line of the record for people: a call with its beginning and its end, or refusals of one kind that follow each other. */
export interface Row {
  entry: Entry;
  /** The beginning of a call whose end is `entry`. */
  begun?: Entry;
  count: number;
}

/** One line a call, the newest first. */
export function rowsOf(entries: Entry[]): Row[] {
  const of = (event: string): Map<string, Entry> => new Map(entries.flatMap((entry) => (entry.event === event && entry.call ? [[entry.call, entry]] : [])));
  const [begun, ended] = [of('intended'), of('ended')];
  const rows: Row[] = [];
  for (const entry of entries) {
    if (entry.event === 'intended' && ended.has(entry.call ?? '')) continue;
    const last = rows.at(-1);
    if (last && entry.event === 'refused' && last.entry.event === 'refused' && (['principal', 'route', 'outcome'] as const).every((key) => last.entry[key] === entry[key])) {
      last.count += entry.count ?? 1;
      continue;
    }
    const beginning = entry.event === 'ended' ? begun.get(entry.call ?? '') : undefined;
    rows.push({ entry, count: entry.count ?? 1, ...(beginning ? { begun: beginning } : {}) });
  }
  return rows;
}

export interface Bars {
  /** Beginnings of the steps, in seconds since 1970. */
  times: number[];
  good: number[];
  bad: number[];
  refused: number[];
}

/** How many calls began in each of `steps` equal steps between the first and the last entry. */
export function histogram(rows: Row[], steps: number): Bars {
  const all = rows.filter(({ entry }) => ['called', 'ended', 'intended', 'refused'].includes(entry.event));
  const bars: Bars = { times: [], good: [], bad: [], refused: [] };
  if (all.length === 0) return bars;
  let [from, to] = [Infinity, -Infinity];
  for (const { entry } of all) [from, to] = [Math.min(from, entry.time), Math.max(to, entry.time)];
  const width = Math.max(1e6, (to - from + 1) / steps);
  for (let i = 0; i < steps; i += 1) (bars.times.push((from + i * width) / 1e6), bars.good.push(0), bars.bad.push(0), bars.refused.push(0));
  for (const { entry, count } of all) {
    const at = Math.min(steps - 1, Math.floor((entry.time - from) / width));
    const into = look(entry) === 'failed' ? bars.bad : entry.event === 'refused' ? bars.refused : bars.good;
    into[at] = (into[at] ?? 0) + count;
  }
  return bars;
}
