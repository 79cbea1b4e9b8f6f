// The tree as a picture: clients, this gate, gates as open containers, servers as tiles. The browser packs them; lines are measured after it.
import type { JSX } from 'preact';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { inbox, waitingAt } from './approval';
import { spentMost } from './budgets';
import { Detail } from './detail';
import { gate } from './gate';
import { type Line, Lines, Minimap, type Spot, measured } from './lines';
import { Glyph, useSize } from './parts';
import { GATE, type Group, PARENT, type Picture, type Place, moved, ordered, picture, tone } from './places';
import { go, route, write } from './route';
import type { State } from './shapes';
import { useNow, useStore } from './store';
import { counted, duration, millis, short } from './text';
import { type Named, type Traffic, rate, useTraffic } from './traffic';

const ZOOMS = [0.5, 0.65, 0.8, 1, 1.25, 1.5];
const NARROW = 660;
/** Up to so many servers each has a line of its own; of more, each group has one. */
const LINED = 12;
/** More tiles than these are small, and more than those tiny. */
const ROOMY = 24;
const DENSE = 90;
const CALLERS = 8;

export function Topology({ filter, states }: { filter: string; states: ReadonlySet<State> }): JSX.Element {
  const { status, below } = useStore(gate);
  const { what } = useStore(route);
  const traffic = useTraffic();
  const [box, size] = useSize<HTMLDivElement>();
  const world = useRef<HTMLDivElement>(null);
  const [zoom, setZoom] = useState(1);
  const [spots, setSpots] = useState<Spot[]>([]);
  const seen = useMemo(() => (status ? picture(status, below, traffic?.servers ?? [], { filter, states }) : null), [status, below, traffic, filter, states]);
  const all = useMemo(() => (seen ? ordered(seen) : []), [seen]);
  const isNarrow = size.width > 0 && size.width < NARROW;
  const tiles = all.length;
  const look = tiles > DENSE ? 'tiny' : tiles > ROOMY ? 'small' : 'large';
  const isLined = (seen?.groups.reduce((sum, group) => sum + group.places.length, 0) ?? 0) <= LINED;
  const selected = what || GATE;

  const measure = (): void => {
    const element = world.current;
    if (element) setSpots((old) => measured(element, old));
  };
  useLayoutEffect(measure, [seen, size.width, zoom, look, traffic === null]);
  // Fonts that come late move what was measured.
  useEffect(() => void document.fonts?.ready.then(measure), []);
  useEffect(() => {
    if (what) document.getElementById(`node-${what}`)?.scrollIntoView({ block: 'nearest' });
  }, [what, look]);
  const step = (by: number): void => setZoom(ZOOMS[Math.min(Math.max(ZOOMS.indexOf(zoom) + by, 0), ZOOMS.length - 1)] ?? 1);
  const fit = (): void => {
    const [outer, inner] = [box.current, world.current];
    if (!outer || !inner) return;
    const wanted = (outer.clientHeight / Math.max(1, inner.offsetHeight)) ** 0.55;
    setZoom([...ZOOMS].reverse().find((one) => one <= wanted) ?? ZOOMS[0] ?? 1);
  };
  const pressed = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const zooms: Record<string, () => void> = { '+': () => step(1), '=': () => step(1), '-': () => step(-1), '0': () => setZoom(1) };
    const zooming = zooms[event.key];
    const to = zooming ? null : moved(all, selected, event.key);
    if (zooming) zooming();
    else if (to !== null) go('tree', to);
    else return;
    event.preventDefault();
  };
  if (!status || !seen) return <p class="empty">Asking the gate…</p>;
  const shown = seen.groups.reduce((sum, group) => sum + group.places.length, 0);
  return (
    <div class={`split ${what ? 'with-detail' : ''}`}>
      <div class="stage">
        <div class="canvas topology" ref={box} onScroll={measure} onWheel={(event) => event.ctrlKey && (event.preventDefault(), step(event.deltaY < 0 ? 1 : -1))}>
          <div class={`world ${look} ${isNarrow ? 'narrow' : ''} ${isLined ? 'lined' : ''}`} ref={world} style={{ zoom: String(zoom) }}>
            {!isNarrow && <Lines spots={spots} lines={linesOf(seen, traffic)} />}
            {traffic && !isNarrow && <Callers of={traffic.callers} seconds={traffic.lately_seconds} sessions={status.sessions} />}
            <div class="grove" role="tree" aria-label="The tree of servers" tabIndex={0} {...(all.some((one) => one.id === selected) ? { 'aria-activedescendant': `node-${selected}` } : {})} onKeyDown={pressed}>
              <div class="trunk">
                {seen.parent && <ParentCard of={seen} isSelected={what === PARENT} />}
                <GateCard of={seen} traffic={traffic} isSelected={selected === GATE} />
              </div>
              <div class="groups">
                {seen.groups.map((group) => <Cluster key={group.id} group={group} look={look} selected={selected} level={seen.parent ? 3 : 2} />)}
              </div>
            </div>
          </div>
          {status.mounts.length === 0 && <NoServers />}
          {status.mounts.length > 0 && shown === 0 && <p class="empty">No server matches the filter.</p>}
        </div>
        {!isNarrow && <Tools zoom={zoom} step={step} fit={fit} reset={() => setZoom(1)} />}
        {!isNarrow && <Minimap box={box} spots={spots} zoom={zoom} />}
      </div>
      {what && <Detail id={what} onClose={() => go('tree')} />}
    </div>
  );
}

/** Lines between what calls and what is called. */
function linesOf(of: Picture, traffic: Traffic | null): Line[] {
  const callers = traffic?.callers.slice(0, CALLERS) ?? [];
  const places = of.groups.flatMap((group) => group.places);
  const most = Math.max(1, ...callers.map((one) => one.lately), ...places.map((one) => one.calls));
  const lines: Line[] = callers.map((one) => ({ from: `caller-${one.name}`, to: GATE, calls: one.lately, failed: one.lately_failed, most, state: 'ready' }));
  if (callers.length === 0 && traffic) lines.push({ from: 'caller-', to: GATE, calls: 0, failed: 0, most, state: 'ready' });
  for (const group of of.groups) {
    if (places.length <= LINED || (group.id === 'gates' && group.places.length === 1)) {
      for (const one of group.places) lines.push({ from: GATE, to: one.id, calls: one.calls, failed: one.failed, most, state: one.state });
    } else {
      const sum = (pick: (place: Place) => number): number => group.places.reduce((all, place) => all + pick(place), 0);
      lines.push({ from: GATE, to: `group-${group.id}`, calls: sum((one) => one.calls), failed: sum((one) => one.failed), most, state: group.id === 'trouble' ? 'failed' : 'ready' });
    }
  }
  if (of.parent) lines.push({ from: PARENT, to: GATE, calls: 0, failed: 0, most, state: of.parent.state === 'registered' ? 'ready' : 'failed' });
  return lines;
}

function Callers({ of, seconds, sessions }: { of: Named[]; seconds: number; sessions: number }): JSX.Element {
  const rest = of.slice(CALLERS);
  return (
    <ul class="plain callers" aria-label="Callers within the hour" style={{ '--rows': String(Math.min(of.length, CALLERS) + 1) }}>
      {of.slice(0, CALLERS).map((one) => (
        <li key={one.name} data-spot={`caller-${one.name}`}>
          {one.name === '' ? <b>others</b> : <a class="name" href={write('record', `who:${one.name}`)}>{one.name}</a>}
          <span class="dim">{one.lately > 0 ? rate(one.lately, seconds) : `${short(one.calls)}/h`}{one.failed > 0 && <span class="error">, {short(one.failed)} failed</span>}</span>
        </li>
      ))}
      {rest.length > 0 && <li class="dim">{counted(rest.length, 'more caller')}</li>}
      {of.length === 0 && <li data-spot="caller-"><b>Clients</b> <span class="dim">{sessions > 0 ? counted(sessions, 'open session') : 'no call within the hour'}</span></li>}
    </ul>
  );
}

function GateCard({ of, traffic, isSelected }: { of: Picture; traffic: Traffic | null; isSelected: boolean }): JSX.Element {
  const { status } = useStore(gate);
  const most = spentMost(status?.budgets ?? []);
  const lately = traffic?.callers.reduce((sum, one) => sum + one.lately, 0) ?? 0;
  return (
    <div id={`node-${GATE}`} data-spot={GATE} class="card gate ready" role="treeitem" aria-level={of.parent ? 2 : 1} aria-expanded="true" aria-selected={isSelected} onClick={() => go('tree', GATE)}>
      <span class="name">{location.host}</span>
      <span class="meta">{counted(of.servers, 'server')}</span>
      {traffic && <span class="meta">{rate(lately, traffic.lately_seconds)}{traffic.whole.p50_ms !== undefined && `, ${millis(traffic.whole.p50_ms)}`}</span>}
      {most >= 80 && <span class="meta trouble">a budget at {most} %</span>}
    </div>
  );
}

function ParentCard({ of, isSelected }: { of: Picture; isSelected: boolean }): JSX.Element | null {
  const { parent } = of;
  if (!parent) return null;
  const state: State = parent.state === 'registered' ? 'ready' : parent.state === 'trying' || parent.state === 'idle' ? 'starting' : 'failed';
  return (
    <div id={`node-${PARENT}`} data-spot={PARENT} class={`card parent ${state}`} role="treeitem" aria-level={1} aria-expanded="true" aria-selected={isSelected} onClick={() => go('tree', PARENT)}>
      <span class="name"><Glyph state={state} /> {parent.url.replace(/^https?:\/\//, '')}</span>
      <span class="meta">parent, {parent.state}</span>
    </div>
  );
}

function Cluster({ group, look, selected, level }: { group: Group; look: string; selected: string; level: number }): JSX.Element {
  const isTrouble = group.id === 'trouble';
  return (
    <div class={`cluster ${group.id}`} data-spot={`group-${group.id}`}>
      <p class="caption" aria-hidden="true">{isTrouble && <Glyph state="failed" />} {group.title} <span class="dim">{group.places.length}</span></p>
      <div class="pack">
        {group.places.map((place) => (place.inside.length > 0 ? <Container key={place.id} place={place} look={look} selected={selected} level={level} /> : <Tile key={place.id} place={place} look={isTrouble && look === 'tiny' ? 'small' : look} isSelected={place.id === selected} level={level} />))}
      </div>
    </div>
  );
}

/** A gate, open, with what is behind it. */
function Container({ place, look, selected, level }: { place: Place; look: string; selected: string; level: number }): JSX.Element {
  const bad = place.inside.filter((one) => one.state === 'failed' || one.state === 'degraded').length;
  return (
    <div class={`container ${place.state}`} data-spot={place.id}>
      <div id={`node-${place.id}`} class={`lid ${place.state} ${place.mount ? 'server' : 'below'}`} role="treeitem" aria-level={level} aria-expanded="true" aria-selected={place.id === selected} onClick={() => go('tree', place.id)}>
        <Glyph state={place.state} /> <span class="name">{place.label}</span>
        <span class="meta">gate, {counted(place.inside.length, 'server')}{bad > 0 && <span class="error">, {bad} in trouble</span>}{place.calls > 0 && `, ${rate(place.calls, 300)}`}</span>
        {place.mount && <Extra place={place} />}
      </div>
      <div class="pack">
        {place.inside.map((one) => (one.inside.length > 0 ? <Container key={one.id} place={one} look={look} selected={selected} level={level + 1} /> : <Tile key={one.id} place={one} look={look === 'large' ? 'small' : look} isSelected={one.id === selected} level={level + 1} />))}
      </div>
    </div>
  );
}

function Tile({ place, look, isSelected, level }: { place: Place; look: string; isSelected: boolean; level: number }): JSX.Element {
  const { mount } = place;
  return (
    <div
      id={`node-${place.id}`}
      data-spot={place.id}
      class={`card ${look} ${mount ? 'server' : 'below'} ${place.state} ${(mount?.in_flight ?? 0) > 0 ? 'busy' : ''}`}
      role="treeitem"
      aria-level={level}
      aria-selected={isSelected}
      onClick={() => go('tree', place.id)}
      title={place.id}
    >
      <Glyph state={place.state} /> <Ends text={place.label} />
      {look !== 'tiny' && <Meta place={place} isLarge={look === 'large'} />}
      {look !== 'tiny' && mount && <Extra place={place} />}
      {place.calls > 0 && <i class={`load ${tone(place.calls, place.failed)}`} aria-hidden="true" />}
    </div>
  );
}

/** Characters at the end of a name that are never cut: names of a family differ there. */
const END = 6;

/** A name that is shortened before its end. */
function Ends({ text }: { text: string }): JSX.Element {
  if (text.length <= 2 * END) return <span class="name">{text}</span>;
  return <span class="name ends"><span>{text.slice(0, -END)}</span><span>{text.slice(-END)}</span></span>;
}

function Meta({ place, isLarge }: { place: Place; isLarge: boolean }): JSX.Element | null {
  const now = useNow();
  const { mount, below } = place;
  if (below) return <span class="meta">{place.state === 'ready' ? counted(below.tools, 'tool') : 'away'}</span>;
  if (!mount) return null;
  if (mount.state !== 'ready') {
    const next = mount.next_try !== null && mount.next_try > now ? `, next try in ${duration(mount.next_try - now)}` : '';
    return <span class="meta trouble">{isLarge && mount.state} {duration(now - mount.since)}{isLarge && next}</span>;
  }
  const words = [place.calls > 0 ? rate(place.calls, 300) : counted(mount.tools, 'tool'), isLarge && (mount.registered ? 'registered' : mount.transport), isLarge && mount.asks && 'approval'].filter(Boolean);
  return <span class="meta">{words.join(' · ')}</span>;
}

/** What is under way at a server just now. */
function Extra({ place }: { place: Place }): JSX.Element | null {
  const waits = waitingAt(useStore(inbox), place.id);
  const { mount } = place;
  if (waits > 0) return <span class="flight waits">{waits} waiting</span>;
  if (!mount) return null;
  if (mount.in_flight > 0) return <span class="flight">{mount.in_flight} in flight</span>;
  return mount.p50_ms === null ? null : <span class="flight latency">{millis(mount.p50_ms)}</span>;
}

function Tools({ zoom, step, fit, reset }: { zoom: number; step: (by: number) => void; fit: () => void; reset: () => void }): JSX.Element {
  return (
    <div class="zooms" role="group" aria-label="Zoom">
      <button type="button" aria-label="Zoom out" aria-keyshortcuts="-" onClick={() => step(-1)}>−</button>
      <button type="button" class="number" aria-label={`Zoom ${Math.round(zoom * 100)} %, back to 100 %`} onClick={reset}>{Math.round(zoom * 100)} %</button>
      <button type="button" aria-label="Zoom in" aria-keyshortcuts="+" onClick={() => step(1)}>+</button>
      <button type="button" onClick={fit}>Fit</button>
    </div>
  );
}

function NoServers(): JSX.Element {
  return (
    <section class="closed">
      <h2>No server yet</h2>
      <p>A server is a program or an address that speaks MCP. The gate shows its tools to every client.</p>
      <pre tabIndex={0} role="region" aria-label="How to add a server">{'banyan add files -- npx -y @modelcontextprotocol/server-filesystem .\nbanyan import --write'}</pre>
      <p class="dim">The first line adds one. The second takes over the servers of clients on this machine.</p>
    </section>
  );
}
