"""Utilities shared by all packages: wording of messages, tables, progress, storage of object code, first-use times."""
