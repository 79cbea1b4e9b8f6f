// What waits for somebody to agree, as the gate tells it, and whether what is shown is what would be signed. Signs nothing.
import { Refusal, ask, lines } from './api';
import { hex, sha256 } from './passkey';
import { Store } from './store';

export interface Vote {
  person: string;
  by: string;
  at: number;
}

export type Standing = 'pending' | 'released' | 'dispatched' | 'below' | 'done' | 'denied' | 'expired' | 'withdrawn' | 'void' | 'outcome_unknown';

export interface Approval {
  id: string;
  standing: Standing;
  tool: string;
  caller: string;
  route: string[];
  arguments: string;
  arguments_sha256: string;
  /** The other members of the request, in canonical form. */
  others?: string;
  /** What the request says of its client, in canonical form. */
  client?: string;
  /** What the call would do, in its server's own words. */
  preview?: string;
  /** Why there is no preview, where one was asked for. */
  preview_missing?: string;
  definition_sha256: string;
  annotation: Record<string, unknown>;
  causes: ('mode' | 'policy' | 'below' | 'proposal')[];
  required: number;
  votes: Vote[];
  requested: number;
  since: number;
  expires: number;
  challenge: string;
  digest: string;
  reason?: string;
  /** The room in which it is asked for, or proposed. */
  room?: string;
  attended: boolean;
  url: string;
  previous?: { id: string; arguments: string; since: number };
}

export interface Below {
  id: string;
  mount: string;
  /** The id of the gate that holds it. */
  gate: string;
  /** Whether the configuration or a proof says that a gate is behind the mount. */
  vouched: boolean;
  data: Partial<Approval>;
}

export interface Inbox {
  approvals: Approval[];
  below: Below[];
  /** How far the gate's clock is ahead of this one, in seconds. */
  ahead: number;
}

export interface Operator {
  id: string;
  name: string;
  principals: string[];
  key: string;
  passkey: boolean;
  enrolled: number;
}

/** What there is; `null`: this page may not know, or the gate has no approvals. */
export const inbox = new Store<Inbox | null>(null);

export function waiting(of: Inbox | null): number {
  return (of?.approvals.filter((one) => one.standing === 'pending').length ?? 0) + (of?.below.length ?? 0);
}

/** How many of them wait for tools of one server. */
export function waitingAt(of: Inbox | null, mount: string): number {
  const here = of?.approvals.filter((one) => one.standing === 'pending' && one.route[0] === mount).length ?? 0;
  return here + (of?.below.filter((held) => held.mount === mount).length ?? 0);
}

/** Fetches all of them. */
export async function look(): Promise<void> {
  const found = await ask<{ now: number; approvals: Approval[]; below: Below[] }>('GET', '/-/approvals?all=true');
  inbox.set({ approvals: found.approvals, below: found.below, ahead: Math.round(found.now - Date.now() / 1000) });
}

/** Follows them for as long as the page lives; `news` hears of each event. Ends where the gate has none, or this page may not know. */
export async function followApprovals(news: (event: string, approval: Approval) => void): Promise<void> {
  for (let wait = 500; ; wait = Math.min(wait * 2, 10_000)) {
    try {
      // Asked for before the events, so that nothing falls between them.
      const stream = lines<{ event: string; approval?: Approval }>('/-/approvals/events', new AbortController().signal);
      const first = stream.next();
      // It is waited for below; until then its failure is nobody's.
      first.catch(() => undefined);
      await look();
      wait = 500;
      for (let next = await first; !next.done; next = await stream.next()) {
        await look();
        if (next.value.approval) news(next.value.event, next.value.approval);
      }
    } catch (error) {
      if (error instanceof Refusal && error.status >= 400 && error.status < 500) return inbox.set(null);
    }
    await new Promise((resolve) => setTimeout(resolve, wait));
  }
}

/** What of the challenge is not what is shown; `null`: nothing, all that is signed is on the page. */
export async function deceit(one: Approval): Promise<string | null> {
  const signed = JSON.parse(one.challenge) as Record<string, unknown>;
  const digest = async (text: string): Promise<string> => hex(await sha256(text));
  if ((await digest(one.challenge)) !== one.digest) return 'the digest is of another challenge';
  if ((await digest(one.arguments)) !== signed['arguments_sha256']) return 'the challenge is about other arguments';
  // Requests with a preview, and those with other members, are of kinds of their own, so that a page that does not show these agrees to none.
  const others = one.others ?? '';
  const kind = one.preview !== undefined ? 'banyan-approval-v3' : others === '' ? 'banyan-approval-v1' : 'banyan-approval-v2';
  if (signed['type'] !== kind) return 'the challenge is of another kind';
  if (others !== '' && (await digest(others)) !== signed['others_sha256']) return 'the challenge is about other members';
  const preview = one.preview === undefined ? undefined : await digest(one.preview);
  if (signed['preview_sha256'] !== preview) return 'the challenge is about another preview';
  const client = one.client ?? '';
  if ((signed['client_sha256'] ?? '') !== (client === '' ? '' : await digest(client))) return 'the challenge is about another client';
  const pairs: [string, unknown][] = [['caller', one.caller], ['tool', one.tool], ['id', one.id], ['expires', one.expires], ['required', one.required], ['definition_sha256', one.definition_sha256]];
  const other = pairs.find(([key, value]) => signed[key] !== value);
  if (other) return `the challenge is about another ${other[0]}`;
  return JSON.stringify(signed['route']) === JSON.stringify(one.route) ? null : 'the challenge is about another route';
}

/** Whether an address of another gate may be opened: over TLS, or of this machine. */
export function isLink(text: string | undefined): text is string {
  const url = text && URL.canParse(text) ? new URL(text) : null;
  return url !== null && (url.protocol === 'https:' || (url.protocol === 'http:' && /^(localhost|127(\.\d+){3}|\[::1\])$/.test(url.hostname)));
}
