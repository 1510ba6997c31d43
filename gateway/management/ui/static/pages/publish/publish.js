/** Publish and watch: by AMQP through the HTTP API, by MQTT and STOMP through WebSockets. */
import { html } from "../../lib/html.js";
import { Page } from "../../components/basics.js";
import { OneVhost } from "../../components/one-vhost.js";
import { useTabs } from "../../components/tabs.js";
import { AmqpWatch } from "./amqp-watch.js";
import { MqttWatch } from "./mqtt-watch.js";
import { StompWatch } from "./stomp-watch.js";

const WATCHES = { AMQP: AmqpWatch, MQTT: MqttWatch, STOMP: StompWatch };

export function PublishAndWatch() {
  const [tab, tabs] = useTabs(Object.keys(WATCHES), "Protocol");
  const Watch = WATCHES[tab];
  return html`<${Page} title="Publish and watch">${tabs}<${OneVhost}>${(vhost) => html`<${Watch} key=${`${tab} ${vhost}`} vhost=${vhost} />`}<//><//>`;
}
