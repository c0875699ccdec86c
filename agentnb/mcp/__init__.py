"""The MCP server: coding assistants debug stored runs (`agentnb mcp STORE`), and the session of a notebook.

`tools` is the table of what an assistant can do, `open_runs` the runs that it has opened, `answers` keeps what it
receives small and masked, and `server` is the only module that imports the SDK.
"""
