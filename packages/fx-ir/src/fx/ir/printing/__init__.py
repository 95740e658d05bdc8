"""Graphs as text: lines, tables, DOT."""
