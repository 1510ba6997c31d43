"""The context of a verb: the API client, the virtual host and the output."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from gateway.cli.ctl.address import ApiAddress
from gateway.cli.ctl.api import ApiClient
from gateway.cli.ctl.connecting.target import login_at
from gateway.cli.ctl.errors import CommandFailed, Declined, NoSuchVirtualHost, UnknownEntity
from gateway.cli.ctl.output import Output
from gateway.cli.ctl.progress import Progress
from gateway.cli.ctl.values import JsonObject, text

DEFAULT_VHOST = "/"


@dataclass(frozen=True, slots=True)
class VerbSession:
    """One run of one verb. ``named_vhost`` and ``timeout_s`` are ``None`` unless given.

    ``options`` are the address and the login of the command line, without those of the environment and of profiles.
    """

    api: ApiClient
    output: Output
    named_vhost: str | None = None
    timeout_s: float | None = None
    progress: Progress = field(default_factory=lambda: Progress(is_wanted=False))
    options: Mapping[str, str | None] = field(default_factory=dict)

    @property
    def vhost(self) -> str:
        """The virtual host of the verb."""
        return DEFAULT_VHOST if self.named_vhost is None else self.named_vhost

    def require_vhost(self) -> None:
        """Check the virtual host. :raises NoSuchVirtualHost: if it does not exist or is not visible to this user."""
        if self.vhost not in [text(vhost, "name") for vhost in self.api.list("vhosts")]:
            raise NoSuchVirtualHost(self.vhost)

    def announce_without_effect(self, kind: str, found: Iterable[JsonObject]) -> None:
        """Print which of these have no effect in the broker, and why."""
        for each in found:
            if reason := text(each, "without_effect"):
                self.output.announce(f"Without effect: {kind} '{text(each, 'name')}' ({reason})")

    def api_at(self, url: str) -> ApiClient:
        """Return a client of another broker, with the login of the command line or of the URL.

        :raises WrongUsage: if this is no URL.
        """
        address = ApiAddress.parse(url)
        return self.api.at(address, login_at(address, self.options))

    @contextmanager
    def on_not_found(self, error: CommandFailed) -> Iterator[None]:
        """Raise ``error`` if the broker answers 404."""
        try:
            yield
        except UnknownEntity:
            raise error from None

    @contextmanager
    def reporting_missing(self, entity: str) -> Iterator[None]:
        """On 404, raise an error that names the missing entity, its virtual host, or what else the broker names."""
        try:
            yield
        except UnknownEntity as error:
            self.require_vhost()
            if error.is_named:
                raise Declined(str(error)) from None
            raise Declined(f"{entity} does not exist in vhost '{self.vhost}'") from None

    @contextmanager
    def controlling(self) -> Iterator[None]:
        """On 404, raise an error that says that the broker lacks the endpoints of its control."""
        with self.on_not_found(Declined(f"the broker at {self.api.address.url} cannot do this over its API")):
            yield

    def node(self) -> str:
        """Return the name of the broker's node."""
        return text(self.api.get("overview"), "node")
