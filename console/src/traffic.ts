// Calls of the last hour as the gate counts them, and what the views make of them. Asks for them while somebody looks.
import { useAsked } from './asked';
import { gate } from './gate';
import { tone } from './places';
import type { State } from './shapes';
import { useStore } from './store';

export interface Step {
  calls: number;
  failed: number;
  refused: number;
  p50_ms?: number;
  p95_ms?: number;
}

export interface Named {
  name: string;
  calls: number;
  failed: number;
  refused: number;
  lately: number;
  lately_failed: number;
}

export interface Call {
  call: string;
  began: number;
  caller: string;
  server: string;
  route: string;
  outcome: string;
  failed: boolean;
  refused: boolean;
  took_us: number;
}

export interface Traffic {
  step_seconds: number;
  lately_seconds: number;
  steps: Step[];
  whole: Step;
  callers: Named[];
  servers: Named[];
  tools: Named[];
  last: Call[];
}

const EVERY = 2;

/** The calls of the last hour; `null` until they are known, and for guests. */
export function useTraffic(): Traffic | null {
  const { signedIn } = useStore(gate);
  const { value } = useAsked<Traffic>(signedIn ? '/-/overview' : '', signedIn ? EVERY : 0);
  return value;
}

/** Sums steps into wider ones; times are those of the step with most calls. */
export function wider(steps: Step[], by: number): Step[] {
  const found: Step[] = [];
  for (let i = 0; i < steps.length; i += by) {
    const part = steps.slice(i, i + by);
    const sum = (of: (step: Step) => number): number => part.reduce((all, step) => all + of(step), 0);
    const busiest = part.reduce<Step | undefined>((best, step) => (step.p95_ms !== undefined && (best === undefined || step.calls > best.calls) ? step : best), undefined);
    const times = busiest ? { ...(busiest.p50_ms === undefined ? {} : { p50_ms: busiest.p50_ms }), ...(busiest.p95_ms === undefined ? {} : { p95_ms: busiest.p95_ms }) } : {};
    found.push({ calls: sum((s) => s.calls), failed: sum((s) => s.failed), refused: sum((s) => s.refused), ...times });
  }
  return found;
}

/** A share as people read it: nothing is 0 %, and something is never. */
export function share(part: number, of: number): string {
  if (part === 0 || of === 0) return '0 %';
  const percent = (100 * part) / of;
  return percent < 0.1 ? '< 0.1 %' : percent < 10 ? `${percent.toFixed(1)} %` : `${Math.round(percent)} %`;
}

/** How an hour of calls looks: one error in a hundred calls is some, one in twenty is many. */
export function health(calls: number, failed: number): State {
  const found = tone(calls, failed);
  return found === 'many' ? 'failed' : found === 'some' ? 'degraded' : 'ready';
}

/** Calls a minute. */
export function rate(calls: number, seconds: number): string {
  const rate = (calls * 60) / Math.max(1, seconds);
  if (rate === 0) return '0/min';
  return rate < 10 ? `${rate.toFixed(1)}/min` : rate < 10_000 ? `${Math.round(rate)}/min` : `${Math.round(rate / 1000)}k/min`;
}
