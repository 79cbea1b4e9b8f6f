// Lines between places of the topology, and a small map of all of it: both from where the browser has put everything.
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { tone, width } from './places';
import type { State } from './shapes';

/** Where a place stands in its world, in pixels before any zoom. */
export interface Spot {
  id: string;
  x: number;
  y: number;
  w: number;
  h: number;
  state: State | '';
}

export interface Line {
  from: string;
  to: string;
  calls: number;
  failed: number;
  /** Calls of the busiest line. */
  most: number;
  state: State;
}

const STATES: State[] = ['failed', 'degraded', 'starting', 'ready'];

/** Measures every place; the old list where nothing has moved. */
export function measured(world: HTMLElement, old: Spot[]): Spot[] {
  const found = [...world.querySelectorAll<HTMLElement>('[data-spot]')].map((element): Spot => {
    let [x, y] = [0, 0];
    for (let at: HTMLElement | null = element; at && at !== world; at = at.offsetParent as HTMLElement | null) {
      x += at.offsetLeft;
      y += at.offsetTop;
    }
    const state = STATES.find((one) => element.classList.contains(one)) ?? '';
    return { id: element.dataset['spot'] ?? '', x, y, w: element.offsetWidth, h: element.offsetHeight, state };
  });
  const isSame = found.length === old.length && found.every((one, i) => {
    const was = old[i];
    return was && was.id === one.id && was.x === one.x && was.y === one.y && was.w === one.w && was.h === one.h && was.state === one.state;
  });
  return isSame ? old : found;
}

export function Lines({ spots, lines }: { spots: Spot[]; lines: Line[] }): JSX.Element {
  const at = new Map(spots.map((spot) => [spot.id, spot]));
  const [w, h] = [Math.max(0, ...spots.map((one) => one.x + one.w)), Math.max(0, ...spots.map((one) => one.y + one.h))];
  return (
    <svg class="limbs" aria-hidden="true" width={w} height={h}>
      {lines.map((line) => {
        const [from, to] = [at.get(line.from), at.get(line.to)];
        if (!from || !to) return null;
        const thick = width(line.calls, line.most);
        const look = line.state === 'ready' ? tone(line.calls, line.failed) : line.state;
        return <path key={`${line.from} ${line.to}`} class={look} style={{ strokeWidth: `${thick.toFixed(2)}px` }} d={curve(from, to)} />;
      })}
    </svg>
  );
}

/** From the right edge of one to the left edge of the other, or down where they stand one above the other. */
function curve(from: Spot, to: Spot): string {
  const isAbove = from.x < to.x + to.w && to.x < from.x + from.w;
  if (isAbove) return `M${from.x + from.w / 2} ${from.y + from.h}V${to.y}`;
  const [x1, y1, x2] = [from.x + from.w, from.y + from.h / 2, to.x];
  // A tall place is met near its top, where its name stands.
  const y2 = to.y + Math.min(to.h / 2, 32);
  const bend = Math.max(24, (x2 - x1) * 0.55);
  return `M${x1} ${y1.toFixed(1)}C${x1 + bend} ${y1.toFixed(1)} ${x2 - bend} ${y2.toFixed(1)} ${x2} ${y2.toFixed(1)}`;
}

const MAP = 150;

/** All of the topology, small, with what is seen of it; a press goes there. */
export function Minimap({ box, spots, zoom }: { box: { current: HTMLDivElement | null }; spots: Spot[]; zoom: number }): JSX.Element | null {
  const [seen, setSeen] = useState({ x: 0, y: 0, w: 0, h: 0, all: 0 });
  useEffect(() => {
    const element = box.current;
    if (!element) return undefined;
    const look = (): void => setSeen({ x: element.scrollLeft / zoom, y: element.scrollTop / zoom, w: element.clientWidth / zoom, h: element.clientHeight / zoom, all: element.scrollHeight / zoom });
    look();
    element.addEventListener('scroll', look, { passive: true });
    return () => element.removeEventListener('scroll', look);
  }, [spots, zoom]);
  const [w, h] = [Math.max(1, ...spots.map((one) => one.x + one.w)), Math.max(1, ...spots.map((one) => one.y + one.h))];
  if (spots.length === 0 || h < seen.h * 1.08) return null;
  const scale = Math.min(MAP / w, MAP / h);
  const press = (event: PointerEvent & { currentTarget: SVGSVGElement }): void => {
    if (event.buttons === 0) return;
    const frame = event.currentTarget.getBoundingClientRect();
    const y = (event.clientY - frame.top) / scale - seen.h / 2;
    const x = (event.clientX - frame.left) / scale - seen.w / 2;
    box.current?.scrollTo({ left: x * zoom, top: y * zoom });
  };
  return (
    <svg class="minimap" aria-hidden="true" width={w * scale} height={h * scale} onPointerDown={press} onPointerMove={press}>
      {spots.filter((one) => one.state !== '').map((one) => <rect key={one.id} class={one.state} x={one.x * scale} y={one.y * scale} width={Math.max(1, one.w * scale - 0.5)} height={Math.max(1, one.h * scale - 0.5)} />)}
      <rect class="seen" x={seen.x * scale} y={seen.y * scale} width={Math.min(seen.w, w) * scale} height={seen.h * scale} />
    </svg>
  );
}
