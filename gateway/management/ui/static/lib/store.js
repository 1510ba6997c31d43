/** Values that several components observe. */
import { useEffect, useState } from "./html.js";

/**
 * Create an observed value.
 * @template T
 * @param {T} value
 * @returns {{get: () => T, set: (value: T) => void, subscribe: (listener: () => void) => () => void}}
 */
export function store(value) {
  const listeners = new Set();
  return {
    get: () => value,
    set(next) {
      value = next;
      for (const listener of [...listeners]) listener();
    },
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

/** Return the value of a store; the component renders again when it changes. */
export function useStore(observed) {
  const [, renderAgain] = useState(0);
  const value = observed.get();
  useEffect(() => {
    const changed = () => renderAgain((count) => count + 1);
    if (observed.get() !== value) changed(); // between the first rendering and this effect
    return observed.subscribe(changed);
  }, [observed]);
  return value;
}

/** Create a store whose value, a string, is kept in the browser. */
export function keptStore(key, fallback) {
  const kept = store(read(key) ?? fallback);
  const set = kept.set;
  kept.set = (value) => {
    write(key, value);
    set(value);
  };
  return kept;
}

function read(key) {
  try {
    return localStorage.getItem(key);
  } catch {
    return null; // storage is forbidden: the value lasts as long as the page
  }
}

function write(key, value) {
  try {
    localStorage.setItem(key, value);
  } catch {
    // see above
  }
}
