"""The version of ``fx-ir``; hatchling reads it from here."""

__version__ = "0.1.0"
