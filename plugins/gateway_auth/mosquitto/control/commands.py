"""Commands of Mosquitto's dynamic security: a batch in JSON, performed in order, each with its response."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from gateway_auth.mosquitto.control import clients, groups, roles
from gateway_auth.mosquitto.control.document import Document
from gateway_auth.mosquitto.control.errors import CommandError
from gateway_auth.mosquitto.control.fields import Fields

Response: TypeAlias = dict[str, Any]

Perform: TypeAlias = Callable[[Document, Fields], dict[str, Any] | None]
"""Performs a command, and returns its data. Raises ``CommandError`` before it changes anything."""

COMMANDS: Final[Mapping[str, Perform]] = {
    "createClient": clients.create,
    "deleteClient": clients.delete,
    "enableClient": clients.enable,
    "disableClient": clients.disable,
    "modifyClient": clients.modify,
    "setClientPassword": clients.set_password,
    "setClientId": clients.set_client_id,
    "addClientRole": clients.give_role,
    "removeClientRole": clients.take_role,
    "getClient": clients.get,
    "listClients": clients.list_all,
    "createGroup": groups.create,
    "deleteGroup": groups.delete,
    "modifyGroup": groups.modify,
    "addGroupClient": groups.add_client,
    "removeGroupClient": groups.remove_client,
    "addGroupRole": groups.give_role,
    "removeGroupRole": groups.take_role,
    "getGroup": groups.get,
    "listGroups": groups.list_all,
    "getAnonymousGroup": groups.get_anonymous,
    "setAnonymousGroup": groups.set_anonymous,
    "createRole": roles.create,
    "deleteRole": roles.delete,
    "modifyRole": roles.modify,
    "addRoleACL": roles.add_rule,
    "removeRoleACL": roles.remove_rule,
    "getRole": roles.get,
    "listRoles": roles.list_all,
    "getDefaultACLAccess": roles.get_default_access,
    "setDefaultACLAccess": roles.set_default_access,
}


@dataclass(frozen=True, slots=True)
class CommandBatch:
    """The commands of one message; ``error`` is why there are none."""

    commands: Sequence[Any] = ()
    error: str = ""


def parse_batch(body: bytes) -> CommandBatch:
    """Parse the body of a message."""
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        return CommandBatch(error="Payload not valid JSON")
    commands = content.get("commands") if isinstance(content, dict) else None
    return CommandBatch(commands) if isinstance(commands, list) else CommandBatch(error="Invalid/missing commands")


def perform_batch(document: Document, batch: CommandBatch) -> list[Response]:
    """Perform commands one after the other; one that is refused does not stop the next."""
    if batch.error:
        return [_refused(batch.error)]
    return [_perform(document, command) for command in batch.commands]


def _perform(document: Document, command: object) -> Response:
    if not isinstance(command, dict):
        return _refused("Command not an object")
    name = command.get("command")
    if not isinstance(name, str):
        return _refused("Missing command")
    response: Response = {"command": name}
    perform = COMMANDS.get(name)
    try:
        if perform is None:
            raise CommandError("Unknown command")
        data = perform(document, command)
        if data is not None:
            response["data"] = data
    except CommandError as error:
        response["error"] = str(error)
    if isinstance(command.get("correlationData"), str):
        response["correlationData"] = command["correlationData"]
    return response


def _refused(error: str) -> Response:
    return {"command": "Unknown command", "error": error}
