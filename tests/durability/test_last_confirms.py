"""A broker that stops confirms what it has read before it closes the connections: the rest is not stored."""

import signal
from contextlib import suppress
from pathlib import Path

from pamqp import commands

from tests.clusters.links import AmqpLink
from tests.running import gateway_in


def test_what_a_stopping_broker_has_stored_is_confirmed(tmp_path: Path) -> None:
    with gateway_in(tmp_path) as gateway:
        with AmqpLink(gateway.addresses["amqp"]) as link:
            link.declare("orders")
            link.call(commands.Confirm.Select())
            sent = confirmed = 0
            is_told = False
            with suppress(OSError):  # the end of the connection
                while True:
                    while sent - confirmed < 500:
                        sent += 1
                        link.publish("orders", b"%d" % sent)
                    found = link.next_method()
                    confirmed = found.delivery_tag if found.multiple else confirmed + 1
                    if confirmed > 1000 and not is_told:
                        is_told = True
                        gateway.child.send_signal(signal.SIGTERM)
        assert gateway._wait(30.0) == 0
        gateway.start()
        with AmqpLink(gateway.addresses["amqp"]) as link:
            assert link.declare("orders") == confirmed
        assert confirmed > 1000
