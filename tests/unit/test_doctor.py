"""What the doctor says of machines, as the user reads it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from unit.machine import fixtures

from edgerag import advice, doctor
from edgerag.config import ModelSettings
from edgerag.engine.catalog import Catalog
from edgerag.errors import ProcessorUnfit
from edgerag.machine.caches import read_caches
from edgerag.machine.limits import read_limits
from edgerag.machine.topology import read_topology
from edgerag.types import Finding, Suggestion
from edgerag.ui import output


def findings_on(
    monkeypatch: pytest.MonkeyPatch, system: Path, *, threads: int = 0, model_bytes: int = 0
) -> dict[str, list[Finding]]:
    """The findings by name, as they would be on the machine of the tree ``system``."""
    topology = replace(read_topology(system), can_pin=True)
    monkeypatch.setattr(doctor, "read_topology", lambda: topology)
    monkeypatch.setattr(doctor, "read_caches", lambda cpus: read_caches(cpus, system))
    monkeypatch.setattr(doctor, "read_limits", lambda cpus: read_limits(cpus, system))
    found: dict[str, list[Finding]] = {}
    for finding in doctor.machine_findings(threads, model_bytes=model_bytes):
        found.setdefault(finding.name, []).append(finding)
    return found


def test_a_hybrid_laptop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = findings_on(monkeypatch, fixtures.hybrid_laptop(tmp_path))
    assert found["cores"][0].message == "12 physical, 16 logical, 4 performance and 8 efficiency cores"
    assert "L3 18 MiB (CPUs 0-15)" in found["caches"][0].message
    assert "NUMA" not in found, "one node: nothing to say"
    plan, *why = found["plan"]
    assert plan.message == (
        "prefill with 4 threads on CPUs 0,2,4,6, decoding with 4 threads on CPUs 0,2,4,6, "
        "retrieval beside it with 8 threads on CPUs 8-15"
    )
    assert any("efficiency cores" in finding.message for finding in why)
    assert "GB/s" in found["bandwidth"][0].message


def test_a_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = findings_on(monkeypatch, fixtures.dual_socket_server(tmp_path), model_bytes=10**9)
    assert [finding.message for finding in found["NUMA"]] == [
        "node 0: CPUs 0-15,32-47, 68.7 GB, 2.1x as far to node 1",
        "node 1: CPUs 16-31,48-63, 68.7 GB, 2.1x as far to node 0",
    ]
    assert any("NUMA node 0" in finding.message for finding in found["plan"])


def test_a_container_with_a_quota_names_no_cpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = findings_on(monkeypatch, fixtures.container(tmp_path))
    assert found["cores"][0].message == "8 physical, 8 logical, quota of 1.5 cores"
    assert found["plan"][0].message == "prefill with 1 thread, decoding with 1 thread, retrieval shares them"


def test_a_cpuset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = findings_on(monkeypatch, fixtures.cpuset_of_two(tmp_path))
    assert "the control group allows CPUs 2-3" in found["cores"][0].message


@pytest.mark.parametrize("machine", [fixtures.bare_virtual_machine, fixtures.offline_cpus, fixtures.raspberry_pi_5])
def test_what_is_not_told_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, machine: Callable[[Path], Path]
) -> None:
    found = findings_on(monkeypatch, machine(tmp_path), threads=1)
    assert all(finding.severity in ("ok", "info") for name in ("cores", "plan", "limits") for finding in found[name])
    assert "machine.threads asks for 1." in [finding.message for finding in found["plan"]]


def test_this_machine() -> None:
    names = {finding.name for finding in doctor.machine_findings(0)}
    assert {"cpu", "cores", "caches", "memory", "bandwidth", "limits", "plan"} <= names


def test_a_reranker_is_looked_for_only_where_one_is_named(catalog: Catalog) -> None:
    names = [finding.name for finding in doctor.model_findings(catalog, ModelSettings())]
    assert names == ["chat model", "embedder model"]
    *_, missing = doctor.model_findings(catalog, ModelSettings(reranker="bge"))
    assert (missing.name, missing.severity) == ("reranker model", "error")
    assert "'bge'" in missing.message


def test_each_check_has_a_state_and_those_that_count_have_a_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = findings_on(monkeypatch, fixtures.hybrid_laptop(tmp_path))
    assert {finding.state for findings in found.values() for finding in findings} <= {"ok", "warn", "fail"}
    for name, unit in (("cores", "cores"), ("memory", "bytes"), ("bandwidth", "bytes/s")):
        assert found[name][0].figure and found[name][0].unit == unit


def test_a_disk_without_room_is_a_warning_with_a_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = advice.shutil.disk_usage(tmp_path)
    assert advice.disk_finding(tmp_path / "not" / "there").figure
    monkeypatch.setattr(advice.shutil, "disk_usage", lambda _: usage._replace(free=1_000))
    finding = advice.disk_finding(tmp_path)
    assert finding.state == "warn" and finding.remedy and finding.figure == 1_000


def test_busy_processors_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(advice.CpuLoad, "shares", lambda _: {0: 1.0, 1: 0.9})
    assert advice.load_finding().state == "warn"
    monkeypatch.setattr(advice.CpuLoad, "shares", lambda _: {0: 0.0, 1: 0.2})
    assert advice.load_finding().state == "ok"
    monkeypatch.setattr(advice.CpuLoad, "shares", lambda _: {})
    assert advice.load_finding().figure is None


def test_what_the_doctor_tells_programs_and_people() -> None:
    suggestion = Suggestion(
        "width", "not among the hits", "It is 10 wide.", "retrieval.ef_search", "80", "do it", "x", ()
    )
    findings = [Finding("a", "info", "fine"), Finding("b", "warning", "so so", "Mend it.", figure=2.0, unit="cores")]
    record = output.doctor_record(findings, [suggestion])
    assert record["state"] == "warn" and [one["state"] for one in record["findings"]] == ["ok", "warn"]
    assert record["suggestions"][0]["command"] == "do it"
    assert "do it" in output.suggestions_text([suggestion]) and output.suggestions_text([]) == ""
    assert output.doctor_record([Finding("c", "error", "no")], [])["state"] == "fail"


@pytest.mark.parametrize(("library", "name"), [("llama.cpp", "engine"), ("hnswlib", "index")])
def test_a_foreign_build_is_named_and_hides_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, library: str, name: str
) -> None:
    def trouble(_: Path, tried: str) -> ProcessorUnfit | None:
        return ProcessorUnfit(f"{tried} was built for another processor.") if tried == library else None

    monkeypatch.setattr(doctor, "find_trouble", trouble)
    found = {(finding.name, finding.severity) for finding in doctor.engine_findings(tmp_path)}
    assert found == {(name, "error")} | ({("engine", "ok")} if library == "hnswlib" else set())
