// Fields for the arguments of a tool. What its schema means is known in `schema.ts`.
import type { JSX } from 'preact';
import { useRef, useState } from 'preact/hooks';
import { type Field, typed } from './schema';

type Value = Record<string, unknown>;

interface Props {
  fields: Field[];
  value: Value;
  onChange: (value: Value) => void;
  /** The fields in which something stands that can't be read. */
  onWrong: (wrong: ReadonlySet<string>) => void;
}

export function Form({ fields, value, onChange, onWrong }: Props): JSX.Element {
  const wrong = useRef(new Set<string>());
  const mark = (path: string, is: boolean): void => {
    const has = wrong.current.has(path);
    if (has === is) return;
    if (is) wrong.current.add(path);
    else wrong.current.delete(path);
    onWrong(new Set(wrong.current));
  };
  if (fields.length === 0) return <p class="dim">It takes no arguments.</p>;
  return <Group fields={fields} value={value} onChange={onChange} mark={mark} path="arg" />;
}

interface GroupProps {
  fields: Field[];
  value: Value;
  onChange: (value: Value) => void;
  mark: (path: string, is: boolean) => void;
  path: string;
}

function Group({ fields, value, onChange, mark, path }: GroupProps): JSX.Element {
  const set = (name: string, to: unknown): void => {
    const { [name]: _, ...rest } = value;
    onChange(to === undefined ? rest : { ...rest, [name]: to });
  };
  return (
    <div class="fields">
      {fields.map((field) => <One key={field.name} field={field} value={value[field.name]} set={(to) => set(field.name, to)} mark={mark} path={`${path}.${field.name}`} />)}
    </div>
  );
}

interface OneProps {
  field: Field;
  value: unknown;
  set: (to: unknown) => void;
  mark: (path: string, is: boolean) => void;
  path: string;
}

function One(props: OneProps): JSX.Element {
  const { field, value, set, mark, path } = props;
  if (field.kind === 'group') {
    return (
      <fieldset>
        <legend>{field.title}{field.required && <Star />}</legend>
        {field.description && <p class="dim">{field.description}</p>}
        <Group fields={field.fields} value={(value as Value | undefined) ?? {}} onChange={(to) => set(Object.keys(to).length > 0 || field.required ? to : undefined)} mark={mark} path={path} />
      </fieldset>
    );
  }
  if (field.kind === 'boolean') {
    return (
      <div class="field check">
        <label><input type="checkbox" checked={value === true} onChange={(event) => set(event.currentTarget.checked || field.required ? event.currentTarget.checked : event.currentTarget.checked ? true : field.initial === undefined ? undefined : false)} /> {field.title}{field.required && <Star />}</label>
        {field.description && <p class="dim">{field.description}</p>}
      </div>
    );
  }
  if (field.kind === 'list' && field.item) return <List {...props} item={field.item} />;
  return <Typed {...props} />;
}

/** A field in which a value is written. What was typed stays, whether it can be read or not. */
function Typed({ field, value, set, mark, path }: OneProps): JSX.Element {
  const [text, setText] = useState(value === undefined ? '' : field.kind === 'json' ? JSON.stringify(value, null, 2) : String(value));
  const [error, setError] = useState<string | null>(null);
  const [isNoted, setNoted] = useState(false);
  const change = (to: string): void => {
    const read = typed(field, to);
    setText(to);
    setError(read.error ?? null);
    mark(path, read.error !== undefined);
    if (read.error === undefined) set(read.value);
    setNoted(true);
  };
  const about = { id: path, name: path, value: text, 'aria-required': field.required, 'aria-invalid': error !== null, 'aria-describedby': `${path}-about` };
  const input = (event: { currentTarget: { value: string } }): void => change(event.currentTarget.value);
  const lines = Math.min(12, Math.max(field.kind === 'json' ? 3 : 2, text.split('\n').length));
  return (
    <div class="field">
      <label for={path}>{field.title}{field.required && <Star />} <span class="dim">{field.hint}</span></label>
      {field.kind === 'choice' ? (
        <select {...about} onChange={input}>
          {(!field.required || text === '') && <option value="">(not sent)</option>}
          {field.choices.map((choice) => <option key={String(choice)} value={String(choice)}>{String(choice)}</option>)}
        </select>
      ) : field.kind === 'json' || (field.kind === 'text' && field.long) ? (
        <textarea {...about} rows={lines} spellcheck={false} onInput={input} />
      ) : (
        <input {...about} type="text" inputMode={field.kind === 'text' ? 'text' : 'decimal'} autocomplete="off" spellcheck={false} onInput={input} />
      )}
      <p class="dim" id={`${path}-about`}>{field.description}</p>
      {error && isNoted && <p class="error">{error}</p>}
    </div>
  );
}

function List({ field, value, set, mark, path, item }: OneProps & { item: Field }): JSX.Element {
  const entries = Array.isArray(value) ? (value as unknown[]) : [];
  const [keys, setKeys] = useState(() => entries.map((_, i) => i));
  const put = (at: number, to: unknown): void => set(entries.map((entry, i) => (i === at ? (to ?? '') : entry)));
  const add = (): void => {
    setKeys([...keys, Math.max(-1, ...keys) + 1]);
    set([...entries, item.kind === 'text' || item.kind === 'choice' ? (item.choices[0] ?? '') : 0]);
  };
  const drop = (at: number): void => {
    setKeys(keys.filter((_, i) => i !== at));
    const rest = entries.filter((_, i) => i !== at);
    set(rest.length > 0 || field.required ? rest : undefined);
  };
  return (
    <fieldset class="list-field">
      <legend>{field.title}{field.required && <Star />} <span class="dim">a list</span></legend>
      {field.description && <p class="dim">{field.description}</p>}
      {entries.map((entry, i) => (
        <div class="row" key={keys[i]}>
          <Typed field={{ ...item, title: `${field.title} ${i + 1}`, required: true }} value={entry} set={(to) => put(i, to)} mark={mark} path={`${path}.${keys[i]}`} />
          <button type="button" class="quiet" aria-label={`Remove ${field.title} ${i + 1}`} onClick={() => drop(i)}>×</button>
        </div>
      ))}
      <button type="button" class="quiet" onClick={add}>Add</button>
    </fieldset>
  );
}

function Star(): JSX.Element {
  return <span class="star" title="required" aria-hidden="true"> *</span>;
}
