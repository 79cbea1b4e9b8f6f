// A value that views follow. Knows nothing of what it holds.
import { useEffect, useState } from 'preact/hooks';

export class Store<T> {
  #value: T;
  #listeners = new Set<() => void>();

  constructor(value: T) {
    this.#value = value;
  }

  get value(): T {
    return this.#value;
  }

  set(value: T): void {
    if (Object.is(value, this.#value)) return;
    this.#value = value;
    for (const listener of this.#listeners) listener();
  }

  follow(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }
}

/** The value now, and again whenever it is another one. */
export function useStore<T>(store: Store<T>): T {
  const [value, set] = useState(store.value);
  useEffect(() => {
    set(() => store.value);
    return store.follow(() => set(() => store.value));
  }, [store]);
  return value;
}

const seconds = new Store(Math.floor(Date.now() / 1000));
setInterval(() => seconds.set(Math.floor(Date.now() / 1000)), 1000);

/** The time in seconds since 1970, and again each second. */
export function useNow(): number {
  return useStore(seconds);
}
