// The tree as places on a picture: clients, the gate, groups of servers, and gates as containers of what is behind them. Knows no pixels.
import type { BelowNode, Mount, Parent, State, Status } from './shapes';
import type { Named } from './traffic';

export const GATE = '@gate';
export const PARENT = '@parent';

export interface Place {
  id: string;
  label: string;
  state: State;
  /** Places within, for a gate. */
  inside: Place[];
  isGate: boolean;
  /** Calls of the last minutes, and failed ones among them. */
  calls: number;
  failed: number;
  mount?: Mount;
  below?: BelowNode;
}

export interface Group {
  id: 'trouble' | 'gates' | 'servers';
  title: string;
  places: Place[];
}

export interface Picture {
  parent: Parent | null;
  groups: Group[];
  /** Servers of this gate, whatever is filtered. */
  servers: number;
}

const ORDER: Record<State, number> = { failed: 0, degraded: 1, starting: 2, ready: 3 };

/** Names with numbers in the order in which people count. */
const collator = typeof Intl === 'undefined' ? null : new Intl.Collator('en', { numeric: true });

export function byName(a: string, b: string): number {
  return collator ? collator.compare(a, b) : a < b ? -1 : 1;
}

/** What is to be drawn of what the gate tells. */
export function picture(status: Status, below: BelowNode[], traffic: Named[], wanted: { filter: string; states: ReadonlySet<State> }): Picture {
  const busy = new Map(traffic.map((one) => [one.name, one]));
  const places = new Map<string, Place>();
  const make = (id: string, label: string, state: State, isGate: boolean): Place => {
    const seen = busy.get(id);
    const place: Place = { id, label, state, isGate, inside: [], calls: seen?.lately ?? 0, failed: seen?.lately_failed ?? 0 };
    places.set(id, place);
    return place;
  };
  const servers = status.mounts.map((mount) => ({ ...makeMount(make, mount), mount }));
  servers.forEach((place) => places.set(place.id, place));
  for (const node of below) {
    const end = node.path.lastIndexOf('.');
    const above = places.get(node.path.slice(0, end));
    if (!above) continue;
    const place = make(node.path, node.path.slice(end + 1), node.degraded ? 'degraded' : 'ready', false);
    place.below = node;
    above.inside.push(place);
    above.isGate = true;
  }
  servers.forEach(sum);
  const text = wanted.filter.trim().toLowerCase();
  const isWanted = (place: Place): boolean => (wanted.states.size === 0 || wanted.states.has(place.state)) && matches(place, text);
  const kept = servers.filter((place) => prune(place, text !== '' || wanted.states.size > 0, isWanted));
  kept.sort((a, b) => ORDER[a.state] - ORDER[b.state] || byName(a.id, b.id));
  const parent = status.joined?.parents.find((one) => one.state === 'registered') ?? status.joined?.parents[0] ?? null;
  return { parent, servers: servers.length, groups: grouped(kept) };
}

function makeMount(make: (id: string, label: string, state: State, isGate: boolean) => Place, mount: Mount): Place {
  return make(mount.name, mount.name, mount.state, mount.gate);
}

function grouped(servers: Place[]): Group[] {
  // A server that is being started is in no trouble.
  const isBad = (place: Place): boolean => place.state === 'failed' || place.state === 'degraded';
  const isGate = (place: Place): boolean => place.isGate && place.inside.length > 0;
  const groups: Group[] = [
    { id: 'trouble', title: 'Needs attention', places: servers.filter((one) => isBad(one) && !isGate(one)) },
    { id: 'gates', title: 'Gates', places: servers.filter(isGate) },
    { id: 'servers', title: 'Servers', places: servers.filter((one) => !isBad(one) && !isGate(one)) },
  ];
  return groups.filter((group) => group.places.length > 0);
}

/** Calls of a place that holds others are its own and theirs; what is in trouble stands first within it. */
function sum(place: Place): void {
  place.inside.forEach(sum);
  place.inside.sort((a, b) => ORDER[a.state] - ORDER[b.state] || byName(a.id, b.id));
  for (const one of place.inside) {
    place.calls += one.calls;
    place.failed += one.failed;
  }
}

/** Leaves of a place what is wanted; `false`: nothing is. */
function prune(place: Place, searching: boolean, isWanted: (place: Place) => boolean): boolean {
  const here = isWanted(place);
  const kept = place.inside.filter((one) => prune(one, searching, isWanted));
  if (searching && kept.length > 0) place.inside = kept;
  return here || (searching && kept.length > 0);
}

function matches(place: Place, text: string): boolean {
  if (text === '') return true;
  const { mount } = place;
  const more = mount ? `${mount.transport} ${mount.state} ${mount.error ?? ''} ${mount.registered?.principal ?? ''}` : '';
  return `${place.id} ${more}`.toLowerCase().includes(text);
}

/** Everything that a key can lead to, in the order in which it stands, with how deep it hangs. */
export function ordered(of: Picture): { id: string; level: number; up: string }[] {
  const all: { id: string; level: number; up: string }[] = [];
  const first = of.parent ? 2 : 1;
  if (of.parent) all.push({ id: PARENT, level: 1, up: '' });
  all.push({ id: GATE, level: first, up: of.parent ? PARENT : '' });
  const visit = (place: Place, level: number, up: string): void => {
    all.push({ id: place.id, level, up });
    place.inside.forEach((one) => visit(one, level + 1, place.id));
  };
  of.groups.forEach((group) => group.places.forEach((place) => visit(place, first + 1, GATE)));
  return all;
}

/** Where one is after a key. */
export function moved(all: { id: string; up: string }[], id: string, key: string): string | null {
  const at = all.findIndex((one) => one.id === id);
  const here = all[at];
  if (!here) return all[0]?.id ?? null;
  const to = { ArrowDown: at + 1, j: at + 1, ArrowUp: at - 1, k: at - 1, Home: 0, End: all.length - 1 }[key];
  if (to !== undefined) return all[Math.min(Math.max(to, 0), all.length - 1)]?.id ?? null;
  if (key === 'ArrowLeft' || key === 'h') return here.up || id;
  if (key === 'ArrowRight' || key === 'l') return all.find((one) => one.up === id)?.id ?? id;
  return null;
}

/** The width of a line for so many calls of `most`, in pixels: wider by the logarithm, so that a thousand times as many are still drawn. */
export function width(calls: number, most: number): number {
  return calls === 0 ? 1.25 : 1.5 + (6 * Math.log1p(calls)) / Math.log1p(Math.max(most, 1));
}

/** The colour of a line or a bar by the share of calls that failed. */
export function tone(calls: number, failed: number): 'quiet' | 'busy' | 'some' | 'many' {
  if (calls === 0) return 'quiet';
  if (failed * 100 < calls) return 'busy';
  return failed * 20 >= calls ? 'many' : 'some';
}
