// Prompts and resources of every server: found by name, with what their servers say of them. Reads none: clients do.
import type { JSX } from 'preact';
import { useEffect } from 'preact/hooks';
import { useAsked } from './asked';
import { gate } from './gate';
import { Close, Copy, Facts, Json } from './parts';
import { go, route, write } from './route';
import { useStore } from './store';
import { counted } from './text';
import { useWindow } from './window';

const ROW = 46;
/** Seconds after which the lists are asked for again. */
const EVERY = 15;

interface Definition {
  name?: string;
  title?: string;
  description?: string;
  mimeType?: string;
  size?: number;
  arguments?: { name: string; description?: string; required?: boolean }[];
}

interface Offers {
  prompts: { server: string; name: string; definition?: Definition }[];
  resources: { server: string; uri: string; template: boolean; definition?: Definition }[];
  left_out: number;
}

interface Offer {
  key: string;
  kind: 'prompt' | 'resource' | 'template';
  server: string;
  name: string;
  definition: Definition;
}

/** Both lists as one, prompts first. */
export function listed(of: Offers, filter: string): Offer[] {
  const text = filter.trim().toLowerCase();
  const all: Offer[] = [
    ...of.prompts.map((one): Offer => ({ key: `prompt:${one.name}`, kind: 'prompt', server: one.server, name: one.name, definition: one.definition ?? {} })),
    ...of.resources.map((one): Offer => ({ key: `${one.server}:${one.uri}`, kind: one.template ? 'template' : 'resource', server: one.server, name: one.uri, definition: one.definition ?? {} })),
  ];
  return all.filter((one) => `${one.kind} ${one.name} ${one.server} ${one.definition.name ?? ''} ${one.definition.title ?? ''} ${one.definition.description ?? ''}`.toLowerCase().includes(text));
}

export function OffersView({ filter }: { filter: string }): JSX.Element {
  const { what } = useStore(route);
  const { status } = useStore(gate);
  const asked = useAsked<Offers>('/-/offers', EVERY);
  const counts = status?.mounts.map((mount) => `${mount.prompts} ${mount.resources}`).join();
  useEffect(asked.again, [counts]);
  const found = asked.value ? listed(asked.value, filter) : [];
  const { box, from, to, onScroll } = useWindow(found.length, ROW);
  const shown = found.find((one) => one.key === what) ?? (what === '' ? found[0] : undefined);
  const pressed = (event: KeyboardEvent): void => {
    const at = found.findIndex((one) => one.key === what);
    const next = { ArrowDown: at + 1, j: at + 1, ArrowUp: at - 1, k: at - 1 }[event.key];
    const one = next === undefined ? undefined : found[Math.max(0, next)];
    if (!one) return;
    event.preventDefault();
    go('offers', one.key);
  };
  return (
    <div class={`split tools ${what ? 'with-detail' : ''}`}>
      <div class="names">
        <p class="sum">{asked.value ? `${counted(asked.value.prompts.length, 'prompt')}, ${counted(asked.value.resources.length, 'resource')}${asked.value.left_out > 0 ? `, ${asked.value.left_out} left out` : ''}` : 'Asking the gate…'}</p>
        {asked.why && <p class="error notice" role="alert">{asked.why}</p>}
        <div class="canvas" ref={box} onScroll={onScroll} onKeyDown={pressed} tabIndex={0} role="region" aria-label="Prompts and resources">
          <ul class="plain" style={{ height: `${found.length * ROW}px` }}>
            {found.slice(from, to).map((one, i) => (
              <li key={one.key} style={{ transform: `translateY(${(from + i) * ROW}px)` }}>
                <a href={write('offers', one.key)} aria-current={one === shown ? 'true' : undefined}>
                  <span class="name">{one.name}</span>
                  <span class="dim">{one.definition.description ?? one.definition.title ?? one.server}</span>
                  <span class="badge">{one.kind}</span>
                </a>
              </li>
            ))}
          </ul>
          {asked.value && found.length === 0 && <p class="empty">{filter === '' ? 'No server offers a prompt or a resource.' : 'Nothing matches the filter.'}</p>}
        </div>
      </div>
      <section class={`detail one ${what ? '' : 'beside'}`} aria-label="About this prompt or resource">
        {what && <Close onClick={() => go('offers')} />}
        {shown ? <One offer={shown} /> : <p class="dim">{what ? 'No server offers that any more.' : 'A server may offer prompts, which a person starts, and resources, which a client reads. They appear here with the first one.'}</p>}
      </section>
    </div>
  );
}

function One({ offer }: { offer: Offer }): JSX.Element {
  const { definition } = offer;
  const given = definition.arguments ?? [];
  const called = offer.kind === 'prompt' ? 'the name' : 'the address';
  return (
    <>
      <header><h2>{offer.name}</h2><p class="dim">{offer.kind} of <a href={write('servers', offer.server)}>{offer.server}</a></p></header>
      {definition.description && <p class="description">{definition.description}</p>}
      <Facts of={[['title', definition.title], ['name', offer.kind !== 'prompt' && definition.name], ['type', definition.mimeType], ['size', definition.size !== undefined && `${definition.size} bytes`]]} />
      {given.length > 0 && (
        <section aria-label="Arguments">
          <h3>Arguments</h3>
          <dl class="facts">{given.map((one) => <div key={one.name}><dt class="name">{one.name}{one.required && <span class="star"> *</span>}</dt><dd>{one.description ?? ''}</dd></div>)}</dl>
        </section>
      )}
      <p class="row"><Copy text={offer.name} what={called}>Copy {called}</Copy></p>
      <details><summary>Definition, as its server wrote it</summary><Json text={JSON.stringify(definition)} label="Definition" /></details>
    </>
  );
}
