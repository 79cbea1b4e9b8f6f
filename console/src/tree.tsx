// The tree as it is: a picture where there is room, a list where there is not. Draws what can be seen, however many there are.
import type { JSX } from 'preact';
import { useEffect, useMemo, useState } from 'preact/hooks';
import { inbox, waitingAt } from './approval';
import { spentMost } from './budgets';
import { Detail } from './detail';
import { gate } from './gate';
import { GATE, PARENT, type Placed, type TreeNode, grow, moved, place, seen } from './layout';
import { Glyph, useSize } from './parts';
import { go, route } from './route';
import type { State } from './shapes';
import { useNow, useStore } from './store';
import { counted, duration, millis } from './text';

/** More rows than this are drawn closer together. */
const ROOMY = 30;
const COLUMNS = { parent: 190, gate: 190, server: 290, below: 230 };
const GAP = 56;
const NARROW = 660;
/** Rows drawn closely, and cards that are not, in pixels. */
const DENSE = 32;
const BIG = 44;

export function Tree({ filter, states }: { filter: string; states: ReadonlySet<State> }): JSX.Element {
  const { status, below } = useStore(gate);
  const { what } = useStore(route);
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const [box, size] = useSize<HTMLDivElement>();
  const [top, setTop] = useState(0);
  const selected = what || GATE;
  const form = size.width > 0 && size.width < NARROW ? 'list' : 'picture';
  const all = useMemo(() => new Set([...open, PARENT, GATE]), [open]);
  const root = useMemo(() => status && grow(status, below, { filter, states, open: all }, location.host), [status, below, filter, states, all]);
  const { placed, rows } = useMemo(() => (root ? place(root, form) : { placed: [], rows: 0 }), [root, form]);
  const pitch = form === 'list' ? 44 : rows > ROOMY ? DENSE : 54;
  const shown = useMemo(() => seen(placed, top / pitch - 4, (top + size.height) / pitch + 3, form, selected), [placed, top, size.height, pitch, form, selected]);

  const toggle = (id: string, is = !open.has(id)): void => {
    const next = new Set(open);
    if (is) next.add(id);
    else next.delete(id);
    setOpen(next);
  };
  const pressed = (event: KeyboardEvent): void => {
    const node = placed.find((one) => one.node.id === selected)?.node;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const isOpen = (node?.children.length ?? 0) > 0;
    const isSide = node?.kind === 'server' || node?.kind === 'below';
    if (node && isSide && (event.key === 'ArrowRight' || event.key === 'l') && node.held > 0 && !isOpen) toggle(node.id, true);
    else if (node && isSide && (event.key === 'ArrowLeft' || event.key === 'h') && isOpen) toggle(node.id, false);
    else if (event.key === ' ' && node) toggle(node.id);
    else {
      const to = moved(placed, selected, event.key);
      if (to === null) return;
      go('tree', to);
    }
    event.preventDefault();
  };
  const row = placed.find((one) => one.node.id === selected)?.row ?? 0;
  useEffect(() => {
    const element = box.current;
    if (!element || !what) return;
    const at = row * pitch;
    if (at < element.scrollTop + pitch) element.scrollTop = at - pitch;
    else if (at > element.scrollTop + element.clientHeight - 2 * pitch) element.scrollTop = at - element.clientHeight + 2 * pitch;
  }, [selected, pitch]);

  const widths = columns(placed);
  const height = rows * pitch + 16;
  const found = placed.filter((one) => one.node.kind === 'server').length;
  return (
    <div class={`split ${what ? 'with-detail' : ''}`}>
      <div class="canvas" ref={box} onScroll={(event) => setTop(event.currentTarget.scrollTop)}>
        {status?.mounts.length === 0 && <p class="empty">No servers yet. Add a <code>[mount.NAME]</code> to the configuration, or run <code>banyan import --write</code>.</p>}
        {status && status.mounts.length > 0 && found === 0 && <p class="empty">No server is like that.</p>}
        <div
          class={`tree ${form} ${pitch === DENSE ? 'dense' : ''}`}
          role="tree"
          aria-label="The tree of servers"
          tabIndex={0}
          {...(shown.some((one) => one.node.id === selected) ? { 'aria-activedescendant': `node-${selected}` } : {})}
          onKeyDown={pressed}
          style={{ height: `${height}px`, minWidth: form === 'picture' ? `${widths.end}px` : '0' }}
        >
          {form === 'picture' && <Limbs shown={shown} placed={placed} pitch={pitch} widths={widths} height={height} />}
          {shown.map((one) => (
            <Card key={one.node.id} one={one} isSelected={one.node.id === selected} onToggle={() => toggle(one.node.id)} style={spot(one, form, pitch, widths)}/>
          ))}
        </div>
      </div>
      {what && <Detail id={what} onClose={() => go('tree')} />}
    </div>
  );
}

interface Widths {
  left: number[];
  width: number[];
  end: number;
}

function columns(placed: Placed[]): Widths {
  const width: number[] = [];
  for (const { node, depth } of placed) width[depth] = Math.max(width[depth] ?? 0, COLUMNS[node.kind]);
  const left: number[] = [];
  let x = 16;
  width.forEach((w, depth) => {
    left[depth] = x;
    x += w + GAP;
  });
  return { left, width, end: x - GAP + 16 };
}

function spot(one: Placed, form: string, pitch: number, widths: Widths): Record<string, string> {
  const high = one.node.kind === 'gate' || one.node.kind === 'parent' ? BIG : pitch - (pitch === DENSE ? 4 : 10);
  const y = `translateY(${(one.row * pitch + 8 + (form === 'list' ? 0 : (pitch - (pitch === DENSE ? 4 : 10) - high) / 2)).toFixed(1)}px)`;
  if (form === 'list') return { transform: y, left: `${8 + one.depth * 14}px`, right: '8px', height: `${pitch - 6}px` };
  return { transform: y, left: `${widths.left[one.depth]}px`, width: `${COLUMNS[one.node.kind]}px`, height: `${high}px` };
}

/** The lines between who hangs below whom. */
function Limbs({ shown, placed, pitch, widths, height }: { shown: Placed[]; placed: Placed[]; pitch: number; widths: Widths; height: number }): JSX.Element {
  const middle = (pitch - (pitch === DENSE ? 4 : 10)) / 2 + 8;
  const rows = new Map(shown.map((one) => [one.node.id, one.row]));
  return (
    <svg class="limbs" aria-hidden="true" width={widths.end} height={height}>
      {shown.map((one) => {
        const above = placed[one.up];
        if (!above) return null;
        const x1 = (widths.left[above.depth] ?? 0) + COLUMNS[above.node.kind];
        const x2 = widths.left[one.depth] ?? 0;
        const y1 = (rows.get(above.node.id) ?? above.row) * pitch + middle;
        const y2 = one.row * pitch + middle;
        const bend = (x2 - x1) * 0.55;
        const busy = (one.node.mount?.in_flight ?? 0) > 0;
        return <path key={one.node.id} class={`${one.node.kind === 'gate' ? above.node.state : one.node.state} ${busy ? 'busy' : ''}`} d={`M${x1} ${y1.toFixed(1)}C${x1 + bend} ${y1.toFixed(1)} ${x2 - bend} ${y2.toFixed(1)} ${x2} ${y2.toFixed(1)}`} />;
      })}
    </svg>
  );
}

interface CardProps {
  one: Placed;
  isSelected: boolean;
  onToggle: () => void;
  style: Record<string, string>;
}

function Card({ one, isSelected, onToggle, style }: CardProps): JSX.Element {
  const { node } = one;
  const isOpen = node.children.length > 0;
  const isFold = node.held > 0 && (node.kind === 'server' || node.kind === 'below');
  return (
    <div
      id={`node-${node.id}`}
      class={`card ${node.kind} ${node.state}`}
      role="treeitem"
      aria-level={one.depth + 1}
      aria-setsize={one.of}
      aria-posinset={one.nth}
      aria-selected={isSelected}
      {...(node.held > 0 ? { 'aria-expanded': isOpen } : {})}
      style={style}
      onClick={() => go('tree', node.id)}
    >
      <Glyph state={node.state} />
      <span class="name">{node.label}</span>
      <Meta node={node} />
      {isFold && (
        <span class="fold" aria-hidden="true" onClick={(event) => (event.stopPropagation(), onToggle())}>
          {isOpen ? '−' : `+${node.held}`}
        </span>
      )}
    </div>
  );
}

function Meta({ node }: { node: TreeNode }): JSX.Element | null {
  const now = useNow();
  const open = useStore(inbox);
  const { status } = useStore(gate);
  const { mount, below, parent } = node;
  if (node.kind === 'gate') {
    const most = spentMost(status?.budgets ?? []);
    return <span class={`meta ${most >= 80 ? 'trouble' : ''}`}>{counted(node.held, 'server')}, {most >= 80 ? `a budget at ${most} %` : 'this gate'}</span>;
  }
  if (parent) return <span class="meta">{parent.state}</span>;
  if (below) return <span class="meta">{counted(below.tools, 'tool')}, {counted(below.hops, 'hop')}</span>;
  if (!mount) return null;
  if (mount.state !== 'ready') {
    const next = mount.next_try !== null && mount.next_try > now ? `, next try in ${duration(mount.next_try - now)}` : '';
    return <span class="meta trouble">{mount.state} {duration(now - mount.since)}{next}</span>;
  }
  const words = [counted(mount.tools, 'tool'), mount.registered ? 'registered' : mount.transport, mount.gate && 'gate', mount.asks && 'asks'].filter(Boolean);
  const waits = waitingAt(open, mount.name);
  return (
    <>
      <span class="meta">{words.join(' · ')}</span>
      {waits > 0 ? <span class="flight waits">{waits} waiting</span> : mount.in_flight > 0 && <span class="flight">{mount.in_flight} in flight</span>}
      {mount.p50_ms !== null && <span class="latency">{millis(mount.p50_ms)}</span>}
    </>
  );
}
