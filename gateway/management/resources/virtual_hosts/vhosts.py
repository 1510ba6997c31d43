"""/vhosts: the virtual hosts, their permissions and their connections."""

from twisted.internet.defer import Deferred

from gateway.kernel.errors import PreconditionFailed
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.management.cells.vhost_making import grant_all
from gateway.management.http.access_levels import AccessLevel
from gateway.management.http.bodies import boolean, tags, text
from gateway.management.http.call import Call
from gateway.management.http.errors import HttpError, bad_request, missing
from gateway.management.http.listing import Listing, with_columns
from gateway.management.http.routes import Fields, Reply, Routes, put_reply
from gateway.management.resources.access.permissions import permission_listing
from gateway.management.resources.access.topic_permissions import topic_permission_listing
from gateway.management.resources.clients.channels import channel_listing
from gateway.management.resources.clients.connections import connection_listing
from gateway.management.statistics.subjects import key_of
from gateway.management.views.metadata import metadata_view
from gateway.management.views.numbers import DELIVERIES, OCTETS, PUBLISHES, message_totals, with_rates

routes = Routes()


@routes.get("/vhosts")
def vhosts(call: Call) -> Listing[VirtualHost]:
    """List the virtual hosts that the user may see."""
    return Listing(call.visible_vhosts(), lambda vhost: vhost_view(call, vhost), lambda vhost: ("", vhost.name))


@routes.get("/vhosts/<name>", level=AccessLevel.ADMINISTRATOR)
def vhost(call: Call, name: str) -> Fields:
    """Return a virtual host."""
    return with_columns(vhost_view(call, _existing(call, name)), call.query)


@routes.put("/vhosts/<name>", level=AccessLevel.ADMINISTRATOR)
def put_vhost(call: Call, name: str) -> Reply:
    """Create a virtual host and grant the user all permissions; or update the given metadata of an existing one."""
    fields, broker = call.fields, call.broker
    tracing, trace_table = boolean(fields, "tracing"), boolean(fields, "trace_table")
    description = text(fields, "description") if "description" in fields else None
    labels = tags(fields["tags"]) if "tags" in fields else None
    queue_type = text(fields, "default_queue_type") if "default_queue_type" in fields else None
    existed = name in broker.vhost_by_name
    plugins = _plugins(fields)
    if not existed:
        _require_own_cell(call, name)
    _refuse_another_cell(call, name)
    if existed and plugins:
        raise bad_request("plugins of an existing virtual host are changed with PUT /api/plugins/VHOST/NAME")
    if existed:
        broker.describe_vhost(name, description, labels, queue_type)
    else:
        broker.declare_vhost(
            name,
            description=description or "",
            tags=labels or (),
            default_queue_type=queue_type or "",
            plugins=plugins,
        )
        if call.context.cells is None or call.context.cells.is_first:
            grant_all(call.context, name, call.principal.name)
    if "trace_table" in fields:
        broker.trace_to_table(name, trace_table)
    if "tracing" in fields and tracing != broker.vhost(name).record.tracing:
        broker.trace(name, tracing)
    return put_reply(existed)


@routes.delete("/vhosts/<name>", level=AccessLevel.ADMINISTRATOR)
def delete_vhost(call: Call, name: str) -> "Deferred[None] | None":
    """Delete a virtual host with everything in it, unless it is protected."""
    vhost, cells = _existing(call, name), call.context.cells
    if cells is None or vhost.record.is_protected:
        _delete(call, name)
        return None
    return cells.mark_deleting(name).addCallback(lambda _: _delete(call, name))


def _delete(call: Call, name: str) -> None:
    call.context.touch()
    try:
        call.broker.delete_vhost(name)
    except PreconditionFailed as refusal:
        raise HttpError(412, "precondition_failed", str(refusal)) from None


@routes.post("/vhosts/<name>/deletion/protection", level=AccessLevel.ADMINISTRATOR)
def protect(call: Call, name: str) -> None:
    """Protect a virtual host from deletion."""
    _existing(call, name)
    call.broker.protect_vhost(name, True)


@routes.delete("/vhosts/<name>/deletion/protection", level=AccessLevel.ADMINISTRATOR)
def unprotect(call: Call, name: str) -> None:
    """Remove the protection of a virtual host from deletion."""
    _existing(call, name)
    call.broker.protect_vhost(name, False)


@routes.get("/vhosts/<name>/permissions", level=AccessLevel.ADMINISTRATOR)
def permissions(call: Call, name: str) -> object:
    """List the permissions in a virtual host."""
    _existing(call, name)
    return permission_listing(call, lambda permission: permission.vhost == name)


@routes.get("/vhosts/<name>/topic-permissions", level=AccessLevel.ADMINISTRATOR)
def topic_permissions(call: Call, name: str) -> object:
    """List the topic permissions in a virtual host."""
    _existing(call, name)
    return topic_permission_listing(call, lambda permission: permission.vhost == name)


@routes.get("/vhosts/<name>/connections")
def connections(call: Call, name: str) -> object:
    """List the connections in a virtual host."""
    call.vhost(name)
    return connection_listing(call, lambda peer: peer.vhost_name == name)


@routes.get("/vhosts/<name>/channels")
def channels(call: Call, name: str) -> object:
    """List the channels in a virtual host."""
    call.vhost(name)
    return channel_listing(call, lambda peer: peer.vhost_name == name)


def vhost_view(call: Call, vhost: VirtualHost) -> Fields:
    """Return the view of a virtual host."""
    counts, trend = call.context.statistics.counts_of(vhost), call.trend(key_of(vhost))
    metadata = metadata_view(vhost)
    fields: Fields = {
        "name": vhost.name,
        **metadata,
        "metadata": metadata,
        "tracing": vhost.record.tracing,
        "trace_table": vhost.record.trace_table,
        "cluster_state": {call.broker.node: "running"},
    }
    if call.context.cells is not None:
        fields["cell"] = call.context.cells.own
    if inert := call.context.inert_plugins(vhost.name):
        fields["inert_plugins"] = dict(inert)
    fields |= message_totals(counts["messages_ready"], counts["messages_unacknowledged"], trend)
    fields |= with_rates(("recv_oct", "send_oct"), counts, trend, OCTETS)
    shown = (*PUBLISHES, *DELIVERIES)
    if any(counts.get(name) for name in shown):
        fields["message_stats"] = with_rates(shown, counts, trend)
    return fields


def _existing(call: Call, name: str) -> VirtualHost:
    vhost = call.broker.vhost_by_name.get(name)
    if vhost is None:
        raise missing()
    return vhost


def _plugins(fields: Fields) -> dict[str, Fields]:
    """Return the plugins to enable in a new virtual host: names with settings."""
    plugins = fields.get("plugins", {})
    if not isinstance(plugins, dict) or not all(isinstance(settings, dict) for settings in plugins.values()):
        raise bad_request("plugins must be an object of plugin names with objects of settings")
    return plugins


def _refuse_another_cell(call: Call, name: str) -> None:
    """Refuse a ``cell`` that is not the virtual host's: it cannot be moved, and a node without cells has only one."""
    cells, cell = call.context.cells, call.fields.get("cell")
    if cells is None and cell not in (None, 1):
        raise bad_request(f"vhost '{name}': cell must be 1, because there is one cell")
    if cells is not None and cell not in (None, cells.own):
        raise bad_request(f"vhost '{name}' is in cell {cells.own}; it cannot be moved")


def _require_own_cell(call: Call, name: str) -> None:
    """Require that a new virtual host belongs to this cell, if there are several. :raises HttpError: if not."""
    cells = call.context.cells
    if cells is None:
        return
    if cells.is_being_deleted(name):
        raise bad_request(f"vhost '{name}' is being deleted, try again later")
    if cells.cell_of(name) != cells.own and not (cells.is_first and cells.cell_of(name) is None):
        raise bad_request(f"vhost '{name}' does not belong to cell {cells.own} of the cluster; try again")
