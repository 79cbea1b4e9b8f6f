"""Agents behind the gate: one made with the official A2A SDK, over both bindings, with streams and without; and one that lies.

An agent's skills are tools. A call follows the agent's task to its end, tells its steps, passes its questions to the caller, and stops it
when the caller goes (AE-18).
"""
import hashlib
import os
import sys
import tempfile
import threading
import time
import traceback
from contextlib import ExitStack
from pathlib import Path

from agents import attacked, evidence, lifecycle, negotiated, pushed, served, told, translated, workflows
from agents.liar import Liar
from gateway import Gateway, Process, free_port
from install import venv_bin
from wire import Legacy, Modern

# Seconds that all of it may take; `run.py` says so where it took longer.
BUDGET = 190
HERE = Path(__file__).parent
TOKEN = "canary-of-an-agent"
TOKENS = {"alice": "alice-" + "a" * 26, "bob": "bob-" + "b" * 28}
SHOWN = {"authorization": f"Bearer {TOKENS['alice']}"}
# How the SDK's agent is reached: the binding of its card, and if it streams.
WAYS = {"rpc": ("JSONRPC", True), "rest": ("HTTP+JSON", True), "rpc-polled": ("JSONRPC", False), "rest-polled": ("HTTP+JSON", False)}


def run(report):
    """One gateway in front of all agents; then a gate that is one."""
    served.run(report)
    lifecycle.run(report)
    told.run(report)
    pushed.run(report)
    workflows.run(report)
    translated.run(report)
    evidence.run(report)
    attacked.run(report)
    negotiated.run(report)
    with ExitStack() as stack:
        work = stack.enter_context(tempfile.TemporaryDirectory(prefix="banyan-agents-"))
        ports = {way: free_port() for way in [*WAYS, "guarded"]}
        for way, (binding, streams) in {**WAYS, "guarded": ("JSONRPC", True)}.items():
            command = [venv_bin("agents"), str(HERE / "writer.py"), str(ports[way]), binding, "--marks", os.path.join(work, way)]
            command += ["--streams"] if streams else []
            command += ["--token", TOKEN] if way == "guarded" else []
            stack.enter_context(Process(command, port=ports[way]))
        liar = stack.enter_context(Liar())
        gateway = stack.enter_context(Gateway("agents", {}, config=configuration(ports, liar), env={"AGENT_TOKEN": TOKEN}))
        jobs = []
        for way in WAYS:
            for client in (Legacy, Modern):
                name = f"agents/{way} for a {client.__name__.lower()} client"
                jobs.append((name, lambda n=name, w=way, c=client: tour(report, n, c, gateway.url(w))))
                jobs.append((f"{name}: asked", lambda n=name, w=way, c=client: asked(report, n, c, gateway.url(w))))
            jobs.append((f"agents/{way}: withdrawn", lambda w=way: withdrawn(report, f"agents/{w}", gateway.url(w), os.path.join(work, w))))
        jobs.append(("agents/owners", lambda: owned(report, gateway)))
        jobs.append(("agents/guarded", lambda: guarded(report, gateway)))
        jobs.append(("agents/the liar", lambda: lied(report, gateway, liar)))
        beside(report, jobs)


def beside(report, jobs):
    """All jobs at once: most of them wait for an agent."""
    threads = {job[0]: threading.Thread(target=report.guard, args=job, daemon=True) for job in jobs}
    for thread in threads.values():
        thread.start()
    until = time.monotonic() + 2 * BUDGET
    for name, thread in threads.items():
        thread.join(max(0, until - time.monotonic()))
        if thread.is_alive():
            report.check(f"{name}: it reached its end", False, "".join(traceback.format_stack(sys._current_frames()[thread.ident])))


def configuration(ports, liar):
    """A gate of which every agent is a mount."""
    text = '[gate]\nmode = "off"\n[limits]\nresponse_size = "1MB"\n'
    text += "".join(f'[[token]]\nname = "{name}"\nsha256 = "{hashlib.sha256(token.encode()).hexdigest()}"\n' for name, token in TOKENS.items())
    for way, port in ports.items():
        text += f'[mount.{way}]\nurl = "http://127.0.0.1:{port}"\ntransport = "a2a"\n'
    text += 'headers = { Authorization = "Bearer ${env:AGENT_TOKEN}" }\n'
    text += f'[mount.bare]\nurl = "http://127.0.0.1:{ports["guarded"]}"\ntransport = "a2a"\n'
    for kind in liar.kinds:
        text += f'[mount.liar-{kind}]\nurl = "{liar.url}/{kind}"\ntransport = "a2a"\nheaders = {{ Authorization = "Bearer ${{env:AGENT_TOKEN}}" }}\n'
    return text


def tour(report, name, kind, url):
    """Lists the skills, and calls those that need nothing of their caller."""
    client = kind(url, headers=SHOWN)
    tools = client.tools()
    report.equal(f"{name}: every skill is a tool", sorted(tools), ["ask", "draft", "echo", "fail", "files", "wait"])
    report.equal(f"{name}: a skill says what it does", tools["draft"]["description"], "Does draft.\nTags: test.")
    reply = client.tool("echo", {"message": "hi", "data": {"n": 7}})
    report.equal(f"{name}: text and data arrive", reply.text, "hi|[{'n': 7.0}]")
    reply = client.tool("draft", {"message": "a poem"}, _meta={"progressToken": "p"})
    texts = [item["text"] for item in reply.result["content"]]
    report.equal(f"{name}: an artifact made in pieces", "".join(texts), "one twodone")
    about = reply.result["_meta"]["io.banyan/a2a"]
    report.equal(f"{name}: the end of the task is told", about["state"], "TASK_STATE_COMPLETED")
    steps = [message["params"] for message in reply.before if message["method"] == "notifications/progress"]
    report.check(f"{name}: steps are told as progress", any(step.get("message") in ("thinking", "done") for step in steps), steps)
    numbers = [step["progress"] for step in steps]
    report.check(f"{name}: progress grows and has the caller's token",
                 numbers == sorted(set(numbers)) and all(step["progressToken"] == "p" for step in steps), steps)
    reply = client.tool("files", {"message": "x"})
    report.equal(f"{name}: parts of every kind", [item["type"] for item in reply.result["content"]], ["text", "text", "image", "resource_link"])
    report.equal(f"{name}: data is structured content", reply.result["structuredContent"], {"n": 1.0})
    reply = client.tool("fail", {"message": "x"})
    report.check(f"{name}: a failed task is an error of the tool", reply.result.get("isError") is True and reply.text == "no ink", reply.raw)
    reply = client.tool("echo", {"messages": "x"})
    report.check(f"{name}: a wrong argument is told", "did you mean `message`?" in str(reply.error), reply.raw)


def asked(report, name, kind, url):
    """An agent's question reaches a caller who can be asked; another one reads how to go on."""
    questions = []

    def answer(method, params):
        questions.append((method, params["message"]))
        return {"action": "accept", "content": {"answer": "green"}}

    able = kind(url, headers=SHOWN, capabilities={"elicitation": {}}, answer=answer)
    reply = able.tool("ask", {"message": "begin"})
    report.equal(f"{name}: the question is the agent's", questions, [("elicitation/create", f"The agent {url.rsplit('/', 1)[1]} asks: which colour?")])
    report.equal(f"{name}: the answer reaches the task", reply.text, "it is green")
    mute = kind(url, headers=SHOWN)
    reply = mute.tool("ask", {"message": "begin"})
    about = reply.result["_meta"]["io.banyan/a2a"]
    report.equal(f"{name}: who can't be asked reads the question", (about["state"], reply.result["content"][0]["text"]),
                 ("TASK_STATE_INPUT_REQUIRED", "which colour?"))
    reply = mute.tool("ask", {"message": "blue", "task_id": about["task_id"], "context_id": about["context_id"]})
    report.equal(f"{name}: and goes on with another call", reply.text, "it is blue")
    refusing = kind(url, headers=SHOWN, capabilities={"elicitation": {}}, answer=lambda method, params: {"action": "decline"})
    reply = refusing.tool("ask", {"message": "begin"})
    report.check(f"{name}: who declines is told that the agent stops", reply.result.get("isError") is True and "told to stop" in reply.text, reply.raw)


def owned(report, gateway):
    """A conversation is of whoever began it: another caller can neither go on with it nor find out that it is there."""
    alice, bob = (Modern(gateway.url("rpc"), headers={"authorization": f"Bearer {TOKENS[name]}"}) for name in ("alice", "bob"))
    about = alice.tool("ask", {"message": "begin"}).result["_meta"]["io.banyan/a2a"]
    ids = {"task_id": about["task_id"], "context_id": about["context_id"]}
    for name, given in {"the task": {"task_id": ids["task_id"]}, "the context": {"context_id": ids["context_id"]}}.items():
        reply = bob.tool("ask", {"message": "mine", **given})
        report.check(f"agents/owners: {name} of another caller is refused", "no answer to you had this" in str(reply.error), reply.raw)
    unknown, foreign = (bob.tool("ask", {"message": "mine", "task_id": task}).error for task in ("nobody's", ids["task_id"]))
    report.equal("agents/owners: and looks like one that is not there", foreign, unknown)
    report.equal("agents/owners: its own caller goes on", alice.tool("ask", {"message": "red", **ids}).text, "it is red")


def withdrawn(report, name, url, marks):
    """A caller who goes away takes the agent's task along."""
    client = Legacy(url, headers=SHOWN)
    before = counted(marks)
    gone = threading.Thread(target=lambda: client.call(
        "tools/call", {"name": "wait", "arguments": {"message": "x"}},
        on_open=lambda number: threading.Timer(1, client.notify, ("notifications/cancelled", {"requestId": number})).start()))
    gone.daemon = True
    gone.start()
    until = time.monotonic() + 20
    while counted(marks) == before and time.monotonic() < until:
        time.sleep(0.1)
    report.check(f"{name}: a call that is cancelled cancels the task", counted(marks) > before)
    gone.join(60)
    report.check(f"{name}: and its stream ends", not gone.is_alive())


def counted(marks):
    """How often the agent was told to stop."""
    return len(Path(marks).read_text().splitlines()) if Path(marks).exists() else 0


def guarded(report, gateway):
    """An agent that wants a credential gets that of its mount, and of no other."""
    reply = Legacy(gateway.url("guarded"), headers=SHOWN).tool("echo", {"message": "hi"})
    report.equal("agents/guarded: the credential of the mount is shown", reply.text, "hi|[]")
    reply = Legacy(gateway.url("bare"), headers=SHOWN).tool("echo", {"message": "hi"})
    report.check("agents/bare: a missing credential is told with what to do", "give this mount a credential" in str(reply.raw), reply.raw)
    report.check("agents/guarded: the credential stands in no log", TOKEN not in gateway.tail(1 << 20))


def lied(report, gateway, liar):
    """Whatever an agent says of itself or answers, nothing is sent elsewhere and no wrong answer is passed on."""
    status = gateway.told("status", "--json")
    report.check("agents/liar: a card that leads elsewhere is refused", "sends calls to http://127.0.0.2" in status, status[-2000:])
    report.check("agents/liar: a card of A2A 0.3 is refused with both versions",
                 "it speaks A2A 0.3.0, and this gate speaks A2A 1.0" in status, status[-2000:])
    report.check("agents/liar: a card that is moved is not followed", not liar.elsewhere, liar.elsewhere)
    for kind, wanted in {"otherid": "another request", "state": "`TASK_STATE_DONE`", "othertask": "another task", "large": "larger than",
                         "neither": "neither a task nor a message", "fault": "no such thing (TASK_NOT_FOUND)"}.items():
        reply = Legacy(gateway.url(f"liar-{kind}"), headers=SHOWN).tool("lie", {"message": "x"})
        report.check(f"agents/liar: {kind} is refused with what is wrong", reply.error is not None and wanted in str(reply.error), str(reply.raw)[:600])
    report.check("agents/liar: a user in the address of a card is refused", "an address that calls can't be sent to" in status, status[-2000:])
    reply = Legacy(gateway.url("liar-echo"), headers=SHOWN).tool("lie", {"message": "x"})
    report.check("agents/liar: a credential that comes back is hidden", "[hidden]" in str(reply.error) and TOKEN not in str(reply.raw), str(reply.raw)[:600])
    log = gateway.tail(1 << 24)
    report.check("agents/liar: no word of an agent makes a line or a colour in the log", "\x1b[31m" not in log and "\nBearer" not in log, log[-2000:])
    report.check("agents/liar: a long word of a card is cut in log and status", "9" * 1000 not in log + status, len(log))
    report.check("agents/liar: a card of many modes and skills costs the gate little", gateway.memory() < 600 << 20, gateway.memory())
    asked_without_end(report, gateway, liar)
    reply = Legacy(gateway.url("liar-broken"), headers=SHOWN).tool("lie", {"message": "x"})
    report.equal("agents/liar: a stream that breaks off is followed by looking at the task", reply.text, "whole after all")
    report.check("agents/liar: every request names the version", set(liar.versions) == {"1.0"}, liar.versions)


def asked_without_end(report, gateway, liar):
    """An agent that always asks comes to an end, and what is cancelled while a person is asked is cancelled at the agent."""
    questions = []

    def answer(method, params):
        questions.append(params["message"])
        return {"action": "accept", "content": {"answer": "because"}}

    reply = Legacy(gateway.url("liar-endless"), headers=SHOWN, capabilities={"elicitation": {}}, answer=answer).tool("lie", {"message": "x"})
    report.check("agents/liar: questions have an end", len(questions) == 32 and "waits for an answer" in str(reply.raw), (len(questions), reply.raw[-300:]))
    report.check("agents/liar: a question is short and says what it shows", all(len(q) < 4100 and "\u202e" not in q for q in questions), questions[0][:80])
    reply = Legacy(gateway.url("liar-swap"), headers=SHOWN, capabilities={"elicitation": {}}, answer=answer).tool("lie", {"message": "x"})
    report.check("agents/liar: another task can't take the call over", "another task" in str(reply.error), str(reply.raw)[:600])
    slow = lambda method, params: time.sleep(3) or {"action": "cancel"}  # noqa: E731
    client = Legacy(gateway.url("liar-asks"), headers=SHOWN, capabilities={"elicitation": {}}, answer=slow)
    client.call("tools/call", {"name": "lie", "arguments": {"message": "x"}}, on_open=lambda number: threading.Timer(
        1, client.notify, ("notifications/cancelled", {"requestId": number})).start())
    until = time.monotonic() + 10
    while not {("swap", "t"), ("asks", "t")} <= set(liar.cancelled) and time.monotonic() < until:
        time.sleep(0.1)
    report.check("agents/liar: a task whose call is taken over is cancelled", ("swap", "t") in liar.cancelled, liar.cancelled)
    report.check("agents/liar: a call cancelled during a question cancels the task", ("asks", "t") in liar.cancelled, liar.cancelled)
