"""A program that behaves as vLLM does towards whoever starts it: it takes the flags, answers /health, ends on SIGINT.

Faults, named in STAND_IN: `sick` never answers well, `dies` ends at start, `dies-later` ends a moment after it is well,
`deaf` ignores SIGINT, `parent` has a child in its group that ignores SIGINT.
"""

from __future__ import annotations

import argparse
import http.server
import os
import signal
import subprocess
import sys
import threading
import time

FAULT = os.environ.get("STAND_IN", "")


class Server(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        well = self.path == "/health" and FAULT != "sick"
        self.send_response(200 if well else 503)
        self.send_header("Content-Length", "0")
        self.end_headers()
        if well and FAULT == "dies-later":
            threading.Timer(0.3, os._exit, (9,)).start()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--host")
    parser.add_argument("--port", type=int)
    asked, rest = parser.parse_known_args()
    sys.stdout.write(f"loading {' '.join(rest[:2])}\n")
    if FAULT == "dies":
        sys.stderr.write("torch.OutOfMemoryError: no memory\x1b[31m left\n")
        raise SystemExit(7)
    if FAULT in ("deaf", "parent"):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    if FAULT == "parent":
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        sys.stdout.write(f"child {child.pid}\n")
        signal.signal(signal.SIGINT, lambda *_: os._exit(0))
    sys.stdout.flush()
    time.sleep(0.2)
    try:
        http.server.ThreadingHTTPServer((asked.host, asked.port), Server).serve_forever()
    except KeyboardInterrupt:
        sys.stdout.write("ended by SIGINT\n")


if __name__ == "__main__":
    main()
