"""/parameters and /global-parameters: runtime parameters."""

from typing import Final

from gateway.definitions.records import with_stored_secrets
from gateway.definitions.secrets import UnknownSecret, shown
from gateway.kernel.journal.records.topology import ParameterRecord
from gateway.management.http.access_levels import AccessLevel
from gateway.management.http.bodies import require
from gateway.management.http.call import Call
from gateway.management.http.errors import bad_request, missing, unknown_vhost
from gateway.management.http.listing import Listing
from gateway.management.http.routes import Fields, Reply, Routes, put_reply
from gateway.management.resources.virtual_hosts.vhost_limits import checked_limits
from gateway.management.views.policies import rule_view

routes = Routes()

VHOST_LIMITS: Final = "vhost-limits"


@routes.get("/parameters", level=AccessLevel.POLICYMAKER)
def parameters(call: Call) -> Listing[Fields]:
    """List the parameters of all virtual hosts that the user may see, except policies.

    Passwords in URIs are replaced, unless an administrator's query has ``secrets=true``.
    """
    return _listing([each for each in _all(call) if each["component"] != "policy"])


@routes.get("/parameters/<component>", level=AccessLevel.POLICYMAKER)
def of_component(call: Call, component: str) -> Listing[Fields]:
    """List the parameters of one component."""
    return _listing([each for each in _all(call) if each["component"] == component])


@routes.get("/parameters/<component>/<vhost>", level=AccessLevel.POLICYMAKER)
def in_vhost(call: Call, component: str, vhost: str) -> Listing[Fields]:
    """List the parameters of one component in a virtual host."""
    call.vhost(vhost)
    return _listing([each for each in _all(call) if (each["component"], each["vhost"]) == (component, vhost)])


@routes.get("/parameters/<component>/<vhost>/<name>", level=AccessLevel.POLICYMAKER)
def parameter(call: Call, component: str, vhost: str, name: str) -> Fields:
    """Return a parameter."""
    call.vhost(vhost)
    for each in _all(call):
        if (each["component"], each["vhost"], each["name"]) == (component, vhost, name):
            return each
    raise missing()


@routes.put("/parameters/<component>/<vhost>/<name>", level=AccessLevel.POLICYMAKER)
def put_parameter(call: Call, component: str, vhost: str, name: str) -> Reply:
    """Set a parameter. Unknown components are refused, as in RabbitMQ.

    Parameters of unknown components can only be imported with definitions; they are marked as without effect.
    """
    (value,) = require(call.fields, "value")
    if vhost not in call.broker.vhost_by_name:
        raise unknown_vhost()
    call.vhost(vhost)
    if component in call.broker.parameters.components:
        return _put(call, _with_stored_secrets(call, ParameterRecord(vhost, component, name, value)))
    if component != VHOST_LIMITS:
        raise bad_request(f"Validation failed\n\ncomponent {component} not found\n")
    call.require(AccessLevel.ADMINISTRATOR)
    existed = bool(call.broker.vhost(vhost).record.limits)
    call.broker.limit_vhost(vhost, checked_limits(value))
    return put_reply(existed)


def _put(call: Call, record: ParameterRecord) -> Reply:
    call.broker.parameters.require_valid(record)
    for vhost in call.context.bridges.local_vhosts(record):
        if vhost not in call.broker.vhost_by_name or not call.may_enter(vhost):
            reason = f'user "{call.principal.name}" may not connect to vhost "{vhost}"'
            raise bad_request(f"Validation failed\n\n{reason}\n")
    existed = record.key in call.broker.parameters
    call.broker.parameters.put(record)
    return put_reply(existed)


@routes.delete("/parameters/<component>/<vhost>/<name>", level=AccessLevel.POLICYMAKER)
def delete_parameter(call: Call, component: str, vhost: str, name: str) -> None:
    """Remove a parameter."""
    call.vhost(vhost)
    if component == VHOST_LIMITS:
        call.require(AccessLevel.ADMINISTRATOR)
        call.broker.limit_vhost(vhost, {})
        return
    record = call.broker.parameters.get((vhost, component, name))
    if record is None:
        raise missing()
    call.broker.parameters.remove(record)


@routes.get("/global-parameters", level=AccessLevel.POLICYMAKER)
def global_parameters(call: Call) -> Listing[Fields]:
    """List the global parameters."""
    chosen = [_global_view(call, record) for record in call.broker.parameters.values() if not record.vhost]
    return Listing(chosen, lambda view: view, lambda view: ("", view["name"]), is_paged=False)


@routes.get("/global-parameters/<name>", level=AccessLevel.POLICYMAKER)
def global_parameter(call: Call, name: str) -> Fields:
    """Return a global parameter."""
    return _global_view(call, _existing_global(call, name))


@routes.put("/global-parameters/<name>", level=AccessLevel.ADMINISTRATOR)
def put_global_parameter(call: Call, name: str) -> Reply:
    """Set a global parameter."""
    (value,) = require(call.fields, "value")
    existed = ("", "", name) in call.broker.parameters
    call.broker.parameters.put(_with_stored_secrets(call, ParameterRecord("", "", name, value)))
    return put_reply(existed)


@routes.delete("/global-parameters/<name>", level=AccessLevel.ADMINISTRATOR)
def delete_global_parameter(call: Call, name: str) -> None:
    """Remove a global parameter."""
    call.broker.parameters.remove(_existing_global(call, name))


def _all(call: Call) -> list[Fields]:
    """Return all parameters, which include policies and limits as in RabbitMQ."""
    vhosts = call.visible_vhosts()
    names = {vhost.name for vhost in vhosts}
    broker = call.broker
    with_secrets = call.shows_secrets
    return [
        *(_view(each.vhost, each.component, each.name, each.value if with_secrets else shown(each.value))
          | ({} if each.component in broker.parameters.components
             else {"without_effect": f"component {each.component} not found"})
          for each in broker.parameters.values() if each.vhost in names),
        *(_view(each.vhost, "operator_policy" if each.is_operator else "policy", each.name, rule_view(each))
          for each in broker.policies.values() if each.vhost in names),
        *(_view(each.name, VHOST_LIMITS, "limits", dict(each.record.limits)) for each in vhosts if each.record.limits),
    ]  # fmt: skip


def _view(vhost: str, component: str, name: str, value: object) -> Fields:
    return {"value": value, "vhost": vhost, "component": component, "name": name}


def _global_view(call: Call, record: ParameterRecord) -> Fields:
    return {"name": record.name, "value": record.value if call.shows_secrets else shown(record.value)}


def _with_stored_secrets(call: Call, record: ParameterRecord) -> ParameterRecord:
    """Return a parameter whose replaced passwords are the stored ones. :raises HttpError: if one is not stored."""
    try:
        return with_stored_secrets(record, call.broker.parameters.get(record.key))
    except UnknownSecret as unknown:
        raise bad_request(f"Validation failed\n\n{unknown}\n") from None


def _listing(views: list[Fields]) -> Listing[Fields]:
    return Listing(views, lambda view: view, lambda view: (view["vhost"], view["name"]), is_paged=False)


def _existing_global(call: Call, name: str) -> ParameterRecord:
    record = call.broker.parameters.get(("", "", name))
    if record is None:
        raise missing()
    return record
