// A status as tests need it.
import type { Mount, Status } from '../src/shapes';

export function mount(name: string, over: Partial<Mount> = {}): Mount {
  return {
    name, origin: 'banyan.toml', transport: 'stdio', state: 'ready', since: 0, next_try: null, error: null, era: 'stateless', version: null,
    tools: 1, prompts: 0, resources: 0, restarts: 0, in_flight: 0, notes: [], gate: false, p50_ms: null, ...over,
  };
}

export function status(mounts: Mount[], over: Partial<Status> = {}): Status {
  return { version: '1', pid: 1, url: '', serves: '', uptime_seconds: 0, sessions: 0, mounts, ...over };
}
