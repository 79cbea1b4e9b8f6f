"""What a NETCONF device holds, as `ncclient` reads it: a request a line on standard input, an answer a line on standard output.

Runs in the environment `network`. Holds its session between requests, and so its locks. Knows nothing of Banyan.
"""
import json
import sys

from ncclient import manager
from ncclient.operations import RPCError
from lxml import etree

DATA = "{urn:ietf:params:xml:ns:netconf:base:1.0}data"


def canonical(reply):
    """The data of a reply, without white space between elements."""
    data = etree.fromstring(reply.xml.encode(), etree.XMLParser(remove_blank_text=True)).find(DATA)
    return "".join(etree.tostring(child, method="c14n", exclusive=True).decode() for child in data)


def answer(session, request):
    """Does what the request names."""
    kind, given = request["do"], request.get("with")
    actions = {
        "running": lambda: canonical(session.get_config("running")),
        "candidate": lambda: canonical(session.get_config("candidate")),
        "get": lambda: canonical(session.get(filter=("subtree", given))),
        "lock": lambda: session.lock(given).ok,
        "unlock": lambda: session.unlock(given).ok,
        "edit": lambda: session.edit_config(target="candidate", config=given).ok,
        "discard": lambda: session.discard_changes().ok,
        "commit": lambda: session.commit().ok,
        "session": lambda: session.session_id,
    }
    return actions[kind]()


def main():
    host, user, password = sys.argv[1:]
    session = manager.connect(host=host, port=830, username=user, password=password, hostkey_verify=False, look_for_keys=False, allow_agent=False)
    for line in sys.stdin:
        try:
            told = {"is": answer(session, json.loads(line))}
        except RPCError as refused:
            told = {"refused": refused.tag}
        print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
