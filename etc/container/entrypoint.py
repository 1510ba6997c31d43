"""Start the gateway in a container, with settings from the environment.

``GATEWAY__AMQP__HEARTBEAT_S=30`` is ``--set amqp.heartbeat_s=30``, ``GATEWAY__DEFAULT_USER=admin`` is ``--set
default_user=admin``. With ``_FILE`` at the end, the value is the content of that file: ``GATEWAY__DEFAULT_PASS_FILE``.
``/etc/gateway/gateway.toml`` is read if it is there. Further options are passed on; the first word may be another
command of the gateway, such as ``check``.
"""

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

PREFIX = "GATEWAY__"
FROM_FILE = "_FILE"
CONFIG = "/etc/gateway/gateway.toml"
DATA = "/var/lib/gateway"


def settings(environment: Mapping[str, str]) -> Iterator[str]:
    """Yield ``key=value`` for each setting in the environment, in the order of the names."""
    for name, value in sorted(environment.items()):
        if not name.startswith(PREFIX):
            continue
        key = name.removeprefix(PREFIX)
        if key.endswith(FROM_FILE) and not key.endswith(f"_{FROM_FILE}"):
            # Quoted, as a password may look like a number.
            content = Path(value).read_text(encoding="utf-8").rstrip("\r\n")
            key, value = key.removesuffix(FROM_FILE), json.dumps(content, ensure_ascii=False)
        yield f"{key.lower().replace('__', '.')}={value}"


def command(arguments: Sequence[str], environment: Mapping[str, str], has_config: bool) -> list[str]:
    """Return the command line of the gateway."""
    if arguments and not arguments[0].startswith("-") and arguments[0] != "run":
        return ["gateway", *arguments]
    options = ["--data", DATA, *(["--config", CONFIG] if has_config else [])]
    overrides = [word for setting in settings(environment) for word in ("--set", setting)]
    return ["gateway", "run", *options, *overrides, *(word for word in arguments if word != "run")]


def main() -> None:
    """Become the gateway, so that it gets the signals of the container."""
    try:
        words = command(sys.argv[1:], os.environ, Path(CONFIG).exists())
    except OSError as error:
        sys.exit(f"gateway: cannot read a setting from a file: {error}")
    os.execv(Path(sys.executable).with_name("gateway"), words)


if __name__ == "__main__":
    main()
