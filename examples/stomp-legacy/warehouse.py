"""A legacy program, for ActiveMQ: ``python warehouse.py DE`` takes the orders of a country, each in turn."""

import os
import sys
from threading import Event

import stomp

country = sys.argv[1]
is_lost = Event()


class Warehouse(stomp.ConnectionListener):
    """Prints and acknowledges orders."""

    def on_message(self, frame: stomp.utils.Frame) -> None:
        """Acknowledge an order once it is done; if the warehouse dies before that, another one gets it."""
        print(frame.body, flush=True)
        connection.ack(frame.headers["ack"])

    def on_disconnected(self) -> None:
        """Let the program end."""
        is_lost.set()


connection = stomp.Connection12([("127.0.0.1", int(os.environ.get("STOMP_PORT", "61613")))])
connection.set_listener("", Warehouse())
connection.connect("guest", "guest", wait=True)
connection.subscribe(
    "/queue/shop.orders",
    id="1",
    ack="client-individual",
    headers={"selector": f"country = '{country}'", "activemq.prefetchSize": "1"},
)
print("waiting", flush=True)
is_lost.wait()
