"""Asks the thermostat: ``python ask.py night``."""

import os
import sys
import uuid
from queue import Queue
from threading import Event

import paho.mqtt.client as mqtt
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

TIMEOUT_S = 10

answers: Queue[mqtt.MQTTMessage] = Queue()
is_subscribed = Event()

client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, protocol=mqtt.MQTTv5)
client.on_message = lambda _client, _userdata, message: answers.put(message)
client.on_subscribe = lambda *_: is_subscribed.set()
client.connect("127.0.0.1", int(os.environ.get("MQTT_PORT", "1883")))
client.loop_start()

topic = f"answers/{uuid.uuid4()}"
client.subscribe(topic, qos=1)
is_subscribed.wait(TIMEOUT_S)  # the answer is not lost: the subscription is there before the request

request = Properties(PacketTypes.PUBLISH)
request.ResponseTopic = topic
request.CorrelationData = uuid.uuid4().bytes
client.publish("thermostats/hall/get", sys.argv[1], qos=1, properties=request)

answer = answers.get(timeout=TIMEOUT_S)
assert answer.properties.CorrelationData == request.CorrelationData
print(answer.payload.decode())
client.disconnect()
client.loop_stop()
