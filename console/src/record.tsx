// The record: who called what and what was decided, found by who, what, when and how it ended, and proved.
import type { JSX } from 'preact';
import { useEffect, useMemo, useState } from 'preact/hooks';
import { ask } from './api';
import { type Entry, joined, look, placeOf, says, told } from './entry';
import { gate, tools as toolRows } from './gate';
import { Close, Facts, Glyph, Json } from './parts';
import { go, route, write } from './route';
import { useNow, useStore } from './store';
import { counted, instant, millis } from './text';
import { Badge, Timeline, useRelated } from './timeline';
import { Way } from './way';
import { useWindow } from './window';

const ROW = 32;
const PAGE = 200;
/** So often what a link means is looked for, once a second. */
const TRIES = 10;
const SINCE: [string, number][] = [['at any time', 0], ['in the last hour', 3600], ['in the last day', 86_400], ['in the last week', 604_800]];
const KINDS = ['called', 'intended', 'ended', 'refused', 'approval_asked', 'approval_decided', 'registration', 'changed', 'started', 'stopped', 'gap', 'broke_here'];

interface Wanted {
  principal: string;
  route: string;
  event: string;
  since: string;
  /** The id of a call or an approval, or a trace. */
  id: string;
}

const NOTHING: Wanted = { principal: '', route: '', event: '', since: '0', id: '' };

function asked(wanted: Wanted, until: number | null, by: 'id' | 'trace'): string {
  const query = new URLSearchParams({ limit: String(PAGE) });
  for (const key of ['principal', 'route', 'event'] as const) if (wanted[key].trim()) query.set(key, wanted[key].trim());
  if (wanted.id.trim()) query.set(by, wanted.id.trim());
  if (wanted.since !== '0') query.set('since', String((Math.floor(Date.now() / 1000) - Number(wanted.since)) * 1e6));
  if (until !== null) query.set('until', String(until));
  return `/-/audit?${query}`;
}

export function Record({ filter }: { filter: string }): JSX.Element {
  const { what } = useStore(route);
  const [wanted, setWanted] = useState<Wanted>(NOTHING);
  const [found, setFound] = useState<Entry[] | null>(null);
  const [isMore, setMore] = useState(false);
  const [why, setWhy] = useState<string | null>(null);
  const [lost, setLost] = useState<string | null>(null);
  const fetchPage = async (search: Wanted, older: Entry[]): Promise<void> => {
    // The last one may share its microsecond with others.
    const until = older.length > 0 ? (older.at(-1)?.time ?? 0) + 1 : null;
    const page = async (by: 'id' | 'trace'): Promise<Entry[]> => (await ask<{ entries: Entry[] }>('GET', asked(search, until, by))).entries;
    let entries = await page('id');
    // Ids of approvals and of traces look alike.
    if (entries.length === 0 && search.id.trim()) entries = await page('trace');
    setFound(joined(older, entries));
    setMore(entries.length === PAGE);
    setWhy(null);
  };
  const search = (next: Wanted, older: Entry[] = []): void => (setWanted(next), void fetchPage(next, older).catch((error: Error) => setWhy(error.message)));
  useEffect(() => search(wanted), []);
  useEffect(() => {
    const [kind, id] = what.split(':');
    // Links from elsewhere name what they mean: it is looked for, and the newest of it opened.
    if (!id) return undefined;
    let isLeft = false;
    // What has just happened is found a moment later.
    const find = async (tries: number): Promise<void> => {
      const { entries: [first] } = await ask<{ entries: Entry[] }>('GET', `/-/audit?${kind === 'trace' ? 'trace' : 'id'}=${encodeURIComponent(id)}&limit=1`);
      if (isLeft) return;
      if (first) return go('record', placeOf(first));
      setLost(`The record knows nothing of ${id}.`);
      if (tries > 1) setTimeout(() => isLeft || begin(tries - 1), 1000);
    };
    const begin = (tries: number): void => void find(tries).catch((error: Error) => setLost(error.message));
    begin(TRIES);
    return () => {
      isLeft = true;
      setLost(null);
    };
  }, [what]);
  const text = filter.trim().toLowerCase();
  const rows = (found ?? []).filter((entry) => `${entry.principal ?? ''} ${entry.route ?? ''} ${entry.event} ${entry.outcome ?? ''} ${entry.call ?? ''} ${entry.trace ?? ''}`.toLowerCase().includes(text));
  const one = found?.find((entry) => placeOf(entry) === what);
  return (
    <div class={`split record ${what ? 'with-detail' : ''}`}>
      <div class="found">
        <Search wanted={wanted} onSearch={search} />
        {(lost ?? why) && <p class="error" role="alert">{lost ?? why}</p>}
        <Rows rows={rows} what={what} more={isMore ? () => search(wanted, found ?? []) : null} isThere={found !== null} />
      </div>
      {/^\d+\/\d+$/.test(what) && <One key={what} place={what} known={one} />}
    </div>
  );
}

function Search({ wanted, onSearch }: { wanted: Wanted; onSearch: (wanted: Wanted) => void }): JSX.Element {
  const [written, setWritten] = useState(wanted);
  const set = (key: keyof Wanted, isDone: boolean) => (event: { currentTarget: { value: string } }): void => {
    const next = { ...written, [key]: event.currentTarget.value };
    setWritten(next);
    if (isDone) onSearch(next);
  };
  return (
    <form class="row search" aria-label="Search the record" onSubmit={(event) => (event.preventDefault(), onSearch(written))}>
      <input type="text" aria-label="Who" placeholder="who" value={written.principal} onInput={set('principal', false)} />
      <input type="text" aria-label="What, for instance files.*" placeholder="what: files.*" value={written.route} onInput={set('route', false)} />
      <input type="text" aria-label="Id of a call or an approval, or a trace" placeholder="id or trace" value={written.id} onInput={set('id', false)} />
      <select aria-label="Kind" value={written.event} onChange={set('event', true)}>
        <option value="">of any kind</option>
        {KINDS.map((kind) => <option key={kind} value={kind}>{kind.replace('_', ' ')}</option>)}
      </select>
      <select aria-label="When" value={written.since} onChange={set('since', true)}>
        {SINCE.map(([words, seconds]) => <option key={seconds} value={String(seconds)}>{words}</option>)}
      </select>
      <button type="submit">Search</button>
      <Verify />
    </form>
  );
}

interface Report {
  sound: boolean;
  breaks: { chain: string; file: string; line?: number; what: string }[];
  chains: { name: string; size: number; signed: number }[];
}

/** Has the gate read all of it again. */
function Verify(): JSX.Element {
  const [report, setReport] = useState<Report | null>(null);
  const [isBusy, setBusy] = useState(false);
  const [why, setWhy] = useState<string | null>(null);
  const verify = (): void => {
    setBusy(true);
    ask<Report>('GET', '/-/audit/verify').then(setReport, (error: Error) => setWhy(error.message)).finally(() => setBusy(false));
  };
  const signed = report?.chains.reduce((sum, chain) => sum + chain.signed, 0) ?? 0;
  return (
    <>
      <button type="button" class="quiet" disabled={isBusy} onClick={verify}>{isBusy ? 'Verifying…' : 'Verify all of it'}</button>
      <span role="status">
        {report && <span class={`badge ${report.sound ? 'ready' : 'failed'}`}>{report.sound ? `sound: ${counted(signed, 'entry').replace('entrys', 'entries')} signed for` : `broken: ${brokenAt(report)}`}</span>}
        {why && <span class="error">{why}</span>}
      </span>
    </>
  );
}

function brokenAt({ breaks: [first] }: Report): string {
  return first ? `${first.what} (${first.chain}, ${first.file}${first.line === undefined ? '' : `, line ${first.line}`})` : '';
}

function Rows({ rows, what, more, isThere }: { rows: Entry[]; what: string; more: (() => void) | null; isThere: boolean }): JSX.Element {
  const now = useNow();
  const { box, from, to, onScroll } = useWindow(rows.length, ROW);
  // What ends a call does not say whose it was; what began it does, where that is here too.
  const begun = useMemo(() => new Map(rows.flatMap((entry) => (entry.event === 'intended' && entry.call ? [[entry.call, entry]] : []))), [rows]);
  const named = (entry: Entry, key: 'principal' | 'route'): string | undefined => entry[key] ?? (entry.event === 'ended' ? begun.get(entry.call ?? '')?.[key] : undefined);
  const pressed = (event: KeyboardEvent): void => {
    const at = rows.findIndex((entry) => placeOf(entry) === what);
    const next = { ArrowDown: at + 1, j: at + 1, ArrowUp: at - 1, k: at - 1 }[event.key];
    const entry = next === undefined ? undefined : rows[Math.max(0, next)];
    if (!entry) return;
    event.preventDefault();
    go('record', placeOf(entry));
    const y = Math.max(0, next ?? 0) * ROW;
    if (box.current && (y < box.current.scrollTop || y > box.current.scrollTop + box.current.clientHeight - 3 * ROW)) box.current.scrollTop = y - box.current.clientHeight / 2;
  };
  return (
    <div class="canvas" ref={box} onScroll={onScroll} onKeyDown={pressed} tabIndex={0} role="region" aria-label="Entries">
      <table class="servers entries" aria-rowcount={rows.length + 1}>
        <thead><tr><th scope="col">When</th><th scope="col">What</th><th scope="col" class="wide">Who</th><th scope="col">How</th><th scope="col" class="number wide">Took</th></tr></thead>
        <tbody>
          {from > 0 && <tr class="pad" aria-hidden="true" style={{ height: `${from * ROW}px` }} />}
          {rows.slice(from, to).map((entry, i) => (
            <tr key={placeOf(entry)} class={placeOf(entry) === what ? 'chosen' : ''} aria-rowindex={from + i + 2} onClick={() => go('record', placeOf(entry))}>
              <td><a class="number" href={write('record', placeOf(entry))} aria-current={placeOf(entry) === what ? 'true' : undefined}>{instant(entry.time, now)}</a></td>
              <td class="cut name">{named(entry, 'route') ?? says(entry)}</td>
              <td class="cut wide">{named(entry, 'principal') ?? ''}</td>
              <td class={`cut state ${look(entry)}`}><Glyph state={look(entry)} /> {entry.outcome ?? says(entry)}</td>
              <td class="number wide">{entry.took_us === undefined ? '' : millis(entry.took_us / 1000)}</td>
            </tr>
          ))}
          {to < rows.length && <tr class="pad" aria-hidden="true" style={{ height: `${(rows.length - to) * ROW}px` }} />}
        </tbody>
      </table>
      {isThere && rows.length === 0 && <p class="empty">No entry is like that.</p>}
      {more && <p class="more"><button type="button" onClick={more}>Older ones</button></p>}
    </div>
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
