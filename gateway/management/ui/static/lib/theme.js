/** The theme: light, dark, or that of the system. */
import { keptStore } from "./store.js";

/** `"light"`, `"dark"` or `"system"`. */
export const theme = keptStore("gateway.theme", "system");

const ORDER = ["system", "light", "dark"];

/** Select the next theme. */
export function nextTheme() {
  const chosen = ORDER[(ORDER.indexOf(theme.get()) + 1) % ORDER.length];
  theme.set(chosen);
  if (chosen === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen;
}

/** Call a function when the colours change; return a function that ends this. */
export function whenColoursChange(call) {
  const system = matchMedia("(prefers-color-scheme: dark)");
  system.addEventListener("change", call);
  const unsubscribe = theme.subscribe(call);
  return () => {
    system.removeEventListener("change", call);
    unsubscribe();
  };
}
