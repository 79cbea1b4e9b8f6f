// One participant's side of a room (MCPx v0.1, 4.3 and 8.2): what comes is held against its kind before it is believed, answers find their
// requests, proposals wait and expire. Reads what the crate `room-proto` reads, by the same tables; opens no connection, decides nothing.
import { members as raw, pieces } from './json';

export const PROTOCOL = 'mcpx/v0.1';
const GATEWAY = 'system:gateway';
/** Milliseconds after which a proposal that nobody fulfilled has expired. */
export const EXPIRY = 300_000;
/** Threads that are kept, and characters of their messages: the oldest go first. */
const THREADS = 1000;
const TEXT = 8 << 20;

export interface Envelope {
  id: string;
  from: string;
  to: string[];
  kind: string;
  of?: string;
  payload: Record<string, unknown>;
  /** The message as it came. */
  raw: string;
  /** When it was seen, in milliseconds since 1970. */
  at: number;
}

/** Why a message is to be dropped. */
export type Mismatch = 'chat' | 'context' | 'envelope' | 'method' | 'reserved' | 'response' | 'unreadable';
export type State = 'answered' | 'expired' | 'open' | 'rejected' | 'requested' | 'withdrawn';

/** What became of a proposal or a request. */
export interface Thread {
  state: State;
  began: number;
  proposal?: Envelope;
  request?: Envelope;
  response?: Envelope;
  end?: Envelope;
}

export type Found = 'answered' | 'deviates' | 'ended' | 'fulfilled' | 'late' | 'proposed' | 'repeated' | 'requested' | 'stray' | 'unrelated';

type Members = Record<string, unknown>;
const isMembers = (value: unknown): value is Members => typeof value === 'object' && value !== null && !Array.isArray(value);
const members = (value: unknown): Members => (isMembers(value) ? value : {});
const isText = (value: unknown): value is string => typeof value === 'string' && value !== '';

/** Class, method and context. A context may hold colons. */
export function parts(kind: string): [string, string | undefined, string | undefined] {
  const [, name = '', method, context] = /^([^:]*)(?::([^:]*)(?::([^]*))?)?$/.exec(kind) ?? [];
  return [name, method, context];
}

const isReserved = (kind: string): boolean => /^(system|presence)([/:]|$)/.test(kind);

/** Whether one of the capabilities covers a kind (4.1). */
export function covers(patterns: readonly string[], kind: string): boolean {
  return !isReserved(kind) && patterns.some((pattern) => compiled(pattern).test(kind));
}

function compiled(pattern: string): RegExp {
  const text = /^[^:]*:[^:]*:\*$/.test(pattern) ? pattern.slice(0, -2) : pattern;
  const isOpen = text.endsWith('*');
  const literal = (part: string): string => part.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&');
  const inner = (isOpen ? text.slice(0, -1) : text).split('*').map(literal).join('[^:]*');
  const anyContext = text.split(':').length === 2 ? '(?::[^]*)?' : '';
  return new RegExp(`^${inner}${isOpen ? '[^]*' : anyContext}$`);
}

/** Reads one message; a word where it is none that can be believed. */
export function read(text: string): Envelope | Mismatch {
  let whole: unknown;
  try {
    whole = JSON.parse(text);
  } catch {
    return 'envelope';
  }
  if (isTwice(text)) return 'unreadable';
  const { protocol, id, from, to = [], kind, correlation_id: of, payload } = members(whole);
  const sound = protocol === PROTOCOL && isText(id) && isText(from) && isText(kind) && isMembers(payload);
  if (!sound || !Array.isArray(to) || !to.every(isText) || !(of === undefined || isText(of))) return 'envelope';
  const [name, method] = parts(kind);
  if (/^mcp\/(proposal|request|response)$/.test(name) && (!method || (name === 'mcp/response' && !of) || (name === 'mcp/proposal' && of))) return 'envelope';
  return { id, from, to, kind, payload, raw: text, at: 0, ...(of === undefined ? {} : { of }) };
}

/** The parameters of a call as they are written: what is agreed to goes out with every digit that it came with. */
export function params(envelope: Envelope): string | undefined {
  return raw(raw(envelope.raw).get('payload') ?? '').get('params');
}

/** The rule by which a call says that it was made, and who accepted that. */
export function ruleOf({ payload }: Envelope): { id: string; by?: string } | undefined {
  const { id, accepted_by: by } = members(members(members(payload.params)._meta)['io.banyan/rule']);
  return isText(id) ? { id, ...(isText(by) ? { by } : {}) } : undefined;
}

/** Whether a key stands twice in one object, at any depth: two readers would read two things. */
export function isTwice(text: string): boolean {
  const open: Set<string>[] = [];
  for (const piece of pieces(text)) {
    if (piece.kind === 'key') {
      const key: string = JSON.parse(piece.text);
      const keys = open.at(-1);
      if (keys?.has(key)) return true;
      keys?.add(key);
    } else if (piece.kind === 'mark') {
      for (const c of piece.text) {
        if (c === '{') open.push(new Set());
        else if (c === '}') open.pop();
      }
    }
  }
  return false;
}

/** Holds METHOD and CONTEXT of the kind against the payload (4.3). */
export function check({ from, kind, payload }: Envelope): Mismatch | null {
  const [name, method = '', context] = parts(kind);
  if (isReserved(kind) && from !== GATEWAY) return 'reserved';
  if (name === 'mcp/proposal' || name === 'mcp/request') {
    if (payload.method !== method) return 'method';
    return context === undefined || named(method, members(payload.params)) === context ? null : 'context';
  }
  if (name === 'mcp/response') return 'result' in payload === 'error' in payload ? 'response' : null;
  return kind === 'chat' && typeof payload.text !== 'string' ? 'chat' : null;
}

/** The tool, resource or prompt that a call is about. */
function named(method: string, params: Members): unknown {
  if (method === 'tools/call' || method === 'prompts/get') return params.name;
  if (/^resources\/(read|subscribe|unsubscribe)$/.test(method)) return params.uri;
  const about = members(params.ref);
  return method === 'completion/complete' ? (about.name ?? about.uri) : undefined;
}

/** The context that a kind has for params as they are written, with its colon. */
function contextOf(method: string, about: string | undefined): string {
  const name = named(method, members(JSON.parse(about ?? '{}')));
  return typeof name === 'string' ? `:${name}` : '';
}

/** What came of a request that is answered. */
export function isFailed({ payload }: Envelope): boolean {
  return 'error' in payload || members(payload.result).isError === true;
}

/** What became of what, from the messages in the order in which they came. */
export class Threads {
  readonly all: Thread[] = [];
  private readonly ids = new Map<string, Thread>();
  /** Characters of the messages that are kept. */
  private size = 0;
  /** How many threads are not kept any more. */
  forgotten = 0;

  take(envelope: Envelope, now: number): Found {
    const found = this.found(envelope, now);
    if (!['repeated', 'stray', 'unrelated'].includes(found)) this.size += length(envelope);
    while (this.all.length > THREADS || (this.size > TEXT && this.all.length > 1)) this.forget();
    return found;
  }

  private found(envelope: Envelope, now: number): Found {
    this.expire(now);
    const [name, method] = parts(envelope.kind);
    // A notification is nobody's to answer, and is asked for by nobody.
    if (name === 'mcp/request' && method?.startsWith('notifications/')) return 'unrelated';
    if (name === 'mcp/proposal') return this.begin(envelope, { state: 'open', began: now, proposal: envelope }) ? 'proposed' : 'repeated';
    if (name === 'mcp/request') return this.requested(envelope, now);
    const thread = this.ids.get(envelope.of ?? '');
    if (name === 'mcp/response') return answer(thread, envelope);
    if (name === 'mcp/reject' || name === 'mcp/withdraw') return end(thread, envelope, name === 'mcp/reject');
    return 'unrelated';
  }

  expire(now: number): void {
    for (const thread of this.all) if (thread.state === 'open' && thread.began + EXPIRY <= now) thread.state = 'expired';
  }

  private requested(envelope: Envelope, now: number): Found {
    const thread = this.ids.get(envelope.of ?? '');
    const { proposal } = thread ?? {};
    if (this.ids.has(envelope.id)) return 'repeated';
    const isSame = proposal && same(proposal, envelope);
    if (thread && proposal?.id === envelope.of && isSame && thread.state === 'open') {
      Object.assign(thread, { state: 'requested', request: envelope });
      this.ids.set(envelope.id, thread);
      return 'fulfilled';
    }
    this.begin(envelope, { state: 'requested', began: now, request: envelope });
    if (proposal?.id !== envelope.of || !proposal) return 'requested';
    return isSame ? 'late' : 'deviates';
  }

  /** The first message of an id has it. */
  private begin(envelope: Envelope, thread: Thread): boolean {
    if (this.ids.has(envelope.id)) return false;
    this.ids.set(envelope.id, thread);
    this.all.push(thread);
    return true;
  }

  private forget(): void {
    const oldest = this.all.shift();
    for (const step of [oldest?.proposal, oldest?.request]) if (step) this.ids.delete(step.id);
    for (const step of [oldest?.proposal, oldest?.request, oldest?.response, oldest?.end]) this.size -= step ? length(step) : 0;
    this.forgotten += 1;
  }

  /** What a message belongs to. */
  of(envelope: Envelope): Thread | undefined {
    return this.ids.get(envelope.id) ?? this.ids.get(envelope.of ?? '');
  }
}

const length = ({ raw }: Envelope): number => raw?.length ?? 0;

/** A call is the same with a CONTEXT in its kind and without: then the payload names the tool, resource or prompt. */
function same(proposal: Envelope, request: Envelope): boolean {
  const [[method, name], [asked, about]] = [operation(proposal), operation(request)];
  return method === asked && name === about;
}

function operation({ kind, payload }: Envelope): [string | undefined, unknown] {
  const [, method, context] = parts(kind);
  if (context !== undefined || method === undefined) return [method, context];
  const name = named(method, members(payload.params));
  return [method, typeof name === 'string' ? name : undefined];
}

function answer(thread: Thread | undefined, envelope: Envelope): Found {
  const { request } = thread ?? {};
  const isAsked = request?.to.length === 0 || request?.to.includes(envelope.from);
  const isAwaited = thread?.state === 'requested' && request?.id === envelope.of && isAsked;
  if (!thread || !request || !isAwaited || parts(request.kind)[1] !== parts(envelope.kind)[1]) return 'stray';
  Object.assign(thread, { state: 'answered', response: envelope });
  return 'answered';
}

/** Anybody speaks against a proposal; only its proposer takes it back. */
function end(thread: Thread | undefined, envelope: Envelope, rejects: boolean): Found {
  const isOpen = thread?.state === 'open' && thread.proposal?.id === envelope.of;
  if (!thread || !isOpen || !(rejects || thread.proposal?.from === envelope.from)) return 'stray';
  Object.assign(thread, { state: rejects ? 'rejected' : 'withdrawn', end: envelope });
  return 'ended';
}

export type Heard = { envelope: Envelope; found: Found } | { dropped: Mismatch; from: string };

export class Participant {
  me = '';
  capabilities: string[] = [];
  /** The others, and what each may send. */
  readonly present = new Map<string, string[]>();
  readonly threads = new Threads();
  /** How many messages of each sender did not hold; those that name none under an empty name. */
  readonly misbehaved = new Map<string, number>();

  constructor(private readonly fresh: () => string = () => crypto.randomUUID()) {}

  /** A message came. */
  hear(text: string, now: number): Heard {
    const envelope = read(text);
    const dropped = typeof envelope === 'string' ? envelope : check(envelope);
    if (typeof envelope === 'string' || dropped) {
      const from = typeof envelope === 'string' ? '' : envelope.from;
      if (this.misbehaved.has(from) || this.misbehaved.size < THREADS) this.misbehaved.set(from, (this.misbehaved.get(from) ?? 0) + 1);
      return { dropped: dropped ?? 'envelope', from };
    }
    envelope.at = now;
    if (envelope.kind === 'system/welcome') this.welcomed(envelope.payload);
    if (envelope.kind === 'system/presence') this.moved(envelope.payload);
    return { envelope, found: this.threads.take(envelope, now) };
  }

  chat(text: string, to: string[] = []): string | null {
    return this.say('chat', to, JSON.stringify({ text }));
  }

  /** Proposes a call: `about` are its params as they are written. */
  propose(to: string[], method: string, about: string | undefined): string | null {
    const payload = `{"method":${JSON.stringify(method)}${about === undefined ? '' : `,"params":${about}`}}`;
    return this.say(`mcp/proposal:${method}${contextOf(method, about)}`, to, payload);
  }

  /** Asks somebody for something. */
  request(to: string, method: string, about?: string): string | null {
    const id = this.fresh();
    const payload = `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"method":${JSON.stringify(method)}${about === undefined ? '' : `,"params":${about}`}}`;
    return this.say(`mcp/request:${method}${contextOf(method, about)}`, [to], payload, undefined, id);
  }

  /** Makes the call that is proposed; `null`: it may not, or nobody is there to carry it out. */
  approve({ proposal, state }: Thread, to: string[]): string | null {
    if (!proposal || state !== 'open') return null;
    const target = proposal.to.length > 0 ? proposal.to : to;
    if (target.length === 0) return null;
    const [about, id] = [params(proposal), this.fresh()];
    const payload = `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"method":${JSON.stringify(proposal.payload.method)}${about === undefined ? '' : `,"params":${about}`}}`;
    return this.say(proposal.kind.replace('mcp/proposal', 'mcp/request'), target, payload, proposal.id, id);
  }

  /** Speaks against a proposal; `null`: it may not. */
  reject({ proposal, state }: Thread, reason: string): string | null {
    if (!proposal || state !== 'open') return null;
    return this.say(proposal.kind.replace('mcp/proposal', 'mcp/reject'), [], JSON.stringify(reason === '' ? {} : { reason }), proposal.id);
  }

  /** Takes back a proposal of its own; `null`: it is none, or it may not. */
  withdraw({ proposal, state }: Thread): string | null {
    if (!proposal || state !== 'open' || proposal.from !== this.me) return null;
    return this.say(proposal.kind.replace('mcp/proposal', 'mcp/withdraw'), [], '{}', proposal.id);
  }

  /** An envelope around a payload that is JSON already. */
  private say(kind: string, to: string[], payload: string, of?: string, id = this.fresh()): string | null {
    if (!covers(this.capabilities, kind)) return null;
    const about = { ...(to.length > 0 ? { to } : {}), kind, ...(of === undefined ? {} : { correlation_id: of }) };
    const head = JSON.stringify({ protocol: PROTOCOL, id, ts: new Date().toISOString(), from: this.me, ...about });
    return `${head.slice(0, -1)},"payload":${payload}}`;
  }

  private welcomed({ you, participants }: Members): void {
    const { id, capabilities } = members(you);
    if (!isText(id)) return;
    [this.me, this.capabilities] = [id, texts(capabilities)];
    this.present.clear();
    for (const other of Array.isArray(participants) ? participants.map(members) : []) {
      if (isText(other.id)) this.present.set(other.id, texts(other.capabilities));
    }
  }

  private moved({ event, participant }: Members): void {
    const { id, capabilities } = members(participant);
    if (!isText(id) || id === this.me) return;
    if (event === 'join') this.present.set(id, texts(capabilities));
    else if (event === 'leave') this.present.delete(id);
  }
}

const texts = (value: unknown): string[] => (Array.isArray(value) ? value.filter((one) => typeof one === 'string') : []);
