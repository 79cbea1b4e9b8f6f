// The search of the record: its fields, the filters in force as chips, and the check of all of it. Fetches no entries.
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { ask } from './api';
import { says } from './entry';
import { counted } from './text';

export interface Wanted {
  principal: string;
  route: string;
  event: string;
  outcome: string;
  since: string;
  /** The id of a call or an approval, or a trace. */
  id: string;
}

export const NOTHING: Wanted = { principal: '', route: '', event: '', outcome: '', since: '0', id: '' };

const SINCE: [string, number][] = [['any time', 0], ['last hour', 3600], ['last day', 86_400], ['last week', 604_800]];
const KINDS = ['called', 'intended', 'ended', 'refused', 'approval_asked', 'approval_decided', 'registration', 'changed', 'started', 'stopped', 'gap', 'broke_here'];
/** Every kind of error: of tools, of servers, and time that ran out. */
export const ERRORS = 'any_error';
const OUTCOMES = ['done', ERRORS, 'tool_error', 'error', 'timed_out', 'cancelled', 'unknown', 'released', 'denied', 'expired'];
const NAMES: [keyof Wanted, string][] = [['principal', 'caller'], ['route', 'tool'], ['id', 'id'], ['event', 'kind'], ['outcome', 'outcome'], ['since', 'time']];

/** The search that an address names: `who:NAME`, `tool:NAME` or `outcome:WORD`. */
export function meant(what: string): Wanted | null {
  const [, kind, of] = /^(who|tool|outcome):(.+)$/s.exec(what) ?? [];
  if (!kind || !of) return null;
  return { ...NOTHING, [{ who: 'principal', tool: 'route', outcome: 'outcome' }[kind] as string]: of };
}

interface SearchProps {
  wanted: Wanted;
  onSearch: (wanted: Wanted) => void;
  isLive: boolean;
  onLive: (is: boolean) => void;
}

export function Search({ wanted, onSearch, isLive, onLive }: SearchProps): JSX.Element {
  const [written, setWritten] = useState(wanted);
  useEffect(() => setWritten(wanted), [wanted]);
  const set = (key: keyof Wanted, isDone: boolean) => (event: { currentTarget: { value: string } }): void => {
    const next = { ...written, [key]: event.currentTarget.value };
    setWritten(next);
    if (isDone) onSearch(next);
  };
  const chips = NAMES.filter(([key]) => wanted[key] !== NOTHING[key]);
  return (
    <form class="search" aria-label="Search the record" onSubmit={(event) => (event.preventDefault(), onSearch(written))}>
      <div class="row">
        <input type="text" aria-label="Who" placeholder="Caller" value={written.principal} onInput={set('principal', false)} />
        <input type="text" aria-label="What, for instance files.*" placeholder="Tool: files.*" value={written.route} onInput={set('route', false)} />
        <input type="text" aria-label="Id of a call or an approval, or a trace" placeholder="Id or trace" value={written.id} onInput={set('id', false)} />
        <select aria-label="Kind" value={written.event} onChange={set('event', true)}>
          <option value="">Any kind</option>
          {KINDS.map((kind) => <option key={kind} value={kind}>{kind.replace('_', ' ')}</option>)}
        </select>
        <select aria-label="Outcome" value={written.outcome} onChange={set('outcome', true)}>
          <option value="">Any outcome</option>
          {OUTCOMES.map((word) => <option key={word} value={word}>{word.replace('_', ' ')}</option>)}
        </select>
        <select aria-label="When" value={written.since} onChange={set('since', true)}>
          {SINCE.map(([words, seconds]) => <option key={seconds} value={String(seconds)}>{words}</option>)}
        </select>
        <button type="submit">Search</button>
        <button type="button" class="chip follows" aria-pressed={isLive} onClick={() => onLive(!isLive)}><i aria-hidden="true" /> Live</button>
        <Verify />
      </div>
      {chips.length > 0 && (
        <p class="row filters">
          {chips.map(([key, name]) => (
            <button key={key} type="button" class="chip" onClick={() => onSearch({ ...wanted, [key]: NOTHING[key] })}>
              {name}: <b>{shown(key, wanted[key])}</b> <span aria-hidden="true">×</span><span class="unseen">, remove this filter</span>
            </button>
          ))}
        </p>
      )}
    </form>
  );
}

function shown(key: keyof Wanted, value: string): string {
  if (key === 'since') return SINCE.find(([, seconds]) => String(seconds) === value)?.[0] ?? value;
  return key === 'event' ? says({ chain: 0, seq: 0, time: 0, event: value }) : value.replace('_', ' ');
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
