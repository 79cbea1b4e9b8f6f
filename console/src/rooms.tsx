// Rooms: which there are, and the one that is looked at. Being in one goes on while other views are.
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { useAsked } from './asked';
import { type Attendance, attend, attended, goOut } from './attendance';
import { Confirm, Glyph, Said } from './parts';
import { type Person, People } from './people';
import { go, route, write } from './route';
import { type RoomStatus } from './shapes';
import { Store, useStore } from './store';
import { counted } from './text';
import { Talk } from './talk';

const NAME = 'banyan-rooms-name';
const IN = 'banyan-rooms';
const EVERY = 5;

/** Proposals that wait in the rooms that this page is in. */
export const undecided = new Store(0);

/** The rooms that this tab was in before it was loaded anew, and by which names. */
function before(): Record<string, string> {
  try {
    const kept: unknown = JSON.parse(sessionStorage.getItem(IN) ?? '{}');
    return typeof kept === 'object' && kept !== null ? (kept as Record<string, string>) : {};
  } catch {
    return {};
  }
}

function remember(room: string, name: string | null): void {
  const { [room]: _, ...rest } = before();
  sessionStorage.setItem(IN, JSON.stringify(name === null ? rest : { ...rest, [room]: name }));
}

/** Counts what waits, and lets time pass, for as long as the page lives. */
export function followRooms(): void {
  const count = (): void => undecided.set([...attended.value.values()].reduce((sum, one) => sum + one.store.value.open, 0));
  const followed = new Set<Attendance>();
  attended.follow(() => {
    for (const one of attended.value.values()) if (!followed.has(one)) (followed.add(one), one.store.follow(count));
    count();
  });
  setInterval(() => [...attended.value.values()].forEach((one) => one.tick(Date.now())), 1000);
}

export function Rooms({ filter }: { filter: string }): JSX.Element {
  const { what } = useStore(route);
  const found = useAsked<{ rooms: RoomStatus[] }>('/-/rooms', EVERY);
  const inside = useStore(attended);
  const text = filter.trim().toLowerCase();
  const rooms = found.value?.rooms.filter((one) => what !== '' || one.name.toLowerCase().includes(text)) ?? [];
  return (
    <div class={`split tools rooms ${what ? 'with-detail' : ''}`}>
      <div class="names inbox">
        <p class="sum">{counted(found.value?.rooms.length ?? 0, 'room')}</p>
        <div class="canvas" tabIndex={0} role="region" aria-label="Rooms">
          {found.why && <p class="error" role="alert">{found.why}</p>}
          {found.value?.rooms.length === 0 && <p class="empty"><Said text="A section `[room.NAME]` in banyan.toml makes a room." /></p>}
          <ul class="plain flow">{rooms.map((one) => <Line key={one.name} room={one} inside={inside.get(one.name)} isOpen={one.name === what} />)}</ul>
        </div>
      </div>
      {what ? (
        <One key={what} room={what} status={found.value?.rooms.find((one) => one.name === what)} inside={inside.get(what)} filter={text} />
      ) : (
        <section class="detail one beside" aria-label="What rooms are">
          <header><h2>{found.value?.rooms.length === 0 ? 'This gate has no rooms' : 'Choose a room'}</h2></header>
          <p>People and agents meet in a room. Agents propose what they want done. People approve or reject it here, and everybody sees the outcome.</p>
          {found.value?.rooms.length === 0 && <pre tabIndex={0} role="region" aria-label="What makes a room">{'[room.ops]            # in banyan.toml\n\nbanyan room join ops  # or come in here'}</pre>}
        </section>
      )}
    </div>
  );
}

function Line({ room, inside, isOpen }: { room: RoomStatus; inside: Attendance | undefined; isOpen: boolean }): JSX.Element {
  const isLive = room.participants > 0;
  return (
    <li>
      <a href={write('rooms', room.name)} aria-current={isOpen ? 'true' : undefined}>
        <span class="name"><Glyph state={isLive ? 'ready' : 'starting'} /> {room.name}</span>
        <span class="dim">{isLive ? `${counted(room.participants, 'participant')}, ${counted(room.messages, 'message')}` : 'nobody is there'}{room.refused > 0 && `, ${room.refused} refused`}{room.cut > 0 && `, ${room.cut} cut off`}</span>
        <span class="badge">{inside ? <Inside room={inside} /> : room.access}</span>
      </a>
    </li>
  );
}

function Inside({ room }: { room: Attendance }): JSX.Element {
  const { standing, open } = useStore(room.store);
  if (standing !== 'there') return <>{standing === 'over' ? 'out' : 'not connected'}</>;
  return <>{open > 0 ? `${open} waiting` : 'you are in'}</>;
}

function One({ room, status, inside, filter }: { room: string; status: RoomStatus | undefined; inside: Attendance | undefined; filter: string }): JSX.Element {
  const there = useAsked<{ participants: Person[] }>(`/-/rooms/${encodeURIComponent(room)}`, EVERY);
  const people = there.value?.participants ?? [];
  const again = before()[room];
  useEffect(() => void (again !== undefined && !inside && attend(room, again)), [room]);
  const enter = (name: string): void => {
    localStorage.setItem(NAME, name);
    remember(room, name);
    attend(room, name);
  };
  const leave = (): void => {
    remember(room, null);
    goOut(room);
  };
  return (
    <section class="detail one room" aria-label={`Room ${room}`}>
      {inside ? (
        <Talk room={inside} people={people} status={status} filter={filter} onLeave={leave} onMoved={there.again} />
      ) : (
        <>
          <header class="row"><h2>{room}</h2><button type="button" class="quiet back" onClick={() => go('rooms')} aria-keyshortcuts="Escape">All rooms</button></header>
          {again === undefined && <Enter room={room} people={people} onEnter={enter} />}
          <section aria-label="Who is here"><h3>Who is here</h3><People people={people} room={room} inside={undefined} onChanged={there.again} /></section>
        </>
      )}
    </section>
  );
}

/** Comes in by a name that is nobody else's, or that somebody agrees to take over. */
function Enter({ room, people, onEnter }: { room: string; people: Person[]; onEnter: (name: string) => void }): JSX.Element {
  const [name, setName] = useState(localStorage.getItem(NAME) ?? '');
  const [isAsking, setAsking] = useState(false);
  const wanted = name.trim();
  const submit = (): void => {
    if (wanted === '') return;
    if (people.some((one) => one.id === wanted)) setAsking(true);
    else onEnter(wanted);
  };
  return (
    <>
      <form class="play" aria-label="Come in" onSubmit={(event) => (event.preventDefault(), submit())}>
        <div class="field">
          <label for="room-name">Your name in this room <span class="dim">everybody there sees it</span></label>
          <input id="room-name" type="text" required maxLength={128} autocomplete="nickname" value={name} onInput={(event) => setName(event.currentTarget.value)} />
        </div>
        <div class="row"><button type="submit" class="strong">Come in</button> <span class="dim"><Said text={`or \`banyan room join ${room}\``} /></span></div>
        <p class="dim">What was said before you come in is shown only where the room keeps a history.</p>
      </form>
      {isAsking && (
        <Confirm title={`Come in as ${wanted}?`} does="Come in all the same" onDone={(yes) => (setAsking(false), yes && onEnter(wanted))}>
          {wanted} is in this room already. If that is you in another place, you go on here and are put out there. If it is somebody else, choose another name.
        </Confirm>
      )}
    </>
  );
}
