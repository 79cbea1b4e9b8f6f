import { expect, test } from 'vitest';
import { lines, texts, words } from '../src/difference';
import { type Entry, histogram, joined, relatives, rowsOf, spans, told, HELD, look, merged, newest } from '../src/entry';
import { meant } from '../src/search';

const of = (seq: number, event: string, more: Partial<Entry> = {}): Entry => ({ chain: 1, seq, time: 1000 + seq * 10, event, ...more });

test('a wait and a call lie in time as they were, whatever order they come in', () => {
  const asked = of(1, 'approval_asked', { approval: 'a', route: 'disk.wipe', principal: 'ci' });
  const decided = of(2, 'approval_decided', { approval: 'a', outcome: 'released', principal: 'Anna' });
  const intended = of(3, 'intended', { call: 'c', approval: 'a', route: 'disk.wipe' });
  const ended = of(5, 'ended', { call: 'c', outcome: 'done', took_us: 19 });
  const found = spans([ended, decided, intended, asked]);
  expect(found.map(({ what, from, to, isOpen, says }) => [what, from, to, isOpen, says])).toEqual([
    ['somebody is asked about disk.wipe', 1010, 1020, false, 'released, by Anna'],
    ['disk.wipe', 1030, 1050, false, 'done'],
  ]);
});

test('what happened is told with how it ended, and no word twice', () => {
  const entries = [of(1, 'called', { outcome: 'done' }), of(2, 'refused', { outcome: 'refused: approval_used' }), of(3, 'started'), of(4, 'approval_decided', { outcome: 'denied' })];
  expect(entries.map(told)).toEqual(['called: done', 'refused: approval_used', 'the gate began', 'decided: denied']);
});

test('what did not end is open, and a call in one entry began before it', () => {
  const [open, quick] = spans([of(1, 'intended', { call: 'c', route: 'a.b' }), of(9, 'called', { call: 'd', route: 'a.c', outcome: 'tool_error', took_us: 40 })]);
  expect([open?.isOpen, open?.state, quick?.from, quick?.to, quick?.state]).toEqual([true, 'starting', 1050, 1090, 'failed']);
});

test('what belongs together is asked for, and kept once', () => {
  expect(relatives(of(1, 'called', { call: 'c', approval: 'a b', trace: 't' }))).toEqual(['trace=t', 'id=a%20b', 'id=c']);
  expect(joined([of(1, 'called'), of(2, 'called')], [of(2, 'called'), of(3, 'called')]).map((entry) => entry.seq)).toEqual([1, 2, 3]);
});

test('word by word, nothing of either text is lost', () => {
  const pairs: [string, string][] = [['reads a file', 'reads any file now'], ['', 'a'], ['a b c', 'c b a'], ['same  text\n here', 'same  text\n here']];
  for (const [before, after] of pairs) {
    const found = words(before, after);
    const of = (other: string): string => found.filter((part) => part.is !== other).map((part) => part.text).join('');
    expect([of('new'), of('gone')]).toEqual([before, after]);
  }
  expect(words('reads a file', 'reads any file')).toEqual([{ is: 'same', text: 'reads ' }, { is: 'gone', text: 'a' }, { is: 'new', text: 'any' }, { is: 'same', text: ' file' }]);
});

test('line by line, nothing of either text is lost, and each line has its number', () => {
  const pairs: [string, string][] = [['a\nb\nc', 'a\nx\nc'], ['', 'a'], ['a\nb', 'b\na'], ['same\n', 'same\n'], [Array(900).fill('x').join('\n'), Array(900).fill('y').join('\n')]];
  for (const [before, after] of pairs) {
    const found = lines(before, after);
    const of = (other: string): string => found.filter((line) => line.is !== other).map((line) => line.text).join('\n');
    expect([of('new'), of('gone')]).toEqual([before, after]);
    found.forEach((line) => expect((line.is === 'gone' ? before : after).split('\n')[line.at - 1]).toBe(line.text));
  }
  expect(lines('a\nb\nc', 'a\nx\nc').map(({ is, at }) => [is, at])).toEqual([['same', 1], ['gone', 2], ['new', 2], ['same', 3]]);
});

test('texts of several lines are found among the values of a call', () => {
  expect(texts('{"path":"a.md","body":{"text":"x\\ny"},"said":"\\\\n"}')).toEqual([['body.text', 'x\ny']]);
});

test('a call is one line of the record, and refusals of one kind are one', () => {
  const refused = (seq: number, more: Partial<Entry> = {}): Entry => of(seq, 'refused', { principal: 'ci', route: 'a.b', outcome: 'refused: budget', ...more });
  const rows = rowsOf([of(9, 'ended', { call: 'c', outcome: 'done' }), refused(8), refused(7, { count: 20 }), refused(6, { principal: 'ann' }), of(5, 'intended', { call: 'open', route: 'x.y' }), of(4, 'intended', { call: 'c', route: 'disk.wipe' })]);
  expect(rows.map((row) => [row.entry.seq, row.count, row.begun?.route])).toEqual([[9, 1, 'disk.wipe'], [8, 21, undefined], [6, 1, undefined], [5, 1, undefined]]);
});

test('a histogram holds every call once', () => {
  const rows = rowsOf([of(90, 'called', { outcome: 'tool_error' }), of(50, 'refused', { outcome: 'refused: x', count: 3 }), of(10, 'called', { outcome: 'done' }), of(1, 'started')]);
  const bars = histogram(rows, 4);
  const sum = (all: number[]): number => all.reduce((one, other) => one + other, 0);
  expect([sum(bars.good), sum(bars.bad), sum(bars.refused), bars.times.length]).toEqual([1, 1, 3, 4]);
  expect(histogram([], 4).times).toEqual([]);
});

test('a refusal looks the same everywhere, and a server that was away is an error', () => {
  expect([of(1, 'refused', { outcome: 'refused: budget' }), of(1, 'refused', { outcome: 'refused: subserver_unreachable' })].map(look)).toEqual(['degraded', 'failed']);
});

test('a histogram takes as many rows as there are', () => {
  const rows = Array.from({ length: 200_000 }, (_, seq) => ({ entry: of(seq, 'called', { outcome: 'done' }), count: 1 }));
  expect(histogram(rows, 4).good.reduce((sum, one) => sum + one, 0)).toBe(200_000);
});

test('a followed list has no hole and a bound', () => {
  const list = (from: number, to: number): Entry[] => Array.from({ length: from - to }, (_, i) => of(from - i, 'called'));
  const same = list(10, 0);
  expect(newest(list(10, 8), same, 2).entries).toBe(same);
  expect(newest(list(12, 8), list(10, 0), 4)).toMatchObject({ isCut: false, isNew: false, entries: { length: 12 } });
  expect(newest(list(30, 26), list(10, 0), 4)).toMatchObject({ isCut: true, isNew: true, entries: { length: 4 } });
  expect(newest(list(HELD + 2, HELD), list(HELD, 0), 4)).toMatchObject({ isCut: true, isNew: false, entries: { length: HELD } });
});

test('pages of several searches are one list, as far as each reaches', () => {
  expect(merged([[of(9, 'called'), of(7, 'called')], [of(8, 'called'), of(2, 'called')], [of(1, 'called')]], 2).map((entry) => entry.seq)).toEqual([9, 8, 7]);
});

test('an address may name a search', () => {
  expect([meant('who:ci')?.principal, meant('outcome:tool_error')?.outcome, meant('tool:a.b')?.route, meant('1/2'), meant('trace:ab')]).toEqual(['ci', 'tool_error', 'a.b', null, null]);
});
