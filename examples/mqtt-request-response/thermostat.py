"""A thermostat: it answers requests to ``thermostats/hall/get`` by MQTT 5."""

import os

import paho.mqtt.client as mqtt
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode

TARGETS = {"day": "21.0", "night": "17.5"}


def subscribe(client: mqtt.Client, _userdata: object, _flags: object, _code: ReasonCode, _properties: object) -> None:
    """Subscribe again after each connection."""
    client.subscribe("thermostats/hall/get", qos=1)


def say_ready(*_: object) -> None:
    """Say that requests are answered from now on."""
    print("waiting", flush=True)


def answer(client: mqtt.Client, _userdata: object, request: mqtt.MQTTMessage) -> None:
    """Publish the answer to the topic that the request names, with its correlation data."""
    properties = Properties(PacketTypes.PUBLISH)
    properties.CorrelationData = request.properties.CorrelationData
    name = request.payload.decode(errors="replace")
    print("asked for", name, flush=True)
    client.publish(request.properties.ResponseTopic, TARGETS.get(name, "unknown"), qos=1, properties=properties)


client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, "thermostat-hall", protocol=mqtt.MQTTv5)
client.on_connect = subscribe
client.on_subscribe = say_ready
client.on_message = answer
client.connect("127.0.0.1", int(os.environ.get("MQTT_PORT", "1883")))
client.loop_forever()
