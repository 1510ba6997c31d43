"""The other legacy application: it sends orders, and waits until the broker has each of them on disk."""

import os
import uuid
from threading import Event

import stomp

TIMEOUT_S = 10


class Receipts(stomp.ConnectionListener):
    """Waits for the receipt of the last order."""

    def __init__(self) -> None:
        self.is_stored = Event()

    def on_receipt(self, frame: stomp.utils.Frame) -> None:
        """Note the receipt."""
        self.is_stored.set()


receipts = Receipts()
connection = stomp.Connection12([("127.0.0.1", int(os.environ.get("STOMP_PORT", "61613")))])
connection.set_listener("", receipts)
connection.connect("guest", "guest", wait=True)
for order, country in (("12 chairs", "DE"), ("1 table", "FR"), ("3 lamps", "DE")):
    receipts.is_stored.clear()
    connection.send("/queue/shop.orders", order, persistent="true", country=country, receipt=str(uuid.uuid4()))
    assert receipts.is_stored.wait(TIMEOUT_S), "the broker did not store the order"
print("sent")
connection.disconnect()
