// The keyboard: single keys and sequences like `g t`. What they do is said where they are bound, and shown by `?`.

export interface Binding {
  keys: string;
  does: string;
  run: () => void;
}

/** How long the second key of a sequence may take. */
const PATIENCE_MS = 1200;

/** Finds what a key means after those before it. */
export class Keyboard {
  #before = '';
  #at = 0;

  constructor(readonly bindings: () => readonly Binding[]) {}

  /** The binding that `key` completes. */
  press(key: string, now: number): Binding | undefined {
    const before = now - this.#at <= PATIENCE_MS ? this.#before : '';
    const sequence = before ? `${before} ${key}` : key;
    const all = this.bindings();
    const found = all.find((b) => b.keys === sequence) ?? all.find((b) => b.keys === key);
    const begins = !found && all.some((b) => b.keys.startsWith(`${key} `));
    this.#before = begins ? key : '';
    this.#at = now;
    return found;
  }
}

/** Whether what is typed belongs to a field. */
export function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}
