"""Who comes into which room, by what (MX-10, MX-16)."""
import json
import time

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from jwt.algorithms import ECAlgorithm, OKPAlgorithm

from rooms.party import FULL, PROPOSES, Party, refused

RESOURCE, ISSUER = "https://gate.example.com/mcp", "https://login.example.com"
SHARED = "a secret of thirty-two bytes or more, for tests"
KEYS = {"EdDSA": ed25519.Ed25519PrivateKey.generate(), "ES256": ec.generate_private_key(ec.SECP256R1())}
STRANGER = ed25519.Ed25519PrivateKey.generate()


def keys():
    """The public keys of the issuer, as a JWK set."""
    made = {"EdDSA": OKPAlgorithm, "ES256": ECAlgorithm}
    public = [json.loads(made[name].to_jwk(key.public_key())) | {"kid": name, "alg": name} for name, key in KEYS.items()]
    return json.dumps({"keys": public})


def token(algorithm, key, **claims):
    """A token with the claims of the reference implementation."""
    own = {} if algorithm == "HS256" else {"iss": ISSUER, "aud": RESOURCE, "sub": "subject"}
    return jwt.encode({"exp": int(time.time()) + 3600, **own, **claims}, key, algorithm, headers={"kid": algorithm})


def cases():
    """Each has the rooms of `checks.py`."""
    return {"tokens": tokens, "topics": topics, "claims": claims}.items()


def tokens(report, name, gateway):
    """A token is needed, and a known one."""
    report.equal(f"{name}/none", refused(gateway, "ops"), 401)
    report.equal(f"{name}/unknown", refused(gateway, "ops", "nobody's"), 401)
    report.equal(f"{name}/in the address", refused(gateway, "ops", **{"token": "ann-secret"}), None)
    report.equal(f"{name}/wrong in the address", refused(gateway, "ops", **{"token": "ann"}), 401)


def topics(report, name, gateway):
    """Public, restricted and private rooms, and tokens that are good for some."""
    wanted = {
        ("ops", "ann-secret"): None, ("club", "ann-secret"): None, ("vault", "ann-secret"): 404, ("none", "ann-secret"): 404,
        ("club", "bob-secret"): 403, ("vault", "zoe-secret"): None, ("ops", "zoe-secret"): 403,
    }
    report.equal(name, {pair: refused(gateway, *pair) for pair in wanted}, wanted)


def claims(report, name, gateway):
    """Signed tokens say who, where and what, and nobody else's does."""
    for algorithm, key in [*KEYS.items(), ("HS256", SHARED)]:
        good = token(algorithm, key, participantId="guest", topic="ops", capabilities=["chat"])
        with Party(gateway, "ops", good) as guest:
            report.equal(f"{name}/{algorithm}", guest.welcome["payload"]["you"], {"id": "guest", "capabilities": ["chat"]})
        plain = token(algorithm, key, participantId="guest", topic=["x", "ops"])
        with Party(gateway, "ops", plain) as guest:
            report.equal(f"{name}/{algorithm} proposes", guest.welcome["payload"]["you"]["capabilities"], PROPOSES)
        bad = {
            "another topic": (token(algorithm, key, participantId="guest", topic="club"), 403),
            "expired": (token(algorithm, key, participantId="guest", topic="ops", exp=1), 401),
            "somebody with a token": (token(algorithm, key, participantId="ann", topic="ops"), 403),
            "the gateway": (token(algorithm, key, participantId="system:gateway", topic="ops"), 403),
            "reserved": (token(algorithm, key, participantId="guest", topic="ops", capabilities=["system/*"]), 401),
            "no topic": (token(algorithm, key, participantId="guest"), 401),
        }
        got = {what: refused(gateway, "ops", made) for what, (made, _) in bad.items()}
        report.equal(f"{name}/{algorithm} refused", got, {what: status for what, (_, status) in bad.items()})
    forged = [token("EdDSA", STRANGER, participantId="guest", topic="ops", capabilities=FULL),
              token("HS256", "another secret of thirty-two bytes or more", participantId="guest", topic="ops"),
              jwt.encode({"participantId": "guest", "topic": "ops", "exp": 1 << 40}, None, "none")]
    report.equal(f"{name}/forged", [refused(gateway, "ops", made) for made in forged], [401] * 3)
