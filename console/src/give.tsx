// Giving a grant: what calls may look like that go out without being asked about, for how long and how often, signed with a passkey.
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { Approval } from './approval';
import { ask } from './api';
import { type Statement, type Terms, patterns, untrue } from './grant';
import { Said } from './parts';
import { sign } from './passkey';

const HOURS: [number, string][] = [[0.25, '15 minutes'], [1, 'one hour'], [8, 'eight hours'], [24, 'a day'], [168, 'a week']];

/** What is to be signed, and by whom it was. */
interface Open {
  statement: Statement;
  terms: Terms;
  proofs: unknown[];
}

export function Give({ like, ahead, onDone }: { like: Approval | undefined; ahead: number; onDone: () => void }): JSX.Element {
  const [tool, setTool] = useState(like?.tool ?? '');
  const [caller, setCaller] = useState(like?.caller ?? '');
  const [rows, setRows] = useState(() => patterns(like?.arguments ?? '{}'));
  const [others, setOthers] = useState(false);
  const [hours, setHours] = useState(1);
  const [uses, setUses] = useState('1');
  const [open, setOpen] = useState<Open | null>(null);
  const [why, setWhy] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  // Whatever is written anew has to be signed anew.
  const change = (work: () => void): void => (setOpen(null), setWhy(null), work());
  const row = (at: number, [name, pattern]: [string, string]): void => change(() => setRows(rows.map((old, i): [string, string] => (i === at ? [name, pattern] : old))));
  const wanted = async (): Promise<Open> => {
    const named = rows.filter(([name]) => name !== '');
    if (new Set(named.map(([name]) => name)).size < named.length) throw new Error('an argument is named twice');
    const expires = Math.floor(Date.now() / 1000) + ahead + hours * 3600;
    const terms = { tool, caller, arguments: Object.fromEntries(named), any_other: others, expires, uses: uses === '' ? null : Number(uses) };
    const statement = await ask<Statement>('POST', '/-/grants/statement', { terms });
    const wrong = await untrue(statement, terms);
    if (wrong) throw new Error(`${wrong}: nothing was signed`);
    return { statement, terms, proofs: [] };
  };
  const give = async (): Promise<void> => {
    const { statement, terms, proofs } = open ?? (await wanted());
    if (!statement.webauthn || statement.webauthn.allowCredentials.length === 0) throw new Error('no passkey of anybody who may agree is known here: add one under "who may agree"');
    const all = [...proofs, { type: 'webauthn', credential: await sign(statement.webauthn) }];
    if (all.length < statement.required) return setOpen({ statement, terms, proofs: all });
    await ask('POST', '/-/grants', { id: statement.id, terms, proofs: all });
    setOpen(null);
    onDone();
  };
  const submit = (): void => {
    setBusy(true);
    setWhy(null);
    const failed = (error: Error): void => {
      // Signatures that were not taken are of no more use.
      setOpen(null);
      setWhy(error.name === 'NotAllowedError' ? 'The passkey was not used: it was called off, took too long, or is none that may agree here.' : error.message);
    };
    void give().catch(failed).finally(() => setBusy(false));
  };
  return (
    <form class="play" aria-label="Give a grant" onSubmit={(event) => (event.preventDefault(), submit())}>
      <h3>{like ? 'Let calls like this one through' : 'Give a grant'}</h3>
      <p class="dim"><Said text="`*` stands for any text. What is not named here is not let through; what a gate below asks about is asked about still." /></p>
      <Field id="grant-tool" label="Tools" value={tool} set={(text) => change(() => setTool(text))} />
      <Field id="grant-caller" label="Callers" value={caller} set={(text) => change(() => setCaller(text))} />
      <fieldset>
        <legend>Arguments that have to be there</legend>
        {rows.map(([name, pattern], i) => (
          <div key={i} class="row">
            <input type="text" aria-label={`Argument ${i + 1}`} placeholder="name" autocomplete="off" value={name} onInput={(event) => row(i, [event.currentTarget.value, pattern])} />
            <textarea rows={1} aria-label={`What argument ${i + 1} has to be`} placeholder="text, * for any" value={pattern} onInput={(event) => row(i, [name, event.currentTarget.value])} />
          </div>
        ))}
        <div class="row"><button type="button" onClick={() => change(() => setRows([...rows, ['', '']]))}>Add an argument</button></div>
        <div class="field check"><label><input type="checkbox" checked={others} onInput={(event) => change(() => setOthers(event.currentTarget.checked))} /> others may be there as well</label></div>
      </fieldset>
      <div class="field">
        <label for="grant-hours">For how long</label>
        <select id="grant-hours" value={String(hours)} onInput={(event) => change(() => setHours(Number(event.currentTarget.value)))}>
          {HOURS.map(([many, text]) => <option key={many} value={String(many)}>{text}</option>)}
        </select>
      </div>
      <div class="field">
        <label for="grant-uses">For how many calls <span class="dim">empty: any number</span></label>
        <input id="grant-uses" type="number" min={1} max={4294967295} step={1} value={uses} onInput={(event) => change(() => setUses(event.currentTarget.value))} />
      </div>
      {open && <p class="note">{open.proofs.length} of {open.statement.required} have signed: the next passkey has to be another person's.</p>}
      <div class="row"><button type="submit" class="strong" disabled={isBusy}>Sign with a passkey</button></div>
      {why && <p class="error" role="alert">{why}</p>}
    </form>
  );
}

function Field({ id, label, value, set }: { id: string; label: string; value: string; set: (text: string) => void }): JSX.Element {
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <input id={id} type="text" required autocomplete="off" value={value} onInput={(event) => set(event.currentTarget.value)} />
    </div>
  );
}
