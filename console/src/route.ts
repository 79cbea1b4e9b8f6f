// Where one is: `#/VIEW/WHAT`. The part behind `#` is never sent to anybody.
import { Store } from './store';

export interface Route {
  view: string;
  what: string;
}

export function parse(hash: string): Route {
  // A link that signs in names no view.
  if (hash.startsWith('#code=')) return { view: 'overview', what: '' };
  const [view = '', ...rest] = hash.replace(/^#\/?/, '').split('/');
  return { view: view || 'overview', what: decoded(rest.join('/')) };
}

/** A text of an address; the text itself where it is no encoding of anything. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function write(view: string, what = ''): string {
  return what === '' ? `#/${view}` : `#/${view}/${encodeURIComponent(what)}`;
}

export const route = new Store<Route>(parse(typeof location === 'undefined' ? '' : location.hash));

/** Goes there at once: what is pressed next is meant for where it leads, though browsers tell of the new address only later. */
export function go(view: string, what = ''): void {
  const hash = write(view, what);
  if (location.hash !== hash) location.hash = hash;
  take(hash);
}

function take(hash: string): void {
  const to = parse(hash);
  if (to.view !== route.value.view || to.what !== route.value.what) route.set(to);
}

export function followAddress(): void {
  addEventListener('hashchange', () => {
    // A link that signs in, opened where the console is open already.
    if (location.hash.startsWith('#code=')) location.reload();
    else take(location.hash);
  });
}
