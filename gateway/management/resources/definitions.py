"""/definitions: everything that was declared, written out and read back."""

import json
from collections.abc import Generator
from typing import Final

from gateway.definitions import parse_definitions, steps_of
from gateway.management.authority import Level
from gateway.management.bodies import parse
from gateway.management.call import Call
from gateway.management.errors import bad_request, unknown_vhost
from gateway.management.exporting import export, export_vhost
from gateway.management.routes import Fields, Gradual, Routes

routes = Routes()

_SOURCE: Final = "definitions"

#: What the definitions of one virtual host may hold.
_OF_A_VHOST: Final = ("parameters", "policies", "queues", "exchanges", "bindings")


@routes.get("/definitions", "/all-configuration", level=Level.ADMINISTRATOR)
def whole(call: Call) -> Gradual:
    """Write out the whole broker."""
    return Gradual(export(call.broker))


@routes.post("/definitions", "/all-configuration", level=Level.ADMINISTRATOR)
def import_whole(call: Call) -> Gradual:
    """Add what the definitions say; what is there already stays."""
    return Gradual(_applied(call, _fields(call), "/"))


@routes.get("/definitions/<vhost>", level=Level.ADMINISTRATOR)
def of_vhost(call: Call, vhost: str) -> Gradual:
    """Write out one virtual host."""
    if vhost not in call.broker.vhost_by_name:
        raise bad_request("vhost_not_found")
    return Gradual(export_vhost(call.broker, call.broker.vhost(vhost)))


@routes.post("/definitions/<vhost>", level=Level.ADMINISTRATOR)
def import_vhost(call: Call, vhost: str) -> Gradual:
    """Add what the definitions say to one virtual host, whichever they came from."""
    if vhost not in call.broker.vhost_by_name:
        raise unknown_vhost()
    fields = _fields(call)
    kept = {category: [_moved(entry, vhost) for entry in fields.get(category, [])] for category in _OF_A_VHOST}
    return Gradual(_applied(call, kept, vhost))


def _fields(call: Call) -> Fields:
    try:
        json.loads(call.content or b"{}")
    except (ValueError, RecursionError):
        raise bad_request("failed_to_parse_json") from None
    return parse(call.content)


def _moved(entry: object, vhost: str) -> object:
    return {**entry, "vhost": vhost} if isinstance(entry, dict) else entry


def _applied(call: Call, fields: Fields, default_vhost: str) -> Generator[None, None, None]:
    definitions = parse_definitions(json.dumps(fields), _SOURCE)
    yield
    yield from steps_of(definitions, call.broker, _SOURCE, default_vhost)
