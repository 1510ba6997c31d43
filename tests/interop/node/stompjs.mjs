// Scenarios of npm's @stomp/stompjs (STOMP over WebSocket). Each has a sentence as name and gets a function that
// opens clients.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { Client, Versions } from "@stomp/stompjs";
import { WebSocket } from "ws";

/** Connects; `options` are client options, and its `versions` and `subprotocols`. */
export async function connect(url, { versions, headers = {}, ...options } = {}) {
  const { host, pathname, username, password } = new URL(url);
  const client = new Client({
    connectHeaders: { host: "/", login: username, passcode: password, ...headers },
    reconnectDelay: 0,
    heartbeatIncoming: 0,
    heartbeatOutgoing: 0,
    stompVersions: new Versions(versions ?? ["1.2", "1.1", "1.0"]),
    ...options,
  });
  client.webSocketFactory = () => {
    client.socket = new WebSocket(`ws://${host}${pathname}`, client.stompVersions.protocolVersions());
    return client.socket;
  };
  client.failure = new Promise((resolve) => (client.onStompError = resolve));
  client.ended = new Promise((resolve) => (client.onWebSocketClose = resolve));
  const connected = new Promise((resolve, reject) => {
    client.onConnect = resolve;
    client.failure.then((frame) => reject(new Error(frame.headers.message)));
    client.ended.then(() => reject(new Error("closed before it was connected")));
  });
  client.activate();
  client.welcome = await connected;
  return client;
}

export const close = (client) => client.deactivate({ force: true });

/** Calls `act` with a receipt header and waits for the receipt. */
function confirmed(client, act) {
  const receipt = randomUUID();
  return new Promise((resolve) => {
    client.watchForReceipt(receipt, resolve);
    act({ receipt });
  });
}

/** Sends a message and resolves with its receipt. */
const send = (client, destination, body, headers = {}) =>
  confirmed(client, (receipt) =>
    client.publish({
      destination,
      headers: { ...headers, ...receipt },
      ...(typeof body === "string" ? { body } : { binaryBody: body }),
    }),
  );

/** Subscribes; resolves after the receipt with a function that resolves with the next message. */
async function subscribe(client, destination, headers = {}) {
  const arrived = [];
  const awaited = [];
  const take = (message) => (awaited.length ? awaited.shift()(message) : arrived.push(message));
  await confirmed(client, (receipt) => client.subscribe(destination, take, { ...headers, ...receipt }));
  return () => new Promise((resolve) => (arrived.length ? resolve(arrived.shift()) : awaited.push(resolve)));
}

const aQueue = () => `/queue/interop-${randomUUID()}`;

export const scenarios = {
  "each version has its subprotocol": async (open) => {
    for (const version of ["1.0", "1.1", "1.2"]) {
      const client = await open({ versions: [version] });
      assert.equal(client.connectedVersion, version);
      assert.equal(client.socket.protocol, `v${version.replace(".", "")}.stomp`);
      const queue = aQueue();
      const next = await subscribe(client, queue);
      await send(client, queue, version, { odd: "a" });
      assert.equal((await next()).body, version);
    }
  },

  "text is delivered with its headers": async (open) => {
    const client = await open();
    const queue = aQueue();
    const next = await subscribe(client, queue);
    await send(client, queue, "größe: 3 µm", { "content-type": "text/plain", odd: "a:b\\d\ne" });
    const message = await next();
    assert.equal(message.body, "größe: 3 µm");
    assert.equal(message.headers.odd, "a:b\\d\ne");
    assert.equal(message.headers.destination, queue);
  },

  "bytes are delivered in binary messages": async (open) => {
    const client = await open({ forceBinaryWSFrames: true });
    const queue = aQueue();
    const next = await subscribe(client, queue);
    const body = Uint8Array.from({ length: 70_000 }, (_, index) => index % 256);
    await send(client, queue, body);
    assert.deepEqual((await next()).binaryBody, body);
  },

  "a large frame may be sent in several messages": async (open) => {
    const client = await open({ splitLargeFrames: true, maxWebSocketChunkSize: 1024 });
    const queue = aQueue();
    const next = await subscribe(client, queue);
    await send(client, queue, "x".repeat(100_000));
    assert.equal((await next()).body.length, 100_000);
  },

  "acknowledging and refusing settle a message": async (open) => {
    const client = await open();
    const queue = aQueue();
    await send(client, queue, "1");
    const next = await subscribe(client, queue, { ack: "client-individual" });
    (await next()).nack();
    const again = await next();
    assert.equal(again.headers.redelivered, "true");
    again.ack();
    await client.deactivate();
    const other = await open();
    const left = await subscribe(other, queue);
    await send(other, queue, "2");
    assert.equal((await left()).body, "2");
  },

  "a committed transaction takes effect and an aborted one does not": async (open) => {
    const client = await open();
    const queue = aQueue();
    const next = await subscribe(client, queue);
    for (const body of ["aborted", "committed"]) {
      const transaction = client.begin();
      client.publish({ destination: queue, body, headers: { transaction: transaction.id } });
      body === "aborted" ? transaction.abort() : transaction.commit();
    }
    assert.equal((await next()).body, "committed");
  },

  "nothing is delivered after unsubscribing": async (open) => {
    const client = await open();
    const topic = `/topic/interop.${randomUUID()}`;
    const heard = [];
    const subscription = client.subscribe(topic, (message) => heard.push(message.body));
    await send(client, topic, "before");
    await confirmed(client, (receipt) => subscription.unsubscribe(receipt));
    await send(client, topic, "after");
    assert.deepEqual(heard, ["before"]);
  },

  "request and reply by a temporary queue": async (open) => {
    const [asker, answerer] = [await open(), await open()];
    const queue = aQueue();
    const questions = await subscribe(answerer, queue);
    const answered = new Promise((resolve) => (asker.onUnhandledMessage = resolve));
    await send(asker, queue, "question", { "reply-to": "/temp-queue/answers" });
    const question = await questions();
    await send(answerer, question.headers["reply-to"], "answer");
    assert.equal((await answered).body, "answer");
  },

  "heart-beats in both directions": async (open) => {
    const client = await open({ heartbeatIncoming: 1000, heartbeatOutgoing: 1000 });
    assert.equal(client.welcome.headers["heart-beat"], "1000,1000");
    let beats = 0;
    client.socket.addEventListener("message", ({ data }) => (beats += `${data}` === "\n" ? 1 : 0));
    while (beats < 3) await new Promise((resolve) => client.socket.addEventListener("message", resolve));
    assert.ok(client.connected);
  },

  "an error has a reason and closes the connection": async (open) => {
    const client = await open();
    client.publish({ destination: "/nonsense/x", body: "hi" });
    assert.equal((await client.failure).headers.message, "Unknown destination");
    await client.ended;
  },

  "a wrong password is refused": async (open) => {
    await assert.rejects(open({ headers: { passcode: "wrong" } }), /Bad CONNECT/);
  },
};
