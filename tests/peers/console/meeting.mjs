// A room with two people in two browsers, an agent that proposes, and one that owns the tool (Python's `websockets`, `puppet.py`); beside them the
// terminal, whose export has to be the same. Nothing is played to the pages.
import { execFileSync, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { check, ended, open, part, shots, until } from './browser.mjs';

const { BANYAN, GATE, PYTHON, PUPPET } = process.env;
const banyan = (...words) => JSON.parse(execFileSync(BANYAN, ['--gate', GATE, '--json', ...words], { encoding: 'utf8' }));
const link = () => banyan('console', '--print').url;
const ORIGIN = new URL(link()).origin;
const PORT = new URL(ORIGIN).port;
const HOME = `${ORIGIN}/-/console/`;

/** A person with a browser of its own. Its sockets can be cut, and their addresses are looked at. */
async function person(name) {
  const { context, page, seen } = await open(name, { colorScheme: 'dark', acceptDownloads: true });
  await context.addInitScript(() => {
    const Real = window.WebSocket;
    window.sockets = [];
    window.WebSocket = class extends Real { constructor(...given) { super(...given); window.sockets.push(this); } };
  });
  const addresses = [];
  page.on('websocket', (socket) => addresses.push(socket.url()));
  await page.goto(link());
  await until(() => page.evaluate(() => localStorage.getItem('banyan-console') !== null));
  const room = page.locator('.room');
  const says = async (text) => {
    await room.getByLabel('Say to everybody here').fill(text);
    await page.keyboard.press('Enter');
  };
  return { name, context, page, seen, room, addresses, says, text: () => room.innerText(), card: (number) => page.locator(`#thread-${number}`) };
}

/** A program in the room, and what it has heard. */
function puppet(...words) {
  const child = spawn(PYTHON, [PUPPET, PORT, 'ops', ...words], { stdio: ['pipe', 'pipe', 'inherit'] });
  const heard = [];
  let rest = '';
  child.stdout.on('data', (piece) => {
    const lines = (rest + piece).split('\n');
    rest = lines.pop();
    heard.push(...lines.map((line) => JSON.parse(line)));
  });
  return { heard, say: (kind, payload, more = {}) => child.stdin.write(`${JSON.stringify({ kind, payload, ...more })}\n`), line: (text) => child.stdin.write(`${text}\n`), end: () => child.stdin.end(), find: (wanted) => until(() => heard.find(wanted)) };
}

const ann = await person('ann');
const bea = await person('bea');
const both = [ann, bea];
const terminal = spawn(BANYAN, ['--gate', GATE, 'room', 'join', 'ops', '--as', 'terminal'], { stdio: ['pipe', 'pipe', 'inherit'] });
let printed = '';
terminal.stdout.on('data', (piece) => { printed += piece; });
await until(() => printed.includes('you are terminal'));
let bot;
let files;
const clean = (given) => ({ jsonrpc: '2.0', id: 'x', method: 'tools/call', params: { name: 'clean', arguments: given } });
const propose = (given) => bot.say('mcp/proposal:tools/call:clean', clean(given), { to: ['files'] });

await part('coming in', async () => {
  await ann.page.locator('.views').getByRole('link', { name: 'Rooms' }).click();
  const line = ann.page.locator('.inbox').getByRole('link', { name: /ops/ });
  check('rooms are listed, with who is there', await until(async () => /1 participant/.test(await line.innerText())), await ann.page.locator('.inbox').innerText());
  await line.click();
  await shots(ann.page, 'room-door');
  for (const one of both) {
    await one.page.goto(`${HOME}#/rooms/ops`);
    await one.room.getByLabel('Your name in this room').fill(one.name);
    await one.room.getByRole('button', { name: 'Come in' }).click();
    check(`${one.name} is in the room`, await until(async () => (await one.text()).includes(`you are in, as ${one.name}`)), await one.text());
  }
  bot = puppet('bot-secret');
  files = puppet('files-secret', 'owner');
  const aside = ann.page.getByRole('complementary', { name: /^Who is here/ });
  const shown = async () => { const text = await aside.innerText(); return ['ann (you)', 'bea', 'bot', 'files', 'mcp/proposal:*'].every((one) => text.includes(one)); };
  check('who is here stands beside, with what each may send', await until(shown), await aside.innerText());
  check('no address holds anything that lets somebody in', both.every(({ addresses }) => addresses.length === 1 && addresses[0] === `ws://localhost:${PORT}/ws?topic=ops&also=mcp/reject,mcp/withdraw&history=200`), both.map(({ addresses }) => addresses));
});

await part('tickets', async () => {
  const kept = await ann.page.evaluate(() => localStorage.getItem('banyan-console'));
  const cookie = (await ann.context.cookies(ORIGIN + '/-/')).find((one) => one.name.startsWith('banyan-console-'));
  const asking = (headers) => fetch(`${ORIGIN}/-/rooms/ops/ticket`, { method: 'POST', body: '{"participant": "eve"}', headers });
  const own = { cookie: `${cookie.name}=${cookie.value}`, 'banyan-console': kept };
  const statuses = async (...all) => (await Promise.all(all.map(asking))).map((answer) => answer.status).join();
  const refused = await statuses({}, { cookie: own.cookie }, { 'banyan-console': kept }, { ...own, origin: 'http://localhost:1' });
  check('a ticket takes both halves of a sign-in, and a page of this gate', refused === '403,403,403,403', refused);
  const { ticket } = await (await asking(own)).json();
  const shown = (origin, text = ticket) => new Promise((resolve) => {
    import('node:http').then(({ request }) => {
      const headers = { connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13', 'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==', 'sec-websocket-protocol': `mcpx.v0.1, banyan-ticket.${text}`, ...(origin ? { origin } : {}) };
      const asked = request(`${ORIGIN}/ws?topic=ops`, { headers });
      asked.on('response', (answer) => { answer.resume(); resolve(answer.statusCode); });
      asked.on('upgrade', (answer, socket) => { socket.destroy(); resolve(`${answer.statusCode} ${answer.headers['sec-websocket-protocol']}`); });
      asked.end();
    });
  });
  check('a page of elsewhere can not show one', (await shown('http://localhost:1')) === 403);
  check('it lets in once', (await shown(ORIGIN)) === '101 mcpx.v0.1');
  check('and not again', (await shown(ORIGIN)) === 403 && (await shown(ORIGIN, 'f'.repeat(64))) === 403);
});

await part('a proposal that is approved', async () => {
  // As it stands: a number with more digits than JavaScript keeps, a character that nobody sees, and what would be HTML.
  bot.line('{"kind": "mcp/proposal:tools/call:clean", "to": ["files"], "payload": {"method": "tools/call", "params": {"name": "clean", "arguments": {"path": "/var/cache", "bytes": 12345678901234567890, "note": "za\u200bp <b>now</b>"}}}}');
  for (const one of both) {
    const shown = await until(async () => (await one.card(1).innerText()).includes('12345678901234567890') && one.card(1).innerText());
    check(`${one.name} sees it exactly, with what can not be seen spelled out`, shown && shown.includes('<b>now</b>') && /bot proposes it to files/.test(shown) && /\d+m.* left/.test(shown) && /U\+200B|\\u200b/.test(shown), shown);
  }
  check('what waits is counted in the navigation', (await ann.page.locator('.views .count').innerText()) === '1');
  await ann.says('is that safe?');
  await until(async () => (await bea.text()).includes('is that safe?'));
  await bea.says('yes, it is a <i>cache</i> \u202egnp.exe');
  check('people talk about it, and nothing they write is HTML or turns round', await until(async () => (await ann.text()).includes('yes, it is a <i>cache</i> U+202E')), await ann.text());
  await shots(bea.page, 'room-waiting');
  await bea.card(1).getByRole('button', { name: /^Approve/ }).click();
  for (const one of both) {
    const shown = await until(async () => (await one.card(1).innerText()).includes('3 GB freed below /var/cache') && one.card(1).innerText());
    check(`${one.name} sees who approved it, and what came of it`, shown && /approved by bea/.test(shown) && /carried out by files/.test(shown), shown);
  }
  const did = await files.find((one) => one.kind === 'did');
  check('it was carried out exactly as it was proposed', did?.arguments.includes('12345678901234567890') && did.arguments.includes('<b>now</b>'), did);
  check('and the agent hears of it', await bot.find((one) => one.kind === 'mcp/response:tools/call:clean'));
  check('nothing waits any more', await until(async () => (await ann.page.locator('.views .count').count()) === 0));
});

await part('proposals that are not', async () => {
  propose({ path: '/home' });
  await ann.card(2).getByLabel(/^Why not/).fill('people live there');
  await ann.card(2).getByRole('button', { name: /^Reject/ }).click();
  check('a no is seen by the other, with its reason', await until(async () => /rejected by ann: .?people live there/.test(await bea.card(2).innerText())), await bea.card(2).innerText());
  const end = await bot.find((one) => one.kind === 'mcp/reject:tools/call:clean');
  check('and heard by the agent', end?.payload.reason === 'people live there', end);
  propose({ path: '/etc' });
  await bea.card(3).getByRole('button', { name: /^Approve/ }).click();
  check('what fails is told', await until(async () => /failed[\s\S]*answered with an error by files[\s\S]*\/etc is not to be cleaned/.test(await ann.card(3).innerText())), await ann.card(3).innerText());
  bot.say('mcp/proposal:tools/call:clean', { method: 'tools/call', params: { name: 'format', arguments: {} } }, { to: ['files'] });
  check('what hides behind its kind is dropped, told and counted', await until(async () => /A message of bot dropped: its kind names one thing/.test(await ann.text()) && /1 message dropped/.test(await ann.text())), await ann.text());
});

await part('capabilities', async () => {
  const aside = ann.page.getByRole('complementary', { name: /^Who is here/ });
  const editor = aside.getByRole('form', { name: 'What bot may send' });
  bot.say('mcp/request:tools/call:clean', clean({ path: '/tmp' }), { to: ['files'] });
  const no = await bot.find((one) => one.kind === 'system/error');
  check('an agent may not call before it is given that', no?.payload.error === 'capability_violation', no);
  await aside.getByRole('button', { name: 'Change what bot may send' }).click();
  const field = editor.getByLabel('Another kind, or a pattern');
  for (const [pattern, said] of [['system/x', 'the gate\'s own'], ['a*b*c*d*e*f*g*h*i*', 'at most'], ['mcp/*', 'every call of every tool'], ['mcp/proposal:*', 'there already']]) {
    await field.fill(pattern);
    check(`${pattern} is told about`, await until(async () => (await editor.innerText()).includes(said)), await editor.innerText());
  }
  check('what can not be is not applied', await editor.getByRole('button', { name: 'Apply' }).isDisabled());
  await field.fill('mcp/request:tools/call:clean');
  const preview = editor.getByRole('region', { name: /What was seen so far/ });
  check('what it would mean for what was seen is shown', await until(async () => /may now mcp\/request:tools\/call:clean 2×/.test((await preview.innerText()).replace(/\s+/g, ' '))), await preview.innerText());
  await shots(ann.page, 'room-editor');
  await editor.getByRole('button', { name: 'Apply' }).click();
  const welcome = await bot.find((one) => one.kind === 'system/welcome' && one.payload.you.capabilities.includes('mcp/request:tools/call:clean'));
  check('the agent is told at once', welcome);
  bot.say('mcp/request:tools/call:clean', clean({ path: '/tmp' }), { to: ['files'] });
  check('and its call goes out', await until(async () => /bot calls it at files[\s\S]*carried out by files[\s\S]*3 GB freed below \/tmp/.test(await bea.card(4).innerText())), await bea.text());
  await editor.getByRole('button', { name: 'Take away mcp/request:tools/call:clean' }).click();
  check('taking it away is shown before it is done', await until(async () => /may no more mcp\/request:tools\/call:clean 3×/.test((await preview.innerText()).replace(/\s+/g, ' '))), await preview.innerText());
  await editor.getByRole('button', { name: 'Apply' }).click();
  await until(() => bot.heard.filter((one) => one.kind === 'system/welcome').length === 3);
  const refusals = () => bot.heard.filter((one) => one.kind === 'system/error').length;
  bot.say('mcp/request:tools/call:clean', clean({ path: '/tmp' }), { to: ['files'] });
  check('and holds at once', await until(() => refusals() === 2) && files.heard.filter((one) => one.kind === 'did').length === 3, [bot.heard.slice(-3), files.heard.length]);
  await editor.getByRole('button', { name: 'Close' }).click();
  const record = await until(() => { const found = banyan('audit', 'list').entries.filter((entry) => JSON.stringify(entry).includes('participant bot')); return found.length >= 2 && found; });
  check('both stand in the record', record && record.length === 2, record);
  // What the owner may send itself changes at once, in its own page too.
  await aside.getByRole('button', { name: 'Change what bea may send' }).click();
  const hers = aside.getByRole('form', { name: 'What bea may send' });
  await hers.getByRole('button', { name: 'Take away chat' }).click();
  await hers.getByRole('button', { name: 'Apply' }).click();
  check('a page shows what its own may send', await until(async () => /An admin has changed what you may send[\s\S]*may no more\s*chat/.test(await bea.text()) && bea.room.getByRole('button', { name: 'Say', exact: true }).isDisabled()), await bea.text());
  await hers.getByRole('button', { name: 'Close' }).click();
});

await part('the chains', async () => {
  const waiting = ann.page.waitForEvent('download');
  await ann.room.getByRole('button', { name: 'Export chains' }).click();
  const lines = readFileSync(await (await waiting).path(), 'utf8').trim().split('\n').map((line) => JSON.parse(line));
  const states = lines.map((one) => `${one.state} ${one.outcome ?? one.reason ?? ''}`.trim());
  check('the export has each chain from its beginning to its end', states.join() === 'answered done,rejected people live there,answered failed,answered done', lines);
  const [one] = lines;
  check('with who did what, and when', one.proposal.from === 'bot' && one.request.from === 'bea' && one.response.from === 'files' && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/.test(one.request.ts), one);
  printed = '';
  terminal.stdin.write('/export\n');
  const theirs = await until(() => { const all = printed.split('\n').filter((line) => line.startsWith('{')); return all.length === 4 && all; });
  // Each saw it at its own time.
  const timeless = (text) => text.replace(/"ts":"[^"]*"/g, '"ts":""');
  const ours = readFileSync(await (await waiting).path(), 'utf8').trim().split('\n');
  check('it is what a terminal exports, byte for byte but for when it was seen', JSON.stringify(ours.map(timeless)) === JSON.stringify((theirs || []).map(timeless)), [ours, theirs]);
});

await part('being cut off', async () => {
  propose({ path: '/opt' });
  await until(async () => (await ann.page.locator('#thread-5').count()) === 1);
  await ann.page.evaluate(() => window.sockets.at(-1).close(4000));
  check('a page that was cut off comes back, and says what it does not know', await until(async () => /You were away for .*not here, unless the room keeps it/s.test(await ann.text()) && (await ann.text()).includes('you are in, as ann')), await ann.text());
  check('also at what was open', await until(async () => /somebody may have decided this/.test(await ann.card(5).innerText())), await ann.card(5).innerText());
  await ann.card(5).getByRole('button', { name: /^Approve/ }).click();
  check('and goes on', await until(async () => /3 GB freed below \/opt/.test(await bea.card(5).innerText())), await bea.card(5).innerText());
  await shots(ann.page, 'room-gap');
  const other = spawn(BANYAN, ['--gate', GATE, 'room', 'join', 'ops', '--as', 'ann'], { stdio: ['pipe', 'ignore', 'inherit'] });
  check('a name that comes in elsewhere puts this page out, and it does not fight', await until(async () => /you are out: somebody came in by this name elsewhere/.test(await ann.text())), await ann.text());
  other.stdin.end('/quit\n');
  await ann.room.getByRole('button', { name: 'Come in again' }).click();
  check('until somebody says so', await until(async () => (await ann.text()).includes('you are in, as ann')), await ann.text());
  await ann.page.reload();
  check('a page that is loaded anew is in again', await until(async () => (await ann.text()).includes('you are in, as ann')), await ann.text());
});

await part('proposing', async () => {
  const form = ann.room.getByRole('form', { name: 'Propose a call' });
  const text = () => form.innerText();
  const card = (one, words) => one.page.locator('.thread', { hasText: words });
  // A key opens it, and one goes through it by keys alone.
  await ann.room.getByRole('heading', { name: 'ops', exact: true }).click();
  await ann.page.keyboard.press('p');
  check('a key opens the form, at its first field', await until(() => ann.page.evaluate(() => document.activeElement?.id === 'propose-to')));
  await ann.page.keyboard.press('Escape');
  check('and one leaves it, where it came from', await until(async () => (await form.count()) === 0 && ann.page.evaluate(() => document.activeElement?.textContent === 'Propose a call')));
  await ann.page.keyboard.press('Enter');
  await form.getByRole('button', { name: 'Propose', exact: true }).click();
  check('what is missing is said where it is missing, and leads there', await until(async () => /name a tool/.test(await text()) && ann.page.evaluate(() => document.activeElement?.id === 'propose-name' && document.activeElement.getAttribute('aria-invalid') === 'true')), await text());
  await form.getByLabel('Tool').fill('clean');
  const raw = form.getByLabel('Arguments, as JSON');
  for (const [written, said] of [['{"path": ', 'JSON object'], ['[1]', 'JSON object'], ['{"a":1,"a":2}', 'stands twice']]) {
    await raw.fill(written);
    check(`${written} is told about`, await until(async () => (await text()).includes(said)) && (await raw.getAttribute('aria-invalid')) === 'true', await text());
  }
  await shots(ann.page, 'room-propose-wrong');
  await form.getByLabel('Who carries it out').selectOption('files');
  await raw.fill('{"path": "/var/mine", "bytes": 12345678901234567890}');
  await form.getByRole('button', { name: 'Propose', exact: true }).click();
  check('it is proposed exactly as it was written', await until(async () => /12345678901234567890[^]*left|left[^]*12345678901234567890/.test(await card(bea, '/var/mine').innerText())), await bea.text());
  check('and the form is gone', (await form.count()) === 0);
  const own = card(ann, '/var/mine');
  check('nobody decides on a proposal of its own', /It is your own/.test(await own.innerText()) && (await own.getByRole('button', { name: /^Approve/ }).count()) === 0, await own.innerText());
  await own.getByRole('button', { name: /^Withdraw/ }).click();
  check('but takes it back, and everybody sees that', await until(async () => /taken back by ann/.test(await card(bea, '/var/mine').innerText()) && /withdrawn/.test(await own.innerText())), await card(bea, '/var/mine').innerText());
  // With what the tool says of itself, the form has fields.
  await ann.room.getByRole('button', { name: 'Propose a call' }).click();
  await form.getByLabel('Who carries it out').selectOption('files');
  await form.getByRole('button', { name: 'Ask files for its tools' }).click();
  check('its tools can be asked for', await until(async () => /files has clean\./.test(await text())), await text());
  await form.getByLabel('Tool').fill('clean');
  await form.getByLabel('path').fill('/var/asked');
  await form.getByLabel('bytes').fill('many');
  check('a field says what does not fit it', await until(async () => (await form.locator('[aria-invalid=true]').count()) === 1), await text());
  await form.getByLabel('bytes').fill('42');
  await shots(ann.page, 'room-propose');
  await form.getByRole('button', { name: 'Propose', exact: true }).click();
  await card(bea, '/var/asked').getByRole('button', { name: /^Approve/ }).click();
  check('and it is approved as any other', await until(async () => /approved by bea[^]*3 GB freed below \/var\/asked/.test(await card(ann, '/var/asked').innerText())), await ann.text());
  await ann.room.getByRole('button', { name: 'Propose a call' }).click();
  await form.getByRole('button', { name: 'Another method' }).click();
  await form.getByLabel('Method').fill('resources/read');
  await form.getByLabel('Params, as JSON').fill('{"uri": "file:///a:b"}');
  await form.getByRole('button', { name: 'Propose', exact: true }).click();
  check('any method can be proposed', await bot.find((one) => one.kind === 'mcp/proposal:resources/read:file:///a:b'));
  await card(ann, 'file:///a:b').getByRole('button', { name: /^Withdraw/ }).click();
  await until(async () => /withdrawn/.test(await card(ann, 'file:///a:b').innerText()));
});

await part('rules', async () => {
  const aside = ann.page.getByRole('complementary', { name: /^Who is here/ });
  const card = (one, path) => one.page.locator('.thread', { hasText: `"${path}"` });
  await aside.getByRole('form', { name: 'Learn rules' }).getByRole('button', { name: 'Learn here' }).click();
  check('the gate sits in the room, and is seen to', await until(async () => /rules learns here for the gate/.test(await aside.innerText()) && /rules is here/.test(await bea.text())), await aside.innerText());
  for (const path of ['a1', 'b2', 'c3', 'd4', 'e5'].map((name) => `/var/cache/${name}`)) {
    propose({ path });
    await card(bea, path).getByRole('button', { name: /^Approve/ }).click();
    await until(async () => /carried out by files/.test(await card(ann, path).innerText()));
  }
  const offer = aside.getByRole('form', { name: 'Offer 1' });
  check('after five decisions that agree a rule is offered, in words', await until(async () => /"bot" proposes: tools\/call "clean" by "files"/.test(await offer.innerText()), 20_000) && /5 decisions agree/.test(await bea.text()), await aside.innerText());
  await offer.getByText('5 decisions for it').click();
  check('with the decisions that speak for it', await until(async () => (await offer.locator('.evidence li').count()) === 5 && /approved by bea/.test(await offer.innerText())), await offer.innerText());
  await shots(ann.page, 'room-offer');
  propose({ path: '/var/cache/f6' });
  await until(async () => (await card(ann, '/var/cache/f6').count()) === 1);
  check('nothing is done by a rule that nobody accepted', /left/.test(await card(ann, '/var/cache/f6').innerText()), await card(ann, '/var/cache/f6').innerText());
  await card(ann, '/var/cache/f6').getByRole('button', { name: /^Approve/ }).click();
  await until(async () => (await offer.locator('.evidence li').count()) === 6, 20_000);
  const cookies = (await bea.context.cookies(`${ORIGIN}/-/`)).filter((one) => one.name.startsWith('banyan-console-')).map((one) => `${one.name}=${one.value}`).join();
  const hers = { cookie: cookies, 'banyan-console': await bea.page.evaluate(() => localStorage.getItem('banyan-console')), 'content-type': 'application/json' };
  const inHisName = await fetch(`${ORIGIN}/-/rooms/ops/rules/accept`, { method: 'POST', headers: hers, body: JSON.stringify({ offer: 1, by: 'ann' }) });
  check('nobody accepts in the name of another sign-in', inHisName.status === 400 && /another sign-in/.test(await inHisName.text()), inHisName.status);
  await offer.getByLabel('calls in all').fill('2');
  await offer.getByRole('button', { name: 'Accept it as a rule' }).click();
  const rule = aside.getByRole('listitem', { name: 'rule-1' });
  check('a person accepts it, within limits', await until(async () => /active[\s\S]*accepted by ann[\s\S]*0 of 2 calls made/.test(await rule.innerText())), await aside.innerText());
  propose({ path: '/var/cache/g7' });
  check('from then on it fulfils, and names itself', await until(async () => /approved by rules by rule-1, which ann accepted[\s\S]*3 GB freed below \/var\/cache\/g7/.test(await card(bea, '/var/cache/g7').innerText())), await bea.text());
  check('what it did is listed', await until(async () => /1 of 2 calls made[\s\S]*what it did: 1 call/.test(await rule.innerText()), 20_000), await rule.innerText());
  terminal.stdin.write('/pause rules 600 a look at it\n');
  check('who pauses it is shown, and why', await until(async () => /paused by "terminal" \("a look at it"\)/.test(await aside.innerText()), 20_000), await aside.innerText());
  await shots(ann.page, 'room-paused');
  propose({ path: '/var/cache/p9' });
  await until(async () => (await card(bea, '/var/cache/p9').count()) === 1);
  terminal.stdin.write('/resume rules\n');
  check('until it goes on', await until(async () => !/paused by/.test(await aside.innerText()), 20_000), await aside.innerText());
  check('a rule that is paused does nothing, and nothing late', /left/.test(await card(ann, '/var/cache/p9').innerText()) && /1 of 2 calls made/.test(await rule.innerText()), await card(ann, '/var/cache/p9').innerText());
  await card(bea, '/var/cache/p9').getByRole('button', { name: /^Approve/ }).click();
  await until(async () => /carried out by files/.test(await card(ann, '/var/cache/p9').innerText()));
  await rule.getByRole('button', { name: 'Revoke rule-1' }).click();
  await shots(ann.page, 'room-revoke');
  await ann.page.getByRole('dialog').getByRole('button', { name: 'Revoke', exact: true }).click();
  check('a person revokes it', await until(async () => /revoked by ann/.test(await rule.innerText()) && /rule-1 has ended: revoked by ann/.test(await bea.text())), await rule.innerText());
  propose({ path: '/var/cache/h8' });
  await until(async () => (await card(ann, '/var/cache/h8').count()) === 1);
  await ann.says('that one is ours again');
  await until(async () => (await bea.text()).includes('that one is ours again'));
  check('and what it covered waits for people again', /left/.test(await card(bea, '/var/cache/h8').innerText()), await card(bea, '/var/cache/h8').innerText());
  const record = banyan('audit', 'list').entries.map((entry) => JSON.stringify(entry)).filter((entry) => /rule-1 (accepted|revoked) \(by ann\)/.test(entry));
  check('both stand in the record', record.length === 2, record);
  await aside.getByRole('button', { name: 'Stop learning' }).click();
  check('and the gate leaves when it is told to', await until(async () => /rules has left/.test(await ann.text())), await aside.innerText());
});

await part('many messages', async () => {
  bot.say('chat', { text: 'tick' }, { times: 700 });
  check('a page keeps the latest, and says so', await until(async () => /2\d\d earlier things are not kept here any more/.test(await ann.text())), (await ann.text()).slice(0, 300));
  check('no more of them', (await ann.page.locator('.moment').count()) === 500, await ann.page.locator('.moment').count());
  propose({ path: '/srv' });
  await ann.page.getByRole('navigation', { name: 'Proposals that wait' }).getByRole('button', { name: /clean/ }).click();
  const at = await until(() => ann.page.evaluate(() => document.activeElement?.classList.contains('thread')));
  check('what waits is a click away', at);
  await ann.page.keyboard.press('c');
  check('a key leads to the chat', await ann.page.evaluate(() => document.activeElement?.getAttribute('aria-label') === 'Say to everybody here'));
});

await part('a room that keeps its history', async () => {
  const early = spawn(BANYAN, ['--gate', GATE, 'room', 'join', 'lab', '--as', 'early'], { stdio: ['pipe', 'pipe', 'inherit'] });
  let heard = '';
  early.stdout.on('data', (piece) => { heard += piece; });
  early.stdin.write('said before anybody came\n');
  await until(() => heard.includes('early: said before anybody came'));
  await ann.page.goto(`${HOME}#/rooms/lab`);
  await ann.room.getByRole('button', { name: 'Come in' }).click();
  check('what was said before is shown, and said to be from before', await until(async () => /1 message from before, as the room has kept it[\s\S]*early\s*said before anybody came/.test(await ann.text())), await ann.text());
  await ann.page.evaluate(() => window.sockets.at(-1).close(4000));
  early.stdin.write('said meanwhile, perhaps\n');
  check('nothing of it is shown twice, nor lost', await until(async () => /You were away/.test(await ann.text()) && /said meanwhile, perhaps/.test(await ann.text())) && (await ann.text()).split('said before anybody came').length === 2, await ann.text());
  early.stdin.end('/quit\n');
  await ann.room.getByRole('button', { name: 'Leave' }).click();
  await ann.page.goto(`${HOME}#/rooms/ops`);
});

await part('leaving', async () => {
  const aside = ann.page.getByRole('complementary', { name: /^Who is here/ });
  await aside.getByRole('button', { name: 'Change what bot may send' }).click();
  await aside.getByRole('button', { name: 'Put out bot' }).click();
  await ann.page.getByRole('button', { name: 'Put out', exact: true }).click();
  check('an admin puts somebody out', (await bot.find((one) => one.kind === 'closed'))?.code === 4003 && await until(async () => /bot has left/.test(await ann.text())), await ann.text());
  await bea.page.getByRole('button', { name: 'Sign out' }).click();
  check('whoever signs out is out of the room', await until(async () => /bea has left/.test(await ann.text())), (await ann.text()).slice(-400));
  await ann.room.getByRole('button', { name: 'Leave' }).click();
  check('and so is who leaves', await until(() => banyan('room', 'list', 'ops').participants.every((one) => one.id !== 'ann')), banyan('room', 'list', 'ops'));
});

await part('what it did', async () => {
  for (const { name, seen } of both) {
    const away = seen.requests.filter((r) => !/ http:\/\/localhost:\d+\//.test(r) && !/ (data|blob):/.test(r));
    const secrets = seen.requests.filter((r) => /ticket\.|token=/.test(r));
    check(`no request of ${name} left the gate or showed a ticket, and its policy forbade nothing`, away.length + secrets.length + seen.violations.length === 0, [away, secrets, seen.violations]);
    // Whoever has signed out is refused what guests may not know.
    const failed = seen.errors.filter((error) => !/403 \(Forbidden\)/.test(error));
    check(`nothing failed in the page of ${name}`, failed.length === 0, failed);
  }
});

files.end();
terminal.stdin.end('/quit\n');
await Promise.all(both.map(({ context }) => context.close()));
ended();
