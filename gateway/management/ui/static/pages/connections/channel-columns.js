/** The columns of tables of channels. */
import { html } from "../../lib/html.js";
import { count, rate, rateOf } from "../../lib/format.js";
import { Badge } from "../../components/basics.js";
import { ChannelLink } from "../../components/client-links.js";

export const CHANNEL_COLUMNS = [
  { title: "Channel", sort: "name", isHeader: true, cell: (each) => html`<${ChannelLink} connection_name=${each.connection_details?.name} name=${each.name} />` },
  { title: "User", sort: "user", isExtra: true, cell: (each) => html`<bdi>${each.user}</bdi>` },
  { title: "Mode", isExtra: true, cell: (each) => html`<span class="badges">${each.confirm && html`<${Badge} title="publisher confirms">confirms<//>`}${each.transactional && html`<${Badge} title="transactions">tx<//>`}</span>` },
  { title: "Consumers", sort: "consumer_count", isNumber: true, isExtra: true, cell: (each) => count(each.consumer_count) },
  { title: "Prefetch", sort: "prefetch_count", isNumber: true, isExtra: true, cell: (each) => (each.prefetch_count ? count(each.prefetch_count) : "–") },
  { title: "Unacked", sort: "messages_unacknowledged", isNumber: true, isExtra: true, cell: (each) => count(each.messages_unacknowledged) },
  { title: "Unconfirmed", sort: "messages_unconfirmed", isNumber: true, isExtra: true, cell: (each) => count(each.messages_unconfirmed) },
  { title: "Publish /s", sort: "message_stats.publish_details.rate", isNumber: true, cell: (each) => rate(rateOf(each.message_stats, "publish")) },
  { title: "Deliver /s", sort: "message_stats.deliver_get_details.rate", isNumber: true, cell: (each) => rate(rateOf(each.message_stats, "deliver_get")) },
  { title: "Ack /s", sort: "message_stats.ack_details.rate", isNumber: true, isExtra: true, cell: (each) => rate(rateOf(each.message_stats, "ack")) },
];
