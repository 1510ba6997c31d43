/** Watches topics and publishes by MQTT. */
import { html, useEffect, useRef, useState } from "../../lib/html.js";
import { MqttClient } from "../../lib/mqtt.js";
import { Badge, Panel } from "../../components/basics.js";
import { Field, Form, useForm } from "../../components/forms.js";
import { notify } from "../../components/toasts.js";
import { Log, useLog } from "./log.js";
import { SocketLogin } from "./socket-login.js";
import { textOf } from "./bodies.js";

export function MqttWatch({ vhost }) {
  const client = useRef(null);
  const [isOpen, setIsOpen] = useState(false);
  const [watched, setWatched] = useState([]);
  const log = useLog();
  useEffect(() => () => client.current?.close(), []);

  const connect = async (address, user, password) => {
    const opened = new MqttClient(address, {
      user: `${vhost}:${user}`, password, clientId: `web-ui-${Math.random().toString(36).slice(2, 12)}`,
      onMessage: (message) => log.add([shown(message)]),
      onEnd: () => { setIsOpen(false); setWatched([]); },
    });
    await opened.opened;
    client.current = opened;
    setIsOpen(true);
  };
  return html`<div class="columns">
    <div class="stack">
      <${Panel} title="Connection">${isOpen
        ? html`<div class="row"><${Badge} kind="good">connected<//> <span class="soft">in <bdi>${vhost}</bdi></span> <button class="small" onClick=${() => client.current.close()}>Disconnect</button></div>`
        : html`<${SocketLogin} protocol="web-mqtt" connect=${connect} />`}<//>
      ${isOpen && html`<${Watch} watched=${watched} onWatch=${async (filter) => { await client.current.subscribe(filter); setWatched([...new Set([...watched, filter])]); }} />
        <${Publish} onPublish=${(...sent) => client.current.publish(...sent)} />`}
    </div>
    <${Log} log=${log} isWatching=${watched.length > 0} />
  </div>`;
}

function Watch({ watched, onWatch }) {
  const { values, field } = useForm({ filter: "#" });
  return html`<${Panel} title="Watch topics"><${Form} action="Watch" label="Watch topics" onSubmit=${() => onWatch(values.filter)}>
    <div class="fields"><${Field} label="Topic filter" required hint="+ is one level, # is all further levels" ...${field("filter")} /></div><//>
    ${watched.length > 0 && html`<div class="row"><span class="soft">Watched</span> ${watched.map((filter) => html`<${Badge} key=${filter} kind="accent">${filter}<//>`)}</div>`}<//>`;
}

function Publish({ onPublish }) {
  const { values, field } = useForm({ topic: "", body: "", qos: "1", retain: false });
  const publish = async () => {
    await onPublish(values.topic, new TextEncoder().encode(values.body), { qos: Number(values.qos), retain: values.retain });
    notify(`Published to '${values.topic}'.`);
  };
  return html`<${Panel} title="Publish"><${Form} action="Publish message" label="Publish" onSubmit=${publish}><div class="fields">
    <${Field} label="Topic" required ...${field("topic")} /><${Field} label="QoS" kind="select" options=${["0", "1"]} ...${field("qos")} />
    <${Field} label="Body" kind="textarea" isWide ...${field("body")} />
    <div class="field wide"><${Field} kind="check" label="Retain: new subscribers get it too" ...${field("retain")} /></div>
  </div><//><//>`;
}

/** Return a message in the form that the log shows. */
function shown({ topic, body, retain, qos }) {
  return { exchange: "MQTT", routing_key: topic, payload_bytes: body.length, properties: { qos, retain }, ...textOf(body) };
}
