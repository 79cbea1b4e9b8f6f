// The keys, and what the signs mean.
import type { JSX } from 'preact';
import type { Binding } from './keys';
import { Glyph, Modal } from './parts';
import type { State } from './shapes';

const MOVES: [string, string][] = [
  ['↑ ↓ or j k', 'move'],
  ['← → or h l', 'from what is behind a gate to the gate, and back'],
  ['home end', 'the first, the last'],
  ['+ - 0', 'zoom the topology'],
  ['esc', 'one step back'],
  ['ctrl ⏎', 'call the tool whose arguments are being written'],
];

const SIGNS: [State, string][] = [
  ['ready', 'it answers'],
  ['degraded', 'it was ready and is not now; its tools stay listed for a while'],
  ['failed', 'it can not be reached, and is tried again'],
  ['starting', 'it is being started for the first time'],
];

export function Help({ bindings, onClose }: { bindings: Binding[]; onClose: () => void }): JSX.Element {
  return (
    <Modal label="Help" look="help" onClose={onClose}>
      <h2>Keys</h2>
      <dl class="keys">
        {bindings.map((one) => <div key={one.keys}><dt>{one.keys.split(' ').map((key) => <kbd key={key}>{key}</kbd>)}</dt><dd>{one.does}</dd></div>)}
        {MOVES.map(([keys, does]) => <div key={keys}><dt><kbd>{keys}</kbd></dt><dd>{does}</dd></div>)}
      </dl>
      <h2>Signs</h2>
      <dl class="keys">
        {SIGNS.map(([state, means]) => <div key={state}><dt class={`state ${state}`}><Glyph state={state} /> {state}</dt><dd>{means}</dd></div>)}
      </dl>
      <div class="row end"><button type="submit" class="strong">Close</button></div>
    </Modal>
  );
}
