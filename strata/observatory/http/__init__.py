"""REST, SSE and the dashboard's files. Handlers send prepared bytes; none of them computes for long or blocks."""
