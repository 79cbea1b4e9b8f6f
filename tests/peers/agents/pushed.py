"""Push notifications of the gate as an agent (AE-18): made and ended with the official SDKs over both bindings, received by one made with the SDK."""
import json
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

from agents.served import asker, script_asker, tokens
from conformance.server_scenarios import FIXTURE
from gateway import Gateway, Process, free_port
from install import venv_bin

ASKS = ("--skill", "old__test_input_required_result_elicitation")
SECRET = {"token": "canary-of-a-client", "authentication": {"scheme": "Bearer", "credentials": "canary-of-a-receiver"}}
# Time in which a receiver that failed once or twice is tried again, and some more.
AGAIN = 8
WAITS, ENDED = "TASK_STATE_INPUT_REQUIRED", "TASK_STATE_COMPLETED"


def run(report):
    """One gate that may notify one receiver, one that may notify the internet, and one that notifies nobody."""
    with ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="banyan-pushed-")))
        port, heard = free_port(), work / "heard"
        heard.write_text("")
        here = Path(__file__).parent
        stack.enter_context(Process([venv_bin("agents"), str(here / "receiver.py"), str(port), str(heard)], port=port))
        receiver = Receiver(f"http://127.0.0.1:{port}", heard)
        gateway = gate(stack, "listed", [receiver.url])
        anywhere, ask, jobs = asker(gate(stack, "open", ["*"]), "JSONRPC"), asker(gateway, "JSONRPC"), []
        for binding in ("JSONRPC", "HTTP+JSON"):
            name = f"agents/pushed over {binding}"
            jobs.append((name, lambda n=name, b=binding: told(report, n, asker(gateway, b), receiver, b)))
            jobs.append((name, lambda n=name, b=binding: kept(report, n, asker(gateway, b), receiver.url)))
            jobs.append((name, lambda n=name, b=binding: by_script(report, n, script_asker(gateway, b), receiver, b)))
        jobs.append(("agents/pushed", lambda: retried(report, ask, receiver)))
        jobs.append(("agents/pushed", lambda: asked_twice(report, ask, receiver)))
        closing = gate(stack, "closing", [receiver.url])
        jobs.append(("agents/pushed", lambda: shut_down(report, closing, asker(closing, "JSONRPC"), receiver)))
        jobs.append(("agents/pushed", lambda: bounded(report, ask, receiver)))
        jobs.append(("agents/pushed", lambda: elsewhere(report, ask, anywhere, receiver)))
        with ThreadPoolExecutor(len(jobs)) as pool:
            for job in jobs:
                pool.submit(report.guard, *job)
        report.guard("agents/pushed", lambda: taken(report, gateway, ask, receiver))
        shut = asker(gate(stack, "none", []), "HTTP+JSON")
        report.equal("agents/pushed: a gate without addresses says so in its card", shut("card")["capabilities"].get("pushNotifications", False), False)
        refused = shut("send", *ASKS, "--push", json.dumps({"url": receiver.url}))
        report.equal("agents/pushed: and begins no task that wants them", (refused.get("refused"), shut("list").get("totalSize", 0)), ("PushNotificationNotSupportedError", 0))


class Receiver:
    """What the receiver has written down."""

    def __init__(self, url, file):
        self.url, self.file = url, file

    def lines(self, path):
        """All notifications below a path."""
        lines = [json.loads(line) for line in self.file.read_text().splitlines()]
        return [line for line in lines if line["path"] == path]

    def wait(self, path, count):
        """The same once there are so many, or after a while."""
        until = time.monotonic() + 20
        while len(self.lines(path)) < count and time.monotonic() < until:
            time.sleep(0.1)
        return self.lines(path)


def gate(stack, name, places):
    """A gate that may notify these addresses."""
    port = free_port()
    text = f'[gate]\nmode = "off"\n[agent]\nurl = "http://127.0.0.1:{port}"\npush = {json.dumps(places)}\n{tokens()}'
    text += f'[mount.old]\ncommand = "{sys.executable}"\nargs = ["{FIXTURE}", "stdio", "--era", "legacy"]\n'
    return stack.enter_context(Gateway(f"agents-pushed-{name}", {}, config=text, port=port))


def states(lines):
    return [line["event"]["task"]["status"]["state"] for line in lines]


def told(report, name, ask, receiver, binding):
    """A wish in the message is heard at the question and at the end, with the token and the credentials of the client."""
    path = f"/told/{binding}"
    report.equal(f"{name}: the card says so", ask("card")["capabilities"]["pushNotifications"], True)
    task = ask("send", *ASKS, "--push", json.dumps({"url": receiver.url + path, **SECRET}))["task"]
    [first] = receiver.wait(path, 1)
    report.equal(f"{name}: a question is told", (first["event"]["task"]["id"], states([first])), (task["id"], [WAITS]))
    shown = {"authorization": "Bearer canary-of-a-receiver", "content-type": "application/json", "x-a2a-notification-token": "canary-of-a-client"}
    report.equal(f"{name}: with the client's token and credentials", first["fields"], shown)
    done = ask("send", "--task", task["id"], "--text", "Ann")["task"]
    lines = receiver.wait(path, 2)
    report.check(f"{name}: and so is the end, with what was made", states(lines)[-1] == ENDED and lines[-1]["event"]["task"]["artifacts"] == done["artifacts"], lines)


def kept(report, name, ask, url):
    """Wishes are made, read, listed and ended by their client alone, and show no secret."""
    task = ask("send", *ASKS)["task"]["id"]
    made = ask("push-create", "--task", task, "--push", json.dumps({"id": "mine", "url": f"{url}/kept", **SECRET}))
    wanted = {"id": "mine", "taskId": task, "url": f"{url}/kept", "authentication": {"scheme": "Bearer"}}
    report.equal(f"{name}: a wish is made, and shows no secret", made, wanted)
    report.equal(f"{name}: it is read again", ask("push-get", "--task", task, "--push", '{"id": "mine"}'), wanted)
    other = ask("push-create", "--task", task, "--push", json.dumps({"url": f"{url}/other"}))
    listed = ask("push-list", "--task", task)
    report.equal(f"{name}: all are listed", listed.get("configs"), [wanted, other])
    for operation in ("push-get", "push-list", "push-delete"):
        report.equal(f"{name}: {operation} is for nobody else", ask(operation, "--task", task, "--push", '{"id": "mine"}', who="bob").get("refused"), "TaskNotFoundError")
    ask("push-delete", "--task", task, "--push", '{"id": "mine"}')
    report.equal(f"{name}: one that was ended is gone", ask("push-list", "--task", task).get("configs"), [other])
    ask("cancel", "--task", task)


def by_script(report, name, ask, receiver, binding):
    """The same with the SDK for JavaScript."""
    path = f"/script/{binding}"
    task = ask("send", *ASKS)["task"]["id"]
    made = ask("push-create", "--task", task, "--push", json.dumps({"id": "s", "url": receiver.url + path}))
    report.equal(f"{name} by JavaScript: a wish is made", (made.get("id"), made.get("url")), ("s", receiver.url + path))
    report.equal(f"{name} by JavaScript: a task that waits already is told", states(receiver.wait(path, 1)), [WAITS])
    ask("push-delete", "--task", task, "--push", '{"id": "s"}')
    ask("send", "--task", task, "--arguments", '{"name": "Ann"}')
    time.sleep(1)
    report.equal(f"{name} by JavaScript: after its end nothing is told", states(receiver.lines(path)), [WAITS])


def retried(report, ask, receiver):
    """A receiver that is busy is tried again, one that is gone is not, and nobody is followed elsewhere."""
    counts = {"/busy": 2, "/gone": 1, "/moved": 1}
    tasks = [ask("send", *ASKS, "--push", json.dumps({"url": receiver.url + path}))["task"]["id"] for path in counts]
    for path, count in counts.items():
        receiver.wait(path, count)
    time.sleep(AGAIN)
    for path, count in counts.items():
        report.equal(f"agents/pushed: {path} is tried {count} times", states(receiver.lines(path)), [WAITS] * count)
    for task in tasks:
        ask("cancel", "--task", task)
    report.equal("agents/pushed: nobody is followed elsewhere", receiver.lines("/elsewhere"), [])


def asked_twice(report, ask, receiver):
    """Each question of a task is told, also a second one."""
    task = ask("send", "--skill", "old__test_input_required_result_multi_round", "--push", json.dumps({"url": receiver.url + "/twice"}))["task"]["id"]
    receiver.wait("/twice", 1)
    ask("send", "--task", task, "--arguments", '{"name": "Ann"}')
    until = time.monotonic() + 20
    while (told := states(receiver.lines("/twice"))).count(WAITS) < 2 and time.monotonic() < until:
        time.sleep(0.1)
    report.equal("agents/pushed: a second question is told", told.count(WAITS), 2)
    [config] = ask("push-list", "--task", task)["configs"]
    report.equal("agents/pushed: a wish without an id has that of its task", config["id"], task)
    refused = ask("send", "--task", task, "--text", "", "--arguments", "[]", "--push", json.dumps({"url": receiver.url + "/refused"}))
    report.check("agents/pushed: a message that is no answer is refused", refused.get("refused"), refused)
    report.equal("agents/pushed: and its wish replaces none", ask("push-list", "--task", task)["configs"], [config])
    done = ask("send", "--task", task, "--arguments", '{"color": "green"}')["task"]
    report.equal("agents/pushed: the task ends", done["status"]["state"], ENDED)
    late = ask("push-create", "--task", task, "--push", json.dumps({"url": receiver.url + "/late"}))
    report.equal("agents/pushed: a task that has ended takes no wish", late.get("refused"), "UnsupportedOperationError")
    report.equal("agents/pushed: a refused wish is told nothing", receiver.lines("/refused") + receiver.lines("/late"), [])


def shut_down(report, gateway, ask, receiver):
    """A wish whose tries are still to come is told nothing more once the section is gone."""
    ask("send", *ASKS, "--push", json.dumps({"url": receiver.url + "/never"}))
    report.equal("agents/pushed: a receiver out of order is tried", {*states(receiver.wait("/never", 1))}, {WAITS})
    file = Path(gateway.home.dir, "banyan.toml")
    file.write_text("".join(line for line in file.read_text().splitlines(True) if not line.startswith(("[agent]", "url = ", "push = "))))
    gateway.told("reload", "--config", str(file))
    before = len(receiver.lines("/never"))
    time.sleep(AGAIN)
    report.equal("agents/pushed: and no more once the section is gone", len(receiver.lines("/never")), before)


def taken(report, gateway, ask, receiver):
    """An address that the operator takes away is told nothing more."""
    kept = ask("send", *ASKS)["task"]["id"]
    ask("push-create", "--task", kept, "--push", json.dumps({"url": receiver.url + "/taken"}))
    report.equal("agents/pushed: a listed address is told", states(receiver.wait("/taken", 1)), [WAITS])
    file = Path(gateway.home.dir, "banyan.toml")
    file.write_text(file.read_text().replace(receiver.url, "https://other.example"))
    gateway.told("reload", "--config", str(file))
    ask("send", "--task", kept, "--text", "Ann")
    time.sleep(2)
    report.equal("agents/pushed: and nothing more once it is listed no longer", states(receiver.lines("/taken")), [WAITS])


def bounded(report, ask, receiver):
    """A task has four wishes at most, and one with the id of another takes its place."""
    task = ask("send", *ASKS)["task"]["id"]
    made = [ask("push-create", "--task", task, "--push", json.dumps({"id": f"w{number}", "url": f"{receiver.url}/many"})) for number in (0, 1, 2, 3, 0, 4)]
    report.equal("agents/pushed: a task has four wishes", [wish.get("id") for wish in made], ["w0", "w1", "w2", "w3", "w0", None])
    ask("cancel", "--task", task)


def elsewhere(report, ask, open_to, receiver):
    """Addresses that are not listed are refused, and where any is taken, none of a private network is."""
    for url in ("http://127.0.0.1:1/", "https://hooks.example/", receiver.url.replace("127.0.0.1", "localhost")):
        refused = ask("send", *ASKS, "--push", json.dumps({"url": url}))
        report.check(f"agents/pushed: {url} is not listed", "sends no notifications to" in refused.get("message", ""), refused)
    for url in (receiver.url, "https://127.0.0.1/", "https://10.0.0.1/", "https://[::1]/", "https://169.254.169.254/latest"):
        refused = open_to("send", *ASKS, "--push", json.dumps({"url": url}))
        report.check(f"agents/pushed: {url} is not of the internet", "sends no notifications to" in refused.get("message", ""), refused)
