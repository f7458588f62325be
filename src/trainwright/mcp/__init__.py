"""`trainwright mcp`: checks for coding assistants, over the Model Context Protocol."""
