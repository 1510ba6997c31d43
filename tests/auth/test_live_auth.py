"""Plugins that ask other servers are enabled and disabled in a running broker, and leave nothing behind."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from tests.auth.access_server import AccessServer
from tests.auth.issuer import Issuer
from tests.auth.open_ldap import BASE, open_ldap
from tests.auth.protected import amqp, protected_gateway
from tests.auth.test_auth_http import respond
from tests.management_client import put, request
from tests.running import Gateway
from tests.waiting import wait_until

#: How often a plugin is enabled, replaced and disabled again.
ROUNDS: Final = 5

Backend = tuple[dict[str, object], Callable[[], str]]
"""The settings of a plugin, and what returns the password of Anna."""


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with protected_gateway(tmp_path_factory.mktemp("live"), {}) as started:
        yield started


@pytest.fixture(scope="module")
def backends(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Backend]]:
    with ExitStack() as stack:
        server = stack.enter_context(AccessServer(respond).running())
        ldap = stack.enter_context(open_ldap(tmp_path_factory.mktemp("ldap") / "server"))
        issuer = Issuer()
        stack.enter_context(issuer.server.running())
        paths = {f"{name}_path": f"{server.url}/{name}" for name in ("user", "vhost", "resource")}
        names = {"user_dn_pattern": f"uid=${{username}},ou=people,{BASE}"}
        yield {
            "auth-http": (dict(paths), lambda: "right"),
            "auth-ldap": ({"servers": [ldap], **names}, lambda: "right"),
            "auth-oauth2": ({"resource_server_id": "mq", "jwks_url": issuer.server.url}, issuer.token),
        }


def threads(gateway: Gateway) -> int:
    return len(os.listdir(f"/proc/{gateway.child.pid}/task"))


def sockets(gateway: Gateway) -> int:
    files = Path(f"/proc/{gateway.child.pid}/fd")
    return sum(os.path.islink(file) and os.readlink(file).startswith("socket:") for file in files.iterdir())


@pytest.mark.parametrize("name", ["auth-http", "auth-ldap", "auth-oauth2"])
def test_a_disabled_plugin_leaves_no_thread_and_no_connection(
    gateway: Gateway, backends: dict[str, Backend], name: str
) -> None:
    settings, password = backends[name]
    path = f"plugins/%2F/{name}"

    def use_and_disable(number: int) -> None:
        put(gateway, path, settings)
        put(gateway, path, {**settings, "timeout_s": 4 + number})  # new settings: the objects are replaced
        with amqp(gateway, "anna", password()) as connection:
            connection.channel().queue_declare("", exclusive=True)
        request(gateway, "DELETE", path)

    use_and_disable(0)
    before = threads(gateway), sockets(gateway)
    for number in range(ROUNDS):
        use_and_disable(number + 1)
    wait_until(
        # the threads of the broker itself may become a few more, but not with each round
        lambda: threads(gateway) - before[0] < ROUNDS and sockets(gateway) <= before[1],
        lambda: f"threads and sockets: {before}, then {threads(gateway), sockets(gateway)}",
    )
