// The first page: whether the gate is used, by whom, whether it works, and what needs a person.
import type { JSX } from 'preact';
import { useMemo } from 'preact/hooks';
import { inbox, waiting } from './approval';
import { Budgets, spentMost } from './budgets';
import { Chart, type Series } from './chart';
import { gate } from './gate';
import { Copy, Glyph, Said } from './parts';
import { heldOf, pins } from './pins';
import { go, write } from './route';
import type { Mount, State } from './shapes';
import { ERRORS } from './search';
import { useNow, useStore } from './store';
import { clock, counted, duration, millis, short } from './text';
import { type Call, type Named, type Step, type Traffic, health, rate, share, useTraffic, wider } from './traffic';
import { troubles } from './trouble';

/** Steps of ten seconds in a bar of the chart. */
const BAR = 6;
const LIVE = 10;
const LISTED = 6;

export function Overview(): JSX.Element {
  const { status, signedIn } = useStore(gate);
  const traffic = useTraffic();
  return (
    <div class="canvas overview" tabIndex={0} role="region" aria-label="Overview of the gate">
      <Figures traffic={traffic} />
      {signedIn && traffic && (traffic.whole.calls > 0 ? <Charts traffic={traffic} /> : <Unused />)}
      {!signedIn && <Guest />}
      <div class="panels">
        <Attention />
        {traffic && traffic.whole.calls > 0 && <Busiest title="Callers" of={traffic.callers} to={(name) => write('record', `who:${name}`)} empty="Nobody has called within the hour." />}
        {traffic && traffic.whole.calls > 0 && <Busiest title="Tools" of={traffic.tools} to={(name) => write('tools', name)} empty="No tool was called within the hour." />}
      </div>
      {traffic && traffic.whole.calls > 0 && <Live calls={traffic.last} />}
      {(status?.budgets ?? []).length > 0 && <div class="panel"><Budgets of={status?.budgets ?? []} /></div>}
    </div>
  );
}

/** The numbers that answer first. */
function Figures({ traffic }: { traffic: Traffic | null }): JSX.Element {
  const { status } = useStore(gate);
  const open = waiting(useStore(inbox));
  const mounts = status?.mounts ?? [];
  const flight = mounts.reduce((sum, one) => sum + one.in_flight, 0);
  const most = spentMost(status?.budgets ?? []);
  const whole = traffic?.whole;
  return (
    <dl class="figures">
      {whole && traffic && (
        <>
          <Figure name="Calls" value={short(whole.calls)} more={`${rate(lately(traffic), traffic.lately_seconds)} now, ${flight} in flight`} to={write('record')} />
          <Figure name="Errors" value={share(whole.failed, whole.calls)} more={`${counted(whole.failed, 'error')}, ${short(whole.refused)} refused`} state={health(whole.calls, whole.failed)} to={status?.audit ? write('record', `outcome:${ERRORS}`) : write('servers')} />
          <Figure name="Latency" value={whole.p50_ms === undefined ? '–' : millis(whole.p50_ms)} more={whole.p95_ms === undefined ? 'no call has left' : `median; 95 % below ${millis(whole.p95_ms)}`} to={write('servers')} />
        </>
      )}
      <Figure name="Servers" {...standing(mounts)} to={write('servers')} />
      {traffic && <Figure name="Waiting" value={String(open)} more={open === 0 ? 'no call waits for a person' : `${counted(open, 'call')} for a person`} {...(open > 0 ? { state: 'degraded' as const } : {})} to={write('approvals')} />}
      {(status?.budgets ?? []).length > 0 && <Figure name="Budgets" value={`${most} %`} more="of the fullest is spent" {...(most >= 80 ? { state: most >= 100 ? ('failed' as const) : ('degraded' as const) } : {})} to={write('policy')} />}
    </dl>
  );
}

/** How servers stand, in a number and in words: a server that is being started is not ready. */
export function standing(mounts: Mount[]): { value: string; more: string; state: State } {
  const of = (...states: State[]): number => mounts.filter((one) => states.includes(one.state)).length;
  const [bad, starting] = [of('failed', 'degraded'), of('starting')];
  const words = [bad > 0 && `${bad} in trouble`, starting > 0 && `${starting} starting`].filter(Boolean);
  const tools = counted(mounts.reduce((sum, one) => sum + one.tools, 0), 'tool');
  return { value: `${of('ready')} / ${mounts.length}`, more: words.length > 0 ? words.join(', ') : `${tools}, none in trouble`, state: bad > 0 ? 'failed' : starting > 0 ? 'starting' : 'ready' };
}

/** What is said where nothing needs a person. */
export function calm(mounts: Mount[], isOwner: boolean): string {
  const starting = mounts.filter((one) => one.state === 'starting').length;
  if (mounts.length === 0) return isOwner ? 'No server is mounted.' : 'This gate shows you no server.';
  if (starting > 0) return `${counted(starting, 'server')} ${starting === 1 ? 'is' : 'are'} being started. No server has failed.`;
  return isOwner ? 'Every server answers, and nothing waits for a person.' : 'Every server that you may use answers.';
}

function lately(traffic: Traffic): number {
  return traffic.callers.reduce((sum, one) => sum + one.lately, 0);
}

function Figure({ name, value, more, state, to }: { name: string; value: string; more: string; state?: State; to: string }): JSX.Element {
  return (
    <div class={`figure ${state ?? ''}`}>
      <dt><a href={to}>{name}</a></dt>
      <dd><span class="value">{value}</span> <span class="dim">{state && state !== 'ready' && <Glyph state={state} />} {more}</span></dd>
    </div>
  );
}

function Charts({ traffic }: { traffic: Traffic }): JSX.Element {
  const { times, calls, latency, worst } = useMemo(() => {
    const steps = wider(traffic.steps, BAR);
    const width = traffic.step_seconds * BAR;
    const end = Math.floor(Date.now() / 1000 / width) * width;
    const of = (pick: (step: Step) => number | null): (number | null)[] => steps.map(pick);
    const calls: Series[] = [
      { label: 'calls', color: 'accent', as: 'bars', values: of((step) => step.calls) },
      { label: 'refused', color: 'degraded', as: 'bars', values: of((step) => (step.refused ? step.refused + step.failed : null)), told: of((step) => step.refused) },
      { label: 'failed', color: 'failed', as: 'bars', values: of((step) => step.failed || null) },
    ];
    const latency: Series[] = [
      { label: 'median', color: 'accent', as: 'line', values: of((step) => step.p50_ms ?? null) },
      { label: '95 %', color: 'degraded', as: 'line', values: of((step) => step.p95_ms ?? null) },
    ];
    return { times: steps.map((_, i) => end - (steps.length - 1 - i) * width), calls, latency, worst: Math.max(0, ...steps.map((step) => step.calls)) };
  }, [traffic]);
  const { whole } = traffic;
  return (
    <div class="charts">
      <Chart title="Calls a minute" times={times} series={calls} says={(value) => short(Math.round(value))} summary={`${counted(whole.calls, 'call')} within the hour, at most ${worst} a minute, ${whole.failed} failed, ${whole.refused} refused`} />
      <Chart title="Latency" times={times} series={latency} says={millis} summary={whole.p50_ms === undefined ? 'No call has left.' : `Median ${millis(whole.p50_ms)}, 95 % of the calls below ${millis(whole.p95_ms ?? whole.p50_ms)}`} />
    </div>
  );
}

/** Before the first call: what to do to see one. */
function Unused(): JSX.Element {
  const { status } = useStore(gate);
  const hasServers = (status?.mounts.length ?? 0) > 0;
  return (
    <section class="panel first" aria-label="First steps">
      <h2>{hasServers ? 'No call within the last hour' : 'No server yet'}</h2>
      <p class="dim">{hasServers ? 'Charts, callers and the live list appear with the first call.' : 'Add the first server, then connect a client to this gate.'}</p>
      <ol class="plain todo">
        {!hasServers && <Todo says="Add a server" command="banyan add files -- npx -y @modelcontextprotocol/server-filesystem ." />}
        <Todo says="Connect a client" command="banyan connect" />
        {hasServers && <li><span>Call a tool from here</span> <a href={write('tools')}>open the playground</a></li>}
      </ol>
    </section>
  );
}

function Todo({ says, command }: { says: string; command: string }): JSX.Element {
  return <li><span>{says}</span> <code>{command}</code> <Copy text={command} what={`the command: ${says.toLowerCase()}`} /></li>;
}

function Guest(): JSX.Element {
  return (
    <section class="panel first" aria-label="Sign in">
      <h2>Calls, errors and latency are for the owner</h2>
      <p><Said text="Run `banyan console` on the machine of this gate to sign in." /> <span class="dim">Servers and tools that you may use are shown without.</span></p>
    </section>
  );
}

interface Concern {
  key: string;
  state: State;
  what: string;
  why: string;
  to: string;
}

/** Waiting calls that are named one by one. */
const NAMED = 2;

/** What needs a person, the worst first. Waiting calls beyond the first two are one line, so that they hide nothing. */
export function concerns(mounts: Mount[], now: number, open: { tool: string; caller: string; id: string; expires: number }[], ahead: number): Concern[] {
  const of = (state: State): Concern[] => {
    const servers = mounts.filter((one) => one.state === state).sort((a, b) => b.since - a.since);
    return servers.map((one) => ({ key: one.name, state, what: one.name, why: one.error?.split('\n')[0] ?? `${state} for ${duration(now - one.since)}`, to: write('servers', one.name) }));
  };
  const rest = open.length - NAMED;
  const waiting = open.slice(0, NAMED).map((one): Concern => ({ key: one.id, state: 'degraded', what: one.tool, why: `${one.caller} waits for approval, ${duration(one.expires - now - ahead)} left`, to: write('approvals', one.id) }));
  if (rest > 0) waiting.push({ key: '@waiting', state: 'degraded', what: counted(rest, 'more call'), why: 'waiting for approval', to: write('approvals') });
  // Servers leave room for what waits.
  const failed = of('failed');
  return [...failed.slice(0, LISTED - waiting.length), ...waiting, ...failed.slice(LISTED - waiting.length), ...of('degraded')];
}

function Attention(): JSX.Element {
  const { status, below, signedIn } = useStore(gate);
  const found = useStore(inbox);
  const held = heldOf(useStore(pins));
  const now = useNow();
  const open = found?.approvals.filter((one) => one.standing === 'pending') ?? [];
  const all = concerns(status?.mounts ?? [], now, open, found?.ahead ?? 0);
  const away = below.filter((node) => node.degraded && !below.some((other) => other.degraded && other.path.startsWith(`${node.path}.`)));
  all.push(...away.map((node): Concern => ({ key: node.path, state: 'degraded', what: node.path, why: 'below another gate: none of its tools is there', to: write('tree', node.path) })));
  if (held > 0) all.unshift({ key: '@pins', state: 'degraded', what: counted(held, 'definition'), why: 'changed, and hidden from models until a person accepts', to: write('approvals') });
  for (const one of status?.budgets ?? []) {
    const most = spentMost([one]);
    if (most >= 80) all.push({ key: `${one.budget} ${one.principal}`, state: most >= 100 ? 'failed' : 'degraded', what: `Budget ${one.budget}`, why: `${one.principal} has spent ${most} %`, to: write('policy') });
  }
  const isWhole = status ? troubles(status, now).length === 0 : true;
  return (
    <section class="panel" aria-label="Needs attention">
      <header><h2>Needs attention</h2>{all.length > LISTED && <a href={write('servers')}>all {all.length}</a>}</header>
      {all.length === 0 ? (
        <p class="fine"><Glyph state={status?.mounts.some((one) => one.state === 'starting') ? 'starting' : 'ready'} /> {isWhole ? calm(status?.mounts ?? [], signedIn) : 'Servers are fine. The trouble of the gate itself stands above.'}</p>
      ) : (
        <ul class="plain concerns">
          {all.slice(0, LISTED).map((one) => (
            <li key={one.key}><a href={one.to}><Glyph state={one.state} /> <b class="name">{one.what}</b> <span class="dim">{one.why}</span></a></li>
          ))}
        </ul>
      )}
    </section>
  );
}

function Busiest({ title, of, to, empty }: { title: string; of: Named[]; to: (name: string) => string; empty: string }): JSX.Element {
  const most = Math.max(1, ...of.map((one) => one.calls));
  return (
    <section class="panel" aria-label={title}>
      <header><h2>{title}</h2><span class="dim">calls in the hour</span></header>
      {of.length === 0 && <p class="dim">{empty}</p>}
      <ul class="plain ranks">
        {of.slice(0, LISTED).map((one) => (
          <li key={one.name}>
            {one.name === '' ? <span class="dim">all others</span> : <a class="name" href={to(one.name)}>{one.name}</a>}
            <span class="number">{short(one.calls)}{one.failed > 0 && <span class="error"> {short(one.failed)} failed</span>}</span>
            <span class="share" aria-hidden="true"><i style={{ width: `${(100 * one.calls) / most}%` }} /><i class="failed" style={{ width: `${(100 * one.failed) / most}%` }} /></span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Live({ calls }: { calls: Call[] }): JSX.Element {
  const now = useNow();
  const { status } = useStore(gate);
  const to = (one: Call): [string, string] | null => (one.outcome === 'held' ? ['approvals', ''] : status?.audit ? ['record', `call:${one.call}`] : null);
  return (
    <section class="panel live" aria-label="Latest calls">
      <header><h2>Latest calls</h2>{status?.audit && <a href={write('record')}>the record</a>}</header>
      <table class="servers calls">
        <thead><tr><th scope="col">When</th><th scope="col">Tool</th><th scope="col" class="wide">Caller</th><th scope="col">Outcome</th><th scope="col" class="number">Took</th></tr></thead>
        <tbody>
          {calls.slice(0, LIVE).map((one) => ({ one, at: to(one) })).map(({ one, at }) => (
            <tr key={one.call} class="fresh" onClick={() => at && go(...at)}>
              <td class="number">{clock(Math.floor(one.began / 1e6), now)}</td>
              <td class="cut name">{at ? <a href={write(...at)}>{one.route}</a> : one.route}</td>
              <td class="cut wide">{one.caller}</td>
              <td class={`state ${outcomeState(one)}`}><Glyph state={outcomeState(one)} /> {one.outcome.replace('_', ' ')}</td>
              <td class="number">{millis(one.took_us / 1000)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

export function outcomeState(one: Call): State {
  if (one.failed) return 'failed';
  return one.outcome === 'held' ? 'starting' : one.refused || one.outcome === 'cancelled' ? 'degraded' : 'ready';
}

