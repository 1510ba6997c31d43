"""The twin of the lamp, as an application sees it: ``python twin.py on``, ``python twin.py off``, ``python twin.py``.

Without an argument it prints the desired and the reported state; the lamp may be offline.
"""

import json
import os
import sys
from queue import Queue

import paho.mqtt.client as mqtt

TIMEOUT_S = 10

states: Queue[mqtt.MQTTMessage] = Queue()

client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, protocol=mqtt.MQTTv5)
client.on_message = lambda _client, _userdata, message: states.put(message)
client.connect("127.0.0.1", int(os.environ.get("MQTT_PORT", "1883")))
client.loop_start()
if len(sys.argv) > 1:
    desired = json.dumps({"power": sys.argv[1]})
    client.publish("twins/lamp/desired", desired, qos=1, retain=True).wait_for_publish(TIMEOUT_S)
else:
    client.subscribe("twins/lamp/+", qos=1)
    for message in sorted((states.get(timeout=TIMEOUT_S) for _ in range(2)), key=lambda message: message.topic):
        print(message.topic, message.payload.decode())
client.disconnect()
client.loop_stop()
