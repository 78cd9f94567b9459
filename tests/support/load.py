"""Load on a proxy that is never to fail: what goes wrong meanwhile is kept for the test to look at.

    with Load(proxy.web) as load:
        proxy.reload(other)
    self.assertEqual(load.failures, [])
"""

import threading

from support import wire
from support.clockwise import wait_until


def brief(exchange):
    """What an Origin answers that costs the test little."""
    exchange.read_body()
    exchange.reply(200, b"ok", {"X-Server": exchange.origin.name})


class Load:
    """Clients with keep-alive that never pause; every answer but a 200 is a failure.

    What they ask for begins with `prefix`, of `host`.
    """

    def __init__(self, address, clients=4, prefix="/", host="h.example"):
        self.address, self.prefix, self.host = address, prefix, host
        self.served, self.failures = 0, []
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(n,), daemon=True) for n in range(clients)]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        self.wait_more()
        return self

    def __exit__(self, *_):
        self._stop.set()
        for thread in self._threads:
            thread.join(30)

    def wait_more(self, answers=10):
        """Waits until so many more were answered, or something failed."""
        before = self.served
        wait_until(lambda: self.served > before + answers or self.failures, "load")

    def _run(self, number):
        sent = 0
        try:
            with wire.Connection(self.address, timeout=20) as connection:
                while not self._stop.is_set():
                    sent += 1
                    method, body = ("POST", b"x" * 100) if sent % 5 == 0 else ("GET", b"")
                    answer = connection.request(method, f"{self.prefix}{number}/{sent}", body=body, host=self.host)
                    if answer.status != 200 or not answer.complete:
                        self.failures.append((sent, answer.status, answer.text[:100]))
                    self.served += 1
        except (OSError, wire.Quiet) as error:
            self.failures.append((sent, repr(error)))
