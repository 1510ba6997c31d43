"""The steps of ``gateway quickstart``: each shows what a client would do, does it, and says what happened."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from textwrap import dedent
from typing import Final
from urllib.parse import quote

from gateway.cli.ctl.api import ApiClient
from gateway.cli.ctl.connecting.target import DEFAULT_PASSWORD
from gateway.cli.ctl.errors import WrongData
from gateway.cli.ctl.values import Json, JsonObject, number, objects, part, text
from gateway.cli.quickstart.device import publish_once

#: The virtual host of the tour; it is deleted at the end.
VHOST: Final = "quickstart"

#: The plugin that the tour enables. It is built in, so no broker needs other settings for it.
PLUGIN: Final = "interceptor-timestamp"


@dataclass(frozen=True, slots=True)
class TourStep:
    """One step. ``shown`` is what a reader can try; ``perform`` does it and returns what happened."""

    title: str
    shown: str
    perform: Callable[[], str]


class Tour:
    """The steps at one broker, as one user. ``listeners`` has the ports by protocol.

    :raises CommandFailed: if the broker does not answer, or refuses the login.
    """

    def __init__(self, api: ApiClient, user: str, password: str) -> None:
        self._api = api
        self._host = api.address.host
        self._user = user
        self._password = password
        self.listeners = _listeners(api)

    def begin(self) -> None:
        """Create the virtual host. :raises WrongData: if there is one of this name."""
        if any(each["name"] == VHOST for each in self._api.list("vhosts", query={"columns": "name"})):
            raise WrongData(f"virtual host '{VHOST}' exists: gatewayctl delete_vhost {VHOST} deletes it")
        self._api.put("vhosts", VHOST, body={"description": "gateway quickstart"})

    def end(self) -> None:
        """Delete the virtual host, with all that the steps made."""
        self._api.delete("vhosts", VHOST)

    def steps(self) -> Iterator[TourStep]:
        """Yield the steps that the listeners allow."""
        if "amqp" in self.listeners:
            yield TourStep("Publish and consume", self._program(), self._publish_and_consume)
        if "mqtt" in self.listeners:
            yield TourStep("A device", self._device_commands(), self._device)
        yield TourStep("A plugin", self._plugin_commands(), self._plugin)

    # Publish and consume

    def _program(self) -> str:
        return dedent(f"""\
            In Python, after `pip install pika`:

            import pika

            with pika.BlockingConnection(pika.URLParameters("{self._amqp_url}")) as connection:
                channel = connection.channel()
                channel.queue_declare("greetings", durable=True)
                channel.basic_publish("", "greetings", b"Hello World!")
                print(channel.basic_get("greetings", auto_ack=True)[2])""")

    def _publish_and_consume(self) -> str:
        self._declare("greetings")
        self._publish("amq.default", "greetings", "Hello World!")
        received = self._get("greetings")
        return f"The queue 'greetings' took the message and delivered it: {received['payload']!r}"

    # A device

    def _device_commands(self) -> str:
        port = self.listeners["mqtt"]
        return dedent(f"""\
            The topic 'sensors/hall' is the routing key 'sensors.hall' of the exchange 'amq.topic', so a queue that is
            bound with 'sensors.#' gets what devices publish. With mosquitto's client:

            mosquitto_pub -h {self._host} -p {port} -u {VHOST}:{self._user} -P {self._shown_password} \\
                -q 1 -t sensors/hall -m 21.5""")

    def _device(self) -> str:
        self._declare("readings")
        self._api.post("bindings", VHOST, "e", "amq.topic", "q", "readings", body=b'{"routing_key": "sensors.#"}')
        login = (f"{VHOST}:{self._user}", self._password)
        publish_once((self._host, self.listeners["mqtt"]), "quickstart", login, "sensors/hall", b"21.5")
        received = self._get("readings")
        return f"The queue 'readings' has {received['payload']!r} with the routing key {received['routing_key']!r}"

    # A plugin

    def _plugin_commands(self) -> str:
        return dedent(f"""\
            Plugins are enabled for each virtual host while the broker runs. This one stamps messages with the time of
            their arrival:

            gatewayctl --url {self._api.address.url} plugin enable {PLUGIN} -p {VHOST}

            `gateway plugin new NAME` writes a plugin of your own, with its test.""")

    def _plugin(self) -> str:
        self._declare("stamped")
        self._api.put("plugins", VHOST, PLUGIN, body={})
        self._publish("amq.default", "stamped", "when?")
        return f"The message arrived with the headers {part(self._get('stamped'), 'properties', 'headers')}"

    # Requests

    @property
    def _amqp_url(self) -> str:
        host = f"[{self._host}]" if ":" in self._host else self._host
        login = f"{quote(self._user, safe='')}:{quote(self._shown_password, safe='')}"
        return f"amqp://{login}@{host}:{self.listeners['amqp']}/{VHOST}"

    @property
    def _shown_password(self) -> str:
        """The password as it is printed: that of a new broker is no secret, any other one is."""
        return self._password if self._password == DEFAULT_PASSWORD else "PASSWORD"

    def _declare(self, queue: str) -> None:
        self._api.put("queues", VHOST, queue, body={"durable": True})

    def _publish(self, exchange: str, routing_key: str, payload: str) -> None:
        message: Json = {
            "properties": {},
            "routing_key": routing_key,
            "payload": payload,
            "payload_encoding": "string",
        }
        self._api.ask("exchanges", VHOST, exchange, "publish", body=message)

    def _get(self, queue: str) -> JsonObject:
        """Take the next message of a queue. :raises WrongData: if it is empty."""
        wanted: Json = {"count": 1, "ackmode": "ack_requeue_false", "encoding": "auto"}
        for message in objects(self._api.ask("queues", VHOST, queue, "get", body=wanted)):
            return message
        raise WrongData(f"the queue '{queue}' has no message: does another client consume from it?")


def _listeners(api: ApiClient) -> dict[str, int]:
    """Return the ports by protocol."""
    return {text(each, "protocol"): number(each, "port") for each in objects(part(api.get("overview"), "listeners"))}
