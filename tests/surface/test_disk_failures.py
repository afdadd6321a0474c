"""Servers, as real processes, on a disk that fails: the first failed sync ends them, a full disk does not.

Whatever the disk did, what was acknowledged is there afterwards, and what was not is settled by its key.
"""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.surface.http_server import Reply, new_work
from tests.surface.processes import Deployment, Server, as_replay, deployed, run_riffdb

CALLERS = 4
Work = dict[str, object]


def from_callers(deployment: Deployment, server: Server, works: list[Work]) -> list[Reply]:
    """The replies to all, sent at once."""

    def create(work: Work) -> Reply:
        with server.client(deployment.producer) as client:
            return client.command("CreateWork", work)

    with ThreadPoolExecutor(len(works)) as pool:
        return list(pool.map(create, works))


@pytest.mark.parametrize("fault", ["sync -wal IOError", "write -wal IOError"])
def test_the_first_failed_sync_ends_the_server_and_it_serves_nothing_more(tmp_path: Path, fault: str) -> None:
    before, lost = new_work(), new_work()
    with deployed(tmp_path) as deployment:
        with deployment.serving(faulty=True) as server:
            (stored,) = from_callers(deployment, server, [before])
            deployment.fault.write_text(fault, encoding="utf-8")
            (refused,) = from_callers(deployment, server, [lost])
            assert server.process.ended() == 9
            assert "error[RDB-E-STORAGE]: the store failed and serves nothing more" in server.process.stderr
        deployment.fault.unlink()
        with deployment.serving() as server:
            again, settled = from_callers(deployment, server, [before, lost])
    assert stored.status == 200
    assert (refused.status, refused.json["code"]) == (503, "RDB-E-OUTCOME-UNKNOWN")
    assert refused.json["key"] == lost["request_key"]
    assert again.body == as_replay(stored.body)
    assert settled.json["outcome"] == "Created"
    deployment.check_file()


def test_a_full_disk_refuses_what_writes_and_nothing_else_until_there_is_room(tmp_path: Path) -> None:
    before, refused = new_work(), [new_work() for _ in range(CALLERS)]
    with deployed(tmp_path) as deployment:
        with deployment.serving(faulty=True) as server:
            (stored,) = from_callers(deployment, server, [before])
            deployment.fault.write_text("write -wal FullError", encoding="utf-8")
            replies = from_callers(deployment, server, refused)
            with server.client(deployment.operator) as client:
                read = client.call("GET", f"/v1/rows/WorkItem/{before['organization_id']}/{before['work_id']}")
                health = client.call("GET", "/healthz")
            deployment.fault.unlink()
            later = from_callers(deployment, server, [before, *refused])
            assert server.process.is_running
            assert server.process.stop() == 0
        found = run_riffdb("verify", "--db", deployment.url, "--json")
    assert {(reply.status, reply.json["code"]) for reply in replies} == {(503, "RDB-E-STORAGE")}
    assert all("the disk is full and nothing was written; make room" in reply.json["detail"] for reply in replies)
    assert all(reply.headers["retry-after"] for reply in replies)
    assert (read.status, read.json["revision"]) == (200, "1")
    assert health.status == 200
    assert later[0].body == as_replay(stored.body)
    assert [(reply.status, reply.json["replayed"]) for reply in later[1:]] == [(200, False)] * CALLERS
    assert (found.code, found.json["ok"]) == (0, True)
    deployment.check_file()
