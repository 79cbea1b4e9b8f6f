"""A part of profile B on a CAN bus, on python-can, can-isotp and cbor2: nothing of it is Banyan's. Run by `bus.py` in an environment of its own.

    bus_part.py PORT TO FROM MARK BLOCK PAUSE
"""
import logging
import sys

import can
import cbor2
import isotp

TABLE = [[1, 5], [2, 1, 1], [3, 3, 3]]
SIZE = 255


class Part:
    """What the contract asks of a part, and three tools."""

    def __init__(self, mark):
        self.mark, self.last, self.kept, self.position, self.turns, self.texts = mark, 0, None, 0, 0, 0

    def table(self, first=0):
        """A page with two rows."""
        self.kept = None
        page = {6: SIZE, 7: TABLE[first:first + 2], 11: self.mark}
        if self.last:
            page[2] = self.last
        if first + 2 < len(TABLE):
            page[10] = first + 2
        if first:
            page[12] = first
        return said(3, page)

    def hear(self, message):
        """The answer to a message; nothing to what is late."""
        kind, members = message[0], cbor2.loads(message[1:]) if message[1:] else {}
        number = members.get(2, 0)
        if kind == 4:
            self.kept = None
            return said(4, {2: number, 11: self.mark})
        if kind == 3:
            if members.get(11) == self.mark and self.is_newer(number):
                self.last = number
            return self.table(members.get(10, 0))
        if not self.last:
            return said(2, {2: number, 5: -1})
        if number == self.last and self.kept:
            return self.kept
        if not self.is_newer(number):
            return None
        self.last = number
        self.kept = said(2, {2: number, **self.run(members[1], members.get(3, {}))})
        return self.kept

    def is_newer(self, number):
        return not self.last or 1 <= (number - self.last) % 256 <= 127

    def run(self, tool, arguments):
        if tool == 1:
            return {4: {0: self.turns, 1: self.texts}}
        if tool == 2:
            self.turns += 1
            self.position += arguments[0]
            return {4: self.position}
        if tool == 3:
            self.texts += 1
            return {4: arguments[0][::-1]}
        return {5: -32601}


def said(kind, members):
    """A message in the deterministic form."""
    return bytes([kind]) + cbor2.dumps(members, canonical=True)


def main():
    port, to, source, mark, block, pause = sys.argv[1], *(int(word, 0) for word in sys.argv[2:])
    bus = can.Bus(interface="slcan", channel=port, bitrate=500000, sleep_after_open=0)
    mode = isotp.AddressingMode.Normal_29bits if to > 0x7FF else isotp.AddressingMode.Normal_11bits
    address = isotp.Address(mode, rxid=to, txid=source)
    stack = isotp.CanStack(bus, address=address, params={"blocksize": block, "stmin": pause, "tx_padding": 0xCC}, error_handler=lambda _: None)
    # What it says of lost frames is the bus's affair.
    logging.disable()
    stack.start()
    part = Part(mark)
    stack.send(part.table())
    while True:
        message = stack.recv(block=True, timeout=60)
        # Somebody else on the bus, and then the answer.
        bus.send(can.Message(arbitration_id=0x7F0, data=b"others", is_extended_id=False))
        answer = part.hear(bytes(message)) if message else None
        if answer:
            stack.send(answer)


main()
