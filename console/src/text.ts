// Times, counts and sizes as people read them.

export function duration(seconds: number): string {
  const s = Math.max(0, Math.round(seconds));
  if (s < 60) return `${s}s`;
  if (s < 3600) return `${Math.floor(s / 60)}m${s % 60 && s < 600 ? ` ${s % 60}s` : ''}`;
  if (s < 86_400) return `${Math.floor(s / 3600)}h${s % 3600 >= 60 && s < 36_000 ? ` ${Math.floor((s % 3600) / 60)}m` : ''}`;
  return `${Math.floor(s / 86_400)}d`;
}

export function counted(count: number, noun: string): string {
  return `${short(count)} ${noun}${count === 1 ? '' : 's'}`;
}

export function short(count: number): string {
  if (count < 10_000) return String(count);
  return count < 1_000_000 ? `${Math.round(count / 1000)}k` : `${(count / 1_000_000).toFixed(1)}M`;
}

export function millis(ms: number): string {
  if (ms < 1) return `${Math.round(ms * 1000)} µs`;
  if (ms < 10) return `${ms.toFixed(1)} ms`;
  return ms < 10_000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}

/** Microseconds since 1970 as a time of day with what is behind the second, and the day where it is another one. */
export function instant(micros: number, now: number): string {
  const [seconds, rest] = [Math.floor(micros / 1e6), Math.floor((micros % 1e6) / 1000)];
  return `${clock(seconds, now)}.${String(rest).padStart(3, '0')}`;
}

/** The time of day, and the day where it is another one. */
export function clock(seconds: number, now: number): string {
  const at = new Date(seconds * 1000);
  const time = at.toLocaleTimeString(undefined, { hour12: false });
  return new Date(now * 1000).toDateString() === at.toDateString() ? time : `${at.toLocaleDateString()} ${time}`;
}
