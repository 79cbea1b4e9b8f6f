// Two people have to agree. Each has a browser, a sign-in and a passkey of its own: what one of them alone can't do, and what both can, for one
// call and for a grant. The gate, the browsers and their authenticators are real.
import { authenticator, check, ended, open, part, until } from './browser.mjs';
import { banyan, calling, signedIn, wiped } from './gate.mjs';

const link = () => banyan('console', '--print').url;
const first = link();
const ORIGIN = new URL(first).origin;
const HOME = `${ORIGIN}/-/console/`;
const call = calling(ORIGIN);
const anna = { name: 'Anna', ...(await open('anna')) };
const bert = { name: 'Bert', ...(await open('bert')) };
const one = ({ page }) => page.locator('.one');
const text = (who) => one(who).innerText();
const waiting = () => banyan('approvals').approvals;
const says = (who, pattern) => until(async () => pattern.test(await text(who)));

/** Signs in and makes a passkey. */
async function enrolled(who, url) {
  await signedIn(who.page, url, until);
  who.key = await authenticator(who.page);
  await who.page.goto(`${HOME}#/approvals/operators`);
  await who.page.getByLabel('Whose it is').fill(who.name);
  await who.page.getByRole('button', { name: 'Make a passkey' }).click();
  return says(who, new RegExp(`${who.name}\\s*passkey`));
}

const approve = (who) => one(who).getByRole('button', { name: 'Approve with a passkey' }).click();

await part('two people', async () => {
  check('one makes a passkey in its browser', await enrolled(anna, first), await text(anna));
  const told = await call({ disk: 'a' });
  check('one person is too few, and the program hears so', told.is_error && told.data?.reason === 'no_approver' && waiting().length === 0, told);
  check('the other makes one in another browser', await enrolled(bert, link()), await text(bert));
  const { operators } = banyan('operator', 'list');
  check('the gate knows both', operators.map((key) => key.name).sort().join() === 'Anna,Bert' && new Set(operators.map((key) => key.id)).size === 2, operators);
});

await part('one call', async () => {
  const told = call({ disk: 'a' });
  const [{ id }] = (await until(() => waiting().length === 1 && waiting())) || [{}];
  for (const who of [anna, bert]) {
    await who.page.goto(`${HOME}#/approvals/${id}`);
    await one(who).getByRole('button', { name: 'Approve with a passkey' }).waitFor();
  }
  await approve(anna);
  check('who agreed first is told that one is not enough', await says(anna, /agreed\s+1 of 2: Anna/), await text(anna));
  check('the other sees at once that somebody agreed', await says(bert, /agreed\s+1 of 2: Anna/), await text(bert));
  check('nothing goes out by one of them', wiped().length === 0 && waiting()[0]?.standing === 'pending', [wiped(), waiting()]);
  await approve(anna);
  check('nobody is two people', await says(anna, /Anna has agreed already, and 2 different people have to/), await text(anna));
  check('and still nothing goes out', wiped().length === 0 && waiting()[0]?.votes.length === 1, [wiped(), waiting()]);
  await approve(bert);
  const answer = await told;
  check('it goes out once both agreed', answer.text === 'wiped a' && JSON.stringify(wiped()) === '[{"disk":"a"}]', [answer, wiped()]);
  check('both see who agreed', (await says(anna, /2 of 2: Anna, Bert/)) && (await says(bert, /2 of 2: Anna, Bert/)), [await text(anna), await text(bert)]);
  const decided = await until(() => { const { entries } = banyan('audit', 'show', id); return entries.length >= 5 && entries; });
  const said = (decided || []).map((entry) => `${entry.event} ${entry.outcome ?? ''}`.trim());
  check('the record has both of them, before the call', ['approved', 'released'].every((how) => said.some((line) => line.startsWith(`approval_decided ${how}`))), said);
});

await part('one grant', async () => {
  await anna.page.goto(`${HOME}#/approvals/grants`);
  const form = one(anna).getByRole('form', { name: 'Give a grant' });
  const signs = () => form.getByRole('button', { name: 'Sign with a passkey' }).click();
  await form.getByLabel('Tools').fill('disk.wipe');
  await form.getByLabel('Callers').fill('local');
  await form.getByRole('button', { name: 'Add an argument' }).click();
  await form.getByLabel('Argument 1', { exact: true }).fill('disk');
  await form.getByLabel('What argument 1').fill('tmp-*');
  await form.getByLabel('For how many calls').fill('2');
  const half = /1 of 2 have signed: the next passkey has to be another person's/;
  await signs();
  check('one signature is not enough', await says(anna, half), await text(anna));
  check('the gate has no grant yet', banyan('grants', 'list').grants.length === 0, banyan('grants', 'list'));
  await signs();
  check('the same passkey again is refused', await says(anna, /Anna has agreed already, and 2 different people have to/), await text(anna));
  check('and what was signed is of no more use', !half.test(await text(anna)) && banyan('grants', 'list').grants.length === 0, await text(anna));

  // Bert's key is put into Anna's machine: the page asks for any passkey that may agree, and only his answers now.
  const [credential] = (await bert.key.session.send('WebAuthn.getCredentials', { authenticatorId: bert.key.authenticatorId })).credentials;
  await signs();
  await says(anna, half);
  await form.getByLabel('What argument 1').fill('*');
  check('what is written anew after a signature has to be signed anew', !half.test(await text(anna)), await text(anna));
  await form.getByLabel('What argument 1').fill('tmp-*');
  await signs();
  await says(anna, half);
  const his = await authenticator(anna.page, anna.key);
  await his.session.send('WebAuthn.addCredential', { authenticatorId: his.authenticatorId, credential });
  await anna.key.session.send('WebAuthn.setAutomaticPresenceSimulation', { authenticatorId: anna.key.authenticatorId, enabled: false });
  await signs();
  const given = await until(() => banyan('grants', 'list').grants.find((grant) => grant.holds));
  check('two people give it', given?.given.map((vote) => vote.person).join() === 'Anna,Bert' && JSON.stringify(given.terms.arguments) === '{"disk":"tmp-*"}', [given, await text(anna)]);
  check('both are named where it is listed', await says(anna, /holds for[\s\S]*given by\s+Anna[\s\S]*Bert/), await text(anna));

  const told = await call({ disk: 'tmp-1' });
  check('a call within it goes out without being asked about', told.text === 'wiped tmp-1' && wiped().length === 2, told);
  const beyond = call({ disk: 'home' });
  const asked = await until(() => waiting().length === 1 && waiting());
  check('one beyond it waits for both', asked?.[0]?.arguments === '{"disk":"home"}' && asked[0].required === 2, asked);
  banyan('deny', asked[0].id);
  check('and a no of one is enough', (await beyond).is_error && wiped().length === 2, wiped());
});

await part('one of them goes', async () => {
  await bert.page.goto(`${HOME}#/approvals/grants`);
  check('the other browser shows the grant', await says(bert, /holds for[\s\S]*1 of 2 times/), await text(bert));
  banyan('operator', 'remove', banyan('operator', 'list').operators.find((key) => key.name === 'Anna').id);
  const [grant] = banyan('grants', 'list').grants;
  check('a grant of two is none of one', grant.holds === false && grant.revoked === null, grant);
  check('and the page says why', await says(bert, /not enough of those who gave it may agree any more/), await text(bert));
  const told = await call({ disk: 'tmp-2' });
  check('nothing goes out by it', told.is_error && wiped().length === 2, told);
});

await part('what it did', async () => {
  for (const { name, seen } of [anna, bert]) {
    const away = seen.requests.filter((r) => !/ http:\/\/localhost:\d+\//.test(r) && !/ (data|blob):/.test(r));
    check(`no request left the gate, and its policy forbade nothing (${name})`, away.length === 0 && seen.violations.length === 0, [away, seen.violations]);
  }
});

await anna.context.close();
await bert.context.close();
ended();
