/** The login of a WebSocket: the browser has no password, so a connection asks for one; it is not kept. */
import { html } from "../../lib/html.js";
import { usePolling } from "../../lib/polling.js";
import { session } from "../../lib/session.js";
import { Field, Form, useForm } from "../../components/forms.js";
import { Loaded } from "../../components/basics.js";

/** @param {{protocol: string, connect: (address: string, user: string, password: string) => Promise<void>}} properties `protocol` is web-mqtt or web-stomp */
export function SocketLogin({ protocol, connect }) {
  const listeners = usePolling("/web-sockets", {}, { interval: 0 });
  return html`<${Loaded} from=${listeners}>${(data) => {
    const listener = data.find((each) => each.protocol === protocol && each.tls === (location.protocol === "https:")) ?? data.find((each) => each.protocol === protocol);
    return listener ? html`<${Login} listener=${listener} connect=${connect} />` : html`<p>The broker has no listener for it: set the port of <code>${protocol.replace("-", "_")}</code>.</p>`;
  }}<//>`;
}

function Login({ listener, connect }) {
  const { values, field } = useForm({ user: session.get().user.name, password: "" });
  const address = `${listener.tls ? "wss" : "ws"}://${location.hostname}:${listener.port}${listener.path}`;
  return html`<${Form} action="Connect" onSubmit=${() => connect(address, values.user, values.password)}>
    <p class="soft">The browser connects to <code>${address}</code>. The password is not kept.</p>
    <div class="fields"><${Field} label="User name" required autocomplete="username" ...${field("user")} /><${Field} label="Password" kind="password" required autocomplete="current-password" ...${field("password")} /></div>
  <//>`;
}
