"""The certificate authority: signs the server's own certificate and those of machines, and nothing else.

Two files in DATA/tls: ``ca.pem``, which everybody may see, and ``ca.key``, which whoever reads it can be every
machine with. Machines and clients trust this one authority only, never the system's.
"""

import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from cloud.identity.files import certificate_from, key_from, key_pem, read, write

# A device without a battery for its clock starts in 1970, and another may be a year behind: by such a clock too,
# certificates of ours must have begun. That a certificate began early gives nobody anything.
_ALWAYS = datetime(1970, 1, 1, tzinfo=UTC)
_AUTHORITY_LIFETIME = timedelta(days=25 * 365)
_SERVER_LIFETIME = timedelta(days=800)
_BACKDATED = timedelta(days=400)
"""Machines' certificates are checked by the server's clock, which may be set back too."""
RENEW_SERVER_BEFORE = timedelta(days=400)
"""At each start the server's certificate has this long: a client's clock may be a year ahead."""

MachinePublicKey = ec.EllipticCurvePublicKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Authority:
    """The authority's certificate and the key it signs with."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey
    ca_file: Path

    @classmethod
    def load_or_make(cls, folder: Path, now: datetime) -> "Authority":
        """The authority of a data directory, made at the first start.

        Args:
            folder: DATA/tls; made when it is not there.
            now: the present moment.

        Raises:
            TlsFilesUnusable: the files are damaged, partly missing, or not of one authority.
        """
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        certificate_file, key_file = folder / "ca.pem", folder / "ca.key"
        if not certificate_file.exists():  # nobody can trust an authority whose certificate was never shown
            _make(certificate_file, key_file, now)
        certificate = certificate_from(read(certificate_file), certificate_file)
        key = key_from(read(key_file), key_file, certificate)
        return cls(certificate=certificate, key=key, ca_file=certificate_file)

    @property
    def pem(self) -> bytes:
        """What others need to trust it."""
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def der(self) -> bytes:
        """The same, short."""
        return self.certificate.public_bytes(serialization.Encoding.DER)

    def issued(self, certificate: x509.Certificate) -> bool:
        """Whether it signed the certificate."""
        try:
            certificate.verify_directly_issued_by(self.certificate)
        except (ValueError, TypeError, InvalidSignature):
            return False
        return True

    def server_certificate(
        self, public_key: ec.EllipticCurvePublicKey, host_names: tuple[str, ...], now: datetime
    ) -> x509.Certificate:
        """A certificate for the server under the names that clients use."""
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Podium server")])
        return (
            self._end_entity(subject, public_key, ExtendedKeyUsageOID.SERVER_AUTH)
            .not_valid_before(_ALWAYS)
            .not_valid_after(self._within(now + _SERVER_LIFETIME))
            .add_extension(x509.SubjectAlternativeName(alternative_names(host_names)), critical=False)
            .sign(self.key, hashes.SHA256())
        )

    def machine_certificate(
        self,
        kind: str,
        name: str,
        public_key: MachinePublicKey,
        *,
        now: datetime,
        lifetime: timedelta,
        host_names: tuple[str, ...] = (),
    ) -> x509.Certificate:
        """A certificate that says ``podium://KIND/NAME``; nothing in it is taken from the machine but its key.

        Args:
            kind: what the machine is.
            name: its name.
            public_key: its key.
            now: the present moment.
            lifetime: how long it is good.
            host_names: DNS names and addresses it is reached by; with them it may also be shown as a server's.
        """
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        uri = x509.UniformResourceIdentifier(f"podium://{kind}/{name}")
        usages = [ExtendedKeyUsageOID.CLIENT_AUTH, *([ExtendedKeyUsageOID.SERVER_AUTH] if host_names else [])]
        return (
            self._end_entity(subject, public_key, *usages)
            .not_valid_before(now - _BACKDATED)
            .not_valid_after(self._within(now + lifetime))
            .add_extension(x509.SubjectAlternativeName([uri, *alternative_names(host_names)]), critical=False)
            .sign(self.key, hashes.SHA256())
        )

    def _within(self, end: datetime) -> datetime:
        return min(end, self.certificate.not_valid_after_utc)

    def _end_entity(
        self, subject: x509.Name, public_key: ec.EllipticCurvePublicKey, *usages: x509.ObjectIdentifier
    ) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self.certificate.subject)
            .public_key(public_key)
            .serial_number(x509.random_serial_number())
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), critical=False
            )
        )


def alternative_names(host_names: tuple[str, ...]) -> list[x509.GeneralName]:
    """DNS names and IP addresses, as a certificate lists them."""
    names: list[x509.GeneralName] = []
    for host in dict.fromkeys(host_names):
        try:
            names.append(x509.IPAddress(ipaddress.ip_address(host)))
        except ValueError:
            names.append(x509.DNSName(host))
    return names


def host_names_of(certificate: x509.Certificate) -> tuple[str, ...]:
    """The DNS names and addresses that a certificate is for; none of a machine that is no server."""
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ()
    return (*names.get_values_for_type(x509.DNSName), *map(str, names.get_values_for_type(x509.IPAddress)))


def _make(certificate_file: Path, key_file: Path, now: datetime) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    public = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    # A name of its own: two authorities of one name look to TLS like one whose signature is broken.
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"Podium authority {public.digest[:6].hex()}")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(_ALWAYS)
        .not_valid_after(now + _AUTHORITY_LIFETIME)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
        .add_extension(public, critical=False)
        .sign(key, hashes.SHA256())
    )
    # The key first: a crash in between leaves a key without certificate, and the next start makes both anew.
    write(key_file, key_pem(key), mode=0o600)
    write(certificate_file, certificate.public_bytes(serialization.Encoding.PEM), mode=0o644)


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )
