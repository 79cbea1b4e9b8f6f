// What became of proposals and calls, as lines of JSON for whoever keeps or checks them elsewhere: the same as the terminal's `/export`.
import { type Envelope, type Thread, isFailed, ruleOf } from './participant';

/** No longer reason is kept, in bytes. */
const REASON = 1000;

/** One object; what is not there is left out. Payloads are in the messages that it names. */
export function exported(thread: Thread): string {
  const { state, proposal, request, response, end } = thread;
  const steps = Object.entries({ proposal, request, response, end }).filter(([, step]) => step !== undefined);
  const outcome = response && (isFailed(response) ? 'failed' : 'done');
  const reason = end && typeof end.payload.reason === 'string' ? cut(end.payload.reason) : undefined;
  return JSON.stringify({ state, ...Object.fromEntries(steps.map(([name, one]) => [name, step(one as Envelope)])), outcome, rule: request && ruleOf(request)?.id, reason });
}

const step = ({ id, at, from, to, kind }: Envelope): object => ({ id, ts: `${new Date(at).toISOString().slice(0, 19)}Z`, from, to, kind });

/** So many bytes at most, and no character in half. */
function cut(text: string): string {
  const bytes = new TextEncoder().encode(text);
  if (bytes.length <= REASON) return text;
  let end = REASON;
  while (((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return new TextDecoder().decode(bytes.subarray(0, end));
}
