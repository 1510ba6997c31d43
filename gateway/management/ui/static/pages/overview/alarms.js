/** The alarms that are raised, and what to do about each. */
import { html } from "../../lib/html.js";
import { usePolling, useRepeated } from "../../lib/polling.js";
import { get } from "../../lib/api.js";
import { may } from "../../lib/session.js";
import { bytes } from "../../lib/format.js";

export function Alarms() {
  return may("monitoring") ? html`<${AlarmsOfNodes} />` : html`<${AnyAlarm} />`;
}

function AlarmsOfNodes() {
  const nodes = usePolling("/nodes");
  const raised = (nodes.data ?? []).flatMap((node) => [node.mem_alarm && memoryAlarm(node), node.disk_free_alarm && diskAlarm(node)].filter(Boolean));
  return raised.map((alarm) => html`<div class="notice bad" role="alert" key=${alarm.title}>
    <h2>${alarm.title}</h2><p>${alarm.state}</p><p><b>What to do:</b> ${alarm.advice}</p>
  </div>`);
}

function memoryAlarm(node) {
  return {
    title: "Memory alarm: publishers are blocked",
    state: `The broker uses ${bytes(node.mem_used)} of memory; its limit is ${bytes(node.mem_limit)}. Consumers still receive messages.`,
    advice: html`Start or repair the consumers of <a href="#/queues?sort=messages&desc=true">the longest queues</a>, or purge queues that nobody
      reads; limit them by a policy with <code>max-length</code>. If the machine has more memory, raise the limit <code>memory_high_watermark</code>. The alarm ends by itself.`,
  };
}

function diskAlarm(node) {
  return {
    title: "Disk alarm: publishers are blocked",
    state: `The disk of the data directory has ${bytes(node.disk_free)} left; the limit is ${bytes(node.disk_free_limit)}. Consumers still receive messages.`,
    advice: html`Free space on the disk, or consume or purge <a href="#/queues?sort=message_bytes&desc=true">the largest queues</a>; then compact the store
      (<code>gatewayctl store compact</code>). Set <code>disk_free_limit</code> lower only if the disk cannot fill. The alarm ends by itself.`,
  };
}

/** Users without the tag monitoring see only whether there is an alarm. */
function AnyAlarm() {
  const check = useRepeated(checkAlarms, "alarms");
  if (!check.data?.reason) return null;
  return html`<div class="notice bad" role="alert"><h2>An alarm is raised: publishers are blocked</h2>
    <p>${check.data.reason} Ask an administrator to free memory or disk space, or let consumers empty your queues.</p></div>`;
}

async function checkAlarms(signal) {
  try {
    await get("/health/checks/alarms", {}, { signal });
    return { reason: "" };
  } catch (error) {
    if (error.status === 503) return { reason: error.message };
    throw error;
  }
}
