// What a grant says, and whether what a gate wants signed for it says the same. Signs nothing.
import type { Vote } from './approval';
import { type RequestOptions, bytes, hex, sha256 } from './passkey';

export interface Terms {
  tool: string;
  caller: string;
  arguments: Record<string, string>;
  any_other: boolean;
  expires: number;
  uses: number | null;
}

export interface Grant {
  id: string;
  terms: Terms;
  given: Vote[];
  used: number;
  revoked: number | null;
  holds: boolean;
}

/** What has to be signed. */
export interface Statement {
  id: string;
  text: string;
  digest: string;
  namespace: string;
  required: number;
  webauthn: RequestOptions | null;
}

/** The arguments of a call (canonical JSON) as patterns that let just these through, but for a `*` in them. */
export function patterns(text: string): [string, string][] {
  const all = JSON.parse(text) as unknown;
  if (typeof all !== 'object' || all === null || Array.isArray(all)) return [];
  return Object.entries(all).map(([name, value]) => [name, typeof value === 'string' ? value : JSON.stringify(value)]);
}

/** What of a statement is not what was asked for; `null`: nothing. */
export async function untrue(statement: Statement, terms: Terms): Promise<string | null> {
  const digest = hex(await sha256(statement.text));
  if (digest !== statement.digest || (statement.webauthn && hex(bytes(statement.webauthn.challenge)) !== digest)) return 'the gate asks for a signature over something else than it says';
  const said = JSON.parse(statement.text) as Record<string, unknown>;
  if (said['type'] !== 'banyan-grant-v1' || said['id'] !== statement.id) return 'what the gate wants signed is no grant, or another one';
  const sorted = (of: unknown): string => JSON.stringify(Object.entries(of as object).sort(([a], [b]) => (a < b ? -1 : 1)));
  if (sorted(said['arguments']) !== sorted(terms.arguments)) return 'what the gate wants signed is about other arguments';
  const other = (['tool', 'caller', 'any_other', 'expires', 'uses'] as const).find((key) => said[key] !== terms[key]);
  return other ? `what the gate wants signed says something else of \`${other}\`` : null;
}
