"""The end of paho's network thread."""

import contextlib

from paho.mqtt.client import Client


def stop_loop(client: Client) -> None:
    """End the network thread of ``client``, which may end by itself at the same time.

    A thread that ends removes itself from the client. ``loop_stop`` of paho 2.1 fails if that is between its check and
    its wait.
    """
    with contextlib.suppress(AttributeError):
        client.loop_stop()
