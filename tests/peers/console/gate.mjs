// The gate beside the browser: its commands, the program that calls through it, and what went out. Knows no page.
import { execFile, execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

const { BANYAN, GATE, PYTHON, WIPED } = process.env;
const CALLER = new URL('caller.py', import.meta.url).pathname;

/** What a command prints as JSON. */
export const banyan = (...words) => JSON.parse(execFileSync(BANYAN, ['--gate', GATE, '--json', ...words], { encoding: 'utf8' }));

/** What went out, as the tool's own log has it. */
export const wiped = () => readFileSync(WIPED, 'utf8').split('\n').filter(Boolean).map((line) => JSON.parse(line));

/** A program calls through the gate at `origin`; what it is told in the end. */
export const calling = (origin) => (given, tool = 'disk__wipe') => new Promise((resolve, reject) => {
  execFile(PYTHON, [CALLER, `${origin}/mcp`, tool, JSON.stringify(given)], { encoding: 'utf8', timeout: 150_000 }, (error, out) => (error ? reject(error) : resolve(out)));
}).then(JSON.parse);

/** Signs a page in by a link of its own. */
export async function signedIn(page, link, until) {
  await page.goto(link);
  return until(() => page.evaluate(() => localStorage.getItem('banyan-console') !== null));
}
