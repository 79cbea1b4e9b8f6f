// Everything about one place of the tree: why it is as it is, since when, what comes next, and what can be done.
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { advise, standing } from './advice';
import { inbox, waitingAt } from './approval';
import { ask } from './api';
import { Budgets } from './budgets';
import { fetchTools, gate, tools as toolRows } from './gate';
import { GATE, PARENT } from './places';
import { Logs } from './logs';
import { Close, Confirm, Copy, Facts, Glyph, Said, Spark } from './parts';
import { write } from './route';
import type { BelowNode, Mount, Parent, Status } from './shapes';
import { useNow, useStore } from './store';
import { clock, counted, duration, millis } from './text';

export function Detail({ id, onClose }: { id: string; onClose: () => void }): JSX.Element | null {
  const { status, below, signedIn } = useStore(gate);
  if (!status) return null;
  const mount = status.mounts.find((m) => m.name === id);
  const node = below.find((n) => n.path === id);
  return (
    <aside class="detail" aria-label={`About ${id === GATE ? 'this gate' : id === PARENT ? 'the parent' : id}`}>
      <Close onClick={onClose} />
      {id === GATE || id === PARENT ? <GateDetail status={status} /> : mount ? <Server mount={mount} owner={signedIn} /> : node ? <Node node={node} /> : <p class="dim">`{id}` is not in the tree any more.</p>}
    </aside>
  );
}

function Server({ mount, owner }: { mount: Mount; owner: boolean }): JSX.Element {
  const { history } = useStore(gate);
  const now = useNow();
  const advice = advise(mount, owner);
  const by = mount.registered;
  return (
    <>
      <header>
        <h2>{mount.name}</h2>
        <p class={`state ${mount.state}`}>
          <Glyph state={mount.state} /> {mount.state} <span class="dim">for {duration(now - mount.since)}, since {clock(mount.since, now)}</span>
        </p>
      </header>
      <section class="why">
        <p><Said text={advice.why} /></p>
        {mount.error && <pre class="error" tabIndex={0} role="region" aria-label="What is wrong">{mount.error}</pre>}
        {mount.next_try !== null && mount.state !== 'ready' && <p>Next try {mount.next_try > now ? `in ${duration(mount.next_try - now)}` : 'now'}, tried again {counted(mount.restarts, 'time')} so far.</p>}
        {advice.steps.length > 0 && (
          <ol class="steps">
            {advice.steps.map((step) => <li key={step}><Said text={step} /></li>)}
          </ol>
        )}
        {mount.notes.map((note) => <p key={note} class="note">{note}</p>)}
      </section>
      <div class="row">
        {owner && !by && <Restart mount={mount} />}
        <a class="button" href={write('tools', `${mount.name}.`)}>{counted(mount.tools, 'tool')}</a>
      </div>
      <Facts
        of={[
          ['latency', mount.p50_ms !== null && <>{millis(mount.p50_ms)} <span class="dim">median of the last minute</span> <Spark values={history.get(mount.name) ?? []} /></>],
          ['in flight', mount.in_flight > 0 && counted(mount.in_flight, 'call')],
          ['protocol', `${mount.transport}${mount.version ? `, MCP ${mount.version}` : ''}${mount.gate ? ', a gate' : ''}`],
          ['offers', [counted(mount.tools, 'tool'), mount.prompts > 0 && counted(mount.prompts, 'prompt'), mount.resources > 0 && counted(mount.resources, 'resource')].filter(Boolean).join(', ')],
          ['approval', mount.asks && <>{ASKS[mount.asks]} <Waiting mount={mount.name} /></>],
          ['retries', mount.restarts > 0 && counted(mount.restarts, 'time')],
          [by ? 'registered by' : 'mounted by', by ? by.principal : mount.origin],
          ['authority', by?.authority && `${by.authority} (${by.proven ? 'proved' : 'not proved'})`],
          ['may be asked to', by?.auth_scope],
          ['heartbeat', by && by.heartbeat_interval_ms > 0 && `every ${duration(by.heartbeat_interval_ms / 1000)}`],
        ]}
      />
      {owner ? <Logs server={mount.name} transport={mount.transport} /> : <p class="dim"><Said text="Its log and a restart are for the gate's owner: sign in with `banyan console`." /></p>}
    </>
  );
}

const ASKS = { irreversible: 'for calls that change something for good', mutable: 'for all calls that change something', unlisted: 'for all calls, but of tools that the configuration lists as reading only' };

function Waiting({ mount }: { mount: string }): JSX.Element | null {
  const count = waitingAt(useStore(inbox), mount);
  return count === 0 ? null : <a href={write('approvals')}>{counted(count, 'call')} waiting</a>;
}

function Restart({ mount }: { mount: Mount }): JSX.Element {
  const [asks, setAsks] = useState(false);
  const [why, setWhy] = useState<string | null>(null);
  const restart = (): void => {
    setWhy(null);
    ask('POST', `/-/restart/${mount.name}`).catch((error: Error) => setWhy(error.message));
  };
  return (
    <>
      <button type="button" data-key="r" onClick={() => (mount.in_flight > 0 ? setAsks(true) : restart())}>Restart <kbd>r</kbd></button>
      {why && <p class="error" role="alert">{why}</p>}
      {asks && (
        <Confirm title={`Restart ${mount.name}?`} does="Restart" onDone={(yes) => (setAsks(false), yes && restart())}>
          {counted(mount.in_flight, 'call')} in flight will break off, and their callers can not know whether they took effect.
        </Confirm>
      )}
    </>
  );
}

function Node({ node }: { node: BelowNode }): JSX.Element {
  const rows = useStore(toolRows);
  useEffect(() => void (rows ?? fetchTools()), []);
  const here = rows?.filter((row) => row.dotted.startsWith(`${node.path}.`)) ?? [];
  return (
    <>
      <header>
        <h2>{node.path}</h2>
        <p class={`state ${node.degraded ? 'degraded' : 'ready'}`}><Glyph state={node.degraded ? 'degraded' : 'ready'} /> {node.degraded ? 'degraded: none of its tools is there at present' : 'there'}</p>
      </header>
      <p class="dim">Below another gate. This gate knows what is listed there, not why it is as it is: that gate's own console says so.</p>
      <Facts of={[['tools', String(node.tools)], ['hops', `${node.hops} (gates that a call passes, this one included)`]]} />
      <ul class="plain">
        {here.slice(0, 100).map((row) => <li key={row.dotted}><a href={write('tools', row.dotted)}>{row.dotted.slice(node.path.length + 1)}</a></li>)}
      </ul>
    </>
  );
}

function GateDetail({ status }: { status: Status }): JSX.Element {
  const { read, signedIn } = useStore(gate);
  const now = useNow();
  const snippet = JSON.stringify({ mcpServers: { banyan: { type: 'http', url: status.url } } });
  return (
    <>
      <header>
        <h2>{location.host}</h2>
        <p class="dim">this gate</p>
      </header>
      <Facts
        of={[
          ['up', duration(status.uptime_seconds + (now - read / 1000))],
          ['version', `${status.version}, process ${status.pid}`],
          ['serves', status.serves],
          ['sessions', String(status.sessions)],
          ['you', signedIn ? 'the owner, signed in' : 'a guest: you may read'],
        ]}
      />
      <Budgets of={status.budgets ?? []} />
      <section>
        <div class="row"><h3>Clients connect with</h3><Copy text={snippet} what="the snippet" /></div>
        <pre tabIndex={0} role="region" aria-label="What clients connect with">{snippet}</pre>
        <p class="dim"><Said text="or `banyan connect CLIENT` writes that into a client's own file." /></p>
      </section>
      {status.joined && (
        <section>
          <h3>Registered as {status.joined.segment}</h3>
          {status.joined.withheld > 0 && <p class="note">{counted(status.joined.withheld, 'tool')} of it the parent shows to nobody.</p>}
          {status.joined.parents.map((parent) => <ParentState key={parent.url} parent={parent} now={now} />)}
        </section>
      )}
    </>
  );
}

function ParentState({ parent, now }: { parent: Parent; now: number }): JSX.Element {
  const state = parent.state === 'registered' ? 'ready' : parent.state === 'idle' || parent.state === 'trying' ? 'starting' : 'failed';
  return (
    <div class="above">
      <p class={`state ${state}`}><Glyph state={state} /> {parent.url} <span class="dim">{standing(parent)} for {duration(now - parent.since)}</span></p>
      {parent.error && <pre class="error" tabIndex={0} role="region" aria-label="What is wrong">{parent.error}</pre>}
      {parent.hint && <p><Said text={parent.hint} /></p>}
    </div>
  );
}
