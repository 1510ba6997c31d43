"""The making of a virtual host in a cell that has the fewest of them."""

from collections.abc import Callable

from twisted.internet.defer import Deferred

from gateway.kernel.broker.entity_checks import require_valid_vhost
from gateway.kernel.journal.records.access import PermissionRecord
from gateway.management.cells.cells import Cells, PlacedVhost
from gateway.management.context import ApiContext


def grant_all(context: ApiContext, vhost: str, user: str) -> None:
    """Grant the creator of a virtual host all permissions in it, as in RabbitMQ."""
    if context.broker.directory.user(user) is not None:
        context.broker.directory.put_permission(PermissionRecord(vhost, user, ".*", ".*", ".*"))


def place_vhost(
    context: ApiContext, cells: Cells, name: str, cell: int, user: str, placed: Callable[[PlacedVhost], None]
) -> "Deferred[None]":
    """Write the record of a new virtual host of another cell, and grant its creator everything; then call ``placed``.

    If it was made meanwhile, its creator has granted what is granted.

    :raises Refused: if there can be no such virtual host.
    """
    require_valid_vhost(name, "", (), "")

    def made(place: PlacedVhost) -> None:
        if place.is_new:
            grant_all(context, name, user)
            context.touch()
        placed(place)

    return cells.place(name, cell).addCallback(made)
