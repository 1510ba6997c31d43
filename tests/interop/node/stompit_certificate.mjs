// Whether npm's stompit is let in without a login, by its certificate alone.

import { close, connect } from "./stompit.mjs";

export { close, connect };

export const scenarios = {
  "a certificate lets it in": async (open) => {
    const client = await open();
    await new Promise((resolve) => client.send({ destination: "/queue/light" }, { onReceipt: resolve }).end("on"));
  },
};
