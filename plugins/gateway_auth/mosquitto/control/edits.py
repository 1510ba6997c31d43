"""Changes of a dynamic security file by commands: read, changed and written as a whole."""

import json
import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Final

from gateway.api import ConfigurationError
from gateway_auth.mosquitto.control.commands import CommandBatch, Response, perform_batch
from gateway_auth.mosquitto.control.document import Document
from gateway_auth.mosquitto.dynamic_security import DynamicSecurity, parse_dynamic_security

#: One change at a time: virtual hosts may share a file.
_changing: Final = Lock()


@dataclass(frozen=True, slots=True)
class Edit:
    """The outcome of a batch: its responses, the new content if the file was written, and who must connect again.

    ``failure`` is why the file could not be read or written; then nothing has changed.
    """

    responses: list[Response]
    content: DynamicSecurity | None = None
    users: frozenset[str] = frozenset()
    failure: str = ""


def edit_file(path: str, batch: CommandBatch) -> Edit:
    """Perform a batch of commands on a file. Blocks, so it is not for the kernel's thread.

    The file is read each time, so changes by others are kept. It is written only if a command changed it.
    """
    with _changing:
        try:
            text = Path(path).read_text(encoding="utf-8")
            parse_dynamic_security(text)
            document = Document(json.loads(text))
            responses = perform_batch(document, batch)
            if not document.is_changed:
                return Edit(responses)
            text = document.text()
            content = parse_dynamic_security(text)
            _write(Path(path).resolve(), text)
        except (OSError, UnicodeDecodeError, ConfigurationError) as error:
            return Edit([_failed(each) for each in perform_batch(Document({}), batch)], failure=str(error))
    return Edit(responses, content, frozenset(document.users))


def _failed(response: Response) -> Response:
    """Return the response to a command that could not be performed, with the names that the client sent."""
    kept: Response = {key: value for key, value in response.items() if key in ("command", "correlationData")}
    return {**kept, "error": "The dynamic security file cannot be changed"}


def _write(path: Path, text: str) -> None:
    """Replace a file as a whole; only its owner may read it."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
