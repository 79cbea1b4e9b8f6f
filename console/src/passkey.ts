// Passkeys as WebAuthn level 3 spells them in JSON. What is signed is decided elsewhere.

interface Named {
  type: 'public-key';
  id: string;
}

export interface RequestOptions {
  challenge: string;
  rpId: string;
  allowCredentials: Named[];
  userVerification: UserVerificationRequirement;
  timeout: number;
}

export interface CreationOptions {
  challenge: string;
  rp: { id: string; name: string };
  user: { id: string; name: string; displayName: string };
  pubKeyCredParams: { type: 'public-key'; alg: number }[];
  authenticatorSelection: AuthenticatorSelectionCriteria;
  attestation: AttestationConveyancePreference;
  timeout: number;
  excludeCredentials: Named[];
}

export function bytes(base64url: string): Uint8Array<ArrayBuffer> {
  const text = atob(base64url.replaceAll('-', '+').replaceAll('_', '/'));
  return Uint8Array.from(text, (c) => c.charCodeAt(0));
}

export function base64url(buffer: ArrayBuffer): string {
  return btoa(String.fromCharCode(...new Uint8Array(buffer))).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '');
}

export async function sha256(text: string): Promise<Uint8Array<ArrayBuffer>> {
  return new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text)));
}

export function hex(raw: Uint8Array): string {
  return [...raw].map((b) => b.toString(16).padStart(2, '0')).join('');
}

const named = ({ type, id }: Named): PublicKeyCredentialDescriptor => ({ type, id: bytes(id) });

/** Has a passkey sign; the credential as `toJSON()` writes it, as far as a gate reads it. */
export async function sign(options: RequestOptions): Promise<unknown> {
  const got = await navigator.credentials.get({
    publicKey: { ...options, challenge: bytes(options.challenge), allowCredentials: options.allowCredentials.map(named) },
  });
  if (!(got instanceof PublicKeyCredential) || !(got.response instanceof AuthenticatorAssertionResponse)) throw new Error('the browser gave no signature');
  const { clientDataJSON, authenticatorData, signature } = got.response;
  return { id: got.id, response: { clientDataJSON: base64url(clientDataJSON), authenticatorData: base64url(authenticatorData), signature: base64url(signature) } };
}

/** Makes a passkey. */
export async function make(options: CreationOptions): Promise<unknown> {
  const publicKey = { ...options, challenge: bytes(options.challenge), user: { ...options.user, id: bytes(options.user.id) }, excludeCredentials: options.excludeCredentials.map(named) };
  const made = await navigator.credentials.create({ publicKey });
  if (!(made instanceof PublicKeyCredential) || !(made.response instanceof AuthenticatorAttestationResponse)) throw new Error('the browser made no passkey');
  const key = made.response.getPublicKey();
  if (!key) throw new Error('the browser does not tell the key of the passkey: it is of a kind that it does not know');
  return { id: made.id, response: { clientDataJSON: base64url(made.response.clientDataJSON), authenticatorData: base64url(made.response.getAuthenticatorData()), publicKey: base64url(key) } };
}
