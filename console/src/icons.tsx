// Signs of the views, drawn with one line on a square of 16.
import type { JSX } from 'preact';

const LINES: Record<string, string> = {
  overview: 'M2 9.500 5.500 6l2.500 3 2-4 2.500 4.500H14M2 13.500h12',
  tree: 'M8 2v4M8 6H3.500v3M8 6h4.500v3M8 6v3M2 9h3v4H2zM6.500 9h3v4h-3zM11 9h3v4h-3z',
  servers: 'M2.500 3h11v4h-11zM2.500 9h11v4h-11zM5 5h.010M5 11h.010',
  tools: 'M9.500 3.500a3 3 0 0 1 3.800 3.800L6 14.500a1.500 1.500 0 0 1-2.500-2.500l7-7M9.500 3.500l1.500 1.500',
  offers: 'M3 2.500h7l3 3v8H3zM10 2.500v3h3M5.500 8h5M5.500 10.500h5',
  approvals: 'M8 1.800 13 4v4c0 3-2 5-5 6.200C5 13 3 11 3 8V4zM5.800 8l1.600 1.600L10.300 6.500',
  devices: 'M2.500 5h9L9 2.500M13.500 11h-9L7 13.500',
  rooms: 'M2.500 3h11v8H8l-3 2.500V11H2.500z',
  record: 'M8 2.500a5.500 5.500 0 1 1-5 3.200M2.500 2.500v3.500H6M8 5v3.200l2 1.300',
  policy: 'M8 2.500v11M4.500 13.500h7M3 4.500h10M3 4.500 1.500 9h3zM13 4.500 11.500 9h3z',
  menu: 'M2.500 4h11M2.500 8h11M2.500 12h11',
};

export function Icon({ name }: { name: string }): JSX.Element {
  return (
    <svg class="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" fill="none" stroke="currentColor" stroke-width="1.400" stroke-linecap="round" stroke-linejoin="round">
      <path d={LINES[name] ?? LINES['overview'] ?? ''} />
    </svg>
  );
}
