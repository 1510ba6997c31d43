/** The dialog that lists the keyboard shortcuts. */
import { html } from "../lib/html.js";
import { Dialog } from "../components/dialogs.js";
import { visiblePages } from "../pages/index.js";

export function Help({ onClose }) {
  const jumps = visiblePages().filter((page) => page.key).map((page) => [`g ${page.key}`, `Go to ${page.title}`]);
  const shortcuts = [["?", "This help"], ["/", "Filter the list"], ["v", "Select the virtual host"], ["t", "Switch the theme"], ["Esc", "Close a dialog"], ...jumps];
  return html`<${Dialog} onClose=${onClose} isWide>
    <div>
      <h2 id="dialog-title">Keyboard shortcuts</h2>
      <dl class="facts shortcut-list">${shortcuts.map(([keys, text]) => html`<dt key=${keys}>${keys.split(" ").map((key) => html`<kbd>${key}</kbd> `)}</dt><dd>${text}</dd>`)}</dl>
      <div class="buttons"><button class="primary" onClick=${onClose}>Close</button></div>
    </div>
  <//>`;
}
