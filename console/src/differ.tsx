// What is other than before, for people to read, with everything spelled out that can not be seen.
import type { JSX } from 'preact';
import { type Difference, lines, visible, words } from './difference';

/** Text in which what can not be seen is spelled out. */
export function Seen({ text }: { text: string }): JSX.Element {
  return <>{visible(text).map((part, i) => (part.is ? part.text : <mark key={i} title="a character that can not be seen">{part.text}</mark>))}</>;
}

/** A text whose lines may be those of a diff: all of it. */
export function DiffText({ text }: { text: string }): JSX.Element {
  return <pre class="whole preview">{text.split('\n').map((line, i) => <span key={i} class={line.startsWith('+') ? 'added' : line.startsWith('-') ? 'removed' : undefined}><Seen text={line} />{'\n'}</span>)}</pre>;
}

/** A row a place: what stood there, what stands there; in longer texts the words that differ are marked. */
export function Differences({ of, what }: { of: Difference[]; what: string }): JSX.Element {
  return (
    <table class="difference">
      <thead><tr><th scope="col">{what}</th><th scope="col">then</th><th scope="col">now</th></tr></thead>
      <tbody>
        {of.map((one) => (
          <tr key={one.path}>
            <th scope="row">{one.path || '(all)'}</th>
            <td class="was"><Side text={one.before} other={one.after} word="gone" /></td>
            <td class="is"><Side text={one.after} other={one.before} word="new" /></td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Side({ text, other, word }: { text: string | undefined; other: string | undefined; word: 'gone' | 'new' }): JSX.Element {
  if (text === undefined) return <span class="dim">not there</span>;
  if (other === undefined) return <Seen text={text} />;
  const [before, after] = word === 'gone' ? [text, other] : [other, text];
  const found = words(before, after).filter((part) => part.is === 'same' || part.is === word);
  if (found.every((part) => part.is !== 'same')) return <Seen text={text} />;
  return <>{found.map((part, i) => (part.is === 'same' ? <span key={i} class="same"><Seen text={part.text} /></span> : <b key={i}><Seen text={part.text} /></b>))}</>;
}

/** Lines around a difference that are shown. */
const AROUND = 3;
const SIGN = { same: ' ', gone: '-', new: '+' };

/** A text line by line: what is gone, what is new, and a little of what stayed around them. */
export function TextDiff({ path, before, after }: { path: string; before: string; after: string }): JSX.Element {
  const all = lines(before, after);
  const isNear = all.map(() => false);
  all.forEach((line, i) => line.is !== 'same' && isNear.fill(true, Math.max(0, i - AROUND), i + AROUND + 1));
  return (
    <section class="text-diff" aria-label={`What differs in ${path}`}>
      <h4>{path}</h4>
      <pre class="whole preview">
        {all.map((line, i) => {
          if (!isNear[i]) return i > 0 && !isNear[i - 1] ? null : <span key={i} class="skipped">⋯{'\n'}</span>;
          return <span key={i} class={line.is === 'new' ? 'added' : line.is === 'gone' ? 'removed' : undefined}><span class="at" aria-hidden="true">{String(line.at).padStart(4)} </span>{SIGN[line.is]} <Seen text={line.text} />{'\n'}</span>;
        })}
      </pre>
    </section>
  );
}
