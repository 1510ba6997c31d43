/** A small MQTT 3.1.1 client over WebSocket: QoS 0 and 1, for publishing and watching by hand. */

const TYPES = { connect: 1, connack: 2, publish: 3, puback: 4, subscribe: 8, suback: 9, pingreq: 12, disconnect: 14 };
const KEEP_ALIVE_S = 30;
const REFUSALS = { 1: "the version is not supported", 2: "the client identifier is refused", 3: "the server is unavailable", 4: "wrong user name or password", 5: "not authorised" };

export class MqttClient {
  /**
   * @param {string} address of the WebSocket
   * @param {{user: string, password: string, clientId: string, onMessage: (message: {topic: string, body: Uint8Array, retain: boolean, qos: number}) => void, onEnd: (reason: string) => void}} options
   */
  constructor(address, { user, password, clientId, onMessage, onEnd }) {
    this.onMessage = onMessage;
    this.onEnd = onEnd;
    this.received = new Uint8Array(0);
    this.lastId = 0;
    this.waiting = new Map();
    this.opened = new Promise((resolve, reject) => Object.assign(this, { resolveOpened: resolve, rejectOpened: reject }));
    this.socket = new WebSocket(address, ["mqtt"]);
    this.socket.binaryType = "arraybuffer";
    this.socket.onopen = () => this.send(TYPES.connect, 0, [...text("MQTT"), 4, 0xc2, 0, KEEP_ALIVE_S, ...text(clientId), ...text(user), ...text(password)]);
    this.socket.onmessage = (event) => this.receive(new Uint8Array(event.data));
    this.socket.onclose = () => this.end("The connection is closed.");
    this.timer = setInterval(() => this.send(TYPES.pingreq, 0, []), KEEP_ALIVE_S * 500);
  }

  /** Subscribe to a filter. @throws {Error} if it is refused */
  async subscribe(filter, qos = 1) {
    const code = await this.request(TYPES.subscribe, 2, (id) => [...number(id), ...text(filter), qos]);
    if (code === 0x80) throw new Error(`The subscription to '${filter}' is refused.`);
  }

  /** Publish; with QoS 1 until the broker has taken the message. */
  async publish(topic, body, { qos = 0, retain = false } = {}) {
    const flags = (qos << 1) | Number(retain);
    if (qos === 0) this.send(TYPES.publish, flags, [...text(topic), ...body]);
    else await this.request(TYPES.publish, flags, (id) => [...text(topic), ...number(id), ...body]);
  }

  close() {
    this.send(TYPES.disconnect, 0, []);
    this.socket.close();
  }

  request(type, flags, content) {
    this.lastId = (this.lastId % 65535) + 1;
    const id = this.lastId;
    this.send(type, flags, content(id));
    return new Promise((resolve, reject) => this.waiting.set(id, { resolve, reject }));
  }

  send(type, flags, content) {
    if (this.socket.readyState !== WebSocket.OPEN) return;
    this.socket.send(new Uint8Array([(type << 4) | flags, ...length(content.length), ...content]));
  }

  end(reason) {
    clearInterval(this.timer);
    const error = new Error(this.refusal ?? reason);
    this.rejectOpened(error);
    for (const { reject } of this.waiting.values()) reject(error);
    this.waiting.clear();
    this.onEnd(error.message);
  }

  receive(data) {
    this.received = joined(this.received, data);
    for (let packet = this.next(); packet; packet = this.next()) this.handle(packet);
  }

  /** Take the next complete packet from what was received. */
  next() {
    let size = 0;
    let at = 1;
    for (let factor = 1; ; factor *= 128) {
      if (at >= this.received.length) return null;
      const byte = this.received[at];
      at += 1;
      size += (byte & 127) * factor;
      if (byte < 128) break;
    }
    if (this.received.length < at + size) return null;
    const packet = { type: this.received[0] >> 4, flags: this.received[0] & 15, content: this.received.slice(at, at + size) };
    this.received = this.received.slice(at + size);
    return packet;
  }

  handle({ type, flags, content }) {
    if (type === TYPES.connack) this.connected(content[1]);
    else if (type === TYPES.publish) this.delivered(flags, content);
    else if (type === TYPES.puback || type === TYPES.suback) {
      const id = (content[0] << 8) | content[1];
      this.waiting.get(id)?.resolve(content[2] ?? 0);
      this.waiting.delete(id);
    }
  }

  connected(code) {
    if (code === 0) this.resolveOpened();
    else this.refusal = `The connection is refused: ${REFUSALS[code] ?? `code ${code}`}.`;
  }

  delivered(flags, content) {
    const qos = (flags >> 1) & 3;
    const size = (content[0] << 8) | content[1];
    const topic = new TextDecoder().decode(content.slice(2, 2 + size));
    let body = content.slice(2 + size);
    if (qos > 0) {
      this.send(TYPES.puback, 0, [body[0], body[1]]);
      body = body.slice(2);
    }
    this.onMessage({ topic, body, retain: Boolean(flags & 1), qos });
  }
}

const number = (value) => [value >> 8, value & 255];

function text(value) {
  const bytes = new TextEncoder().encode(value);
  return [...number(bytes.length), ...bytes];
}

function length(size) {
  const bytes = [];
  for (let rest = size; ; ) {
    bytes.push((rest % 128) | (rest >= 128 ? 128 : 0));
    rest = Math.floor(rest / 128);
    if (rest === 0) return bytes;
  }
}

function joined(one, other) {
  const both = new Uint8Array(one.length + other.length);
  both.set(one);
  both.set(other, one.length);
  return both;
}
