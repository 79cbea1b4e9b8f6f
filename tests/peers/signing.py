"""Keys, certificates and signed tokens made by openssl, which shares no code with what is tested."""
import base64
import json
import subprocess
import time
from pathlib import Path


def openssl(*arguments, given=None):
    """Runs it; its standard output as bytes."""
    done = subprocess.run(["openssl", *arguments], input=given, capture_output=True, timeout=30, check=False)
    if done.returncode:
        raise RuntimeError(f"openssl {arguments[0]}: {done.stderr.decode(errors='replace')[-600:]}")
    return done.stdout


class Signer:
    """An Ed25519 key in `directory`, and tokens signed with it."""

    def __init__(self, directory, name="signer"):
        self.key = str(Path(directory, f"{name}.key"))
        self.public = str(Path(directory, f"{name}.pem"))
        openssl("genpkey", "-algorithm", "ed25519", "-out", self.key)
        openssl("pkey", "-in", self.key, "-pubout", "-out", self.public)

    def token(self, **claims):
        """A JWT that is good for ten minutes, unless the claims say otherwise."""
        claims = {"exp": int(time.time()) + 600, **claims}
        text = f"{part({'alg': 'EdDSA', 'typ': 'JWT'})}.{part(claims)}"
        message = Path(self.key).with_suffix(".message")
        message.write_text(text)
        signature = openssl("pkeyutl", "-sign", "-inkey", self.key, "-rawin", "-in", str(message))
        return f"{text}.{encoded(signature)}"


def request(directory, name, key="ec"):
    """A new key (`ec`: P-256, `ed25519`) and a request to certify it for a DNS name: the key's path, and the request in PEM."""
    file = str(Path(directory, f"{name}.key"))
    kind = ["-algorithm", "ed25519"] if key == "ed25519" else ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"]
    openssl("genpkey", *kind, "-out", file)
    csr = openssl("req", "-new", "-key", file, "-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}")
    return file, csr.decode()


def part(value):
    return encoded(json.dumps(value).encode())


def encoded(raw):
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
