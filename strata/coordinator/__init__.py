"""The control plane: who is alive, who reads which shard, who waits, which checkpoints exist."""
