"""/explain: where a message would go and why, without publishing it. RabbitMQ has no such resource."""

from collections.abc import Callable, Generator
from typing import Any, Final

from gateway.kernel.errors import NotAllowed, PreconditionFailed, Refused
from gateway.kernel.messages.message import Message
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.management.context import PublishAddress
from gateway.management.http.access_levels import AccessLevel
from gateway.management.http.bodies import text
from gateway.management.http.call import Call
from gateway.management.http.errors import bad_request
from gateway.management.http.routes import Fields, LongTask, Routes
from gateway.management.messages import message_of
from gateway.management.permission_checks import publish_checks
from gateway.management.resources.access.permission_check import permissions_of
from gateway.management.resources.virtual_hosts.exchanges import real_name
from gateway.management.views.explanation import explanation_view

routes = Routes()

_ADDRESSES: Final = ("exchange", "mqtt_topic", "stomp_destination")
_FIELDS: Final = frozenset({*_ADDRESSES, "routing_key", "properties", "headers", "user", "client_id"})


@routes.post("/explain/<vhost>")
def explain(call: Call, vhost: str) -> LongTask:
    """Explain a publish of a user; of other users only to administrators."""
    virtual_host, fields = call.vhost(vhost), call.fields
    _require_known(fields)
    user = text(fields, "user", call.principal.name)
    if user != call.principal.name:
        call.require(AccessLevel.ADMINISTRATOR)
    address = _address(call, vhost, fields, user)
    message = _message(fields, address)
    exchange = virtual_host.exchange(address.exchange)

    def steps() -> Generator[None, None, Fields]:
        checks = _verdicts(call, virtual_host, message, address, user)
        explanation = yield from virtual_host.explaining(exchange, message)
        view = yield from explanation_view(call.broker, explanation)
        return {
            "vhost": vhost,
            "user": user,
            "exchange": address.exchange,
            "routing_key": address.routing_key,
            "declares_queue": address.declares_queue or None,
            "allowed": all(check["allowed"] for check in checks),
            "checks": checks,
            "interceptors": _interceptors(call, virtual_host, message),
            **view,
        }

    return LongTask(steps())


def _interceptors(call: Call, vhost: VirtualHost, message: Message) -> list[str]:
    """Return the plugins whose interceptors would see the message first, in order; they are not called."""
    chain = vhost.interception.publishing_to(message.exchange, message.routing_key)
    return (
        [] if chain is None else [call.broker.plugins_in_use.plugin_of(vhost.name, each) for each in chain.interceptors]
    )


def _require_known(fields: Fields) -> None:
    """Refuse unknown fields, and none or several addresses."""
    if unknown := sorted(fields.keys() - _FIELDS):
        raise bad_request(f"unknown field '{unknown[0]}'; there are {', '.join(sorted(_FIELDS))}")
    given = [name for name in _ADDRESSES if name in fields]
    if len(given) != 1:
        raise bad_request(f"one of {', '.join(_ADDRESSES)} is required, not {' and '.join(given) or 'none'}")
    if given != ["exchange"] and "routing_key" in fields:
        raise bad_request(f"routing_key has no effect with {given[0]}")
    if given != ["mqtt_topic"] and "client_id" in fields:
        raise bad_request("client_id has an effect with mqtt_topic only")


def _address(call: Call, vhost: str, fields: Fields, user: str) -> PublishAddress:
    """Return the address. :raises HttpError: if it is malformed."""
    addresses = call.context.publish_addresses
    try:
        if "mqtt_topic" in fields:
            return addresses.of_topic(vhost, text(fields, "mqtt_topic"), text(fields, "client_id"), user)
        if "stomp_destination" in fields:
            return addresses.of_destination(text(fields, "stomp_destination"))
    except PreconditionFailed as error:
        raise bad_request(str(error)) from None
    return PublishAddress(real_name(text(fields, "exchange")), text(fields, "routing_key"))


def _message(fields: Fields, address: PublishAddress) -> Message:
    properties: Any = fields.get("properties") or {}
    if "headers" in fields:
        if not isinstance(properties, dict) or "headers" in properties:
            raise bad_request("headers are given twice: as headers and in properties")
        properties = {**properties, "headers": fields["headers"]}
    return message_of(address.exchange, address.routing_key, properties, "", "string")


def _verdicts(call: Call, vhost: VirtualHost, message: Message, address: PublishAddress, user: str) -> list[Fields]:
    """Return what each check of a publish says."""
    try:
        permissions = permissions_of(call, vhost.name, user)
    except NotAllowed as refusal:
        return [{"check": "vhost", "allowed": False, "reason": str(refusal)}]
    verdicts: list[Fields] = [{"check": "vhost", "allowed": True}]
    if address.refusal:
        verdicts.append({"check": "address", "allowed": False, "reason": address.refusal})
    checks = publish_checks(permissions, vhost.exchange(message.exchange), message, address.variables)
    return verdicts + [_verdict(name, check) for name, check in checks.items()]


def _verdict(name: str, check: Callable[[], None]) -> Fields:
    try:
        check()
    except Refused as refusal:
        return {"check": name, "allowed": False, "reason": str(refusal)}
    return {"check": name, "allowed": True}
