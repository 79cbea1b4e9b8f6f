import { describe, expect, it } from 'vitest';
import { type Approval, deceit, isLink, waiting } from '../src/approval';
import { differences, flat, visible } from '../src/difference';
import { type Statement, type Terms, patterns, untrue } from '../src/grant';
import { base64url, bytes, hex, sha256 } from '../src/passkey';

async function approval(over: Partial<Approval> = {}): Promise<Approval> {
  const one = {
    id: '7', standing: 'pending', tool: 'files.delete', caller: 'ci', route: ['files', 'delete'], arguments: '{"path":"/a"}', definition_sha256: 'd',
    annotation: {}, causes: ['mode'], required: 1, votes: [], requested: 1, since: 1, expires: 9, attended: true, url: '',
  } as unknown as Approval;
  one.arguments_sha256 = hex(await sha256(one.arguments));
  const { arguments_sha256, caller, definition_sha256, expires, id, required, route, tool } = one;
  one.challenge = JSON.stringify({ arguments_sha256, caller, definition_sha256, expires, gate: 'g', id, nonce: 'n', policy: 'p', required, route, tool, type: 'banyan-approval-v1' });
  one.digest = hex(await sha256(one.challenge));
  return { ...one, ...over };
}

describe('what is signed', () => {
  it('is what is shown, or the page says what is not', async () => {
    expect(await deceit(await approval())).toBeNull();
    const lies: [Partial<Approval>, RegExp][] = [
      [{ arguments: '{"path":"/b"}' }, /other arguments/], [{ tool: 'files.list' }, /another tool/], [{ caller: 'anna' }, /another caller/],
      [{ route: ['other', 'delete'] }, /another route/], [{ expires: 99 }, /another expires/], [{ required: 2 }, /another required/], [{ digest: '00' }, /digest is of another/],
      [{ others: '{"task":{}}' }, /another kind/],
    ];
    const more = await approval({ others: '{"task":{}}' });
    more.challenge = more.challenge.replace('-v1"', `-v2","others_sha256":"${hex(await sha256('{"task":{}}'))}"`);
    more.digest = hex(await sha256(more.challenge));
    expect(await deceit(more)).toBeNull();
    expect(await deceit({ ...more, others: '{"task":{"ttl":1}}' })).toMatch(/other members/);
    expect(await deceit({ ...more, others: '' })).toMatch(/another kind/);
    const seen = await approval({ preview: '- a\n+ b' });
    seen.challenge = seen.challenge.replace('-v1"', `-v3","preview_sha256":"${hex(await sha256('- a\n+ b'))}"`);
    seen.digest = hex(await sha256(seen.challenge));
    expect(await deceit(seen)).toBeNull();
    expect(await deceit({ ...seen, preview: '- a' })).toMatch(/another preview/);
    const { preview: _, ...unseen } = seen;
    expect(await deceit(unseen)).toMatch(/another kind/);
    expect(await deceit(await approval({ preview: '- a' }))).toMatch(/another kind/);
    for (const [lie, said] of lies) expect(await deceit(await approval(lie)), JSON.stringify(lie)).toMatch(said);
  });
  it('of a grant says what was asked for, or the page says what does not', async () => {
    const terms: Terms = { tool: 'files.*', caller: 'ci', arguments: { path: '/tmp/*', n: '1' }, any_other: false, expires: 9, uses: 2 };
    const statement = async (said: Partial<Terms & { type: string; id: string }>): Promise<Statement> => {
      const { arguments: { path, n }, ...rest } = terms;
      const text = JSON.stringify({ ...rest, arguments: { n, path }, gate: 'g', id: '7', type: 'banyan-grant-v1', ...said });
      const raw = await sha256(text);
      const webauthn = { challenge: base64url(raw.buffer), rpId: 'x', allowCredentials: [], userVerification: 'required' as const, timeout: 1 };
      return { id: '7', text, digest: hex(raw), namespace: 'banyan-grant-v1', required: 1, webauthn };
    };
    const good = await statement({});
    expect(await untrue(good, terms)).toBeNull();
    const lies: [Statement, RegExp][] = [
      [await statement({ tool: '*' }), /`tool`/], [await statement({ caller: '*' }), /`caller`/], [await statement({ any_other: true }), /`any_other`/],
      [await statement({ expires: 10 }), /`expires`/], [await statement({ uses: null }), /`uses`/], [await statement({ arguments: { path: '*' } }), /other arguments/],
      [await statement({ type: 'banyan-approval-v1' }), /no grant/], [{ ...good, id: '8' }, /another one/], [{ ...good, digest: '00' }, /something else/],
      [{ ...good, webauthn: (await statement({ uses: 3 })).webauthn }, /something else/],
    ];
    for (const [lie, said] of lies) expect(await untrue(lie, terms), lie.text).toMatch(said);
  });
  it('begins with patterns that let just the call through that was looked at', () => {
    expect(patterns('{"n":1,"of":{"a":[true]},"path":"/tmp/x"}')).toEqual([['n', '1'], ['of', '{"a":[true]}'], ['path', '/tmp/x']]);
    expect(patterns('[]')).toEqual([]);
  });
  it('is spelled as WebAuthn spells it', () => {
    const raw = Uint8Array.from({ length: 256 }, (_, i) => i);
    expect(base64url(raw.buffer)).not.toMatch(/[+/=]/);
    expect([...bytes(base64url(raw.buffer))]).toEqual([...raw]);
  });
});

describe('what differs', () => {
  it('is told value by value, and nothing is left out', () => {
    expect(differences('{"a":1,"l":[1,2],"o":{"x":"y"},"gone":{}}', '{"a":1,"l":[1,3],"o":{"x":"y","z":null}}')).toEqual([
      { path: 'l[1]', before: '2', after: '3' }, { path: 'o.z', after: 'null' }, { path: 'gone', before: '{}' },
    ]);
    expect(differences('{"a":1}', '{"a":1}')).toEqual([]);
  });
  it('is never called the same where the texts are not', () => {
    const [before, after] = ['{"n":12345678901234567890,"m":1}', '{"n":12345678901234567891,"m":2}'];
    expect(differences(before, after)).toEqual([{ path: 'n', before: '12345678901234567890', after: '12345678901234567891' }, { path: 'm', before: '1', after: '2' }]);
    expect(differences('{"n":1}', '{"n":1.0}').map((one) => one.path)).toEqual(['n']);
    const [plain, escaped] = ['{"a":"x"}', '{"a":"\\u0078"}'];
    expect(differences(plain, escaped)).toEqual([{ path: '', before: plain, after: escaped }]);
  });
  it('keeps places apart that look alike', () => {
    const paths = ['{"a.b":1}', '{"a":{"b":1}}', '{"a":[1]}', '{"a":{"0":1}}', '{"a[0]":1}', '{"":1}', '{"a":1,"a":2}'].map((json) => [...flat(json).keys()].join(' '));
    expect(paths).toEqual(['["a.b"]', 'a.b', 'a[0]', 'a.0', '["a[0]"]', '[""]', 'a a (2)']);
    expect(differences('{"a.b":1,"a":{"b":2}}', '{"a.b":9,"a":{"b":2}}')).toEqual([{ path: '["a.b"]', before: '1', after: '9' }]);
  });
  it('can be seen where characters can not', () => {
    expect(visible('a\u200bb\u202ec\n').map((part) => (part.is ? part.text : `<${part.text}>`)).join('')).toBe('a<U+200B>b<U+202E>c\n');
    expect(visible('plain ünï 漢 🙂').every((part) => part.is)).toBe(true);
  });
  it('counts what waits here and below', async () => {
    const [one, other] = [await approval(), await approval({ standing: 'done' })];
    expect(waiting({ approvals: [one, other], below: [{ id: 'b', mount: 'm', data: {} }], ahead: 0 })).toBe(2);
    expect(waiting(null)).toBe(0);
  });
});

describe('a gate below', () => {
  it('is opened over TLS, or on this machine, and else not', () => {
    for (const good of ['https://gate.example/x', 'http://localhost:7411/', 'http://127.0.0.1/', 'http://[::1]:1/']) expect(isLink(good), good).toBe(true);
    for (const bad of ['javascript:alert(1)', 'http://gate.example/', 'http://127.0.0.1.gate.example/', 'data:text/html,x', '', undefined]) expect(isLink(bad), String(bad)).toBe(false);
  });
});
