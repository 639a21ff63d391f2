"""An app as a user of Redrive would add it with REDRIVE_APPS: it has handlers, and nothing else."""
