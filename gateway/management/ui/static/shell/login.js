/** The login page. */
import { html, useEffect, useRef } from "../lib/html.js";
import { logIn } from "../lib/session.js";
import { Field, Form, useForm } from "../components/forms.js";

export function Login({ message }) {
  const { values, field } = useForm({ username: "", password: "" });
  const form = useRef(null);
  useEffect(() => {
    document.title = "Log in · gateway";
    form.current.querySelector("input").focus();
  }, []);
  return html`<main class="login" ref=${form}>
    <div>
      <${Form} action="Log in" onSubmit=${() => logIn(values.username, values.password)}>
        <h1 class="brand"><img src="/icon.svg" alt="" />gateway</h1>
        ${message && html`<p class="notice" role="status">${message}</p>`}
        <${Field} label="User name" name="username" autocomplete="username" autocapitalize="none" spellcheck="false" required ...${field("username")} />
        <${Field} label="Password" name="password" kind="password" autocomplete="current-password" required hint="Or a token, with any user name, if the broker accepts tokens" ...${field("password")} />
      <//>
    </div>
  </main>`;
}
