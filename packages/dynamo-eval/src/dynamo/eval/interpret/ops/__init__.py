"""Handlers, one module per family of opcodes."""
