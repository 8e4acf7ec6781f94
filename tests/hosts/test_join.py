"""The page docs/deploying.md, command by command, on three fresh hosts: one starts Strata, the printed line joins the
second, the third runs a training. Three commands; nothing of it can be read on the wire."""

import re
from pathlib import Path

import pytest

from tests.support.namespaces import Host, Site, line_with
from tests.support.networks import lacking
from tests.support.pages import ROOT, blocks
from tests.support.site_job import start_head, ticket
from tests.support.waiting import eventually

pytestmark = [pytest.mark.hosts, pytest.mark.timeout(600), pytest.mark.skipif(bool(lacking()), reason=lacking())]

_SLOTS = {"STRATA_SLOTS": "2"}  # four ranks need two hosts


def _commands() -> list[str]:
    """Those of the page, in their order: three that train, then those about tokens, line by line."""
    page = blocks(ROOT / "docs" / "deploying.md")
    return [one.code.strip() for one in page if one.heading == "Several hosts: three commands"]


def _as_typed(command: str, word: str) -> str:
    typed, count = re.subn(r"\S+…@\S+:\d+", word, command)
    assert count == 1, command
    return typed


def _start(site: Site) -> tuple[Host, str, str]:
    """The first host, and what it prints for the others."""
    head = site.host("head")
    said = head.start(_commands()[0].replace("10.0.0.5", head.address), **_SLOTS)
    host = f"[{head.address}]" if ":" in head.address else head.address
    assert f"https://{host}:3000" in line_with(said, "Dashboard")
    return head, ticket(line_with(said, "strata agent --join")), ticket(line_with(said, "strata run --join"))


@pytest.mark.parametrize("net", ["10.219.77", "fd42:7::"], ids=["ipv4", "ipv6"])
def test_three_commands_train_on_two_hosts_and_nobody_on_the_wire_can_read_it(tmp_path: Path, net: str) -> None:
    with Site(tmp_path, net.removesuffix(":")) as site:
        site.listen()
        head, agents, operators = _start(site)
        second, third = site.host("second"), site.host("third")
        second.start(_as_typed(_commands()[1], agents), **_SLOTS)
        example = ROOT / "examples" / "train_numpy.py"
        command = _as_typed(_commands()[2], operators).replace("examples/train_numpy.py", str(example))
        ran = third.run(f"{command} --data {tmp_path}/shared")
        assert ran.returncode == 0, ran.stderr
        assert "done: loss" in ran.stdout
        for host in (head, second):
            assert list((host.folder / ".strata" / "agent" / "logs").glob("*/1/*")), f"no rank ran on {host.name}"
        listed = third.run("strata runs")  # by what the third command kept
        assert "train_numpy" in listed.stdout, listed.stderr
        torch = third.run(f"strata run --workers 4 {ROOT}/examples/train_torch_ddp.py")
        assert "done on 4 ranks" in torch.stdout, torch.stderr
        site.stop_listening()
        heard = site.capture.read_bytes()
        for port in (50051, 50052, 3000):
            assert site.packets(port) > 10, f"nothing was heard of port {port}"
        secrets = [ticket.split(".")[1] for ticket in (agents, operators)]
        secrets += [(head.folder / ".strata" / "token").read_text().strip()]
        for word in ("Bearer", "train_numpy", "train/loss", "done: loss", "ledger", "strata.agents", *secrets):
            assert word.encode() not in heard, f"{word!r} can be read on the wire"


def test_the_same_words_are_found_where_there_is_no_tls(tmp_path: Path) -> None:
    """That the search above would find something."""
    with Site(tmp_path, "10.219.78") as site:
        site.listen()
        head, other = site.host("head"), site.host("other")
        plain = {"STRATA_INSECURE": "1"}
        said = head.start(f"strata up --host {head.address} --no-agent", **plain)
        line_with(said, "Dashboard")
        token = (head.folder / ".strata" / "token").read_text().strip()
        asked = other.run("strata tasks", COORDINATOR_ADDR=f"{head.address}:50051", STRATA_TOKEN=token, **plain)
        assert asked.returncode == 0, asked.stderr
        site.stop_listening()
        heard = site.capture.read_bytes()
        assert b"Bearer" in heard
        assert token.encode() in heard


def test_an_agent_is_found_by_the_address_that_it_advertises(tmp_path: Path) -> None:
    """A second network card: the ranks of other hosts meet rank 0 there."""
    with Site(tmp_path, "10.219.79") as site:
        _, agents, operators = start_head(site)
        second = site.host("second")
        second.start(f"strata agent --join {agents} --advertise 10.99.0.2", **_SLOTS)
        script = tmp_path / "where.py"
        script.write_text("import os; print('meets at', os.environ['MASTER_ADDR'])")
        ran = site.host("third").run(f"strata run --join {operators} {script}")
        assert "meets at 10.99.0.2" in ran.stdout, ran.stderr


def test_the_pages_commands_about_tokens(tmp_path: Path) -> None:
    """Typed on the first host; who holds a token that is revoked is shut out."""
    lines = [line.partition("#")[0].strip() for line in _commands()[3].splitlines()]
    with Site(tmp_path, "10.219.80") as site:
        head, _, operators = start_head(site)
        made = [head.run(line) for line in lines[:3]]
        assert [ran.returncode for ran in made] == [0, 0, 0], [ran.stderr for ran in made]
        agent, _, viewer = (ticket(ran.stdout).removeprefix("STRATA_JOIN=") for ran in made)
        listed = head.run(lines[3])
        second, third = site.host("second"), site.host("third")
        assert all(word.partition(".")[0] in listed.stdout for word in (agent, viewer, operators)), listed.stdout
        second.start(f"strata agent --join {agent}", **_SLOTS)
        eventually("the agent", (second.folder / ".strata" / "agent.json").exists, within_s=60)
        assert third.run("strata tasks", STRATA_JOIN=viewer).returncode == 0
        revoked, count = re.subn(r"(?<=revoke )\w+", viewer.partition(".")[0], lines[4])
        assert count == 1
        assert head.run(revoked).returncode == 0
        refused = third.run("strata tasks", STRATA_JOIN=viewer)
        assert refused.returncode == 1, refused.stdout
        assert "revoked" in refused.stderr
