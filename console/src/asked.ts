// What a view asks of the gate for as long as it is shown, where the gate tells nobody by itself.
import { useCallback, useEffect, useState } from 'preact/hooks';
import { asText } from './api';

export interface Asked<T> {
  value: T | null;
  why: string | null;
  again: () => void;
}

/** What `path` answers (an empty one is not asked); read by `read`, which stays the same; asked again every so many seconds while somebody looks, and whenever `again` is called. */
export function useAsked<T>(path: string, every = 0, read: (text: string) => T = (text) => JSON.parse(text) as T): Asked<T> {
  const [found, set] = useState<{ of: string; value: T | null; why: string | null }>({ of: path, value: null, why: null });
  const again = useCallback(() => {
    if (path === '') return;
    asText('GET', path).then(read).then(
      (value) => set({ of: path, value, why: null }),
      (error: Error) => set((old) => ({ of: path, value: old.of === path ? old.value : null, why: error.message })),
    );
  }, [path]);
  useEffect(() => {
    again();
    if (every === 0) return;
    const timer = setInterval(() => document.visibilityState === 'visible' && again(), every * 1000);
    return () => clearInterval(timer);
  }, [again, every]);
  // What was asked before is no answer to this.
  return found.of === path ? { value: found.value, why: found.why, again } : { value: null, why: null, again };
}
