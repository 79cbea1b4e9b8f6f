// Definitions that wait until somebody has looked at them: what they say, what differs from the one before, and the two answers.
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { Refusal, ask } from './api';
import { Differences, Seen } from './differ';
import type { Difference } from './difference';
import { indented } from './json';
import { Facts, Glyph, Said } from './parts';
import { write } from './route';
import type { State } from './shapes';
import { Store, useNow } from './store';
import { clock, duration } from './text';

type Concern = 'hidden' | { instructs: string } | { looks_like: string } | { names: string } | { runs: string } | { takes: string };

export interface Pin {
  mount: string;
  /** A tool's name; or what `kind` says: a prompt's name, a resource's URI, a template, `instructions`. */
  tool: string;
  kind: 'tool' | 'prompt' | 'resource' | 'template' | 'instructions';
  hash: string;
  standing: 'accepted' | 'held' | 'refused';
  why: 'new' | 'changed' | 'replaced' | 'became_gate';
  since: number;
  /** JSON in which what can not be seen is written out. */
  definition: string;
  differences: { path: string; what: string; before: string | null; after: string | null }[];
  concerns: Concern[];
}

/** Those that wait or were refused; `null`: this page may not know. */
export const pins = new Store<Pin[] | null>(null);

export async function lookAtPins(): Promise<void> {
  const found = await ask<{ pins: Pin[] }>('GET', '/-/pins').catch((error: unknown) => {
    if (error instanceof Refusal && error.status === 0) throw error;
    return null;
  });
  pins.set(found?.pins ?? null);
}

export function nameOf(pin: Pin): string {
  const name = `${pin.mount}.${pin.tool}`;
  return pin.kind === 'tool' || pin.kind === 'instructions' ? name : `${pin.kind} ${name}`;
}

/** By what a page names it: a server may have changed one thing several times. */
export function idOf(pin: Pin): string {
  return `pin:${pin.mount}:${pin.kind}:${pin.hash}`;
}

export function heldOf(of: Pin[] | null): number {
  return of?.filter((pin) => pin.standing === 'held').length ?? 0;
}

const WHY: Record<Pin['why'], string> = {
  new: 'nobody has looked at it yet', changed: 'it is another than was accepted', replaced: 'its server is another than was known under this name', became_gate: 'its server began to call itself a gate, which nobody here says it is',
};
/** What becomes of it meanwhile. */
const AWAY: Record<Pin['kind'], string> = {
  tool: 'Nobody is shown it, and nobody can call it.',
  prompt: 'Nobody is shown it, and nobody can get it.',
  resource: 'Nobody is shown it, and nobody can read it.',
  template: 'Nobody is shown it, and nothing is read by it.',
  instructions: 'Clients are told those that were accepted before, where there are any.',
};
const LOOK: Record<Pin['standing'], State> = { accepted: 'ready', held: 'degraded', refused: 'failed' };

export function PinLine({ pin, isOpen }: { pin: Pin; isOpen: boolean }): JSX.Element {
  const now = useNow();
  return (
    <li>
      <a href={write('approvals', idOf(pin))} aria-current={isOpen ? 'true' : undefined}>
        <span class="name"><Glyph state={LOOK[pin.standing]} /> {nameOf(pin)}</span>
        <span class="dim">{pin.standing === 'held' ? WHY[pin.why] : pin.standing}{pin.concerns.length > 0 ? `; ${pin.concerns.map(short).join(', ')}` : ''}</span>
        <span class="number">{duration(now - pin.since)}</span>
      </a>
    </li>
  );
}

export function OnePin({ pin }: { pin: Pin }): JSX.Element {
  const [why, setWhy] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  const now = useNow();
  const answer = (what: 'accept' | 'refuse'): void => {
    setBusy(true);
    ask('POST', `/-/pins/${what}`, { mount: pin.mount, tool: pin.tool, kind: pin.kind, hash: pin.hash }).then(lookAtPins).then(() => setWhy(null), (error: Error) => setWhy(error.message)).finally(() => setBusy(false));
  };
  const differences = pin.differences.map((one): Difference => ({ path: `${one.path} (${one.what})`, ...(one.before === null ? {} : { before: one.before }), ...(one.after === null ? {} : { after: one.after }) }));
  return (
    <>
      <header>
        <h2><Seen text={nameOf(pin)} /></h2>
        <p class={`state ${LOOK[pin.standing]}`}><Glyph state={LOOK[pin.standing]} /> {pin.standing === 'held' ? `Its definition waits: ${WHY[pin.why]}. ${AWAY[pin.kind]}` : `Its definition was ${pin.standing}.`}</p>
      </header>
      {pin.concerns.length > 0 && (
        <ul class="steps">{pin.concerns.map((one, i) => <li key={i} class="error"><Said text={long(one)} /></li>)}</ul>
      )}
      <Facts of={[['since', clock(pin.since, now)], ['SHA-256', <code>{pin.hash}</code>]]} />
      {differences.length > 0 && <section aria-label="What differs"><h3>What differs from the one that was accepted</h3><Differences of={differences} what="place" /></section>}
      <section aria-label="Definition"><h3>All of it</h3><pre class="whole"><Seen text={indented(pin.definition)} /></pre></section>
      <section class="decide" aria-label="Decide">
        <div class="row">
          {pin.standing !== 'accepted' && <button type="button" class="strong" disabled={isBusy} onClick={() => answer('accept')}>Accept this definition</button>}
          {pin.standing !== 'refused' && <button type="button" disabled={isBusy} onClick={() => answer('refuse')}>Refuse it</button>}
          <span class="dim"><Said text={`or \`banyan pins show ${pin.mount}\``} /></span>
        </div>
        {why && <p class="error" role="alert">{why}</p>}
      </section>
    </>
  );
}

function short(concern: Concern): string {
  if (concern === 'hidden') return 'hidden characters';
  if ('instructs' in concern) return 'speaks to the model';
  if ('runs' in concern) return 'holds code';
  if ('takes' in concern) return 'reaches for secrets';
  return 'looks_like' in concern ? `looks like ${concern.looks_like}` : `speaks of ${concern.names}`;
}

function long(concern: Concern): string {
  if (concern === 'hidden') return 'There are characters in it that nobody sees: they are written out below.';
  if ('instructs' in concern) return `It speaks to the model: \`${concern.instructs}\`.`;
  if ('runs' in concern) return `Code or a command stands in it: \`${concern.runs}\`.`;
  if ('takes' in concern) return `It reaches for secrets, or sends something elsewhere: \`${concern.takes}\`.`;
  if ('looks_like' in concern) return `Its name is, or looks like, that of \`${concern.looks_like}\` of another server.`;
  return `It speaks of \`${concern.names}\`, a tool of another server.`;
}
