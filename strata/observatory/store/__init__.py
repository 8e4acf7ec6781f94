"""Where points and logs rest: ClickHouse, embedded or a server, behind a process of its own."""
