"""The JSON examples of MCPx v0.1 that participants send (sections 3 to 3.3), and those that are the gateway's own (3.4, 3.5)."""

CALL = {"name": "dangerous_operation", "arguments": {"target": "production"}}
DONE = {"content": [{"type": "text", "text": "Operation completed"}]}


def _envelope(number, sender, kind, payload, **more):
    return {"protocol": "mcpx/v0.1", "id": f"env-{number}", "from": sender, "kind": kind, "payload": payload, **more}


SENT = [
    _envelope("a", "robot-alpha", "mcp/request:tools/call", {"method": "tools/call"}, to=["coordinator"], correlation_id="env-1"),
    _envelope("call-1", "trusted-agent", "mcp/request:tools/call:dangerous_operation",
              {"jsonrpc": "2.0", "id": 42, "method": "tools/call", "params": CALL}, to=["target-agent"]),
    _envelope("resp-1", "target-agent", "mcp/response:tools/call:dangerous_operation",
              {"jsonrpc": "2.0", "id": 42, "result": DONE}, to=["trusted-agent"], correlation_id="env-call-1"),
    _envelope("req-1", "untrusted-agent", "mcp/proposal:tools/call:dangerous_operation",
              {"method": "tools/call", "params": CALL}, to=["target-agent"]),
    _envelope("fulfill-1", "human-user", "mcp/request:tools/call:dangerous_operation",
              {"jsonrpc": "2.0", "id": 44, "method": "tools/call", "params": CALL}, to=["target-agent"], correlation_id="env-req-1"),
    _envelope("fulfill-resp-1", "target-agent", "mcp/response:tools/call:dangerous_operation",
              {"jsonrpc": "2.0", "id": 44, "result": DONE}, to=["human-user", "untrusted-agent"], correlation_id="env-fulfill-1"),
    _envelope("chat-1", "user-alice", "chat", {"text": "Hello everyone!", "format": "plain"}),
]

AGENT = {"id": "new-agent", "capabilities": ["mcp/proposal:*", "chat"]}
RESERVED = [
    _envelope("presence-1", "system:gateway", "system/presence", {"event": "join", "participant": AGENT}),
    _envelope("welcome-1", "system:gateway", "system/welcome", {"you": AGENT, "participants": []}, to=["new-participant"]),
    _envelope("violation-1", "system:gateway", "system/error", {"error": "capability_violation", "message": "x"}, to=["violator"]),
]
