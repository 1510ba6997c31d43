/** The web UI: shows the login page, or the shell with the page that the address selects. */
import { html, render, useEffect } from "./lib/html.js";
import { useStore } from "./lib/store.js";
import { resume, session } from "./lib/session.js";
import { Login } from "./shell/login.js";
import { Shell } from "./shell/shell.js";
import { Toasts } from "./components/toasts.js";
import { Questions } from "./components/dialogs.js";

function App() {
  const { user, message } = useStore(session);
  useEffect(() => { resume(); }, []);
  if (user === undefined) return null;
  if (user === null) return html`<${Login} message=${message} /><${Toasts} />`;
  return html`<${Shell} key=${user.name} user=${user} /><${Toasts} /><${Questions} />`;
}

render(html`<${App} />`, document.getElementById("app"));
