// Whose keys may agree to calls, and making a passkey that may.
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { Operator } from './approval';
import { ask } from './api';
import { Confirm } from './parts';
import { type CreationOptions, make } from './passkey';
import { useNow } from './store';
import { clock } from './text';

export function Operators(): JSX.Element {
  const [all, setAll] = useState<Operator[] | null>(null);
  const [why, setWhy] = useState<string | null>(null);
  const [leaving, setLeaving] = useState<Operator | null>(null);
  const now = useNow();
  const load = (): Promise<void> => ask<{ operators: Operator[] }>('GET', '/-/operators').then(({ operators }) => setAll(operators));
  const tried = (work: Promise<unknown>): void => void work.then(load).then(() => setWhy(null), (error: Error) => setWhy(error.message));
  useEffect(() => tried(Promise.resolve()), []);
  return (
    <>
      <header>
        <h2>Who may agree</h2>
        <p class="dim">Each key is somebody's. Nobody agrees to a call of their own, and two keys of one person are one.</p>
      </header>
      {why && <p class="error" role="alert">{why}</p>}
      {all?.length === 0 && <p>Nobody yet: calls that wait for somebody are refused until there is a key.</p>}
      <ul class="plain operators">
        {all?.map((one) => (
          <li key={one.id}>
            <div>
              <b>{one.name}</b> <span class="badge">{one.passkey ? 'passkey' : 'key'}</span> <span class="dim">since {clock(one.enrolled, now)}{one.principals.length > 0 ? `, calls as ${one.principals.join(', ')}` : ''}</span>
              <br /><code>{one.id}</code>
            </div>
            <button type="button" onClick={() => setLeaving(one)} aria-label={`Remove ${one.name}`}>Remove</button>
          </li>
        ))}
      </ul>
      <Enrol onDone={(work) => tried(work)} />
      {leaving && (
        <Confirm title={`Remove ${leaving.name}?`} does="Remove" onDone={(yes) => (setLeaving(null), yes && tried(ask('POST', '/-/operators/remove', { id: leaving.id })))}>
          This key approves nothing any more. What it has approved stays as it is.
        </Confirm>
      )}
    </>
  );
}

function Enrol({ onDone }: { onDone: (work: Promise<unknown>) => void }): JSX.Element {
  const [name, setName] = useState('');
  const [principals, setPrincipals] = useState('');
  const enrol = async (): Promise<void> => {
    const options = await ask<CreationOptions>('POST', '/-/operators/webauthn', { name });
    const credential = await make(options);
    await ask('POST', '/-/operators', { name, principals: principals.split(/[\s,]+/).filter(Boolean), credential });
    setName('');
  };
  return (
    <form class="play" aria-label="Add a passkey" onSubmit={(event) => (event.preventDefault(), onDone(enrol()))}>
      <h3>Add a passkey</h3>
      <div class="field">
        <label for="operator-name">Whose it is</label>
        <input id="operator-name" type="text" required maxLength={100} autocomplete="off" value={name} onInput={(event) => setName(event.currentTarget.value)} />
      </div>
      <div class="field">
        <label for="operator-principals">Names under which that person calls tools <span class="dim">so that nobody agrees to a call of their own</span></label>
        <input id="operator-principals" type="text" autocomplete="off" placeholder="local, ci" value={principals} onInput={(event) => setPrincipals(event.currentTarget.value)} />
      </div>
      <div class="row"><button type="submit" class="strong">Make a passkey</button></div>
    </form>
  );
}
