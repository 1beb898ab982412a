"""A certificate for 127.0.0.1 that nobody trusts but the tests that are given it."""

from __future__ import annotations

import ssl
import tempfile
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

_DAYS = 7


class Certificate:
    """Made for one broker. `path`: the PEM file by which a client knows it, until `remove`."""

    def __init__(self) -> None:
        """Raises `RuntimeError` where the package cryptography is not installed."""
        certificate, key = _made()
        self._folder = tempfile.TemporaryDirectory(prefix="amqp-broker-")
        self.path = Path(self._folder.name, "certificate.pem")
        self.path.write_bytes(certificate)
        key_path = Path(self._folder.name, "key.pem")
        key_path.write_bytes(key)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(self.path, key_path)

    def remove(self) -> None:
        self._folder.cleanup()


def _made() -> tuple[bytes, bytes]:
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec
    except ImportError:
        raise RuntimeError("tls=True needs the package cryptography; or give an ssl.SSLContext of your own") from None
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    places = [x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1")), x509.IPAddress(ip_address("::1"))]
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=_DAYS))
        .add_extension(x509.SubjectAlternativeName(places), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    return (
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
    )
