"""What every Python client does through Banyan, in front of the fixture; one printed line a check.

`tour(peer)` takes a `python_peer.Peer`, as `python_v1.py` and `python_v2.py` finish it. Prints `ok NAME` or
`FAIL NAME detail`, which `checks.py` counts.
"""
import time
import traceback

import anyio

STATIC = "test://static-text"
WATCHED = "test://watched-resource"
SIXTEEN = 16


def say(name, ok, detail=""):
    print(f"{'ok' if ok else 'FAIL'} {name} {'' if ok else repr(detail)[:500]}".rstrip(), flush=True)


async def tour(peer, prefix=""):
    """All checks, each with its own time limit; one that fails does not stop the others."""
    async def step(name, work):
        try:
            with anyio.fail_after(12):
                ok, detail = await work()
            say(name, ok, detail)
        except Exception:  # noqa: BLE001 - the SDK's own errors are what is looked for
            say(name, False, traceback.format_exc()[-400:])

    for name, work in checks(peer, prefix):
        await step(name, work)


def checks(peer, prefix):
    """(name, coroutine function) pairs; each returns (held, what was seen)."""
    async def tools():
        names = await peer.tools()
        return {prefix + "test_simple_text", prefix + "fx_echo"} <= set(names), names

    async def call():
        got = await peer.call(prefix + "fx_echo", {"text": "café ✓"})
        return got == ("café ✓", False), got

    async def failing():
        got = await peer.call(prefix + "test_error_handling")
        return got == ("This tool intentionally returns an error for testing", True), got

    async def resources():
        uris = await peer.resources()
        texts = [await peer.read(STATIC), await peer.read("test://template/7/data")]
        return STATIC in uris and texts[0].startswith("This is the content") and '"7"' in texts[1], (uris, texts)

    async def unknown_resource():
        try:
            return False, await peer.read("test://there-is-no-such-thing")
        except Exception as refused:  # noqa: BLE001
            return "imed out" not in str(refused), str(refused)

    async def prompts():
        names = await peer.prompts()
        got = await peer.prompt(prefix + "test_prompt_with_arguments", {"arg1": "one", "arg2": "two"})
        return prefix + "test_simple_prompt" in names and got == "Prompt with arguments: arg1='one', arg2='two'", (names, got)

    async def completion():
        got = await peer.complete(prefix + "test_prompt_with_arguments", "arg1", "par")
        return got == ["paris", "park", "party"], got

    async def progress():
        seen = []

        async def on_progress(done, total, message):
            seen.append((done, total))
        await peer.call(prefix + "test_tool_with_progress", {}, on_progress)
        return seen == [(0, 100), (50, 100), (100, 100)], seen

    async def sampling():
        got = await peer.call(prefix + "test_sampling", {"prompt": "2+2"})
        return got == ("LLM response: sampled: 2+2", False), got

    async def form():
        got = await peer.call(prefix + "test_elicitation", {"message": "Say"})
        return got == ('Elicitation completed: action=accept, content={"response": "answered: Say"}', False), got

    async def url():
        got = await peer.call(prefix + "fx_elicit_url")
        return got == ("url elicitation: accept", False), got

    async def roots():
        got = await peer.call(prefix + "fx_roots")
        return got == ("roots: file:///peer/root", False), got

    async def cancellation():
        before = await peer.stats(prefix)
        await peer.call_and_cancel(prefix + "fx_sleep", {"ms": 6000, "steps": 60}, after=0.3)
        for _ in range(40):
            after = await peer.stats(prefix)
            if after["cancelled"] > before["cancelled"]:
                return after["finished"] == before["finished"], after
            await anyio.sleep(0.05)
        return False, after

    async def logging():
        got = await peer.logs_of(prefix + "test_tool_with_logging")
        return got == ["Tool execution started", "Tool processing data", "Tool execution completed"], got

    async def list_changed():
        async with peer.watching() as wait:
            began = time.monotonic()
            await peer.call(prefix + "test_trigger_tool_change")
            await wait("tools")
            took = time.monotonic() - began
        now = prefix + "test_dynamic_tool" in await peer.tools()
        async with peer.watching() as wait:
            await peer.call(prefix + "test_trigger_tool_change")
            await wait("tools")
        later = prefix + "test_dynamic_tool" in await peer.tools()
        return took < 1 and now != later, (took, now, later)

    async def subscription():
        async with peer.watching(WATCHED) as wait:
            await peer.call(prefix + "fx_touch", {"uri": STATIC})
            await peer.call(prefix + "fx_touch", {"uri": WATCHED})
            got = await wait("updated")
        return got == WATCHED, got

    async def burst():
        got = {}

        async def one(i):
            got[i] = (await peer.call(prefix + "fx_echo", {"text": str(i)}))[0]
        async with anyio.create_task_group() as group:
            for i in range(SIXTEEN):
                group.start_soon(one, i)
        return got == {i: str(i) for i in range(SIXTEEN)}, got

    named = {
        "list tools": tools, "call": call, "tool error": failing, "resources": resources,
        "unknown resource": unknown_resource, "prompts": prompts, "completion": completion, "progress": progress,
        "sampling": sampling, "elicitation form": form, "elicitation url": url, "roots": roots,
        "cancellation": cancellation, "logging": logging, "list_changed": list_changed,
        "subscription": subscription, "sixteen at once": burst}
    return named.items()
