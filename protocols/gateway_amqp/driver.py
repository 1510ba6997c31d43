"""What the machine of a connection needs of whoever moves its bytes."""

from typing import Protocol

from gateway.access import CertificateSubject


class Driver(Protocol):
    """The transport side of one connection: ``AmqpServer``, or a test."""

    peer_host: str
    name: str

    @property
    def certificate(self) -> CertificateSubject | None:
        """The names in the client's verified certificate."""
        ...

    def log(self, event: str, **details: object) -> None:
        """Write a line about this connection."""
        ...

    def hang_up(self) -> None:
        """Send what is left, then close the transport."""
        ...

    def opened(self) -> None:
        """The connection is in its virtual host."""
        ...

    def publishing(self) -> None:
        """The client publishes for the first time, or to somewhere new."""
        ...
