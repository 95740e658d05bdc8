"""Readable guards with a native check: is cached work still valid for these values?."""
