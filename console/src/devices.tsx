// Changes of network devices: whose they are, what they do, how long they have left, and the two answers.
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { Refusal, ask } from './api';
import { DiffText, Seen } from './differ';
import { Close, Confirm, Countdown, Facts, Glyph, Said } from './parts';
import { go, route, write } from './route';
import type { State } from './shapes';
import { Store, useNow, useStore } from './store';
import { clock, counted, duration } from './text';

/** A device that had a change: `banyan device list --json` has the same. */
export interface DeviceChange {
  device: string;
  phase: string;
  change: string;
  owner?: string;
  /** Moment of the rollback. */
  deadline?: string;
  seconds_left?: number;
  /** Why the device has not saved what was confirmed last: a restart would lose it. */
  unsaved?: string;
  reason?: { reason: string; detail?: string };
}

interface ShownChange extends DeviceChange {
  diff: string | null;
  diff_missing?: string;
}

/** How often the devices are looked at while somebody does. */
const PAUSE = 2000;
/** How often they are looked at for the number beside the name of the view. */
const REST = 15_000;
/** Phases in which something may still be said. */
const OPEN = ['open', 'armed', 'applied', 'confirming', 'rolling_back'];

/** `null`: this page may not know, or there is no device. */
export const devices = new Store<DeviceChange[] | null>(null);

export async function lookAtDevices(): Promise<void> {
  const found = await ask<{ devices: DeviceChange[]; known: number }>('GET', '/-/devices').catch((error: unknown) => {
    if (error instanceof Refusal && error.status === 0) throw error;
    return null;
  });
  devices.set(found && found.known > 0 ? found.devices : null);
}

/** Seconds that a change had left when it was seen first, by its id: the whole of what runs down. */
const whole = new Map<string, number>();

function wholeOf(one: DeviceChange): number {
  const seen = Math.max(whole.get(one.change) ?? 0, one.seconds_left ?? 1);
  whole.set(one.change, seen);
  return seen;
}

/** Looks again and again while there are devices, until told to stop. */
export function followDevices(): () => void {
  const look = (): void => void lookAtDevices().catch(() => undefined);
  look();
  const timer = setInterval(() => devices.value !== null && look(), REST);
  return () => clearInterval(timer);
}

/** Those that go back by themselves unless somebody says otherwise. */
export function unconfirmed(of: DeviceChange[] | null): number {
  return of?.filter((one) => one.seconds_left !== undefined).length ?? 0;
}

function look(one: DeviceChange): State {
  if (one.seconds_left !== undefined) return 'degraded';
  if (OPEN.includes(one.phase)) return 'starting';
  if (one.unsaved) return 'degraded';
  return one.phase === 'confirmed' ? 'ready' : 'failed';
}

export function Devices({ filter }: { filter: string }): JSX.Element {
  const { what } = useStore(route);
  const all = useStore(devices) ?? [];
  const text = filter.trim().toLowerCase();
  const found = all.filter((one) => `${one.device} ${one.owner ?? ''} ${one.phase}`.toLowerCase().includes(text));
  const [open, over] = [found.filter((one) => OPEN.includes(one.phase)), found.filter((one) => !OPEN.includes(one.phase))];
  useEffect(() => {
    const timer = setInterval(() => void lookAtDevices().catch(() => undefined), PAUSE);
    return () => clearInterval(timer);
  }, []);
  return (
    <div class={`split tools ${what ? 'with-detail' : ''}`}>
      <div class="names inbox">
        <p class="sum">{counted(open.length, 'change')} under way</p>
        <div class="canvas" tabIndex={0} role="region" aria-label="Devices">
          {open.length === 0 && <p class="empty">No device is being changed.</p>}
          <ul class="plain flow">{open.map((one) => <Line key={one.device} one={one} isOpen={one.device === what} />)}</ul>
          {over.length > 0 && <h2 class="part">Before</h2>}
          <ul class="plain flow">{over.map((one) => <Line key={one.device} one={one} isOpen={one.device === what} />)}</ul>
        </div>
      </div>
      {what ? (
        <section class="detail one" aria-label="About this change">
          <Close onClick={() => go('devices')} />
          <One key={what} device={what} />
        </section>
      ) : (
        <section class="detail one beside" aria-label="What changes are">
          <header><h2>Choose a change</h2></header>
          <p>A change of a network device shows its diff and the time that is left. Unless somebody keeps it, the old configuration comes back by itself.</p>
        </section>
      )}
    </div>
  );
}

function Line({ one, isOpen }: { one: DeviceChange; isOpen: boolean }): JSX.Element {
  const now = useNow();
  return (
    <li>
      <a href={write('devices', one.device)} aria-current={isOpen ? 'true' : undefined}>
        <span class="name"><Glyph state={look(one)} /> {one.device}</span>
        <span class="dim">{one.phase.replace('_', ' ')}{one.unsaved ? ', not saved' : ''}{one.owner ? `, ${one.owner}` : ''}</span>
        {one.deadline && <span class="number">{duration(Date.parse(one.deadline) / 1000 - now)}</span>}
      </a>
    </li>
  );
}

const MEANS: Record<string, string> = {
  open: 'A candidate: nothing of it runs on the device.',
  armed: 'It is being applied.',
  applied: 'It runs, and goes back by itself unless it is kept in time.',
  confirming: 'It is being kept.',
  confirmed: 'It was kept.',
  rolling_back: 'The old configuration is coming back.',
  rolled_back: 'The old configuration runs again.',
  overtaken: 'Neither it nor the old configuration runs as a whole: somebody else has changed the device.',
  discarded: 'Its candidate was let go of.',
};

/** Reasons of a rollback. */
const WHY: Record<string, (detail: string) => string> = {
  timeout: () => 'nobody kept it in time',
  asked: (detail) => `${detail} asked for it`,
  differs: (detail) => detail,
  overtaken: (detail) => detail,
  interrupted: () => 'it broke off on the way',
};

function One({ device }: { device: string }): JSX.Element {
  const now = useNow();
  const [one, setOne] = useState<ShownChange | null>(null);
  const [why, setWhy] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  const [asked, setAsked] = useState<'confirm' | 'rollback' | null>(null);
  const again = (): Promise<void> => ask<ShownChange>('GET', `/-/devices/${encodeURIComponent(device)}`).then(setOne);
  useEffect(() => {
    const work = (): void => void again().catch((error: Error) => setWhy(error.message));
    work();
    const timer = setInterval(work, PAUSE);
    return () => clearInterval(timer);
  }, [device]);
  const act = (what: 'confirm' | 'rollback' | 'take-over'): void => {
    setBusy(true);
    setWhy(null);
    ask('POST', `/-/devices/${encodeURIComponent(device)}/${what}`).then(() => Promise.all([again(), lookAtDevices()])).catch((error: Error) => setWhy(error.message)).finally(() => setBusy(false));
  };
  if (!one) return <p class="empty">{why ?? 'Asking the device…'}</p>;
  const until = one.deadline ? Date.parse(one.deadline) / 1000 : null;
  const isOpen = OPEN.includes(one.phase);
  return (
    <>
      <header>
        <h2>{device}</h2>
        <p class={`state ${look(one)}`}><Glyph state={look(one)} /> {MEANS[one.phase] ?? one.phase.replace('_', ' ')}</p>
      </header>
      <Facts
        of={[
          ['change', one.change && <code>{one.change}</code>],
          ['made by', one.owner && <b><Seen text={one.owner} /></b>],
          ['goes back', until !== null && clock(until, now)],
          ['time left', until !== null && <Countdown from={until - wholeOf(one)} to={until} now={now} />],
          ['because', one.reason !== undefined && <Seen text={WHY[one.reason.reason]?.(one.reason.detail ?? '') ?? one.reason.reason} />],
        ]}
      />
      {one.diff !== null && (
        <section aria-label="Difference"><h3>{until === null ? 'What it would change' : 'What it has changed'}, without secrets</h3><DiffText text={one.diff.trimEnd()} /></section>
      )}
      {one.unsaved && (
        <section class="decide" aria-label="Not saved">
          <p class="note">The device has not saved what was confirmed last, which a restart there would lose: <Seen text={one.unsaved} />. Saving is tried again while the device is served and runs it.</p>
          <div class="row"><button type="button" disabled={isBusy || until !== null} onClick={() => act('confirm')}>Save what runs now</button></div>
        </section>
      )}
      {one.diff_missing && <p class="note">There is no difference to be seen: {one.diff_missing}.</p>}
      {isOpen && (
        <section class="decide" aria-label="Decide">
          <div class="row">
            {until !== null && <button type="button" class="strong" disabled={isBusy} onClick={() => setAsked('confirm')}>Keep the change</button>}
            {until !== null && <button type="button" disabled={isBusy} onClick={() => setAsked('rollback')}>Bring the old configuration back</button>}
            <button type="button" class="quiet" disabled={isBusy} onClick={() => act('take-over')}>Take it over</button>
            <span class="dim"><Said text={until === null ? `or \`banyan device take-over ${device}\`` : `or \`banyan device confirm ${device}\``} /></span>
          </div>
        </section>
      )}
      {why && <p class="error" role="alert">{why}</p>}
      {asked && (
        <Confirm
          title={asked === 'confirm' ? `Keep the change of ${device}?` : `Bring the old configuration of ${device} back?`}
          does={asked === 'confirm' ? 'Keep it' : 'Bring it back'}
          onDone={(yes) => (setAsked(null), yes && act(asked))}
        >
          {asked === 'confirm' ? 'The device saves it, and nothing takes it back by itself any more.' : 'What the change did is undone at once.'}
        </Confirm>
      )}
    </>
  );
}
