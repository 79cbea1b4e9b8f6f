// What a server writes on its standard error, from the last lines on and as it comes.
import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { lines } from './api';
import { Copy } from './parts';

const KEPT = 500;

export function Logs({ server, transport }: { server: string; transport: string }): JSX.Element {
  const [kept, setKept] = useState<string[]>([]);
  const [why, setWhy] = useState<string | null>(null);
  const box = useRef<HTMLPreElement>(null);
  const isAtEnd = useRef(true);
  useEffect(() => {
    const leaving = new AbortController();
    setKept([]);
    setWhy(null);
    void read(server, leaving.signal, (line) => setKept((old) => [...old, line].slice(-KEPT)), setWhy);
    return () => leaving.abort();
  }, [server]);
  useEffect(() => {
    if (box.current && isAtEnd.current) box.current.scrollTop = box.current.scrollHeight;
  }, [kept]);
  const scrolled = (): void => {
    const { scrollHeight, scrollTop, clientHeight } = box.current ?? { scrollHeight: 0, scrollTop: 0, clientHeight: 0 };
    isAtEnd.current = scrollHeight - scrollTop - clientHeight < 8;
  };
  const nothing = transport === 'stdio' ? 'It has written nothing on its standard error.' : 'Only servers that the gate starts as processes have a standard error that it can read.';
  return (
    <section class="logs" aria-label={`Log of ${server}`}>
      <div class="row">
        <h3>Standard error</h3>
        {kept.length > 0 && <Copy text={kept.join('\n')} what="the log" />}
      </div>
      {kept.length === 0 ? <p class="dim">{why ?? nothing}</p> : (
        <pre ref={box} tabIndex={0} role="log" aria-label={`Lines of ${server}`} aria-live="off" onScroll={scrolled}>
          {kept.map((line, i) => <div key={i} class={look(line)}>{line || ' '}</div>)}
        </pre>
      )}
    </section>
  );
}

async function read(server: string, signal: AbortSignal, each: (line: string) => void, failed: (why: string) => void): Promise<void> {
  try {
    for await (const { line } of lines<{ line: string }>(`/-/logs/${encodeURIComponent(server)}?follow=1`, signal)) each(line);
  } catch (error) {
    if (!signal.aborted) failed((error as Error).message);
  }
}

function look(line: string): string {
  if (/\b(error|fatal|panic|traceback|exception)\b/i.test(line)) return 'bad';
  return /\bwarn(ing)?\b/i.test(line) ? 'so-so' : '';
}
