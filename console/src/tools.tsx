// Every tool, found by its name, its server or what it says of itself; and the playground of one.
import type { JSX } from 'preact';
import { useEffect, useMemo, useState } from 'preact/hooks';
import { asText } from './api';
import { fetchTools, gate, tools as toolRows } from './gate';
import { Close } from './parts';
import { Playground } from './playground';
import { members } from './json';
import { go, route, write } from './route';
import type { Tool, ToolRow } from './shapes';
import { useStore } from './store';
import { counted, short } from './text';
import { useWindow } from './window';

const ROW = 46;
/** More servers than this are found by searching. */
const MOST = 12;

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

/** How many tools each server has, and what they cost, the dearest first. */
export function byServer(rows: ToolRow[]): { name: string; tools: number; tokens: number }[] {
  const servers = new Map<string, { name: string; tools: number; tokens: number }>();
  for (const row of rows) {
    const name = row.dotted.split('.', 1)[0] ?? '';
    const one = servers.get(name) ?? { name, tools: 0, tokens: 0 };
    servers.set(name, { name, tools: one.tools + 1, tokens: one.tokens + row.tokens });
  }
  return [...servers.values()].sort((a, b) => b.tokens - a.tokens || (a.name < b.name ? -1 : 1));
}

export function Tools({ filter }: { filter: string }): JSX.Element {
  const rows = useStore(toolRows);
  const { status, link } = useStore(gate);
  const { what } = useStore(route);
  const isOne = rows?.some((row) => row.dotted === what) ?? false;
  // `SERVER.` leads here from a server: all of its tools.
  const within = what.endsWith('.') ? what : '';
  const found = useMemo(() => search((rows ?? []).filter((row) => row.dotted.startsWith(within)), filter), [rows, filter, within]);
  const { box, from, to, onScroll } = useWindow(found.length, ROW);
  const at = found.findIndex((row) => row.dotted === what);
  useEffect(() => {
    // Whoever came by a key goes on by keys.
    if (document.activeElement === document.body) box.current?.focus({ preventScroll: true });
  }, []);
  // Asked again once the gate is back: what is shown after a cut must be how it is now.
  useEffect(() => void (link === 'live' && fetchTools()), [link]);
  useEffect(() => {
    const list = box.current;
    if (list && at >= 0 && (at * ROW < list.scrollTop || at * ROW > list.scrollTop + list.clientHeight - ROW)) list.scrollTop = at * ROW - list.clientHeight / 2;
  }, [at >= 0, what]);
  const pressed = (event: KeyboardEvent): void => {
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
                  {row.ungated_by_server && <span class="badge" title="Nobody is asked about its calls, because its server says that it may do little">unasked by its own word</span>}
                </a>
              </li>
            ))}
          </ul>
          {rows && found.length === 0 && <p class="empty">{status?.mounts.length ? 'No tool matches the filter.' : 'No servers, no tools.'}</p>}
        </div>
      </div>
      {what && !within ? <One key={what} name={what} /> : found.length > 0 && <Unchosen rows={found} />}
    </div>
  );
}

/** What there is to choose from, while nothing is chosen: whose tools they are, and what they cost a model that is shown all of them. */
function Unchosen({ rows }: { rows: ToolRow[] }): JSX.Element {
  const servers = byServer(rows).slice(0, MOST);
  const most = Math.max(...servers.map((one) => one.tokens), 1);
  const dearest = [...rows].sort((a, b) => b.tokens - a.tokens).slice(0, 5);
  return (
    <section class="detail one unchosen" aria-label="Choose a tool">
      <header>
        <h2>Choose a tool</h2>
        <p class="dim">to read what it says of itself, call it with a form, see the way its calls go, or copy a call as curl, command or JSON-RPC.</p>
      </header>
      <dl class="keys">
        <div><dt><kbd>/</kbd></dt><dd>search in names, servers and descriptions</dd></div>
        <div><dt><kbd>↓</kbd><kbd>↑</kbd> or <kbd>j</kbd><kbd>k</kbd></dt><dd>from tool to tool, in the list</dd></div>
      </dl>
      {servers.length > 1 && (
        <>
          <h3>By server</h3>
          <ul class="plain shares">
            {servers.map((one) => (
              <li key={one.name}>
                <a href={write('tools', `${one.name}.`)}>{one.name}</a>
                <span class="share" aria-hidden="true"><i style={{ width: `${(100 * one.tokens) / most}%` }} /></span>
                <span class="dim">{counted(one.tools, 'tool')}, about {short(one.tokens)} tokens</span>
              </li>
            ))}
          </ul>
        </>
      )}
      <h3>Largest in a model's context</h3>
      <ul class="plain shares">
        {dearest.map((row) => (
          <li key={row.dotted}>
            <a href={write('tools', row.dotted)}>{row.dotted}</a>
            <span class="share" aria-hidden="true"><i style={{ width: `${(100 * row.tokens) / Math.max(dearest[0]?.tokens ?? 1, 1)}%` }} /></span>
            <span class="dim">about {short(row.tokens)} tokens</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** One tool, with its definition. */
function One({ name }: { name: string }): JSX.Element {
  const [tool, setTool] = useState<Tool | null>(null);
  const [why, setWhy] = useState<string | null>(null);
  const { signedIn } = useStore(gate);
  const rows = useStore(toolRows);
  useEffect(() => {
    asText('GET', `/-/tools/${encodeURIComponent(name)}`).then((text): Tool => ({ ...(JSON.parse(text) as Tool), written: members(text).get('definition') ?? '' })).then(
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
