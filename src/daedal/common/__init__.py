"""Utilities shared by all packages: words in messages, tables, progress, storage of object code, first-use times."""
