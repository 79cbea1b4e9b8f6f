"""Execution Context Tokens (AE-41): a workflow signed with another library is shown, drawn, checked and exported by the command, without a gate;
what it exports is verified by the other library, and whatever is changed is refused."""
import base64
import json
import subprocess
import tempfile
import time
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, utils
from gateway import binary

WRITER, EDITOR = "spiffe://a.example/writer", "spiffe://b.example/editor"
FLOW = "5f0c7d1e-0000-4000-8000-000000000000"
IDS = [f"5f0c7d1e-0000-4000-8000-00000000000{number}" for number in range(6)]


def encoded(raw):
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def decoded(part):
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


class Party:
    """An issuer with a key of its own."""

    def __init__(self, name, key, key_id):
        self.name, self.key, self.key_id = name, key, key_id
        self.algorithm = "ES256" if isinstance(key, ec.EllipticCurvePrivateKey) else "EdDSA"

    def pem(self):
        """The public key."""
        return self.key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo).decode()

    def sign(self, number, parents, begin, **other):
        """A token of draft -01."""
        claims = {"iss": self.name, "aud": ["spiffe://a.example/ledger"], "iat": begin, "exp": begin + 600, "jti": IDS[number], "wid": FLOW,
                  "exec_act": f"step_{number}", "pred": [IDS[parent] for parent in parents], **other}
        header = {"alg": self.algorithm, "kid": self.key_id, "typ": "exec+jwt"}
        signed = f"{encoded(json.dumps(header).encode())}.{encoded(json.dumps(claims).encode())}"
        if self.algorithm == "EdDSA":
            return f"{signed}.{encoded(self.key.sign(signed.encode()))}"
        first, second = utils.decode_dss_signature(self.key.sign(signed.encode(), ec.ECDSA(hashes.SHA256())))
        return f"{signed}.{encoded(first.to_bytes(32, 'big') + second.to_bytes(32, 'big'))}"

    def holds(self, token):
        """Whether the library takes the signature."""
        signed, signature = token.rsplit(".", 1)
        raw = decoded(signature)
        try:
            if self.algorithm == "EdDSA":
                self.key.public_key().verify(raw, signed.encode())
            else:
                pair = utils.encode_dss_signature(int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big"))
                self.key.public_key().verify(pair, signed.encode(), ec.ECDSA(hashes.SHA256()))
        except InvalidSignature:
            return False
        return True


def run(report):
    report.guard("agents/workflows", lambda: workflows(report))


def workflows(report):
    """Two issuers, four tasks of which the last has two predecessors, and what is done to them."""
    # A day ago: an export is read later.
    writer, editor, begin = Party(WRITER, ec.generate_private_key(ec.SECP256R1()), "w"), Party(EDITOR, ed25519.Ed25519PrivateKey.generate(), "e"), int(time.time()) - 86_400
    tokens = [writer.sign(0, [], begin), editor.sign(1, [0], begin + 60), writer.sign(2, [0], begin + 60), editor.sign(3, [1, 2], begin + 120)]
    with tempfile.TemporaryDirectory(prefix="banyan-workflows-") as work:
        where = Path(work)
        (where / "writer.pem").write_text(writer.pem())
        (where / "editor.pem").write_text(editor.pem())
        issuers = ["--issuer", f"{WRITER}={where / 'writer.pem'}", "--issuer", f"{EDITOR}={where / 'editor.pem'}"]

        def ect(what, held, *more):
            (where / "tokens").write_text(held)
            done = subprocess.run([binary(), "ect", what, str(where / "tokens"), *more], capture_output=True, text=True, timeout=60, env={"HOME": work})
            return done.returncode, done.stdout, done.stderr

        mixed = f"{tokens[3]}, {tokens[0]}\n{tokens[2]}\n\n{tokens[1]}"
        code, out, told = ect("verify", mixed, *issuers, "--json")
        report.equal("agents/workflows: tokens of another library hold", (code, told), (0, ""))
        listed = [token["id"] for token in json.loads(out)]
        report.check("agents/workflows: each is listed behind its predecessors", sorted(listed) == IDS[:4] and (listed[0], listed[3]) == (IDS[0], IDS[3]), listed)
        report.equal("agents/workflows: a person reads how many hold", ect("verify", mixed, *issuers)[1].splitlines()[-1], "4 tokens hold: every signature, and every link")
        exported = ect("export", mixed, *issuers, "--workflow", FLOW.upper())[1].split()
        report.equal("agents/workflows: what is exported is what was signed", sorted(exported), sorted(tokens))
        owners = {token: writer if WRITER in decoded(token.split(".")[1]).decode() else editor for token in exported}
        report.equal("agents/workflows: and holds for the other library", [owner.holds(token) for token, owner in owners.items()], [True] * 4)
        drawn = ect("draw", mixed)[1]
        report.equal("agents/workflows: every link is drawn", sorted(line.strip() for line in drawn.splitlines() if "->" in line), sorted(
            f'"{IDS[one]}" -> "{IDS[other]}";' for one, other in [(0, 1), (0, 2), (1, 3), (2, 3)]))
        report.equal("agents/workflows: tokens are shown unchecked", len(json.loads(ect("show", mixed, "--json")[1])), 4)
        header, payload, signature = tokens[1].split(".")
        claims = json.loads(decoded(payload))
        forged = f"{header}.{encoded(json.dumps({**claims, 'exec_act': 'other'}).encode())}.{signature}"
        stranger = Party(EDITOR, ed25519.Ed25519PrivateKey.generate(), "e").sign(1, [0], begin + 60)
        for name, held, word in [
            ("a changed token", [tokens[0], forged], "the key did not sign"),
            ("a stranger's token", [tokens[0], stranger], "the key did not sign"),
            ("a key for another name", [tokens[0], Party(EDITOR, writer.key, "w").sign(1, [0], begin + 60)], "another issuer"),
            ("a missing predecessor", [tokens[0], tokens[3]], "is not known"),
            ("a token twice", [tokens[0], tokens[0]], "was seen before"),
            ("a circle", [writer.sign(4, [5], begin), writer.sign(5, [4], begin)], "circle"),
            ("a successor that began before", [tokens[0], writer.sign(4, [0], begin - 60)], "began after its successor"),
            ("another workflow", [tokens[0], writer.sign(4, [0], begin + 60, wid=IDS[5])], "another workflow"),
            ("an unsigned token", [encoded(json.dumps(claims).encode())], "not signed"),
        ]:
            code, _, told = ect("verify", " ".join(held), *issuers)
            report.check(f"agents/workflows: {name} is refused", code == 1 and word in told, (code, told))
        code, _, told = ect("verify", "nonsense", *issuers)
        report.equal("agents/workflows: nonsense is no token", (code, "token 1 of" in told), (1, True))
        report.equal("agents/workflows: nothing holds without keys", ect("verify", mixed)[0], 2)
