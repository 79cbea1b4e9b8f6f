"""Steps and questions of a tool behind the gate as an agent (AE-18), told to the official SDKs: by servers of both eras, and by an agent made
with the SDK."""
import json
import os
import sys
import tempfile
import threading
import time
from contextlib import ExitStack

from agents.served import asker, script_asker, tokens
from conformance.server_scenarios import FIXTURE
from gateway import Gateway, Process, free_port
from install import venv_bin

ERAS = ("legacy", "modern")
BINDINGS = ("JSONRPC", "HTTP+JSON")
WAITS, ENDED = "TASK_STATE_INPUT_REQUIRED", "TASK_STATE_COMPLETED"


def run(report):
    """One gate that is an agent, in front of a server of each era and of an agent."""
    with ExitStack() as stack:
        port, writer = free_port(), free_port()
        work = stack.enter_context(tempfile.TemporaryDirectory(prefix="banyan-told-"))
        here = os.path.dirname(__file__)
        command = [venv_bin("agents"), os.path.join(here, "writer.py"), str(writer), "JSONRPC", "--streams", "--marks", os.path.join(work, "marks")]
        stack.enter_context(Process(command, port=writer))
        text = f'[gate]\nmode = "off"\n[agent]\nurl = "http://127.0.0.1:{port}"\n{tokens()}'
        text += f'[mount.writer]\nurl = "http://127.0.0.1:{writer}"\ntransport = "a2a"\n'
        for era in ERAS:
            text += f'[mount.{era}]\ncommand = "{sys.executable}"\nargs = ["{FIXTURE}", "stdio", "--era", "{era}"]\n'
        gateway = stack.enter_context(Gateway("agents-told", {}, config=text, port=port))
        jobs = [("agents/told by an agent", lambda: agent_asks(report, asker(gateway, "JSONRPC")))]
        for era, binding in zip(ERAS, BINDINGS, strict=True):
            name, ask = f"agents/told by a {era} server over {binding}", asker(gateway, binding)
            jobs.append((name, lambda n=name, e=era, a=ask: steps(report, n, e, a)))
            jobs.append((name, lambda n=name, e=era, a=ask: questions(report, n, e, a)))
            jobs.append((name, lambda n=name, e=era, b=binding: by_script(report, n, e, script_asker(gateway, b))))
        threads = [threading.Thread(target=report.guard, args=job) for job in jobs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def words(event):
    """The text of a status, in a task or in an event."""
    status = event.get("status") or [*event.values()][0].get("status", {})
    return [part["text"] for part in status.get("message", {}).get("parts", []) if "text" in part]


def steps(report, name, era, ask):
    """A tool that tells 40 steps in four seconds is heard on a stream and at a look, brought together, and never behind the end."""
    events = ask("stream", "--skill", f"{era}__fx_sleep", "--arguments", '{"ms": 4000, "steps": 40}')
    told = [text for event in events for text in words(event)]
    report.check(f"{name}: steps are told", 4 <= len(told) <= 20 and all(text.endswith(" of 40") for text in told), told)
    numbers = [float(text.split()[0]) for text in told]
    report.equal(f"{name}: each is further than the one before", numbers, sorted(set(numbers)))
    states = [[*event.values()][0].get("status", {}).get("state") for event in events]
    report.check(f"{name}: as a task at work", states[-1] == ENDED and {*states[:-1]} <= {"TASK_STATE_WORKING", None}, states)
    begun = ask("send", "--skill", f"{era}__fx_sleep", "--arguments", '{"ms": 20000, "steps": 200}', "--at-once")["task"]
    until = time.monotonic() + 15
    while not (seen := words(ask("get", "--task", begun["id"]))) and time.monotonic() < until:
        time.sleep(0.2)
    report.check(f"{name}: who looks at the task sees the step", seen and seen[0].endswith(" of 200"), seen)
    report.equal(f"{name}: a task at work is cancelled", ask("cancel", "--task", begun["id"])["status"]["state"], "TASK_STATE_CANCELED")


def questions(report, name, era, ask):
    """A tool's question is the state of its task, and the client's next message is the answer."""
    ask_name = f"{era}__test_input_required_result_elicitation"
    task = ask("send", "--skill", ask_name)["task"]
    report.equal(f"{name}: the task waits with the question", (task["status"]["state"], words(task)), (WAITS, ["What is your name?"]))
    [schema] = [part["data"] for part in task["status"]["message"]["parts"] if "data" in part]
    report.equal(f"{name}: and with the form of the answer", [*schema["requestedSchema"]["properties"]], ["name"])
    report.equal(f"{name}: nobody else answers", ask("send", "--task", task["id"], "--text", "Eve", who="bob")["refused"], "TaskNotFoundError")
    done = ask("send", "--task", task["id"], "--text", "Ann")["task"]
    report.equal(f"{name}: a text is the answer to one field", (done["status"]["state"], done["artifacts"][0]["parts"]), (ENDED, [{"text": "Hello, Ann!"}]))
    report.equal(f"{name}: and is answered once", ask("send", "--task", task["id"], "--text", "Bea").get("refused"), "UnsupportedOperationError")
    task = ask("send", "--skill", f"{era}__test_input_required_result_multi_round")["task"]
    second = ask("send", "--task", task["id"], "--arguments", '{"name": "Ann"}')["task"]
    report.equal(f"{name}: another question follows", (second["status"]["state"], words(second)), (WAITS, ["Step 2: What is your favorite color?"]))
    events = ask("stream", "--task", task["id"], "--arguments", '{"color": "green"}')
    last = events[-1].get("statusUpdate", events[-1].get("task"))
    report.equal(f"{name}: a stream goes on with the answer", (last["status"]["state"], "Ann likes green" in json.dumps(events)), (ENDED, True))
    stopped = ask("send", "--skill", ask_name)["task"]
    report.equal(f"{name}: a task that asks can be cancelled", ask("cancel", "--task", stopped["id"])["status"]["state"], "TASK_STATE_CANCELED")
    if era == "legacy":
        task = ask("send", "--skill", f"{era}__test_elicitation_sep1034_defaults")["task"]
        refused = ask("send", "--task", task["id"], "--text", "John")
        report.check(f"{name}: a text does not fill several fields", "one data part" in refused.get("message", ""), refused)
        done = ask("send", "--task", task["id"], "--text", "no", "--input", "decline")["task"]
        report.check(f"{name}: a question is declined", "action=decline" in json.dumps(done["artifacts"]), done)


def by_script(report, name, era, ask):
    """The same with the SDK for JavaScript."""
    task = ask("send", "--skill", f"{era}__test_input_required_result_elicitation")["task"]
    report.equal(f"{name} by JavaScript: the task waits with the question", (task["status"]["state"], words(task)), (WAITS, ["What is your name?"]))
    done = ask("send", "--task", task["id"], "--arguments", '{"name": "Ann"}')["task"]
    report.equal(f"{name} by JavaScript: the answer goes to the tool", done["artifacts"][0]["parts"], [{"text": "Hello, Ann!"}])


def agent_asks(report, ask):
    """An agent's question crosses the gate to another agent's client, and its steps do too."""
    task = ask("send", "--skill", "writer__ask", "--arguments", '{"message": "begin"}')["task"]
    report.equal("agents/told: an agent's question is the client's", (task["status"]["state"], words(task)), (WAITS, ["The agent writer asks: which colour?"]))
    done = ask("send", "--task", task["id"], "--text", "green")["task"]
    report.equal("agents/told: and the answer is the agent's", (done["status"]["state"], done["artifacts"][0]["parts"][0]), (ENDED, {"text": "it is green"}))
    begun = ask("send", "--skill", "writer__wait", "--arguments", '{"message": "x"}', "--at-once")["task"]
    until = time.monotonic() + 15
    while not (seen := words(ask("get", "--task", begun["id"]))) and time.monotonic() < until:
        time.sleep(0.2)
    report.equal("agents/told: an agent's step is the client's", seen, ["waiting"])
    report.equal("agents/told: which may stop it", ask("cancel", "--task", begun["id"])["status"]["state"], "TASK_STATE_CANCELED")
