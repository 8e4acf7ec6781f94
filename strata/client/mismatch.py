"""Why two sides do not understand each other: one speaks TLS and the other does not, or the certificate is not of the
cluster. A call that failed only says that nobody answered; this says what to do.
"""

import contextlib
import socket
import ssl

from strata.errors import Unavailable
from strata.network import split_address
from strata.trust.access import Access

__all__ = ["any_server", "explain", "untrusted"]

_CONNECT_S = 2.0
_CA_HINT = (
    "STRATA_CA_FILE names the CA of the cluster, and a join token brings it along: `strata token create` on the head."
)


def explain(address: str, access: Access) -> Unavailable | None:
    """Asks the server once more, by a handshake alone. None when that is not what is wrong."""
    try:
        host, port = split_address(address)
        context = access.context(address, "h2") or any_server()
        with contextlib.closing(socket.create_connection((host, port), _CONNECT_S)) as connected:
            context.wrap_socket(connected, server_hostname=host).close()
    except ssl.SSLError as error:
        return None if access.is_plain(address) else untrusted(address, error)
    except (OSError, ValueError):
        return None
    if not access.is_plain(address):
        return None
    return Unavailable(
        f"the server at {address} speaks TLS, and it was called without",
        hint="Unset STRATA_INSECURE, and name the server by the address that it shows, or by https://.",
    )


def untrusted(address: str, error: ssl.SSLError) -> Unavailable:
    """A handshake that failed, in one sentence."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return Unavailable(
            f"the certificate of {address} is not one of this cluster: {error.verify_message}", hint=_CA_HINT
        )
    if error.reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST"):
        return Unavailable(
            f"the server at {address} speaks no TLS",
            hint="Start it without STRATA_INSECURE=1; or set that here, too, if the network is yours.",
        )
    return Unavailable(f"no TLS connection to {address}: {error.reason or error}", hint=_CA_HINT)


def any_server() -> ssl.SSLContext:
    """Believes anybody: nothing must be shown on such a connection."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
