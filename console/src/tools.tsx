// Every tool, found by its name, its server or what it says of itself; and the playground of one.
import type { JSX } from 'preact';
import { useEffect, useMemo, useState } from 'preact/hooks';
import { ask } from './api';
import { fetchTools, gate, tools as toolRows } from './gate';
import { Close } from './parts';
import { Playground } from './playground';
import { go, route, write } from './route';
import type { Tool, ToolRow } from './shapes';
import { useStore } from './store';
import { counted, short } from './text';
import { useWindow } from './window';

const ROW = 46;

/** Those in which every word stands somewhere, the better matches first. */
export function search(rows: ToolRow[], text: string): ToolRow[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return rows;
  const scored = rows.flatMap((row) => {
    const name = row.dotted.toLowerCase();
    const all = `${name} ${row.shown.toLowerCase()} ${row.original.toLowerCase()} ${row.description.toLowerCase()}`;
    if (!words.every((word) => all.includes(word))) return [];
    return [{ row, score: words.filter((word) => name.includes(word)).length + (name.endsWith(words.join(' ')) ? 1 : 0) }];
  });
  return scored.sort((a, b) => b.score - a.score || (a.row.dotted < b.row.dotted ? -1 : 1)).map(({ row }) => row);
}

export function Tools({ filter }: { filter: string }): JSX.Element {
  const rows = useStore(toolRows);
  const { status } = useStore(gate);
  const { what } = useStore(route);
  const isOne = rows?.some((row) => row.dotted === what) ?? false;
  // `SERVER.` leads here from a server: all of its tools.
  const within = what.endsWith('.') ? what : '';
  const found = useMemo(() => search((rows ?? []).filter((row) => row.dotted.startsWith(within)), filter), [rows, filter, within]);
  const { box, from, to, onScroll } = useWindow(found.length, ROW);
  useEffect(() => void fetchTools(), []);
  const pressed = (event: KeyboardEvent): void => {
    const at = found.findIndex((row) => row.dotted === what);
    const next = { ArrowDown: at + 1, j: at + 1, ArrowUp: at - 1, k: at - 1 }[event.key];
    const row = next === undefined ? undefined : found[Math.max(0, next)];
    if (!row) return;
    event.preventDefault();
    go('tools', row.dotted);
    const y = Math.max(0, next ?? 0) * ROW;
    if (box.current && (y < box.current.scrollTop || y > box.current.scrollTop + box.current.clientHeight - 2 * ROW)) box.current.scrollTop = y - box.current.clientHeight / 2;
  };
  const tokens = found.reduce((sum, row) => sum + row.tokens, 0);
  return (
    <div class={`split tools ${isOne || (what && !within) ? 'with-detail' : ''}`}>
      <div class="names">
        <p class="sum">
          {counted(found.length, 'tool')}, about {short(tokens)} tokens
          {within && <> of <b>{within.slice(0, -1)}</b> <a href={write('tools')}>show all</a></>}
        </p>
        <div class="canvas" ref={box} onScroll={onScroll} onKeyDown={pressed} tabIndex={0} role="region" aria-label="Tools">
          <ul class="plain" style={{ height: `${found.length * ROW}px` }}>
            {found.slice(from, to).map((row, i) => (
              <li key={row.dotted} style={{ transform: `translateY(${(from + i) * ROW}px)` }}>
                <a href={write('tools', row.dotted)} aria-current={row.dotted === what ? 'true' : undefined}>
                  <span class="name">{row.dotted}</span>
                  <span class="dim">{row.description || 'says nothing of itself'}</span>
                  {row.availability === 'degraded' && <span class="badge degraded">degraded</span>}
                </a>
              </li>
            ))}
          </ul>
          {rows && found.length === 0 && <p class="empty">{status?.mounts.length ? 'No tool is like that.' : 'No servers, no tools.'}</p>}
        </div>
      </div>
      {what && !within && <One key={what} name={what} />}
    </div>
  );
}

/** One tool, with its definition. */
function One({ name }: { name: string }): JSX.Element {
  const [tool, setTool] = useState<Tool | null>(null);
  const [why, setWhy] = useState<string | null>(null);
  const { signedIn } = useStore(gate);
  const rows = useStore(toolRows);
  useEffect(() => {
    ask<Tool>('GET', `/-/tools/${encodeURIComponent(name)}`).then(
      (found) => (setTool(found), setWhy(null)),
      (error: Error) => setWhy(error.message),
    );
  }, [name, rows]);
  return (
    <section class="detail one" aria-label={`About ${name}`}>
      <Close onClick={() => go('tools')} />
      {why && !tool && <p class="error" role="alert">{why}</p>}
      {tool && <Playground tool={tool} owner={signedIn} />}
    </section>
  );
}
