"""A new application, by AMQP: it takes the orders that no warehouse wants."""

import os

import pika

with pika.BlockingConnection(pika.URLParameters(os.environ.get("AMQP_URL", "amqp://127.0.0.1:5672"))) as connection:
    channel = connection.channel()
    while (order := channel.basic_get("shop.orders"))[0] is not None:
        method, properties, body = order
        print(properties.headers["country"], body.decode())
        channel.basic_ack(method.delivery_tag)
