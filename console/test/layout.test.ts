import { describe, expect, it } from 'vitest';
import { GATE, PARENT, type TreeNode, grow, moved, place, seen } from '../src/layout';
import type { BelowNode } from '../src/shapes';
import { mount, status } from './made';

const node = (path: string, degraded = false): BelowNode => ({ path, tools: 1, hops: 2, degraded });
const below = [node('b.x'), node('b.x.deep', true), node('b.y')];
const three = status([mount('a'), mount('b', { gate: true }), mount('c', { state: 'failed', error: 'no uvx' })]);
const wanted = (over: { filter?: string; states?: string[]; open?: string[] } = {}) => ({
  filter: over.filter ?? '', states: new Set(over.states ?? []) as never, open: new Set([GATE, PARENT, ...(over.open ?? [])]),
});
const names = (root: TreeNode): string[] => place(root, 'list').placed.map((one) => one.node.id);

describe('what is drawn', () => {
  it('shows what is below a gate when it is open', () => {
    expect(names(grow(three, below, wanted(), 'me'))).toEqual([GATE, 'a', 'b', 'c']);
    expect(names(grow(three, below, wanted({ open: ['b'] }), 'me'))).toEqual([GATE, 'a', 'b', 'b.x', 'b.y', 'c']);
    expect(names(grow(three, below, wanted({ open: ['b', 'b.x'] }), 'me'))).toEqual([GATE, 'a', 'b', 'b.x', 'b.x.deep', 'b.y', 'c']);
  });
  it('finds what is searched for wherever it hangs, and by what is wrong with it', () => {
    expect(names(grow(three, below, wanted({ filter: 'deep' }), 'me'))).toEqual([GATE, 'b', 'b.x', 'b.x.deep']);
    expect(names(grow(three, below, wanted({ filter: 'UVX' }), 'me'))).toEqual([GATE, 'c']);
    expect(names(grow(three, below, wanted({ states: ['degraded', 'failed'] }), 'me'))).toEqual([GATE, 'b', 'b.x', 'b.x.deep', 'c']);
    expect(names(grow(three, below, wanted({ filter: 'nobody' }), 'me'))).toEqual([GATE]);
  });
  it('hangs the gate below the parent that it is registered with', () => {
    const joined = { segment: 'me', withheld: 0, parents: [{ url: 'https://one', state: 'lost' as const, since: 0 }, { url: 'https://two:7411', state: 'registered' as const, since: 0 }] };
    const root = grow(status([mount('a')], { joined }), [], wanted(), 'me');
    expect([root.label, root.state, names(root)]).toEqual(['two:7411', 'ready', [PARENT, GATE, 'a']]);
  });
});

describe('where it stands', () => {
  it('puts a parent amid its children in a picture and above them in a list', () => {
    const root = grow(three, below, wanted({ open: ['b'] }), 'me');
    const rows = (form: 'picture' | 'list') => Object.fromEntries(place(root, form).placed.map((one) => [one.node.id, one.row]));
    expect(rows('picture')).toEqual({ [GATE]: 1.5 + 0, a: 0, b: 1.5, 'b.x': 1, 'b.y': 2, c: 3 });
    expect(rows('list')).toEqual({ [GATE]: 0, a: 1, b: 2, 'b.x': 3, 'b.y': 4, c: 5 });
  });
  it('draws of a thousand only those that can be seen, and the gate beside them', () => {
    const many = status(Array.from({ length: 1000 }, (_, i) => mount(`m${String(i).padStart(4, '0')}`)));
    const { placed, rows } = place(grow(many, [], wanted(), 'me'), 'picture');
    const drawn = seen(placed, 900, 930, 'picture', 'm0000');
    expect([rows, drawn.length]).toEqual([1000, 33]);
    const gate = drawn.find((one) => one.node.id === GATE);
    expect(gate?.row).toBe(915);
    expect(drawn.some((one) => one.node.id === 'm0000'), 'what is selected').toBe(true);
  });
  it('moves in the order in which everything stands', () => {
    const { placed } = place(grow(three, below, wanted({ open: ['b'] }), 'me'), 'picture');
    const walk = (from: string, ...keys: string[]) => keys.reduce((at, key) => moved(placed, at, key) ?? at, from);
    expect(walk(GATE, 'ArrowDown', 'j')).toBe('b');
    expect(walk('b', 'ArrowRight', 'ArrowLeft')).toBe('b');
    expect([walk('a', 'ArrowUp', 'k'), walk('c', 'ArrowDown'), walk('a', 'End'), walk('c', 'Home')]).toEqual([GATE, 'c', 'c', GATE]);
    expect(moved(placed, 'a', 'x')).toBeNull();
  });
});
