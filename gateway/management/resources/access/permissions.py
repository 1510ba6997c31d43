"""/permissions: the permissions of users in virtual hosts."""

from collections.abc import Callable

from gateway.kernel.journal.records.access import PermissionRecord
from gateway.management.http.access_levels import AccessLevel
from gateway.management.http.bodies import require, text
from gateway.management.http.call import Call
from gateway.management.http.errors import bad_request, missing
from gateway.management.http.listing import Listing, with_columns
from gateway.management.http.routes import Fields, Reply, Routes, put_reply

routes = Routes()


@routes.get("/permissions", level=AccessLevel.ADMINISTRATOR)
def permissions(call: Call) -> Listing[PermissionRecord]:
    """List all permissions."""
    return permission_listing(call, lambda permission: True)


@routes.get("/permissions/<vhost>/<user>", level=AccessLevel.ADMINISTRATOR)
def permission(call: Call, vhost: str, user: str) -> Fields:
    """Return the permissions of a user in a virtual host."""
    return with_columns(permission_view(_existing(call, vhost, user)), call.query)


@routes.put("/permissions/<vhost>/<user>", level=AccessLevel.ADMINISTRATOR)
def put_permission(call: Call, vhost: str, user: str) -> Reply:
    """Set the permissions of a user in a virtual host."""
    fields = call.fields
    require(fields, "configure", "write", "read")
    configure, write, read = (text(fields, name) for name in ("configure", "write", "read"))
    require_vhost_and_user(call, vhost, user)
    existed = call.broker.directory.permission(vhost, user) is not None
    call.broker.directory.put_permission(PermissionRecord(vhost, user, configure, write, read))
    return put_reply(existed)


@routes.delete("/permissions/<vhost>/<user>", level=AccessLevel.ADMINISTRATOR)
def delete_permission(call: Call, vhost: str, user: str) -> None:
    """Delete the permissions of a user in a virtual host."""
    _existing(call, vhost, user)
    call.broker.directory.remove_permission(vhost, user)


def permission_listing(call: Call, predicate: Callable[[PermissionRecord], bool]) -> Listing[PermissionRecord]:
    """List the permissions that match."""
    chosen = [permission for permission in call.broker.directory.permissions if predicate(permission)]
    return Listing(chosen, permission_view, lambda permission: (permission.user, permission.vhost), is_paged=False)


def permission_view(permission: PermissionRecord) -> Fields:
    """Return the view of a permission."""
    return {
        "user": permission.user,
        "vhost": permission.vhost,
        "configure": permission.configure,
        "write": permission.write,
        "read": permission.read,
    }


def require_vhost_and_user(call: Call, vhost: str, user: str) -> None:
    """Check that a virtual host and a user exist. :raises HttpError: if one does not."""
    if not call.exists(vhost) or call.broker.directory.user(user) is None:
        raise bad_request("vhost_or_user_not_found")


def _existing(call: Call, vhost: str, user: str) -> PermissionRecord:
    permission = call.broker.directory.permission(vhost, user)
    if permission is None:
        raise missing()
    return permission
