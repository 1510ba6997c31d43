/** Notifications: what was done, with a button that undoes it where that is possible. */
import { html } from "../lib/html.js";
import { store, useStore } from "../lib/store.js";
import { CloseIcon } from "./icons.js";

const SHOWN_MS = 7000;
const UNDO_MS = 15000;

const shown = store([]);
let lastId = 0;

/**
 * Show a notification, above earlier ones.
 * @param {string} text
 * @param {{undo?: () => Promise<void>, isError?: boolean}} [options] `undo` reverts what was done
 */
export function notify(text, { undo, isError = false } = {}) {
  lastId += 1;
  const toast = { id: lastId, text, undo, isError };
  shown.set([toast, ...shown.get().slice(0, 3)]);
  setTimeout(() => dismiss(toast.id), undo || isError ? UNDO_MS : SHOWN_MS);
}

/** Run an action; report its result or its error. Returns whether it succeeded. */
export async function act(action, text, options = {}) {
  try {
    await action();
  } catch (error) {
    notify(error.message, { isError: true });
    return false;
  }
  if (text) notify(text, options);
  return true;
}

function dismiss(id) {
  shown.set(shown.get().filter((toast) => toast.id !== id));
}

async function undoIt(toast) {
  dismiss(toast.id);
  await act(toast.undo, "Undone.");
}

/** The place where notifications appear. */
export function Toasts() {
  const toasts = useStore(shown);
  return html`<div class="toasts" role="status" aria-live="polite">
    ${toasts.map((toast) => html`<div key=${toast.id} class=${`toast ${toast.isError ? "bad" : ""}`}>
      <span>${toast.text}</span>
      ${toast.undo && html`<button class="small" onClick=${() => undoIt(toast)}>Undo</button>`}
      <button class="quiet small icon" aria-label="Dismiss" onClick=${() => dismiss(toast.id)}><${CloseIcon} /></button>
    </div>`)}
  </div>`;
}
