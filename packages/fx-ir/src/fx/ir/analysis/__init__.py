"""Questions about graphs that need no torch: shape, order, differences."""
