"""Authorizers that know users of their own: what a connection remembers of them, and how they change it."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from pamqp import commands

from gateway.access import Access
from gateway.api import Authorizer, Permissions, Principal, hookimpl
from gateway.kernel.broker.directory import Directory
from gateway.plugins.registry import FoundPlugin, PluginRegistry, PluginView
from tests.protocols.amqp.dialogue import Gateway


class Door:
    """A plugin and its authorizer in one: everybody may use the names that a pattern allows, as it is now."""

    pattern = ".*"
    permissions_changed: Callable[[], None]

    @hookimpl
    def gateway_authorizers(self, permissions_changed: Callable[[], None]) -> tuple[Authorizer, ...]:
        self.permissions_changed = permissions_changed
        return (self,)

    def permissions(self, principal: Principal, vhost: str) -> Permissions | None:
        return Permissions(principal.name, vhost, self.pattern, self.pattern, self.pattern) if self.pattern else None


class Guarded(Gateway):
    """A gateway on which the door alone says who may do what."""

    def __init__(self, door: Door) -> None:
        self._registry = PluginRegistry()
        self._registry.add(FoundPlugin("door", "here", lambda: door))
        super().__init__()

    def _access_by(self, view: PluginView, directory: Directory) -> Access:
        (vhost,) = self._views
        guarded, changed = self._registry.view(vhost, {"door": {}}), partial(self.broker.permissions_changed, vhost)
        return Access(view.authenticators(directory), guarded.authorizers(directory, changed))


@pytest.fixture
def door() -> Door:
    return Door()


def declare(peer: Any, name: str) -> str:
    said: list[str] = peer.send(commands.Queue.Declare(queue=name)).hear()
    return said[0]


def test_a_connection_keeps_its_permissions_until_it_is_told_that_they_changed(door: Door) -> None:
    peer = Guarded(door).connect()
    door.pattern = "^mine"
    assert declare(peer, "yours").startswith("Queue.DeclareOk")
    door.permissions_changed()
    assert "ACCESS_REFUSED - access to queue 'others' in vhost '/' refused for user 'guest'" in declare(peer, "others")


def test_who_may_not_even_enter_any_more_may_do_nothing(door: Door) -> None:
    peer = Guarded(door).connect()
    door.pattern = ""
    door.permissions_changed()
    assert "ACCESS_REFUSED - access to vhost '/' refused for user 'guest'" in declare(peer, "q")


def test_telling_of_a_virtual_host_that_is_gone_does_no_harm(door: Door) -> None:
    gateway = Guarded(door)
    gateway.connect()
    gateway.broker.delete_vhost("/")
    door.permissions_changed()
    assert not gateway.broker.vhost_by_name
