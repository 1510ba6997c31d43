"""The schemas of typed tables, from the settings, and their check before the broker starts."""

import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Final

from gateway.archive.targets import ICEBERG, iceberg_address
from gateway.columnar.absent import has_arrow
from gateway.columnar.tables.schema_files import SchemaFile, schema_files
from gateway.config import Settings
from gateway.kernel.errors import ConfigurationError, GatewayError
from gateway.worker_process.framing import FrameReader, Head, encode_frame

#: Longest time of the check. A catalogue that does not answer has limits of its own.
_LONGEST_S: Final = 120.0


def worker_module() -> str:
    """Return the name of the module that the worker process runs."""
    return "gateway.columnar.encoding.worker" if has_arrow() else "gateway.columnar.absent"


def archive_schemas(settings: Settings) -> Mapping[str, SchemaFile]:
    """Return the schemas of typed tables by table.

    :raises ConfigurationError: with a line for each file that cannot be used.
    """
    directory = settings.archive.schemas
    if directory is None or settings.archive.format != ICEBERG:
        return {}
    try:
        return schema_files(directory)
    except ConfigurationError as error:
        raise ConfigurationError("\n".join(f"archive.schemas: {line}" for line in str(error).splitlines())) from None
    except OSError as error:
        raise ConfigurationError(f"archive.schemas: {error}") from None


def check_schemas(settings: Settings) -> None:
    """Check that each schema is valid, and that its table, if it exists, can take it.

    The worker checks it, in a process of its own: the broker does not load its libraries.

    :raises ConfigurationError: with a line for each fault. :raises GatewayError: if the check takes too long.
    """
    files = archive_schemas(settings)
    if not files:
        return
    head = {"do": "schemas", "iceberg": iceberg_address(settings).as_head()}
    answer = _answer({**head, "schemas": [file.as_head() for file in files.values()]})
    faults = answer.get("faults", [answer.get("error", "the check has failed")])
    if faults:
        raise ConfigurationError("\n".join(f"archive.schemas: {fault}" for fault in faults))


def _answer(request: Head) -> Head:
    """Return the answer of a worker to one request; empty if it died.

    :raises GatewayError: if there is none in time, as on a busy machine. It is no error of the configuration, so that a
        service manager starts the broker again.
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    try:
        done = subprocess.run(
            [sys.executable, "-m", worker_module()],
            input=encode_frame(request),
            stdout=subprocess.PIPE,
            env=environment,
            timeout=_LONGEST_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise GatewayError(f"archive.schemas: the check has not ended within {_LONGEST_S:g} s; start again") from None
    return next((frame.head for frame in FrameReader().feed(done.stdout)), {})
