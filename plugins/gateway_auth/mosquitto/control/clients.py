"""Commands about clients."""

import hashlib
import os
from base64 import b64encode
from typing import Any, Final

from gateway_auth.mosquitto.control.document import Document, Entry, in_order, members_of
from gateway_auth.mosquitto.control.errors import CommandError
from gateway_auth.mosquitto.control.fields import Fields, name_in, text_in
from gateway_auth.mosquitto.control.listing import listed
from gateway_auth.mosquitto.control.references import (
    add_role,
    describe,
    described,
    groups_in,
    known,
    remove_role,
    roles_in,
)
from gateway_auth.mosquitto.password_file import MOST_ROUNDS

#: Mosquitto's number of rounds for a client without a hash; logins of unknown users take as long.
_ROUNDS: Final = 101
_SALT_SIZE: Final = 12


def create(document: Document, fields: Fields) -> None:
    """``createClient``. Without a password the client cannot log in."""
    username = name_in(fields, "username")
    if username in document.clients:
        raise CommandError("Client already exists")
    client: Entry = {"username": username}
    password, roles, groups = text_in(fields, "password"), roles_in(document, fields), groups_in(document, fields)
    _set_client_id(client, text_in(fields, "clientid"))
    describe(client, fields)
    client["roles"] = roles or []
    if password is not None:
        _set_password(client, password)
    document.clients[username] = client
    _set_groups(document, username, groups or {})
    document.changed()


def delete(document: Document, fields: Fields) -> None:
    """``deleteClient``."""
    username = known(fields, "username", document.client)
    del document.clients[username]
    _set_groups(document, username, {})
    document.changed([username])


def enable(document: Document, fields: Fields) -> None:
    """``enableClient``."""
    document.clients[known(fields, "username", document.client)].pop("disabled", None)
    document.changed()


def disable(document: Document, fields: Fields) -> None:
    """``disableClient``."""
    username = known(fields, "username", document.client)
    document.clients[username]["disabled"] = True
    document.changed([username])


def modify(document: Document, fields: Fields) -> None:
    """``modifyClient``: what is given replaces what the client has."""
    username = known(fields, "username", document.client)
    client = document.clients[username]
    password, client_id = text_in(fields, "password"), text_in(fields, "clientid")
    roles, groups = roles_in(document, fields), groups_in(document, fields)
    describe(client, fields)
    if password:
        _set_password(client, password)
    if client_id is not None:
        _set_client_id(client, client_id)
    if roles is not None:
        client["roles"] = roles
    if groups is not None:
        _set_groups(document, username, groups)
    document.changed([username])


def set_password(document: Document, fields: Fields) -> None:
    """``setClientPassword``."""
    username, password = name_in(fields, "username"), text_in(fields, "password")
    if password is None:
        raise CommandError("Invalid/missing password")
    _set_password(document.client(username), password)
    document.changed([username])


def set_client_id(document: Document, fields: Fields) -> None:
    """``setClientId``; without an identifier, any may be used."""
    username = known(fields, "username", document.client)
    _set_client_id(document.clients[username], text_in(fields, "clientid"))
    document.changed([username])


def give_role(document: Document, fields: Fields) -> None:
    """``addClientRole``."""
    username = known(fields, "username", document.client)
    add_role(document, document.clients[username], fields, "Client")
    document.changed([username])


def take_role(document: Document, fields: Fields) -> None:
    """``removeClientRole``."""
    username = known(fields, "username", document.client)
    remove_role(document, document.clients[username], fields)
    document.changed([username])


def get(document: Document, fields: Fields) -> dict[str, Any]:
    """``getClient``."""
    return {"client": _view(document, known(fields, "username", document.client))}


def list_all(document: Document, fields: Fields) -> dict[str, Any]:
    """``listClients``."""
    return listed(fields, "clients", document.clients, lambda username: _view(document, username))


def _set_password(client: Entry, password: str) -> None:
    """Set the hash of a password. :raises CommandError: if it is empty."""
    if not password:
        raise CommandError("Empty password is not allowed")
    salt, rounds = os.urandom(_SALT_SIZE), client.get("iterations", 0)
    rounds = rounds if 1 <= rounds <= MOST_ROUNDS else _ROUNDS
    digest = hashlib.pbkdf2_hmac("sha512", password.encode(), salt, rounds)
    client.update(password=b64encode(digest).decode(), salt=b64encode(salt).decode(), iterations=rounds)


def _set_client_id(client: Entry, client_id: str | None) -> None:
    if client_id:
        client["clientid"] = client_id
    else:
        client.pop("clientid", None)


def _set_groups(document: Document, username: str, groups: dict[str, Entry]) -> None:
    for groupname, group in document.groups.items():
        group["clients"] = [member for member in members_of(group) if member["username"] != username]
        if groupname in groups:
            group["clients"].append({"username": username, **groups[groupname]})


def _view(document: Document, username: str) -> Entry:
    client = document.clients[username]
    view: Entry = {"username": username}
    if client.get("clientid"):
        view["clientid"] = client["clientid"]
    view |= described(client)
    if client.get("disabled"):
        view["disabled"] = True
    return view | {"roles": in_order(client.get("roles", [])), "groups": document.groups_of(username)}
