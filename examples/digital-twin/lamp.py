"""A lamp with a digital twin: it applies the desired state, and reports its own, both as retained messages.

If the lamp loses its connection, the broker publishes its will: the twin is offline.
"""

import json
import os

import paho.mqtt.client as mqtt

DESIRED = "twins/lamp/desired"
REPORTED = "twins/lamp/reported"

state = {"online": True, "power": "off"}
reports: dict[int, str] = {}


def report(client: mqtt.Client) -> None:
    """Publish the state as a retained message: each new subscriber gets the latest one."""
    text = json.dumps(state)
    reports[client.publish(REPORTED, text, qos=1, retain=True).mid] = text


def begin(client: mqtt.Client, *_: object) -> None:
    """Report, and subscribe: a desired state that was set while the lamp was away arrives at once."""
    report(client)
    client.subscribe(DESIRED, qos=1)


def apply(client: mqtt.Client, _userdata: object, message: mqtt.MQTTMessage) -> None:
    """Apply a desired state."""
    state["power"] = json.loads(message.payload)["power"]
    report(client)


def tell(_client: mqtt.Client, _userdata: object, number: int, *_: object) -> None:
    """Print a report once the broker has it on disk."""
    print(reports.pop(number), flush=True)


client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, "lamp", protocol=mqtt.MQTTv5)
client.will_set(REPORTED, json.dumps({"online": False}), qos=1, retain=True)
client.on_connect = begin
client.on_message = apply
client.on_publish = tell
print("waiting", flush=True)
client.connect("127.0.0.1", int(os.environ.get("MQTT_PORT", "1883")))
client.loop_forever()
