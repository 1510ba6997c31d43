// Scenarios of npm's stompit (STOMP over TCP). Each has a sentence as name and gets a function that opens clients.
// ERROR frames are tested with stompjs: with Node.js 20, stompit emits them a second time as an error event without
// any listener.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { promisify } from "node:util";
import stompit from "stompit";

/** The TLS options: files named in the query of a URL, `ca` and, for a client certificate, `cert` and `key`. */
function tls(protocol, query) {
  if (protocol !== "stomps:") return {};
  const files = [...query].map(([name, file]) => [name, readFileSync(file)]);
  return { ssl: true, ...Object.fromEntries(files) };
}

/** Connects with the newest common version; `headers` are additional ones of CONNECT. */
export async function connect(url, headers = {}) {
  const { protocol, hostname, port, username, password, searchParams } = new URL(url);
  const login = username ? { login: username, passcode: password } : {};
  const connectHeaders = { host: "/", "heart-beat": "0,0", ...login, ...headers };
  return promisify(stompit.connect)({ host: hostname, port: Number(port), connectHeaders, ...tls(protocol, searchParams) });
}

export const close = (client) => client.destroy();

/** Sends a message and resolves with its receipt. */
function send(client, destination, body, headers = {}) {
  return new Promise((resolve) => {
    const frame = client.send({ destination, ...headers }, { onReceipt: resolve });
    frame.end(body);
  });
}

/** Subscribes; resolves after the receipt with a function that resolves with the next message. */
async function subscribe(client, destination, headers = {}) {
  const arrived = [];
  const awaited = [];
  const take = (message) => (awaited.length ? awaited.shift()(message) : arrived.push(message));
  client.subscribe({ destination, ack: "auto", ...headers }, (error, message) => {
    if (error) return;
    const pieces = [];
    message.on("data", (piece) => pieces.push(piece));
    message.on("end", () => take({ headers: message.headers, body: Buffer.concat(pieces), message }));
  });
  await send(client, `/topic/${randomUUID()}`, ""); // what is confirmed comes behind the SUBSCRIBE
  return () => new Promise((resolve) => (arrived.length ? resolve(arrived.shift()) : awaited.push(resolve)));
}

const aQueue = () => `/queue/interop-${randomUUID()}`;

export const scenarios = {
  "a message is delivered with its headers": async (open) => {
    const client = await open();
    const queue = aQueue();
    const next = await subscribe(client, queue);
    await send(client, queue, "hello", { "content-type": "text/plain", colour: "blue: light\\dark" });
    const { headers, body } = await next();
    assert.equal(body.toString(), "hello");
    assert.equal(headers["content-type"], "text/plain");
    assert.equal(headers.colour, "blue: light\\dark");
    assert.equal(headers.destination, queue);
  },

  "a body of any bytes and any size is delivered unchanged": async (open) => {
    const client = await open();
    const queue = aQueue();
    const next = await subscribe(client, queue);
    for (const size of [0, 1, 65_536, 1_000_000]) {
      const body = Buffer.alloc(size, Buffer.from([0, 10, 13, 255, 92]));
      await send(client, queue, body, { "content-length": size });
      assert.ok((await next()).body.equals(body), `${size} octets`);
    }
  },

  "acknowledged messages are delivered once": async (open) => {
    const client = await open();
    const queue = aQueue();
    for (const body of ["1", "2", "3"]) await send(client, queue, body);
    const next = await subscribe(client, queue, { ack: "client-individual" });
    for (const body of ["1", "2", "3"]) {
      const { body: got, message } = await next();
      assert.equal(got.toString(), body);
      client.ack(message);
    }
    await new Promise((resolve) => client.disconnect(resolve));
    const again = await subscribe(await open(), queue);
    await send(await open(), queue, "4");
    assert.equal((await again()).body.toString(), "4");
  },

  "a refused message is redelivered": async (open) => {
    const client = await open();
    const queue = aQueue();
    await send(client, queue, "1");
    const next = await subscribe(client, queue, { ack: "client-individual" });
    client.nack((await next()).message);
    const { headers, message } = await next();
    assert.equal(headers.redelivered, "true");
    client.ack(message);
  },

  "a committed transaction takes effect and an aborted one does not": async (open) => {
    const client = await open();
    const queue = aQueue();
    const next = await subscribe(client, queue);
    const aborted = client.begin();
    aborted.send({ destination: queue }).end("aborted");
    aborted.abort();
    const committed = client.begin();
    committed.send({ destination: queue }).end("committed");
    await new Promise((resolve) => committed.commit({ onReceipt: resolve }));
    assert.equal((await next()).body.toString(), "committed");
  },

  "all subscribers of a topic get a message": async (open) => {
    const topic = `/topic/interop.${randomUUID()}`;
    const clients = await Promise.all([open(), open(), open()]);
    const nexts = await Promise.all(clients.map((client) => subscribe(client, topic)));
    await send(clients[0], topic, "all");
    for (const next of nexts) assert.equal((await next()).body.toString(), "all");
  },
};
