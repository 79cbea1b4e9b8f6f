// The record: who called what and what was decided, found by who, what, when and how it ended, and proved.
import type { JSX } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { ask } from './api';
import { Chart, type Series } from './chart';
import { AWAY, type Entry, HELD, type Row, histogram, joined, look, merged, newest, placeOf, rowsOf, says, told } from './entry';
import { gate, tools as toolRows } from './gate';
import { Close, Facts, Glyph, Json } from './parts';
import { go, route, write } from './route';
import { ERRORS, NOTHING, Search, type Wanted, meant } from './search';
import { useNow, useStore } from './store';
import { counted, instant, millis } from './text';
import { Badge, Timeline, useRelated } from './timeline';
import { Way } from './way';
import { useWindow } from './window';

const ROW = 32;
const PAGE = 200;
/** So often what a link means is looked for, once a second. */
const TRIES = 10;
/** So often new entries are looked for, in milliseconds. */
const FOLLOW = 2000;
const BARS = 60;

function asked(wanted: Wanted, until: number | null, by: 'id' | 'trace'): string {
  const query = new URLSearchParams({ limit: String(PAGE) });
  for (const key of ['principal', 'route', 'event', 'outcome'] as const) if (wanted[key].trim()) query.set(key, wanted[key].trim());
  if (wanted.id.trim()) query.set(by, wanted.id.trim());
  if (wanted.since !== '0') query.set('since', String((Math.floor(Date.now() / 1000) - Number(wanted.since)) * 1e6));
  if (until !== null) query.set('until', String(until));
  return `/-/audit?${query}`;
}

/** Entries of a search; ids of approvals and of traces look alike, so that the one is looked for after the other. */
async function page(search: Wanted, until: number | null): Promise<Entry[]> {
  if (search.outcome === ERRORS) {
    const pages = await Promise.all(['error', 'tool_error', 'timed_out', 'unknown', 'refused'].map((outcome) => single({ ...search, outcome }, until)));
    return merged(pages, PAGE).filter((entry) => entry.event !== 'refused' || AWAY.test(entry.outcome ?? ''));
  }
  return single(search, until);
}

async function single(search: Wanted, until: number | null): Promise<Entry[]> {
  const of = async (by: 'id' | 'trace'): Promise<Entry[]> => (await ask<{ entries: Entry[] }>('GET', asked(search, until, by))).entries;
  const entries = await of('id');
  return entries.length === 0 && search.id.trim() ? of('trace') : entries;
}

export function Record({ filter }: { filter: string }): JSX.Element {
  const { what } = useStore(route);
  const [wanted, setWanted] = useState<Wanted>(() => meant(route.value.what) ?? NOTHING);
  const [found, setFound] = useState<Entry[] | null>(null);
  const [isMore, setMore] = useState(false);
  const [isLive, setLive] = useState(true);
  const [why, setWhy] = useState<string | null>(null);
  const lost = useLink(what);
  const [note, setNote] = useState<string | null>(null);
  const turn = useRef(0);
  const isEmpty = why?.includes('nothing was recorded yet') ?? false;
  const search = (next: Wanted, older: Entry[] = []): void => {
    setWanted(next);
    if (older.length === 0) setNote(null);
    // The answer to a search that was left is no answer to the next one.
    const mine = (turn.current += 1);
    // The last one may share its microsecond with others.
    const until = older.length > 0 ? (older.at(-1)?.time ?? 0) + 1 : null;
    page(next, until).then(
      (entries) => {
        if (mine !== turn.current) return;
        const all = joined(older, entries);
        setFound(all.slice(0, HELD));
        setMore(all.length < HELD && hasMore(next, entries));
        setNote(all.length >= HELD ? `The list holds ${HELD} entries. A search by time shows older ones.` : null);
        setWhy(null);
      },
      (error: Error) => mine === turn.current && setWhy(error.message),
    );
  };
  useEffect(() => search(wanted), []);
  // A link from elsewhere may name a caller, a tool or an outcome.
  useEffect(() => {
    const next = meant(what);
    if (next) search(next);
  }, [what]);
  useEffect(() => {
    if (!isLive) return undefined;
    const timer = setInterval(() => {
      if (document.visibilityState !== 'visible') return;
      const mine = turn.current;
      page(wanted, null).then((entries) => {
        if (mine !== turn.current) return;
        setWhy(null);
        setFound((old) => {
          const next = newest(entries, old ?? [], PAGE);
          if (next.isCut) setMore(true);
          if (next.isNew) setNote('More entries came at once than a page holds. The list begins anew; older entries follow below.');
          return next.entries;
        });
      }, () => undefined);
    }, FOLLOW);
    return () => clearInterval(timer);
  }, [isLive, wanted]);
  const text = filter.trim().toLowerCase();
  const rows = useMemo(() => rowsOf(found ?? []).filter((row) => `${nameOf(row, 'principal')} ${nameOf(row, 'route')} ${row.entry.event} ${row.entry.outcome ?? ''} ${row.entry.call ?? ''} ${row.entry.trace ?? ''}`.toLowerCase().includes(text)), [found, text]);
  const one = found?.find((entry) => placeOf(entry) === what);
  return (
    <div class={`split record ${what && !meant(what) ? 'with-detail' : ''}`}>
      <div class="found">
        <Search wanted={wanted} onSearch={(next) => (meant(what) && go('record'), search(next))} isLive={isLive} onLive={setLive} />
        {(lost ?? (isEmpty ? null : why)) && <p class="error notice" role="alert">{lost ?? why}</p>}
        {note && <p class="notice" role="status">{note}</p>}
        {rows.length > 0 && <Histogram rows={rows} />}
        <Rows rows={rows} what={what} more={isMore ? () => search(wanted, found ?? []) : null} isThere={found !== null || isEmpty} isFiltered={text !== '' || wanted !== NOTHING} />
      </div>
      {/^\d+\/\d+$/.test(what) && <One key={what} place={what} known={one} />}
    </div>
  );
}

/** Whether there may be older entries: of several searches, as long as they give anything. */
function hasMore(search: Wanted, entries: Entry[]): boolean {
  return search.outcome === ERRORS ? entries.length > 1 : entries.length === PAGE;
}

/** Looks for what a link from elsewhere names, and opens the newest of it; why nothing was found. */
function useLink(what: string): string | null {
  const [lost, setLost] = useState<string | null>(null);
  useEffect(() => {
    const [kind, id] = what.split(':');
    if (!id || meant(what)) return undefined;
    let isLeft = false;
    // What has just happened is found a moment later.
    const find = async (tries: number): Promise<void> => {
      const { entries: [first] } = await ask<{ entries: Entry[] }>('GET', `/-/audit?${kind === 'trace' ? 'trace' : 'id'}=${encodeURIComponent(id)}&limit=1`);
      if (isLeft) return;
      if (first) return go('record', placeOf(first));
      setLost(kind === 'call' ? `The record has no entry of the call ${id}. A held call is recorded when it leaves, and refusals of a flood are counted together.` : `The record knows nothing of ${id}.`);
      if (tries > 1) setTimeout(() => isLeft || begin(tries - 1), 1000);
    };
    const begin = (tries: number): void => void find(tries).catch((error: Error) => setLost(error.message));
    begin(TRIES);
    return () => {
      isLeft = true;
      setLost(null);
    };
  }, [what]);
  return lost;
}

function nameOf({ entry, begun }: Row, key: 'principal' | 'route'): string {
  return entry[key] ?? begun?.[key] ?? '';
}

/** When the calls were that are listed, and which failed. */
function Histogram({ rows }: { rows: Row[] }): JSX.Element {
  const bars = useMemo(() => histogram(rows, BARS), [rows]);
  const series: Series[] = useMemo(() => [
    { label: 'calls', color: 'accent', as: 'bars', values: bars.good.map((good, i) => good + (bars.bad[i] ?? 0) + (bars.refused[i] ?? 0)) },
    { label: 'refused', color: 'degraded', as: 'bars', values: bars.refused.map((refused, i) => (refused ? refused + (bars.bad[i] ?? 0) : null)), told: bars.refused },
    { label: 'failed', color: 'failed', as: 'bars', values: bars.bad.map((bad) => bad || null) },
  ], [bars]);
  const bad = [...bars.bad, ...bars.refused].reduce((sum, one) => sum + one, 0);
  return <Chart title="Calls in time" height={92} times={bars.times} series={series} says={(value) => String(Math.round(value))} summary={`${counted(rows.length, 'line')} of the record in time, ${bad} of them failed or refused`} />;
}

interface RowsProps {
  rows: Row[];
  what: string;
  more: (() => void) | null;
  isThere: boolean;
  isFiltered: boolean;
}

function Rows({ rows, what, more, isThere, isFiltered }: RowsProps): JSX.Element {
  const now = useNow();
  const { box, from, to, onScroll } = useWindow(rows.length, ROW);
  const pressed = (event: KeyboardEvent): void => {
    const at = rows.findIndex(({ entry }) => placeOf(entry) === what);
    const next = { ArrowDown: at + 1, j: at + 1, ArrowUp: at - 1, k: at - 1 }[event.key];
    const row = next === undefined ? undefined : rows[Math.max(0, next)];
    if (!row) return;
    event.preventDefault();
    go('record', placeOf(row.entry));
    const y = Math.max(0, next ?? 0) * ROW;
    if (box.current && (y < box.current.scrollTop || y > box.current.scrollTop + box.current.clientHeight - 3 * ROW)) box.current.scrollTop = y - box.current.clientHeight / 2;
  };
  return (
    <div class="canvas" ref={box} onScroll={onScroll} onKeyDown={pressed} tabIndex={0} role="region" aria-label="Entries">
      <table class="servers entries" aria-rowcount={rows.length + 1}>
        <thead><tr><th scope="col">When</th><th scope="col">What</th><th scope="col" class="wide">Caller</th><th scope="col">Outcome</th><th scope="col" class="number wide">Took</th></tr></thead>
        <tbody>
          {from > 0 && <tr class="pad" aria-hidden="true" style={{ height: `${from * ROW}px` }} />}
          {rows.slice(from, to).map((row, i) => <RowLine key={placeOf(row.entry)} row={row} now={now} isOpen={placeOf(row.entry) === what} index={from + i + 2} />)}
          {to < rows.length && <tr class="pad" aria-hidden="true" style={{ height: `${(rows.length - to) * ROW}px` }} />}
        </tbody>
      </table>
      {isThere && rows.length === 0 && <p class="empty">{isFiltered ? 'No entry matches the search.' : 'Nothing is recorded yet. The record begins with the first call.'}</p>}
      {more && <p class="more"><button type="button" onClick={more}>Older entries</button></p>}
    </div>
  );
}

function RowLine({ row, now, isOpen, index }: { row: Row; now: number; isOpen: boolean; index: number }): JSX.Element {
  const { entry, count } = row;
  const place = placeOf(entry);
  return (
    <tr class={isOpen ? 'chosen' : ''} aria-rowindex={index} onClick={() => go('record', place)}>
      <td><a class="number" href={write('record', place)} aria-current={isOpen ? 'true' : undefined}>{instant(entry.time, now)}</a></td>
      <td class="cut name">{nameOf(row, 'route') || says(entry)}{count > 1 && <b class="badge">×{count}</b>}</td>
      <td class="cut wide">{nameOf(row, 'principal')}</td>
      <td class={`cut state ${look(entry)}`}><Glyph state={look(entry)} /> {entry.outcome ?? says(entry)}</td>
      <td class="number wide">{entry.took_us === undefined ? '' : millis(entry.took_us / 1000)}</td>
    </tr>
  );
}

/** One entry, with what belongs to it. */
function One({ place, known }: { place: string; known: Entry | undefined }): JSX.Element {
  const [fetched, setFetched] = useState<Entry | null>(null);
  const [why, setWhy] = useState<string | null>(null);
  const { signedIn } = useStore(gate);
  const rows = useStore(toolRows);
  const now = useNow();
  const [chain, seq] = place.split('/');
  useEffect(() => {
    if (!known) ask<{ entry: Entry }>('GET', `/-/audit/entry?chain=${chain}&seq=${seq}`).then(({ entry }) => setFetched(entry), (error: Error) => setWhy(error.message));
  }, [place]);
  const entry = known ?? fetched;
  const related = useRelated(entry);
  const begins = related.find((one) => one.event === 'intended' || one.event === 'called');
  const tool = begins?.route && (rows === null || rows.some((row) => row.dotted === begins.route)) ? begins.route : null;
  return (
    <section class="detail one" aria-label="About this entry">
      <Close onClick={() => go('record')} />
      {why && <p class="error" role="alert">{why}</p>}
      {entry && (
        <>
          <header>
            <h2>{entry.route ?? begins?.route ?? says(entry)}</h2>
            <p class={`state ${look(entry)}`}><Glyph state={look(entry)} /> {told(entry)} <Badge place={place} /></p>
          </header>
          <Facts
            of={[
              ['when', instant(entry.time, now)],
              [entry.event === 'approval_decided' ? 'by' : 'for', (entry.principal ?? begins?.principal) && <b>{entry.principal ?? begins?.principal}</b>],
              ['took', entry.took_us !== undefined && millis(entry.took_us / 1000)],
              ['call', entry.call && <code>{entry.call}</code>],
              ['approval', entry.approval && <a href={write('approvals', entry.approval)}><code>{entry.approval}</code></a>],
              ['place', `entry ${entry.seq} of chain ${entry.chain}`],
            ]}
          />
          {entry.changed && entry.changed.length > 0 && <pre tabIndex={0} role="region" aria-label="What changed">{entry.changed.join('\n')}</pre>}
          {(entry.call ?? entry.approval ?? entry.trace) && <Timeline entries={related} chosen={place} />}
          {tool && <Way tool={tool} owner={signedIn} />}
          {entry.line && <details><summary>The entry, as it is recorded</summary><Json text={JSON.stringify(entry.line)} label="Entry" /></details>}
        </>
      )}
    </section>
  );
}
