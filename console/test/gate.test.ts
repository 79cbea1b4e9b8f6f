import { describe, expect, it, vi } from 'vitest';
import { applied, dismiss, follow, gate, signIn } from '../src/gate';
import { mount, status } from './made';

const change = { mounts: [], gone: [], lists: false, sessions: 2 };

describe('a change', () => {
  it('puts news where the old was, what is new in its order, and takes away what is gone', () => {
    const old = status([mount('b'), mount('d'), mount('f')]);
    const news = applied(old, { ...change, mounts: [mount('d', { state: 'failed' }), mount('c')], gone: ['f'] });
    expect(news.mounts.map((m) => `${m.name} ${m.state}`)).toEqual(['b ready', 'c ready', 'd failed']);
    expect([news.sessions, old.mounts.length]).toEqual([2, 3]);
  });
  it('forgets the parents of a gate that joins nobody any more', () => {
    const joined = { segment: 'x', withheld: 0, parents: [] };
    expect(applied(status([], { joined }), change).joined).toBeUndefined();
    expect(applied(status([]), { ...change, joined }).joined).toEqual(joined);
  });
});

describe('a link that was used before', () => {
  it('is told of until somebody has seen that, whatever the gate says meanwhile', async () => {
    const answers: Record<string, () => Promise<Response>> = {
      'POST /-/console/session': async () => new Response(JSON.stringify({ error: { kind: 'refused', message: 'This link was used before' } }), { status: 403 }),
      'GET /-/console/session': async () => new Response(JSON.stringify({ signed_in: false, expires_in: null, wants_token: false })),
      'GET /-/events': async () => {
        answers['GET /-/events'] = () => new Promise(() => undefined);
        return new Response(`event: snapshot\ndata: ${JSON.stringify(status([mount('a')]))}\n\n`);
      },
    };
    vi.stubGlobal('location', { hash: '#code=ab', pathname: '/-/console/' });
    vi.stubGlobal('history', { replaceState: () => undefined });
    vi.stubGlobal('localStorage', { getItem: () => null, setItem: () => undefined, removeItem: () => undefined });
    vi.stubGlobal('fetch', (path: string, { method = 'GET' } = {}) => answers[`${method} ${path}`]?.() ?? Promise.resolve(new Response('{}')));
    await signIn();
    void follow();
    await vi.waitUntil(() => gate.value.status !== null);
    expect(gate.value.unused).toBe('This link was used before');
    dismiss();
    expect(gate.value.unused).toBeNull();
  });
});
