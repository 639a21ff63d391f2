"""The configuration as a TOML file: read, checked as a whole and written to the database, or written out again.

``load`` takes the text of a file, ``dump`` gives one; ``keys`` says which tables and keys there are.
"""
