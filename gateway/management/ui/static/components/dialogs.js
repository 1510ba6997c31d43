/** Dialogs: questions before an action, and dialogs with content of a page. */
import { html, useEffect, useRef, useState } from "../lib/html.js";
import { store, useStore } from "../lib/store.js";

const question = store(null);

/**
 * Ask before an action.
 * @param {{title: string, text?: any, action: string, isDanger?: boolean, word?: string}} asked
 *   `word` must be typed before the action is possible, for what cannot be undone and is large
 * @returns {Promise<boolean>}
 */
export function confirm(asked) {
  return new Promise((answer) => question.set({ ...asked, answer }));
}

/** The place where questions appear. */
export function Questions() {
  const asked = useStore(question);
  return asked && html`<${Question} key=${asked} asked=${asked} />`;
}

function Question({ asked }) {
  const [typed, setTyped] = useState("");
  useEffect(() => {
    const leave = () => answer(false);
    globalThis.addEventListener("hashchange", leave);
    return () => globalThis.removeEventListener("hashchange", leave);
  }, []);
  const answer = (isYes) => {
    question.set(null);
    asked.answer(isYes);
  };
  const submit = (event) => {
    event.preventDefault();
    answer(true);
  };
  return html`<${Dialog} title=${asked.title} onClose=${() => answer(false)}>
    <form onSubmit=${submit}>
      <h2 id="dialog-title">${asked.title}</h2>
      ${asked.text && html`<div class="text">${asked.text}</div>`}
      ${asked.word && html`<div class="field">
        <label for="confirm-word">Type <b>${asked.word}</b> to confirm</label>
        <input id="confirm-word" autocomplete="off" value=${typed} onInput=${(event) => setTyped(event.target.value)} />
      </div>`}
      <div class="buttons">
        <button type="button" onClick=${() => answer(false)}>Cancel</button>
        <button class=${`primary ${asked.isDanger ? "danger" : ""}`} disabled=${asked.word && typed !== asked.word}>${asked.action}</button>
      </div>
    </form>
  <//>`;
}

/** A modal dialog. Escape closes it; the browser keeps the focus inside, and returns it. Its content has `#dialog-title`. */
export function Dialog({ onClose, isWide, children }) {
  const element = useRef(null);
  useEffect(() => {
    const before = document.activeElement;
    element.current.showModal();
    return () => before?.focus?.();
  }, []);
  return html`<dialog ref=${element} class=${isWide ? "wide" : ""} aria-labelledby="dialog-title"
    onCancel=${(event) => { event.preventDefault(); onClose(); }}>${children}</dialog>`;
}
