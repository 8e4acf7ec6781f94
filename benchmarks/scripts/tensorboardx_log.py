"""The same 50,000 calls as two scalars each with tensorboardX."""

import tempfile

from tensorboardX import SummaryWriter

from benchmarks.measure import report, stopwatch

CALLS = 50_000


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        writer = SummaryWriter(folder)
        with stopwatch() as watch:
            for step in range(CALLS):
                writer.add_scalar("loss", 0.5, step)
                writer.add_scalar("lr", 0.1, step)
        with stopwatch() as closing:
            writer.close()
        report(watch.values(us_per_call=watch.wall_s / CALLS * 1e6, finish_s=closing.wall_s))


if __name__ == "__main__":
    main()
