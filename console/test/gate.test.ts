import { describe, expect, it } from 'vitest';
import { applied } from '../src/gate';
import { mount, status } from './made';

const change = { mounts: [], gone: [], lists: false, sessions: 2 };

describe('a change', () => {
  it('puts news where the old was, what is new in its order, and takes away what is gone', () => {
    const old = status([mount('b'), mount('d'), mount('f')]);
    const news = applied(old, { ...change, mounts: [mount('d', { state: 'failed' }), mount('c')], gone: ['f'] });
    expect(news.mounts.map((m) => `${m.name} ${m.state}`)).toEqual(['b ready', 'c ready', 'd failed']);
    expect([news.sessions, old.mounts.length]).toEqual([2, 3]);
  });
  it('forgets the parents of a gate that joins nobody any more', () => {
    const joined = { segment: 'x', withheld: 0, parents: [] };
    expect(applied(status([], { joined }), change).joined).toBeUndefined();
    expect(applied(status([]), { ...change, joined }).joined).toEqual(joined);
  });
});
