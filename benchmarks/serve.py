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


def post_all(port: int, files: list[bytes]) -> None:
    """Each client has a connection of its own and keeps it."""

    def client(mine: list[bytes]) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port)
        for data in mine:
            connection.request("POST", "/detect", data)
            answer = connection.getresponse()
            assert answer.status == 200, answer.read()
            answer.read()

    with ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(client, [files[i::CLIENTS] for i in range(CLIENTS)]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few pictures, only to see that it works")
    parser.add_argument("--detector", default="cifar10-rotations")
    arguments = parser.parse_args()
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
    post_all(port, files[:CLIENTS])  # warm, both ways
    detector.detect(files[:CLIENTS], n=N)
    batch = service = float("inf")
    for _ in range(repeats):  # in turns, so that a slow moment hits both alike
        start = time.perf_counter()
        detector.detect(files, n=N)
        batch = min(batch, time.perf_counter() - start)
        start = time.perf_counter()
        post_all(port, files)
        service = min(service, time.perf_counter() - start)
    server.should_exit = True
    thread.join()
    batcher = app.state.service.batcher
    print(f"{count} pictures, n = {N}, {detector.name}")
    print(f"  one large batch               {count / batch:8.1f} images/s")
    print(f"  {CLIENTS} clients of the service      {count / service:8.1f} images/s")
    print(f"  mean batch                    {batcher.points / batcher.batches:8.1f}")
    print(f"  ratio                         {batch / service:8.2f} (goal: at least 0.70)")


if __name__ == "__main__":
    main()
