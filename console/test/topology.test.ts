import { describe, expect, it } from 'vitest';
import { GATE, PARENT, type Picture, moved, ordered, picture, tone, width } from '../src/places';
import type { BelowNode } from '../src/shapes';
import { rate, share, wider } from '../src/traffic';
import { mount, status } from './made';

const node = (path: string, degraded = false): BelowNode => ({ path, tools: 1, hops: 2, degraded });
const below = [node('b.x'), node('b.x.deep', true), node('b.y')];
const three = status([mount('a'), mount('b', { gate: true }), mount('c', { state: 'failed', error: 'no uvx' })]);
const wanted = (filter = '', states: string[] = []) => ({ filter, states: new Set(states) as never });
const named = (name: string, lately: number, failed = 0) => ({ name, calls: lately, failed, refused: 0, lately, lately_failed: failed });
const names = (of: Picture): string[] => ordered(of).map((one) => one.id);

describe('the topology', () => {
  it('puts trouble first, then gates with what is behind them, then the rest', () => {
    const seen = picture(three, below, [], wanted());
    expect(seen.groups.map((group) => group.id)).toEqual(['trouble', 'gates', 'servers']);
    expect(names(seen)).toEqual([GATE, 'c', 'b', 'b.x', 'b.x.deep', 'b.y', 'a']);
    expect(ordered(seen).map((one) => one.level)).toEqual([1, 2, 2, 3, 4, 3, 2]);
  });
  it('takes a server that is being started for no trouble', () => {
    const seen = picture(status([mount('a', { state: 'starting' }), mount('b', { state: 'failed' })]), [], [], wanted());
    expect(seen.groups.map((group) => [group.id, group.places.map((one) => one.id)])).toEqual([['trouble', ['b']], ['servers', ['a']]]);
  });
  it('puts what is in trouble behind a gate first within that gate', () => {
    expect(names(picture(three, [node('b.fine'), node('b.lost', true)], [], wanted()))).toEqual([GATE, 'c', 'b', 'b.lost', 'b.fine', 'a']);
  });
  it('orders names as people count', () => {
    expect(names(picture(status([mount('s10'), mount('s2'), mount('s1')]), [], [], wanted()))).toEqual([GATE, 's1', 's2', 's10']);
  });
  it('finds what is searched for wherever it hangs, and by what is wrong with it', () => {
    expect(names(picture(three, below, [], wanted('deep')))).toEqual([GATE, 'b', 'b.x', 'b.x.deep']);
    expect(names(picture(three, below, [], wanted('UVX')))).toEqual([GATE, 'c']);
    expect(names(picture(three, below, [], wanted('', ['degraded', 'failed'])))).toEqual([GATE, 'c', 'b', 'b.x', 'b.x.deep']);
    expect(names(picture(three, below, [], wanted('nobody')))).toEqual([GATE]);
  });
  it('hangs the gate below the parent that it is registered with', () => {
    const parents = [{ url: 'https://one', state: 'lost' as const, since: 0 }, { url: 'https://two:7411', state: 'registered' as const, since: 0 }];
    const seen = picture(status([mount('a')], { joined: { segment: 'me', withheld: 0, parents } }), [], [], wanted());
    expect([seen.parent?.url, names(seen)]).toEqual(['https://two:7411', [PARENT, GATE, 'a']]);
  });
  it('gives a gate the calls of everything behind it', () => {
    const seen = picture(three, below, [named('b', 1), named('b.x.deep', 4, 2), named('b.y', 5)], wanted());
    const gate = seen.groups.flatMap((group) => group.places).find((one) => one.id === 'b');
    expect([gate?.calls, gate?.failed]).toEqual([10, 2]);
  });
  it('is walked through by keys', () => {
    const all = ordered(picture(three, below, [], wanted()));
    expect(['End', 'Home', 'ArrowDown', 'k'].map((key) => moved(all, 'c', key))).toEqual(['a', GATE, 'b', GATE]);
    expect([moved(all, 'b', 'ArrowRight'), moved(all, 'b.y', 'h'), moved(all, 'gone', 'j'), moved(all, 'c', 'x')]).toEqual(['b.x', 'b', GATE, null]);
  });
  it('draws a thousand times the calls wider, and errors in another colour', () => {
    expect(width(0, 1000)).toBeLessThan(width(1, 1000));
    expect(width(1, 1000)).toBeLessThan(width(1000, 1000));
    expect(width(1000, 1000)).toBeLessThan(10);
    expect([tone(0, 0), tone(1000, 1), tone(100, 3), tone(100, 5)]).toEqual(['quiet', 'busy', 'some', 'many']);
  });
});

describe('the calls of an hour', () => {
  it('are summed into wider steps, with the times of the busiest', () => {
    const steps = [{ calls: 1, failed: 0, refused: 0, p50_ms: 5, p95_ms: 9 }, { calls: 4, failed: 1, refused: 1, p50_ms: 7, p95_ms: 8 }, { calls: 0, failed: 0, refused: 0 }];
    expect(wider(steps, 2)).toEqual([{ calls: 5, failed: 1, refused: 1, p50_ms: 7, p95_ms: 8 }, { calls: 0, failed: 0, refused: 0 }]);
  });
  it('are told so that something is never nothing', () => {
    expect([share(0, 9), share(1, 5000), share(1, 30), share(1, 2), share(0, 0)]).toEqual(['0 %', '< 0.1 %', '3.3 %', '50 %', '0 %']);
    expect([rate(0, 300), rate(3, 300), rate(500, 300)]).toEqual(['0/min', '0.6/min', '100/min']);
  });
});
