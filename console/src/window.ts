// Which of many rows of one height can be seen. Draws none.
import { useState } from 'preact/hooks';
import { useSize } from './parts';

const MORE = 8;

export interface Window {
  box: { current: HTMLDivElement | null };
  from: number;
  to: number;
  onScroll: (event: { currentTarget: HTMLElement }) => void;
}

export function useWindow(count: number, row: number): Window {
  const [box, size] = useSize<HTMLDivElement>();
  const [top, setTop] = useState(0);
  const from = Math.min(Math.max(0, Math.floor(top / row) - MORE), Math.max(0, count - 1));
  const to = Math.min(count, Math.ceil((top + (size.height || 800)) / row) + MORE);
  return { box, from, to, onScroll: (event) => setTop(event.currentTarget.scrollTop) };
}
