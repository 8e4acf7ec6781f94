"""The cluster as the coordinator's event stream tells it, in the shapes of REST and SSE. It only ever follows."""
