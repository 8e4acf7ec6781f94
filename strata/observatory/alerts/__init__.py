"""Rules over points and over the cluster, and the book of what they found."""
