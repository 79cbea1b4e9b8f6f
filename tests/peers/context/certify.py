"""Makes an authority and certificates for nodes, in the directory of the first argument; the others are DNS names."""
import datetime
import ipaddress
import sys
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

NOW = datetime.datetime.now(datetime.timezone.utc)


def certificate(subject, key, issuer, signer, alternative=None):
    name = lambda text: x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])
    builder = x509.CertificateBuilder(name(issuer), name(subject), key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(NOW - datetime.timedelta(days=1)).not_valid_after(NOW + datetime.timedelta(days=2))
    builder = builder.add_extension(x509.BasicConstraints(ca=alternative is None, path_length=None), critical=True)
    if alternative:
        builder = builder.add_extension(x509.SubjectAlternativeName(alternative), critical=False)
    return builder.sign(signer, hashes.SHA256())


def write(place, name, made, key):
    (place / f"{name}.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    text = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (place / f"{name}.key").write_bytes(text)


def main(place, *names):
    for authority in ("ca", "other-ca"):
        root = ec.generate_private_key(ec.SECP256R1())
        write(Path(place), authority, certificate(authority, root, authority, root), root)
        for name in names:
            key = ec.generate_private_key(ec.SECP256R1())
            alternative = [x509.DNSName(name), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
            made = certificate(name, key, authority, root, alternative)
            write(Path(place), name if authority == "ca" else f"other-{name}", made, key)


main(*sys.argv[1:])
