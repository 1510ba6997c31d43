// Scenarios of npm's mqtt (MQTT.js). Each has a sentence as name and gets a function that opens clients.

import assert from "node:assert/strict";
import { createHash, createHmac, pbkdf2Sync, randomBytes, randomUUID } from "node:crypto";
import { once } from "node:events";
import mqtt from "mqtt";

const V5 = 5;
const KEPT = { clean: false, properties: { sessionExpiryInterval: 600 } };

/** Connects with 5.0 by default, and without reconnects unless a scenario tests them. */
export async function connect(url, options = {}) {
  const { protocol, host, pathname, username, password } = new URL(url);
  const settings = { protocolVersion: V5, reconnectPeriod: 0, connectTimeout: 5000, manualConnect: true };
  const login = { username: username || undefined, password: password || undefined };
  const client = mqtt.connect(`${protocol}//${host}${pathname}`, { ...settings, ...login, ...options });
  client.on("error", () => {});
  const inbox = (client.inbox = []);
  client.on("message", (topic, payload, packet) => {
    inbox.push({ ...packet, topic, payload });
    client.emit("inbox");
  });
  const connected = new Promise((resolve, reject) => {
    client.once("connect", resolve);
    client.once("error", reject);
    client.once("close", () => reject(new Error("closed before it was connected")));
  });
  client.connect();
  client.connack = await connected;
  return client;
}

export const close = (client) => client.endAsync(true);

/** Resolves with the next `count` messages. */
async function receive(client, count = 1) {
  while (client.inbox.length < count) await once(client, "inbox");
  return client.inbox.splice(0, count);
}

/** Asserts that a message published now is the next one received. */
async function assertSilent(client) {
  const topic = `fence/${randomUUID()}`;
  await client.subscribeAsync(topic, { qos: 1 });
  await client.publishAsync(topic, "", { qos: 1 });
  assert.equal((await receive(client))[0].topic, topic);
}

const aTopic = () => `interop/${randomUUID()}`;
const numbers = (count) => Array.from({ length: count }, (_, number) => `${number}`);
const texts = (messages) => messages.map((message) => message.payload.toString());

/** The client side of SCRAM-SHA-256 (RFC 5802) for MQTT.js. */
class Scram {
  constructor(user, password) {
    this.password = password;
    this.nonce = randomBytes(18).toString("base64");
    this.bare = `n=${user},r=${this.nonce}`;
    this.first = Buffer.from(`n,,${this.bare}`);
  }

  /** Answers the server's challenge. */
  final(challenge) {
    const { r, s, i } = Object.fromEntries(
      challenge.toString().split(",").map((field) => [field[0], field.slice(2)]),
    );
    assert.ok(r.startsWith(this.nonce));
    const hmac = (key, text) => createHmac("sha256", key).update(text).digest();
    const salted = pbkdf2Sync(this.password, Buffer.from(s, "base64"), Number(i), 32, "sha256");
    const key = hmac(salted, "Client Key");
    const unproven = `c=biws,r=${r}`;
    const said = `${this.bare},${challenge},${unproven}`;
    const signature = hmac(createHash("sha256").update(key).digest(), said);
    const proof = Buffer.from(key.map((byte, at) => byte ^ signature[at])).toString("base64");
    this.signature = `v=${hmac(hmac(salted, "Server Key"), said).toString("base64")}`;
    return Buffer.from(`${unproven},p=${proof}`);
  }
}

/** Opens a client that logs in by SCRAM. */
async function scramLogin(open, user, password) {
  const scram = new Scram(user, password);
  const options = {
    username: undefined,
    password: undefined,
    properties: { authenticationMethod: "SCRAM-SHA-256", authenticationData: scram.first },
  };
  const original = mqtt.MqttClient.prototype.handleAuth;
  mqtt.MqttClient.prototype.handleAuth = function (packet, callback) {
    const authenticationData = scram.final(packet.properties.authenticationData);
    const properties = { authenticationMethod: "SCRAM-SHA-256", authenticationData };
    callback(null, { cmd: "auth", reasonCode: 0x18, properties });
  };
  try {
    const client = await open(options);
    assert.equal(client.connack.properties.authenticationData.toString(), scram.signature);
    return client;
  } finally {
    mqtt.MqttClient.prototype.handleAuth = original;
  }
}

/** Publishes and receives messages of every QoS, and a binary one of a mebibyte. */
async function roundTrips(client) {
  const topic = aTopic();
  for (const qos of [0, 1, 2]) {
    const [granted] = await client.subscribeAsync(topic, { qos });
    assert.equal(granted.qos, qos);
    await client.publishAsync(topic, `hello ${qos}`, { qos });
    const [message] = await receive(client);
    assert.deepEqual([message.payload.toString(), message.qos, message.retain], [`hello ${qos}`, qos, false]);
  }
  const large = randomBytes(1024 * 1024);
  await client.publishAsync(topic, large, { qos: 1 });
  assert.ok((await receive(client))[0].payload.equals(large));
}

export const scenarios = {
  "messages are received, in 5.0": async (open) => roundTrips(await open()),

  "messages are received, in 3.1.1": async (open) => roundTrips(await open({ protocolVersion: 4 })),

  "messages are received, in 3.1": async (open) =>
    roundTrips(await open({ protocolId: "MQIsdp", protocolVersion: 3, clientId: randomUUID().slice(0, 20) })),

  "a thousand messages are delivered in order": async (open) => {
    const [client, other] = [await open(), await open()];
    const topic = aTopic();
    await client.subscribeAsync(topic, { qos: 2 });
    await Promise.all(numbers(1000).map((number) => other.publishAsync(topic, number, { qos: 2 })));
    assert.deepEqual(texts(await receive(client, 1000)), numbers(1000));
  },

  "a retained message is sent to later subscribers": async (open) => {
    const client = await open();
    const topic = aTopic();
    await client.publishAsync(`${topic}/lamp`, "on", { qos: 1, retain: true });
    await client.subscribeAsync(`${topic}/+`, { qos: 1 });
    const [message] = await receive(client);
    assert.deepEqual([message.payload.toString(), message.retain], ["on", true]);
    await client.publishAsync(`${topic}/lamp`, "", { qos: 1, retain: true });
  },

  "the will of a lost client is published": async (open) => {
    const witness = await open();
    const topic = aTopic();
    await witness.subscribeAsync(topic, { qos: 1 });
    const mortal = await open({ will: { topic, payload: "gone", qos: 1, properties: { contentType: "text/plain" } } });
    mortal.stream.destroy();
    const [message] = await receive(witness);
    assert.deepEqual([message.payload.toString(), message.properties.contentType], ["gone", "text/plain"]);
  },

  "messages wait for a client that reconnects": async (open) => {
    const clientId = randomUUID();
    const topic = aTopic();
    const sleeper = await open({ clientId, ...KEPT });
    assert.equal(sleeper.connack.sessionPresent, false);
    await sleeper.subscribeAsync(topic, { qos: 2 });
    await sleeper.endAsync();
    const other = await open();
    for (const number of numbers(20)) await other.publishAsync(topic, number, { qos: 2 });
    const back = await open({ clientId, ...KEPT });
    assert.equal(back.connack.sessionPresent, true);
    assert.deepEqual(texts(await receive(back, 20)), numbers(20));
    await assertSilent(back);
  },

  "automatic reconnects lose and repeat no message": async (open) => {
    const witness = await open();
    const topic = aTopic();
    await witness.subscribeAsync(topic, { qos: 2 });
    const publisher = await open({ clientId: randomUUID(), reconnectPeriod: 20, ...KEPT });
    const published = [];
    for (const number of numbers(300)) {
      published.push(publisher.publishAsync(topic, number, { qos: 2 }));
      if (number % 60 === 59) {
        const again = once(publisher, "connect");
        publisher.stream.destroy();
        await again;
      }
    }
    await Promise.all(published);
    assert.deepEqual(texts(await receive(witness, 300)).sort(), numbers(300).sort());
    await assertSilent(witness);
  },

  "request and response": async (open) => {
    const [client, server] = [await open(), await open()];
    const topic = aTopic();
    await server.subscribeAsync(`${topic}/double`, { qos: 1 });
    await client.subscribeAsync(`${topic}/answer`, { qos: 1 });
    const correlationData = Buffer.from([0, 255, 1]);
    const userProperties = { colour: ["red", "blue"], size: "größer" };
    const properties = { responseTopic: `${topic}/answer`, correlationData, userProperties };
    await client.publishAsync(`${topic}/double`, "21", { qos: 1, properties });

    const [request] = await receive(server);
    assert.deepEqual({ ...request.properties.userProperties }, userProperties);
    const answer = `${2 * Number(request.payload)}`;
    const { responseTopic } = request.properties;
    const said = { correlationData: request.properties.correlationData };
    await server.publishAsync(responseTopic, answer, { qos: 1, properties: said });
    const [response] = await receive(client);
    assert.equal(response.payload.toString(), "42");
    assert.deepEqual(response.properties.correlationData, correlationData);
  },

  "topic aliases work in both directions": async (open) => {
    const client = await open({ autoAssignTopicAlias: true, properties: { topicAliasMaximum: 2 } });
    const topic = aTopic();
    await client.subscribeAsync(`${topic}/#`, { qos: 1 });
    const topics = ["a", "b", "a", "b", "c", "a", "c"].map((level) => `${topic}/${level}`);
    for (const each of topics) await client.publishAsync(each, "", { qos: 1 });
    const messages = await receive(client, topics.length);
    assert.deepEqual(messages.map((message) => message.topic), topics);
    assert.ok(messages.some((message) => message.properties?.topicAlias));
  },

  "a group shares messages": async (open) => {
    const members = [await open(), await open()];
    const topic = aTopic();
    for (const member of members) await member.subscribeAsync(`$share/workers/${topic}`, { qos: 1 });
    const other = await open();
    for (const number of numbers(20)) await other.publishAsync(topic, number, { qos: 1 });
    const shares = await Promise.all(members.map((member) => receive(member, 10)));
    assert.deepEqual(texts(shares.flat()).sort(), numbers(20).sort());
  },

  "a delivery has the remaining expiry interval": async (open) => {
    const client = await open();
    const topic = aTopic();
    await client.subscribeAsync(topic, { qos: 1, properties: { subscriptionIdentifier: 9 } });
    await client.publishAsync(topic, "", { qos: 1, properties: { messageExpiryInterval: 60 } });
    const [{ properties }] = await receive(client);
    assert.ok([59, 60].includes(properties.messageExpiryInterval));
    assert.equal(properties.subscriptionIdentifier, 9);
  },

  "SCRAM-SHA-256 proves a password without sending it": async (open) =>
    roundTrips(await scramLogin(open, "guest", "guest")),

  "SCRAM-SHA-256 refuses a wrong password": async (open) => {
    await assert.rejects(scramLogin(open, "guest", "wrong"), (error) => error.code === 0x87);
  },

  "a wrong password is refused, in 5.0": async (open) => {
    await assert.rejects(open({ password: "wrong" }), (error) => error.code === 0x86);
  },

  "a wrong password is refused, in 3.1.1": async (open) => {
    await assert.rejects(open({ password: "wrong", protocolVersion: 4 }), (error) => error.code === 4);
  },
};
