"""Graphs as text: lines, tables, DOT (``fx.ir.printing.dot``)."""
