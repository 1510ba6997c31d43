"""A dashboard: it consumes the readings of all sensors by AMQP, and shows the last one of each room on a web page.

Its queue is durable: readings that arrive while the dashboard does not run wait there.
"""

import os
import threading
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pika

latest: dict[str, str] = {}


class Page(BaseHTTPRequestHandler):
    """The page with the latest readings."""

    def do_GET(self) -> None:
        """Answer with a row for each room."""
        rows = "".join(f"<tr><td>{escape(room)}<td>{escape(value)}\n" for room, value in sorted(latest.items()))
        head = "<!doctype html><title>Rooms</title><meta http-equiv=refresh content=2>"
        page = f"{head}\n<table>\n{rows}</table>\n".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, *_: object) -> None:
        """Log no requests."""


server = ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("DASHBOARD_PORT", "8000"))), Page)
threading.Thread(target=server.serve_forever, daemon=True).start()

connection = pika.BlockingConnection(pika.URLParameters(os.environ.get("AMQP_URL", "amqp://127.0.0.1:5672")))
channel = connection.channel()
channel.queue_declare("dashboard", durable=True)
channel.queue_bind("dashboard", "amq.topic", "sensors.*.temperature")  # the topics sensors/+/temperature
print("waiting", flush=True)
for method, _properties, body in channel.consume("dashboard"):
    room = method.routing_key.split(".")[1]
    latest[room] = body.decode(errors="replace")
    channel.basic_ack(method.delivery_tag)
    print(room, latest[room], flush=True)
