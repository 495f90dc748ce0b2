"""FlashInfer-Bench: solutions judged as attention of the operation that their definition states."""
