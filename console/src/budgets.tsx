// What callers have spent of their budgets, as gauges.
import type { JSX } from 'preact';
import type { Budget } from './shapes';

/** How much of the fullest of them is spent, in percent. */
export function spentMost(of: Budget[]): number {
  const parts = of.flatMap((one) => [
    [one.calls_in_minute, one.max_calls_per_minute],
    [one.mutable_calls, one.max_mutable_calls_per_session],
    [one.cost_units, one.max_cost_units_per_session],
  ] as [number, number | null][]);
  return Math.max(0, ...parts.map(([spent, most]) => (most === null ? 0 : Math.min(100, Math.floor((spent * 100) / Math.max(1, most))))));
}

export function Budgets({ of }: { of: Budget[] }): JSX.Element | null {
  if (of.length === 0) return null;
  return (
    <section aria-label="Budgets">
      <h3>Budgets</h3>
      <ul class="plain budgets">
        {of.map((one) => (
          <li key={`${one.budget} ${one.principal} ${one.session ?? ''}`}>
            <p><b>{one.budget}</b> <span class="dim">{one.principal}{one.session ? `, session ${one.session}…` : ''}</span></p>
            <Spent what="calls a minute" spent={one.calls_in_minute} most={one.max_calls_per_minute} />
            <Spent what="changes" spent={one.mutable_calls} most={one.max_mutable_calls_per_session} />
            <Spent what="cost units" spent={one.cost_units} most={one.max_cost_units_per_session} />
          </li>
        ))}
      </ul>
    </section>
  );
}

function Spent({ what, spent, most }: { what: string; spent: number; most: number | null }): JSX.Element | null {
  if (most === null) return null;
  const part = Math.min(1, spent / Math.max(1, most));
  return (
    <p class="spent">
      <span class="gauge" aria-hidden="true"><i class={part >= 1 ? 'failed' : part >= 0.8 ? 'degraded' : ''} style={{ width: `${part * 100}%` }} /></span>
      <span class="number">{spent} of {most}</span> <span class="dim">{what}</span>
    </p>
  );
}
