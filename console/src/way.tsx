// The way of a call through the tree as a waterfall: client, gates, server, and how long each step takes now.
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { ask } from './api';
import type { Trace } from './shapes';
import { millis } from './text';

/** The way of a call, and how long each step takes. */
export function Way({ tool, owner }: { tool: string; owner: boolean }): JSX.Element | null {
  const [trace, setTrace] = useState<Trace | null>(null);
  const [why, setWhy] = useState<string | null>(null);
  if (!owner) return null;
  const follow = (): void => void ask<Trace>('POST', '/-/trace', { tool }).then((found) => (setTrace(found), setWhy(null)), (error: Error) => setWhy(error.message));
  const most = Math.max(...(trace?.hops.map((hop) => hop.ms) ?? [0]), 0.001);
  return (
    <section aria-label="The way of a call">
      <div class="row">
        <h3>Route</h3>
        <button type="button" class="quiet" onClick={follow}>Trace</button>
      </div>
      {why && <p class="error" role="alert">{why}</p>}
      {trace && (
        <ol class="plain spans hops">
          <li>
            <span><span class="name">client</span> <span class="dim">asks this gate</span></span>
            <span class="number">{millis(most)}</span>
            <span class="lane" aria-hidden="true"><i class="whole" style={{ left: '0', width: '100%' }} /></span>
          </li>
          {trace.hops.map((hop, i) => {
            const after = trace.hops[i + 1]?.ms ?? 0;
            // There and back take about as long, so that a step lies amid the one that it is part of.
            const [left, wide] = [((most - hop.ms) / 2 / most) * 100, Math.max(0.6, (hop.ms / most) * 100)];
            return (
              <li key={i}>
                <span><span class="dim" aria-hidden="true">{'\u00a0\u00a0'.repeat(i + 1)}→ </span><span class="name">{hop.mount}</span> <span class="dim">{hop.gate ? 'a gate, ' : ''}{hop.transport}{hop.era ? `, ${hop.era} era` : ''}</span></span>
                <span class="number">{millis(hop.ms)} <span class="dim">{millis(Math.max(0, hop.ms - after))} its own</span></span>
                <span class="lane" aria-hidden="true"><i class={hop.error ? 'failed' : 'ready'} style={{ left: `${Math.min(99.4, left)}%`, width: `${wide}%` }} /></span>
                {hop.error && <span class="error">{hop.error}</span>}
              </li>
            );
          })}
        </ol>
      )}
    </section>
  );
}

