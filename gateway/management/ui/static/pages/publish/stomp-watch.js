/** Watches a destination and sends by STOMP. */
import { html, useEffect, useRef, useState } from "../../lib/html.js";
import { StompClient } from "../../lib/stomp.js";
import { Badge, Panel } from "../../components/basics.js";
import { Field, Form, useForm } from "../../components/forms.js";
import { notify } from "../../components/toasts.js";
import { Log, useLog } from "./log.js";
import { SocketLogin } from "./socket-login.js";

export function StompWatch({ vhost }) {
  const client = useRef(null);
  const [isOpen, setIsOpen] = useState(false);
  const [watched, setWatched] = useState("");
  const log = useLog();
  useEffect(() => () => client.current?.close(), []);

  const connect = async (address, user, password) => {
    const opened = new StompClient(address, {
      user, password, vhost,
      onMessage: (message) => log.add([shown(message)]),
      onEnd: (reason) => {
        if (client.current === opened) notify(reason, { isError: reason !== "The connection is closed." });
        setIsOpen(false);
        setWatched("");
      },
    });
    await opened.opened;
    client.current = opened;
    setIsOpen(true);
  };
  return html`<div class="columns">
    <div class="stack">
      <${Panel} title="Connection">${isOpen
        ? html`<div class="row"><${Badge} kind="good">connected<//> <span class="soft">in <bdi>${vhost}</bdi></span> <button class="small" onClick=${() => client.current.close()}>Disconnect</button></div>`
        : html`<${SocketLogin} protocol="web-stomp" connect=${connect} />`}<//>
      ${isOpen && html`<${Watch} watched=${watched} onWatch=${async (destination) => { await client.current.subscribe(destination); setWatched(destination); }} />
        <${Send} onSend=${(...sent) => client.current.publish(...sent)} />`}
    </div>
    <${Log} log=${log} isWatching=${watched !== ""} />
  </div>`;
}

function Watch({ watched, onWatch }) {
  const { values, field } = useForm({ destination: "/topic/" });
  return html`<${Panel} title="Watch a destination">${watched
    ? html`<div class="row"><span class="soft">Watched</span> <${Badge} kind="accent">${watched}<//></div>`
    : html`<${Form} action="Watch" label="Watch a destination" onSubmit=${() => onWatch(values.destination)}>
      <div class="fields"><${Field} label="Destination" required hint="A /topic gives copies; from a /queue messages are taken" ...${field("destination")} /></div><//>`}<//>`;
}

function Send({ onSend }) {
  const { values, field } = useForm({ destination: "/topic/", body: "" });
  const send = async () => {
    await onSend(values.destination, values.body, { "content-type": "text/plain" });
    notify(`Sent to '${values.destination}'.`);
  };
  return html`<${Panel} title="Send"><${Form} action="Send message" label="Send" onSubmit=${send}><div class="fields">
    <${Field} label="Send to" required ...${field("destination")} /><${Field} label="Body" kind="textarea" isWide ...${field("body")} />
  </div><//><//>`;
}

/** Return a message in the form that the log shows. */
function shown({ headers, body }) {
  const { destination, ...others } = headers;
  return { exchange: "STOMP", routing_key: destination, payload_bytes: new TextEncoder().encode(body).length, payload_encoding: "string", payload: body, properties: { headers: others } };
}
