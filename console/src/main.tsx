// Begins: signs in, follows the gate, draws the frame around the views.
import { render } from 'preact';
import type { JSX } from 'preact';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { type Approval, followApprovals, inbox, waiting } from './approval';
import { Boundary } from './boundary';
import { devices, followDevices, unconfirmed } from './devices';
import { follow, gate, signIn, signOut, want } from './gate';
import { Help } from './help';
import { Icon } from './icons';
import { type Binding, Keyboard, isTyping } from './keys';
import { Glyph } from './parts';
import { heldOf, lookAtPins, pins } from './pins';
import { followRooms, undecided } from './rooms';
import { followAddress, go, route, write } from './route';
import type { State } from './shapes';
import { Mark, NoView, SignIn, Standing } from './standing';
import { useStore } from './store';
import './fonts.css';
import './style.css';
import './frame.css';
import './overview.css';
import './topology.css';
import { theme, turn } from './theme';
import { counted } from './text';
import { Troubles } from './trouble';
import { VIEWS, type View, viewOf } from './views';

const STATES: State[] = ['failed', 'degraded', 'starting', 'ready'];
/** How long what the gate has may take to be known, in milliseconds. */
const SOON = 1500;

function Console(): JSX.Element {
  const { status, link, signedIn } = useStore(gate);
  const at = useStore(route);
  const open = waiting(useStore(inbox));
  useStore(devices);
  const [filter, setFilter] = useState('');
  const [states, setStates] = useState<ReadonlySet<State>>(new Set());
  const [isHelp, setHelp] = useState(false);
  const field = useRef<HTMLInputElement>(null);
  const view = viewOf(at.view);
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
    document.title = `${open > 0 ? `${counted(open, 'call')} waiting, ` : ''}${bad > 0 ? `(${bad}) ` : ''}${view ? `${view.title} · ` : ''}Banyan ${location.host}`;
  }, [status, open, view]);
  // Definitions wait when a list is another: servers' notes then say so.
  const notes = status?.mounts.map((mount) => mount.notes.join()).join();
  useEffect(() => void (signedIn && lookAtPins().catch(() => undefined)), [signedIn, notes]);
  // A device is a server too, so another list of servers may bring the first one.
  const servers = status?.mounts.map((mount) => mount.name).join();
  useEffect(() => (signedIn ? followDevices() : undefined), [signedIn, servers]);
  // What is looked for in one view is not there in another. At once, so that nothing is lost of what is typed there next.
  useLayoutEffect(() => setFilter(''), [view?.name]);
  const pick = (state: State): void => {
    const next = new Set(states);
    if (!next.delete(state)) next.add(state);
    setStates(next);
    if (view?.name === 'overview') go('servers');
  };
  const isShown = link !== 'closed' && status !== null && view !== undefined && (view.isThere?.() ?? true);
  return (
    <>
      <a class="skip" href="#view" onClick={(event) => (event.preventDefault(), document.getElementById('view')?.focus())}>Skip to the view</a>
      <Side current={view} onHelp={() => setHelp(true)} />
      <main id="view" tabIndex={-1} aria-label={view?.title ?? 'Nothing'}>
        <div class="head">
          <div class="titles">
            <h1>{view?.title ?? 'Not found'}</h1>
            {view && <p class="purpose">{view.purpose}</p>}
          </div>
          {isShown && view.hasStates && <Chips states={states} pick={pick} />}
          {isShown && view.name !== 'overview' && (
            <search>
              <input ref={field} type="search" class="filter" placeholder="Filter" aria-label="Filter" aria-keyshortcuts="/" value={filter} onInput={(event) => setFilter(event.currentTarget.value)} />
              <kbd aria-hidden="true">/</kbd>
            </search>
          )}
          {isShown && view.action?.()}
        </div>
        <Standing />
        {status && <Troubles status={status} />}
        {isShown ? <Boundary of={`${at.view}/${at.what}`}>{view.show({ filter, states })}</Boundary> : <Instead view={view} name={at.view} />}
      </main>
      {isHelp && <Help bindings={bindings} onClose={() => setHelp(false)} />}
    </>
  );
}

/** What stands in place of a view that can not be shown. */
function Instead({ view, name }: { view: View | undefined; name: string }): JSX.Element {
  const { link, status, signedIn } = useStore(gate);
  const [isLate, setLate] = useState(false);
  useEffect(() => {
    setLate(false);
    const timer = setTimeout(() => setLate(true), SOON);
    return () => clearTimeout(timer);
  }, [name, signedIn]);
  const isClosed = link === 'closed';
  const wants = isClosed || (status !== null && view !== undefined && !signedIn);
  useEffect(() => {
    if (wants && location.hash.startsWith('#/')) want(location.hash);
  }, [wants, name]);
  if (wants) return <SignIn {...(view && !isClosed ? { view } : {})} />;
  if (!status) return <p class="empty">{link === 'lost' ? 'The gate does not answer. It is asked again by itself.' : 'Asking the gate…'}</p>;
  if (view && !isLate) return <p class="empty">Asking the gate…</p>;
  return <NoView view={view} name={name} />;
}

/** The views with what waits in each, and what concerns the page itself. */
function Side({ current, onHelp }: { current: View | undefined; onHelp: () => void }): JSX.Element {
  const { link, signedIn, status } = useStore(gate);
  const at = useStore(route);
  const counts: { [view: string]: number } = {
    approvals: waiting(useStore(inbox)) + heldOf(useStore(pins)),
    devices: unconfirmed(useStore(devices)),
    rooms: useStore(undecided),
  };
  const menu = useRef<HTMLDetailsElement>(null);
  useEffect(() => menu.current?.removeAttribute('open'), [at]);
  const own = (
    <>
      <Theme />
      <button type="button" class="quiet" onClick={onHelp} aria-keyshortcuts="?">Help <kbd aria-hidden="true">?</kbd></button>
      {signedIn && <button type="button" class="quiet" onClick={() => void signOut()}>Sign out</button>}
    </>
  );
  return (
    <header class="side">
      <div class="bar">
        <a class="brand" href={write('overview')} aria-label="Banyan, to the overview"><Mark /> <b>Banyan</b></a>
        <LinkState link={link} />
        <details class="menu" ref={menu}>
          <summary aria-label="Menu"><Icon name="menu" /></summary>
          <div class="own">{own}</div>
        </details>
      </div>
      <p class="host" title={status?.serves}>{location.host}</p>
      <nav class="views" aria-label="Views">
        {VIEWS.filter((one) => one.isThere?.() ?? true).map((one) => {
          const count = counts[one.name] ?? 0;
          return (
            <a key={one.name} href={write(one.name)} aria-current={one === current ? 'page' : undefined}>
              <Icon name={one.name} /> <span>{one.title}{count > 0 && <b class="count">{count}</b>}</span> <kbd aria-hidden="true">g {one.key}</kbd>
            </a>
          );
        })}
      </nav>
      <div class="own foot">{own}</div>
    </header>
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
  return <button type="button" class="quiet" onClick={turn} aria-label={`Theme: ${is}`}>Theme: {is}</button>;
}

followAddress();
followRooms();
const root = document.getElementById('console');
if (root) render(<Console />, root);
void signIn().then(() => Promise.all([follow(), followApprovals(notify)]));
