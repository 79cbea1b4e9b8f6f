// Begins: signs in, follows the gate, draws the frame around the views.
import { render } from 'preact';
import type { JSX } from 'preact';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { type Approval, followApprovals, inbox, waiting } from './approval';
import { Approvals } from './approvals';
import { Devices, devices, followDevices, unconfirmed } from './devices';
import { dismiss, follow, gate, signIn, signOut } from './gate';
import { Help } from './help';
import { type Binding, Keyboard, isTyping } from './keys';
import { Glyph, Said } from './parts';
import { Record } from './record';
import { heldOf, lookAtPins, pins } from './pins';
import { Rooms, followRooms, undecided } from './rooms';
import { followAddress, go, route, write } from './route';
import { Policy } from './rules';
import { Servers } from './servers';
import type { State } from './shapes';
import { useStore } from './store';
import './style.css';
import { theme, turn } from './theme';
import { counted } from './text';
import { Tools } from './tools';
import { Tree } from './tree';
import { Troubles } from './trouble';

interface View {
  name: string;
  title: string;
  key: string;
  /** Whether this page may see it. */
  isThere?: () => boolean;
  show: (props: { filter: string; states: ReadonlySet<State> }) => JSX.Element;
}

const VIEWS: View[] = [
  { name: 'tree', title: 'Tree', key: 't', show: (props) => <Tree {...props} /> },
  { name: 'servers', title: 'Servers', key: 's', show: (props) => <Servers {...props} /> },
  { name: 'tools', title: 'Tools', key: 'o', show: (props) => <Tools {...props} /> },
  { name: 'approvals', title: 'Approvals', key: 'a', isThere: () => inbox.value !== null, show: (props) => <Approvals {...props} /> },
  { name: 'devices', title: 'Changes', key: 'c', isThere: () => gate.value.signedIn && devices.value !== null, show: (props) => <Devices {...props} /> },
  { name: 'rooms', title: 'Rooms', key: 'm', isThere: () => gate.value.signedIn, show: (props) => <Rooms {...props} /> },
  { name: 'record', title: 'Record', key: 'r', isThere: () => gate.value.signedIn && gate.value.status?.audit !== undefined, show: (props) => <Record {...props} /> },
  { name: 'policy', title: 'Policy', key: 'p', isThere: () => gate.value.signedIn, show: (props) => <Policy {...props} /> },
];
const STATES: State[] = ['failed', 'degraded', 'starting', 'ready'];

function Console(): JSX.Element {
  const { status, link, why, unused, signedIn } = useStore(gate);
  const at = useStore(route);
  const held = heldOf(useStore(pins));
  const open = waiting(useStore(inbox));
  const proposed = useStore(undecided);
  const pending = unconfirmed(useStore(devices));
  const [filter, setFilter] = useState('');
  const [states, setStates] = useState<ReadonlySet<State>>(new Set());
  const [isHelp, setHelp] = useState(false);
  const field = useRef<HTMLInputElement>(null);
  const views = VIEWS.filter((one) => one.isThere?.() ?? true);
  const view = views.find((one) => one.name === at.view) ?? (VIEWS[0] as View);
  const bindings = useMemo<Binding[]>(
    () => [
      ...VIEWS.map((one) => ({ keys: `g ${one.key}`, does: `go to ${one.title.toLowerCase()}`, run: () => go(one.name) })),
      { keys: '/', does: 'filter what is shown', run: () => field.current?.focus() },
      { keys: 'r', does: 'restart the server that is open', run: () => document.querySelector<HTMLButtonElement>('[data-key="r"]')?.click() },
      { keys: 'p', does: 'propose a call in the room that is open', run: () => document.querySelector<HTMLButtonElement>('.room [data-key="p"]')?.click() },
      { keys: 'c', does: 'write in the room that is open', run: () => document.querySelector<HTMLElement>('[data-key="c"]')?.focus() },
      { keys: 'd', does: 'dark, light, or as the system has it', run: turn },
      { keys: '?', does: 'this help', run: () => setHelp(true) },
    ],
    [],
  );
  useEffect(() => listen(new Keyboard(() => bindings), setFilter), []);
  useEffect(() => {
    const bad = status?.mounts.filter((m) => m.state === 'failed' || m.state === 'degraded').length ?? 0;
    document.title = `${open > 0 ? `${counted(open, 'call')} waiting, ` : ''}${bad > 0 ? `(${bad}) ` : ''}Banyan ${location.host}`;
  }, [status, open]);
  // Definitions wait when a list is another: servers' notes then say so.
  const notes = status?.mounts.map((mount) => mount.notes.join()).join();
  useEffect(() => void (signedIn && lookAtPins().catch(() => undefined)), [signedIn, notes]);
  // A device is a server too, so another list of servers may bring the first one.
  const servers = status?.mounts.map((mount) => mount.name).join();
  useEffect(() => (signedIn ? followDevices() : undefined), [signedIn, servers]);
  // What is looked for in one view is not there in another. At once, so that nothing is lost of what is typed there next.
  useLayoutEffect(() => setFilter(''), [view.name]);
  const pick = (state: State): void => {
    const next = new Set(states);
    if (!next.delete(state)) next.add(state);
    setStates(next);
  };
  return (
    <>
      <a class="skip" href="#view" onClick={(event) => (event.preventDefault(), document.getElementById('view')?.focus())}>Skip to the view</a>
      <header class="bar">
        <a class="brand" href={write('tree')} aria-label="Banyan, to the tree"><Mark /> <b>Banyan</b></a>
        <span class="host">{location.host}</span>
        <Chips states={states} pick={pick} />
        <search>
          <input ref={field} type="search" class="filter" placeholder="Filter" aria-label="Filter" aria-keyshortcuts="/" value={filter} onInput={(event) => setFilter(event.currentTarget.value)} />
          <kbd aria-hidden="true">/</kbd>
        </search>
        <LinkState link={link} />
        <Theme />
        {signedIn && <button type="button" class="quiet wide" onClick={() => void signOut()}>Sign out</button>}
        <button type="button" class="quiet" onClick={() => setHelp(true)} aria-label="Help" aria-keyshortcuts="?">?</button>
      </header>
      <nav class="views" aria-label="Views">
        {views.map((one) => (
          <a key={one.name} href={write(one.name)} aria-current={one === view ? 'page' : undefined}>
            <span>{one.title}{one.name === 'approvals' && open + held > 0 && <b class="count">{open + held}</b>}{one.name === 'devices' && pending > 0 && <b class="count">{pending}</b>}{one.name === 'rooms' && proposed > 0 && <b class="count">{proposed}</b>}</span> <kbd aria-hidden="true">g {one.key}</kbd>
          </a>
        ))}
      </nav>
      <main id="view" tabIndex={-1} aria-label={view.title}>
        <h1 class="unseen">{view.title}</h1>
        {unused && <p class="notice unused" role="alert"><Said text={unused} /> <button type="button" class="quiet" onClick={dismiss}>Dismiss</button></p>}
        {status && <Troubles status={status} />}
        {why && <p class="notice" role="alert"><Said text={why} /></p>}
        {link === 'closed' ? <Closed /> : status ? view.show({ filter, states }) : <p class="empty">{link === 'lost' ? 'The gate does not answer. It is asked again by itself.' : 'Asking the gate…'}</p>}
      </main>
      {isHelp && <Help bindings={bindings} onClose={() => setHelp(false)} />}
    </>
  );
}

/** Tells of what waits also where nobody looks at the page, if the person has said that it may. */
function notify(event: string, approval: Approval): void {
  if (!['requested', 'expiring'].includes(event) || typeof Notification === 'undefined' || Notification.permission !== 'granted') return;
  const said = new Notification(event === 'requested' ? `${approval.caller} waits for you` : 'A call is about to expire', { body: approval.tool, tag: approval.id });
  said.onclick = () => (window.focus(), go('approvals', approval.id));
}

/** Keys of the whole page. */
function listen(keyboard: Keyboard, setFilter: (text: string) => void): () => void {
  const pressed = (event: KeyboardEvent): void => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]')) return;
    if (event.key === 'Escape') return escape(event, setFilter);
    if (isTyping(event.target)) return;
    const found = keyboard.press(event.key, event.timeStamp);
    if (!found) return;
    event.preventDefault();
    found.run();
  };
  addEventListener('keydown', pressed);
  return () => removeEventListener('keydown', pressed);
}

/** One step back: out of the field, then the filter, then what is open. */
function escape(event: KeyboardEvent, setFilter: (text: string) => void): void {
  if (event.target instanceof HTMLElement && isTyping(event.target)) {
    const isFilter = event.target.classList.contains('filter');
    event.target.blur();
    if (isFilter) setFilter('');
    document.querySelector<HTMLElement>('[role="tree"], .canvas[tabindex]')?.focus({ preventScroll: true });
  } else if (route.value.what) go(route.value.view);
  else setFilter('');
}

/** How many servers are in each state; a click leaves only those. */
function Chips({ states, pick }: { states: ReadonlySet<State>; pick: (state: State) => void }): JSX.Element {
  const { status } = useStore(gate);
  return (
    <div class="chips" role="group" aria-label="Servers by state">
      {STATES.map((state) => {
        const count = status?.mounts.filter((m) => m.state === state).length ?? 0;
        if (count === 0 && !states.has(state)) return null;
        return (
          <button key={state} type="button" class={`chip ${state}`} aria-pressed={states.has(state)} onClick={() => pick(state)}>
            <Glyph state={state} /> {count} <span class="word">{state}</span>
          </button>
        );
      })}
    </div>
  );
}

function LinkState({ link }: { link: string }): JSX.Element {
  const said = { live: 'live', connecting: 'connecting', lost: 'not connected', closed: 'signed out' }[link] ?? link;
  return <span class={`link ${link}`} role="status"><i aria-hidden="true" /> {said}</span>;
}

function Theme(): JSX.Element {
  const is = useStore(theme);
  return <button type="button" class="quiet wide" onClick={turn} aria-label={`Theme: ${is}`}>{is}</button>;
}

function Closed(): JSX.Element {
  return (
    <section class="closed">
      <Mark />
      <h2>Sign in</h2>
      <p>This gate shows itself to those who may call it. Run this on its machine, as the user who started it:</p>
      <pre tabIndex={0} role="region" aria-label="What to run">banyan console</pre>
      <p class="dim">It opens this page with a code that is good once and for two minutes. There is no password, and nothing to paste.</p>
    </section>
  );
}

function Mark(): JSX.Element {
  return (
    <svg class="mark" viewBox="0 0 32 32" width="20" height="20" aria-hidden="true" fill="none" stroke="currentColor" stroke-width="2.600" stroke-linecap="round">
      <path d="M3 13c4-9 22-9 26 0M16 7v21M9.500 8.500v9c0 5 2 6 3 10M22.500 8.500v9c0 5-2 6-3 10M3 13v8M29 13v8" />
    </svg>
  );
}

followAddress();
followRooms();
const root = document.getElementById('console');
if (root) render(<Console />, root);
void signIn().then(() => Promise.all([follow(), followApprovals(notify)]));
