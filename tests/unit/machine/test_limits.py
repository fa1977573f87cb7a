"""Limits of heat and power, from the files that tell them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from unit.machine import fixtures

from edgerag.machine.limits import read_limits

CPU = fixtures.CPU
SUPPLY = "sys/class/power_supply"
RAPL = "sys/class/powercap/intel-rapl:0"
BATTERY = {f"{SUPPLY}/BAT0/type": "Battery", f"{SUPPLY}/BAT0/status": "Discharging"}
HELD = {f"{CPU}/cpu{n}/cpufreq/scaling_max_freq": "2000000" for n in (0, 1)}
ALL_FILES = {
    **BATTERY,
    **HELD,
    f"{CPU}/cpu0/cpufreq/cpuinfo_max_freq": "4000000",
    f"{CPU}/cpu0/cpufreq/scaling_governor": "powersave",
    f"{CPU}/cpu0/cpufreq/scaling_driver": "intel_pstate",
    f"{CPU}/cpu0/thermal_throttle/core_throttle_count": "5",
    f"{CPU}/intel_pstate/no_turbo": "1",
    "sys/class/thermal/cooling_device0/type": "Processor",
    "sys/class/thermal/cooling_device0/cur_state": "2",
    f"{RAPL}/name": "package-0",
    f"{RAPL}/constraint_0_name": "long_term",
    f"{RAPL}/constraint_0_power_limit_uw": "15000000",
    "sys/firmware/acpi/platform_profile": "low-power",
}


@pytest.mark.parametrize(
    ("files", "severity", "words"),
    [
        (
            HELD | {f"{CPU}/cpu{n}/cpufreq/cpuinfo_max_freq": "4000000" for n in (0, 1)},
            "warning",
            "Held to 2.0 of 4.0 GHz (scaling_max_freq): CPUs 0-1.",
        ),
        (
            {f"{CPU}/cpu0/cpufreq/scaling_governor": "powersave", f"{CPU}/cpu0/cpufreq/scaling_driver": "acpi-cpufreq"},
            "warning",
            "Kept at the lowest frequency (governor powersave): CPU 0.",
        ),
        (
            {
                f"{CPU}/cpu1/cpufreq/scaling_driver": "amd-pstate-epp",
                f"{CPU}/cpu1/cpufreq/energy_performance_preference": "power",
            },
            "warning",
            "Told to save power rather than be fast (energy_performance_preference): CPU 1.",
        ),
        ({f"{CPU}/intel_pstate/no_turbo": "1"}, "info", "Turbo frequencies are switched off"),
        ({f"{CPU}/cpufreq/boost": "0"}, "info", "Turbo frequencies are switched off"),
        ({f"{CPU}/cpu0/thermal_throttle/package_throttle_count": "17"}, "info", "up to 17 times"),
        (
            {
                "sys/class/thermal/cooling_device0/type": "thermal-cpufreq-0",
                "sys/class/thermal/cooling_device0/cur_state": "3",
            },
            "warning",
            "slowed down now to keep it cool",
        ),
        (
            {
                f"{RAPL}/name": "package-0",
                f"{RAPL}/constraint_0_name": "long_term",
                f"{RAPL}/constraint_0_power_limit_uw": "15000000",
                f"{RAPL}/constraint_1_name": "short_term",
                f"{RAPL}/constraint_1_power_limit_uw": "28000000",
            },
            "info",
            "Power of package-0 is limited to 15 W long term, 28 W short term.",
        ),
        ({"sys/firmware/acpi/platform_profile": "low-power"}, "warning", "platform profile is low-power"),
        (BATTERY, "info", "On battery"),
    ],
)
def test_a_limit_is_told(tmp_path: Path, files: dict[str, str], severity: str, words: str) -> None:
    findings = read_limits([0, 1], fixtures.put(tmp_path, files))
    assert [(finding.severity, words in finding.message) for finding in findings] == [(severity, True)]


@pytest.mark.parametrize(
    "files",
    [
        {},
        # The normal state of these drivers, whatever its name says.
        {f"{CPU}/cpu0/cpufreq/scaling_governor": "powersave", f"{CPU}/cpu0/cpufreq/scaling_driver": "intel_pstate"},
        BATTERY | {f"{SUPPLY}/AC/type": "Mains", f"{SUPPLY}/AC/online": "1"},
        {f"{SUPPLY}/mouse/type": "Battery", f"{SUPPLY}/mouse/scope": "Device", f"{SUPPLY}/mouse/status": "Discharging"},
        {"sys/class/thermal/cooling_device0/type": "Fan", "sys/class/thermal/cooling_device0/cur_state": "1"},
        {"sys/firmware/acpi/platform_profile": "balanced", f"{CPU}/cpufreq/boost": "1"},
        {f"{RAPL}/name": "core", f"{RAPL}/constraint_0_power_limit_uw": "15000000"},
    ],
)
def test_what_is_no_limit(tmp_path: Path, files: dict[str, str]) -> None:
    findings = read_limits([0, 1], fixtures.put(tmp_path, files))
    assert [finding.severity for finding in findings] == ["ok"]


def test_a_laptop_at_rest_has_none(tmp_path: Path) -> None:
    assert [f.severity for f in read_limits(range(16), fixtures.hybrid_laptop(tmp_path))] == ["ok"]


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(garbage=st.binary(max_size=30))
def test_garbage_is_no_error(tmp_path: Path, garbage: bytes) -> None:
    fixtures.put(tmp_path, ALL_FILES)
    for name in ALL_FILES:
        (tmp_path / name).write_bytes(garbage)
    assert read_limits([0, 1], tmp_path)


def test_this_machine_can_be_read() -> None:
    assert all(finding.severity != "error" for finding in read_limits([0]))
