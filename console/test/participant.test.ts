import { describe, expect, it } from 'vitest';
import golden from '../../crates/room-proto/tests/golden.json';
import { type Envelope, Participant, Threads, check, covers, read } from '../src/participant';

const [capabilities, messages, chains] = [golden.capabilities, golden.messages, golden.chains] as [[string, string, boolean][], [string, string, string][], [string, string, string | null][]];

/** A message with a raw payload. */
function message(kind: string, payload: string, over: Record<string, unknown> = {}): string {
  const of = kind.startsWith('mcp/response') ? { correlation_id: 'c' } : {};
  const whole = JSON.stringify({ protocol: 'mcpx/v0.1', id: '1', from: 'a', kind, ...of, payload: '@', ...over });
  return whole.replace('"@"', payload);
}

/** `id from kind [> correlation] [@ to] [= name in the params]`. */
function written(line: string): Envelope {
  const [id = '', from = '', kind = '', ...rest] = line.split(' ');
  const after = (mark: string): string | undefined => (rest.includes(mark) ? rest[rest.indexOf(mark) + 1] : undefined);
  const [of, to, name] = [after('>'), after('@'), after('=')];
  const payload = name === undefined ? {} : { params: { name } };
  return { id, from, kind, to: to === undefined ? [] : [to], payload, ...(of === undefined ? {} : { of }) };
}

const welcome = message('system/welcome', '{"you":{"id":"me","capabilities":["mcp/*","chat"]},"participants":[{"id":"agent","capabilities":["chat"]}]}', { from: 'system:gateway' });
const proposal = message('mcp/proposal:tools/call:rm', '{"method":"tools/call","params":{"name":"rm","arguments":{"n":1}}}', { from: 'agent', id: 'p' });

/** One that has come in. */
function seated(): Participant {
  let count = 0;
  const participant = new Participant(() => `m${++count}`);
  participant.hear(welcome, 0);
  return participant;
}

describe('a participant', () => {
  it('knows what capabilities cover, as the gate does', () => {
    expect(capabilities.filter(([pattern, kind, covered]) => covers([pattern], kind) !== covered)).toEqual([]);
    expect(capabilities.length).toBeGreaterThan(50);
  });
  it('holds what a kind says against what the payload does, as the gate\'s own participants do', () => {
    for (const [kind, payload, expected] of messages) {
      const envelope = read(message(kind, payload));
      expect(typeof envelope === 'string' ? envelope : (check(envelope) ?? 'fine'), `${kind} ${payload}`).toBe(expected);
    }
    expect(messages.length).toBeGreaterThan(25);
  });
  it('finds what belongs together, as the gate\'s own participants do', () => {
    const threads = new Threads();
    for (const [line, expected, stands] of chains) {
      const envelope = written(line);
      expect(threads.take(envelope, 0), line).toBe(expected);
      const own = threads.all.find((thread) => [thread.request, thread.response, thread.end, thread.proposal].includes(envelope));
      expect(own?.state ?? null, line).toBe(stands);
    }
  });
  it('takes no message that is no envelope', () => {
    const sound = message('chat', '{"text":"x"}');
    expect(read(sound)).toMatchObject({ id: '1', from: 'a', to: [], kind: 'chat' });
    const wrong: Record<string, unknown>[] = [{ protocol: 'mew/v0.4' }, { id: 7 }, { from: '' }, { to: 'b' }, { to: [1] }, { kind: 'mcp/request' }, { kind: 'mcp/proposal:tools/call', correlation_id: 'c' }, { correlation_id: ['c'] }, { payload: [] }];
    for (const over of wrong) expect(read(message('chat', '{"text":"x"}', over)), JSON.stringify(over)).toBe('envelope');
    expect(read(message('mcp/response:tools/call', '{"result":{}}', { correlation_id: undefined }))).toBe('envelope');
    expect(['', '[]', 'null', '{'].map(read)).toEqual(['envelope', 'envelope', 'envelope', 'envelope']);
    expect(read(sound.replace('"from":"a"', '"from":"a","fro\\u006d":"b"'))).toBe('unreadable');
  });
  it('counts who misbehaves, and believes nothing of it', () => {
    const me = seated();
    for (const text of [welcome.replace('system:gateway', 'mallory'), proposal.replace('"name":"rm"', '"name":"ls"').replace('agent', 'mallory'), 'x']) {
      expect(me.hear(text, 0)).toHaveProperty('dropped');
    }
    expect([...me.misbehaved]).toEqual([['mallory', 2], ['', 1]]);
    expect([me.me, me.threads.all.length]).toEqual(['me', 0]);
  });
  it('approves what waits, and hears what came of it', () => {
    const me = seated();
    expect(me.hear(proposal, 0)).toMatchObject({ found: 'proposed' });
    const thread = me.threads.all[0]!;
    expect(me.approve(thread, [])).toBeNull();
    const request = me.approve(thread, ['target'])!;
    expect(JSON.parse(request)).toMatchObject({ id: 'm1', from: 'me', to: ['target'], kind: 'mcp/request:tools/call:rm', correlation_id: 'p', payload: { jsonrpc: '2.0', id: 'm1', method: 'tools/call', params: { name: 'rm', arguments: { n: 1 } } } });
    expect(me.hear(request, 1)).toMatchObject({ found: 'fulfilled' });
    expect(me.approve(thread, ['target'])).toBeNull();
    const response = message('mcp/response:tools/call:rm', '{"id":"m1","result":{}}', { id: 'r', from: 'target', correlation_id: 'm1' });
    expect(me.hear(response, 2)).toMatchObject({ found: 'answered' });
    expect([thread.state, thread.response?.from]).toEqual(['answered', 'target']);
  });
  it('rejects with a reason, and lets what nobody decides expire', () => {
    const me = seated();
    me.hear(proposal, 0);
    me.hear(proposal.replace('"id":"p"', '"id":"q"'), 1000);
    const [first, second] = me.threads.all;
    const end = me.reject(first!, 'not today')!;
    expect(JSON.parse(end)).toMatchObject({ kind: 'mcp/reject:tools/call:rm', correlation_id: 'p', payload: { reason: 'not today' } });
    expect(me.hear(end, 1000)).toMatchObject({ found: 'ended' });
    me.threads.expire(301_000);
    expect([first?.state, second?.state]).toEqual(['rejected', 'expired']);
    expect(me.reject(second!, '')).toBeNull();
  });
  it('says only what it was welcomed to say, and knows who is there', () => {
    const me = seated();
    const moved = (event: string, id: string): string => message('system/presence', JSON.stringify({ event, participant: { id, capabilities: ['chat'] } }), { from: 'system:gateway' });
    for (const [event, id] of [['join', 'bob'], ['join', 'me'], ['leave', 'agent']] as const) me.hear(moved(event, id), 0);
    expect([...me.present]).toEqual([['bob', ['chat']]]);
    expect(JSON.parse(me.chat('hello', ['bob'])!)).toMatchObject({ kind: 'chat', to: ['bob'], payload: { text: 'hello' } });
    me.hear(welcome.replace('["mcp/*","chat"]', '["mcp/proposal:*"]'), 0);
    expect(me.chat('hello')).toBeNull();
    me.hear(proposal, 0);
    expect([me.approve(me.threads.all[0]!, ['x']), me.reject(me.threads.all[0]!, '')]).toEqual([null, null]);
  });
});
