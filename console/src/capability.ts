// What a change of somebody's capabilities would mean, before it is made: whether a pattern can be one, and what of the messages seen so far
// it is about. The gate decides, by the same rules (MCPx v0.1, 4.1).
import { covers } from './participant';

const LONGEST = 1024;
const STARS = 8;

/** What is wrong with a pattern; `null`: nothing. */
export function unsound(pattern: string): string | null {
  if (pattern === '') return 'write a kind, such as `chat` or `mcp/request:tools/*`';
  if (/[\p{Cc}]/u.test(pattern)) return 'it holds a character that can not be read';
  if (new TextEncoder().encode(pattern).length > LONGEST || pattern.split('*').length - 1 > STARS) return `a capability has at most ${LONGEST} bytes and ${STARS} stars`;
  if (/^(system|presence)([/:]|$)/.test(pattern)) return 'kinds that begin so are the gate\'s own: nobody is given them';
  return pattern === pattern.trim() ? null : 'it begins or ends with a blank, which no kind does';
}

/** What is not wrong, and yet rarely meant. */
export function remark(pattern: string): string | null {
  if (pattern === '*') return 'this is everything but what the gate says itself';
  if (/^mcp\/(\*|request(:\*|$|\*))/.test(pattern)) return 'this is every call of every tool of everybody here';
  if (/^mcp\/[^:*]+:[^:*]+:$/.test(pattern)) return 'nothing stands behind the last colon: it covers a context that is empty, and no tool';
  return pattern.startsWith('mcp/') || pattern === 'chat' || pattern.includes('*') ? null : 'MCPx has no kind that begins so';
}

export type Meaning = 'gained' | 'lost' | 'kept' | 'never';

/** What somebody may send of the kinds that were seen, before and after. */
export function meaning(before: readonly string[], after: readonly string[], kind: string): Meaning {
  const [could, can] = [covers(before, kind), covers(after, kind)];
  if (could === can) return can ? 'kept' : 'never';
  return can ? 'gained' : 'lost';
}
