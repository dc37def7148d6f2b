"""Django's backend for PostgreSQL, with connections that go back to a pool."""
