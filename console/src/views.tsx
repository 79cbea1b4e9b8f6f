// The views: their names, what each is for, who may see it, and its main action. Draws none of them itself.
import type { JSX } from 'preact';
import { inbox } from './approval';
import { Approvals } from './approvals';
import { Devices, devices } from './devices';
import { gate } from './gate';
import { OffersView } from './offers';
import { Overview } from './overview';
import { Record } from './record';
import { Rooms } from './rooms';
import { write } from './route';
import { Policy } from './rules';
import { Servers } from './servers';
import type { State } from './shapes';
import { Tools } from './tools';
import { Topology } from './topology';

export interface Shown {
  filter: string;
  states: ReadonlySet<State>;
}

export interface View {
  name: string;
  title: string;
  key: string;
  purpose: string;
  /** Whether this page may see it. */
  isThere?: () => boolean;
  /** Why it is not there, for the owner. */
  missing?: string;
  /** Whether it shows servers, which have states to filter by. */
  hasStates?: boolean;
  action?: () => JSX.Element;
  show: (props: Shown) => JSX.Element;
}

const connects = (): JSX.Element => <a class="button strong" href={write('tree', '@gate')}>Connect a client</a>;

export const VIEWS: View[] = [
  { name: 'overview', title: 'Overview', key: 'v', purpose: 'Calls, errors and latency of the last hour, and what needs a person.', hasStates: true, action: connects, show: () => <Overview /> },
  { name: 'tree', title: 'Topology', key: 't', purpose: 'Clients, gates and servers. Wide lines carry more calls.', hasStates: true, action: connects, show: (props) => <Topology {...props} /> },
  { name: 'servers', title: 'Servers', key: 's', purpose: 'State, latency and calls in flight of every server. Servers in trouble come first.', hasStates: true, show: (props) => <Servers {...props} /> },
  { name: 'tools', title: 'Tools', key: 'o', purpose: 'Read what a tool does, and call it with a form.', show: (props) => <Tools {...props} /> },
  { name: 'offers', title: 'Prompts', key: 'e', purpose: 'Prompts and resources that servers offer beside tools.', isThere: () => gate.value.signedIn, show: (props) => <OffersView {...props} /> },
  {
    name: 'approvals', title: 'Approvals', key: 'a', purpose: 'Calls that wait for a person. A passkey signs exactly what is shown.', isThere: () => gate.value.signedIn && inbox.value !== null,
    missing: 'This gate holds no call. A section `[approvals]` in banyan.toml makes it wait for people.', action: () => <a class="button" href={write('approvals', 'operators')}>Approvers</a>, show: (props) => <Approvals {...props} />,
  },
  {
    name: 'devices', title: 'Changes', key: 'c', purpose: 'Changes of network devices. An unconfirmed change goes back by itself.', isThere: () => gate.value.signedIn && devices.value !== null,
    missing: 'The configuration has no network device.', show: (props) => <Devices {...props} />,
  },
  { name: 'rooms', title: 'Rooms', key: 'm', purpose: 'Agents propose, people decide, and everybody present sees the outcome.', isThere: () => gate.value.signedIn, show: (props) => <Rooms {...props} /> },
  {
    name: 'record', title: 'Record', key: 'r', purpose: 'Every call and every decision, each with a proof that this browser checks.', isThere: () => gate.value.signedIn && gate.value.status?.audit !== undefined,
    missing: 'This gate keeps no record: `[audit] enabled = false` stands in its configuration.', show: (props) => <Record {...props} />,
  },
  { name: 'policy', title: 'Policy', key: 'p', purpose: 'Rules, their recent decisions, and what callers have spent of their budgets.', isThere: () => gate.value.signedIn, show: (props) => <Policy {...props} /> },
];

/** The view of that name; `undefined`: there is none. */
export function viewOf(name: string): View | undefined {
  return VIEWS.find((one) => one.name === name);
}
