"""Graph IR for program capture: nodes, graphs, lint, printing, dead code, files and matching, without torch."""
