"""The way of a client to the leader that serves it: that of the cell in which its virtual host is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias

from gateway.access import CertificateSubject
from gateway.kernel.journal.records.topology import ParameterRecord
from gateway.kernel.messages.message import Value
from gateway.net.certificates import subject_of
from gateway.net.listeners import plain_host
from gateway.net.message_transport import page_of

Address: TypeAlias = tuple[str, int]

#: The cell whose leader takes what has no virtual host, and what is not routed.
FIRST_CELL: Final = 1


@dataclass(frozen=True, slots=True)
class Leader:
    """The leader of an epoch of a cell, where it takes connections, and the fingerprint of its certificate."""

    address: Address
    epoch: int = 0
    fingerprint: str = ""
    cell: int = FIRST_CELL


class Directions(Protocol):
    """The cells of a cluster, and their virtual hosts, as a node knows them."""

    @property
    def cells(self) -> Sequence[int]:
        """The numbers of all cells."""
        ...

    @property
    def global_parameters(self) -> Mapping[tuple[Value, ...], ParameterRecord]:
        """The parameters of no virtual host, by the keys of their records."""
        ...

    def cell_of(self, vhost: str) -> int | None:
        """Return the cell of a virtual host; ``None`` if there is no such virtual host."""
        ...


@dataclass(frozen=True, slots=True)
class ClientOrigin:
    """The origin of a client: its host, the port that it uses, its certificate, and whether it is a web page."""

    peer_host: str
    port: int
    certificate: CertificateSubject | None = None
    is_from_page: bool = False


class ClientRoute:
    """The way of one client. ``cell`` is the one whose leader serves it, or is tried.

    ``is_known``: the client has named its virtual host, so no other cell is tried.
    """

    def __init__(self, directions: Directions, origin: ClientOrigin) -> None:
        self.cell = FIRST_CELL
        self.is_known = False
        self.origin = origin
        self._directions = directions

    @property
    def global_parameters(self) -> Mapping[tuple[Value, ...], ParameterRecord]:
        """The parameters of no virtual host: some say which one a client gets."""
        return self._directions.global_parameters

    @property
    def cells(self) -> Sequence[int]:
        """The numbers of all cells."""
        return self._directions.cells

    def exists(self, vhost: str) -> bool:
        """Whether there is a virtual host of this name."""
        return self._directions.cell_of(vhost) is not None

    def leads_to(self, vhost: str) -> bool:
        """Note the virtual host of the client; return whether the present leader is the one of its cell.

        One without a record is in the first cell, or is refused by its leader in the way of the protocol.
        """
        self.is_known = True
        present = self.cell
        self.cell = self._directions.cell_of(vhost) or FIRST_CELL
        return self.cell == present

    def try_next(self) -> None:
        """Try the leader of another cell, unless the client has named its virtual host."""
        cells = self._directions.cells
        if not self.is_known and self.cell in cells:
            self.cell = cells[(cells.index(self.cell) + 1) % len(cells)]


def route_of(
    directions: Directions | None, transport: Any
) -> ClientRoute | None:  # Any: Twisted's interfaces are not types
    """Return the route of a client; ``None`` if there is only one cell."""
    if directions is None:
        return None
    peer, host = transport.getPeer(), transport.getHost()
    origin = ClientOrigin(plain_host(peer.host), host.port, subject_of(transport), bool(page_of(transport)))
    return ClientRoute(directions, origin)
