/** A small STOMP 1.2 client over WebSocket, for publishing and watching by hand. */

export class StompClient {
  /**
   * @param {string} address of the WebSocket
   * @param {{user: string, password: string, vhost: string, onMessage: (message: {headers: object, body: string}) => void, onEnd: (reason: string) => void}} options
   */
  constructor(address, { user, password, vhost, onMessage, onEnd }) {
    this.onMessage = onMessage;
    this.onEnd = onEnd;
    this.received = "";
    this.lastId = 0;
    this.waiting = new Map();
    this.opened = new Promise((resolve, reject) => Object.assign(this, { resolveOpened: resolve, rejectOpened: reject }));
    this.socket = new WebSocket(address, ["v12.stomp"]);
    this.socket.binaryType = "arraybuffer";
    this.decoder = new TextDecoder();
    this.socket.onopen = () => this.send("CONNECT", { "accept-version": "1.2", host: vhost, login: user, passcode: password });
    this.socket.onmessage = (event) => this.receive(typeof event.data === "string" ? event.data : this.decoder.decode(event.data, { stream: true }));
    this.socket.onclose = () => this.end("The connection is closed.");
  }

  /** Subscribe to a destination. @throws {Error} if it is refused */
  async subscribe(destination) {
    await this.request("SUBSCRIBE", { id: "watch", destination, ack: "auto" });
  }

  /** Send a message, until the broker has taken it. */
  async publish(destination, body, headers = {}) {
    await this.request("SEND", { ...headers, destination }, body);
  }

  close() {
    this.send("DISCONNECT", {});
    this.socket.close();
  }

  request(command, headers, body = "") {
    this.lastId += 1;
    const receipt = `r${this.lastId}`;
    this.send(command, { ...headers, receipt }, body);
    return new Promise((resolve, reject) => this.waiting.set(receipt, { resolve, reject }));
  }

  send(command, headers, body = "") {
    if (this.socket.readyState !== WebSocket.OPEN) return;
    const escape = command === "CONNECT" ? String : escaped;
    const lines = Object.entries(headers).map(([name, value]) => `${escape(name)}:${escape(String(value))}\n`);
    this.socket.send(`${command}\n${lines.join("")}\n${body}\0`);
  }

  end(reason) {
    const error = new Error(this.refusal ?? reason);
    this.rejectOpened(error);
    for (const { reject } of this.waiting.values()) reject(error);
    this.waiting.clear();
    this.onEnd(error.message);
  }

  receive(data) {
    this.received += data;
    const frames = this.received.split("\0");
    this.received = frames.pop();
    for (const frame of frames) this.handle(frame.replace(/^[\r\n]+/, ""));
  }

  handle(frame) {
    const [head, ...rest] = frame.split(/\r?\n\r?\n/);
    const body = frame.slice(head.length).replace(/^\r?\n\r?\n/, "");
    if (rest.length === 0) return;
    const [command, ...lines] = head.split(/\r?\n/);
    const headers = Object.fromEntries(lines.map((line) => line.split(":", 2).map(unescaped)));
    if (command === "CONNECTED") this.resolveOpened();
    else if (command === "MESSAGE") this.onMessage({ headers, body });
    else if (command === "RECEIPT") this.finish(headers["receipt-id"]);
    else if (command === "ERROR") this.refusal = [headers.message, body.trim()].filter(Boolean).join(": ");
  }

  finish(receipt) {
    this.waiting.get(receipt)?.resolve();
    this.waiting.delete(receipt);
  }
}

const ESCAPES = { "\\": "\\\\", "\n": "\\n", "\r": "\\r", ":": "\\c" };
const escaped = (text) => text.replace(/[\\\n\r:]/g, (letter) => ESCAPES[letter]);
const unescaped = (text) => text.replace(/\\[\\nrc]/g, (pair) => ({ "\\\\": "\\", "\\n": "\n", "\\r": "\r", "\\c": ":" })[pair]);
