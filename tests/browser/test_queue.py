"""A dataset in queue mode: what counts, what is lent and what waits, as the coordinator has it."""

import pytest
from playwright.sync_api import Locator, Page, expect

from strata.client.channel import Channel
from strata.client.datasets import DatasetsClient
from strata.client.queues import QueuesClient
from strata.client.workers import WorkersClient
from strata.types.datasets import DatasetSpec
from strata.types.queues import LeaseProgress
from strata.types.workers import WorkerSpec
from tests.browser.site import Site

pytestmark = pytest.mark.browser


def count(panel: Locator, label: str) -> Locator:
    return panel.get_by_role("listitem").filter(has_text=label).locator(".font-mono").first


def test_the_data_page_follows_a_queue(page: Page, site: Site) -> None:
    with Channel(site.cluster.endpoints["grpc"]) as channel:
        real = site.get("/api/datasets")[0]
        spec = DatasetSpec(
            dataset_id="queued", path=real["path"], format=real["format"], total_samples=2_500, shard_size=1_000
        )
        DatasetsClient(channel).register(spec)
        workers = WorkersClient(channel)
        member = workers.register(WorkerSpec(worker_id="queue-reader", incarnation="queue-reader-1"))
        queue = QueuesClient(channel, member, gang=False)
        lease = queue.claim("queued", 0).lease
        assert lease is not None
        queue.commit("queued", 0, [LeaseProgress(lease_id=lease.lease_id, row=4)])

        site.open(page, "/ui/data?ds=queued")
        panel = page.locator("section", has=page.get_by_role("heading", name="Queue", exact=True))
        expect(panel).to_contain_text("epoch 0")
        left = lease.num_rows - 4
        for label, samples in (("Committed", 4), ("Lent", left), ("Waiting", 2_500 - 4 - left)):
            expect(count(panel, label)).to_have_text(f"{samples:,}")
        expect(panel).to_contain_text("1 of 3 shards are lent: queue-reader 1")

        queue.commit("queued", 0, [LeaseProgress(lease_id=lease.lease_id, row=lease.num_rows)])
        expect(panel).to_contain_text("0 of 3 shards are lent")
        expect(count(panel, "Committed")).to_have_text(f"{lease.num_rows:,}")
        workers.deregister(member)
