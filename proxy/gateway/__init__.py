"""The place of our own MCP endpoint at `/mcp`; nothing stands here yet."""
