// Which call in the inbox a proposal in a room is: the gate holds what is proposed to a server of its own until somebody agrees, here or there.
import type { Approval } from './approval';
import { members } from './json';
import { type Envelope, params, parts } from './participant';

/** The call that waits for the same; where several do, the one that was asked for last. */
export function heldFor(approvals: readonly Approval[], room: string, proposal: Envelope): Approval | undefined {
  const [, method, tool] = parts(proposal.kind);
  if (method !== 'tools/call' || tool === undefined) return undefined;
  const wanted = ordered(members(params(proposal) ?? '').get('arguments') ?? '{}');
  const same = (one: Approval): boolean => one.room === room && one.standing === 'pending' && (one.tool === tool || one.tool.endsWith(`.${tool}`)) && ordered(one.arguments) === wanted;
  return [...approvals].reverse().find(same);
}

/** With every object's members in one order. */
function ordered(json: string): string {
  const sorted = (_: string, value: unknown): unknown =>
    typeof value === 'object' && value !== null && !Array.isArray(value) ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))) : value;
  try {
    return JSON.stringify(JSON.parse(json), sorted);
  } catch {
    return json;
  }
}
