// Asks the gate that this page came from, and nobody else. What is asked and what is done with the answer is not known here.
import { EventReader, LineReader, type ServerEvent } from './streams';

const KEPT = 'banyan-console';

/** The gate said no, or could not be asked (status 0). */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    readonly kind: string,
    message: string,
  ) {
    super(message);
  }
}

/** The page's half of a session; the cookie, which no page can read, is the other. */
export function keep(proof: string | null): void {
  if (proof === null) localStorage.removeItem(KEPT);
  else localStorage.setItem(KEPT, proof);
}

export function isKept(): boolean {
  return localStorage.getItem(KEPT) !== null;
}

export async function ask<T>(method: 'GET' | 'POST' | 'DELETE', path: string, body?: unknown): Promise<T> {
  return JSON.parse(await asText(method, path, body === undefined ? undefined : JSON.stringify(body))) as T;
}

/** The answer as it came, for a body that is sent as it is. */
export async function asText(method: 'GET' | 'POST' | 'DELETE', path: string, body?: string): Promise<string> {
  return (await send(method, path, body)).text();
}

/** Server-sent events, until the stream ends or `signal` fires. */
export async function* events(path: string, signal: AbortSignal): AsyncGenerator<ServerEvent> {
  const reader = new EventReader();
  for await (const text of pieces(await send('GET', path, undefined, signal))) yield* reader.read(text);
}

/** One JSON value a line, until the stream ends or `signal` fires. */
export async function* lines<T>(path: string, signal: AbortSignal): AsyncGenerator<T> {
  const reader = new LineReader();
  for await (const text of pieces(await send('GET', path, undefined, signal))) {
    for (const line of reader.read(text)) yield JSON.parse(line) as T;
  }
}

async function* pieces(response: Response): AsyncGenerator<string> {
  if (!response.body) return;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    void reader.cancel().catch(() => undefined);
  }
}

async function send(method: string, path: string, body?: string, signal?: AbortSignal): Promise<Response> {
  const headers: Record<string, string> = { accept: 'application/json' };
  const proof = localStorage.getItem(KEPT);
  if (proof !== null) headers['banyan-console'] = proof;
  if (body !== undefined) headers['content-type'] = 'application/json';
  let response: Response;
  try {
    response = await fetch(path, { method, headers, cache: 'no-store', redirect: 'error', ...(body === undefined ? {} : { body }), ...(signal ? { signal } : {}) });
  } catch (error) {
    throw new Refusal(0, 'unreachable', signal?.aborted ? 'left' : `the gate does not answer (${String(error)})`);
  }
  if (response.ok) return response;
  const text = await response.text();
  throw refusal(response.status, text);
}

function refusal(status: number, text: string): Refusal {
  try {
    const { error } = JSON.parse(text) as { error: { kind?: string; message?: string } };
    return new Refusal(status, error.kind ?? 'failed', error.message ?? text);
  } catch {
    return new Refusal(status, 'failed', text.slice(0, 300) || `HTTP ${status}`);
  }
}
