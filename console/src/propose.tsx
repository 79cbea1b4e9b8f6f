// Proposing a call in a room: who is to carry it out, what, and with what. What is wrong is said where it is wrong. Whoever decides is not this form.
import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { Attendance, Attended } from './attendance';
import { CALL, type Draft, type Part, flaws, namedAt, toolsOf, written } from './draft';
import { Form } from './form';
import { covers } from './participant';
import { fieldsOf, initial } from './schema';

const EMPTY: Draft = { to: '', method: CALL, name: '', text: '{}' };

export function Propose({ room, at, onDone }: { room: Attendance; at: Attended; onDone: () => void }): JSX.Element {
  const [draft, setDraft] = useState(EMPTY);
  const [isRaw, setRaw] = useState(false);
  const [wrong, setWrong] = useState<ReadonlySet<string>>(new Set());
  const [tried, setTried] = useState(false);
  const [why, setWhy] = useState<string | null>(null);
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => form.current?.querySelector<HTMLElement>('select')?.focus(), []);
  const { threads } = room.participant;
  const known = draft.to === '' ? null : toolsOf(threads.all, draft.to);
  const tool = draft.method === CALL ? known?.find(({ name }) => name === draft.name) : undefined;
  const fields = useMemo(() => fieldsOf(tool?.inputSchema), [tool]);
  const isForm = tool !== undefined && !isRaw && fields.length > 0;
  const found = flaws(draft, at.present);
  const shown = (part: Part): string | null => (tried ? (found[part] ?? null) : null);
  const change = (part: Partial<Draft>): void => (setDraft({ ...draft, ...part }), setWhy(null));
  const pick = (name: string): void => {
    const next = known?.find((one) => one.name === name);
    setWrong(new Set());
    change({ name, ...(next && next !== tool ? { text: JSON.stringify(initial(fieldsOf(next.inputSchema))) } : {}) });
  };
  const submit = (): void => {
    setTried(true);
    const [first] = Object.keys(found);
    if (first !== undefined || (isForm && wrong.size > 0)) return void form.current?.querySelector<HTMLElement>(first ? `#propose-${first}` : '[aria-invalid=true]')?.focus();
    const { method, params } = written(draft);
    if (room.propose(draft.to === '' ? [] : [draft.to], method, params)) onDone();
    else setWhy('It was not proposed: you are not connected, or may not propose that here.');
  };
  const others = [...at.present.keys()];
  const mayAsk = draft.to !== '' && known === null && covers(at.capabilities, 'mcp/request:tools/list');
  return (
    <form ref={form} class="play propose" aria-label="Propose a call" onSubmit={(event) => (event.preventDefault(), submit())} onKeyDown={(event) => event.key === 'Escape' && (event.stopPropagation(), onDone())}>
      <div class="field-pair">
        <One part="to" title="Who carries it out" why={shown('to')}>
          <select {...about('to', shown('to'))} value={draft.to} onInput={(event) => change({ to: event.currentTarget.value })}>
            <option value="">whoever may: it goes to everybody</option>
            {draft.to !== '' && !at.present.has(draft.to) && <option value={draft.to}>{draft.to} (has left)</option>}
            {others.map((name) => <option key={name} value={name}>{name}</option>)}
          </select>
        </One>
        <div class="field">
          <span class="label" id="propose-what">What</span>
          <div class="tabs" role="group" aria-labelledby="propose-what">
            <button type="button" aria-pressed={draft.method === CALL} onClick={() => change({ method: CALL })}>A tool</button>
            <button type="button" aria-pressed={draft.method !== CALL} onClick={() => draft.method === CALL && change({ method: '' })}>Another method</button>
          </div>
        </div>
      </div>
      {draft.method === CALL ? (
        <One part="name" title="Tool" why={shown('name')}>
          <input {...about('name', shown('name'))} type="text" list="propose-tools" autocomplete="off" spellcheck={false} value={draft.name} onInput={(event) => pick(event.currentTarget.value)} />
          <datalist id="propose-tools">{(known?.map(({ name }) => name) ?? namedAt(threads.all, draft.to)).map((name) => <option key={name} value={name} />)}</datalist>
          {mayAsk && <p class="row"><button type="button" class="quiet" onClick={() => room.listTools(draft.to)}>Ask {draft.to} for its tools</button> <span class="dim">everybody sees that</span></p>}
          {known && !tool && <p class="dim">{known.length === 0 ? `${draft.to} has no tools.` : `${draft.to} has ${known.slice(0, 12).map(({ name }) => name).join(', ')}${known.length > 12 ? ` and ${known.length - 12} more` : ''}.`}</p>}
          {tool?.description && <p class="description dim">{tool.description}</p>}
        </One>
      ) : (
        <One part="method" title="Method" why={shown('method')}>
          <input {...about('method', shown('method'))} type="text" autocomplete="off" spellcheck={false} placeholder="resources/read" value={draft.method} onInput={(event) => change({ method: event.currentTarget.value })} />
        </One>
      )}
      {tool && fields.length > 0 && (
        <div class="tabs" role="group" aria-label="How arguments are written">
          <button type="button" aria-pressed={isForm} disabled={found.text !== undefined} onClick={() => setRaw(false)}>Form</button>
          <button type="button" aria-pressed={!isForm} onClick={() => (setRaw(true), change({ text: JSON.stringify(JSON.parse(draft.text), null, 2) }))}>JSON</button>
        </div>
      )}
      {isForm ? (
        <Form key={tool.name} fields={fields} value={JSON.parse(draft.text) as Record<string, unknown>} onChange={(value) => change({ text: JSON.stringify(value) })} onWrong={setWrong} />
      ) : (
        <One part="text" title={draft.method === CALL ? 'Arguments, as JSON' : 'Params, as JSON'} why={shown('text')}>
          <textarea {...about('text', shown('text'))} class="raw" rows={Math.min(12, draft.text.split('\n').length + 1)} spellcheck={false} value={draft.text} onInput={(event) => change({ text: event.currentTarget.value })} />
        </One>
      )}
      {why && <p class="error" role="alert">{why}</p>}
      <div class="row">
        <button type="submit" class="strong" disabled={at.standing !== 'there'}>Propose</button>
        <button type="button" onClick={onDone}>Cancel</button>
        <span class="dim">Somebody else decides; nothing is called before.</span>
      </div>
    </form>
  );
}

function about(part: Part, why: string | null): { id: string; 'aria-invalid': boolean; 'aria-describedby'?: string } {
  return { id: `propose-${part}`, 'aria-invalid': why !== null, ...(why === null ? {} : { 'aria-describedby': `propose-${part}-why` }) };
}

function One({ part, title, why, children }: { part: Part; title: string; why: string | null; children: ComponentChildren }): JSX.Element {
  return (
    <div class="field">
      <label for={`propose-${part}`}>{title}</label>
      {children}
      {why !== null && <p class="error" id={`propose-${part}-why`} role="alert">{why}</p>}
    </div>
  );
}
