"""Authorizers with their own users: caching of permissions by connections, and its invalidation."""

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


class PatternAuthorizer:
    """A plugin that is also its authorizer: all users have the permissions of a changeable pattern."""

    pattern = ".*"
    permissions_changed: Callable[[], None]

    @hookimpl
    def gateway_authorizers(self, permissions_changed: Callable[[], None]) -> tuple[Authorizer, ...]:
        self.permissions_changed = permissions_changed
        return (self,)

    def permissions(self, principal: Principal, vhost: str) -> Permissions | None:
        return Permissions(principal.name, vhost, self.pattern, self.pattern, self.pattern) if self.pattern else None


class Guarded(Gateway):
    """A gateway with this authorizer only."""

    def __init__(self, authorizer: PatternAuthorizer) -> None:
        self._registry = PluginRegistry()
        self._registry.add(FoundPlugin("authorizer", "here", lambda: authorizer))
        super().__init__()

    def _access_by(self, view: PluginView, directory: Directory) -> Access:
        (vhost,) = self._views
        guarded, changed = (
            self._registry.view(vhost, {"authorizer": {}}),
            partial(self.broker.permissions_changed, vhost),
        )
        return Access(view.authenticators(directory), guarded.authorizers(directory, changed))


@pytest.fixture
def authorizer() -> PatternAuthorizer:
    return PatternAuthorizer()


def declare(peer: Any, name: str) -> str:
    answer: list[str] = peer.send(commands.Queue.Declare(queue=name)).receive()
    return answer[0]


def test_a_connection_caches_its_permissions_until_they_are_reported_as_changed(authorizer: PatternAuthorizer) -> None:
    peer = Guarded(authorizer).connect()
    authorizer.pattern = "^mine"
    assert declare(peer, "yours").startswith("Queue.DeclareOk")
    authorizer.permissions_changed()
    assert "ACCESS_REFUSED - access to queue 'others' in vhost '/' refused for user 'guest'" in declare(peer, "others")


def test_a_user_who_lost_access_to_the_virtual_host_has_no_permission(authorizer: PatternAuthorizer) -> None:
    peer = Guarded(authorizer).connect()
    authorizer.pattern = ""
    authorizer.permissions_changed()
    assert "ACCESS_REFUSED - access to vhost '/' refused for user 'guest'" in declare(peer, "q")


def test_reporting_changed_permissions_for_a_deleted_virtual_host_has_no_effect(authorizer: PatternAuthorizer) -> None:
    gateway = Guarded(authorizer)
    gateway.connect()
    gateway.broker.delete_vhost("/")
    authorizer.permissions_changed()
    assert not gateway.broker.vhost_by_name
