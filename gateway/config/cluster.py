"""Settings of a cluster of several nodes."""

from typing import Annotated

from pydantic import BeforeValidator, Field, SecretStr

from gateway.config.kinds import Allowed, OptionalPath, Password
from gateway.config.section import Section


def split_urls(value: object) -> object:
    """Split URLs that are separated by commas, as on a command line."""
    return value.split(",") if isinstance(value, str) and value else value


ServerUrls = Annotated[
    list[Annotated[str, Field(pattern=r"^(nats|tls)://[^\s/]+/?$")]],
    BeforeValidator(split_urls),
    Allowed("a list of URLs such as nats://10.0.0.1:4222"),
]
"""URLs of NATS servers."""

MonitoringUrls = Annotated[
    list[Annotated[str, Field(pattern=r"^https?://[^\s/]+/?$")]],
    BeforeValidator(split_urls),
    Allowed("a list of URLs such as http://10.0.0.1:8222"),
]
"""URLs of the monitoring endpoints of NATS servers."""


class Cluster(Section):
    """Several nodes as one broker, whose data are on three NATS servers with JetStream; off without ``servers``."""

    servers: ServerUrls = Field(default_factory=list)
    """URLs of all NATS servers; empty for a broker on one machine."""

    monitoring: MonitoringUrls = Field(default_factory=list)
    """URLs of their monitoring endpoints; by default port 8222 of each server."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$"), Allowed("1 to 64 letters, digits, - and _")] = (
        "gateway"
    )
    """Name of the cluster, the same on all nodes. The servers keep it: a node with another name does not start."""

    user: str = ""
    """User at the NATS servers, if their URLs do not name one."""

    password: Password = SecretStr("")
    """Password of that user."""

    token: Password = SecretStr("")
    """Token for the NATS servers, instead of a user."""

    credentials: OptionalPath = None
    """File with the credentials (``.creds``) for the NATS servers, instead of a user."""

    ca: OptionalPath = None
    """File of the CA certificates that signed those of the NATS servers, in PEM format; the system's by default."""

    certificate: OptionalPath = None
    """File of this node's certificate for the NATS servers, in PEM format."""

    key: OptionalPath = None
    """File of that certificate's private key, in PEM format."""

    host: str = ""
    """Host name or address at which the other nodes reach this one; ``""`` is the machine's name."""

    port: Annotated[int, Field(ge=0, le=65535)] = 25672
    """Port at which the other nodes reach this one, 0 for any free one. It belongs in a trusted network."""

    hold_s: Annotated[int, Field(ge=1, le=86400)] = 60
    """How long this node holds a client whose leader is lost, in seconds; 15 s at most if it waits for an answer."""

    keep_clients: bool = False
    """Whether clients of this node outlive its leadership, as those of a follower do, at some CPU; so with cells."""

    cells: Annotated[int, Field(ge=1, le=64)] = 1
    """Number of cells: logs with a leader each, so that several nodes lead. Every virtual host is in one of them."""

    standby: bool = True
    """Whether this node keeps a copy of the data while it follows, so that it takes over without reading all of it."""
