// What is other in one call's arguments than in another's, value by value. Both are JSON; nothing is left out.
import { pieces } from './json';

export interface Difference {
  path: string;
  before?: string;
  after?: string;
}

/** A step of a path as people read it, in quotes where it would be taken for two. */
function stepped(path: string, key: string | number): string {
  if (typeof key === 'number') return `${path}[${key}]`;
  if (!/^[^.[\]"\s]+$/.test(key)) return `${path}[${JSON.stringify(key)}]`;
  return path === '' ? key : `${path}.${key}`;
}

/** An object or a list that is being read: where it stands, and the key or the number of its next value. */
interface Level {
  path: string;
  next: string | number;
  isEmpty: boolean;
}

/** Every single value of a JSON text by its path, as JSON. Numbers keep their digits; no two values share a path. */
export function flat(json: string): Map<string, string> {
  JSON.parse(json);
  const found = new Map<string, string>();
  const levels: Level[] = [];
  const here = (): string => {
    const level = levels.at(-1);
    return level ? stepped(level.path, level.next) : '';
  };
  const keep = (path: string, value: string): void => {
    let free = path;
    for (let again = 2; found.has(free); again += 1) free = `${path} (${again})`;
    found.set(free, value);
  };
  const mark = (c: string): void => {
    const level = levels.at(-1);
    if (c === '{' || c === '[') {
      const path = here();
      if (level) level.isEmpty = false;
      levels.push({ path, next: c === '[' ? 0 : '', isEmpty: true });
    } else if (c === ',' && typeof level?.next === 'number') level.next += 1;
    else if (level && (c === '}' || c === ']')) {
      levels.pop();
      if (level.isEmpty) keep(level.path, c === '}' ? '{}' : '[]');
    }
  };
  for (const { kind, text } of pieces(json)) {
    const level = levels.at(-1);
    if (kind === 'mark') [...text].forEach(mark);
    else if (kind === 'key' && level) level.next = JSON.parse(text) as string;
    else {
      if (level) level.isEmpty = false;
      keep(here(), kind === 'text' ? JSON.stringify(JSON.parse(text)) : text);
    }
  }
  return found;
}

export function differences(before: string, after: string): Difference[] {
  const [old, now] = [flat(before), flat(after)];
  const paths = [...new Set([...now.keys(), ...old.keys()])];
  const found = paths.flatMap((path) => {
    const [was, is] = [old.get(path), now.get(path)];
    if (was === is) return [];
    return [{ path, ...(was === undefined ? {} : { before: was }), ...(is === undefined ? {} : { after: is }) }];
  });
  // Texts of the same values, with other escapes for instance, are not said to be the same.
  return found.length === 0 && before !== after ? [{ path: '', before, after }] : found;
}

export interface Words {
  is: 'same' | 'gone' | 'new';
  text: string;
}

/** Texts of more words than this are not compared word by word. */
const MOST_WORDS = 600;

/** What became of a text, word by word: all of the one are those that stayed and those that are gone, all of the other those that stayed and new ones. */
export function words(before: string, after: string): Words[] {
  const [old, now] = [before, after].map((text) => text.split(/(?<=\S)(?=\s)|(?<=\s)(?=\S)/)) as [string[], string[]];
  if (old.length > MOST_WORDS || now.length > MOST_WORDS) return [{ is: 'gone', text: before }, { is: 'new', text: after }];
  const found: Words[] = [];
  for (const [is, text] of kept(old, now)) {
    const last = found.at(-1);
    if (last?.is === is) last.text += text;
    else found.push({ is, text });
  }
  return found;
}

/** Characters that can not be seen, or that change how others are seen, and what stands for them here. */
export function visible(text: string): { text: string; is: boolean }[] {
  const parts = text.split(/([\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cn}\u115f\u1160\u3164\uffa0])/u);
  return parts.flatMap((part, i): { text: string; is: boolean }[] => {
    if (part === '') return [];
    if (i % 2 === 0 || part === '\n') return [{ text: part, is: true }];
    return [{ text: `U+${(part.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`, is: false }];
  });
}

/** Texts of several lines among the values of a JSON text, by their paths. */
export function texts(json: string): [string, string][] {
  return [...flat(json)].flatMap(([path, value]): [string, string][] => {
    if (!value.startsWith('"') || !value.includes('\\n')) return [];
    const text = JSON.parse(value) as string;
    return text.includes('\n') ? [[path, text]] : [];
  });
}

/** Texts that differ in more lines than this are not compared line by line. */
const MOST_LINES = 600;

/** What became of a text, line by line; `at` is the number of the line where it stands now, or stood. */
export function lines(before: string, after: string): { is: Words['is']; text: string; at: number }[] {
  const [old, now] = [before.split('\n'), after.split('\n')];
  let [head, tail] = [0, 0];
  while (head < Math.min(old.length, now.length) && old[head] === now[head]) head += 1;
  while (tail < Math.min(old.length, now.length) - head && old[old.length - 1 - tail] === now[now.length - 1 - tail]) tail += 1;
  const [gone, come] = [old.slice(head, old.length - tail), now.slice(head, now.length - tail)];
  const found: { is: Words['is']; text: string; at: number }[] = now.slice(0, head).map((text, i) => ({ is: 'same', text, at: i + 1 }));
  let [i, j] = [head, head];
  for (const [is, text] of middle(gone, come)) {
    found.push({ is, text, at: (is === 'gone' ? i : j) + 1 });
    if (is !== 'new') i += 1;
    if (is !== 'gone') j += 1;
  }
  found.push(...now.slice(now.length - tail).map((text, k): { is: Words['is']; text: string; at: number } => ({ is: 'same', text, at: now.length - tail + k + 1 })));
  return found;
}

/** The lines between what both texts begin and end with. Where there are too many, the old ones are gone and the new ones new. */
function middle(old: string[], now: string[]): [Words['is'], string][] {
  if (old.length <= MOST_LINES && now.length <= MOST_LINES) return kept(old, now);
  return [...old.map((text): [Words['is'], string] => ['gone', text]), ...now.map((text): [Words['is'], string] => ['new', text])];
}

/** What became of each piece, where as many as possible stayed. */
function kept(old: string[], now: string[]): [Words['is'], string][] {
  // How many pieces the rests from here on have in common, in their order.
  const rest = Array.from({ length: old.length + 1 }, () => new Uint16Array(now.length + 1));
  const at = (i: number, j: number): number => rest[i]?.[j] ?? 0;
  for (let i = old.length - 1; i >= 0; i -= 1) {
    for (let j = now.length - 1; j >= 0; j -= 1) (rest[i] as Uint16Array)[j] = old[i] === now[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
  }
  const found: [Words['is'], string][] = [];
  let [i, j] = [0, 0];
  while (i < old.length || j < now.length) {
    if (i < old.length && j < now.length && old[i] === now[j]) {
      found.push(['same', old[i] as string]);
      i += 1;
      j += 1;
    } else if (j >= now.length || (i < old.length && at(i + 1, j) >= at(i, j + 1))) found.push(['gone', old[i++] as string]);
    else found.push(['new', now[j++] as string]);
  }
  return found;
}
