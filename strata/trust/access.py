"""How this process gets in: what it shows to a Strata server, and by whose word it knows that server.

An address that others can reach is dialled by TLS, always; STRATA_INSECURE=1 is for those whose network does that.
"""

import ssl
from dataclasses import dataclass, field

from strata.config import Settings
from strata.errors import InvalidConfig, StrataError
from strata.network import is_loopback, split_address
from strata.trust.identity import ANCHOR
from strata.trust.token import read_token

__all__ = ["OPEN", "Access", "client_context", "find_access", "read_roots"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """`token` is shown with every call. `roots` are the certificates (PEM) that a server's must come from; with none,
    those of the system."""

    token: str = field(default="", repr=False)
    roots: str = ""
    insecure: bool = False

    def is_plain(self, address: str) -> bool:
        """Whether this address is dialled without TLS: one on this machine, or any when the network is trusted."""
        if address.startswith("https://"):
            return False
        return address.startswith("unix:") or self.insecure or is_loopback(split_address(address)[0])

    def context(self, address: str, *protocols: str) -> ssl.SSLContext | None:
        """For a connection to this address; None for a plain one."""
        return None if self.is_plain(address) else client_context(self.roots, *protocols)


OPEN = Access()
"""Shows nothing."""


def client_context(roots: str, *protocols: str) -> ssl.SSLContext:
    """Verifies the server by these certificates, and by its name."""
    context = ssl.create_default_context(cadata=roots or None)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # a company's intermediate is as good as its root
    if protocols:
        context.set_alpn_protocols(protocols)
    return context


def find_access(settings: Settings) -> Access:
    """What this process may know: on loopback most calls need no token."""
    try:
        token = read_token(settings) or ""
    except StrataError:
        token = ""
    return Access(token=token, roots=read_roots(settings), insecure=settings.insecure)


def read_roots(settings: Settings) -> str:
    """Of the file that was named, else of the cluster whose data folder this is, else nothing."""
    try:
        file = settings.ca_file or settings.data_dir / ANCHOR
        return file.read_text() if settings.ca_file or file.is_file() else ""
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidConfig(f"the CA's certificate {file} cannot be read: {error}") from None
