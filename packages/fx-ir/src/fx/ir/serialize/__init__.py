"""Graphs as files: a documented, versioned JSON format (see ``FORMAT.md`` and ``format.schema.json`` beside this)."""
