// JSON for people to read: cut into pieces that can be told apart. Keeps every character.

export type Piece = { kind: 'key' | 'text' | 'number' | 'word' | 'mark'; text: string };

const TOKEN = /("(?:[^"\\]|\\.)*")(\s*:)?|(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|(true|false|null)/g;

export function pieces(json: string): Piece[] {
  const found: Piece[] = [];
  let end = 0;
  for (const match of json.matchAll(TOKEN)) {
    if (match.index > end) found.push({ kind: 'mark', text: json.slice(end, match.index) });
    const [, text, colon, number] = match;
    if (text !== undefined) {
      found.push({ kind: colon === undefined ? 'text' : 'key', text });
      if (colon !== undefined) found.push({ kind: 'mark', text: colon });
    } else found.push({ kind: number === undefined ? 'word' : 'number', text: match[0] });
    end = match.index + match[0].length;
  }
  if (end < json.length) found.push({ kind: 'mark', text: json.slice(end) });
  return found;
}

/** With line ends and indents; as it came where it is no JSON. Numbers keep their digits. */
export function indented(json: string): string {
  let depth = 0;
  let out = '';
  for (const { kind, text } of pieces(json)) {
    if (kind !== 'mark') {
      out += text;
      continue;
    }
    for (const c of text) {
      const line = (by: number): string => `\n${'  '.repeat(Math.max(0, (depth += by)))}`;
      if (c === '{' || c === '[') out += c + line(1);
      else if (c === '}' || c === ']') out = /[{[]\s*$/.test(out) ? out.trimEnd() + c + (depth--, '') : out + line(-1) + c;
      else if (c === ',') out += c + line(0);
      else if (c === ':') out += ': ';
      else if (!/\s/.test(c)) out += c;
    }
  }
  return out;
}

/** The elements of a list as they are written. Of other JSON, none. */
export function elements(json: string): string[] {
  const found: string[] = [];
  let depth = 0;
  let value = '';
  for (const { kind, text } of pieces(json)) {
    if (kind !== 'mark') value += text;
    else {
      for (const c of text) {
        if (c === '{' || c === '[') depth += 1;
        else if (c === '}' || c === ']') depth -= 1;
        if (depth === 1 && c === '[') value = '';
        else if (depth === 0 || (depth === 1 && c === ',')) {
          if (json.trimStart().startsWith('[') && value.trim() !== '') found.push(value.trim());
          value = '';
        } else value += c;
      }
    }
  }
  return found;
}

/** The members of an object as they are written, unparsed: numbers keep their digits, texts their escapes. Of other JSON, none. */
export function members(json: string): Map<string, string> {
  const found = new Map<string, string>();
  let depth = 0;
  let key: string | null = null;
  let value = '';
  for (const { kind, text } of pieces(json)) {
    if (kind === 'key' && depth === 1) [key, value] = [JSON.parse(text) as string, ''];
    else if (kind !== 'mark') value += text;
    else {
      for (const c of text) {
        if (c === '{' || c === '[') depth += 1;
        else if (c === '}' || c === ']') depth -= 1;
        if (key !== null && (depth === 0 || (depth === 1 && c === ','))) {
          found.set(key, value.replace(/^\s*:/, '').trim());
          key = null;
        } else value += c;
      }
    }
  }
  return found;
}
