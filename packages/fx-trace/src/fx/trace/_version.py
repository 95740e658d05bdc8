"""The version of ``fx-trace``; hatchling reads it from here."""

__version__ = "0.1.0"
