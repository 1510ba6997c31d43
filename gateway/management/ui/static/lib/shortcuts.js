/** Keyboard shortcuts. They do nothing while the user types in a field. */

const EDITABLE = "input:not([type=checkbox]):not([type=radio]), textarea, select, [contenteditable]";
const SEQUENCE_MS = 1200;

/**
 * Start to listen for shortcuts.
 * @param {(keys: string) => boolean} perform gets a key such as `?` or a sequence such as `g q`; returns whether it is one
 */
export function listenForShortcuts(perform) {
  let first = "";
  let firstAt = 0;
  function onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.(EDITABLE)) return;
    if (document.querySelector("dialog[open]")) return;
    const isSecond = first && event.timeStamp - firstAt < SEQUENCE_MS;
    const keys = isSecond ? `${first} ${event.key}` : event.key;
    first = "";
    if (perform(keys)) event.preventDefault();
    else if (event.key === "g") [first, firstAt] = ["g", event.timeStamp];
  }
  document.addEventListener("keydown", onKey);
  return () => document.removeEventListener("keydown", onKey);
}
