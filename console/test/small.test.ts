import { describe, expect, it } from 'vitest';
import { advise } from '../src/advice';
import { command, curl, quoted, request } from '../src/copy';
import { indented, pieces } from '../src/json';
import { Keyboard } from '../src/keys';
import { parse, write } from '../src/route';
import { matching } from '../src/servers';
import type { ToolRow } from '../src/shapes';
import { EventReader, LineReader } from '../src/streams';
import { duration, millis } from '../src/text';
import { byServer, search } from '../src/tools';
import { mount } from './made';

describe('streams', () => {
  it('puts events together wherever they were cut', () => {
    const whole = 'event: snapshot\nid: 1\ndata: {"a":1}\n\n: nothing has changed\n\ndata: x\ndata: y\n\n';
    for (const size of [1, 7, 1000]) {
      const reader = new EventReader();
      const events = [];
      for (let at = 0; at < whole.length; at += size) events.push(...reader.read(whole.slice(at, at + size)));
      expect(events).toEqual([{ name: 'snapshot', data: '{"a":1}' }, { name: 'message', data: 'x\ny' }]);
    }
  });
  it('keeps a line until it ends', () => {
    const reader = new LineReader();
    expect([...reader.read('a\nb')]).toEqual(['a']);
    expect([...reader.read('c\n')]).toEqual(['bc']);
  });
});

describe('keys', () => {
  it('knows sequences, and forgets them after a while', () => {
    const ran: string[] = [];
    const bind = (keys: string) => ({ keys, does: '', run: () => void ran.push(keys) });
    const keyboard = new Keyboard(() => [bind('g t'), bind('g s'), bind('r')]);
    for (const [key, at] of [['g', 0], ['t', 100], ['t', 200], ['g', 300], ['r', 400], ['g', 500], ['s', 5000]] as const) keyboard.press(key, at)?.run();
    expect(ran).toEqual(['g t', 'r']);
  });
});

describe('json', () => {
  it('is set out without losing a character of any value', () => {
    const raw = '{"a":[1.50,{"b":"x: {y}, \\"z\\""}],"big":12345678901234567890,"e":{},"l":[]}';
    const shown = indented(raw);
    expect(shown.replaceAll(/\n\s*/g, '').replaceAll('": ', '":')).toBe(raw);
    expect(shown.split('\n').slice(0, 3)).toEqual(['{', '  "a": [', '    1.50,']);
    expect(pieces(raw).map((piece) => piece.text).join('')).toBe(raw);
  });
});

describe('copies', () => {
  it('is one word for a shell, whatever stands in it', () => {
    expect(quoted("it's $HOME `x`")).toBe("'it'\\''s $HOME `x`'");
    expect(command('a.b', '{}')).toBe('banyan call a.b');
    expect(command('a.b', '{"x":"\'"}')).toBe(`banyan call a.b '{"x":"'\\''"}'`);
  });
  it('is a request of the stateless era whose arguments stay as they were', () => {
    const text = request('a__b', '{"big":12345678901234567890}');
    expect(text).toContain('"arguments":{"big":12345678901234567890}');
    expect(JSON.parse(text).params._meta['io.modelcontextprotocol/protocolVersion']).toBe('2026-07-28');
    expect(curl('http://localhost:7411/mcp', 'a__b', '{}', false)).toContain("-H 'mcp-name: a__b'");
    expect(curl('http://x/mcp', 'a', '{}', true)).toContain('Bearer $BANYAN_TOKEN');
  });
});

describe('lists', () => {
  it('puts servers in trouble first', () => {
    const mounts = [mount('a'), mount('b', { state: 'degraded' }), mount('c', { state: 'failed', error: 'no uvx' })];
    expect(matching(mounts, '', new Set()).map((m) => m.name)).toEqual(['c', 'b', 'a']);
    expect(matching(mounts, 'uvx', new Set()).map((m) => m.name)).toEqual(['c']);
    expect(matching(mounts, '', new Set(['ready'])).map((m) => m.name)).toEqual(['a']);
  });
  it('finds tools by words that stand anywhere, names first', () => {
    const row = (dotted: string, description: string) => ({ dotted, shown: dotted, original: '', description }) as ToolRow;
    const rows = [row('notes.find', 'Finds notes by time.'), row('clock.time', 'Tells it.')];
    expect(search(rows, 'time').map((r) => r.dotted)).toEqual(['clock.time', 'notes.find']);
    expect(search(rows, 'TIME find').map((r) => r.dotted)).toEqual(['notes.find']);
  });
  it('sums tools up by server, the dearest first', () => {
    const rows = [['a.x', 5], ['b.y', 4], ['b.c.z', 4], ['c.x', 5]].map(([dotted, tokens]) => ({ dotted, tokens }) as ToolRow);
    expect(byServer(rows).map((one) => `${one.name} ${one.tools} ${one.tokens}`)).toEqual(['b 2 8', 'a 1 5', 'c 1 5']);
  });
});

describe('words', () => {
  it('says what to do about what is wrong', () => {
    const failed = (error: string, over = {}) => advise(mount('git', { state: 'failed', error, ...over }), true).steps.join(' ');
    expect(failed('`uvx` was not found in PATH: install it')).toMatch(/not installed, or not in the PATH/);
    expect(failed('it needs a sign-in: x')).toContain('`banyan auth git`');
    expect(failed('connection refused', { transport: 'http' })).toContain('check `url`');
    expect(failed('something else')).toContain('`banyan doctor`');
    expect(advise(mount('a'), true).steps).toEqual([]);
  });
  it('keeps times and addresses short', () => {
    expect([0, 59, 95, 700, 3600, 5400, 90_000].map(duration)).toEqual(['0s', '59s', '1m 35s', '11m', '1h', '1h 30m', '1d']);
    expect([0.42, 3.14, 42.4, 12_000].map(millis)).toEqual(['420 µs', '3.1 ms', '42 ms', '12.0 s']);
    expect(parse(write('tools', 'a.b/c d'))).toEqual({ view: 'tools', what: 'a.b/c d' });
    expect([parse(''), parse('#code=ab12')]).toEqual(Array(2).fill({ view: 'overview', what: '' }));
  });
});
