// What the gate answers, as docs/cli.md and docs/console.md describe it. Only what the console reads is named; more may be there.

export type State = 'starting' | 'ready' | 'degraded' | 'failed';

export interface Registered {
  subserver_id: string;
  principal: string;
  authority: string | null;
  proven: boolean;
  auth_scope: string;
  heartbeat_interval_ms: number;
}

export interface Mount {
  name: string;
  origin: string;
  transport: 'stdio' | 'http' | 'sse' | 'link' | 'a2a' | 'stub' | 'context';
  state: State;
  since: number;
  next_try: number | null;
  error: string | null;
  era: 'initialize' | 'stateless' | null;
  version: string | null;
  tools: number;
  prompts: number;
  resources: number;
  restarts: number;
  in_flight: number;
  notes: string[];
  gate: boolean;
  p50_ms: number | null;
  /** Where the console of a gate is. */
  console?: string;
  /** Of which of its calls somebody has to agree to. */
  asks?: 'irreversible' | 'mutable' | 'unlisted';
  registered?: Registered;
}

export interface RoomStatus {
  name: string;
  access: 'public' | 'private' | 'restricted';
  participants: number;
  messages: number;
  refused: number;
  /** Participants that were cut off because they read too slowly. */
  cut: number;
}

/** What one caller has spent of one budget. */
export interface Budget {
  budget: string;
  principal: string;
  session?: string;
  calls_in_minute: number;
  max_calls_per_minute: number | null;
  mutable_calls: number;
  max_mutable_calls_per_session: number | null;
  cost_units: number;
  max_cost_units_per_session: number | null;
}

export interface Parent {
  url: string;
  state: 'idle' | 'trying' | 'registered' | 'refused' | 'unreachable' | 'lost';
  since: number;
  parent_id?: string;
  error?: string;
  hint?: string;
}

export interface Joined {
  segment: string;
  next_try?: number;
  withheld: number;
  parents: Parent[];
}

export interface Status {
  version: string;
  pid: number;
  url: string;
  serves: string;
  uptime_seconds: number;
  sessions: number;
  joined?: Joined;
  /** The configuration that was read last, where it was refused; why is for the owner only. */
  not_in_force?: NotInForce;
  /** The record; absent where none is kept. */
  audit?: Audit;
  budgets?: Budget[];
  mounts: Mount[];
}

export interface NotInForce {
  since: number;
  error?: string;
}

export interface Audit {
  directory?: string;
  failing?: string;
  unrecorded: number;
  broken?: { chain: string; since: number; why: string };
}

export interface Change {
  mounts: Mount[];
  gone: string[];
  lists: boolean;
  sessions: number;
  joined?: Joined;
  not_in_force?: NotInForce;
  audit?: Audit;
  budgets?: Budget[];
}

export interface BelowNode {
  path: string;
  tools: number;
  hops: number;
  degraded: boolean;
}

export interface ToolRow {
  dotted: string;
  shown: string;
  original: string;
  mount: string;
  description: string;
  bytes: number;
  tokens: number;
  reason: string;
  hops: number;
  availability: string;
  latency_class: string;
  /** Nobody is asked about its calls only because its server says that it may do little. */
  ungated_by_server?: boolean;
}

export interface Definition {
  name: string;
  title?: string;
  description?: string;
  inputSchema?: Schema;
  outputSchema?: Schema;
  annotations?: {
    title?: string;
    readOnlyHint?: boolean;
    destructiveHint?: boolean;
    idempotentHint?: boolean;
    openWorldHint?: boolean;
  };
  _meta?: Record<string, unknown>;
}

export interface Tool {
  tool: ToolRow;
  definition: Definition;
  /** The definition as it is written. */
  written: string;
}

export interface Hop {
  mount: string;
  gate: boolean;
  transport: string;
  era: string | null;
  ms: number;
  error?: string;
}

export interface Trace {
  tool: string;
  hops: Hop[];
}

/** A JSON Schema, as far as a form can show it. */
export interface Schema {
  $ref?: string;
  $defs?: Record<string, Schema>;
  definitions?: Record<string, Schema>;
  type?: string | string[];
  title?: string;
  description?: string;
  default?: unknown;
  const?: unknown;
  enum?: unknown[];
  anyOf?: Schema[];
  oneOf?: Schema[];
  allOf?: Schema[];
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema | boolean;
  format?: string;
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  pattern?: string;
}
