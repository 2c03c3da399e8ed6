"""A sweep on a Slurm of this computer's own: the jobs are Dask's workers, and one of them is cancelled meanwhile."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import ampsched

ROOT = Path(__file__).resolve().parents[2]
SLURM = ["sh", str(ROOT / "tests/slurm/slurm.sh")]
POLICIES = ["cfs", "colab:decay=0.5..1.0:20"]


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder that jobs can write to, while Slurm runs."""
    missing = subprocess.run(
        ["sh", ROOT / "tools/check-slurm.sh"], capture_output=True, text=True, check=False
    )
    if missing.returncode:
        pytest.skip(missing.stderr.strip())
    folder = tmp_path_factory.mktemp("slurm")
    for each in (folder, *folder.parents[:2]):
        each.chmod(0o755)  # munged looks at every folder above its own
    subprocess.run([*SLURM, "start", folder], check=True)
    before = os.environ.get("SLURM_CONF")
    os.environ["SLURM_CONF"] = str(folder / "slurm.conf")
    try:
        yield folder
    finally:
        subprocess.run(["scancel", "--user", "root"], check=False)
        subprocess.run([*SLURM, "stop", folder], check=True)
        os.environ.pop("SLURM_CONF")
        if before is not None:
            os.environ["SLURM_CONF"] = before


def jobs() -> list[str]:
    """The numbers of all running jobs."""
    listed = subprocess.run(
        ["squeue", "--noheader", "--format", "%i", "--states", "RUNNING"],
        capture_output=True,
        text=True,
        check=True,
    )
    return listed.stdout.split()


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_a_cancelled_job_loses_nothing(slurm: Path) -> None:
    from dask_jobqueue import SLURMCluster
    from distributed import Client

    cancelled: list[str] = []

    def cancel_one(done: int, total: int) -> None:
        if done < total and not cancelled:
            cancelled.append(jobs()[0])
            subprocess.run(["scancel", cancelled[0]], check=True)

    with (
        SLURMCluster(
            cores=1,
            memory="1GB",
            processes=1,
            interface="lo",
            python=sys.executable,
            local_directory=str(slurm),
            log_directory=str(slurm),
            scheduler_options={"dashboard_address": "127.0.0.1:0"},
        ) as cluster,
        Client(cluster) as client,
    ):
        cluster.scale(jobs=2)
        client.wait_for_workers(2, timeout=60)
        assert len(jobs()) == 2
        found = ampsched.sweep(
            "2B2S",
            "sync-1",
            POLICIES,
            repeat=4,
            folder=slurm / "cluster",
            executor=client.get_executor(),
            jobs=2,
            progress=cancel_one,
        )
    assert cancelled, "no job was cancelled"
    assert found.frame["key"].n_unique() == found.frame.height == 168
    ampsched.sweep("2B2S", "sync-1", POLICIES, repeat=4, folder=slurm / "one", jobs=1)
    assert (slurm / "cluster/table.parquet").read_bytes() == (slurm / "one/table.parquet").read_bytes()
