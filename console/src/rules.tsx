// The policy: its rules with what they decided lately, each decision with why, and what callers have spent.
import type { JSX } from 'preact';
import { useAsked } from './asked';
import { Budgets } from './budgets';
import { gate } from './gate';
import { Close, Facts, Glyph, Said } from './parts';
import { go, route, write } from './route';
import type { State } from './shapes';
import { useNow, useStore } from './store';
import { clock, counted, duration } from './text';

interface Rule {
  id: string;
  line: number;
  effect: 'permit' | 'forbid';
  gate: boolean;
  shadow: boolean;
  description: string | null;
  remedy: string | null;
  scope: string | null;
  text: string;
  made: number;
  would: number;
}

interface Rules {
  file?: string;
  version?: string;
  rules: Rule[];
}

type Brief = Pick<Rule, 'id' | 'line' | 'remedy' | 'text'>;

interface Decision {
  id: string;
  at: number;
  principal: string;
  kind: string;
  groups: string[];
  client: string;
  action: string;
  resource: string;
  /** What else rules may have read. */
  inputs?: Record<string, string>;
  effect: 'allow' | 'gate' | 'deny';
  cause: string;
  error?: string;
  rules: Brief[];
  shadow?: { effect: string; cause: string; rules: Brief[] };
}

const WHY: { [cause: string]: string } = {
  forbidden: 'these rules forbid it', gated: 'these rules want somebody to agree first', not_permitted: 'no rule permits it', permitted: 'these rules permit it',
  policy_error: 'a rule could not be evaluated, and then nothing is allowed', unknown: 'there is nothing of that name',
};
const DID: Record<Decision['effect'], string> = { allow: 'allowed', gate: 'held for somebody', deny: 'refused' };
const LOOK: Record<Decision['effect'], State> = { allow: 'ready', gate: 'degraded', deny: 'failed' };
const EVERY = 5;

export function Policy({ filter }: { filter: string }): JSX.Element {
  const { what } = useStore(route);
  const rules = useAsked<Rules>('/-/policy', EVERY);
  const lately = useAsked<{ decisions: Decision[] }>('/-/decisions', EVERY);
  const { status } = useStore(gate);
  const text = filter.trim().toLowerCase();
  const shownRules = rules.value?.rules.filter((rule) => `${rule.id} ${rule.text} ${rule.remedy ?? ''}`.toLowerCase().includes(text)) ?? [];
  const decisions = lately.value?.decisions.filter((one) => `${one.principal} ${one.resource} ${one.effect} ${one.cause} ${one.rules.map((rule) => rule.id).join(' ')}`.toLowerCase().includes(text)) ?? [];
  const rule = what.startsWith('rule:') ? rules.value?.rules.find((one) => one.id === what.slice(5)) : undefined;
  const decision = lately.value?.decisions.find((one) => one.id === what);
  return (
    <div class={`split tools ${what ? 'with-detail' : ''}`}>
      <div class="names inbox">
        <p class="sum">{rules.value?.file ? counted(rules.value.rules.length, 'rule') : 'No rules: everybody may do whatever is shown'}{rules.value?.file && <span class="dim name">{rules.value.file.split('/').at(-1)}</span>}</p>
        <div class="canvas" tabIndex={0} role="region" aria-label="Rules and decisions">
          {(rules.why ?? lately.why) && <p class="error" role="alert">{rules.why ?? lately.why}</p>}
          {rules.value && !rules.value.file && <p class="empty"><Said text="`banyan policy init` writes rules to begin with, and `[policy] file = …` puts them in force." /></p>}
          <ul class="plain flow">{shownRules.map((one) => <RuleLine key={one.id} rule={one} isOpen={one === rule} />)}</ul>
          <h2 class="part">Recent denials and approvals</h2>
          {lately.value && decisions.length === 0 && <p class="empty">No rule has denied or held a call lately.</p>}
          <ul class="plain flow">{grouped(decisions).map(({ one, count }) => <DecisionLine key={one.id} one={one} count={count} isOpen={decision !== undefined && alike(one) === alike(decision)} />)}</ul>
        </div>
      </div>
      {what ? (
        <section class="detail one" aria-label={rule ? 'About this rule' : 'About this decision'}>
          <Close onClick={() => go('policy')} />
          {rule ? <OneRule rule={rule} decisions={lately.value?.decisions ?? []} /> : decision ? <Explained one={decision} /> : lately.value && <p class="dim">The gate remembers nothing of that any more.</p>}
        </section>
      ) : (
        <section class="detail one beside" aria-label="What callers have spent">
          {(status?.budgets ?? []).length > 0 ? <Budgets of={status?.budgets ?? []} /> : (
            <>
              <header><h2>{rules.value?.file ? 'Choose a rule or a decision' : 'No rules are in force'}</h2></header>
              <p class="dim">{rules.value?.file ? 'A rule shows its text and what it decided. A decision shows which rules made it, and what helps.' : 'Every caller may use every tool that it is shown. Rules in Cedar permit, forbid, or ask a person first.'}</p>
              {rules.value && !rules.value.file && <pre tabIndex={0} role="region" aria-label="How rules are put in force">{'banyan policy init      # writes policy.cedar\n\n[policy]                # in banyan.toml\nfile = "policy.cedar"'}</pre>}
            </>
          )}
        </section>
      )}
    </div>
  );
}

/** What decisions have in common that are shown as one. */
function alike(one: Decision): string {
  return JSON.stringify([one.principal, one.resource, one.effect, one.cause, one.shadow?.effect, one.rules.map((rule) => rule.id), one.shadow?.rules.map((rule) => rule.id)]);
}

/** Equal decisions as one, the newest of each, with how many there are. */
function grouped(decisions: Decision[]): { one: Decision; count: number }[] {
  const groups = new Map<string, { one: Decision; count: number }>();
  for (const one of decisions) {
    const group = groups.get(alike(one));
    if (group) group.count += 1;
    else groups.set(alike(one), { one, count: 1 });
  }
  return [...groups.values()];
}

function RuleLine({ rule, isOpen }: { rule: Rule; isOpen: boolean }): JSX.Element {
  const does = rule.gate ? 'somebody has to agree' : rule.effect === 'permit' ? 'permits' : 'forbids';
  const count = rule.shadow ? rule.would : rule.made;
  return (
    <li>
      <a href={write('policy', `rule:${rule.id}`)} aria-current={isOpen ? 'true' : undefined}>
        <span class="name"><Glyph state={rule.gate ? 'degraded' : rule.effect === 'permit' ? 'ready' : 'failed'} /> {rule.id}</span>
        <span class="dim">{rule.description ?? does}</span>
        {(rule.shadow || count > 0) && <span class={`badge ${rule.shadow ? 'starting' : ''}`}>{rule.shadow ? `shadow: would ${count}` : `${count} lately`}</span>}
      </a>
    </li>
  );
}

function DecisionLine({ one, count, isOpen }: { one: Decision; count: number; isOpen: boolean }): JSX.Element {
  const now = useNow();
  return (
    <li>
      <a href={write('policy', one.id)} aria-current={isOpen ? 'true' : undefined}>
        <span class="name"><Glyph state={LOOK[one.effect]} /> {one.resource}{count > 1 && ` ×${count}`}</span>
        <span class="dim">{one.principal}: {one.shadow && one.effect === 'allow' ? `allowed, but ${one.shadow.rules.map((rule) => rule.id).join(', ')} would not` : `${DID[one.effect]}, ${one.rules.map((rule) => rule.id).join(', ') || WHY[one.cause]}`}</span>
        <span class="number">{duration(now - one.at)}</span>
      </a>
    </li>
  );
}

function OneRule({ rule, decisions }: { rule: Rule; decisions: Decision[] }): JSX.Element {
  const own = decisions.filter((one) => [...one.rules, ...(one.shadow?.rules ?? [])].some((by) => by.id === rule.id));
  return (
    <>
      <header>
        <h2>{rule.id}</h2>
        {rule.description && <p>{rule.description}</p>}
        <p class="badges">
          <span class={`badge ${rule.effect === 'permit' ? 'ready' : 'failed'}`}>{rule.effect}</span>
          {rule.gate && <span class="badge degraded">somebody has to agree</span>}
          {rule.shadow && <span class="badge starting">shadow: only tried</span>}
        </p>
      </header>
      <Facts
        of={[
          ['line', String(rule.line)],
          ['what helps', rule.remedy],
          ['scope', rule.scope && <code>{rule.scope}</code>],
          ['lately', rule.shadow ? `it would have changed ${counted(rule.would, 'decision')}` : `it made ${counted(rule.made, 'decision')} that were not simply allowed`],
        ]}
      />
      <pre class="rule" tabIndex={0} role="region" aria-label="The rule">{rule.text}</pre>
      {own.length > 0 && <section aria-label="Its decisions"><h3>Lately</h3><ul class="plain flow lines">{grouped(own).slice(0, 20).map(({ one, count }) => <DecisionLine key={one.id} one={one} count={count} isOpen={false} />)}</ul></section>}
    </>
  );
}

/** Why a call was decided as it was, and what helps: what `banyan explain` says. */
function Explained({ one }: { one: Decision }): JSX.Element {
  const now = useNow();
  return (
    <>
      <header>
        <h2>{one.resource}</h2>
        <p class={`state ${LOOK[one.effect]}`}><Glyph state={LOOK[one.effect]} /> {DID[one.effect]}: {WHY[one.cause] ?? one.cause}</p>
      </header>
      {one.error && <p class="error">{one.error}</p>}
      <Facts
        of={[
          ['who', <><b>{one.principal}</b> <span class="dim">{[one.kind !== one.principal && one.kind, one.groups.length > 0 && `in ${one.groups.join(', ')}`].filter(Boolean).join(', ')}</span></>],
          ['with', one.client],
          ['wanted to', `${one.action} ${one.resource}`],
          ['when', `${clock(one.at, now)}, ${duration(now - one.at)} ago`],
          ['decision', <code>{one.id}</code>],
          ...Object.entries(one.inputs ?? {}).map(([name, text]): [string, JSX.Element] => [name.replace('_', ' '), <code>{text}</code>]),
        ]}
      />
      {one.rules.map((rule) => <Cited key={rule.id} rule={rule} />)}
      {one.rules.length === 0 && one.cause === 'not_permitted' && <p>With rules in force, what none of them permits is refused. A rule that permits it would help.</p>}
      {one.shadow && (
        <section aria-label="In shadow mode">
          <h3>If the rules in shadow mode were in force: {one.shadow.effect}, {WHY[one.shadow.cause] ?? one.shadow.cause}</h3>
          {one.shadow.rules.map((rule) => <Cited key={rule.id} rule={rule} />)}
        </section>
      )}
    </>
  );
}

function Cited({ rule }: { rule: Brief }): JSX.Element {
  return (
    <section class="cited" aria-label={`Rule ${rule.id}`}>
      <p><a href={write('policy', `rule:${rule.id}`)}><b class="name">{rule.id}</b></a> <span class="dim">line {rule.line}</span></p>
      {rule.remedy && <p>What helps: {rule.remedy}</p>}
      <pre tabIndex={0} role="region" aria-label={`Text of ${rule.id}`}>{rule.text}</pre>
    </section>
  );
}
