"""boto3's transfer manager against the same server: `boto3_checkpoint.py save|load ENDPOINT BUCKET MIB`; one warm-up,
one timed run."""

import io
import os
import sys

import boto3
import numpy as np

from benchmarks.measure import report, stopwatch


def main(mode: str, endpoint: str, bucket: str, mib: int) -> None:
    client = boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id=os.environ["BENCH_S3_KEY"],
        aws_secret_access_key=os.environ["BENCH_S3_SECRET"],
    )
    data = np.random.default_rng(0).standard_normal((mib << 20) // 4, dtype=np.float32).tobytes()
    key = f"boto3-{os.getpid()}"
    if mode == "load":
        client.upload_fileobj(io.BytesIO(data), bucket, key)
    for _ in range(2):
        received = io.BytesIO()
        with stopwatch() as watch:
            if mode == "save":
                client.upload_fileobj(io.BytesIO(data), bucket, key)
            else:
                client.download_fileobj(bucket, key, received)
    client.delete_object(Bucket=bucket, Key=key)
    report(watch.values(bytes_per_s=len(data) / watch.wall_s))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
