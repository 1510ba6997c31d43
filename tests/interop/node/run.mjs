// Runs one scenario by its name: node run.mjs amqp.mjs amqp://... "a sentence". The exit code is 0 on success.

const TIMEOUT_MS = 20_000;

const [file, url, sentence] = process.argv.slice(2);
const { connect, close, scenarios } = await import(`./${file}`);
const scenario = scenarios[sentence];
if (scenario === undefined) {
  console.error(`no such scenario: ${sentence}`);
  process.exit(2);
}

setTimeout(() => {
  console.error("the scenario exceeded its time limit");
  process.exit(3);
}, TIMEOUT_MS).unref();

const opened = [];

/** Opens a connection, which is closed after a successful scenario. */
async function open(options) {
  const connection = await connect(url, options);
  opened.push(connection);
  return connection;
}

await scenario(open);
await Promise.allSettled(opened.map(close));
