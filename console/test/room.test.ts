import { describe, expect, it } from 'vitest';
import { Attendance, MOST } from '../src/attendance';
import { meaning, remark, unsound } from '../src/capability';
import type { Approval } from '../src/approval';
import { exported } from '../src/chain';
import { heldFor } from '../src/held';
import { elements, members } from '../src/json';
import { Participant, params, ruleOf } from '../src/participant';

const said = (kind: string, payload: string, over: Record<string, unknown> = {}): string =>
  JSON.stringify({ protocol: 'mcpx/v0.1', id: '1', from: 'bot', kind, payload: '@', ...over }).replace('"@"', payload);
const welcome = (capabilities: string[]): string => said('system/welcome', JSON.stringify({ you: { id: 'me', capabilities }, participants: [] }), { from: 'system:gateway' });
const exact = '{"name":"rm","arguments":{"n":12345678901234567890,"a":"\\u200b","f":1.0}}';
const proposal = (id: string): string => said('mcp/proposal:tools/call:rm', `{"method":"tools/call","params":${exact}}`, { id });

/** In a room without a gate. */
function inside(): Attendance {
  const room = new Attendance('ops', 'me');
  room.hear(welcome(['mcp/*', 'chat']), 0);
  return room;
}
/** What is drawn, a little later. */
const drawn = (room: Attendance): Promise<Attendance['store']['value']> => new Promise((resolve) => void setTimeout(() => resolve(room.store.value), 60));

describe('an object', () => {
  it('is taken apart as it is written', () => {
    expect([...members(' { "a" : 1.0, "b":{"c":[1,{"d":"},"}]}, "e\\u0066": "x" ,"g":[] } ')]).toEqual([['a', '1.0'], ['b', '{"c":[1,{"d":"},"}]}'], ['ef', '"x"'], ['g', '[]']]);
    expect(elements(' [ {"a":[1,2]} , "x,]",-1.0,[],[ [3] ] ]')).toEqual(['{"a":[1,2]}', '"x,]"', '-1.0', '[]', '[ [3] ]']);
    expect(['[]', '{"a":[1]}', '', '{}'].map(elements)).toEqual([[], [], [], []]);
    expect([members('{}').size, members('[{"a":1}]').size, members('').size]).toEqual([0, 0, 0]);
  });
});

describe('what is approved', () => {
  it('goes out with every digit that it came with, and nothing beside it', () => {
    const me = new Participant(() => 'm1');
    me.hear(welcome(['mcp/*']), 0);
    me.hear(said('mcp/proposal:tools/call:rm', `{"jsonrpc":"2.0","id":"theirs","evil":1,"method":"tools/call","params":${exact}}`, { id: 'p' }), 0);
    const sent = me.approve(me.threads.all[0]!, ['files'])!;
    expect(sent).toContain(`"payload":{"jsonrpc":"2.0","id":"m1","method":"tools/call","params":${exact}}`);
    expect(params(me.threads.all[0]!.proposal!)).toBe(exact);
    expect(me.hear(sent, 0)).toMatchObject({ found: 'fulfilled' });
  });
});

describe('a chain', () => {
  it('is exported as the terminal does', () => {
    const me = new Participant(() => 'm1');
    me.hear(welcome(['mcp/*']), 0);
    me.hear(proposal('p'), 1000);
    expect(exported(me.threads.all[0]!)).toBe('{"state":"open","proposal":{"id":"p","ts":"1970-01-01T00:00:01Z","from":"bot","to":[],"kind":"mcp/proposal:tools/call:rm"}}');
    const rule = said('mcp/request:tools/call:rm', '{"method":"tools/call","params":{"name":"rm","_meta":{"io.banyan/rule":{"id":"rule-1","accepted_by":"ann"}}}}', { id: 'r', correlation_id: 'p', to: ['files'] });
    me.hear(rule, 2000);
    me.hear(said('mcp/response:tools/call:rm', '{"result":{"isError":true}}', { id: 's', from: 'files', correlation_id: 'r' }), 3999);
    const [thread] = me.threads.all;
    expect(JSON.parse(exported(thread!))).toMatchObject({ state: 'answered', outcome: 'failed', rule: 'rule-1', response: { ts: '1970-01-01T00:00:03Z' } });
    expect(ruleOf(thread!.request!)).toEqual({ id: 'rule-1', by: 'ann' });
    me.hear(proposal('q'), 0);
    me.hear(me.reject(me.threads.all[1]!, 'é'.repeat(600))!, 0);
    expect(JSON.parse(exported(me.threads.all[1]!)).reason).toBe('é'.repeat(500));
  });
});

describe('a proposal that the gate holds', () => {
  it('is found in the inbox by its room, its tool and what it asks for', () => {
    const me = new Participant();
    me.hear(said('mcp/proposal:tools/call:wipe', '{"method":"tools/call","params":{"name":"wipe","arguments":{"b":1,"a":{"d":[2],"c":3}}}}', { id: 'p' }), 0);
    const call = (over: object): Approval => ({ id: 'x', standing: 'pending', room: 'ops', tool: 'disk.wipe', arguments: '{"a":{"c":3,"d":[2]},"b":1}', ...over }) as Approval;
    const found = (...all: Approval[]): string | undefined => heldFor(all, 'ops', me.threads.all[0]!.proposal!)?.id;
    expect(found(call({}), call({ id: 'y' }))).toBe('y');
    for (const over of [{ room: 'lab' }, { room: undefined }, { tool: 'disk.swipe' }, { arguments: '{"b":1}' }, { standing: 'done' }]) expect(found(call(over)), JSON.stringify(over)).toBeUndefined();
  });
});

describe('being in a room', () => {
  it('keeps the latest, and counts what it does not', async () => {
    const room = inside();
    for (let i = 0; i < MOST + 20; i += 1) room.hear(said('chat', `{"text":"${i}"}`, { id: `c${i}` }), i);
    const { moments, gone } = await drawn(room);
    expect([moments.length, gone, moments.at(-1)]).toMatchObject([MOST, 20, { is: 'chat', text: String(MOST + 19) }]);
  });
  it('keeps little where messages are long, and forgets no thread that is shown', async () => {
    const room = inside();
    const long = `{"text":"${'x'.repeat(500_000)}"}`;
    for (let i = 0; i < 10; i += 1) room.hear(said('chat', long, { id: `c${i}` }), i);
    expect((await drawn(room)).moments.length).toBe(4);
    const bulky = `{"method":"tools/call","params":{"name":"rm","arguments":{"x":"${'x'.repeat(3_000_000)}"}}}`;
    for (let i = 0; i < 5; i += 1) room.hear(said('mcp/proposal:tools/call:rm', bulky, { id: `p${i}` }), i);
    const threads = (await drawn(room)).moments.filter((one) => one.is === 'thread');
    expect([threads.length, room.participant.threads.all.length]).toEqual([2, 2]);
  });
  it('says what came again and again once', async () => {
    const room = inside();
    for (let i = 0; i < 5; i += 1) room.hear(said('mcp/proposal:tools/call:ls', `{"method":"tools/call","params":${exact}}`, { id: `p${i}` }), i);
    expect((await drawn(room)).moments).toMatchObject([{ is: 'dropped', from: 'bot', why: 'context', times: 5 }]);
  });
  it('tells of what it may send since, and of what the gate refused', async () => {
    const room = inside();
    room.hear(welcome(['chat', 'x']), 1);
    room.hear(said('system/error', '{"error":"capability_violation","message":"no","attempted_kind":"mcp/request:a"}', { from: 'system:gateway' }), 2);
    expect((await drawn(room)).moments).toMatchObject([{ is: 'may', gained: ['x'], lost: ['mcp/*'] }, { is: 'refused', message: 'no', kind: 'mcp/request:a' }]);
  });
  it('hears what the room has kept from before, once and at its time', async () => {
    const room = inside();
    room.hear(said('chat', '{"text":"b"}', { id: 'b' }), 5000);
    const kept = [said('chat', '{"text":"a"}', { id: 'a' }), proposal('p'), said('chat', '{"text":"b"}', { id: 'b' }), said('system/welcome', '{}')];
    const past = `{"messages":[${kept.map((envelope, i) => `{"at":"1970-01-01T00:00:0${i + 1}.000Z","envelope":${envelope}}`).join(',')}],"more":true}`;
    room.hear(said('system/history', past, { from: 'system:gateway' }), 400_000);
    expect((await drawn(room)).moments).toMatchObject([{ is: 'chat', text: 'b' }, { is: 'past', count: 2, more: true }, { is: 'chat', text: 'a', at: 1000 }, { is: 'thread', at: 2000, thread: { state: 'expired' } }]);
    expect(room.participant.threads.all[0]?.proposal?.raw).toBe(proposal('p'));
    room.hear(said('system/history', past, { from: 'bot' }), 400_001);
    expect((await drawn(room)).moments.at(-1)).toMatchObject({ is: 'dropped', why: 'reserved' });
  });
  it('shows one thread for all of its messages, and what waits', async () => {
    const room = inside();
    room.hear(proposal('p'), 0);
    expect((await drawn(room)).open).toBe(1);
    room.hear(said('mcp/reject:tools/call:rm', '{"reason":"no"}', { id: 'e', correlation_id: 'p' }), 1);
    const { open, moments } = await drawn(room);
    expect([open, moments.length, moments[0]]).toMatchObject([0, 1, { is: 'thread', number: 1, thread: { state: 'rejected' } }]);
    room.hear(proposal('q'), 0);
    room.tick(300_000);
    expect((await drawn(room)).open).toBe(0);
    room.hear(said('mcp/response:tools/call:rm', '{"result":{}}', { id: 's', correlation_id: 'nothing' }), 1);
    expect((await drawn(room)).moments.at(-1)).toMatchObject({ is: 'odd', note: 'belongs to nothing that was seen here' });
  });
});

describe('a change of capabilities', () => {
  it('is looked at before it is made', () => {
    for (const [pattern, said] of [['', 'write'], ['system/x', 'own'], ['presence', 'own'], ['a\u0007', 'read'], ['*'.repeat(9), 'stars'], ['é'.repeat(600), 'bytes'], [' chat', 'blank']] as const) expect(unsound(pattern), pattern).toContain(said);
    expect(['chat', 'mcp/request:tools/*', '*', 'presences'].map(unsound)).toEqual([null, null, null, null]);
    expect([remark('*'), remark('mcp/*'), remark('mcp/request:*'), remark('mcp/request:tools/call:'), remark('caht')].every(Boolean)).toBe(true);
    expect([remark('chat'), remark('mcp/request:tools/call:rm')]).toEqual([null, null]);
  });
  it('says what of each kind that was seen it is about', () => {
    const means = (after: string[], kind: string): string => meaning(['chat', 'mcp/proposal:*'], after, kind);
    expect([means(['chat'], 'chat'), means(['mcp/*'], 'chat'), means(['mcp/*'], 'mcp/request:a'), means([], 'x'), means(['*'], 'system/welcome')]).toEqual(['kept', 'lost', 'gained', 'never', 'never']);
  });
});
