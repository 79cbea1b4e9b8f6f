// A call as somebody writes it down to propose it: what is wrong with each part of it, and what goes out. Knows which tools somebody in the room
// has said to have. Sends nothing.
import { type Thread, isTwice, parts } from './participant';
import type { Definition } from './shapes';

export const CALL = 'tools/call';

export interface Draft {
  /** Who is to carry it out; empty: whoever may. */
  to: string;
  method: string;
  /** Of a call of a tool: which. */
  name: string;
  /** Its arguments, or of another method its `params`, as they are written. */
  text: string;
}

export type Part = keyof Draft;

/** What is wrong, by the part that it is wrong with. */
export function flaws({ to, method, name, text }: Draft, present: ReadonlyMap<string, unknown>): Partial<Record<Part, string>> {
  const found: Partial<Record<Part, string>> = {};
  if (to !== '' && !present.has(to)) found.to = `${to} is not here any more: choose somebody else`;
  if (method.trim() === '') found.method = 'write an MCP method, such as resources/read';
  else if (/[\p{Cc}\s:]/u.test(method)) found.method = 'a method holds no blank and no colon: what it is about stands in its params';
  if (method === CALL && name.trim() === '') found.name = 'name a tool';
  else if (method === CALL && /\p{Cc}/u.test(name)) found.name = 'it holds a character that can not be read';
  const wrong = unreadable(text, method === CALL);
  return wrong === null ? found : { ...found, text: wrong };
}

/** Why a text is no object that everybody reads alike; `null`: it is one, or empty where nothing is. */
function unreadable(text: string, isCall: boolean): string | null {
  const what = isCall ? 'arguments' : 'params';
  if (text.trim() === '') return null;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return `${what} are a JSON object, and this is none: ${(error as Error).message}`;
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return `${what} are a JSON object, such as {"path": "/tmp"}`;
  return isTwice(text) ? 'a name stands twice in it: two readers would read two things' : null;
}

/** What goes out: numbers keep the digits that were written. */
export function written({ method, name, text }: Draft): { method: string; params?: string } {
  const own = text.trim();
  if (method === CALL) return { method, params: `{"name":${JSON.stringify(name)},"arguments":${own === '' ? '{}' : own}}` };
  return own === '' ? { method } : { method, params: own };
}

/** The tools that somebody has last said to have; `null`: nobody has asked. */
export function toolsOf(threads: readonly Thread[], who: string): Definition[] | null {
  for (const { request, response } of [...threads].reverse()) {
    if (!request || response?.from !== who || parts(request.kind)[1] !== 'tools/list') continue;
    const tools = (response.payload.result as { tools?: unknown } | undefined)?.tools;
    if (Array.isArray(tools)) return tools.filter((one): one is Definition => typeof one?.name === 'string');
  }
  return null;
}

/** Tools that were named in what was proposed to somebody, or called there. */
export function namedAt(threads: readonly Thread[], who: string): string[] {
  const names = threads.flatMap(({ proposal, request }) => [proposal, request]).flatMap((step) => {
    const [, method, name] = parts(step?.kind ?? '');
    return step && method === CALL && name !== undefined && (who === '' || step.to.includes(who)) ? [name] : [];
  });
  return [...new Set(names)];
}
