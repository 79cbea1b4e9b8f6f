// How the page stands with its gate: cut off, signed out, or not let in; with what a person does then. Shows nothing of the gate.
import type { JSX } from 'preact';
import { dismiss, gate, isWanted } from './gate';
import { Copy, Said } from './parts';
import { write } from './route';
import { useNow, useStore } from './store';
import { clock } from './text';
import type { View } from './views';

/** Banners above every view. */
export function Standing(): JSX.Element {
  const { link, why, unused, over, lost, status } = useStore(gate);
  const now = useNow();
  return (
    <>
      {link === 'lost' && status && (
        <p class="notice lost" role="alert"><b>Connection lost.</b> The page shows the gate as it was at {clock(Math.floor(lost / 1000), now)}. It tries again by itself. <Said text="`banyan up` starts a gate that has ended." /></p>
      )}
      {over && <p class="notice over" role="alert"><b>Your session has ended.</b> <Said text="Run `banyan console` on the gate's machine to sign in again." /> <button type="button" class="quiet" onClick={dismiss}>Dismiss</button></p>}
      {unused && <p class="notice unused" role="alert"><Said text={unused} /> <button type="button" class="quiet" onClick={dismiss}>Dismiss</button></p>}
      {why && link !== 'closed' && <p class="notice" role="alert"><Said text={why} /></p>}
    </>
  );
}

/** In place of a view that this page may not see: how to sign in, after which the same address opens. */
export function SignIn({ view }: { view?: View }): JSX.Element {
  return (
    <section class="closed">
      <Mark size={36} />
      <h2>Sign in{view ? ` to see ${view.title}` : ''}</h2>
      <p>{view ? 'This page is for the owner of this gate.' : 'This gate shows itself to those who may call it.'} Run this on its machine, as the user who started it:</p>
      <div class="row command"><pre tabIndex={0} role="region" aria-label="What to run">banyan console</pre><Copy text="banyan console" what="the command" /></div>
      <p class="dim">The command opens this page with a code that is good once and for two minutes. There is no password, and nothing to paste.{isWanted() && ' After that the address you asked for opens.'}</p>
    </section>
  );
}

/** In place of a view that this gate does not have, or that no gate has. */
export function NoView({ view, name }: { view: View | undefined; name: string }): JSX.Element {
  return (
    <section class="closed">
      <h2>{view ? `${view.title} is not in use` : 'There is no such page'}</h2>
      <p><Said text={view ? (view.missing ?? '') : `Nothing is called \`${name.slice(0, 60)}\` here. The link may be of another version of the console.`} /></p>
      <p><a class="button" href={write('overview')}>To the overview</a></p>
    </section>
  );
}

export function Mark({ size = 20 }: { size?: number }): JSX.Element {
  return (
    <svg class="mark" viewBox="0 0 32 32" width={size} height={size} aria-hidden="true" fill="none" stroke="currentColor" stroke-width="2.600" stroke-linecap="round">
      <path d="M3 13c4-9 22-9 26 0M16 7v21M9.500 8.500v9c0 5 2 6 3 10M22.500 8.500v9c0 5-2 6-3 10M3 13v8M29 13v8" />
    </svg>
  );
}
