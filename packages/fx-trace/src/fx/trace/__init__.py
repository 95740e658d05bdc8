"""Symbolic tracing, interpreters, rewriting and passes over fx.ir graphs."""
