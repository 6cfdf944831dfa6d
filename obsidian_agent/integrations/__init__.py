"""Connections to other programs: MCP, ACP, OpenCode, community plugins."""
