"""What every verb is given: the broker to ask, the virtual host that is meant, and somewhere to print."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from gateway.cli.ctl.api import ApiClient
from gateway.cli.ctl.errors import CommandFailed, Declined, NoSuchVirtualHost, UnknownEntity
from gateway.cli.ctl.output import Output
from gateway.cli.ctl.values import JsonObject, text

DEFAULT_VHOST = "/"


@dataclass(frozen=True, slots=True)
class VerbSession:
    """One run of one verb. ``named_vhost`` and ``timeout_s`` are ``None`` unless they were given."""

    api: ApiClient
    output: Output
    named_vhost: str | None = None
    timeout_s: float | None = None

    @property
    def vhost(self) -> str:
        """The virtual host that the verb works in."""
        return DEFAULT_VHOST if self.named_vhost is None else self.named_vhost

    def require_vhost(self) -> None:
        """:raises NoSuchVirtualHost: unless it exists, as far as this user can see."""
        if self.vhost not in [text(vhost, "name") for vhost in self.api.list("vhosts")]:
            raise NoSuchVirtualHost(self.vhost)

    def announce_idle(self, kind: str, found: Iterable[JsonObject]) -> None:
        """Tell which of these the broker keeps without effect, and why."""
        for each in found:
            if reason := text(each, "without_effect"):
                self.output.announce(f"Without effect: {kind} '{text(each, 'name')}' ({reason})")

    @contextmanager
    def where_absent(self, error: CommandFailed) -> Iterator[None]:
        """Say that ``error`` when the broker knows no such thing."""
        try:
            yield
        except UnknownEntity:
            raise error from None

    @contextmanager
    def naming(self, what: str) -> Iterator[None]:
        """Say ``what`` it is that the broker does not know: that, or the virtual host it should be in."""
        try:
            yield
        except UnknownEntity:
            self.require_vhost()
            raise Declined(f"{what} does not exist in vhost '{self.vhost}'") from None

    def node(self) -> str:
        """The name the broker gives its node."""
        return text(self.api.get("overview"), "node")
