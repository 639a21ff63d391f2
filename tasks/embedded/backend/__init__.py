"""Django's database engine ``tasks.embedded.backend``: PostgreSQL at the address that the data directory names."""
