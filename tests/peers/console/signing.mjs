// Approvals as docs/approvals.md has them, played to the page, and an authenticator that Chromium plays to it: what the page shows, what it has
// signed, and what it refuses to, also where a gate lies to it. Whether a gate takes such a signature is tried in `agreeing.mjs`.
import { createHash, createPublicKey, randomBytes, verify } from 'node:crypto';
import { answering, authenticator, axe, check, until } from './browser.mjs';

const sha256 = (data) => createHash('sha256').update(data).digest();
const ARGUMENTS = '{"force":true,"path":"/srv/reports/\u200bnovember","tags":["a","b"]}';
const BEFORE = '{"force":false,"path":"/srv/reports/october","tags":["a","b"]}';

function approval(over = {}) {
  const now = Math.floor(Date.now() / 1000);
  const one = {
    id: 'a1b2', standing: 'pending', tool: 'files.delete', caller: 'ci', route: ['files', 'delete'], arguments: ARGUMENTS, definition_sha256: 'd'.repeat(64),
    annotation: { 'x-mcpax-safety': 'irreversible_mutable' }, causes: ['mode'], required: 1, votes: [], requested: now, since: now, expires: now + 300,
    attended: true, url: '', previous: { id: '0', arguments: BEFORE, since: now - 86_400 },
  };
  one.arguments_sha256 = sha256(one.arguments).toString('hex');
  const { arguments_sha256, caller, definition_sha256, expires, id, required, route, tool } = one;
  one.challenge = JSON.stringify({ arguments_sha256, caller, definition_sha256, expires, gate: 'g', id, nonce: 'n', policy: 'p', required, route, tool, type: 'banyan-approval-v1' });
  one.digest = sha256(one.challenge).toString('hex');
  return { ...one, ...over };
}

/** Answers for a gate that holds `shown`; notes what the page sends. */
async function play(page, shown, sent) {
  const json = (route, value) => route.fulfill({ contentType: 'application/json', body: JSON.stringify(value) });
  const rp = { id: 'localhost', name: 'Banyan' };
  await answering(page, /\/-\/approvals\?all=true$/, (route) => json(route, { now: Math.floor(Date.now() / 1000), approvals: [shown.approval, ...(shown.others ?? [])], below: [] }));
  await answering(page, '**/-/approvals/**', async (route) => {
    const request = route.request();
    const what = new URL(request.url()).pathname.split('/').at(-1);
    const body = request.method() === 'POST' ? request.postDataJSON() : null;
    if (what === 'events') return route.fulfill({ contentType: 'application/x-ndjson', body: '' });
    if (what === 'webauthn') {
      return json(route, { challenge: (shown.asked ?? Buffer.from(shown.approval.digest, 'hex')).toString('base64url'), rpId: rp.id, allowCredentials: [{ type: 'public-key', id: sent.key.id }], userVerification: 'required', timeout: 60_000 });
    }
    sent[what] = body;
    shown.approval = { ...shown.approval, standing: what === 'deny' ? 'denied' : 'released', reason: body.reason };
    return json(route, shown.approval);
  });
  await answering(page, '**/-/operators', async (route) => {
    if (route.request().method() === 'POST') sent.key = { ...route.request().postDataJSON().credential, name: route.request().postDataJSON().name };
    return json(route, { operators: sent.key ? [{ id: 'SHA256:x', name: sent.key.name, principals: [], key: '', passkey: true, enrolled: 1 }] : [] });
  });
  await answering(page, '**/-/operators/webauthn', (route) => json(route, {
    challenge: sent.made.toString('base64url'), rp, user: { id: 'YW5uYQ', name: 'anna', displayName: 'anna' }, pubKeyCredParams: [{ type: 'public-key', alg: -7 }],
    authenticatorSelection: { userVerification: 'required', residentKey: 'preferred' }, attestation: 'none', timeout: 60_000, excludeCredentials: [],
  }));
}

export async function signing(page, home) {
  const shown = { approval: approval() };
  const sent = { made: randomBytes(32) };
  await play(page, shown, sent);
  await authenticator(page);
  await page.goto(`${home}#/approvals/operators`);
  await page.reload();
  await page.getByLabel('Whose it is').fill('Anna');
  await page.getByRole('button', { name: 'Make a passkey' }).click();
  check('a passkey is made for a person', await until(() => sent.key?.name === 'Anna'));
  const told = (credential) => JSON.parse(Buffer.from(credential.response.clientDataJSON, 'base64url'));
  check('for the challenge that was given', told(sent.key).challenge === sent.made.toString('base64url') && told(sent.key).type === 'webauthn.create');

  await page.goto(`${home}#/approvals/a1b2`);
  const one = page.locator('.one');
  await one.getByRole('button', { name: 'Approve with a passkey' }).waitFor();
  const text = await one.innerText();
  check('what waits is counted where one goes', (await page.locator('.views .count').innerText()) === '1');
  check('all of the arguments are there', ['"force": true', 'november', '"a"', '"b"'].every((part) => text.includes(part)), text);
  check('a character that can not be seen is spelled out', text.includes('U+200B'), text);
  const cut = await one.locator('pre.whole').evaluateAll((blocks) => blocks.some((e) => e.scrollHeight > e.clientHeight + 2 || e.scrollWidth > e.clientWidth + 2));
  check('nothing of them is cut off or scrolled away', !cut);
  const rows = await one.locator('table.difference tbody th').allInnerTexts();
  check('what differs from last time is told', rows.join() === 'force,path', rows);
  check('who asks, which way and until when is told', /asked by\s+ci/.test(text) && /files\s*→\s*delete/.test(text) && /time left\s+[45]m/.test(text), text);

  shown.asked = randomBytes(32);
  await one.getByRole('button', { name: 'Approve with a passkey' }).click();
  check('nothing else is signed than what is shown', await until(async () => /something else than is shown/.test(await one.innerText())) && !sent.confirm);
  delete shown.asked;
  await one.getByRole('button', { name: 'Approve with a passkey' }).click();
  check('a signature comes', await until(() => sent.confirm), await one.innerText());
  const { type, credential } = sent.confirm?.proof ?? {};
  const client = Buffer.from(credential.response.clientDataJSON, 'base64url');
  const data = Buffer.from(credential.response.authenticatorData, 'base64url');
  const key = createPublicKey({ key: Buffer.from(sent.key.response.publicKey, 'base64url'), format: 'der', type: 'spki' });
  check('the passkey signs exactly that', type === 'webauthn' && verify('sha256', Buffer.concat([data, sha256(client)]), key, Buffer.from(credential.response.signature, 'base64url')));
  check('which is the digest of the challenge', JSON.parse(client).challenge === Buffer.from(shown.approval.digest, 'hex').toString('base64url') && (data[32] & 5) === 5);
  check('the page says what became of it', await until(async () => /Enough have agreed/.test(await one.innerText())), await one.innerText());

  shown.approval = approval({ arguments: '{"path":"/srv"}' });
  await page.reload();
  check('where arguments are not those that are signed, nobody can agree', await until(async () => /can not be agreed to here: the challenge is about other arguments/.test(await one.innerText()))
    && (await one.getByRole('button', { name: 'Approve' }).count()) === 0, await one.innerText());
  shown.approval = approval();
  await page.reload();
  await one.getByLabel('Why not').fill('not on a Friday');
  await one.getByRole('button', { name: 'Deny' }).click();
  check('a no goes with its reason', await until(() => sent.deny?.reason === 'not on a Friday') && await until(async () => /Somebody said no[\s\S]*not on a Friday/.test(await one.innerText())), sent.deny);
  await inboxed(page, home, shown);
  // Last, because the authenticator goes with any session of the debugger that ends.
  check('axe finds nothing in the inbox', (await axe(page)).length === 0, await axe(page));
  await page.unrouteAll();
}

/** A list of several calls: no line covers another, and a call that is read is not swapped for the next one. */
async function inboxed(page, home, shown) {
  shown.approval = approval({ id: 'first', expires: shown.approval.expires });
  shown.others = [approval({ id: 'second', tool: 'files.move' }), approval({ id: 'third', tool: 'files.copy' })];
  await page.goto(`${home}#/approvals`);
  await page.reload();
  const lines = page.locator('.inbox .canvas li');
  check('every call that waits has a line', await until(async () => (await lines.count()) === 3));
  const boxes = await lines.locator('a').evaluateAll((all) => all.map((one) => one.getBoundingClientRect()).map(({ top, bottom }) => ({ top, bottom })));
  check('no line covers another', boxes.every((one, i) => i === 0 || one.top >= boxes[i - 1].bottom - 1), boxes);
  const one = page.locator('.one');
  check('the one that waits longest stands beside them', await until(async () => /files\.delete/.test(await one.innerText())));
  shown.approval = { ...shown.approval, standing: 'expired' };
  check('it stays when it is settled, and says so', await until(async () => /settled or has expired[^]*files\.delete/.test(await one.innerText())) && (await one.getByRole('button', { name: 'Approve' }).count()) === 0, await one.innerText());
  await one.getByRole('button', { name: 'Show the next call' }).click();
  check('the next one comes by a press', await until(async () => /^files\.move/.test(await one.innerText())), await one.innerText());
  const mono = await one.locator('pre').first().evaluate((element) => getComputedStyle(element).fontVariantLigatures);
  check('what is signed is drawn character by character', mono === 'none', mono);
}
