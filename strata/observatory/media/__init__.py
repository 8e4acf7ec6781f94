"""Media of runs: their files beside the checkpoints, and what the store's texts say of them."""
