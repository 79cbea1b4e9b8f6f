"""How tasks stand, told on the stream that asks for it (tasks extension): over both upstream transports and both doors (AX-06).

The official suite has no check of it yet: `tasks-status-notifications` is empty.
"""
import json
import subprocess
import time
from contextlib import ExitStack

from conformance.server_scenarios import fixture
from gateway import Gateway, Home, binary
from wire import META, MODERN, Modern

ABLE = {"elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}}
YES = {"confirm": {"action": "accept", "content": {"confirm": True}}}


def run(report):
    """One gateway for all upstreams, and one over stdio."""
    with ExitStack() as stack:
        upstreams = {transport: fixture(transport, "modern", stack) for transport in ("stdio", "http")}
        gateway = stack.enter_context(Gateway("clients-tasks", upstreams))
        for transport in upstreams:
            name = f"clients/tasks, upstream modern/{transport}"
            report.guard(name, lambda: told(report, name, Modern(gateway.url(transport), capabilities=ABLE)))
            report.guard(name, lambda: taken_up_again(report, name, Modern(gateway.url(transport), capabilities=ABLE)))
        home = Home("clients-tasks-stdio", upstreams)
        stack.callback(home.remove)
        report.guard("clients/tasks over stdio", lambda: over_stdio(report, home))


def waiting(client, tool="confirm_delete"):
    """The id of a task that waits for an answer."""
    made = client.tool(tool, {"filename": "f"}).result
    while client.call("tasks/get", {"taskId": made["taskId"]}).result["status"] != "input_required":
        time.sleep(0.01)
    return made["taskId"]


def told(report, name, client):
    """A listener hears of the tasks that it names, up to their end."""
    task = waiting(client)
    stream = client.listen(taskIds=[task, "of-nobody"])
    report.equal(f"{name}: only its own tasks are agreed to", stream.acknowledged["params"]["notifications"], {"taskIds": [task]})
    client.call("tasks/update", {"taskId": task, "inputResponses": YES})
    end = stream.wait("notifications/tasks", where=lambda m: m["params"]["status"] == "completed")
    report.check(f"{name}: its end is told", end is not None and end["params"]["taskId"] == task, stream.seen)
    tags = {message["params"]["_meta"][META + "subscriptionId"] for message in stream.seen}
    report.equal(f"{name}: all of it is tagged", tags, {stream.id})
    wanted = client.call("tasks/get", {"taskId": task}).result["result"]
    report.equal(f"{name}: with the result", end and end["params"].get("result"), wanted)
    stream.close()


def taken_up_again(report, name, client):
    """What happens while the upstream's stream is down is told when there is one again."""
    task = waiting(client)
    stream = client.listen(taskIds=[task])
    client.tool("fx_hang_up")
    client.call("tasks/update", {"taskId": task, "inputResponses": YES})
    end = stream.wait("notifications/tasks", within=15, where=lambda m: m["params"]["status"] == "completed")
    report.check(f"{name}: told after the server hung up", end is not None and end["params"]["taskId"] == task, stream.seen)
    stream.close()


def over_stdio(report, home):
    """The same at the stdio door."""
    command = [binary(), "stdio", "--from", home.file]
    with subprocess.Popen(command, env=home.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as door:
        def send(mid, method, **params):
            meta = {META + "protocolVersion": MODERN, META + "clientCapabilities": ABLE}
            message = {"jsonrpc": "2.0", "id": mid, "method": method, "params": {**params, "_meta": meta}}
            door.stdin.write(json.dumps(message).encode() + b"\n")
            door.stdin.flush()

        def until(holds):
            while line := door.stdout.readline():
                message = json.loads(line)
                if holds(message):
                    return message
            raise RuntimeError("its output ended")

        send(1, "tools/call", name="http__confirm_delete", arguments={"filename": "f"})
        task = until(lambda m: m.get("id") == 1)["result"]["taskId"]
        send("two", "subscriptions/listen", notifications={"taskIds": [task]})
        agreed = until(lambda m: m.get("method") == "notifications/subscriptions/acknowledged")["params"]["notifications"]
        report.equal("clients/tasks over stdio: it is agreed to", agreed, {"taskIds": [task]})
        send(3, "tasks/cancel", taskId=task)
        end = until(lambda m: m.get("method") == "notifications/tasks" and m["params"]["status"] == "cancelled")["params"]
        tag = end["_meta"][META + "subscriptionId"]
        report.equal("clients/tasks over stdio: its end is told", (end["taskId"], tag), (task, "two"))
        door.stdin.close()
