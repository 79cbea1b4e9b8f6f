// Small things that several views show. No view, and nothing that asks the gate.
import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { indented, pieces } from './json';
import type { State } from './shapes';
import { duration, millis } from './text';

const SHAPES: Record<State, JSX.Element> = {
  ready: <circle cx="6" cy="6" r="4" fill="currentColor" />,
  degraded: <path d="M6 1.500 11 10.500H1z" fill="currentColor" />,
  failed: <path d="M2.500 2.500l7 7M9.500 2.500l-7 7" stroke="currentColor" stroke-width="2.400" stroke-linecap="round" fill="none" />,
  starting: <circle cx="6" cy="6" r="3.700" fill="none" stroke="currentColor" stroke-width="1.800" stroke-dasharray="3.600 2.200" />,
};

/** A state as a shape of its own, so that nobody has to tell colours apart. */
export function Glyph({ state }: { state: State }): JSX.Element {
  return (
    <svg class={`glyph ${state}`} viewBox="0 0 12 12" width="12" height="12" role="img" aria-label={state}>
      {SHAPES[state]}
    </svg>
  );
}

/** A sentence in which code stands between backticks. */
export function Said({ text }: { text: string }): JSX.Element {
  return <>{text.split('`').map((part, i) => (i % 2 === 1 ? <code key={i}>{part}</code> : part))}</>;
}

export function Copy({ text, what, children }: { text: string; what: string; children?: ComponentChildren }): JSX.Element {
  const [done, setDone] = useState(false);
  const copy = async (): Promise<void> => {
    await navigator.clipboard.writeText(text).then(
      () => setDone(true),
      () => setDone(false),
    );
    setTimeout(() => setDone(false), 1500);
  };
  return (
    <button type="button" class="quiet" aria-label={`Copy ${what}`} onClick={() => void copy()}>
      {done ? 'Copied' : (children ?? 'Copy')}
    </button>
  );
}

export function Json({ text, label }: { text: string; label: string }): JSX.Element {
  return (
    <pre class="json" tabIndex={0} role="region" aria-label={label}>
      {pieces(indented(text)).map((piece, i) => (piece.kind === 'mark' ? piece.text : <span key={i} class={`j-${piece.kind}`}>{piece.text}</span>))}
    </pre>
  );
}

/** The last medians as a line. */
export function Spark({ values, width = 120, height = 24 }: { values: number[]; width?: number; height?: number }): JSX.Element | null {
  if (values.length < 2) return null;
  const most = Math.max(...values, 0.001);
  const points = values.map((value, i) => `${((i / (values.length - 1)) * width).toFixed(1)},${(height - 2 - (value / most) * (height - 4)).toFixed(1)}`);
  return (
    <svg class="spark" viewBox={`0 0 ${width} ${height}`} width={width} height={height} role="img" aria-label={`medians of the last calls, at most ${millis(most)}`}>
      <polyline points={points.join(' ')} fill="none" stroke="currentColor" stroke-width="1.500" />
    </svg>
  );
}

export function Close({ onClick }: { onClick: () => void }): JSX.Element {
  return (
    <button type="button" class="close quiet" onClick={onClick} aria-keyshortcuts="Escape">
      <span class="unseen">Close</span>
      <span aria-hidden="true"><kbd>esc</kbd> ×</span>
    </button>
  );
}

/**
 * A dialog that is modal as soon as it is there: it opens before the page is drawn and before the next key is taken, so that an Escape
 * pressed at once closes it.
 */
export function Modal({ label, look, onClose, children }: { label: string; look?: string; onClose: (answer: string) => void; children: ComponentChildren }): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} class={look} aria-label={label} onClose={(event) => onClose(event.currentTarget.returnValue)}>
      <form method="dialog">{children}</form>
    </dialog>
  );
}

/** Asks before something is done that can't be taken back. */
export function Confirm({ title, children, does, onDone }: { title: string; children: ComponentChildren; does: string; onDone: (yes: boolean) => void }): JSX.Element {
  return (
    <Modal label={title} onClose={(answer) => onDone(answer === 'yes')}>
      <h2>{title}</h2>
      <p>{children}</p>
      <div class="row end">
        <button type="submit" value="no">Cancel</button>
        <button type="submit" value="yes" class="strong">{does}</button>
      </div>
    </Modal>
  );
}

/** Fields of a record, by name. What has no value is left out. */
export function Facts({ of }: { of: [string, ComponentChildren | null | undefined | false][] }): JSX.Element {
  const there = of.filter(([, value]) => value !== null && value !== undefined && value !== false && value !== '');
  return (
    <dl class="facts">
      {there.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** The time that is left, as a number and as a part of the whole. */
export function Countdown({ from, to, now }: { from: number; to: number; now: number }): JSX.Element {
  const left = Math.max(0, to - now);
  const part = Math.min(1, left / Math.max(1, to - from));
  return <span class="countdown"><span class="number">{duration(left)}</span> <span class="gauge" aria-hidden="true"><i class={part < 0.2 ? 'failed' : ''} style={{ width: `${part * 100}%` }} /></span></span>;
}

/** The size of an element, and again whenever it is another. */
export function useSize<E extends HTMLElement>(): [{ current: E | null }, { width: number; height: number }] {
  const ref = useRef<E>(null);
  const [size, set] = useState({ width: 0, height: 0 });
  useEffect(() => {
    if (!ref.current) return;
    const watch = new ResizeObserver(([entry]) => entry && set({ width: entry.contentRect.width, height: entry.contentRect.height }));
    watch.observe(ref.current);
    return () => watch.disconnect();
  }, []);
  return [ref, size];
}
