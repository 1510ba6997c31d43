"""/plugins/.../resources, /ctl-verbs and /ui-panels: what the plugins of a virtual host offer to operators."""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Final
from urllib.parse import quote

from gateway.access import Permissions
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.management.context import ApiContext
from gateway.management.http.access_levels import AccessLevel
from gateway.management.http.call import Call
from gateway.management.http.errors import HttpError, missing
from gateway.management.http.request_info import decoded
from gateway.management.http.routes import Endpoint, Fields, Routes, Streamed
from gateway.management.plugin_answers import PluginAnswer
from gateway.plugins.services.ctl_verb import CtlVerb
from gateway.plugins.services.http_resource import METHODS, MOST_BODY, HttpRequest, HttpResource
from gateway.plugins.services.offering import Offered, VhostServices
from gateway.plugins.services.ui_panel import UiPanel

routes = Routes()

_PREFIX: Final = "/plugins/<vhost>/<name>/resources"
_PATH: Final = f"{_PREFIX}/<path:path>"

#: Access levels by the tag that a resource requires.
_LEVELS: Final[Mapping[str, AccessLevel]] = {
    "management": AccessLevel.MANAGEMENT,
    "policymaker": AccessLevel.POLICYMAKER,
    "monitoring": AccessLevel.MONITORING,
    "administrator": AccessLevel.ADMINISTRATOR,
}


@routes.get(_PREFIX)
def resources(call: Call, vhost: str, name: str) -> list[Fields]:
    """List the resources of a plugin in a virtual host."""
    services = call.context.services_of(call.vhost(vhost).name)
    found = [offered for offered in services.resources if offered.plugin == name]
    if not found:
        raise missing()
    return [_resource_view(vhost, offered) for offered in found if call.may(_LEVELS[offered.service.tag])]


@routes.get("/ctl-verbs", "/ctl-verbs/<vhost>")
def ctl_verbs(call: Call, vhost: str | None = None) -> list[Fields]:
    """List the verbs that plugins add to gatewayctl, and that the user may call."""
    return [
        _verb_view(virtual_host.name, services, offered)
        for virtual_host, services in _services(call, vhost)
        for offered in services.verbs
        if _may_call(call, services, offered.plugin, offered.service.method, offered.service.path)
    ]


@routes.get("/ui-panels", "/ui-panels/<vhost>")
def ui_panels(call: Call, vhost: str | None = None) -> list[Fields]:
    """List the panels that plugins add to the web UI, and that the user may see."""
    return [
        _panel_view(virtual_host.name, offered)
        for virtual_host, services in _services(call, vhost)
        for offered in services.panels
        if _may_call(call, services, offered.plugin, "GET", offered.service.path)
    ]


def _refined(method: str, context: ApiContext, names: Mapping[str, str]) -> Endpoint:
    """Return the endpoint of a plugin's resource. :raises HttpError: 404, or 405 with the methods of its path."""
    vhost, plugin = decoded(names["vhost"]), decoded(names["name"])
    segments = [decoded(segment) for segment in names["path"].split("/")]
    if vhost not in context.broker.vhost_by_name:
        raise missing()
    services = context.services_of(vhost)
    found = [
        (each, variables)
        for each in services.resources_of(plugin)
        if (variables := each.names_in(segments)) is not None
    ]
    if not found:
        raise missing()
    for resource, variables in found:
        if resource.method == method:
            return _endpoint(services, plugin, resource, variables)
    methods = {each.method for each, _ in found}
    allowed = methods | {"OPTIONS"} | ({"HEAD"} if "GET" in methods else set())
    raise HttpError(405, headers={"Allow": ", ".join(sorted(allowed))})


def _endpoint(services: VhostServices, plugin: str, resource: HttpResource, variables: Mapping[str, str]) -> Endpoint:
    def answer(call: Call, vhost: str, name: str, path: str) -> object:
        virtual_host = call.vhost(vhost)
        request = HttpRequest(
            resource.method,
            variables,
            call.query,
            call.content,
            call.principal,
            _permissions(call, virtual_host, resource),
            call.peer_host,
        )
        if resource.permission is not None:
            resource.permission.require(request.permissions, variables)
        time = services.times.of(resource)
        result = PluginAnswer(call.context, virtual_host.name, plugin, resource, time).to(request)
        if isinstance(result, Streamed):
            call.changed()  # rows follow the change
        return result

    return Endpoint(resource.method, _PATH, _LEVELS[resource.tag], answer, resource.largest_body)


def _permissions(call: Call, vhost: VirtualHost, resource: HttpResource) -> Permissions:
    """Return the user's permissions; none for a monitoring user who may see a virtual host, and not enter it."""
    if resource.method == "GET" and not call.may_enter(vhost.name):
        return Permissions(call.principal.name, vhost.name, "", "", "")
    return call.permissions(vhost)


def _services(call: Call, vhost: str | None) -> list[tuple[VirtualHost, VhostServices]]:
    """Return the services of one virtual host, or of all that the user may see."""
    vhosts: Iterable[VirtualHost] = call.visible_vhosts() if vhost is None else [call.vhost(vhost)]
    return [(virtual_host, call.context.services_of(virtual_host.name)) for virtual_host in vhosts]


def _may_call(call: Call, services: VhostServices, plugin: str, method: str, path: str) -> bool:
    return call.may(_LEVELS[services.resource_of(plugin, method, path).tag])


# Views


def _resource_view(vhost: str, offered: Offered[HttpResource]) -> Fields:
    resource, permission = offered.service, offered.service.permission
    return {
        "plugin": offered.plugin,
        "vhost": vhost,
        "method": resource.method,
        "path": _url(vhost, offered.plugin, resource.path),
        "tag": resource.tag,
        "permission": None
        if permission is None
        else {"operation": permission.operation.name.lower(), "kind": permission.kind, "name": permission.name},
        "largest_body": resource.largest_body,
        "description": resource.description,
    }


def _verb_view(vhost: str, services: VhostServices, offered: Offered[CtlVerb]) -> Fields:
    verb = offered.service
    resource = services.resource_of(offered.plugin, verb.method, verb.path)
    return {
        "plugin": offered.plugin,
        "vhost": vhost,
        "name": verb.name,
        "description": verb.description,
        "method": verb.method,
        "path": _url(vhost, offered.plugin, verb.path),
        "tag": resource.tag,
        "arguments": [
            {
                "name": argument.name,
                "description": argument.description,
                "type": argument.type,
                "is_option": argument.is_option,
                "is_required": argument.is_required,
                "values": list(argument.values),
            }
            for argument in verb.arguments
        ],
        "columns": list(verb.columns),
    }


def _panel_view(vhost: str, offered: Offered[UiPanel]) -> Fields:
    panel = offered.service
    return {
        "plugin": offered.plugin,
        "vhost": vhost,
        "title": panel.title,
        "description": panel.description,
        "page": panel.page,
        "kind": panel.kind,
        "path": _url(vhost, offered.plugin, panel.path),
        "query": dict(panel.query),
        "columns": [{"name": each.name, "title": each.title or each.name, "unit": each.unit} for each in panel.columns],
        "refresh_s": panel.refresh_s,
    }


def _url(vhost: str, plugin: str, path: str) -> str:
    """Return the path of a resource on the listener; its variables stay in braces."""
    return f"/api/plugins/{quote(vhost, safe='')}/{quote(plugin, safe='')}/resources/{path}"


def _unrefined(call: Call, **names: str) -> None:
    """Call a resource of a plugin, which defines the access, the body and the answer."""
    raise missing()


for _method in METHODS:
    routes.add(Endpoint(_method, _PATH, AccessLevel.USER, _unrefined, MOST_BODY, refine=partial(_refined, _method)))
