"""The worker on Kafka, and whatever else reads and writes a broker's topics (docs/runtime.md)."""
