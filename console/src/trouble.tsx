// What is wrong with the gate as a whole, above every view, with what mends it. Servers have their own place.
import type { JSX } from 'preact';
import { Said } from './parts';
import type { Status } from './shapes';
import { clock } from './text';

export interface Trouble {
  what: string;
  fix: string;
}

/** Whatever makes the gate another one than people believe, the worst first. */
export function troubles(status: Status, now: number): Trouble[] {
  const found: Trouble[] = [];
  const { audit, not_in_force: refused, joined } = status;
  if (audit?.broken) {
    const { chain, since, why } = audit.broken;
    found.push({ what: `The record is broken since ${clock(since, now)}: ${why} (${chain})`, fix: '`banyan audit verify` says where.' });
  }
  if (audit?.failing) found.push({ what: `Nothing can be recorded: ${audit.failing}`, fix: 'Make room on the disk of the record, or let the gate write there.' });
  if (refused) {
    const why = refused.error ? `: ${refused.error}` : '';
    found.push({ what: `The configuration on disk is not in force since ${clock(refused.since, now)}${why}`, fix: 'The gate goes on with the one before. Correct the file: it is taken as soon as it is saved.' });
  }
  for (const parent of joined?.parents ?? []) {
    if (!['refused', 'unreachable', 'lost'].includes(parent.state)) continue;
    found.push({ what: `Parent ${parent.url} ${parent.state} since ${clock(parent.since, now)}${parent.error ? `: ${parent.error}` : ''}`, fix: parent.hint ?? '`banyan status` says how it goes on.' });
  }
  return found;
}

export function Troubles({ status }: { status: Status }): JSX.Element | null {
  const found = troubles(status, Date.now() / 1000);
  if (found.length === 0) return null;
  return (
    <div class="notice troubles" role="region" aria-label="What is wrong with this gate" tabIndex={0}>
      {found.map(({ what, fix }) => (
        <p key={what}><Said text={what} /> <span class="dim"><Said text={fix} /></span></p>
      ))}
    </div>
  );
}
