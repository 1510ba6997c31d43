// Runs one scenario by its sentence: node run.mjs amqp.mjs amqp://... "a sentence". Exit code 0 when it holds.

const TIMEOUT_MS = 20_000;

const [file, url, sentence] = process.argv.slice(2);
const { connect, close, scenarios } = await import(`./${file}`);
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
async function open(options) {
  const connection = await connect(url, options);
  opened.push(connection);
  return connection;
}

await scenario(open);
await Promise.allSettled(opened.map(close));
