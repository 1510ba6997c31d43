"""Output of settings: the effective ones for ``gateway check``, all of them with documentation for the docs."""

from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, Final

import tomli_w

from gateway.config.catalogue import SettingInfo, plain, settings_by_key, tables
from gateway.config.settings import Settings

HIDDEN: Final = "(hidden)"

TEMPLATE_HEAD: Final = """\
# Every setting of the gateway with its default. Remove the "#" before a line to change it.
# Any setting can also be given on the command line, gateway run --set amqp.port=5673, and as a variable of the
# environment, GATEWAY__AMQP__PORT=5673.
# Sizes are bytes or strings such as "50MB" (powers of 1000) and "2GiB" (powers of 1024).
# Relative paths start from the working directory of the gateway.
"""

VHOSTS_EXAMPLE: Final = """\
# A virtual host named here is created at the start. With tracing, its messages are copied to amq.rabbitmq.trace.
# [vhosts."/"]
# tracing = false

# Mapping of MQTT topics to routing keys; lossy is RabbitMQ's mapping, in which "." and "/" collide.
# mqtt_mapping = "reversible"

# Enabled plugins, each with its own settings.
# [vhosts."/".plugins.NAME]
# key = "value"
"""

MARKDOWN_HEAD: Final = """\
# Configuration

The gateway reads one TOML file, `gateway run --config FILE`; without one every setting has its default.
`--set SECTION.KEY=VALUE` overrides any setting and may be repeated: the value is TOML, or a bare string. A name with
other characters than letters, digits, `_` and `-` is quoted: `--set 'vhosts."/".tracing=true'`. An unknown key or an
invalid value stops the start with one line that names the key and the allowed values.

A variable of the environment is a setting, too: `GATEWAY__` and the key, with two underscores for the dot, such as
`GATEWAY__AMQP__PORT=5673`. With `_FILE` at the end of its name the value is the content of a file, without its last
line end: `GATEWAY__DEFAULT_PASS_FILE=/run/secrets/pass`. A text is exactly that content, any other value is TOML.
Unlike a command line, other users of the machine cannot read it. Variables override the file, and `--set` overrides
both. `GATEWAY_CONFIG=FILE` is `--config FILE`. Settings of virtual hosts have no variables.

`gateway check --config FILE` does the same checks, loads the plugins, reads the definitions and prints the effective
settings, without starting the broker. Its exit code is 0 if there are no errors, 65 if the configuration is wrong and
64 if the command line is wrong.

[`etc/gateway.toml`](../etc/gateway.toml) holds every setting, commented out, with its default. Sizes are bytes or
strings such as `"50MB"` (powers of 1000) and `"2GiB"` (powers of 1024). Relative paths start from the working
directory of the gateway. A port of 0 takes any free port, which is printed; `"off"` disables the listener.
"""

MARKDOWN_TAIL: Final = """\

## Definitions

`load_definitions` takes a file in RabbitMQ's definitions format: users with RabbitMQ's password hashes, virtual hosts,
permissions, topic permissions, exchanges, queues, bindings, policies and parameters. A file written by
`rabbitmqctl export_definitions` can be loaded unchanged. It is applied at every start; entities that already exist
with the same settings do not change. The whole file is checked first: if the broker would refuse any entry, it reports
all such entries, with places such as `queues[3].arguments.x-message-ttl`, and applies nothing.
[`etc/definitions.json`](../etc/definitions.json) is an example; its user `orders` has the password `orders-demo`.

Patterns in permissions are regular expressions that match anywhere in a name unless they are anchored; the empty
pattern matches nothing, and the default exchange has the name `amq.default`. They are evaluated by
[RE2](management.md#regular-expressions), in linear time; a pattern that RE2 does not support is refused when it is set.
In the patterns of topic permissions `{username}`, `{vhost}` and, where a protocol has one, `{client_id}` stand for the
connection's values, taken literally.

## `[vhosts."NAME"]`

A virtual host named here is created at the start if it does not exist.

`tracing = false`

Whether its messages are copied to the exchange `amq.rabbitmq.trace` from the start: every published message with the
routing key `publish.` and the name of the exchange, every delivered message with `deliver.` and the name of the queue.
Allowed: true or false.

`mqtt_mapping = "reversible"`

Mapping of MQTT topics to routing keys. `reversible` writes `.` and `*` as `%2E` and `%2A`, so that two topics never
share a key and every topic can be restored. `lossy` is RabbitMQ's mapping, which treats `.` in a topic as `/`. Allowed:
"reversible" or "lossy".

## `[vhosts."NAME".plugins.PLUGIN]`

The plugins that the virtual host `NAME` enables. The keys in such a table are the plugin's own settings; see the
documentation of the plugin.
"""


def effective(settings: Settings, secrets_of: Callable[[str], Collection[str]] = lambda plugin: ()) -> str:
    """Write the settings as TOML. A password other than the default is hidden.

    ``secrets_of`` returns the names of the secret settings of a plugin.
    """
    return tomli_w.dumps({key: value for key, value in shown(settings, secrets_of).items() if value != {}})


def shown(settings: Settings, secrets_of: Callable[[str], Collection[str]] = lambda plugin: ()) -> dict[str, Any]:
    """Return the settings in the form of a TOML document, with secrets hidden as ``effective`` does."""
    document = plain(settings)
    for setting in settings_by_key().values():
        section, _, name = setting.key.rpartition(".")
        table = document[section] if section else document
        if setting.is_secret and table[name] != setting.default:
            table[name] = HIDDEN
    for vhost in document.get("vhosts", {}).values():
        for plugin, table in vhost.get("plugins", {}).items():
            table.update(dict.fromkeys(table.keys() & secrets_of(plugin), HIDDEN))
    return document


def template() -> str:
    """Write ``etc/gateway.toml``: every setting commented out, with its meaning and default."""
    blocks = [TEMPLATE_HEAD]
    for table in tables():
        if table.key:
            blocks.append(f"# {table.meaning}\n[{table.key}]\n")
        blocks.extend(_template_lines(setting) for setting in table.settings)
    return "\n".join([*blocks, VHOSTS_EXAMPLE])


def markdown() -> str:
    """Write ``docs/configuration.md``: every setting with its default, allowed values and meaning."""
    blocks = [MARKDOWN_HEAD]
    for table in tables():
        blocks.append(f"\n## `[{table.key}]`\n\n{table.meaning}\n" if table.key else "\n## At the top\n")
        blocks.extend(_markdown_lines(setting) for setting in table.settings)
    return "".join([*blocks, MARKDOWN_TAIL])


def _template_lines(setting: SettingInfo) -> str:
    meaning = setting.meaning.replace("``", "")
    reload = "# A reload applies it.\n" if setting.is_live else ""
    return f"# {meaning}\n# Allowed: {setting.allowed}\n{reload}#{_assignment(setting)}\n"


def _markdown_lines(setting: SettingInfo) -> str:
    meaning = setting.meaning.replace("``", "`")
    reload = " A [reload](operations.md#reloading) applies it." if setting.is_live else ""
    return f"\n`{_assignment(setting)}`  \n{meaning} Allowed: {setting.allowed}.{reload}\n"


def _assignment(setting: SettingInfo) -> str:
    """Write ``name = default`` on one line."""
    name = setting.key.rpartition(".")[2]
    return f"{name} = {_inline(setting.default)}"


def _inline(value: Any) -> str:
    """Write a value on one line; tomli_w would spread lists over several."""
    if isinstance(value, list):
        return f"[{', '.join(map(_inline, value))}]"
    return tomli_w.dumps({"value": value}).removeprefix("value = ").rstrip("\n")


def write_files(root: Path) -> None:
    """Write ``etc/gateway.toml`` and ``docs/configuration.md`` below ``root``."""
    (root / "etc" / "gateway.toml").write_text(template(), encoding="utf-8")
    (root / "docs" / "configuration.md").write_text(markdown(), encoding="utf-8")


if __name__ == "__main__":
    write_files(Path(__file__).parents[2])
