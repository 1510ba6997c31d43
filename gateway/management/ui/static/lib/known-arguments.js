/** The arguments that are offered in forms, each with the type of its value. */

export const QUEUE_ARGUMENTS = [
  ["x-message-ttl", "number"], ["x-expires", "number"], ["x-max-length", "number"], ["x-max-length-bytes", "number"], ["x-overflow", "string"],
  ["x-dead-letter-exchange", "string"], ["x-dead-letter-routing-key", "string"], ["x-max-priority", "number"], ["x-single-active-consumer", "boolean"],
  ["x-delivery-limit", "number"], ["x-delayed-delivery", "boolean"], ["x-message-deduplication", "boolean"], ["x-max-age", "string"],
  ["x-stream-max-segment-size-bytes", "number"],
];

export const EXCHANGE_ARGUMENTS = [["alternate-exchange", "string"], ["x-delayed-type", "string"], ["x-cache-size", "number"], ["x-cache-ttl", "number"]];

export const POLICY_KEYS = [
  ["message-ttl", "number"], ["expires", "number"], ["max-length", "number"], ["max-length-bytes", "number"], ["overflow", "string"],
  ["dead-letter-exchange", "string"], ["dead-letter-routing-key", "string"], ["delivery-limit", "number"], ["alternate-exchange", "string"],
  ["max-age", "string"], ["federation-upstream-set", "string"], ["federation-upstream", "string"], ["archive", "string"],
];
