"""Kinds of clauses: each one test in three forms, Python, native and words."""
