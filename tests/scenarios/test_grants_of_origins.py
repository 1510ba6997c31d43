"""The origin of a message says what its publisher was granted at the login."""

from collections.abc import Callable

import pytest

from gateway.access import Access
from gateway.api import Credentials, Decision, Interceptor, Message, Origin, Permissions, Principal
from gateway.kernel.broker.directory import Directory
from gateway.plugins.registry import PluginView
from tests.scenarios.all_protocols_broker import AllProtocolsBroker, published


class Granting:
    """Accepts all clients as ``guest``, with a grant, and permits everything."""

    def authenticate(self, credentials: Credentials, answer: Callable[[Principal | None], None]) -> None:
        answer(Principal("guest", grant="a token"))

    def permissions(self, principal: Principal, vhost: str) -> Permissions | None:
        return Permissions(principal.name, vhost, ".*", ".*", ".*")


class GrantingBroker(AllProtocolsBroker):
    def _access_by(self, view: PluginView, directory: Directory) -> Access:
        return Access([Granting()], [Granting()])


class Watching(Interceptor):
    def __init__(self) -> None:
        self.origins: list[Origin] = []

    def on_publish(self, message: Message, origin: Origin) -> Decision:
        self.origins.append(origin)
        return message


@pytest.mark.parametrize(
    "send",
    [
        lambda gateway: gateway.peer().send(published("t.1", b"x")).receive(),
        lambda gateway: gateway.client("sensor").publish("t/1", b"x"),
        lambda gateway: gateway.stomp().publish("/topic/t.1", b"x"),
    ],
    ids=["AMQP", "MQTT", "STOMP"],
)
def test_an_interceptor_sees_the_grant_of_the_login(send: Callable[[AllProtocolsBroker], object]) -> None:
    gateway, watching = GrantingBroker(), Watching()
    gateway.vhost.interception.apply([watching])
    send(gateway)
    assert [origin.grant for origin in watching.origins] == ["a token"]
    assert "a token" not in repr(watching.origins)
