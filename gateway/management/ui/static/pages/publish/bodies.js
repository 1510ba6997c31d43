/** Bodies of bytes as text, or as base64 if they are no text. */

/** @param {Uint8Array} body @returns {{payload: string, payload_encoding: "string" | "base64"}} */
export function textOf(body) {
  try {
    return { payload: new TextDecoder("utf-8", { fatal: true }).decode(body), payload_encoding: "string" };
  } catch {
    return { payload: btoa(Array.from(body, (byte) => String.fromCharCode(byte)).join("")), payload_encoding: "base64" };
  }
}
