"""Machines of which only the SSH server's first line is there: one listener on many loopback addresses. Real TCP, real addresses; no
SSH behind it. `down` addresses are refused: their connection is closed before anything is said."""

import selectors
import socket
import threading


class Banners:
    """Listens on 127.A.B.C of the given addresses, all on one port."""

    def __init__(self, addresses, port=0, text=b"SSH-2.0-Stand-in\r\n"):
        self.text, self.down, self.callers = text, set(), {}
        self.selector = selectors.DefaultSelector()
        self.sockets = {}
        self.port = port
        for address in addresses:
            self.listen(address)
        self.over = False
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def listen(self, address):
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, self.port))
        self.port = listener.getsockname()[1]
        listener.listen(64)
        listener.setblocking(False)
        self.sockets[address] = listener
        self.selector.register(listener, selectors.EVENT_READ, address)

    def serve(self):
        while not self.over:
            for key, _ in self.selector.select(0.2):
                try:
                    caller, _ = key.fileobj.accept()
                except OSError:
                    continue
                self.callers[key.data] = self.callers.get(key.data, 0) + 1
                try:
                    if key.data not in self.down:
                        caller.sendall(self.text)
                except OSError:
                    pass
                caller.close()

    def stop(self):
        self.over = True
        self.thread.join()
        for listener in self.sockets.values():
            listener.close()
