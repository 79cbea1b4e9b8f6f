"""Firmware in its simulators without a gate: what a part does with each frame, its marks, its memory, and the library that it is (AX-72, AX-73, AX-74)."""
import binascii
import json
import shutil

from gateway import ROOT

from devices import bed


def bounds(report, name):
    """Sizes that a core can't have do not compile, and a table out of bounds runs nothing and writes nowhere else."""
    for core, sizes in {"a": {"STUB_PAYLOAD": (0, 1, 249, 250)}, "b": {"STUB_SIZE": (34, 35, 254, 255)}}.items():
        for macro, values in sizes.items():
            held = [bed.compiles(core, f"{macro}={value}") for value in values]
            report.equal(f"{name}: {macro} of {values}", held, [False, True, True, False])
    said, judged = bed.bounds("a", fixed(1, 1, 5) + fixed(1, 2, 6))
    report.equal(f"{name}: an answer without room for its status", (said, judged), (fixed(2, 1, 5, b"\5") + fixed(2, 2, 6, bytes([*range(7), 0])), ""))
    many, most = (b"".join(bytes([place, 0]) for place in range(count)) for count in (5, 4))
    calls = b"\1\xa3\1\1\2\7\3\xa5" + many, b"\1\xa3\1\2\2\x08\3\xa4" + most
    said, judged = bed.bounds("b", b"".join(framed(message) for message in (asked(1), *calls)))
    ends = [framed(b"\2\xa2\2\7\5\x39\x7f\x5a"), framed(b"\2\xa2\2\x08\4\0")]
    report.check(f"{name}: a tool with five arguments fails, and one with four runs", said.endswith(b"".join(ends)) and not judged, (said.hex(), judged[:300]))


def numbers(report, name):
    """What a table part has run does not run again behind a late heartbeat, and an echo is not its word (AX-72, AX-74)."""
    with bed.Part("table-avr.elf") as part:
        part.down.delimiter = part.up.delimiter = None
        of_table(report, f"{name}, AVR", part)
    if shutil.which("s51") and shutil.which("sdcc"):
        with bed.Part8051() as part:
            of_table(report, f"{name}, 8051", part)
    else:
        print("--- devices: no 8051, not installed: sdcc or sdcc-ucsim")
    with bed.Part("led.elf") as part:
        mark = marked(part.said())
        answers = [part.said(framed(message)) for message in (asked(mark), b"\1\xa2\1\1\2\7", asked(mark, 20), b"\1\xa2\1\1\2\x08")]
        report.check(f"{name}: a call from before the question does not run behind it", answers[1] and answers[2] and not answers[3], answers)
        # Without a number, the mark alone asks.
        answers = [part.said(framed(message)) for message in (bytes([3, 0xa2, 2, 0x18, 140, 0x0b, mark]), bytes([3, 0xa1, 0x0b, mark]), b"\1\xa2\1\1\2\x18\x64")]
        report.equal(f"{name}: nor behind a question without a number", [opened(answers[1])[:5], answers[2]], [b"\3\xa4\2\x18\x8c", b""])


def echoes(report, name):
    """A part that hears itself says nothing (AX-74)."""
    with bed.Part("lamp.elf") as part:
        hello = part.said()
        mark = marked(hello)
        own = {"hello": hello, "first page": part.said(framed(asked(mark))), "last page": part.said(framed(b"\3\xa2\x0a\3\x0b" + bytes([mark]))),
               "heartbeat": part.said(framed(b"\4\xa1\2\5")), "answer": part.said(framed(b"\1\xa2\1\1\2\7"))}
        heard = {what: part.said(frame).hex() for what, frame in own.items()}
        report.check(f"{name}: a part that describes itself does not answer its own word", all(own.values()) and not any(heard.values()), heard)
    with bed.Part("table-avr.elf") as part:
        part.down.delimiter = part.up.delimiter = None
        own = {"first answer": part.said(fixed(4, 0, 0, b"\1")), "heartbeat": part.said(fixed(4, 0, 5)), "answer": part.said(fixed(1, 2, 10, b"\1"))}
        heard = {what: part.said(frame).hex() for what, frame in own.items()}
        report.check(f"{name}: a table part does not answer its own word", all(own.values()) and not any(heard.values()), heard)


def of_table(report, name, part):
    """Calls and heartbeats of a table part, in an order that no gate means."""
    def heard(what, sent, answer):
        report.equal(what, part.said(sent, until=answer), answer)
    heard(f"{name}: a part that has started has no number", fixed(4, 0, 0, b"\x41"), fixed(2, 0, 0, b"\x41"))
    call, beat = fixed(1, 2, 10, b"\1"), fixed(4, 0, 5)
    heard(f"{name}: a call runs", call, fixed(2, 2, 10, b"\0"))
    heard(f"{name}: a late heartbeat is told the newer number", beat, fixed(4, 10, 5))
    heard(f"{name}: and the call does not run again", call, b"")
    heard(f"{name}: the next does", fixed(1, 1, 11), fixed(2, 1, 11, bytes([1, 2, 3, 4, 0])))
    part.said(fixed(2, 1, 20, b"\0") + fixed(3, 0, 21) + fixed(4, 20, 22))
    heard(f"{name}: only a call and a question count", fixed(1, 2, 12, b"\0"), fixed(2, 2, 12, b"\0"))
    heard(f"{name}: the question of an opening is told the number", fixed(4, 0, 0, b"\x42") + fixed(1, 2, 0, b"\1"), fixed(2, 12, 0, b"\x42"))
    heard(f"{name}: and counts for nothing", fixed(1, 2, 12, b"\1") + fixed(1, 2, 13, b"\1"), fixed(2, 2, 13, b"\0"))


def marks(report, name):
    """Each start has another mark, over a loss of power too, and the mark is in every page and in every heartbeat (AX-73, AX-74)."""
    with bed.Part("lamp.elf") as part:
        starts = [marked(part.said())]
        for _ in range(3):
            part.reboot()
            starts.append(marked(part.said()))
        report.equal(f"{name}: of four starts", len(set(starts)), 4)
        first, second = part.said(framed(asked(starts[-1]))), part.said(framed(b"\3\xa2\x0a\3\x0b" + bytes([starts[-1]])))
        said = {"first page": first, "second page": second, "heartbeat": part.said(framed(b"\4\xa1\2\5"))}
        wrong = {what: frame.hex() for what, frame in said.items() if b"\x0b" + bytes([starts[-1]]) not in opened(frame)}
        report.equal(f"{name}: what lacks the mark", wrong, {})
        report.equal(f"{name}: the second page begins there", opened(second)[-2:], b"\x0c\3")
        before = part.eeprom.read_bytes()
        part.reboot()
        given = [*starts, marked(part.said())]
        meant = part.eeprom.read_bytes()
        wrong = {}
        # The last start is cut off while it writes one of its bytes, and leaves noise there.
        for cut in (at for at in range(len(meant)) if meant[at] != before[at]):
            for noise in (0xff, given[-2] - 1, given[-2]):
                part.eeprom.write_bytes(before[:cut] + bytes([noise]) + meant[cut + 1:])
                part.reboot()
                mark = marked(part.said())
                if mark in given[:-1]:
                    wrong[cut, noise] = mark
        report.equal(f"{name}: marks given before, behind a start cut off", wrong, {})


def memory(report, name):
    """Static memory and the deepest stack, after every kind of message, with handlers that ran."""
    for image, tools, most in (("led.elf", 2, 245), ("lamp.elf", 4, 256)):
        with bed.Part(image) as part:
            mark = marked(part.said())
            arguments = {2: b"\3\xa1\0\xf5", 3: b"\3\xa1\0\5"}
            ran = [part.said(framed(asked(mark)))[1:2]]
            for tool in range(1, tools + 1):
                call = framed(bytes([1, 0xa2 + (tool in arguments), 1, tool, 2, 6 + tool]) + arguments.get(tool, b""))
                ended, again = part.said(call), part.said(call)
                ran.append(opened(ended)[:5] == bytes([2, 0xa2, 2, 6 + tool, 4]) and again == ended)
            # Called with what is wrong, and probed.
            for message in ("01a30102021403a10001", "01a201090215", "04a10205"):
                ran.append(bool(part.said(framed(bytes.fromhex(message)))))
            ram, stack = part.measured()
        report.check(f"{name}: {image} ran each of its tools once, and answers what it gets twice", all(ran), ran)
        report.check(f"{name}: {image} has {ram} bytes of static memory and {stack} of stack, {most} together at most", 0 < stack and ram + stack <= most)


def libraries(report, name):
    """The core is a library for Arduino, which a sketch runs with, and has the manifests of PlatformIO and Zephyr (AX-73)."""
    firmware = ROOT / "firmware"
    properties = dict(line.split("=", 1) for line in (firmware / "library.properties").read_text().splitlines())
    manifest, module = json.loads((firmware / "library.json").read_text()), (firmware / "zephyr/module.yml").read_text()
    needed = ("name", "version", "author", "maintainer", "sentence", "paragraph", "category", "url", "architectures")
    report.equal(f"{name}: keys that the Arduino IDE needs and the manifest lacks", [key for key in needed if not properties.get(key)], [])
    folders = [place.name.lower() for place in (firmware / "examples").iterdir()]
    report.equal(f"{name}: examples that are one where letters have no case", len(folders), len(set(folders)))
    held = [properties["name"], properties["version"], properties["includes"]], [manifest["name"], manifest["version"], manifest["headers"]]
    report.equal(f"{name}: the manifests agree", held[0], held[1])
    report.check(f"{name}: their files are there", all((firmware / place).exists() for place in ("src/stub_b.h", manifest["build"]["srcDir"], "zephyr/Kconfig", "zephyr/CMakeLists.txt")))
    report.check(f"{name}: the module names its folders", "cmake: zephyr" in module and "kconfig: zephyr/Kconfig" in module, module)
    if not bed.ARDUINO.exists():
        return print("--- devices: no sketch, not installed: arduino-mk arduino-core-avr")
    image, printed = bed.arduino("ArduinoLamp")
    report.check(f"{name}: the sketch is built", image, printed[-1500:])
    with bed.Part(image) as part:
        mark = marked(part.said())
        answers = [opened(part.said(framed(message))) for message in (asked(mark), b"\1\xa3\1\2\2\7\3\xa1\0\xf5")]
        report.equal(f"{name}: the sketch runs a call", answers[1], b"\2\xa2\2\7\4\xf5")


def fixed(kind, tool, number, payload=b""):
    """A frame of profile A."""
    covered = bytes([len(payload), kind, tool, number]) + payload
    return b"\xa5" + covered + binascii.crc_hqx(covered, 0xFFFF).to_bytes(2, "big")


def asked(mark, number=6):
    """The question for the table with a mark."""
    return bytes([3, 0xa2, 2, number, 0x0b, mark])


def opened(frame):
    """The message in the first frame of profile B."""
    frame, message = frame.split(b"\0")[0], b""
    while frame:
        code, frame = frame[0], frame[1:]
        message, frame = message + frame[:code - 1] + (b"\0" if code < 255 else b""), frame[code - 1:]
    return message.removesuffix(b"\0")[:-2]


def marked(hello):
    """The mark with which a part says that it is here; its table comes first, and no other member behind the mark."""
    message = opened(hello)
    assert message[0] == 3 and (message[-2] == 0x0b or message[-3:-1] == b"\x0b\x18"), hello.hex()
    return message[-1]


def framed(message):
    """A frame of profile B."""
    whole = message + binascii.crc_hqx(message, 0xFFFF).to_bytes(2, "big")
    return b"".join(bytes([len(piece) + 1]) + piece for piece in whole.split(b"\0")) + b"\0"
