// Being in a room: one connection, what has happened since, and what is said. It goes on while other views are looked at, and comes back by
// itself where it can. What a message means is decided in `participant.ts`; nothing is shown here.
import { Refusal, ask } from './api';
import { elements, members } from './json';
import { type Envelope, type Heard, type Mismatch, Participant, type Thread, read } from './participant';
import { Store } from './store';

/** So much is kept of what happened; the oldest goes first. */
export const MOST = 500;
/** Kinds of messages that are remembered. */
const KINDS = 300;
/** So many messages from before are wanted, where the room keeps any. */
const PAST = 200;
/** Of so many messages it is known that they were heard. */
const HEARD = 2000;
/** Characters of chat that are kept. */
const TEXT = 2 << 20;
/** What happens within so many milliseconds is drawn at once. */
const DRAWN = 30;
const PROTOCOL = 'mcpx.v0.1';
/** How a gate closes a connection that is not to be opened again by itself: whoever is there decides. */
const FINAL: Record<number, string> = {
  1008: 'the gate does not let you in as before',
  4003: 'an admin has put you out',
  4009: 'somebody came in by this name elsewhere: another page, or a terminal',
};

type Members = Record<string, unknown>;

export type What =
  | { is: 'thread'; thread: Thread; number: number }
  | { is: 'chat'; from: string; to: string[]; text: string }
  | { is: 'moved'; who: string; came: boolean }
  | { is: 'may'; gained: string[]; lost: string[] }
  | { is: 'refused'; error: string; message: string; kind?: string }
  | { is: 'dropped'; from: string; why: Mismatch; times: number }
  | { is: 'odd'; from: string; kind: string; note: string; times: number }
  | { is: 'gap'; since: number; why: string }
  | { is: 'past'; count: number; more: boolean };

export type Moment = { key: number; at: number } & What;

export interface Seen {
  kind: string;
  times: number;
  from: Set<string>;
}

export interface Attended {
  standing: 'coming' | 'there' | 'lost' | 'over';
  why: string | null;
  me: string;
  moments: readonly Moment[];
  /** How many moments are not kept any more. */
  gone: number;
  /** Proposals that wait. */
  open: number;
  capabilities: readonly string[];
  present: ReadonlyMap<string, readonly string[]>;
}

export class Attendance {
  readonly participant = new Participant();
  readonly store: Store<Attended>;
  /** Which kinds were seen, and from whom. */
  readonly seen = new Map<string, Seen>();
  /** Proposals that others may have decided while nobody was here. */
  readonly doubtful = new WeakSet<Thread>();
  private readonly heard = new Set<string>();
  private moments: Moment[] = [];
  private shown = new WeakMap<Thread, Moment>();
  private socket: WebSocket | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private wait = 500;
  private key = 0;
  private gone = 0;
  private threads = 0;
  private text = 0;
  private lostAt: number | null = null;
  private dueDraw = false;
  private standing: Attended['standing'] = 'coming';
  private why: string | null = null;

  constructor(
    readonly room: string,
    readonly name: string,
  ) {
    this.store = new Store<Attended>(this.now());
  }

  /** Comes in; again, where it is out. */
  async open(): Promise<void> {
    clearTimeout(this.timer);
    this.set('coming', null);
    try {
      const { ticket } = await ask<{ ticket: string }>('POST', `/-/rooms/${encodeURIComponent(this.room)}/ticket`, { participant: this.name });
      if (this.standing !== 'coming') return;
      const address = new URL(`/ws?topic=${encodeURIComponent(this.room)}&also=mcp/reject,mcp/withdraw&history=${PAST}`, location.href);
      address.protocol = location.protocol === 'https:' ? 'wss:' : 'ws:';
      this.follow(new WebSocket(address, [PROTOCOL, `banyan-ticket.${ticket}`]));
    } catch (error) {
      const passing = !(error instanceof Refusal) || error.status === 0 || error.status >= 500;
      this.left(passing ? 'lost' : 'over', (error as Error).message);
    }
  }

  /** Under which number a proposal is shown here; `null`: it is not. */
  numberOf(proposal: string): number | null {
    const found = this.moments.find((one) => one.is === 'thread' && one.thread.proposal?.id === proposal);
    return found?.is === 'thread' ? found.number : null;
  }

  leave(): void {
    clearTimeout(this.timer);
    this.set('over', 'you left');
    this.socket?.close(1000);
  }

  chat(text: string): boolean {
    return this.send(this.participant.chat(text));
  }

  approve(thread: Thread, to: string[]): boolean {
    return this.send(this.participant.approve(thread, to));
  }

  reject(thread: Thread, reason: string): boolean {
    return this.send(this.participant.reject(thread, reason));
  }

  propose(to: string[], method: string, params: string | undefined): boolean {
    return this.send(this.participant.propose(to, method, params));
  }

  withdraw(thread: Thread): boolean {
    return this.send(this.participant.withdraw(thread));
  }

  listTools(of: string): boolean {
    return this.send(this.participant.request(of, 'tools/list'));
  }

  /** Time passes: proposals expire. */
  tick(now: number): void {
    const before = this.waiting();
    this.participant.threads.expire(now);
    if (this.waiting() !== before) this.draw();
  }

  private send(message: string | null): boolean {
    if (message === null || this.socket?.readyState !== WebSocket.OPEN) return false;
    this.socket.send(message);
    return true;
  }

  private follow(socket: WebSocket): void {
    this.socket = socket;
    socket.onmessage = (event) => typeof event.data === 'string' && this.socket === socket && this.hear(event.data, Date.now());
    socket.onclose = ({ code, reason }) => {
      if (this.socket !== socket) return;
      this.socket = null;
      if (this.standing === 'over') return;
      const said = FINAL[code];
      if (said) this.left('over', reason && code === 1008 ? reason : said);
      // A browser does not tell why a connection was not opened.
      else this.left('lost', reason || 'the connection to the gate is lost, or the room has no seat left');
    };
  }

  private left(standing: 'lost' | 'over', why: string): void {
    this.lostAt ??= this.participant.me === '' ? null : Date.now();
    if (standing === 'lost') {
      this.timer = setTimeout(() => void this.open(), this.wait);
      this.wait = Math.min(this.wait * 1.6, 10_000);
    }
    this.set(standing, why);
  }

  private set(standing: Attended['standing'], why: string | null): void {
    [this.standing, this.why] = [standing, why];
    this.draw();
  }

  /** A message came. */
  hear(text: string, now: number): void {
    const [before, was] = [this.participant.capabilities, this.participant.me];
    const { forgotten } = this.participant.threads;
    const heard = this.participant.hear(text, now);
    if (this.participant.threads.forgotten > forgotten) this.prune();
    if ('dropped' in heard) this.count({ is: 'dropped', from: heard.from, why: heard.dropped, times: 1 }, now);
    else this.take(heard, now, was === '' ? null : before);
    this.draw();
  }

  private take({ envelope, found }: Exclude<Heard, { dropped: Mismatch }>, now: number, before: string[] | null): void {
    const { kind, from, to, payload } = envelope;
    if (!kind.startsWith('system/')) this.saw(kind, from);
    if (kind === 'system/welcome') return this.welcomed(now, before);
    if (kind === 'system/presence') return this.moved(payload, now);
    if (kind === 'system/history') return this.past(envelope, now);
    this.remember(`${from}\n${envelope.id}`);
    if (kind === 'system/error') {
      const [error, message, tried] = [payload.error, payload.message, payload.attempted_kind].map((one) => (typeof one === 'string' ? one : ''));
      return this.add({ is: 'refused', error: error || 'refused', message: message || 'the gate refused a message', ...(tried ? { kind: tried } : {}) }, now);
    }
    if (kind === 'chat') return this.add({ is: 'chat', from, to, text: String(payload.text) }, now);
    const note = strange(found);
    if (note) this.count({ is: 'odd', from, kind, note, times: 1 }, now);
    const thread = found === 'stray' || found === 'repeated' || found === 'unrelated' ? undefined : this.participant.threads.of(envelope);
    const shown = thread && this.shown.get(thread);
    if (thread && !shown) this.add({ is: 'thread', thread, number: (this.threads += 1) }, now);
    // Another object, so that it is drawn again.
    else if (shown) this.renew(shown, { ...shown });
  }

  private renew(old: Moment, moment: Moment): void {
    const at = this.moments.indexOf(old);
    if (at >= 0) this.moments[at] = moment;
    if (moment.is === 'thread') this.shown.set(moment.thread, moment);
  }

  private welcomed(now: number, before: string[] | null): void {
    this.wait = 500;
    if (this.lostAt !== null) {
      this.add({ is: 'gap', since: this.lostAt, why: this.why ?? '' }, now);
      for (const thread of this.participant.threads.all) if (thread.state === 'open' || thread.state === 'requested') this.doubtful.add(thread);
      this.lostAt = null;
    } else if (before) {
      const after = this.participant.capabilities;
      const [gained, lost] = [after.filter((one) => !before.includes(one)), before.filter((one) => !after.includes(one))];
      if (gained.length + lost.length > 0) this.add({ is: 'may', gained, lost }, now);
    }
    this.set('there', null);
  }

  /** What the room has kept from before: what was not heard then is heard now. */
  private past({ raw, payload }: Envelope, now: number): void {
    const kept = elements(members(members(raw).get('payload') ?? '').get('messages') ?? '').map((one) => members(one));
    const fresh = kept.flatMap((one) => {
      const [text = '', at] = [one.get('envelope'), Date.parse(JSON.parse(one.get('at') ?? 'null') as string)];
      const envelope = read(text);
      const isNew = typeof envelope !== 'string' && !envelope.kind.startsWith('system/') && !this.heard.has(`${envelope.from}\n${envelope.id}`);
      return isNew ? [{ text, at: Number.isNaN(at) ? now : Math.min(at, now) }] : [];
    });
    if (fresh.length === 0) return;
    this.add({ is: 'past', count: fresh.length, more: payload.more === true }, now);
    for (const { text, at } of fresh) this.hear(text, at);
    this.participant.threads.expire(now);
  }

  private remember(message: string): void {
    this.heard.add(message);
    if (this.heard.size > HEARD) this.heard.delete(this.heard.values().next().value as string);
  }

  private moved(payload: Members, now: number): void {
    const who = (payload.participant as Members | undefined)?.id;
    if (typeof who === 'string' && (payload.event === 'join' || payload.event === 'leave')) this.add({ is: 'moved', who, came: payload.event === 'join' }, now);
  }

  private saw(kind: string, from: string): void {
    const seen = this.seen.get(kind) ?? { kind, times: 0, from: new Set<string>() };
    seen.times += 1;
    if (seen.from.size < KINDS) seen.from.add(from);
    this.seen.set(kind, seen);
    while (this.seen.size > KINDS) this.seen.delete(this.seen.keys().next().value as string);
  }

  /** The same again is counted, not said again. */
  private count(what: What & { times: number }, now: number): void {
    const last = this.moments.at(-1);
    const alike = (one: Moment): string => JSON.stringify({ ...one, key: 0, at: 0, times: 0 });
    if (last && 'times' in last && alike(last) === alike({ ...what, key: 0, at: 0 })) this.moments[this.moments.length - 1] = { ...last, times: last.times + 1 };
    else this.add(what, now);
  }

  private add(what: What, now: number): void {
    this.key += 1;
    const moment: Moment = { ...what, key: this.key, at: now };
    this.moments.push(moment);
    if (moment.is === 'thread') this.shown.set(moment.thread, moment);
    this.text += size(moment);
    while (this.moments.length > MOST || (this.text > TEXT && this.moments.length > 1)) {
      const oldest = this.moments.shift();
      this.text -= oldest ? size(oldest) : 0;
      this.gone += 1;
    }
  }

  /** Threads that are too old or too long to be kept are not kept here either. */
  private prune(): void {
    const kept = new Set(this.participant.threads.all);
    const before = this.moments.length;
    this.moments = this.moments.filter((moment) => moment.is !== 'thread' || kept.has(moment.thread));
    this.gone += before - this.moments.length;
  }

  private waiting(): number {
    return this.participant.threads.all.filter(({ state }) => state === 'open').length;
  }

  private now(): Attended {
    const { me, capabilities, present } = this.participant;
    const { standing, why, gone } = this;
    return { standing, why, me, gone, moments: [...this.moments], open: this.waiting(), capabilities, present: new Map(present) };
  }

  private draw(): void {
    if (this.dueDraw) return;
    this.dueDraw = true;
    setTimeout(() => {
      this.dueDraw = false;
      this.store.set(this.now());
    }, DRAWN);
  }
}

/** What there is to say of a message that does not belong where it claims to. */
function strange(found: string): string | null {
  if (found === 'late') return 'does what was decided before';
  if (found === 'deviates') return 'asks for something else than the proposal that it names';
  if (found === 'stray') return 'belongs to nothing that was seen here';
  return found === 'repeated' ? 'has the id of another message, and counts for nothing' : null;
}

function size(moment: Moment): number {
  if (moment.is === 'chat') return moment.text.length;
  return moment.is === 'refused' ? moment.message.length : 0;
}

/** The rooms that this page is in. */
export const attended = new Store<ReadonlyMap<string, Attendance>>(new Map());

export function attend(room: string, name: string): void {
  const attendance = attended.value.get(room) ?? new Attendance(room, name);
  attended.set(new Map(attended.value).set(room, attendance));
  void attendance.open();
}

export function goOut(room: string): void {
  attended.value.get(room)?.leave();
  const rest = new Map(attended.value);
  rest.delete(room);
  attended.set(rest);
}
