/** Polling: repeats a request while the component is shown and the tab is visible. */
import { useCallback, useEffect, useRef, useState } from "./html.js";
import { get, withQuery } from "./api.js";

/** The interval between two requests, in milliseconds: the broker samples its counters every five seconds. */
export const INTERVAL_MS = 5000;

/** A slow request is repeated after this many times its duration, so that polling costs the broker little. */
const REST_FACTOR = 6;

/**
 * Poll a path of the API.
 * @param {string | null} path `null` requests nothing
 * @param {object} [query]
 * @param {{interval?: number}} [options] 0 requests it once
 * @returns {{data: any, error: Error | null, isLoading: boolean, refresh: () => void}} `data` is that of the last success
 */
export function usePolling(path, query = {}, { interval = INTERVAL_MS } = {}) {
  const target = path === null ? null : withQuery(path, query);
  return useRepeated(target === null ? null : (signal) => get(target, {}, { signal }), target, interval);
}

/**
 * Repeat any request. `key` identifies it: data of another key is forgotten.
 * @param {((signal: AbortSignal) => Promise<any>) | null} fetch_
 */
export function useRepeated(fetch_, key, interval = INTERVAL_MS) {
  const [state, setState] = useState({ key, data: null, error: null });
  const latest = useRef(fetch_);
  latest.current = fetch_;
  const trigger = useRef(() => {});
  const hasFetch = fetch_ !== null;

  useEffect(() => {
    if (!hasFetch) return undefined;
    const loop = pollingLoop(
      (signal) => latest.current(signal),
      (outcome) => setState((before) => ({ key, data: before.key === key ? before.data : null, error: null, ...outcome })),
      interval,
    );
    trigger.current = loop.refresh;
    return loop.stop;
  }, [key, interval, hasFetch]);

  const refresh = useCallback(() => trigger.current(), []);
  const isCurrent = state.key === key;
  const data = isCurrent ? state.data : null;
  const error = isCurrent ? state.error : null;
  return { data, error, isLoading: hasFetch && data === null && error === null, refresh };
}

function pollingLoop(fetch_, report, interval) {
  let timer = 0;
  let running = new AbortController();
  let isStopped = false;

  async function once() {
    clearTimeout(timer);
    running.abort();
    running = new AbortController();
    const { signal } = running;
    const began = performance.now();
    try {
      const data = await fetch_(signal);
      if (!signal.aborted) report({ data, error: null });
    } catch (error) {
      if (signal.aborted) return;
      report({ error });
    }
    if (!isStopped && !signal.aborted && interval && !document.hidden) {
      timer = setTimeout(once, Math.max(interval, REST_FACTOR * (performance.now() - began)));
    }
  }

  function onVisibility() {
    if (document.hidden) clearTimeout(timer);
    else if (interval) once();
  }

  document.addEventListener("visibilitychange", onVisibility);
  once();
  return {
    refresh: once,
    stop() {
      isStopped = true;
      clearTimeout(timer);
      running.abort();
      document.removeEventListener("visibilitychange", onVisibility);
    },
  };
}
