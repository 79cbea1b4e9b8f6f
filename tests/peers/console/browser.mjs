// A browser for the console's tests: it counts what leaves the gate and what the page's policy forbids. Knows no view.
import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const { CONSOLE_SHOTS } = process.env;
const require = createRequire(`${process.env.PEERS_NODE_MODULES}/here.cjs`);
const { chromium } = require('playwright-core');
const AXE = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
const FLAGS = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync'];

// A busy machine is no fault of the page's; who passes does not wait so long.
const PATIENCE = 60_000;

let checks = 0;

/** Says how a check went. */
export function check(name, ok, detail = '') {
  checks += 1;
  const why = typeof detail === 'string' ? detail : JSON.stringify(detail);
  console.log(ok ? `ok ${name}` : `FAIL ${name}: ${(why ?? '').replaceAll('\n', ' ').slice(0, 1500)}`);
  return ok;
}

/** Runs `work`; what it throws is a failed check. */
export async function part(name, work) {
  try {
    await work();
  } catch (error) {
    check(name, false, String(error?.stack ?? error));
  }
}

// What fails where nobody waits for it is a check like any other, and ends no other.
process.on('unhandledRejection', (error) => check('nothing fails aside', false, String(error?.stack ?? error)));

export function ended() {
  console.log(`${checks} checks`);
}

/** Waits until `ask` answers something that is true, and answers that. */
export async function until(ask, within = PATIENCE) {
  const end = Date.now() + within;
  let seen;
  do {
    // A page that is being left can't be asked.
    seen = await Promise.resolve(ask()).catch(() => undefined);
    if (seen) return seen;
    await sleep(50);
  } while (Date.now() < end);
  return seen;
}

export async function open(profile, options = {}) {
  const context = await chromium.launchPersistentContext(join(process.env.PROFILE, profile), {
    executablePath: process.env.CHROMIUM, headless: true, args: FLAGS, viewport: { width: 1360, height: 860 },
    permissions: ['clipboard-read', 'clipboard-write'], ...options,
  });
  const seen = { requests: [], violations: [], errors: [] };
  await context.exposeBinding('violated', (_, what) => void seen.violations.push(what));
  await context.addInitScript(() => {
    addEventListener('securitypolicyviolation', (event) => window.violated(`${event.effectiveDirective} ${event.blockedURI} ${event.sourceFile ?? ''}`));
  });
  context.on('request', (request) => void seen.requests.push(`${request.method()} ${request.url()}`));
  context.on('weberror', (error) => void seen.errors.push(String(error.error())));
  context.on('console', (message) => message.type() === 'error' && seen.errors.push(message.text()));
  context.setDefaultTimeout(PATIENCE);
  const page = context.pages()[0] ?? (await context.newPage());
  if (process.env.CONSOLE_SLOW) await (await context.newCDPSession(page)).send('Emulation.setCPUThrottlingRate', { rate: Number(process.env.CONSOLE_SLOW) });
  return { context, page, seen };
}

/** Has `work` answer what matches `path`, until what it returns is called. A request that the page has left wants no answer any more. */
export async function answering(page, path, work) {
  const handler = (route) => Promise.resolve(route).then(work).catch(() => undefined);
  await page.route(path, handler);
  return () => page.unroute(path, handler);
}

/** Gives the page an authenticator of its own, with a person who agrees whenever it is asked; beside `other`, one that is plugged in. */
export async function authenticator(page, other) {
  const session = other?.session ?? (await page.context().newCDPSession(page));
  if (!other) await session.send('WebAuthn.enable');
  const options = { protocol: 'ctap2', transport: other ? 'usb' : 'internal', hasResidentKey: true, hasUserVerification: true, isUserVerified: true, automaticPresenceSimulation: true };
  const { authenticatorId } = await session.send('WebAuthn.addVirtualAuthenticator', { options });
  return { session, authenticatorId };
}

/** What axe-core has to say of the page, one line a rule. */
export async function axe(page) {
  const session = await page.context().newCDPSession(page);
  await session.send('Runtime.evaluate', { expression: AXE });
  const said = await session.send('Runtime.evaluate', {
    expression: "axe.run(document, { resultTypes: ['violations'] }).then((r) => JSON.stringify(r.violations.map((v) => `${v.id} ${v.nodes[0].target}`)))",
    awaitPromise: true, returnByValue: true,
  });
  await session.detach();
  return JSON.parse(said.result.value);
}

/** Has axe look at a page in both themes, on a desk and on a phone, and leaves pictures where somebody wants them. */
export async function shots(page, name) {
  for (const [scheme, width, height] of [['dark', 1360, 860], ['light', 1360, 860], ['dark', 360, 740], ['light', 360, 740]]) {
    await page.emulateMedia({ colorScheme: scheme, reducedMotion: 'reduce' });
    await page.setViewportSize({ width, height });
    await page.waitForTimeout(150);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    const found = await axe(page);
    check(`${name}, ${scheme}, ${width} px, nothing sticks out and axe finds nothing`, wide <= 0 && found.length === 0, [wide, found]);
    if (CONSOLE_SHOTS) {
      mkdirSync(CONSOLE_SHOTS, { recursive: true });
      await page.screenshot({ path: join(CONSOLE_SHOTS, `${name}-${scheme}-${width}.png`) });
    }
  }
  await page.setViewportSize({ width: 1360, height: 860 });
  await page.emulateMedia({ colorScheme: 'dark' });
}
