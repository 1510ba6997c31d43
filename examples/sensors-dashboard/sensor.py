"""A sensor: ``python sensor.py hall 21.5 21.7`` publishes readings of a room by MQTT 5, with QoS 1."""

import os
import sys

import paho.mqtt.client as mqtt

room, *readings = sys.argv[1:]
client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, f"sensor-{room}", protocol=mqtt.MQTTv5)
client.connect("127.0.0.1", int(os.environ.get("MQTT_PORT", "1883")))
client.loop_start()
for reading in readings:
    published = client.publish(f"sensors/{room}/temperature", reading, qos=1)
    published.wait_for_publish(10)  # until the broker has it on disk
client.disconnect()
client.loop_stop()
print("published", len(readings))
