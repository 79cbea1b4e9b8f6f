// A change of a router in the console: its diff, the time it has left, and the two answers. The router, the gate and the browser are real.
import { check, ended, open, part, shots, until } from './browser.mjs';
import { banyan, signedIn } from './gate.mjs';

const first = banyan('console', '--print').url;
const HOME = `${new URL(first).origin}/-/console/`;
const { page, seen } = await open('devices', { colorScheme: 'dark' });
const one = page.locator('.one');
const text = () => one.innerText({ timeout: 2000 });
const at = () => banyan('device', 'status', 'r1');

await part('a change that waits', async () => {
  await signedIn(page, first, until);
  check('NM-09: the view says how many changes go back by themselves', await until(async () => (await page.getByRole('link', { name: /^Changes/ }).locator('.count').innerText()) === '1'));
  await page.getByRole('link', { name: /^Changes/ }).click();
  await page.locator('.inbox .flow').getByText('r1').click();
  check('NM-09: a change shows its diff, its owner and its end', await until(async () => /It runs, and goes back by itself[^]*made by\s*mcp[^]*time left\s*[\dms ]+[^]*\+ ?description seen in a browser/.test(await text())), await text());
  const left = () => one.locator('.countdown .number').innerText();
  const before = await left();
  check('NM-09: the time that is left runs down', await until(async () => (await left()) !== before), before);
  await shots(page, 'devices');
});

await part('the answers', async () => {
  await one.getByRole('button', { name: 'Keep the change' }).click();
  await page.locator('dialog[open]').getByRole('button', { name: 'Cancel' }).click();
  check('NM-09: a change is kept once it was asked for twice', at().phase === 'applied', at());
  await one.getByRole('button', { name: 'Bring the old configuration back' }).click();
  await page.locator('dialog[open]').getByRole('button', { name: 'Bring it back' }).click();
  check('NM-09: the page brings the old configuration back', await until(async () => /The old configuration runs again[^]*asked for it/.test(await text())), await text());
  check('NM-09: and the device knows who asked', at().phase === 'rolled_back' && at().reason.reason === 'asked', at());
});

await part('the next change', async () => {
  console.log('NEXT');
  check('NM-09: another change comes up by itself', await until(async () => /goes back by itself[^]*seen in a browser again/.test(await text())), await text());
  await one.getByRole('button', { name: 'Keep the change' }).click();
  await page.locator('dialog[open]').getByRole('button', { name: 'Keep it' }).click();
  check('NM-09: the page keeps a change', await until(async () => /It was kept/.test(await text())) && at().phase === 'confirmed', await text());
});

await part('who is not the owner', async () => {
  for (const [path, method] of [['/-/devices', 'GET'], ['/-/devices/r1', 'GET'], ['/-/devices/r1/confirm', 'POST'], ['/-/devices/r1/rollback', 'POST'], ['/-/devices/r1/take-over', 'POST']]) {
    const { status } = await fetch(new URL(path, HOME), { method });
    check(`NM-12: a guest is refused ${method} ${path}`, status === 403, String(status));
  }
  check('nothing fails in the page', seen.errors.length === 0 && seen.violations.length === 0, [seen.errors, seen.violations]);
});

await page.context().close();
ended();
