// Where one is: `#/VIEW/WHAT`. The part behind `#` is never sent to anybody.
import { Store } from './store';

export interface Route {
  view: string;
  what: string;
}

export function parse(hash: string): Route {
  const [view = '', ...rest] = hash.replace(/^#\/?/, '').split('/');
  return { view: view || 'tree', what: decodeURIComponent(rest.join('/')) };
}

export function write(view: string, what = ''): string {
  return what === '' ? `#/${view}` : `#/${view}/${encodeURIComponent(what)}`;
}

export const route = new Store<Route>(parse(typeof location === 'undefined' ? '' : location.hash));

export function go(view: string, what = ''): void {
  const hash = write(view, what);
  if (location.hash !== hash) location.hash = hash;
}

export function followAddress(): void {
  addEventListener('hashchange', () => {
    // A link that signs in, opened where the console is open already.
    if (location.hash.startsWith('#code=')) location.reload();
    else route.set(parse(location.hash));
  });
}
