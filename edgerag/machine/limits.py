"""What holds the processor below what it could do: heat, power, settings of the system. Findings, never errors.

Each source is a file that many machines do not have; what is not there is not said.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from edgerag.machine.kernel_files import name_cpus, read_number, read_text
from edgerag.types import Finding

_CPUS = Path("sys/devices/system/cpu")
_NAME = "limits"
# Below this share of the highest frequency a ceiling is felt; governors and rounding make up the rest.
_FELT = 0.95
# In these modes the driver itself chooses the frequency, and "powersave" is the name of its normal way of doing so.
_CHOOSING_DRIVERS = frozenset({"intel_pstate", "amd-pstate-epp"})
_SLOW_PROFILES = frozenset({"low-power", "quiet", "cool"})


def read_limits(cpus: Iterable[int], system: Path = Path("/")) -> list[Finding]:
    """What can be read of limits on ``cpus``; one line that there is none if so."""
    cpus = sorted(cpus)
    findings = [
        *_frequency(cpus, system),
        *_governor(cpus, system),
        *_boost(system),
        *_heat(cpus, system),
        *_power_limits(system),
        *_profile(system),
        *_battery(system),
    ]
    return findings or [Finding(_NAME, "ok", "none seen: no ceiling on frequency, power or heat is told here")]


def _frequency(cpus: list[int], system: Path) -> Iterator[Finding]:
    held: dict[tuple[int, int], list[int]] = {}
    for cpu in cpus:
        folder = system / _CPUS / f"cpu{cpu}" / "cpufreq"
        now, most = read_number(folder / "scaling_max_freq"), read_number(folder / "cpuinfo_max_freq")
        if now and most and 0 < now < most * _FELT:
            held.setdefault((now, most), []).append(cpu)
    for (now, most), members in held.items():
        yield Finding(
            _NAME,
            "warning",
            f"Held to {now / 1e6:.1f} of {most / 1e6:.1f} GHz (scaling_max_freq): {name_cpus(members)}.",
            "Choose a faster power profile, or raise the limit: cpupower frequency-set --max.",
        )


def _governor(cpus: list[int], system: Path) -> Iterator[Finding]:
    slow, saving = [], []
    for cpu in cpus:
        folder = system / _CPUS / f"cpu{cpu}" / "cpufreq"
        chooses = read_text(folder / "scaling_driver") in _CHOOSING_DRIVERS
        if read_text(folder / "scaling_governor") == "powersave" and not chooses:
            slow.append(cpu)
        elif chooses and read_text(folder / "energy_performance_preference") == "power":
            saving.append(cpu)
    if slow:
        yield Finding(
            _NAME,
            "warning",
            f"Kept at the lowest frequency (governor powersave): {name_cpus(slow)}.",
            "Choose another: cpupower frequency-set --governor schedutil, or performance.",
        )
    if saving:
        yield Finding(
            _NAME,
            "warning",
            f"Told to save power rather than be fast (energy_performance_preference): {name_cpus(saving)}.",
            "Choose a faster power profile.",
        )


def _boost(system: Path) -> Iterator[Finding]:
    off = (
        read_number(system / _CPUS / "intel_pstate/no_turbo") == 1 or read_number(system / _CPUS / "cpufreq/boost") == 0
    )
    if off:
        yield Finding(_NAME, "info", "Turbo frequencies are switched off (no_turbo or boost).")


def _heat(cpus: list[int], system: Path) -> Iterator[Finding]:
    cooled = [
        device.name
        for device in sorted((system / "sys/class/thermal").glob("cooling_device[0-9]*"))
        if _slows_processor(read_text(device / "type") or "") and (read_number(device / "cur_state") or 0) > 0
    ]
    if cooled:
        yield Finding(
            _NAME,
            "warning",
            "The processor is slowed down now to keep it cool.",
            "Give it air, or wait until it has cooled down.",
        )
    folders = [system / _CPUS / f"cpu{cpu}" / "thermal_throttle" for cpu in cpus]
    counts = [read_number(folder / f"{part}_throttle_count") or 0 for folder in folders for part in ("core", "package")]
    if any(count > 0 for count in counts):
        yield Finding(
            _NAME,
            "info",
            f"Since the start heat has slowed the processor down, up to {max(counts)} times on one CPU.",
            "Give it air; measured speeds may not last.",
        )


def _slows_processor(kind: str) -> bool:
    return kind == "Processor" or kind.startswith(("cpufreq-", "thermal-cpufreq", "cpu-"))


def _power_limits(system: Path) -> Iterator[Finding]:
    """RAPL (Documentation/power/powercap): what the processor may draw, averaged over a while."""
    for zone in sorted((system / "sys/class/powercap").glob("intel-rapl:[0-9]*")):
        name = read_text(zone / "name") or ""
        if not name.startswith("package"):
            continue  # parts of a package have zones of their own
        parts = []
        for number in range(3):  # long term, short term, peak
            limit = read_number(zone / f"constraint_{number}_power_limit_uw")
            if limit is not None and limit > 0:
                term = (read_text(zone / f"constraint_{number}_name") or f"constraint {number}").replace("_", " ")
                parts.append(f"{limit / 1e6:.0f} W {term}")
        if parts and read_number(zone / "enabled") != 0:
            yield Finding(_NAME, "info", f"Power of {name} is limited to {', '.join(parts)}.")


def _profile(system: Path) -> Iterator[Finding]:
    profile = read_text(system / "sys/firmware/acpi/platform_profile")
    if profile in _SLOW_PROFILES:
        yield Finding(
            _NAME,
            "warning",
            f"The platform profile is {profile}.",
            "Choose balanced or performance in the power settings.",
        )


def _battery(system: Path) -> Iterator[Finding]:
    supplies = sorted((system / "sys/class/power_supply").glob("*"))
    if any(read_number(s / "online") == 1 for s in supplies if read_text(s / "type") in ("Mains", "USB")):
        return
    # A battery of scope "Device" is in a mouse or the like.
    batteries = [s for s in supplies if read_text(s / "type") == "Battery" and read_text(s / "scope") != "Device"]
    if any(read_text(battery / "status") == "Discharging" for battery in batteries):
        yield Finding(_NAME, "info", "On battery: most laptops compute more slowly.", "Plug it in for full speed.")
