// Every server as a row of a table, those in trouble first.
import type { JSX } from 'preact';
import { inbox, waitingAt } from './approval';
import { Detail } from './detail';
import { gate } from './gate';
import { Glyph, Spark } from './parts';
import { byName } from './places';
import { go, route, write } from './route';
import type { Mount, State } from './shapes';
import { useNow, useStore } from './store';
import { duration, millis } from './text';
import { useWindow } from './window';

const ORDER: Record<State, number> = { failed: 0, degraded: 1, starting: 2, ready: 3 };
const ROW = 36;

export function matching(mounts: Mount[], filter: string, states: ReadonlySet<State>): Mount[] {
  const text = filter.trim().toLowerCase();
  const isWanted = (m: Mount): boolean => (states.size === 0 || states.has(m.state)) && `${m.name} ${m.state} ${m.transport} ${m.origin} ${m.error ?? ''}`.toLowerCase().includes(text);
  return mounts.filter(isWanted).sort((a, b) => ORDER[a.state] - ORDER[b.state] || byName(a.name, b.name));
}

export function Servers({ filter, states }: { filter: string; states: ReadonlySet<State> }): JSX.Element {
  const { status, history } = useStore(gate);
  const { what } = useStore(route);
  const open = useStore(inbox);
  const now = useNow();
  const rows = matching(status?.mounts ?? [], filter, states);
  const { box, from, to, onScroll } = useWindow(rows.length, ROW);
  const pressed = (event: KeyboardEvent): void => {
    const at = rows.findIndex((m) => m.name === what);
    const next = { ArrowDown: at + 1, j: at + 1, ArrowUp: at - 1, k: at - 1 }[event.key];
    const mount = next === undefined ? undefined : rows[Math.max(0, next)];
    if (!mount) return;
    event.preventDefault();
    go('servers', mount.name);
    const y = Math.max(0, next ?? 0) * ROW;
    if (box.current && (y < box.current.scrollTop || y > box.current.scrollTop + box.current.clientHeight - 2 * ROW)) box.current.scrollTop = y - box.current.clientHeight / 2;
  };
  return (
    <div class={`split ${what ? 'with-detail' : ''}`}>
      <div class="canvas" ref={box} onScroll={onScroll} onKeyDown={pressed} tabIndex={0} role="region" aria-label="Servers">
        <table class="servers" aria-rowcount={rows.length + 1}>
          <thead>
            <tr>
              <th scope="col">Server</th>
              <th scope="col">State</th>
              <th scope="col" class="number">Tools</th>
              <th scope="col" class="number wide">Median</th>
              <th scope="col" class="wide"><span class="unseen">Trend</span></th>
              <th scope="col" class="number wide">In flight</th>
              <th scope="col" class="wide">Approval</th>
              <th scope="col" class="number wide">Retries</th>
              <th scope="col" class="wide">Protocol</th>
            </tr>
          </thead>
          <tbody>
            {from > 0 && <tr class="pad" aria-hidden="true" style={{ height: `${from * ROW}px` }} />}
            {rows.slice(from, to).map((m, i) => (
              <tr key={m.name} class={m.name === what ? 'chosen' : ''} aria-rowindex={from + i + 2} onClick={() => go('servers', m.name)}>
                <th scope="row"><a href={write('servers', m.name)} aria-current={m.name === what ? 'true' : undefined}>{m.name}</a></th>
                <td class={`state ${m.state}`}><Glyph state={m.state} /> {m.state} <span class="dim">{duration(now - m.since)}</span></td>
                <td class="number">{m.tools}</td>
                <td class="number wide">{m.p50_ms === null ? '' : millis(m.p50_ms)}</td>
                <td class="wide trend"><Spark values={history.get(m.name) ?? []} width={72} height={18} /></td>
                <td class="number wide">{m.in_flight || ''}</td>
                <td class="wide"><Asking mount={m} waiting={waitingAt(open, m.name)} /></td>
                <td class="number wide">{m.restarts || ''}</td>
                <td class="wide dim">{m.transport}{m.version ? ` ${m.version}` : ''}{m.gate ? ', gate' : ''}{m.registered ? ', registered' : ''}</td>
              </tr>
            ))}
            {to < rows.length && <tr class="pad" aria-hidden="true" style={{ height: `${(rows.length - to) * ROW}px` }} />}
          </tbody>
        </table>
        {status && rows.length === 0 && <p class="empty">No server matches the filter.</p>}
      </div>
      {what && <Detail id={what} onClose={() => go('servers')} />}
    </div>
  );
}

/** Which calls need an approval, and how many of them wait. */
function Asking({ mount, waiting }: { mount: Mount; waiting: number }): JSX.Element | null {
  if (waiting > 0) return <a class="badge degraded" href={write('approvals')}>{waiting} waiting</a>;
  return mount.asks ? <span class="dim">{OF[mount.asks]}</span> : null;
}

const OF = { irreversible: 'irreversible calls', mutable: 'any change', unlisted: 'all but listed tools' };
