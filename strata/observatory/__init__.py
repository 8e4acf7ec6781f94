"""The observability plane: metrics, logs, REST, the live stream and the dashboard."""
