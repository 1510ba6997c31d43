"""Start the installed ``gateway``, pass one message through it, and stop it.

The broker has free ports and a store of its own. ``--form source`` or ``--form "machine code"`` also checks the form of
the code. The exit code is 0 if the message arrived and the broker stopped with 0.
"""

import argparse
import re
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import pika

#: The longest time of each step, in seconds.
LIMIT_S = 60.0

PORTS = ("amqp", "management", "prometheus", "mqtt", "web_mqtt", "stomp", "web_stomp")


def main() -> int:
    """Try the broker of this environment."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--form", choices=("source", "machine code"))
    form: str | None = options.parse_args().form
    gateway = Path(sysconfig.get_path("scripts")) / "gateway"
    version = subprocess.run([gateway, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    print(version)
    if form is not None and not version.endswith(f"({form})"):
        print(f"this is not {form}", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as directory:
        settings = ["bind=127.0.0.1", *(f"{port}.port=0" for port in PORTS)]
        command = [str(gateway), "run", "--data", directory, *(w for setting in settings for w in ("--set", setting))]
        broker = subprocess.Popen(command, cwd=directory, stdout=subprocess.PIPE, text=True)
        try:
            pass_message(amqp_port(broker))
            broker.terminate()
            return broker.wait(LIMIT_S)
        finally:
            broker.kill()
            broker.wait()


def amqp_port(broker: subprocess.Popen[str]) -> int:
    """Return the AMQP port that a starting broker prints. :raises RuntimeError: if it ends before."""
    assert broker.stdout is not None
    for line in broker.stdout:
        found = re.match(r" +amqp +\S+:(\d+)$", line)
        if found:
            return int(found[1])
    raise RuntimeError("the broker does not start")


def pass_message(port: int) -> None:
    """Publish a persistent message with a confirm, and consume it."""
    address = pika.ConnectionParameters("127.0.0.1", port, stack_timeout=LIMIT_S, blocked_connection_timeout=LIMIT_S)
    with pika.BlockingConnection(address) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare("tried", durable=True)
        channel.basic_publish("", "tried", b"a message", pika.BasicProperties(delivery_mode=2))
        received = next(channel.consume("tried", auto_ack=True, inactivity_timeout=LIMIT_S))[2]
    if received != b"a message":
        raise RuntimeError(f"received {received!r}")
    print("published and consumed a message")


if __name__ == "__main__":
    sys.exit(main())
