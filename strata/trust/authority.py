"""The cluster's own CA and the certificates that it signs. The only file that imports cryptography."""

import ipaddress
from collections.abc import Collection
from datetime import UTC, datetime, timedelta

from strata.errors import MissingExtra

try:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
except ImportError:  # pragma: no cover  # a server's installation has it
    raise MissingExtra("cryptography", "lean") from None

__all__ = ["is_good_for", "issue", "make_authority"]

_CA_DAYS = 3650
_SERVER_DAYS = 825  # the most that browsers accept
_RENEW_DAYS = 275
_EARLIER = timedelta(hours=1)  # clocks differ


def make_authority(now: datetime) -> tuple[bytes, bytes]:
    """A new CA: certificate and key, as PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"Strata cluster {now:%Y-%m-%d}")])
    usage = x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=True,
        crl_sign=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    certificate = (
        _begun(name, name, key.public_key(), now, _CA_DAYS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return certificate.public_bytes(serialization.Encoding.PEM), _pem(key)


def issue(ca: bytes, ca_key: bytes, names: Collection[str], now: datetime) -> tuple[bytes, bytes]:
    """A server's certificate for these host names and addresses, with the CA's behind it; and its key. As PEM."""
    authority = x509.load_pem_x509_certificate(ca)
    signer = serialization.load_pem_private_key(ca_key, None)
    assert isinstance(signer, ec.EllipticCurvePrivateKey)
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Strata server")])
    certificate = (
        _begun(subject, authority.subject, key.public_key(), now, _SERVER_DAYS)
        .add_extension(x509.SubjectAlternativeName([_general(name) for name in sorted(names)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
        .sign(signer, hashes.SHA256())
    )
    return certificate.public_bytes(serialization.Encoding.PEM) + ca, _pem(key)


def is_good_for(chain: bytes, ca: bytes, names: Collection[str], now: datetime) -> bool:
    """Whether a certificate that was issued before still serves: for all these names, by this CA, long enough."""
    certificate = x509.load_pem_x509_certificates(chain)[0]
    said = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    lasting = certificate.not_valid_after_utc - now > timedelta(days=_RENEW_DAYS)
    return lasting and chain.endswith(ca) and {_general(name) for name in names} <= set(said)


def _begun(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime, days: int
) -> x509.CertificateBuilder:
    at = now.astimezone(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(at - _EARLIER)
        .not_valid_after(at + timedelta(days=days))
    )


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
