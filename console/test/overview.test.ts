import { describe, expect, it } from 'vitest';
import { pinned } from '../src/approvals';
import { answered, defined, listed, written } from '../src/offers';
import { calm, concerns, outcomeState, standing } from '../src/overview';
import { tone } from '../src/places';
import { parse } from '../src/route';
import { type Call, health } from '../src/traffic';
import { mount } from './made';

const waits = (id: string) => ({ id, tool: `t.${id}`, caller: 'ci', expires: 100 });
const call = (over: Partial<Call>): Call => ({ call: 'c', began: 0, caller: '', server: '', route: '', outcome: 'done', failed: false, refused: false, took_us: 0, ...over });

describe('the overview', () => {
  it('counts a server that is being started as not ready', () => {
    expect(standing([mount('a'), mount('b', { state: 'starting' })])).toEqual({ value: '1 / 2', more: '1 starting', state: 'starting' });
    expect(standing([mount('a', { state: 'failed' }), mount('b', { state: 'starting' })])).toEqual({ value: '0 / 2', more: '1 in trouble, 1 starting', state: 'failed' });
    expect(standing([mount('a')])).toEqual({ value: '1 / 1', more: '1 tool, none in trouble', state: 'ready' });
  });
  it('says of a guest no more than the guest is shown', () => {
    expect(calm([mount('a')], false)).toBe('Every server that you may use answers.');
    expect(calm([mount('a', { state: 'starting' })], true)).toBe('1 server is being started. No server has failed.');
  });
  it('hides no failed server behind calls that wait, and no such call behind servers', () => {
    const bad = (name: string) => mount(name, { state: 'failed' });
    const many = concerns([bad('x')], 0, Array.from({ length: 40 }, (_, i) => waits(String(i))), 0).slice(0, 6).map((one) => one.what);
    expect(many).toEqual(['x', 't.0', 't.1', '38 more calls']);
    const servers = Array.from({ length: 40 }, (_, i) => bad(`s${i}`));
    const first = concerns(servers, 0, [waits('a')], 0).slice(0, 6).map((one) => one.what);
    expect([first.includes('t.a'), first[0]?.startsWith('s')]).toEqual([true, true]);
  });
  it('judges a share of errors as the topology does', () => {
    for (const [calls, failed, state] of [[0, 0, 'ready'], [1000, 1, 'ready'], [100, 2, 'degraded'], [100, 5, 'failed']] as const) {
      expect(health(calls, failed)).toBe(state);
      expect(tone(calls, failed) === 'many').toBe(state === 'failed');
    }
  });
  it('shows held, refused and failed calls apart', () => {
    expect([call({ outcome: 'held' }), call({ outcome: 'refused', refused: true }), call({ failed: true }), call({})].map(outcomeState)).toEqual(['starting', 'degraded', 'failed', 'ready']);
  });
});

describe('a call that nobody chose', () => {
  it('is not swapped for another until somebody moves on', () => {
    expect(pinned('', '', 'a')).toBe('a');
    expect(pinned('', 'a', 'b')).toBe('a');
    expect(pinned('b', 'a', 'c')).toBe('');
    expect(pinned('', '', '')).toBe('');
  });
});

describe('addresses', () => {
  it('may be malformed', () => {
    expect(parse('#/tools/%E0%A4%A')).toEqual({ view: 'tools', what: '%E0%A4%A' });
  });
});

describe('offers', () => {
  const body = '{"prompts":[{"server":"s","name":"s.a","definition":{"name" : "a","arguments":[null,{"name":"x","required":true}],"n":1.0}},null],"resources":[{"server":"s","uri":"u","template":true,"definition":{"description":[1]}},{"server":"s","uri":"v"}],"left_out":0}';
  it('are read though a server writes anything', () => {
    const found = listed(answered(body), '');
    expect(found.map((one) => one.kind)).toEqual(['prompt', 'template', 'resource']);
    expect(found[0]?.definition.arguments).toEqual([{ name: 'x', description: '', required: true }]);
    expect(defined({ arguments: 7, description: {} })).toMatchObject({ arguments: [], description: '' });
    expect(listed(answered('{}'), '')).toEqual([]);
  });
  it('are shown as they are written', () => {
    expect(written(body, ['prompts', 0])).toBe('{"name" : "a","arguments":[null,{"name":"x","required":true}],"n":1.0}');
    expect([written(body, ['resources', 0]), written(body, ['resources', 1])]).toEqual(['{"description":[1]}', null]);
  });
});
