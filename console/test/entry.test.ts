import { expect, test } from 'vitest';
import { words } from '../src/difference';
import { type Entry, joined, relatives, spans, told } from '../src/entry';

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
