"""How many instructions with a lock prefix a run took. Each takes as long as some ten others and waits for every store before it, so their
number says what a count of instructions does not: how often a call counts references, takes locks and looks into what threads share. Who
runs what is not known here.
"""
import re
import subprocess

# An exchange with memory locks without the prefix (Intel SDM, volume 2, LOCK).
LOCKED = re.compile(r"^ +([0-9a-f]+):\s+(?:lock\s|xchg\s[^#]*\()", re.M)


def places(binary):
    """Where such instructions stand in `binary`."""
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", binary], capture_output=True, text=True, check=True).stdout
    return frozenset(int(place, 16) for place in LOCKED.findall(text))


def count(file, binary, places):
    """How often they were run, by what callgrind wrote with `--dump-instr=yes`."""
    objects, found, at, total, is_call, is_ours = {}, "", 0, 0, False, False
    with open(file) as lines:
        for line in lines:
            head = line[0]
            if head in "+-*0":
                place, *_, cost = line.split()
                at = at if place == "*" else at + int(place, 0) if head in "+-" else int(place, 0)
                # What stands behind a call is what all of it took.
                total += int(cost) if is_ours and not is_call and at in places else 0
                is_call = False
            elif line.startswith("ob="):
                number, _, name = line[3:].strip().partition(" ")
                found = objects.setdefault(number, name)
                is_ours = found == str(binary)
            elif line.startswith("cob="):
                number, _, name = line[4:].strip().partition(" ")
                objects.setdefault(number, name)
            elif line.startswith("calls="):
                is_call = True
    return total
