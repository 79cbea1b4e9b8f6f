// The tree as a picture: who hangs below whom, and in which row and column everybody stands. Knows no pixels and no elements.
import type { BelowNode, Mount, Parent, State, Status } from './shapes';

export interface TreeNode {
  id: string;
  kind: 'parent' | 'gate' | 'server' | 'below';
  label: string;
  state: State;
  children: TreeNode[];
  /** How many there would be if it were open. */
  held: number;
  mount?: Mount;
  below?: BelowNode;
  parent?: Parent;
}

export interface Placed {
  node: TreeNode;
  depth: number;
  row: number;
  /** The rows of its first and its last child, its own where it has none. */
  first: number;
  last: number;
  /** Its parent's place in the list, -1 for the root. */
  up: number;
  /** Which of how many siblings it is, from 1. */
  nth: number;
  of: number;
}

export const GATE = '@gate';
export const PARENT = '@parent';

export interface Wanted {
  filter: string;
  states: ReadonlySet<State>;
  open: ReadonlySet<string>;
}

/** What is to be drawn: the gate, its servers and what is below those that are open, and the parent it is registered with. */
export function grow(status: Status, below: BelowNode[], wanted: Wanted, name: string): TreeNode {
  const text = wanted.filter.trim().toLowerCase();
  const nodes = new Map<string, TreeNode>();
  const servers = status.mounts.map((mount) => {
    const node: TreeNode = { id: mount.name, kind: 'server', label: mount.name, state: mount.state, children: [], held: 0, mount };
    nodes.set(node.id, node);
    return node;
  });
  for (const one of below) {
    const end = one.path.lastIndexOf('.');
    const above = nodes.get(one.path.slice(0, end));
    if (!above) continue;
    const node: TreeNode = { id: one.path, kind: 'below', label: one.path.slice(end + 1), state: one.degraded ? 'degraded' : 'ready', children: [], held: 0, below: one };
    above.children.push(node);
    nodes.set(node.id, node);
  }
  const isWanted = (node: TreeNode): boolean => (wanted.states.size === 0 || wanted.states.has(node.state)) && (text === '' || matches(node, text));
  const children = servers.filter((server) => prune(server, wanted.open, text !== '' || wanted.states.size > 0, isWanted));
  const gate: TreeNode = { id: GATE, kind: 'gate', label: name, state: 'ready', children, held: servers.length };
  const parent = status.joined?.parents.find((p) => p.state === 'registered') ?? status.joined?.parents[0];
  if (!parent) return gate;
  const state: State = parent.state === 'registered' ? 'ready' : parent.state === 'trying' || parent.state === 'idle' ? 'starting' : 'failed';
  return { id: PARENT, kind: 'parent', label: parent.url.replace(/^https?:\/\//, ''), state, children: [gate], held: 1, parent };
}

/** Leaves of a node what is wanted; `false`: nothing is. What is searched for is shown wherever it hangs. */
function prune(node: TreeNode, open: ReadonlySet<string>, searching: boolean, isWanted: (node: TreeNode) => boolean): boolean {
  node.held = node.children.length;
  const kept = node.children.filter((child) => prune(child, open, searching, isWanted));
  const isFound = searching && kept.length > 0;
  node.children = isFound || open.has(node.id) ? (isFound ? kept : node.children) : [];
  return isFound || isWanted(node);
}

function matches(node: TreeNode, text: string): boolean {
  const more = node.mount ? `${node.mount.transport} ${node.mount.state} ${node.mount.error ?? ''} ${node.mount.registered?.principal ?? ''}` : '';
  return `${node.id} ${more}`.toLowerCase().includes(text);
}

/** Rows and columns. In a picture a parent stands amid its children, in a list above them. */
export function place(root: TreeNode, form: 'picture' | 'list'): { placed: Placed[]; rows: number } {
  const placed: Placed[] = [];
  let rows = 0;
  const visit = (node: TreeNode, depth: number, up: number, nth: number, of: number): Placed => {
    const here: Placed = { node, depth, row: 0, first: 0, last: 0, up, nth, of };
    const at = placed.push(here) - 1;
    const isLeaf = node.children.length === 0;
    if (form === 'list' || isLeaf) here.row = rows++;
    const children = node.children.map((child, i) => visit(child, depth + 1, at, i + 1, node.children.length));
    here.first = children[0]?.row ?? here.row;
    here.last = children.at(-1)?.row ?? here.row;
    if (form === 'picture' && !isLeaf) here.row = (here.first + here.last) / 2;
    return here;
  };
  visit(root, 0, -1, 1, 1);
  return { placed, rows };
}

/** Those to be drawn between the rows `from` and `to`: what stands there, and what it hangs from, moved to where it can be seen. */
export function seen(placed: Placed[], from: number, to: number, form: 'picture' | 'list', always: string): Placed[] {
  const shown = new Set<number>();
  placed.forEach((one, at) => {
    const isHere = one.row >= from && one.row <= to;
    if (!isHere && one.node.id !== always) return;
    for (let i = at; i >= 0 && !shown.has(i); i = placed[i]?.up ?? -1) shown.add(i);
  });
  const all = [...shown].sort((a, b) => a - b).map((at) => placed[at] as Placed);
  if (form === 'list') return all;
  const rows = new Map<string, number>();
  // Whoever hangs below stands behind, so that an only child is placed before its parent.
  return all
    .reverse()
    .map((one) => {
      const only = one.node.children.length === 1 ? rows.get(one.node.children[0]?.id ?? '') : undefined;
      const row = only ?? (one.node.children.length === 0 ? one.row : amid(one, from, to));
      rows.set(one.node.id, row);
      return { ...one, row };
    })
    .reverse();
}

/** Where a parent stands amid those of its children that can be seen. */
function amid(one: Placed, from: number, to: number): number {
  const low = Math.max(one.first, Math.min(from, one.last));
  const high = Math.min(one.last, Math.max(to, one.first));
  return one.row >= low && one.row <= high ? one.row : (low + high) / 2;
}

/** Where one is after a key, in the order in which everything stands. */
export function moved(placed: Placed[], id: string, key: string): string | null {
  const at = placed.findIndex((one) => one.node.id === id);
  const here = placed[at];
  if (!here) return placed[0]?.node.id ?? null;
  const to = { ArrowDown: at + 1, j: at + 1, ArrowUp: at - 1, k: at - 1, Home: 0, End: placed.length - 1 }[key];
  if (to !== undefined) return placed[Math.min(Math.max(to, 0), placed.length - 1)]?.node.id ?? null;
  if (key === 'ArrowLeft' || key === 'h') return placed[here.up]?.node.id ?? id;
  if (key === 'ArrowRight' || key === 'l') return here.node.children[0]?.id ?? id;
  return null;
}
