// One dangerous call, from a program of the Python SDK to the record: a person enrols a passkey in the console, is told of the call, sees what
// it is exactly, signs it, and finds it in the record. The gate, the browser and its authenticator are real; nothing is played to the page.
import { execFileSync } from 'node:child_process';
import { answering, authenticator, check, ended, open, part, shots, until } from './browser.mjs';
import { banyan, calling, signedIn, wiped } from './gate.mjs';

const { BANYAN, NEXT, NEXT_HOME } = process.env;
const first = banyan('console', '--print').url;
const ORIGIN = new URL(first).origin;
const HOME = `${ORIGIN}/-/console/`;
const call = calling(ORIGIN);
const { context, page, seen } = await open('agreeing', { colorScheme: 'dark' });
const one = page.locator('.one');
const noticed = () => page.evaluate(() => window.notices);
const signed = [];
page.on('request', (request) => request.url().endsWith('/confirm') && signed.push([request.url(), request.postData()]));

/** Opens the call that waits. */
const look = async () => {
  await page.locator('.inbox .flow').first().getByText('disk.wipe').first().click();
  await one.getByRole('button', { name: 'Approve with a passkey' }).waitFor();
};

await part('a passkey of a person', async () => {
  await context.grantPermissions(['notifications', 'clipboard-read', 'clipboard-write'], { origin: ORIGIN });
  // What is shown outside of the page can't be looked at: what the page asks for is.
  await context.addInitScript(() => {
    window.notices = [];
    class Notice { static permission = 'granted'; constructor(title, options) { window.notices.push(`${title}: ${options.body}`); } }
    Object.defineProperty(window, 'Notification', { value: Notice });
  });
  await signedIn(page, first, until);
  await authenticator(page);
  await page.locator('.views').getByRole('link', { name: 'Approvals' }).click();
  await page.getByRole('link', { name: 'who may agree' }).click();
  await until(async () => /bert\s*key/.test(await one.innerText()));
  await page.getByLabel('Whose it is').fill(' Anna ');
  await page.getByRole('button', { name: 'Make a passkey' }).click();
  check('a passkey is enrolled from the page', await until(async () => /Anna\s*passkey/.test(await one.innerText())), await one.innerText());
  const known = banyan('operator', 'list').operators.filter((one) => one.passkey);
  check('the gate knows whose it is', known.length === 1 && known[0].name === 'Anna', known);
});

await part('a call that waits', async () => {
  const given = { disk: 'a', note: 'za\u200bp', when: [1, 2.5, { deep: null }] };
  const told = call(given);
  check('what waits is told at once, wherever one looks', await until(async () => (await page.locator('.views .count').innerText()) === '1' && /^1 call waiting/.test(await page.title()), 60_000), await page.title());
  await look();
  check('nothing went out yet', wiped().length === 0, wiped());
  const shown = await page.locator('pre.whole').first().innerText();
  const exact = shown.replace('U+200B', '\u200b');
  check('the arguments are there exactly', shown.includes('za') && shown.includes('U+200B') && JSON.stringify(JSON.parse(exact)) === JSON.stringify(given), shown);
  const cut = await page.locator('pre.whole').evaluateAll((blocks) => blocks.some((e) => e.scrollHeight > e.clientHeight + 2 || e.scrollWidth > e.clientWidth + 2));
  check('nothing of them is hidden', !cut);
  const beside = /asked by\s+local\s+way\s+disk\W+wipe\s+because of\s+the mode of this gate\s+risk\s[\s\S]*reversible: false[\s\S]*agreed\s+0 of 1\s+time left\s+[45]m/;
  check('who asks, the way to the tool, why it waits and for how long stand beside them', beside.test(await one.innerText()), await one.innerText());
  const left = () => one.locator('.countdown .number').innerText();
  const first = await left();
  check('the time that is left runs down', await until(async () => (await left()) !== first), first);
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
  check('who looks elsewhere is told, if they want to be', await until(async () => (await noticed()).some((text) => text.startsWith('local waits for you: disk.wipe'))), await noticed());
  const told = call({ disk: 'b', note: 'za\u200bp', when: [1, 2.5, {}] });
  await until(async () => (await page.locator('.views .count').count()) === 1);
  await look();
  const rows = await one.locator('table.difference tbody th').allInnerTexts();
  check('what differs from the call before is told', rows.join() === 'disk,when[2],when[2].deep', rows);
  // Axe takes the authenticator away, which is not needed any more.
  await shots(page, 'waiting');
  await one.getByLabel('Why not').fill('b is in use');
  await one.getByRole('button', { name: 'Deny' }).click();
  const answer = await told;
  check('a no is told to the program, with its reason', answer.is_error && answer.data?.reason === 'approval_denied' && answer.data.why === 'b is in use', answer);
  check('and nothing went out', wiped().length === 1, wiped());
});

await part('the record', async () => {
  const found = () => banyan('audit', 'list').entries.map((entry) => `${entry.event} ${entry.outcome ?? ''}`.trim());
  const has = (event, count) => found().filter((one) => one === event).length === count;
  check('the record shows that it went out once', await until(() => has('intended', 1) && has('ended done', 1)), found());
  check('and who was asked, and what was decided', await until(() => has('approval_asked', 2) && has('approval_decided released', 1) && has('approval_decided denied', 1)), found());
  check('and verifies', await until(() => banyan('audit', 'verify').sound === true));
  await page.goto(`${HOME}#/record`);
  const rows = page.locator('table.entries tbody tr:not(.pad)');
  await until(async () => (await rows.count()) >= 5);
  await page.getByLabel('Kind').selectOption('ended');
  await until(async () => (await rows.count()) === 1);
  await rows.first().click();
  const badges = one.locator('ol.entries .badge');
  check('each of its entries is proved in the page', await until(async () => (await badges.allInnerTexts()).join() === 'proved,proved,proved,proved,proved'), await badges.allInnerTexts());
  const lay = await one.locator('.spans li').allInnerTexts();
  check('the wait for a person and the call lie in time, and the signature that came again', lay.length === 3 && /^refused: approval_used/.test(lay[2]) && /somebody is asked about disk.wipe released, by Anna/.test(lay[0].replaceAll(/\s+/g, ' ')) && /^disk.wipe done/.test(lay[1].replaceAll(/\s+/g, ' ')), lay);
  await shots(page, 'record');
  const all = (pattern) => until(async () => (await badges.count()) > 0 && (await badges.allInnerTexts()).every((text) => pattern.test(text)));
  const tampered = async (change, pattern, name) => {
    const honest = await answering(page, '**/-/audit/entry?*', async (route) => route.fulfill({ json: change(await (await route.fetch()).json()) }));
    await page.reload();
    check(name, await all(pattern), await badges.allInnerTexts());
    await honest();
  };
  const edited = (proof) => ({ ...proof, text: proof.text.replace('done', 'fine').replace('"seq"', '"sEq"') });
  await tampered(edited, /broken: the entry is not in the tree/, 'an entry that was changed is not');
  const unsigned = (proof) => {
    const line = proof.proof.lastIndexOf(' ') + 20;
    return { ...proof, proof: proof.proof.slice(0, line) + (proof.proof[line] === 'A' ? 'B' : 'A') + proof.proof.slice(line + 1) };
  };
  await tampered(unsigned, /broken: the signature/, 'nor is one that nobody has signed for');
  await page.evaluate(() => localStorage.setItem('banyan-record', JSON.stringify({ ...JSON.parse(localStorage.getItem('banyan-record')), size: 9e9 })));
  await page.reload();
  check('a record that got shorter is told', await all(/an older state was put back/), await badges.allInnerTexts());
  await page.evaluate(() => localStorage.removeItem('banyan-record'));
  await page.getByRole('button', { name: 'Verify all of it' }).click();
  check('the gate reads all of it again when it is asked to', await until(async () => /sound: \d+ entries signed for/.test(await page.locator('.search').innerText())));
});

await part('the next gate', async () => {
  const told = await call({ a: 1, b: 2 }, 'next__lab__add');
  check('a gate below is called', told.text === 'the sum is 3', told);
  const rows = page.locator('table.entries tbody tr:not(.pad)');
  const made = await until(() => banyan('audit', 'list', '--route', 'next.*').entries.find((entry) => entry.trace));
  await page.goto(`${HOME}#/record/${made.chain}/${made.seq}`);
  const link = one.getByRole('link', { name: 'the record of next' });
  await until(() => link.count());
  check('the record leads to that of the next gate', (await link.getAttribute('href')).endsWith(`/-/console/#/record/trace%3A${made.trace}`), await one.innerText());
  const { url } = JSON.parse(execFileSync(BANYAN, ['--gate', NEXT, '--json', 'console', '--print'], { encoding: 'utf8', env: { ...process.env, HOME: NEXT_HOME } }));
  const away = (await link.getAttribute('href')).replace('127.0.0.1', 'localhost');
  const other = await context.newPage();
  await signedIn(other, url, until);
  await other.goto(away);
  check('which says the rest of it', await until(async () => /lab\.add[\s\S]*(called|ended): done\s*proved/.test(await other.locator('.one').innerText())), await other.locator('body').innerText());
  await other.close();
  await page.goto(`${HOME}#/record`);
  await page.getByLabel('Id of a call').fill(made.trace);
  await page.getByRole('button', { name: 'Search' }).click();
  const texts = await until(async () => (await rows.count()) < 3 && (await rows.allInnerTexts()));
  check('a trace is found by its id', texts?.length > 0 && texts.every((text) => text.includes('next.lab.add')), texts);
});

await part('the policy', async () => {
  const told = await call({ disk: 'z' });
  check('a call that a rule forbids is refused', told.is_error && wiped().length === 1, told);
  await page.goto(`${HOME}#/policy`);
  const list = page.locator('.inbox');
  check('the rules are there, with what they did', await until(async () => /no-z[\s\S]*1 lately[\s\S]*no-b-soon[\s\S]*shadow: would 1/.test(await list.innerText())), await list.innerText());
  await list.getByText('local: refused, no-z').click();
  check('a refusal is explained, with what helps', await until(async () => /these rules forbid it[\s\S]*What helps: ask in #disks[\s\S]*context.arguments.disk == "z"/.test(await one.innerText())), await one.innerText());
  await shots(page, 'policy');
  await page.goto(`${HOME}#/policy`);
  check('budgets are there', await until(async () => /disks[\s\S]*1 of 5\s*changes/.test(await page.locator('.beside').innerText())), await page.locator('.beside').innerText());
  await shots(page, 'budgets');
  await page.goto(`${HOME}#/servers/disk`);
  check('a server says which calls need an approval', await until(async () => /approval\s*for calls that change something for good/.test(await page.locator('.detail').innerText())));
});

await part('grants', async () => {
  await page.goto(`${HOME}#/approvals/grants`);
  check('grants are listed', await until(async () => /holds for[\s\S]*disk\.wipe[\s\S]*like tmp-\*[\s\S]*0 of 2 times[\s\S]*bert/.test(await one.innerText())), await one.innerText());
  await shots(page, 'grants');
  await one.getByRole('button', { name: 'Take back the grant' }).click();
  await page.locator('dialog[open]').getByRole('button', { name: 'Take back' }).click();
  check('and taken back', await until(async () => /taken back/.test(await one.innerText())) && banyan('grants', 'list').grants[0].revoked !== null, await one.innerText());
});

await part('a grant that is given in the page', async () => {
  await authenticator(page);
  await page.goto(`${HOME}#/approvals/operators`);
  await page.getByLabel('Whose it is').fill('Cleo');
  await page.getByRole('button', { name: 'Make a passkey' }).click();
  await until(async () => /Cleo\s*passkey/.test(await one.innerText()));
  const first = call({ disk: 'tmp-1' });
  await until(async () => (await page.locator('.views .count').count()) === 1, 60_000);
  await look();
  await one.getByRole('link', { name: 'Let calls like this one through' }).click();
  const form = one.getByRole('form', { name: 'Give a grant' });
  await form.waitFor();
  const fields = async () => [await form.getByLabel('Tools').inputValue(), await form.getByLabel('Callers').inputValue(), await form.getByLabel('What argument 1').inputValue(), await form.getByLabel('Argument 2').count()].join();
  check('it begins with that call, and nothing beside it', await until(async () => (await fields()) === 'disk.wipe,local,tmp-1,0'), await fields());
  await form.getByLabel('What argument 1').fill('tmp-*');
  await form.getByLabel('For how many calls').fill('2');
  await form.getByRole('button', { name: 'Sign with a passkey' }).click();
  const given = await until(() => banyan('grants', 'list').grants.find((grant) => grant.holds));
  check('a passkey gives it', given?.given[0]?.person === 'Cleo' && given.terms.uses === 2 && !given.terms.any_other && JSON.stringify(given.terms.arguments) === '{"disk":"tmp-*"}', [given, await one.innerText()]);
  check('the page lists it', await until(async () => /holds for[\s\S]*like tmp-\*[\s\S]*0 of 2 times[\s\S]*Cleo/.test(await one.innerText())), await one.innerText());
  const told = await call({ disk: 'tmp-2' });
  check('a call like it goes out without being asked about', told.text === 'wiped tmp-2' && wiped().length === 2, told);
  const wider = call({ disk: 'tmp-3', force: true });
  const waiting = await until(() => { const { approvals } = banyan('approvals'); return approvals.length === 2 && approvals; }, 60_000);
  check('one with another argument is asked about', waiting && waiting.some((asked) => asked.arguments.includes('force')), waiting);
  for (const { id } of waiting || []) banyan('deny', id);
  const noes = await Promise.all([first, wider]);
  check('and a no holds as before', noes.every((no) => no.is_error) && wiped().length === 2, noes);
});

await part('what it did', async () => {
  const away = seen.requests.filter((r) => !/ http:\/\/localhost:\d+\//.test(r) && !/ (data|blob):/.test(r));
  check('no request left the gate, and its policy forbade nothing', away.length === 0 && seen.violations.length === 0, [away, seen.violations]);
});

await context.close();
ended();
