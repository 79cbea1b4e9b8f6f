// A chart over the last hour, drawn by uPlot in the colours of the theme. Knows nothing of what it shows.
import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { useSize } from './parts';
import { theme } from './theme';
import { useStore } from './store';

export interface Series {
  label: string;
  /** The colour's name in the style sheet. */
  color: string;
  as: 'bars' | 'line';
  values: (number | null)[];
  /** What the legend says, where a bar stands on others. */
  told?: (number | null)[];
}

interface ChartProps {
  title: string;
  /** Seconds since 1970. */
  times: number[];
  series: Series[];
  says: (value: number) => string;
  /** What the chart shows, for those who do not see it. */
  summary: string;
  height?: number;
}

const HEIGHT = 180;
/** In a chart lower than this the values of the axis stand closer. */
const LOW = 120;

export function Chart({ title, times, series, says, summary, height = HEIGHT }: ChartProps): JSX.Element {
  const [box, size] = useSize<HTMLDivElement>();
  const plot = useRef<uPlot | null>(null);
  const [at, setAt] = useState<number | null>(null);
  const look = useStore(theme);
  const system = useScheme();
  const shape = series.map((one) => `${one.label} ${one.as} ${one.color}`).join();
  useEffect(() => {
    const element = box.current;
    if (!element || size.width < 40) return undefined;
    const made = new uPlot(options(element, { width: size.width, height }, series, says, setAt), data(times, series), element);
    plot.current = made;
    return () => {
      made.destroy();
      plot.current = null;
    };
  }, [size.width > 40, look, system, shape]);
  useEffect(() => void (size.width > 40 && plot.current?.setSize({ width: size.width, height })), [size.width, height]);
  useEffect(() => plot.current?.setData(data(times, series)), [times, series]);
  const now = at !== null && times[at] !== undefined ? at : null;
  return (
    <section class="panel chart" aria-label={title}>
      <header>
        <h2>{title}</h2>
        <p class="legend">
          {now !== null && <span class="dim number">{clockOf(times[now] ?? 0, stepOf(times) < 60)}</span>}
          {series.map((one) => {
            const value = now === null ? null : (one.told ?? one.values)[now];
            return <span key={one.label}><i class={one.color} aria-hidden="true" /> {one.label}{value !== null && value !== undefined && <b class="number"> {says(value)}</b>}</span>;
          })}
        </p>
      </header>
      <div class="plot" ref={box} role="img" aria-label={summary} style={{ height: `${height}px` }} />
    </section>
  );
}

function data(times: number[], series: Series[]): uPlot.AlignedData {
  return [times, ...series.map((one) => one.values)] as uPlot.AlignedData;
}

function options(element: HTMLElement, size: { width: number; height: number }, series: Series[], says: (value: number) => string, at: (index: number | null) => void): uPlot.Options {
  const style = getComputedStyle(element);
  const color = (name: string): string => style.getPropertyValue(`--${name}`).trim();
  const [line, dim] = [color('line'), color('dim')];
  const axis: uPlot.Axis = { stroke: dim, font: `12px ${style.fontFamily}`, grid: { stroke: line, width: 1 }, ticks: { show: false } };
  const bars = uPlot.paths.bars?.({ size: [0.72, 22], align: 1, radius: 0.15 });
  return {
    ...size,
    // Half a label has room beside and above the last line.
    padding: [10, 20, 0, 0],
    legend: { show: false },
    cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
    hooks: { setCursor: [(plot) => at(plot.cursor.idx ?? null)] },
    // A bar begins at its time: the last one has its place too.
    scales: { x: { time: true, range: (plot, from, to) => [from, to + stepOf(plot.data[0])] }, y: { range: (_, __, most) => [0, Math.max(most ?? 0, 1) * 1.1] } },
    axes: [
      { ...axis, grid: { show: false }, size: 28, space: 80, values: (_, splits) => splits.map((at) => clockOf(at, (splits[1] ?? 0) - (splits[0] ?? 0) < 60)) },
      { ...axis, size: 64, gap: 8, space: size.height < LOW ? 20 : 36, values: (_, splits) => splits.map((value) => (value === 0 ? '0' : says(value))) },
    ],
    series: [
      {},
      ...series.map((one): uPlot.Series => ({
        label: one.label,
        stroke: color(one.color),
        width: one.as === 'line' ? 2 : 0,
        spanGaps: true,
        points: { show: one.as === 'line' && one.values.filter((value) => value !== null).length < 4, size: 6, fill: color(one.color) },
        ...(one.as === 'bars' ? { fill: color(one.color), ...(bars ? { paths: bars } : {}) } : {}),
      })),
    ],
  };
}

function stepOf(times: ArrayLike<number>): number {
  return (times[1] ?? 0) - (times[0] ?? 0);
}

/** A time of day, with seconds where minutes are all the same. */
function clockOf(at: number, isFine: boolean): string {
  return new Date(at * 1000).toLocaleTimeString(undefined, { hour12: false, hour: '2-digit', minute: '2-digit', ...(isFine ? { second: '2-digit' } : {}) });
}

/** The colours that the system wants, and again when they are others. */
function useScheme(): boolean {
  const [isLight, set] = useState(matchMedia('(prefers-color-scheme: light)').matches);
  useEffect(() => {
    const query = matchMedia('(prefers-color-scheme: light)');
    const changed = (): void => set(query.matches);
    query.addEventListener('change', changed);
    return () => query.removeEventListener('change', changed);
  }, []);
  return isLight;
}
