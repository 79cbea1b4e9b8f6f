// Agreement that was given beforehand: what it lets through, who gave it, and taking it back.
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { Approval } from './approval';
import { ask } from './api';
import { useAsked } from './asked';
import { Give } from './give';
import type { Grant } from './grant';
import { Confirm, Facts, Glyph, Said } from './parts';
import { useNow } from './store';
import { clock, counted, duration } from './text';

/** `like`: a call that waits, whose likes somebody wants to let through. */
export function Grants({ like, ahead }: { like: Approval | undefined; ahead: number }): JSX.Element {
  const { value, why, again } = useAsked<{ grants: Grant[] }>('/-/grants', 10);
  const [leaving, setLeaving] = useState<Grant | null>(null);
  const [wrong, setWrong] = useState<string | null>(null);
  const now = useNow() + ahead;
  const revoke = (grant: Grant): void => void ask('POST', `/-/grants/${grant.id}/revoke`).then(() => (setWrong(null), again()), (error: Error) => setWrong(error.message));
  const sorted = [...(value?.grants ?? [])].sort((a, b) => Number(b.holds) - Number(a.holds) || b.terms.expires - a.terms.expires);
  return (
    <>
      <header>
        <h2>Grants</h2>
        <p class="dim">Agreement given beforehand, for calls that match. Nobody's own calls go out by a grant of their own.</p>
      </header>
      {(wrong ?? why) && <p class="error" role="alert">{wrong ?? why}</p>}
      {sorted.length === 0 && value && <p>None was given.</p>}
      <ul class="plain operators">
        {sorted.map((grant) => (
          <li key={grant.id}>
            <div>
              <p class={`state ${grant.holds ? 'ready' : 'failed'}`}><Glyph state={grant.holds ? 'ready' : 'failed'} /> {standing(grant, now)}</p>
              <Facts
                of={[
                  ['tools', <code>{grant.terms.tool}</code>],
                  ['callers', <code>{grant.terms.caller}</code>],
                  ['arguments', <Patterns terms={grant.terms} />],
                  ['used', grant.terms.uses === null ? counted(grant.used, 'time') : `${grant.used} of ${grant.terms.uses} times`],
                  ['given by', grant.given.map((vote) => `${vote.person}, ${clock(vote.at, now)}`).join('; ')],
                ]}
              />
            </div>
            {grant.holds && <button type="button" onClick={() => setLeaving(grant)} aria-label={`Take back the grant for ${grant.terms.tool}`}>Take back</button>}
          </li>
        ))}
      </ul>
      <Give key={like?.id ?? ''} like={like} ahead={ahead} onDone={again} />
      <p class="dim"><Said text="or `banyan grants add TOOL --caller WHO --arg NAME=PATTERN`, with a key" /></p>
      {leaving && (
        <Confirm title="Take this grant back?" does="Take back" onDone={(yes) => (setLeaving(null), yes && revoke(leaving))}>
          Calls of {leaving.terms.tool} wait for somebody again. What has gone out by it stays as it is.
        </Confirm>
      )}
    </>
  );
}

function standing(grant: Grant, now: number): string {
  if (grant.holds) return `holds for ${duration(grant.terms.expires - now)} more`;
  if (grant.revoked !== null) return `taken back, ${clock(grant.revoked, now)}`;
  if (grant.terms.uses !== null && grant.used >= grant.terms.uses) return 'used up';
  return grant.terms.expires <= now ? 'expired' : 'holds no more: not enough of those who gave it may agree any more';
}

function Patterns({ terms }: { terms: Grant['terms'] }): JSX.Element {
  const named = Object.entries(terms.arguments);
  return (
    <>
      {named.map(([name, pattern], i) => <span key={name}>{i > 0 && ', '}<code>{name}</code> like <code>{pattern}</code></span>)}
      {named.length > 0 && ', '}{terms.any_other ? 'any others' : named.length > 0 ? 'no others' : 'none'}
    </>
  );
}
