"""A certificate for this machine alone, made on the fly through the extra `tls`."""

from __future__ import annotations

import datetime as dt
import ipaddress
import os
import ssl
from pathlib import Path
from typing import NamedTuple

from agentfn.errors import UsageError

#: A certificate lives this long and is made again a day before it ends.
LIFETIME = dt.timedelta(days=90)


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
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.x509.oid import NameOID
    except ImportError as exc:
        raise UsageError("--tls needs the extra tls", code="missing_extra", hint="pip install 'agentfn[tls]'") from exc
    now = dt.datetime.now(dt.UTC)
    if files.certificate.is_file() and files.key.is_file():
        known = x509.load_pem_x509_certificate(files.certificate.read_bytes())
        if known.not_valid_after_utc > now + dt.timedelta(days=1):
            _write(files.bundle, _bundle(files.certificate.read_bytes()))
            return files
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "agentfn embedded service")])
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    usage = x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=True,
        encipher_only=False,
        decipher_only=False,
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
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    for path, data in ((files.key, private), (files.certificate, pem), (files.bundle, _bundle(pem))):
        _write(path, data)
    return files


def _bundle(certificate: bytes) -> bytes:
    system = ssl.get_default_verify_paths().cafile
    if system is None or not Path(system).is_file():
        import certifi

        system = certifi.where()
    return Path(system).read_bytes().rstrip() + b"\n" + certificate


def _write(path: Path, data: bytes) -> None:
    """Write a file that its owner alone may read, whole or not at all."""
    temporary = path.with_suffix(".new")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
    temporary.replace(path)
