"""Utilities shared by all packages: messages, tables, progress, storage of object code, times of first use."""
