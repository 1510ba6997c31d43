// Runs one scenario by its sentence: node run.mjs amqp://... "a sentence". Exit code 0 when it holds.

import { amqp, scenarios } from "./scenarios.mjs";

const TIMEOUT_MS = 20_000;

const [url, sentence] = process.argv.slice(2);
const scenario = scenarios[sentence];
if (scenario === undefined) {
  console.error(`no such scenario: ${sentence}`);
  process.exit(2);
}

setTimeout(() => {
  console.error("the scenario did not end in time");
  process.exit(3);
}, TIMEOUT_MS).unref();

const opened = [];

/** Opens a connection; it is closed when the scenario ended well. */
async function connect(options = "") {
  const connection = await amqp.connect(url + options, { timeout: 5000 });
  connection.on("error", () => {});
  opened.push(connection);
  return connection;
}

await scenario(connect);
await Promise.allSettled(opened.map((connection) => connection.close()));
