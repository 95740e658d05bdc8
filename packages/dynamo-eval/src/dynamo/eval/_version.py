"""The version of ``dynamo-eval``; hatchling reads it from here."""

__version__ = "0.1.0"
