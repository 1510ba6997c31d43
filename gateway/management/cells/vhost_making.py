"""The making of a virtual host in a cell that has the fewest of them."""

from collections.abc import Callable

from twisted.internet.defer import Deferred

from gateway.kernel.broker.entity_checks import require_valid_vhost
from gateway.kernel.journal.records.access import PermissionRecord
from gateway.management.cells.cells import Cells
from gateway.management.context import ApiContext


def grant_all(context: ApiContext, vhost: str, user: str) -> None:
    """Grant the creator of a virtual host all permissions in it, as in RabbitMQ."""
    if context.broker.directory.user(user) is not None:
        context.broker.directory.put_permission(PermissionRecord(vhost, user, ".*", ".*", ".*"))


def place_vhost(
    context: ApiContext, cells: Cells, name: str, user: str, placed: Callable[[int], None]
) -> "Deferred[None]":
    """Write the record of a new virtual host, and grant its creator everything; call ``placed`` with its cell.

    :raises Refused: if there can be no such virtual host.
    """
    require_valid_vhost(name, "", (), "")

    def made(cell: int) -> None:
        if cell != cells.own:
            grant_all(context, name, user)
            context.touch()
        placed(cell)

    return cells.place(name).addCallback(made)
