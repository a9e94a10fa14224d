"""A certificate for this machine alone, made on the fly through the extra `tls`."""

from __future__ import annotations

import datetime as dt
import ipaddress
import os
import ssl
from pathlib import Path
from typing import NamedTuple

from agentfn.errors import UsageError

#: A certificate lives this long, and is made again on its last day.
LIFETIME, LAST_DAY = dt.timedelta(days=90), dt.timedelta(days=1)
#: Stands before our certificate in a bundle. Whoever exported our bundle gets it back as "the system's".
_MARK = b"\n# agentfn: the embedded service on this machine\n"


class TlsFiles(NamedTuple):
    """PEM files. `bundle` is the system's certificates with ours behind them, so that other hosts still verify."""

    certificate: Path
    key: Path
    bundle: Path


def make_certificate(folder: Path) -> TlsFiles:
    """Return a certificate for localhost and 127.0.0.1 in that folder, making it where there is no good one.

    Raises UsageError where the extra is not installed.
    """
    files = TlsFiles(folder / "certificate.pem", folder / "key.pem", folder / "bundle.pem")
    now = dt.datetime.now(dt.UTC)
    try:
        if not _is_good(files, now):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            key, certificate = _new_pair(now)
            _write(files.key, key)
            _write(files.certificate, certificate)
    except ImportError as exc:
        raise UsageError("--tls needs the extra tls", code="missing_extra", hint="pip install 'agentfn[tls]'") from exc
    _write(files.bundle, _system_certificates() + _MARK + files.certificate.read_bytes())
    return files


def _is_good(files: TlsFiles, now: dt.datetime) -> bool:
    """Tell whether there is a certificate that lives on, and the key that belongs to it."""
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        known = x509.load_pem_x509_certificate(files.certificate.read_bytes())
        key = load_pem_private_key(files.key.read_bytes(), password=None)
    except (OSError, ValueError):
        return False
    return known.not_valid_after_utc > now + LAST_DAY and key.public_key() == known.public_key()


def _new_pair(now: dt.datetime) -> tuple[bytes, bytes]:
    """Return a new key and its certificate, as PEM."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "agentfn embedded service")])
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    unused = ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement", "encipher_only")
    usage = x509.KeyUsage(
        digital_signature=True, key_cert_sign=True, crl_sign=True, decipher_only=False, **dict.fromkeys(unused, False)
    )
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(minutes=5))
        .not_valid_after(now + LIFETIME)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        # It signs itself, so strict clients want it to be allowed to.
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem, form, plain = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    return key.private_bytes(pem, form, plain), certificate.public_bytes(pem)


def _system_certificates() -> bytes:
    found = ssl.get_default_verify_paths().cafile
    if found is None or not Path(found).is_file():
        import certifi

        found = certifi.where()
    return Path(found).read_bytes().partition(_MARK)[0].rstrip()


def _write(path: Path, data: bytes) -> None:
    """Write a file that its owner alone may read, whole or not at all."""
    temporary = path.with_suffix(f".{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
    temporary.replace(path)
