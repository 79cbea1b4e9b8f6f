"""What registered servers cost the gate that holds them: each by itself, a hundred thousand tools of a thousand servers, and a change."""
import contextlib
import statistics
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from .bounds import Verdict
from .gates import REGISTRY, Client, Gate, Registrants, until

KIB, MIB = 1 << 10, 1 << 20
# `registrations_per_second`, by which a gate defends itself.
ADMITTED = 500
SERVERS, TOOLS = 1000, 100
TIMES = 9


def registrations(stage, options, report):
    """Servers of one tool each: how many a second, in what processor time beside that of a call, and in how much memory."""
    servers = 50 if options.smoke else SERVERS
    for build in stage.builds:
        with contextlib.ExitStack() as stack:
            gate = Gate(stage, stack, build, REGISTRY)
            many = Registrants(stage, stack, gate, 1)
            # The first ones also fill what the allocator held free.
            many.say(f"register {servers // 10}")
            time.sleep(0.5)
            before, used = gate.memory(), gate.cpu()
            said = many.say(f"register {servers}")
            time.sleep(0.5)
            each, used = (gate.memory() - before) / servers, (gate.cpu() - used) / servers * 1e6
            call = calls(stage, gate, "s0000__tool_0000_0000", options.seconds)["cpu_us"]
        add = lambda name, shown, value: report.add("tree registrations", build, name, shown, value)
        rate = servers / said["seconds"]
        add(f"registered, of {servers:,}", f"{rate:,.0f}/s, {rate / ADMITTED:.2f} of what is let in", rate)
        add("a registration with its first lists", f"{used / call:.0f} times a call's CPU ({used:,.0f} us)", used / call)
        add("a registered server", f"{each / KIB:.1f} KiB", each)


def measure(stage, options, report):
    """A hundred thousand tools: built, listed, changed; beside a hundredth of the servers."""
    servers = 20 if options.smoke else SERVERS
    for build in stage.builds:
        few = changing(stage, options, build, max(servers // 100, 2))
        many = changing(stage, options, build, servers)
        add = lambda name, shown, value, verdict=None: report.add("tree namespace", build, name, shown, value, verdict)
        tools = servers * TOOLS
        add(f"{tools:,} tools of {servers:,} servers are listed", f"{many['built']:.1f} s, {many['built'] * ADMITTED / servers:.2f} of what is let in",
            many["built"])
        add("processor time for each server", f"{many['built_cpu'] / servers * 1e3:.2f} ms, {ratio(many, few, 'built_cpu') / servers * few['servers']:.2f} of that "
            f"among {few['servers']}", many["built_cpu"])
        add("memory", f"{many['memory'] / MIB:.0f} MiB, {many['memory'] / many['bytes']:.1f} times what is listed", many["memory"])
        add("first byte of the first page after a change", f"{many['first'] * 1e3:.1f} ms, {ratio(many, few, 'first'):.1f} times", many["first"])
        add("first byte of the first page later", f"{many['later'] * 1e3:.1f} ms, {ratio(many, few, 'later'):.1f} times", many["later"])
        change = ratio(many, few, "change_cpu")
        add("processor time of one server's change", f"{many['change_cpu'] * 1e3:.1f} ms, {change:.1f} times that among {few['servers']}", change,
            Verdict("times", change, "most", 10))
        add("until it is listed", f"{many['change'] * 1e3:.0f} ms, {ratio(many, few, 'change'):.1f} times", many["change"])
        waits = many["busy"]["max_us"] / many["quiet"]["max_us"]
        add("the slowest call while servers change", f"{many['busy']['max_us'] / 1e3:.1f} ms, {waits:.1f} times", waits)


def changing(stage, options, build, servers):
    """Everything that is to be known of a gate with so many servers."""
    with contextlib.ExitStack() as stack:
        gate = Gate(stage, stack, build, REGISTRY)
        many, client = Registrants(stage, stack, gate, TOOLS), Client(gate.port)
        before, found, began = gate.memory(), {"servers": servers}, time.perf_counter()
        many.say(f"register {servers}")
        until("all tools are listed", lambda: client.count()[0] == servers * TOOLS, pause=0.1)
        found["built"], found["built_cpu"] = time.perf_counter() - began, gate.cpu()
        time.sleep(1)
        found["memory"] = gate.memory() - before
        found["bytes"] = len(client.ask("tools/list")[0]) * servers * TOOLS / min(servers * TOOLS, 20_000)
        changes = [change(gate, many, client, at * (servers - 1) // TIMES) for at in range(TIMES)]
        for key in changes[0]:
            found[key] = statistics.median(one[key] for one in changes)
        found["quiet"] = calls(stage, gate, "s0000__tool_0000_0000", 4 * options.seconds, rate=100)
        with busy(many, client, servers):
            found["busy"] = calls(stage, gate, "s0000__tool_0000_0000", 4 * options.seconds, rate=100)
        return found


def change(gate, many, client, number):
    """One server gets one more tool: what that takes until it can be called, and what a list takes then."""
    # The tree is made at once only when it was not made just now.
    time.sleep(0.3)
    used, began = gate.cpu(), time.perf_counter()
    name = f"s{number:04}__{many.say(f'change {number}')['changed']}"
    until(f"{name} is listed", lambda: client.answers(name))
    found = {"change": time.perf_counter() - began}
    found["first"] = client.ask("tools/list")[1]
    found["change_cpu"] = gate.cpu() - used
    found["later"] = client.ask("tools/list")[1]
    return found


@contextlib.contextmanager
def busy(many, client, servers):
    """While this lasts, five servers a second change and somebody lists after each."""
    over = threading.Event()

    def work():
        number = 0
        while not over.wait(0.2):
            many.say(f"change {number * 7 % servers}")
            client.ask("tools/list")
            number += 1

    with ThreadPoolExecutor(1) as pool:
        worker = pool.submit(work)
        try:
            yield
        finally:
            over.set()
        # What went wrong there went wrong here.
        worker.result()


def calls(stage, gate, tool, seconds, rate=None):
    arguments = ["--era", "modern", "--method", "call", "--connections", "4", "--tools", tool]
    return stage.generator.load(gate, arguments + (["--rate", str(rate)] if rate else []), seconds)


def ratio(many, few, key):
    return many[key] / few[key]
