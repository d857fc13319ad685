"""The service against one large batch: images per second, measured in one run.

    python -m benchmarks.serve            # about two minutes; let nothing else run
    python -m benchmarks.serve --quick    # only to see that it works

32 clients post one picture after the other over HTTP, each waits for its answer. Goal: at least 70 % of the images per
second that `detect` reaches with all pictures in one call. The clients are threads of this process and take their share of
the machine too, as they would not in use.
"""

import argparse
import http.client
import io
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import uvicorn
from PIL import Image

from idecode_core.folder.detector import load_detector
from idecode_core.serve.service import make_service

CLIENTS = 32
N = 5


def pictures(count: int, side: int = 32) -> list[bytes]:
    generator = np.random.default_rng(0)
    found = []
    for _ in range(count):
        buffer = io.BytesIO()
        Image.fromarray(generator.integers(0, 256, (side, side, 3), dtype=np.uint8)).save(buffer, "png")
        found.append(buffer.getvalue())
    return found


def post_all(port: int, files: list[bytes], clients: int) -> list[float]:
    """How long each waited, in seconds. Each client has a connection of its own and keeps it."""

    def client(mine: list[bytes]) -> list[float]:
        waits = []
        connection = http.client.HTTPConnection("127.0.0.1", port)
        for data in mine:
            start = time.perf_counter()
            connection.request("POST", "/detect", data)
            answer = connection.getresponse()
            assert answer.status == 200, answer.read()
            answer.read()
            waits.append(time.perf_counter() - start)
        return waits

    with ThreadPoolExecutor(clients) as pool:
        return [
            wait for waits in pool.map(client, [files[i::clients] for i in range(clients)]) for wait in waits
        ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few pictures, only to see that it works")
    parser.add_argument("--detector", default="cifar10-rotations")
    parser.add_argument("--clients", type=int, default=CLIENTS)
    arguments = parser.parse_args()
    clients = arguments.clients
    count, repeats = (64, 1) if arguments.quick else (256, 2)
    detector = load_detector(arguments.detector)
    app = make_service(detector)
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.05)
    port = server.servers[0].sockets[0].getsockname()[1]
    files = pictures(count)
    post_all(port, files[:clients], clients)  # warm, both ways
    start = time.perf_counter()
    detector.detect(files[:clients], n=N)
    together = time.perf_counter() - start
    (alone,) = post_all(port, files[:1], 1)
    batch = service = float("inf")
    for _ in range(repeats):  # in turns, so that a slow moment hits both alike
        start = time.perf_counter()
        detector.detect(files, n=N)
        batch = min(batch, time.perf_counter() - start)
        start = time.perf_counter()
        waits = post_all(port, files, clients)
        service = min(service, time.perf_counter() - start)
    server.should_exit = True
    thread.join()
    batcher = app.state.service.batcher
    print(f"{count} pictures, n = {N}, {detector.name}")
    print(f"  one large batch               {count / batch:8.1f} images/s")
    print(f"  {clients} clients of the service      {count / service:8.1f} images/s")
    print(f"  median wait of a client       {np.median(waits):8.2f} s, the longest {max(waits):.2f} s")
    print(f"  one request alone             {alone:8.2f} s; {clients} pictures in one batch {together:.2f} s")
    print(f"  mean batch                    {batcher.points / batcher.batches:8.1f}")
    print(f"  ratio                         {batch / service:8.2f} (goal: at least 0.70)")


if __name__ == "__main__":
    main()
