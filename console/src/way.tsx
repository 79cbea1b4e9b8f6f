// The way of a call through the tree, hop by hop, and how long each takes now.
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
        <h3>The way of a call</h3>
        <button type="button" class="quiet" onClick={follow}>Trace</button>
      </div>
      {why && <p class="error" role="alert">{why}</p>}
      {trace && (
        <ol class="hops">
          {trace.hops.map((hop, i) => {
            const after = trace.hops[i + 1]?.ms ?? 0;
            return (
              <li key={i}>
                <span class="name">{hop.mount}</span> <span class="dim">{hop.gate ? 'a gate, ' : ''}{hop.transport}{hop.era ? `, ${hop.era} era` : ''}</span>
                <span class="gauge" style={{ width: `${Math.max(1, (hop.ms / most) * 100)}%` }}><i style={{ width: `${(Math.max(0, hop.ms - after) / Math.max(hop.ms, 0.001)) * 100}%` }} /></span>
                <span class="number">{millis(hop.ms)} <span class="dim">{millis(Math.max(0, hop.ms - after))} its own</span></span>
                {hop.error && <span class="error">{hop.error}</span>}
              </li>
            );
          })}
        </ol>
      )}
    </section>
  );
}

