// Whether an entry of the record is where its proof says, in the tree that the gate has signed for: RFC 6962 hashes, C2SP checkpoints, Ed25519.
// Checked here, so that nobody has to take the gate's word for it. Fetches nothing.
import { hex } from './passkey';

export interface Proof {
  entry: { chain: number; seq: number };
  /** The line of the entry, byte for byte. */
  text: string;
  hashes: string[];
  /** C2SP tlog-proof: behind its first empty line stands the signed checkpoint. */
  proof: string;
  key: string;
}

export interface Checkpoint {
  origin: string;
  size: number;
  root: string;
}

export type Proved =
  | { is: 'proved'; checkpoint: Checkpoint }
  /** All follows, but this browser can't check the signature. */
  | { is: 'unsigned'; checkpoint: Checkpoint }
  | { is: 'broken'; why: string };

type Bytes = Uint8Array<ArrayBuffer>;

const raw = (base64: string): Bytes => Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
const written = (bytes: Bytes): string => btoa(String.fromCharCode(...bytes));
const utf8 = (text: string): Bytes => new TextEncoder().encode(text);

/** SHA-256 over all of them, one behind the other. */
async function digest(...parts: Bytes[]): Promise<Bytes> {
  const all = new Uint8Array(parts.reduce((size, part) => size + part.length, 0));
  parts.reduce((at, part) => (all.set(part, at), at + part.length), 0);
  return new Uint8Array(await crypto.subtle.digest('SHA-256', all));
}

/** The root that follows from an entry, its place and the hashes beside its way (RFC 9162, 2.1.3.2); `null`: none does. */
export async function rootOf(text: string, index: number, size: number, hashes: string[]): Promise<string | null> {
  if (index >= size) return null;
  let hash = await digest(Uint8Array.of(0), utf8(text));
  let [at, last] = [index, size - 1];
  const up = (): void => void ([at, last] = [Math.floor(at / 2), Math.floor(last / 2)]);
  for (const beside of hashes.map(raw)) {
    if (last === 0) return null;
    if (at % 2 === 1 || at === last) {
      hash = await digest(Uint8Array.of(1), beside, hash);
      while (at % 2 === 0 && at !== 0) up();
    } else hash = await digest(Uint8Array.of(1), hash, beside);
    up();
  }
  return last === 0 ? written(hash) : null;
}

interface Note {
  checkpoint: Checkpoint;
  /** What is signed. */
  text: string;
  signatures: { name: string; data: Bytes }[];
}

/** Takes the checkpoint of a proof apart; `null`: it is none. */
export function noteOf(proof: string): Note | null {
  const note = proof.slice(proof.indexOf('\n\n') + 2);
  const end = note.lastIndexOf('\n\n');
  const [origin, size, root] = note.split('\n');
  if (end < 0 || !origin || !root || !/^(0|[1-9]\d*)$/.test(size ?? '')) return null;
  const signatures = note.slice(end + 2).split('\n').flatMap((line) => {
    const found = /^\u2014 (\S+) ([A-Za-z0-9+/=]+)$/.exec(line);
    return found ? [{ name: found[1] as string, data: raw(found[2] as string) }] : [];
  });
  return { checkpoint: { origin, size: Number(size), root }, text: note.slice(0, end + 1), signatures };
}

/** Whether a key, as C2SP signed-note writes it, has signed; `null`: this browser can't tell. */
async function hasSigned(note: Note, key: string): Promise<boolean | null> {
  const [, name = '', id = '', rest = ''] = /^([^+]+)\+([0-9a-f]{8})\+(.+)$/.exec(key) ?? [];
  const known = raw(rest);
  const named = (await digest(utf8(`${name}\n`), known)).slice(0, 4);
  if (known.length !== 33 || known[0] !== 1 || hex(named) !== id || note.checkpoint.origin !== name) return false;
  const own = note.signatures.filter((one) => one.name === name && hex(one.data.slice(0, 4)) === id);
  try {
    const used = await crypto.subtle.importKey('raw', known.slice(1), 'Ed25519', false, ['verify']);
    const valid = await Promise.all(own.map((one) => crypto.subtle.verify('Ed25519', used, one.data.slice(4), utf8(note.text))));
    return valid.length > 0 && valid.every(Boolean);
  } catch (error) {
    if (error instanceof DOMException && error.name === 'NotSupportedError') return null;
    throw error;
  }
}

export async function prove(proof: Proof): Promise<Proved> {
  const broken = (why: string): Proved => ({ is: 'broken', why });
  const note = noteOf(proof.proof);
  if (!note) return broken('the checkpoint can not be read');
  const { checkpoint } = note;
  const root = await rootOf(proof.text, proof.entry.seq, checkpoint.size, proof.hashes);
  if (root !== checkpoint.root) return broken('the entry is not in the tree that was signed for');
  const signed = await hasSigned(note, proof.key);
  if (signed === false) return broken('the signature under the checkpoint is not that of the key');
  return { is: signed ? 'proved' : 'unsigned', checkpoint };
}

/** What this browser has seen of a record. */
export interface Seen {
  key: string;
  chain: number;
  size: number;
  root: string;
}

/** What speaks against taking `now` for the same record as was seen before, grown; `null`: nothing. */
export function doubt(before: Seen | null, now: Seen): string | null {
  if (!before) return null;
  if (before.key !== now.key) return 'it is signed with another key than this browser has seen before';
  if (now.chain < before.chain || (now.chain === before.chain && now.size < before.size)) return 'it is shorter than this browser has seen it: an older state was put back';
  if (now.chain === before.chain && now.size === before.size && now.root !== before.root) return 'it is another record than this browser has seen, of the same length';
  return null;
}
