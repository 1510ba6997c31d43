/** The shell: header, navigation, and the page of the current address. */
import { html, useEffect, useRef, useState } from "../lib/html.js";
import { go, location_, match, to } from "../lib/router.js";
import { useStore } from "../lib/store.js";
import { may } from "../lib/session.js";
import { nextTheme } from "../lib/theme.js";
import { listenForShortcuts } from "../lib/shortcuts.js";
import { PAGES, visiblePages } from "../pages/index.js";
import { Header } from "./header.js";
import { Help } from "./help.js";
import { Navigation } from "./navigation.js";

export function Shell({ user }) {
  const { path, segments } = useStore(location_);
  const found = match(PAGES, segments);
  const [isMenuOpen, setIsMenuOpen] = useState(false);
  const [isHelpOpen, setIsHelpOpen] = useState(false);
  const main = useRef(null);

  useEffect(() => listenForShortcuts((keys) => performShortcut(keys, () => setIsHelpOpen(true))), []);
  const isFirst = useRef(true);
  useEffect(() => {
    setIsMenuOpen(false);
    if (!isFirst.current) main.current.focus({ preventScroll: true });
    isFirst.current = false;
    globalThis.scrollTo(0, 0);
  }, [path]);

  return html`<div class="shell">
    <a class="skip" href="#main" onClick=${(event) => { event.preventDefault(); main.current.focus(); }}>Skip to the page</a>
    <${Header} user=${user} isMenuOpen=${isMenuOpen} onMenu=${() => setIsMenuOpen(!isMenuOpen)} onHelp=${() => setIsHelpOpen(true)} />
    <${Navigation} current=${found?.page.parent ?? found?.page.pattern} isOpen=${isMenuOpen} onLeave=${() => setIsMenuOpen(false)} />
    <main class="main" id="main" ref=${main} tabindex="-1"><${CurrentPage} key=${path} found=${found} /></main>
    ${isHelpOpen && html`<${Help} onClose=${() => setIsHelpOpen(false)} />`}
  </div>`;
}

/** Loads the module of a page when it is first shown. */
function CurrentPage({ found }) {
  const [state, setState] = useState({ page: null, Component: null, error: null });
  const page = found?.page;
  const isAllowed = page && may(page.level ?? "management");
  useEffect(() => {
    document.title = `${page ? pageTitle(page, found.parameters) : "Not found"} · gateway`;
    if (!isAllowed) return undefined;
    let isLeft = false;
    page.load().then(
      (Component) => isLeft || setState({ page, Component, error: null }),
      (error) => isLeft || setState({ page, Component: null, error }),
    );
    return () => { isLeft = true; };
  }, [page]);
  if (!page) return html`<div class="page"><h1>There is no such page</h1><p><a href="#/">Go to the overview</a></p></div>`;
  if (!isAllowed) return html`<div class="page"><h1>${page.title}</h1><div class="notice">Your user lacks the tag <b>${page.level}</b>, which this page requires.</div></div>`;
  if (state.error) return html`<div class="notice bad" role="alert">The page cannot be loaded: ${state.error.message}</div>`;
  return state.page === page ? html`<${state.Component} ...${found.parameters} />` : null;
}

function pageTitle(page, parameters) {
  return parameters.name ?? parameters.vhost ?? page.title;
}

function performShortcut(keys, openHelp) {
  const target = visiblePages().find((page) => page.key && keys === `g ${page.key}`);
  const focus = (selector) => document.querySelector(selector)?.focus();
  if (target) go(to(...target.pattern.split("/").filter(Boolean)));
  else if (keys === "?") openHelp();
  else if (keys === "/") focus("[data-filter]");
  else if (keys === "v") focus("#vhost-choice");
  else if (keys === "t") nextTheme();
  else return false;
  return true;
}
