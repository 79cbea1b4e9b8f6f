// The person of the demonstration: enrols a passkey in the console of the gate at the root, sees what waits for the part, and signs. The browser
// and its authenticator are real; the call comes from a program of the Python SDK.
import { authenticator, check, ended, open, part, until } from '../console/browser.mjs';
import { banyan, calling, signedIn } from '../console/gate.mjs';

const { TOOL } = process.env;
const first = banyan('console', '--print').url;
const ORIGIN = new URL(first).origin;
const { context, page } = await open('demonstration');
const one = page.locator('.one');

await part('a passkey', async () => {
  await signedIn(page, first, until);
  await authenticator(page);
  await page.goto(`${ORIGIN}/-/console/#/approvals/operators`);
  await page.getByLabel('Whose it is').fill('Anna');
  await page.getByRole('button', { name: 'Make a passkey' }).click();
  check('demonstration: a passkey is enrolled', await until(async () => /Anna\s*passkey/.test(await one.innerText())), await one.innerText());
});

await part('a call for the part', async () => {
  const told = calling(ORIGIN)({ steps: 7 }, TOOL);
  await page.goto(`${ORIGIN}/-/console/#/approvals`);
  await page.locator('.inbox .flow').first().getByText('turn').first().click();
  await one.getByRole('button', { name: 'Approve with a passkey' }).waitFor();
  const shown = await one.innerText();
  check('demonstration: the steps and the way are shown', /"steps": 7/.test(shown) && /edge\W+line\W+lamp\W+turn/.test(shown), shown);
  await one.getByRole('button', { name: 'Approve with a passkey' }).click();
  const answer = await told;
  check('demonstration: the program gets the position', JSON.parse(answer.text).position === 7 && !answer.is_error, answer);
});

await context.close();
ended();
