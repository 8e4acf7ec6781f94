"""An HTTP client for servers of this machine. `httpx.get` loads every certificate authority of the world for each call,
some 20 ms of a core, and whoever waits for a server asks it dozens of times a second.
"""

import ssl

import httpx

__all__ = ["LOCAL"]

LOCAL = httpx.Client(
    verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),  # trusts nobody: no certificate is read
    trust_env=False,
    timeout=60,
    limits=httpx.Limits(max_keepalive_connections=0),  # a connection per request: servers are killed here
)
