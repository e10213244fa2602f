"""A terminal for tests: a program that runs in one, what it wrote, keys pressed."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time


class InTerminal:
    def __init__(self, command, env, columns=100, lines=30, cwd="/"):
        self.master, other = pty.openpty()
        fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.process = subprocess.Popen(command, stdin=other, stdout=other, stderr=other, cwd=cwd, start_new_session=True,
                                        env={"TERM": "xterm", **env}, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(other)
        self.said = ""

    def read(self, seconds=0.05):
        end = time.monotonic() + seconds
        while True:
            ready, _, _ = select.select([self.master], [], [], max(0, end - time.monotonic()))
            if not ready:
                return self.said
            try:
                piece = os.read(self.master, 65536)
            except OSError:  # the other side is closed
                return self.said
            if not piece:
                return self.said
            self.said += piece.decode(errors="replace")

    def wait_for(self, condition, what, seconds=30):
        end = time.monotonic() + seconds
        while not condition(self.read()):
            assert time.monotonic() < end, "waited %s s for %s; the terminal shows %r" % (seconds, what, self.said[-2000:])
        return self.said

    def press(self, keys):
        os.write(self.master, keys.encode())

    def end(self, seconds=30):
        """Its exit code, once it has ended by itself."""
        end = time.monotonic() + seconds
        while self.process.poll() is None:
            assert time.monotonic() < end, "it does not end; the terminal shows %r" % self.said[-2000:]
            self.read()
        self.read()
        return self.process.returncode

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.master)
