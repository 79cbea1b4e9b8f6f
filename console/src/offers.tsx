// Prompts and resources of every server: found by name, with what their servers say of them. Reads none: clients do.
import type { JSX } from 'preact';
import { useEffect, useMemo } from 'preact/hooks';
import { useAsked } from './asked';
import { gate } from './gate';
import { elements, members } from './json';
import { Close, Copy, Facts, Json } from './parts';
import { go, route, write } from './route';
import { useStore } from './store';
import { counted } from './text';
import { useWindow } from './window';

const ROW = 46;
/** Seconds after which the lists are asked for again. */
const EVERY = 15;

interface Argument {
  name: string;
  description: string;
  required: boolean;
}

interface Definition {
  name: string;
  title: string;
  description: string;
  mimeType: string;
  size: number | null;
  arguments: Argument[];
}

/** The answer of the gate, with its own text: definitions are shown as they are written. */
interface Offers {
  text: string;
  prompts: Record<string, unknown>[];
  resources: Record<string, unknown>[];
  left_out: number;
}

interface Offer {
  key: string;
  kind: 'prompt' | 'resource' | 'template';
  server: string;
  name: string;
  definition: Definition;
  /** Its place in the answer. */
  at: ['prompts' | 'resources', number];
}

const text = (value: unknown): string => (typeof value === 'string' ? value : '');
const record = (value: unknown): Record<string, unknown> => (typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {});
const list = (value: unknown): Record<string, unknown>[] => (Array.isArray(value) ? value.filter((one) => typeof one === 'object' && one !== null) : []);

/** Reads the answer of the gate. */
export function answered(body: string): Offers {
  const of = record(JSON.parse(body));
  return { text: body, prompts: list(of['prompts']), resources: list(of['resources']), left_out: Number(of['left_out'] ?? 0) };
}

/** What a server wrote, of which anything may be of another kind than it should be. */
export function defined(value: unknown): Definition {
  const of = record(value);
  const given = list(of['arguments']).filter((one) => text(one['name']) !== '');
  return {
    name: text(of['name']), title: text(of['title']), description: text(of['description']), mimeType: text(of['mimeType']), size: typeof of['size'] === 'number' ? of['size'] : null,
    arguments: given.map((one) => ({ name: text(one['name']), description: text(one['description']), required: one['required'] === true })),
  };
}

/** Both lists as one, prompts first. */
export function listed(of: Offers, filter: string): Offer[] {
  const wanted = filter.trim().toLowerCase();
  const all: Offer[] = [
    ...of.prompts.map((one, i): Offer => ({ key: `prompt:${text(one['name'])}`, kind: 'prompt', server: text(one['server']), name: text(one['name']), definition: defined(one['definition']), at: ['prompts', i] })),
    ...of.resources.map((one, i): Offer => ({ key: `${text(one['server'])}:${text(one['uri'])}`, kind: one['template'] === true ? 'template' : 'resource', server: text(one['server']), name: text(one['uri']), definition: defined(one['definition']), at: ['resources', i] })),
  ];
  return all.filter(({ kind, name, server, definition }) => `${kind} ${name} ${server} ${definition.name} ${definition.title} ${definition.description}`.toLowerCase().includes(wanted));
}

/** The definition of an offer as its server wrote it; `null`: the gate leaves it out. */
export function written(body: string, [of, index]: Offer['at']): string | null {
  const row = elements(members(body).get(of) ?? '')[index];
  return members(row ?? '').get('definition') ?? null;
}

export function OffersView({ filter }: { filter: string }): JSX.Element {
  const { what } = useStore(route);
  const { status } = useStore(gate);
  const asked = useAsked<Offers>('/-/offers', EVERY, answered);
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
                  <span class="dim">{one.definition.description || one.definition.title || one.server}</span>
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
        {shown ? <One key={shown.key} offer={shown} body={asked.value?.text ?? ''} /> : <p class="dim">{what ? 'No server offers that any more.' : 'A server may offer prompts, which a person starts, and resources, which a client reads. They appear here with the first one.'}</p>}
      </section>
    </div>
  );
}

function One({ offer, body }: { offer: Offer; body: string }): JSX.Element {
  const { definition } = offer;
  const given = definition.arguments;
  const raw = useMemo(() => written(body, offer.at), [body, offer.at.join()]);
  const called = offer.kind === 'prompt' ? 'the name' : 'the address';
  return (
    <>
      <header><h2>{offer.name}</h2><p class="dim">{offer.kind} of <a href={write('servers', offer.server)}>{offer.server}</a></p></header>
      {definition.description && <p class="description">{definition.description}</p>}
      <Facts of={[['title', definition.title], ['name', offer.kind !== 'prompt' && definition.name], ['type', definition.mimeType], ['size', definition.size !== null && `${definition.size} bytes`]]} />
      {given.length > 0 && (
        <section aria-label="Arguments">
          <h3>Arguments</h3>
          <dl class="facts">{given.map((one) => <div key={one.name}><dt class="name">{one.name}{one.required && <span class="star"> *</span>}</dt><dd>{one.description}</dd></div>)}</dl>
        </section>
      )}
      <p class="row"><Copy text={offer.name} what={called}>Copy {called}</Copy></p>
      {raw === null ? <p class="dim">The definition is longer than the gate shows.</p> : <details><summary>Definition, as its server wrote it</summary><Json text={raw} label="Definition" /></details>}
    </>
  );
}
