// Why a server is in its state and what a person can do about it, in sentences. Decides nothing.
import type { Mount, Parent } from './shapes';

export interface Advice {
  /** What is the matter, in one sentence. */
  why: string;
  /** What to do, the most likely first; commands stand between backticks. */
  steps: string[];
}

/** What a person should know of a server. `owner`: they can restart it from here. */
export function advise(mount: Mount, owner: boolean): Advice {
  const error = mount.error ?? '';
  switch (mount.state) {
    case 'ready':
      return { why: mount.notes.length > 0 ? 'It answers, but not everything it lists could be taken.' : 'It answers, and its lists are read.', steps: [] };
    case 'starting':
      return { why: 'It is being started for the first time since it was mounted.', steps: [`A first start may have to download it; \`banyan logs ${mount.name}\` shows what it says.`] };
    case 'degraded':
    case 'failed':
      return { why: lead(mount), steps: steps(mount, error, owner) };
  }
}

function lead(mount: Mount): string {
  if (mount.registered) return 'It registered itself and does not answer at present; its tools stay listed for a while.';
  if (mount.state === 'degraded') return 'It was ready and is not now. Its tools stay listed for five minutes, in case it comes back.';
  return mount.next_try === null ? 'It can not be reached.' : 'It can not be reached. It is tried again by itself.';
}

function steps(mount: Mount, error: string, owner: boolean): string[] {
  if (mount.registered) return ['Look at it where it runs: it will register anew when it is back.'];
  const found = CAUSES.find(([pattern]) => pattern.test(error))?.[1](mount) ?? [];
  const looks = mount.transport === 'stdio' ? [`Look at its last words below, or follow them with \`banyan logs ${mount.name} -f\`.`] : [];
  const again = owner ? 'Then restart it here; otherwise it is tried again by itself.' : 'It is tried again by itself.';
  return [...found, ...looks, ...(found.length > 0 ? [again] : ['`banyan doctor` tries it step by step and names what is broken.', again])];
}

const CAUSES: [RegExp, (mount: Mount) => string[]][] = [
  [/was not found in PATH|No such file or directory/i, () => ['Its program is not installed, or not in the PATH of the gate: install it, or give the full path as `command`.']],
  [/needs a sign-in|sign in/i, (mount) => [`Sign in: \`banyan auth ${mount.name}\`.`]],
  [/this very gate/i, () => ['Take the mount out of the configuration of one of the gates that lead to each other.']],
  [/without TLS 1\.3/i, () => ['Give that gate a certificate (`banyan ca init` there) and write https:// in its `url`.']],
  [/HTTP 40[13]/, () => ['It refuses the credentials it is sent: look at `headers` of the mount, and at its secrets.']],
  [/refused|unreachable|timed out|no route|dns|resolve/i, (mount) => (mount.transport === 'stdio' ? [] : ['Nothing answers at its address: check `url`, and whether it runs.'])],
  [/no sign of life/i, () => ['It says nothing for as long as the mount allows: it hangs, or needs a longer `start_timeout`.']],
  [/somebody asked for a restart/i, () => []],
];

/** How the gate stands with a parent, in one sentence. */
export function standing(parent: Parent): string {
  const said: Record<Parent['state'], string> = {
    idle: 'not needed at present',
    trying: 'being tried',
    registered: 'registered',
    refused: 'refused',
    unreachable: 'unreachable',
    lost: 'lost',
  };
  return said[parent.state];
}
