"""A dynamic security file with an administrator, as ``mosquitto_ctrl dynsec init`` writes it."""

import json
from pathlib import Path
from typing import Any, Final

from gateway_auth.mosquitto.control.commands import CommandBatch, Response, perform_batch
from gateway_auth.mosquitto.control.document import Document

#: The password of the administrator is "admin secret".
ADMIN: Final = "admin"
PASSWORD: Final = "admin secret"

_CONTROL: Final = "$CONTROL/dynamic-security/#"
_RULES: Final = [
    ("publishClientSend", _CONTROL), ("publishClientReceive", _CONTROL), ("subscribePattern", _CONTROL),
    ("publishClientReceive", "$SYS/#"), ("subscribePattern", "$SYS/#"), ("publishClientReceive", "#"),
    ("subscribePattern", "#"), ("unsubscribePattern", "#"),
]  # fmt: skip


def initial() -> dict[str, Any]:
    """Return the content of the file."""
    document = Document(
        {
            "clients": [{"username": ADMIN, "textName": "Dynsec admin user", "roles": [{"rolename": "admin"}]}],
            "roles": [
                {
                    "rolename": "admin",
                    "acls": [{"acltype": kind, "topic": topic, "allow": True} for kind, topic in _RULES],
                }
            ],
            "defaultACLAccess": {
                "publishClientSend": False, "publishClientReceive": True, "subscribe": False, "unsubscribe": True,
            },
        }
    )  # fmt: skip
    [response] = perform(document, {"command": "setClientPassword", "username": ADMIN, "password": PASSWORD})
    assert response == {"command": "setClientPassword"}
    content: dict[str, Any] = json.loads(document.text())
    return content


def perform(document: Document, *commands: Any) -> list[Response]:
    """Perform commands on a document."""
    return perform_batch(document, CommandBatch(commands))


def write_initial(path: Path) -> Path:
    """Write the file; return its path."""
    path.write_text(json.dumps(initial()))
    return path
