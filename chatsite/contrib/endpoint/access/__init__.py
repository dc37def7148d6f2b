"""Access: read scope, gateways, rate limits, and requests during an outage."""
