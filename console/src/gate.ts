// The gate as it is told by its events: one snapshot, kept whole by changes. Views follow it; nobody polls.
import { Refusal, ask, events, isKept, keep } from './api';
import type { BelowNode, Change, Mount, Status, ToolRow } from './shapes';
import { go, parse } from './route';
import { Store } from './store';

export type Link = 'connecting' | 'live' | 'lost' | 'closed';

export interface Gate {
  /** Whether what is shown is how it is now. */
  link: Link;
  /** Why nothing can be shown. */
  why: string | null;
  /** Why the link that was opened signed nobody in; it stays until somebody has seen it. */
  unused: string | null;
  /** Whether a session of this page has ended without somebody signing out. */
  over: boolean;
  status: Status | null;
  /** When `status.uptime_seconds` was true, in milliseconds since 1970. */
  read: number;
  /** When the page was cut off last, in milliseconds since 1970. */
  lost: number;
  below: BelowNode[];
  /** The last medians of each server, the newest last. */
  history: Map<string, number[]>;
  signedIn: boolean;
  /** Whether calls of clients take a bearer token. */
  needsToken: boolean;
}

export interface Session {
  signed_in: boolean;
  expires_in: number | null;
  wants_token: boolean;
}

const KEPT_MEDIANS = 60;
const WANTED = 'banyan-wanted';
const WANTED_MS = 15 * 60_000;

export const gate = new Store<Gate>({ link: 'connecting', why: null, unused: null, over: false, status: null, read: 0, lost: 0, below: [], history: new Map(), signedIn: false, needsToken: false });

/** Every tool, once somebody has asked for them. */
export const tools = new Store<ToolRow[] | null>(null);

/** What a change makes of what was there. */
export function applied(status: Status, change: Change): Status {
  const news = new Map(change.mounts.map((mount) => [mount.name, mount]));
  const gone = new Set(change.gone);
  const mounts = status.mounts.filter((mount) => !gone.has(mount.name)).map((mount) => taken(news, mount.name) ?? mount);
  mounts.push(...news.values());
  if (news.size > 0) mounts.sort((a, b) => (a.name < b.name ? -1 : 1));
  const { joined: _, not_in_force: __, audit: ___, ...rest } = status;
  const { joined, not_in_force, audit, budgets } = change;
  const told = { ...(joined ? { joined } : {}), ...(not_in_force ? { not_in_force } : {}), ...(audit ? { audit } : {}), ...(budgets ? { budgets } : {}) };
  return { ...rest, ...told, sessions: change.sessions, mounts };
}

function at(hash: string): [string, string] {
  const { view, what } = parse(hash);
  return [view, what];
}

function taken(news: Map<string, Mount>, name: string): Mount | undefined {
  const mount = news.get(name);
  news.delete(name);
  return mount;
}

/** Signs in with the code that the address holds, if it holds one, and takes it out of there. */
export async function signIn(): Promise<void> {
  const code = /^#code=([0-9a-f]+)$/.exec(location.hash)?.[1];
  if (code) {
    history.replaceState(null, '', location.pathname);
    try {
      const { proof } = await ask<{ proof: string }>('POST', '/-/console/session', { code });
      keep(proof);
      const hash = wanted();
      localStorage.removeItem(WANTED);
      if (hash) go(...at(hash));
    } catch (error) {
      gate.set({ ...gate.value, unused: (error as Error).message });
    }
  }
  await standing();
}

/** Somebody has read what the page says of links and sessions. */
export function dismiss(): void {
  gate.set({ ...gate.value, unused: null, over: false });
}

/** Remembers the address that somebody without a session asked for, to be opened once they have signed in. */
export function want(hash: string): void {
  localStorage.setItem(WANTED, JSON.stringify({ hash, at: Date.now() }));
}

export function isWanted(): boolean {
  return wanted() !== null;
}

function wanted(): string | null {
  try {
    const { hash, at } = JSON.parse(localStorage.getItem(WANTED) ?? '{}') as { hash?: string; at?: number };
    return hash?.startsWith('#/') && Date.now() - (at ?? 0) < WANTED_MS ? hash : null;
  } catch {
    return null;
  }
}

export async function signOut(): Promise<void> {
  await ask('DELETE', '/-/console/session').catch(() => undefined);
  keep(null);
  location.reload();
}

async function standing(): Promise<void> {
  const session = await ask<Session>('GET', '/-/console/session').catch(() => null);
  const isOver = session !== null && !session.signed_in && isKept();
  if (isOver) keep(null);
  if (session) gate.set({ ...gate.value, over: (gate.value.over || isOver) && !session.signed_in, signedIn: session.signed_in, needsToken: session.wants_token });
}

/** Follows the gate for as long as the page lives. */
export async function follow(): Promise<never> {
  for (let wait = 500; ; wait = Math.min(wait * 1.6, 5000)) {
    try {
      for await (const event of events('/-/events', new AbortController().signal)) {
        wait = 500;
        if (event.name === 'snapshot') took(JSON.parse(event.data) as Status, true);
        else if (event.name === 'change' && gate.value.status) {
          const change = JSON.parse(event.data) as Change;
          took(applied(gate.value.status, change), change.lists);
        }
      }
      gate.set({ ...gate.value, link: 'lost', lost: lostAt() });
    } catch (error) {
      const refused = error instanceof Refusal && (error.status === 401 || error.status === 403);
      const why = refused ? (error as Error).message : gate.value.why;
      gate.set({ ...gate.value, link: refused ? 'closed' : 'lost', lost: lostAt(), why, ...(refused ? { status: null } : {}) });
    }
    await new Promise((resolve) => setTimeout(resolve, wait));
    if (gate.value.link === 'lost') await standing();
  }
}

function lostAt(): number {
  return gate.value.link === 'live' ? Date.now() : gate.value.lost;
}

function took(status: Status, lists: boolean): void {
  const old = gate.value;
  const history = new Map<string, number[]>();
  for (const mount of status.mounts) {
    const medians = old.history.get(mount.name) ?? [];
    history.set(mount.name, mount.p50_ms === null ? medians : [...medians, mount.p50_ms].slice(-KEPT_MEDIANS));
  }
  const read = status.uptime_seconds === old.status?.uptime_seconds ? old.read : Date.now();
  gate.set({ ...old, link: 'live', why: null, status, read, history });
  if (lists) void fetchLists(status);
}

async function fetchLists(status: Status): Promise<void> {
  if (status.mounts.some((mount) => mount.gate)) {
    const below = await ask<{ nodes: BelowNode[] }>('GET', '/-/below').catch(() => null);
    if (below) gate.set({ ...gate.value, below: below.nodes });
  }
  if (tools.value) await fetchTools();
}

/** Fetches the tools; from then on they are kept as they are. */
export async function fetchTools(): Promise<void> {
  const answer = await ask<{ tools: ToolRow[] }>('GET', '/-/tools').catch(() => null);
  if (answer) tools.set(answer.tools);
}
