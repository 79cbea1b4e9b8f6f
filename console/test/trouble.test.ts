import { describe, expect, it } from 'vitest';
import { applied } from '../src/gate';
import { troubles } from '../src/trouble';
import { status } from './made';

describe('trouble of a gate', () => {
  it('is nothing where all is well', () => {
    const parents = [{ url: 'https://a/', state: 'registered' as const, since: 0 }, { url: 'https://b/', state: 'idle' as const, since: 0 }];
    expect(troubles(status([], { audit: { unrecorded: 0 }, joined: { segment: 'x', withheld: 0, parents } }), 0)).toEqual([]);
  });
  it('names the record, the configuration and the parent, each with what mends it', () => {
    const broken = { chain: 'chain-0001', since: 0, why: 'entry 3 differs' };
    const parents = [{ url: 'https://a/', state: 'unreachable' as const, since: 0, error: 'refused', hint: 'start it' }];
    const found = troubles(status([], { audit: { unrecorded: 0, broken }, not_in_force: { since: 0, error: 'line 1' }, joined: { segment: 'x', withheld: 0, parents } }), 0);
    expect(found.map(({ what }) => what.replace(/since [^:]*:\d+:\d+( [AP]M)?/, 'since T'))).toEqual([
      'The record is broken since T: entry 3 differs (chain-0001)', 'The configuration on disk is not in force since T: line 1', 'Parent https://a/ unreachable since T: refused',
    ]);
    expect(found.map(({ fix }) => fix)).toEqual([expect.stringContaining('audit verify'), expect.stringContaining('as soon as it is saved'), 'start it']);
  });
  it('goes with the change that mends it', () => {
    const change = { mounts: [], gone: [], lists: false, sessions: 0 };
    const bad = applied(status([]), { ...change, not_in_force: { since: 0 }, audit: { unrecorded: 0, failing: 'full' } });
    expect(troubles(bad, 0).length).toBe(2);
    expect(troubles(applied(bad, { ...change, audit: { unrecorded: 0 } }), 0)).toEqual([]);
  });
});
