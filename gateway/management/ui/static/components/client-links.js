/** Links to connections, channels and users. */
import { html } from "../lib/html.js";
import { to } from "../lib/router.js";
import { Name } from "./basics.js";

export const ConnectionLink = ({ name }) => html`<a href=${to("connections", name)}><${Name} of=${name} /></a>`;

/** A link to the connection of a channel; `details` are `channel_details` of the API. */
export function ChannelLink({ connection_name: connection, name }) {
  if (!connection) return html`<${Name} of=${name} empty="(none)" />`;
  return html`<a href=${to("connections", connection)}><${Name} of=${name} /></a>`;
}
