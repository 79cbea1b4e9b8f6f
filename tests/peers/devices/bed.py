"""Real firmware in simavr, in QEMU and in uCsim, behind a pseudo-terminal, with a line between them that can be bad. Knows no gate.

`Part` starts an image of `firmware/` and gives the path of its serial port. A `Line` takes the bytes both ways and, frame by frame, drops,
flips, doubles, cuts, delays and reorders them.
"""
import fcntl
import json
import os
import pty
import random
import select
import shutil
import socket
import subprocess
import threading
import time
import tty
from pathlib import Path

from gateway import ROOT, end

OUT = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "firmware"
SIMULATOR = OUT / "simulate"
ARDUINO = Path("/usr/share/arduino/Arduino.mk")
FAULTS = ("drop", "flip", "double", "cut", "delay", "reorder", "late double")
# Seconds for which a frame may be late: longer than the gate waits for an answer.
LATE = 0.3
# Seconds without a byte after which a part has said all.
QUIET = 0.3


def lacking():
    """Why no firmware can run here, if none can."""
    missing = [tool for tool in ("avr-gcc", "cc") if not shutil.which(tool)]
    if not Path("/usr/include/simavr").is_dir():
        missing.append("libsimavr-dev")
    return f"not installed: {', '.join(missing)}" if missing else ""


def bounds(core, payload):
    """A core on this machine with a table out of bounds: what it sends for the bytes of `payload`, and what the sanitizers say."""
    program = OUT / f"bounds_{core}"
    flags = ["-std=gnu99", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", f"-DCORE_{core.upper()}", f"-I{ROOT}/firmware/src"]
    sources = [ROOT / "firmware/test/bounds.c", ROOT / f"firmware/src/stub_{core}.c"]
    subprocess.run(["cc", *flags, "-o", program, *sources], check=True, timeout=60)
    done = subprocess.run([program], input=payload, capture_output=True, timeout=30)
    return done.stdout, done.stderr.decode(errors="replace")


def compiles(core, setting):
    """Whether a core compiles with a size."""
    command = ["cc", "-std=gnu99", "-fsyntax-only", f"-D{setting}", f"-I{ROOT}/firmware/src", ROOT / f"firmware/src/stub_{core}.c"]
    return subprocess.run(command, capture_output=True, timeout=60).returncode == 0


def build():
    """Builds the images and the simulator. Returns whether the images hold their budgets, and what was printed."""
    done = subprocess.run([ROOT / "firmware" / "build", OUT], capture_output=True, text=True, timeout=120)
    command = ["cc", "-O2", "-Wall", "-Wextra", "-Werror", "-I/usr/include/simavr", "-o", SIMULATOR, ROOT / "firmware/test/simulate.c", "-lsimavr", "-lelf"]
    subprocess.run(command, check=True, timeout=120)
    return done.returncode == 0, done.stdout + done.stderr


def arduino(sketch):
    """Builds a sketch with the library, as arduino-mk does for an Uno. Returns the name of the image and what was printed."""
    place, libraries = OUT / "arduino" / sketch, OUT / "arduino" / "libraries"
    for directory in (place, libraries):
        directory.mkdir(parents=True, exist_ok=True)
    library = libraries / "BanyanStub"
    library.unlink(missing_ok=True)
    library.symlink_to(ROOT / "firmware")
    shutil.copy(ROOT / f"firmware/examples/{sketch}/{sketch}.ino", place)
    # The compiler of Debian has the constant for C alone.
    lines = [f"TARGET = {sketch}", "BOARD_TAG = uno", "ARDUINO_LIBS = BanyanStub", f"USER_LIB_PATH = {libraries}", "CXXFLAGS_STD = -std=gnu++11 -DDECIMAL_DIG=17", f"include {ARDUINO}"]
    (place / "Makefile").write_text("\n".join(lines) + "\n")
    done = subprocess.run(["make", "-s"], cwd=place, capture_output=True, text=True, timeout=300)
    image = place / f"build-uno/{sketch}.elf"
    return image.relative_to(OUT) if image.exists() else None, done.stdout + done.stderr


class Line:
    """Frames on their way in one direction. `rate` of a hundred frames have a fault."""

    def __init__(self, seed, delimiter=b"\0"):
        self.rate, self.delimiter = 0, delimiter
        self.random, self.held, self.late = random.Random(seed), None, []
        self.counts, self.frames, self.is_dead = dict.fromkeys(FAULTS, 0), [], False

    def passed(self, frame):
        """What comes out for a frame, now; more may come later."""
        self.frames.append(frame)
        if self.is_dead:
            return []
        held, self.held = self.held, None
        behind = [held] if held else []
        if self.random.randrange(100) >= self.rate:
            return [frame, *behind]
        fault = self.random.choice(FAULTS)
        self.counts[fault] += 1
        if fault == "drop":
            return behind
        if fault == "flip":
            at = self.random.randrange(8 * len(frame))
            flipped = bytearray(frame)
            flipped[at // 8] ^= 1 << at % 8
            return [bytes(flipped), *behind]
        if fault == "double":
            return [frame, frame, *behind]
        if fault == "cut":
            return [frame[:self.random.randrange(len(frame))], *behind]
        if fault == "reorder":
            self.held = frame
            return behind
        self.late.append((time.monotonic() + self.random.uniform(0, LATE), frame))
        return [frame, *behind] if fault == "late double" else behind

    def seen(self, beginning):
        """How many frames began so, behind the code byte of COBS."""
        return sum(frame[1:].startswith(beginning) for frame in self.frames)

    def due(self):
        """Late frames whose time has come."""
        now = time.monotonic()
        due = [frame for at, frame in self.late if at <= now]
        self.late = [(at, frame) for at, frame in self.late if at > now]
        return due


class Part8051:
    """The table part's image for an 8052 in uCsim on a pseudo-terminal, as a context manager. Has no bad line and no gate."""

    def __init__(self):
        self.master, self.slave = pty.openpty()
        tty.setraw(self.slave)

    def __enter__(self):
        port, image = os.ttyname(self.slave), OUT / "mcs51/table.ihx"
        # Without the settings the simulator looks at its line twice a second, and takes bytes for itself.
        settings = ["-e", "uart0_esc_char=511;uart0_check_often=1", "-S", f"uart=0,in={port},out={port}"]
        self.process = subprocess.Popen(["s51", "-q", "-b", "-t", "52", "-X", "11.0592M", *settings, "-g", image], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        # What comes before the simulator has its line is lost.
        time.sleep(2)
        return self

    def said(self, sent=b"", until=None):
        """What the part says to these bytes, until it is quiet or has said `until`."""
        os.write(self.master, sent)
        said = b""
        while not (until and said.endswith(until)) and select.select([self.master], [], [], 5 * QUIET)[0]:
            said += os.read(self.master, 4096)
        return said

    def __exit__(self, *_):
        end(self.process)
        os.close(self.master)
        os.close(self.slave)


class Part:
    """Firmware on a serial port, as a context manager."""

    def __init__(self, image, seed=1):
        self.image, self.report, self.eeprom = OUT / image, *(OUT / f"{Path(image).name}.{os.getpid()}.{seed}.{end}" for end in ("report", "eeprom"))
        self.down, self.up = Line(seed), Line(seed + 1)
        self.process, self.running = None, True
        self.master, self.slave = pty.openpty()
        tty.setraw(self.slave)
        fcntl.fcntl(self.master, fcntl.F_SETFL, fcntl.fcntl(self.master, fcntl.F_GETFL) | os.O_NONBLOCK)
        self.port = os.ttyname(self.slave)
        self.lock = threading.Lock()

    def __enter__(self):
        self.start()
        self.threads = [threading.Thread(target=work, daemon=True) for work in (self.to_part, self.to_gate)]
        for thread in self.threads:
            thread.start()
        return self

    def start(self):
        """Powers the part on."""
        self.process = subprocess.Popen(self.command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)

    def command(self):
        """Command of the simulator, with the serial line on its standard input and output."""
        return [SIMULATOR, self.image, self.report, self.eeprom]

    def said(self, sent=b"", until=None):
        """What the part says to these bytes, until it is quiet or has said `until`. For parts without a gate."""
        os.write(self.slave, sent)
        said = b""
        while not (until and said.endswith(until)) and select.select([self.slave], [], [], QUIET)[0]:
            said += os.read(self.slave, 4096)
        return said

    def reboot(self, image=None):
        """Takes the power away and gives it back, to this image or another."""
        with self.lock:
            end(self.process)
            self.image = OUT / image if image else self.image
            self.start()

    def deafen(self, both=False):
        """Loses all that the part sends; both ways, all that it is sent too."""
        self.up.is_dead = True
        self.down.is_dead = both

    def quiet(self):
        """Lets the line be good from now on, and late frames come."""
        self.down.rate = self.up.rate = 0
        self.up.is_dead = self.down.is_dead = False
        time.sleep(2 * LATE)

    def worst(self, rate):
        """Makes the line bad both ways."""
        self.down.rate = self.up.rate = rate

    def to_part(self):
        def write(frame):
            with self.lock:
                self.process.stdin.write(frame)
        self.carry(self.down, self.read_master, write)

    def to_gate(self):
        self.carry(self.up, self.read_part, self.write_master)

    def carry(self, line, read, write):
        """Frames of one direction, until the part is put away."""
        held = b""
        while self.running:
            got = read()
            try:
                if line.delimiter is None:
                    if got:
                        line.frames.append(got)
                        write(got)
                    got or time.sleep(0.0005)
                    continue
                held += got
                *frames, held = held.split(line.delimiter)
                for frame in frames:
                    for out in line.passed(frame + line.delimiter):
                        write(out)
                for out in line.due():
                    write(out)
            except OSError:
                pass
            if not got:
                time.sleep(0.0005)

    def read_master(self):
        try:
            return os.read(self.master, 4096)
        except OSError:
            return b""

    def write_master(self, frame):
        while frame and self.running:
            try:
                frame = frame[os.write(self.master, frame):]
            except BlockingIOError:
                time.sleep(0.001)

    def read_part(self):
        process = self.process
        descriptor = process.stdout.fileno()
        os.set_blocking(descriptor, False)
        try:
            return os.read(descriptor, 4096)
        except (OSError, ValueError):
            return b""

    def measured(self):
        """Bytes of static memory and of the deepest stack. Ends the part."""
        self.process.stdin.close()
        self.process.wait(10)
        pairs = dict(pair.split("=") for pair in self.report.read_text().split())
        return int(pairs["ram"]), int(pairs["stack"])

    def __exit__(self, *_):
        self.running = False
        for thread in self.threads:
            thread.join(5)
        end(self.process)
        os.close(self.master)
        os.close(self.slave)
        self.report.unlink(missing_ok=True)
        self.eeprom.unlink(missing_ok=True)


class PartM0(Part):
    """Firmware on the Cortex-M0 of a BBC micro:bit in QEMU. The flash, whose last pages count the starts, outlasts a loss of power."""

    FLASH = 0x40000

    def start(self):
        super().start()
        # What comes before the firmware has opened its UART makes this simulator deaf.
        select.select([self.process.stdout], [], [], 20)

    def command(self):
        self.monitor, self.flash = self.report.with_suffix(".monitor"), self.report.with_suffix(".flash")
        image = self.flash if self.flash.exists() else self.image
        return ["qemu-system-arm", "-M", "microbit", "-kernel", image, "-nodefaults", "-display", "none", "-serial", "stdio", "-qmp", f"unix:{self.monitor},server,nowait"]

    def ask(self, command, **arguments):
        """Has the simulator carry a command out."""
        with socket.socket(socket.AF_UNIX) as monitor:
            monitor.connect(str(self.monitor))
            with monitor.makefile("rw") as lines:
                for asked in ({"execute": "qmp_capabilities"}, {"execute": command, "arguments": arguments}):
                    lines.write(json.dumps(asked) + "\n")
                    lines.flush()
                    while '"return"' not in (told := lines.readline()):
                        if '"error"' in told or not told:
                            raise RuntimeError(f"the simulator does not {command}: {told}")

    def reboot(self, image=None):
        self.ask("memsave", val=0, size=self.FLASH, filename=str(self.flash), **{"cpu-index": 0})
        super().reboot(image)

    def reset(self):
        """Starts the firmware anew. Its UART does not hear behind that, in this simulator."""
        self.ask("system_reset")

    def __exit__(self, *failure):
        super().__exit__(*failure)
        for file in (self.monitor, self.flash):
            file.unlink(missing_ok=True)
