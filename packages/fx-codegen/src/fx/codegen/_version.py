"""The version of ``fx-codegen``; hatchling reads it from here."""

__version__ = "0.1.0"
