"""Servers of this machine's loopback, for as long as a test needs them."""

import contextlib
import socket
import socketserver
import threading
from collections.abc import Iterator


@contextlib.contextmanager
def answering(server: socketserver.TCPServer) -> Iterator[str]:
    """Let a server answer until the block ends; yield its address."""
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextlib.contextmanager
def silent() -> Iterator[str]:
    """Take connections until the block ends and never answer; yield the address."""
    with socket.create_server(("127.0.0.1", 0)) as taking:
        yield f"http://127.0.0.1:{taking.getsockname()[1]}"
