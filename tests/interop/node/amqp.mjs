// Scenarios of npm's amqplib. Each has a sentence as name and gets a function that opens connections.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import amqp from "amqplib";

/** Opens a connection; options are appended to the URL. */
export async function connect(url, options = "") {
  const connection = await amqp.connect(url + options, { timeout: 5000 });
  connection.on("error", () => {});
  return connection;
}

export const close = (connection) => connection.close();

const SILENCE_MS = 300;
const REPLY_TO = "amq.rabbitmq.reply-to";

/** Opens a channel that reports errors only by rejecting, with its own exclusive queue. */
async function channelAndQueue(connect, open = "createChannel") {
  const channel = await openChannel(await connect(), open);
  const { queue } = await channel.assertQueue("", { exclusive: true });
  return { channel, queue };
}

async function openChannel(connection, open = "createChannel") {
  const channel = await connection[open]();
  channel.on("error", () => {});
  return channel;
}

/** Resolves with the next `count` deliveries of a consumer, acknowledged or not. */
function receive(channel, queue, count, { acknowledge = true } = {}) {
  return new Promise((resolve, reject) => {
    const messages = [];
    const onMessage = (message) => {
      messages.push(message);
      if (acknowledge) channel.ack(message);
      if (messages.length === count) resolve(messages);
    };
    channel.consume(queue, onMessage).catch(reject);
  });
}

const text = (message) => message.content.toString();
const messageCount = async (channel, queue) => (await channel.checkQueue(queue)).messageCount;

/** Asserts that the broker closes the channel with this code on a request. */
async function assertRefused(connection, code, request) {
  const channel = await openChannel(connection);
  const closed = new Promise((resolve) => channel.once("close", resolve));
  await assert.rejects(request(channel), (error) => error.code === code);
  await closed;
}

export const scenarios = {
  "a declared queue gets a name and counts its messages": async (connect) => {
    const { channel, queue } = await channelAndQueue(connect, "createConfirmChannel");
    assert.match(queue, /^amq\.gen-/);
    channel.sendToQueue(queue, Buffer.from("one"));
    await channel.waitForConfirms();
    assert.equal(await messageCount(channel, queue), 1);
    assert.deepEqual(await channel.purgeQueue(queue), { messageCount: 1 });
    assert.deepEqual(await channel.deleteQueue(queue), { messageCount: 0 });
  },

  "every publish is confirmed": async (connect) => {
    const { channel, queue } = await channelAndQueue(connect, "createConfirmChannel");
    let confirmed = 0;
    for (let number = 0; number < 500; number++) {
      channel.publish("", queue, Buffer.from(`${number}`), {}, (error) => {
        assert.equal(error, null);
        confirmed++;
      });
    }
    await channel.waitForConfirms();
    assert.equal(confirmed, 500);
    assert.equal(await messageCount(channel, queue), 500);
  },

  "deliveries arrive in order": async (connect) => {
    const { channel, queue } = await channelAndQueue(connect);
    const sent = Array.from({ length: 100 }, (_, number) => `${number}`);
    for (const body of sent) channel.sendToQueue(queue, Buffer.from(body));
    assert.deepEqual((await receive(channel, queue, sent.length)).map(text), sent);
  },

  "get returns a message or nothing": async (connect) => {
    const { channel, queue } = await channelAndQueue(connect);
    assert.equal(await channel.get(queue), false);
    channel.sendToQueue(queue, Buffer.from("one"));
    const message = await channel.get(queue, { noAck: true });
    assert.equal(text(message), "one");
    assert.equal(message.fields.messageCount, 0);
  },

  "an acknowledged message is not recovered": async (connect) => {
    const { channel, queue } = await channelAndQueue(connect);
    for (const body of ["done", "open"]) channel.sendToQueue(queue, Buffer.from(body));
    channel.ack(await channel.get(queue));
    await channel.get(queue);
    await channel.recover();
    assert.equal(text(await channel.get(queue)), "open");
    assert.equal(await channel.get(queue), false);
  },

  "a refused message is redelivered": async (connect) => {
    const { channel, queue } = await channelAndQueue(connect);
    for (const refuse of ["nack", "reject"]) {
      channel.sendToQueue(queue, Buffer.from(refuse));
      const first = await channel.get(queue);
      assert.equal(first.fields.redelivered, false);
      if (refuse === "nack") channel.nack(first, false, true);
      else channel.reject(first, true);
      const second = await channel.get(queue, { noAck: true });
      assert.equal(second.fields.redelivered, true);
    }
  },

  "a message refused without requeue is discarded": async (connect) => {
    const { channel, queue } = await channelAndQueue(connect);
    channel.sendToQueue(queue, Buffer.from("unwanted"));
    channel.nack(await channel.get(queue), false, false);
    assert.equal(await channel.get(queue), false);
  },

  "prefetch limits unacknowledged messages": async (connect) => {
    const { channel, queue } = await channelAndQueue(connect);
    const arrived = [];
    await channel.prefetch(2);
    await channel.consume(queue, (message) => arrived.push(message));
    for (let number = 0; number < 5; number++) channel.sendToQueue(queue, Buffer.from(`${number}`));
    await pause(SILENCE_MS);
    assert.equal(arrived.length, 2);
    channel.ackAll();
    await pause(SILENCE_MS);
    assert.equal(arrived.length, 4);
  },

  "a prefetch of the whole channel is shared by its consumers": async (connect) => {
    const { channel, queue } = await channelAndQueue(connect);
    const arrived = [];
    await channel.prefetch(3, true);
    for (let number = 0; number < 2; number++) await channel.consume(queue, (message) => arrived.push(message));
    for (let number = 0; number < 10; number++) channel.sendToQueue(queue, Buffer.from("x"));
    await pause(SILENCE_MS);
    assert.equal(arrived.length, 3);
  },

  "a cancelled consumer receives nothing more": async (connect) => {
    const { channel, queue } = await channelAndQueue(connect);
    const { consumerTag } = await channel.consume(queue, () => assert.fail("delivered after cancel"));
    await channel.cancel(consumerTag);
    channel.sendToQueue(queue, Buffer.from("late"));
    assert.equal(text(await channel.get(queue)), "late");
  },

  "the consumer of a deleted queue is notified": async (connect) => {
    const connection = await connect();
    const channel = await openChannel(connection);
    const { queue } = await channel.assertQueue("", { exclusive: true });
    const told = new Promise((resolve) => channel.consume(queue, resolve));
    await (await openChannel(connection)).deleteQueue(queue);
    assert.equal(await told, null);
  },

  "an exclusive queue is locked for a second connection": async (connect) => {
    const { queue } = await channelAndQueue(connect);
    await assertRefused(await connect(), 405, (channel) => channel.checkQueue(queue));
  },

  "an exclusive consumer excludes others": async (connect) => {
    const connection = await connect();
    const channel = await openChannel(connection);
    const { queue } = await channel.assertQueue("", { exclusive: true });
    await channel.consume(queue, () => {}, { exclusive: true });
    await assertRefused(connection, 403, (other) => other.consume(queue, () => {}));
  },

  "a refusal closes the channel and leaves the connection open": async (connect) => {
    const connection = await connect();
    await assertRefused(connection, 404, (channel) => channel.checkQueue(randomUUID()));
    await assertRefused(connection, 404, (channel) => channel.checkExchange(randomUUID()));
    await assertRefused(connection, 403, (channel) => channel.assertQueue("amq.mine"));
    await assertRefused(connection, 406, (channel) => channel.assertExchange("amq.direct", "fanout"));
    await assertRefused(connection, 406, (channel) => channel.assertQueue("", { messageTtl: -1 }));
    await openChannel(connection);
  },

  "an unroutable mandatory message is returned before its confirm": async (connect) => {
    const { channel } = await channelAndQueue(connect, "createConfirmChannel");
    const events = [];
    channel.on("return", (message) => events.push([message.fields.replyCode, text(message)]));
    channel.publish("", randomUUID(), Buffer.from("nowhere to go"), { mandatory: true }, () => events.push("confirmed"));
    await channel.waitForConfirms();
    assert.deepEqual(events, [[312, "nowhere to go"], "confirmed"]);
  },

  "an unroutable message goes to the alternate exchange": async (connect) => {
    const { channel, queue } = await channelAndQueue(connect);
    const [alternate, exchange] = [randomUUID(), randomUUID()];
    await channel.assertExchange(alternate, "fanout", { durable: false, autoDelete: true });
    await channel.bindQueue(queue, alternate, "");
    await channel.assertExchange(exchange, "direct", { durable: false, alternateExchange: alternate });
    channel.publish(exchange, "unknown", Buffer.from("lost and found"));
    assert.equal(text((await receive(channel, queue, 1))[0]), "lost and found");
    await channel.deleteExchange(exchange);
  },

  "an exchange can be bound to an exchange": async (connect) => {
    const { channel, queue } = await channelAndQueue(connect);
    const [source, target] = [randomUUID(), randomUUID()];
    await channel.assertExchange(source, "topic", { durable: false, autoDelete: true });
    await channel.assertExchange(target, "fanout", { durable: false, autoDelete: true });
    await channel.bindQueue(queue, target, "");
    await channel.bindExchange(target, source, "a.#");
    channel.publish(source, "a.b.c", Buffer.from("through both"));
    assert.equal(text((await receive(channel, queue, 1))[0]), "through both");
    await channel.unbindExchange(target, source, "a.#");
  },

  "headers of every type survive": async (connect) => {
    const { channel, queue } = await channelAndQueue(connect);
    const headers = {
      text: "größer",
      yes: true,
      no: false,
      nothing: null,
      integers: [1, -1, 200, -200, 40000, -40000, 2 ** 31, -(2 ** 31), 2 ** 40],
      double: 2.5,
      bytes: Buffer.from([0, 255]),
      table: { nested: { deeper: [true, [1.5, null]] } },
      timestamp: { "!": "timestamp", value: 1_700_000_000 },
      decimal: { "!": "decimal", value: { places: 3, digits: 12345 } },
      float: { "!": "float", value: 0.5 },
    };
    channel.sendToQueue(queue, Buffer.alloc(0), { headers });
    const received = (await channel.get(queue)).properties.headers;
    assert.deepEqual({ ...received, float: undefined }, { ...headers, float: undefined });
    assert.equal(received.float, 0.5);
  },

  "every property survives": async (connect) => {
    const { channel, queue } = await channelAndQueue(connect);
    const properties = {
      contentType: "text/plain", contentEncoding: "identity", deliveryMode: 1, priority: 4, correlationId: "c-1",
      replyTo: "answers", expiration: "60000", messageId: "m-1", timestamp: 1_700_000_000, type: "greeting",
      userId: "guest", appId: "interop",
    };
    channel.sendToQueue(queue, Buffer.from("x"), properties);
    const received = (await channel.get(queue)).properties;
    for (const [key, value] of Object.entries(properties)) assert.equal(received[key], value, key);
  },

  "bodies of any size are delivered unchanged": async (connect) => {
    const { channel, queue } = await channelAndQueue(connect);
    for (const size of [0, 1, 1024 * 1024 + 1]) {
      channel.sendToQueue(queue, Buffer.alloc(size, 0xce));
      const { content } = await channel.get(queue, { noAck: true });
      assert.ok(content.equals(Buffer.alloc(size, 0xce)), `${size} bytes`);
    }
  },

  "a direct reply is received": async (connect) => {
    const channel = await openChannel(await connect());
    const { queue } = await channel.assertQueue("", { autoDelete: true, durable: false });
    const answered = new Promise((resolve) => channel.consume(REPLY_TO, resolve, { noAck: true }));
    channel.sendToQueue(queue, Buffer.from("question"), { replyTo: REPLY_TO, correlationId: "7" });
    const server = await openChannel(await connect());
    const request = await server.get(queue, { noAck: true });
    const { replyTo, correlationId } = request.properties;
    server.sendToQueue(replyTo, Buffer.from("answer"), { correlationId });
    const answer = await answered;
    assert.deepEqual([text(answer), answer.properties.correlationId], ["answer", "7"]);
    await server.deleteQueue(queue);
  },

  "many channels are independent": async (connect) => {
    const connection = await connect();
    const observer = await openChannel(connection);
    const { queue } = await observer.assertQueue("", { exclusive: true });
    const channels = await Promise.all(Array.from({ length: 50 }, () => openChannel(connection, "createConfirmChannel")));
    await Promise.all(
      channels.map(async (channel) => {
        for (let number = 0; number < 10; number++) channel.sendToQueue(queue, Buffer.alloc(1000));
        await channel.waitForConfirms();
        await channel.close();
      }),
    );
    assert.equal(await messageCount(observer, queue), 500);
  },

  "a stream is read repeatedly from the consumer's offset": async (connect) => {
    const channel = await openChannel(await connect(), "createConfirmChannel");
    const stream = `stream-${randomUUID()}`;
    await channel.assertQueue(stream, { durable: true, arguments: { "x-queue-type": "stream" } });
    for (let number = 0; number < 20; number++) channel.sendToQueue(stream, Buffer.from(`${number}`));
    await channel.waitForConfirms();
    for (const [start, first] of [["first", 0], ["last", 19], [12, 12], ["first", 0]]) {
      const reader = await openChannel(await connect());
      await reader.prefetch(5);
      const found = await new Promise((resolve, reject) => {
        const messages = [];
        const onMessage = (message) => {
          messages.push([text(message), message.properties.headers["x-stream-offset"]]);
          reader.ack(message);
          if (messages.length === 20 - first) resolve(messages);
        };
        reader.consume(stream, onMessage, { arguments: { "x-stream-offset": start } }).catch(reject);
      });
      assert.deepEqual(found, Array.from({ length: 20 - first }, (_, at) => [`${first + at}`, first + at]));
    }
    await channel.deleteQueue(stream);
  },

  "an idle connection outlives its heartbeat": async (connect) => {
    const connection = await connect("?heartbeat=1");
    await pause(3500);
    await openChannel(connection);
  },
};
