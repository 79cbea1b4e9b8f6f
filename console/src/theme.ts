// Dark, light, or as the system has it. Kept in the browser.
import { Store } from './store';

export type Theme = 'auto' | 'dark' | 'light';

const KEPT = 'banyan-theme';
const ALL: Theme[] = ['auto', 'dark', 'light'];
const kept = typeof localStorage === 'undefined' ? null : localStorage.getItem(KEPT);

export const theme = new Store<Theme>(ALL.find((one) => one === kept) ?? 'auto');

function show(): void {
  if (theme.value === 'auto') delete document.documentElement.dataset['theme'];
  else document.documentElement.dataset['theme'] = theme.value;
}

export function turn(): void {
  theme.set(ALL[(ALL.indexOf(theme.value) + 1) % ALL.length] ?? 'auto');
  localStorage.setItem(KEPT, theme.value);
}

if (typeof document !== 'undefined') {
  theme.follow(show);
  show();
}
