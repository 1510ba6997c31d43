// Login of npm's stompit by client certificate.

import { close, connect } from "./stompit.mjs";

export { close, connect };

export const scenarios = {
  "login by certificate": async (open) => {
    const client = await open();
    await new Promise((resolve) => client.send({ destination: "/queue/light" }, { onReceipt: resolve }).end("on"));
  },
};
