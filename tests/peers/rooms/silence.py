"""Who is not heard of: pinged after half a minute, and let go after 75 seconds, while somebody who answers pings stays.

It takes that long, so it goes on beside the other cases. How long exactly is not looked at: only what comes, and in which order.
"""
import struct
import threading

from rooms.frames import CLOSE, PING, PONG, TEXT, Bare, frame, pong

PINGED = 0x80 | PING


class Silence:
    """Two connections, one of which says nothing; `end` waits until it has been let go."""

    def __init__(self, report, name, gateway):
        self.report, self.name, self.gateway = report, name, gateway
        self.threads = [threading.Thread(target=lambda one=one: report.guard(name, one)) for one in (self.silent, self.answering)]
        for thread in self.threads:
            thread.start()

    def end(self):
        for thread in self.threads:
            thread.join()

    def silent(self):
        """Reads, and answers nothing."""
        with Bare(self.gateway, "quiet", "ann-secret") as bare:
            came = [one for one in iter(bare.next, None) if one[0] != 0x80 | TEXT]
        self.report.check(f"{self.name}/a silent one is pinged", [PINGED, PINGED] == [first for first, _ in came[:2]], came)
        first, said = came[-1]
        self.report.check(f"{self.name}/and then let go", first == 0x80 | CLOSE and struct.unpack(">H", said[:2]) == (1008,), came)
        self.report.check(f"{self.name}/and told why", b"answer pings" in said, came)

    def answering(self):
        """Answers pings, says nothing else, and is there when the other one has left."""
        with Bare(self.gateway, "quiet", "bob-secret") as bare:
            for first, payload in iter(bare.next, None):
                if first == PINGED:
                    bare.send([frame(PONG, payload)])
                elif b'"leave"' in payload and b'"ann"' in payload:
                    break
            bare.send([frame(PING, b"still there?")])
            came = next(one for one in iter(bare.next, None) if one[0] == 0x80 | PONG)
            self.report.equal(f"{self.name}/one that answers stays", came, pong(b"still there?"))
