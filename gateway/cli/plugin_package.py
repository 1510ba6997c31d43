"""The files of a new plugin package: a module with a working example, its test, and the entry point."""

from collections.abc import Mapping
from string import Template
from typing import Final

from gateway.cli.plugin_templates import EVENTS, FEATURE, HTTP

_PROJECT: Final = Template("""\
[build-system]
requires = ["setuptools>=68"]
build-backend = "setuptools.build_meta"

[project]
name = "$name"
version = "0.1.0"
description = "A plugin of gateway"
requires-python = ">=3.11"
dependencies = ["gateway-broker"]

[project.optional-dependencies]
test = ["pytest"]

[project.entry-points."gateway.plugins"]
$name = "$module"

[tool.setuptools]
py-modules = ["$module"]

[tool.pytest.ini_options]
pythonpath = ["."]
""")

_README: Final = Template("""\
# $name

A plugin of gateway. Run its tests with `pytest`. To try it, install it beside the broker (`pip install .`), start the
broker, and enable it in one virtual host:

    gatewayctl plugin enable $name -p VHOST

Or copy `$module.py` into the directory of the setting `plugins_dir`, without a restart. Then the name of the plugin is
`$module`, and `gatewayctl plugin reload $module -p VHOST` uses a new version of the file.
""")

_AUTH_README: Final = Template(
    _README.template
    + """
Its users need permissions, too: from `gatewayctl set_permissions`, after `gatewayctl add_user` and
`gatewayctl clear_password` have created them in the broker without a password, or from an authorizer of the plugin
(`gateway_authorizers`).
"""
)

_EXCHANGE: Final = (
    Template('''\
"""$name: the exchange type "$type", which routes by the first letter of the routing key."""

from collections.abc import Iterable

from gateway.api import Arguments, Binding, Destination, ExchangeTypes, Message, hookimpl


class FirstLetter:
    """Routes a message to the bindings whose key begins with the same letter as its routing key."""

    routes_by_key = True  # the broker may remember the routes of a key until a binding changes

    def __init__(self, arguments: Arguments) -> None:
        self._bindings: dict[Binding, Destination] = {}

    def bind(self, binding: Binding) -> None:
        """Add a binding."""
        self._bindings[binding] = binding.destination

    def unbind(self, binding: Binding) -> None:
        """Remove a binding."""
        del self._bindings[binding]

    def route(self, message: Message) -> Iterable[Destination]:
        """Return the destinations of a message."""
        letter = message.routing_key[:1]
        return [destination for binding, destination in self._bindings.items() if binding.routing_key[:1] == letter]


@hookimpl
def gateway_exchange_types() -> ExchangeTypes:
    """Offer the exchange type."""
    return {"$type": FirstLetter}
'''),
    Template('''\
"""The exchange type keeps its contract."""

from $module import FirstLetter

from gateway.testing import check_exchange_type


def test_the_exchange_type_keeps_its_contract():
    check_exchange_type(FirstLetter)
'''),
)

_AUTH: Final = (
    Template('''\
"""$name: accepts the users of its settings."""

import hmac
from collections.abc import Callable, Sequence

from pydantic import Field

from gateway.api import Authenticator, Credentials, PluginSettings, Principal, hookimpl


class Settings(PluginSettings):
    """The settings of the plugin."""

    passwords: dict[str, str] = Field(default_factory=dict)
    """Passwords by user name."""


class KnownUsers:
    """Accepts users with the passwords of the settings."""

    def __init__(self, passwords: dict[str, str]) -> None:
        self._passwords = passwords

    def authenticate(self, credentials: Credentials, answer: Callable[[Principal | None], None]) -> None:
        """Answer with the user, or leave the decision to the next authenticator."""
        has_password = credentials.mechanism in ("PLAIN", "AMQPLAIN")
        expected = self._passwords.get(credentials.username) if has_password else None
        is_known = expected is not None and hmac.compare_digest(expected.encode(), credentials.password.encode())
        answer(Principal(credentials.username) if is_known else None)


@hookimpl
def gateway_settings_model() -> type[Settings]:
    """Return the model of the settings."""
    return Settings


@hookimpl
def gateway_authenticators(settings: Settings) -> Sequence[Authenticator]:
    """Offer the authenticator."""
    return [KnownUsers(settings.passwords)]
'''),
    Template('''\
"""The authenticator keeps its contract."""

from $module import KnownUsers

from gateway.api import Credentials
from gateway.testing import check_authenticator


def test_the_authenticator_keeps_its_contract():
    check_authenticator(KnownUsers({"ann": "secret"}), accepted=[Credentials("PLAIN", "ann", "secret")])
'''),
)

_TRACER: Final = (
    Template('''\
"""$name: counts the messages of each exchange."""

from collections import Counter
from collections.abc import Sequence

from gateway.api import Message, Origin, TracedVhost, Tracer, hookimpl


class ExchangeCounts:
    """Counts published messages by exchange."""

    def __init__(self, vhost: TracedVhost) -> None:
        self.counts: Counter[str] = Counter()

    def published(self, message: Message, queues: Sequence[str], origin: Origin) -> None:
        """Count a message that was routed to these queues."""
        self.counts[message.exchange] += 1

    def delivered(self, message: Message, queue: str, redelivered: bool, origin: Origin) -> None:
        """Ignore deliveries."""


@hookimpl
def gateway_tracers(vhost: TracedVhost) -> Sequence[Tracer]:
    """Offer the tracer."""
    return [ExchangeCounts(vhost)]
'''),
    Template('''\
"""The tracer keeps its contract."""

from $module import ExchangeCounts

from gateway.testing import check_tracer


def test_the_tracer_keeps_its_contract():
    check_tracer(ExchangeCounts)
'''),
)

_INTERCEPTOR: Final = (
    Template('''\
"""$name: adds the user of the publisher to each message."""

from collections.abc import Sequence

from gateway.api import Decision, Interceptor, Message, Origin, hookimpl


class UserStamp(Interceptor):
    """Sets the header "published-by". A set of names as ``exchanges`` would restrict it to messages for these."""

    on_error = "refuse"

    def on_publish(self, message: Message, origin: Origin) -> Decision:
        """Return the message with the header."""
        return message.edited({"published-by": origin.user})


@hookimpl
def gateway_interceptors() -> Sequence[Interceptor]:
    """Offer the interceptor."""
    return [UserStamp()]
'''),
    Template('''\
"""The interceptor keeps its contract."""

from $module import UserStamp

from gateway.testing import check_interceptor


def test_the_interceptor_keeps_its_contract():
    check_interceptor(UserStamp())
'''),
)

#: The module and its test, by kind of plugin.
KINDS: Final[Mapping[str, tuple[Template, Template]]] = {
    "exchange": _EXCHANGE,
    "auth": _AUTH,
    "tracer": _TRACER,
    "interceptor": _INTERCEPTOR,
    "feature": FEATURE,
    "events": EVENTS,
    "http": HTTP,
}


def plugin_files(name: str, kind: str) -> dict[str, str]:
    """Return the contents of a new package's files by path. ``kind`` is one of ``KINDS``."""
    words = {"name": name, "module": name.replace("-", "_"), "type": f"x-{name}"}
    module, test = KINDS[kind]
    templates = {
        "pyproject.toml": _PROJECT,
        "README.md": _AUTH_README if kind == "auth" else _README,
        f"{words['module']}.py": module,
        f"test_{words['module']}.py": test,
    }
    return {path: template.substitute(words) for path, template in templates.items()}
