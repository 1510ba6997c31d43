/** Icons, drawn with the colour of the text. They are decoration: buttons have labels. */
import { html } from "../lib/html.js";

const icon = (shapes) => html`<svg viewBox="0 0 20 20" fill="none" stroke="currentColor" stroke-width="1.6"
  stroke-linecap="round" stroke-linejoin="round" aria-hidden="true">${shapes}</svg>`;

export const MenuIcon = () => icon(html`<path d="M3 5.5h14M3 10h14M3 14.5h14" />`);
export const SunIcon = () => icon(html`<circle cx="10" cy="10" r="3.4" /><path d="M10 2v2M10 16v2M2 10h2M16 10h2M4.4 4.4l1.4 1.4M14.2 14.2l1.4 1.4M15.6 4.4l-1.4 1.4M5.8 14.2l-1.4 1.4" />`);
export const MoonIcon = () => icon(html`<path d="M16.5 12.2A7 7 0 0 1 7.8 3.5a7 7 0 1 0 8.7 8.7Z" />`);
export const SystemIcon = () => icon(html`<circle cx="10" cy="10" r="7" /><path d="M10 3v14a7 7 0 0 0 0-14Z" fill="currentColor" />`);
export const LogOutIcon = () => icon(html`<path d="M8 3.5H4.5v13H8M12 6.5l3.5 3.5-3.5 3.5M15.5 10H8" />`);
export const HelpIcon = () => icon(html`<circle cx="10" cy="10" r="7.2" /><path d="M7.9 7.8a2.1 2.1 0 1 1 3 1.9c-.6.3-.9.7-.9 1.3v.3M10 13.8v.1" />`);
export const CloseIcon = () => icon(html`<path d="m5 5 10 10M15 5 5 15" />`);
