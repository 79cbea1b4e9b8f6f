// One dangerous call, from a program of the Python SDK to the record: a person enrols a passkey in the console, is told of the call, sees what
// it is exactly, signs it, and finds it in the record. The gate, the browser and its authenticator are real; nothing is played to the page.
import { execFile, execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { authenticator, axe, check, ended, open, part, until } from './browser.mjs';

const { BANYAN, GATE, PYTHON, WIPED } = process.env;
const banyan = (...words) => JSON.parse(execFileSync(BANYAN, ['--gate', GATE, '--json', ...words], { encoding: 'utf8' }));
const first = banyan('console', '--print').url;
const ORIGIN = new URL(first).origin;
const HOME = `${ORIGIN}/-/console/`;
const CALLER = new URL('caller.py', import.meta.url).pathname;
const { context, page, seen } = await open('agreeing', { colorScheme: 'dark' });
const wiped = () => readFileSync(WIPED, 'utf8').split('\n').filter(Boolean).map((line) => JSON.parse(line));
const one = page.locator('.one');
const signed = [];
page.on('request', (request) => request.url().endsWith('/confirm') && signed.push([request.url(), request.postData()]));

/** A program calls; what it is told in the end. */
const call = (given) => new Promise((resolve, reject) => {
  execFile(PYTHON, [CALLER, `${ORIGIN}/mcp`, 'disk__wipe', JSON.stringify(given)], { encoding: 'utf8', timeout: 150_000 }, (error, out) => (error ? reject(error) : resolve(JSON.parse(out))));
});
/** Opens the call that waits. */
const look = async () => {
  await page.locator('.inbox .flow').first().getByText('disk.wipe').first().click();
  await one.getByRole('button', { name: 'Approve with a passkey' }).waitFor();
};

await part('a passkey of a person', async () => {
  await page.goto(first);
  await until(() => page.evaluate(() => localStorage.getItem('banyan-console') !== null));
  await authenticator(page);
  await page.locator('.views').getByRole('link', { name: 'Approvals' }).click();
  await page.getByRole('link', { name: 'who may agree' }).click();
  await until(async () => /Nobody yet/.test(await one.innerText()));
  await page.getByLabel('Whose it is').fill(' Anna ');
  await page.getByRole('button', { name: 'Make a passkey' }).click();
  check('a passkey is enrolled from the page', await until(async () => /Anna\s*passkey/.test(await one.innerText())), await one.innerText());
  const known = banyan('operator', 'list').operators;
  check('the gate knows whose it is', known.length === 1 && known[0].name === 'Anna' && known[0].passkey, known);
});

await part('a call that waits', async () => {
  const given = { disk: 'a', note: 'za\u200bp', when: [1, 2.5, { deep: null }] };
  const told = call(given);
  check('what waits is told at once, wherever one looks', await until(async () => (await page.locator('.views .count').innerText()) === '1' && /^1 call waiting/.test(await page.title())), await page.title());
  await look();
  check('nothing went out yet', wiped().length === 0, wiped());
  const shown = await page.locator('pre.whole').innerText();
  const exact = shown.replace('U+200B', '\u200b');
  check('the arguments are there exactly', shown.includes('za') && shown.includes('U+200B') && JSON.stringify(JSON.parse(exact)) === JSON.stringify(given), shown);
  const cut = await page.locator('pre.whole').evaluate((e) => e.scrollHeight > e.clientHeight + 2 || e.scrollWidth > e.clientWidth + 2);
  check('nothing of them is hidden', !cut);
  await one.getByRole('button', { name: 'Approve with a passkey' }).click();
  const answer = await told;
  check('the program gets its answer', answer.text === 'wiped a' && !answer.is_error, answer);
  check('the call went out once, as it was shown', JSON.stringify(wiped()) === JSON.stringify([given]), wiped());
  check('the page says what became of it', await until(async () => /It went out, and its answer came/.test(await one.innerText())), await one.innerText());
  const [url, body] = signed.at(-1) ?? [];
  const again = await fetch(url, { method: 'POST', body });
  check('what was signed is good once', again.status === 403 && /approval_used/.test(await again.text()) && wiped().length === 1, again.status);
});

await part('another call', async () => {
  const told = call({ disk: 'b', note: 'za\u200bp', when: [1, 2.5, {}] });
  await until(async () => (await page.locator('.views .count').count()) === 1);
  await look();
  const rows = await one.locator('table.difference tbody th').allInnerTexts();
  check('what differs from the call before is told', rows.join() === 'disk,when[2],when[2].deep', rows);
  await one.getByLabel('Why not').fill('b is in use');
  await one.getByRole('button', { name: 'Deny' }).click();
  const answer = await told;
  check('a no is told to the program, with its reason', answer.is_error && answer.data?.reason === 'approval_denied' && answer.data.why === 'b is in use', answer);
  check('and nothing went out', wiped().length === 1, wiped());
  check('axe finds nothing', (await axe(page)).length === 0, await axe(page));
});

await part('the record', async () => {
  const found = () => banyan('audit', 'list').entries.map((entry) => entry.event);
  const has = (event, count) => found().filter((one) => one === event).length === count;
  check('the record shows that it went out once', await until(() => has('intended', 1) && has('ended', 1) && has('refused', 1)), found());
  check('and verifies', await until(() => banyan('audit', 'verify').sound === true));
});

await part('what it did', async () => {
  const away = seen.requests.filter((r) => !r.includes(` ${ORIGIN}/`) && !/ (data|blob):/.test(r));
  check('no request left the gate, and its policy forbade nothing', away.length === 0 && seen.violations.length === 0, [away, seen.violations]);
});

await context.close();
ended();
