"""Graph to exact, readable Python source; GraphModule."""
