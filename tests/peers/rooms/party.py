"""One who is in a room, as the text of MCPx v0.1 has it: written from the specification alone, on the `websockets` library.

Decides nothing: what has to come of a message is in the cases.
"""
import contextlib
import itertools
import json
import urllib.parse

from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

# No case needs as long on a machine that is far slower than any.
PATIENCE = 120
FULL = ["mcp/*", "chat"]
PROPOSES = ["mcp/proposal:*", "mcp/withdraw:*", "mcp/response:*", "chat"]
NUMBERS = itertools.count(1)


class Refused(Exception):
    """An upgrade that was answered by another status."""

    def __init__(self, status, body):
        super().__init__(f"{status}: {body}")
        self.status, self.body = status, body


class Party:
    """A participant, from its welcome on."""

    def __init__(self, gateway, topic, token=None, **query):
        address = urllib.parse.urlencode({"topic": topic, **query})
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        try:
            self.socket = connect(f"ws://127.0.0.1:{gateway.port}/ws?{address}", additional_headers=headers, open_timeout=PATIENCE,
                                  max_size=None, compression=None, proxy=None)
        except InvalidStatus as refused:
            raise Refused(refused.response.status_code, refused.response.body.decode()) from None
        self.welcome = self.hear()
        self.id = self.welcome["payload"]["you"]["id"]
        self.joined = self.hear()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(Exception):
            self.socket.close()

    def envelope(self, kind, payload, **members):
        """An envelope of its own."""
        return {"protocol": "mcpx/v0.1", "id": f"{self.id}-{next(NUMBERS)}", "from": self.id, "kind": kind, "payload": payload, **members}

    def say(self, kind, payload, **members):
        """Sends one; answers its id."""
        envelope = self.envelope(kind, payload, **members)
        self.socket.send(json.dumps(envelope))
        return envelope["id"]

    def chat(self, text, **members):
        """Says something to people."""
        return self.say("chat", {"text": text}, **members)

    def hear_text(self):
        """The next message, as it came."""
        return self.socket.recv(timeout=PATIENCE)

    def hear(self):
        """The next message."""
        return json.loads(self.hear_text())

    def hear_of(self, wanted):
        """The next message of that id."""
        while (message := self.hear())["id"] != wanted:
            pass
        return message

    def error(self):
        """The next error that the gateway tells it."""
        while (message := self.hear())["kind"] != "system/error":
            pass
        return message

    def closed(self):
        """With which code the gateway closes; what comes before is passed over."""
        try:
            while True:
                self.socket.recv(timeout=PATIENCE)
        except ConnectionClosed as closed:
            return closed.rcvd.code if closed.rcvd else None


def refused(gateway, topic, token=None, **query):
    """The status by which somebody is not let in; None where it is."""
    try:
        with Party(gateway, topic, token, **query):
            return None
    except Refused as answer:
        return answer.status
