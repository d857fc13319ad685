"""docs/inspect.gif: the Inspect page of the running app, first draws one by one, then n. `python -m tools.make_inspect_gif`."""

import sys
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).parent.parent
STEPS = ("n=1&draw=1", "n=5&draw=2", "n=5&draw=4", "n=20&draw=7")
"""What the link asks for in each picture."""
SIZE = (1400, 900)
SHOWN = (980, 630)
PAUSE = 1400  # milliseconds


def main(out: Path = ROOT / "docs" / "inspect.gif") -> None:
    sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
    import io

    from browser import chromium, served

    frames = []
    with served(ROOT / "app.py") as address, chromium() as browser:
        page = browser.new_page(viewport={"width": SIZE[0], "height": SIZE[1]})
        for step in STEPS:
            page.goto(f"{address}/inspect?detector=fashion-rotations&sample=digits-sample-3&{step}")
            page.locator(".js-plotly-plot").first.wait_for(timeout=180_000)
            page.wait_for_timeout(4_000)
            frames.append(
                Image.open(io.BytesIO(page.screenshot()))
                .convert("RGB")
                .resize(SHOWN, Image.Resampling.LANCZOS)
            )
    # The colours that cover most: by counts alone the few vermillion pixels of a verdict would turn brown.
    palette = frames[1].quantize(256, Image.Quantize.MAXCOVERAGE)
    small = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    small[0].save(out, save_all=True, append_images=small[1:], duration=PAUSE, loop=0, optimize=True)
    print(f"{out}: {out.stat().st_size:,} bytes, {len(frames)} pictures")


if __name__ == "__main__":
    main()
