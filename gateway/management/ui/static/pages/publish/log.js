/** The messages that a watch has received, newest first. */
import { html, useCallback, useState } from "../../lib/html.js";
import { plural } from "../../lib/format.js";
import { Panel } from "../../components/basics.js";
import { Message } from "../../components/messages.js";

/** Messages that are kept on the page. */
const MOST = 200;

/** Return the received messages, a function that adds some, and one that clears them. */
export function useLog() {
  const [log, setLog] = useState({ count: 0, messages: [] });
  const add = useCallback((messages) => setLog((before) => {
    const numbered = messages.map((message, index) => ({ ...message, number: before.count + index + 1, at: new Date() }));
    return { count: before.count + messages.length, messages: [...numbered.reverse(), ...before.messages].slice(0, MOST) };
  }), []);
  const clear = useCallback(() => setLog({ count: 0, messages: [] }), []);
  return { ...log, add, clear };
}

export function Log({ log, isWatching }) {
  return html`<${Panel} title="Received" isPadded=${false} actions=${html`<span class="soft" role="status">${plural(log.count, "message")}</span><button class="small" disabled=${log.count === 0} onClick=${log.clear}>Clear</button>`}>
    ${log.messages.length === 0 && html`<div class="empty">${isWatching ? "Waiting for messages …" : "Nothing is watched yet."}</div>`}
    ${log.messages.map((message) => html`<${Message} key=${message.number} message=${message} actions=${html`<time class="soft">${message.at.toLocaleTimeString("en-GB")}</time>`} />`)}
  <//>`;
}
