// What is other in one call's arguments than in another's, value by value. Both are JSON; nothing is left out.

export interface Difference {
  path: string;
  before?: string;
  after?: string;
}

/** Every single value of a JSON text by its path, as JSON. */
export function flat(json: string): Map<string, string> {
  const found = new Map<string, string>();
  const visit = (value: unknown, path: string): void => {
    if (value !== null && typeof value === 'object' && Object.keys(value).length > 0) {
      for (const [key, inner] of Object.entries(value)) visit(inner, Array.isArray(value) ? `${path}[${key}]` : path ? `${path}.${key}` : key);
    } else found.set(path, JSON.stringify(value));
  };
  visit(JSON.parse(json), '');
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
  // What JavaScript takes for the same, numbers of many digits for instance, is not said to be.
  return found.length === 0 && before !== after ? [{ path: '', before, after }] : found;
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
