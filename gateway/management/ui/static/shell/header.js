/** The header: name of the cluster, virtual host, theme, help, user. */
import { html } from "../lib/html.js";
import { useStore } from "../lib/store.js";
import { usePolling } from "../lib/polling.js";
import { nextTheme, theme } from "../lib/theme.js";
import { selectedVhost } from "../lib/vhosts.js";
import { logOut } from "../lib/session.js";
import { Choice } from "../components/forms.js";
import { HelpIcon, LogOutIcon, MenuIcon, MoonIcon, SunIcon, SystemIcon } from "../components/icons.js";

const SLOWLY_MS = 30000;

export function Header({ user, onMenu, isMenuOpen, onHelp }) {
  const cluster = usePolling("/cluster-name", {}, { interval: 0 });
  return html`<header class="header">
    <button class="quiet icon menu-button" aria-label="Menu" aria-expanded=${isMenuOpen} aria-controls="navigation" onClick=${onMenu}><${MenuIcon} /></button>
    <a class="brand" href="#/" aria-label="gateway: overview"><img src="/icon.svg" alt="" /><span>gateway</span></a>
    <span class="cluster" title=${cluster.data?.name}><bdi>${cluster.data?.name ?? ""}</bdi></span>
    <span class="space"></span>
    <${VhostChoice} />
    <${ThemeButton} />
    <button class="quiet icon" aria-label="Keyboard shortcuts" title="Keyboard shortcuts (?)" onClick=${onHelp}><${HelpIcon} /></button>
    <span class="user"><bdi title=${`${user.name}: ${user.tags.join(", ")}`}>${user.name}</bdi>
      <button class="quiet icon" aria-label="Log out" title="Log out" onClick=${logOut}><${LogOutIcon} /></button></span>
  </header>`;
}

function VhostChoice() {
  const vhosts = usePolling("/vhosts", { columns: "name" }, { interval: SLOWLY_MS });
  const selected = useStore(selectedVhost);
  const names = vhosts.data?.map((each) => each.name) ?? [];
  const offered = selected && !names.includes(selected) ? [...names, selected] : names;
  return html`<label><span class="vhost-label">Virtual host</span>
    <${Choice} id="vhost-choice" aria-label="Virtual host" options=${[["", "All"], ...offered]} value=${selected} onChange=${selectedVhost.set} /></label>`;
}

const ICONS = { system: SystemIcon, light: SunIcon, dark: MoonIcon };

function ThemeButton() {
  const chosen = useStore(theme);
  return html`<button class="quiet icon" aria-label=${`Theme: ${chosen}`} title=${`Theme: ${chosen} (t)`} onClick=${nextTheme}><${ICONS[chosen] ?? SystemIcon} /></button>`;
}
