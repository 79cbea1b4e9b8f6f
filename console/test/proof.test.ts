import { createHash, generateKeyPairSync, sign } from 'node:crypto';
import { expect, test } from 'vitest';
import { doubt, prove, rootOf } from '../src/proof';

const sha = (...parts: Buffer[]): Buffer => createHash('sha256').update(Buffer.concat(parts)).digest();
const leaf = (text: string): Buffer => sha(Buffer.of(0), Buffer.from(text));
const node = (a: Buffer, b: Buffer): Buffer => sha(Buffer.of(1), a, b);

/** RFC 6962, 2.1, as it is written there. */
function tree(of: string[]): Buffer {
  if (of.length === 1) return leaf(of[0] as string);
  const k = 2 ** Math.floor(Math.log2(of.length - 1));
  return node(tree(of.slice(0, k)), tree(of.slice(k)));
}

function path(at: number, of: string[]): Buffer[] {
  if (of.length === 1) return [];
  const k = 2 ** Math.floor(Math.log2(of.length - 1));
  return at < k ? [...path(at, of.slice(0, k)), tree(of.slice(k))] : [...path(at - k, of.slice(k)), tree(of.slice(0, k))];
}

const lines = (count: number): string[] => Array.from({ length: count }, (_, i) => `{"seq":${i},"who":"\u00e9"}`);
const text = (hashes: Buffer[]): string[] => hashes.map((hash) => hash.toString('base64'));

test('an entry leads to the root from its own place only', async () => {
  for (const size of [1, 2, 3, 5, 8, 13, 21]) {
    const all = lines(size);
    const root = tree(all).toString('base64');
    for (let at = 0; at < size; at += 1) {
      const hashes = text(path(at, all));
      expect(await rootOf(all[at] as string, at, size, hashes)).toBe(root);
      expect(await rootOf(`${all[at]} `, at, size, hashes)).not.toBe(root);
      expect(await rootOf(all[at] as string, size, size, hashes)).toBeNull();
      if (size > 1) expect(await rootOf(all[at] as string, (at + 1) % size, size, hashes)).not.toBe(root);
      if (hashes.length > 0) expect(await rootOf(all[at] as string, at, size, hashes.slice(1))).not.toBe(root);
      expect(await rootOf(all[at] as string, at, size, [...hashes, root])).not.toBe(root);
    }
  }
});

/** A key as C2SP signed-note writes it, and what signs with it. */
function keyed(name: string): { key: string; note: (body: string) => string } {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const raw = Buffer.concat([Buffer.of(1), publicKey.export({ format: 'der', type: 'spki' }).subarray(-32)]);
  const id = sha(Buffer.from(`${name}\n`), raw).subarray(0, 4);
  const note = (body: string): string => `${body}\n\u2014 ${name} ${Buffer.concat([id, sign(null, Buffer.from(body), privateKey)]).toString('base64')}\n`;
  return { key: `${name}+${id.toString('hex')}+${raw.toString('base64')}`, note };
}

test('a checkpoint counts by the signature of its key only', async () => {
  const all = lines(7);
  const { key, note } = keyed('banyan/a');
  const root = tree(all).toString('base64');
  const hashes = text(path(3, all));
  const of = (checkpoint: string): string => `c2sp.org/tlog-proof@v1\nindex 3\n${hashes.join('\n')}\n\n${checkpoint}`;
  const good = { entry: { chain: 1, seq: 3 }, text: all[3] as string, hashes, key, proof: of(note(`banyan/a\n7\n${root}\n`)) };
  expect(await prove(good)).toEqual({ is: 'proved', checkpoint: { origin: 'banyan/a', size: 7, root } });
  const other = keyed('banyan/a');
  for (const bad of [
    { ...good, key: other.key },
    { ...good, proof: of(other.note(`banyan/a\n7\n${root}\n`)) },
    { ...good, proof: of(note(`banyan/b\n7\n${root}\n`)) },
    { ...good, proof: good.proof.replace('\n7\n', '\n8\n') },
    { ...good, proof: of(note(`banyan/a\n07\n${root}\n`)) },
    { ...good, proof: of(`banyan/a\n7\n${root}\n\n`) },
    { ...good, text: `${good.text} ` },
    { ...good, key: key.replace('+', '+0') },
    { ...good, proof: '' },
  ]) expect((await prove(bad)).is).toBe('broken');
});

test('a record only grows', () => {
  const seen = { key: 'k', chain: 1, size: 9, root: 'r' };
  expect(doubt(null, seen)).toBeNull();
  expect(doubt(seen, { ...seen, size: 10, root: 's' })).toBeNull();
  expect(doubt(seen, { ...seen, chain: 2, size: 1, root: 's' })).toBeNull();
  for (const other of [{ key: 'l' }, { size: 8 }, { root: 's' }, { chain: 0 }]) expect(doubt(seen, { ...seen, ...other })).not.toBeNull();
});
