import { describe, expect, it } from 'vitest';
import { type Draft, flaws, namedAt, toolsOf, written } from '../src/draft';
import { Participant } from '../src/participant';

const present = new Map([['files', []]]);
const draft = (over: Partial<Draft> = {}): Draft => ({ to: 'files', method: 'tools/call', name: 'clean', text: '{}', ...over });
const said = (kind: string, payload: object, over: object = {}): string => JSON.stringify({ protocol: 'mcpx/v0.1', id: '1', from: 'bot', kind, payload, ...over });

/** In a room, with what it may send. */
function inside(capabilities: string[]): Participant {
  let given = 0;
  const me = new Participant(() => `m${(given += 1)}`);
  me.hear(said('system/welcome', { you: { id: 'me', capabilities }, participants: [] }, { from: 'system:gateway' }), 0);
  return me;
}

describe('a draft', () => {
  it('says of each part what is wrong with it', () => {
    expect(flaws(draft(), present)).toEqual({});
    expect(flaws(draft({ to: '', text: ' ' }), present)).toEqual({});
    for (const [over, part, told] of [
      [{ to: 'gone' }, 'to', 'not here'],
      [{ name: ' ' }, 'name', 'name a tool'],
      [{ name: 'a\u0007' }, 'name', 'can not be read'],
      [{ method: '' }, 'method', 'resources/read'],
      [{ method: 'tools/call:rm' }, 'method', 'no colon'],
      [{ method: 'a b' }, 'method', 'no blank'],
      [{ text: '{' }, 'text', 'JSON object'],
      [{ text: '[1]' }, 'text', 'JSON object'],
      [{ text: '{"a":1,"\\u0061":2}' }, 'text', 'twice'],
    ] as const) {
      const found = flaws(draft(over), present);
      expect([Object.keys(found), found[part]?.includes(told)], JSON.stringify(over)).toEqual([[part], true]);
    }
  });

  it('goes out with every digit that was written', () => {
    expect(written(draft({ text: ' {"n": 12345678901234567890, "f":1.0}\n' }))).toEqual({ method: 'tools/call', params: '{"name":"clean","arguments":{"n": 12345678901234567890, "f":1.0}}' });
    expect(written(draft({ text: '' })).params).toBe('{"name":"clean","arguments":{}}');
    expect(written(draft({ method: 'resources/read', text: '{"uri":"a:b"}' }))).toEqual({ method: 'resources/read', params: '{"uri":"a:b"}' });
    expect(written(draft({ method: 'tools/list', text: '' }))).toEqual({ method: 'tools/list' });
  });
});

describe('what is proposed', () => {
  it('has a kind that says what its payload does', () => {
    const me = inside(['mcp/proposal:*', 'mcp/request:tools/list']);
    const kinds = [
      me.propose(['files'], 'tools/call', '{"name":"a:b","arguments":{}}'),
      me.propose([], 'resources/read', '{"uri":"file:///a:b"}'),
      me.propose([], 'tools/list', undefined),
      me.request('files', 'tools/list'),
    ].map((text) => JSON.parse(text!) as { kind: string; to?: string[]; payload: unknown });
    expect(kinds.map(({ kind, to }) => [kind, to])).toEqual([
      ['mcp/proposal:tools/call:a:b', ['files']],
      ['mcp/proposal:resources/read:file:///a:b', undefined],
      ['mcp/proposal:tools/list', undefined],
      ['mcp/request:tools/list', ['files']],
    ]);
    expect(kinds[3]!.payload).toEqual({ jsonrpc: '2.0', id: 'm4', method: 'tools/list' });
    expect(inside(['chat']).propose([], 'tools/list', undefined)).toBeNull();
  });

  it('is taken back by whoever proposed it, while it waits', () => {
    const me = inside(['mcp/*']);
    me.hear(said('mcp/proposal:tools/call:x', { method: 'tools/call', params: { name: 'x' } }, { id: 'p', from: 'me' }), 0);
    me.hear(said('mcp/proposal:tools/call:x', { method: 'tools/call', params: { name: 'x' } }, { id: 'q' }), 0);
    const [own, other] = me.threads.all;
    expect(me.withdraw(other!)).toBeNull();
    const sent = me.withdraw(own!)!;
    expect(JSON.parse(sent)).toMatchObject({ kind: 'mcp/withdraw:tools/call:x', correlation_id: 'p' });
    me.hear(sent, 0);
    expect([own!.state, me.withdraw(own!)]).toEqual(['withdrawn', null]);
  });
});

describe('tools', () => {
  it('are those that somebody has last said to have, and those that were named', () => {
    const me = inside(['mcp/*']);
    const list = (id: string, tools: object[]): void => {
      me.hear(said('mcp/request:tools/list', { jsonrpc: '2.0', id, method: 'tools/list' }, { id, from: 'me', to: ['files'] }), 0);
      me.hear(said('mcp/response:tools/list', { jsonrpc: '2.0', id, result: { tools } }, { id: `${id}-a`, from: 'files', correlation_id: id }), 0);
    };
    expect(toolsOf(me.threads.all, 'files')).toBeNull();
    list('1', [{ name: 'old' }]);
    list('2', [{ name: 'clean' }, { odd: true }]);
    expect([toolsOf(me.threads.all, 'files')?.map(({ name }) => name), toolsOf(me.threads.all, 'bot')]).toEqual([['clean'], null]);
    me.hear(said('mcp/proposal:tools/call:wipe', { method: 'tools/call', params: { name: 'wipe' } }, { id: '3', to: ['disk'] }), 0);
    expect([namedAt(me.threads.all, 'disk'), namedAt(me.threads.all, ''), namedAt(me.threads.all, 'files')]).toEqual([['wipe'], ['wipe'], []]);
  });
});
