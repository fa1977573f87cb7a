"""OTLP/JSON: how a trace is kept, exported and sent, and read again.

The form is that of opentelemetry-proto (https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding): ids as
hexadecimal digits, 64-bit numbers as text, enums as numbers. Any collector reads it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from edgerag import __version__
from edgerag.errors import TracesError
from edgerag.telemetry.spans import Span, TraceTree, Value, nested

if TYPE_CHECKING:
    from edgerag.telemetry.otel import EndedSpan

_INTERNAL = 1  # SpanKind
_ERROR = 2  # StatusCode


def to_otlp(spans: Sequence[EndedSpan]) -> dict[str, Any]:
    """An ExportTraceServiceRequest of one trace."""
    from edgerag.telemetry import otel

    return {
        "resourceSpans": [
            {
                "resource": {"attributes": _attributes(spans[0].resource.attributes)},
                "scopeSpans": [
                    {
                        "scope": {"name": otel.SCOPE, "version": __version__},
                        "spans": [_span(span) for span in spans],
                    }
                ],
            }
        ]
    }


def _span(span: EndedSpan) -> dict[str, Any]:
    from edgerag.telemetry import otel

    parent = otel.parent_id_of(span)
    record: dict[str, Any] = {
        "traceId": otel.trace_id_of(span),
        "spanId": otel.span_id_of(span),
        **({"parentSpanId": parent} if parent else {}),
        "name": span.name,
        "kind": _INTERNAL,
        "startTimeUnixNano": str(span.start_time),
        "endTimeUnixNano": str(span.end_time),
        "attributes": _attributes(span.attributes or {}),
    }
    if otel.is_error(span):
        record["status"] = {"code": _ERROR, "message": span.status.description or ""}
    return record


def _attributes(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _any_value(value)} for key, value in values.items()]


def _any_value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, str):
        return {"stringValue": value}
    return {"arrayValue": {"values": [_any_value(each) for each in value]}}


def otlp_text(record: Mapping[str, Any]) -> str:
    """One line. ASCII, so that whatever a name holds can be written and read anywhere."""
    return json.dumps(record, separators=(",", ":"))


# ------------------------------------------------------------ read again


def from_otlp(text: str) -> TraceTree:
    """Raises TracesError for what is no trace of this program."""
    try:
        scope = json.loads(text)["resourceSpans"][0]["scopeSpans"][0]
        records = {record["spanId"]: record for record in scope["spans"]}
        below: dict[str, list[str]] = {}
        for key, record in records.items():
            below.setdefault(record.get("parentSpanId", ""), []).append(key)
        (root,) = below[""]
        return TraceTree(str(records[root]["traceId"]), nested(_read(root, records, below)))
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError) as error:
        raise TracesError(
            f"A kept trace is damaged: {error!r}.", remedy="`edgerag trace --list` lists the others."
        ) from error


def _read(key: str, records: Mapping[str, Any], below: Mapping[str, Sequence[str]]) -> Span:
    record = records[key]
    status = record.get("status") or {}
    return Span(
        name=str(record["name"]),
        start_ns=int(record["startTimeUnixNano"]),
        end_ns=int(record["endTimeUnixNano"]),
        facts={str(each["key"]): _value(each["value"]) for each in record["attributes"]},
        inner=tuple(_read(inner, records, below) for inner in below.get(key, ())),
        error=str(status.get("message") or "error") if status.get("code") == _ERROR else "",
    )


def _value(value: Mapping[str, Any]) -> Value:
    ((kind, held),) = value.items()
    match kind:
        case "boolValue":
            return bool(held)
        case "intValue":
            return int(held)
        case "doubleValue":
            return float(held)
        case "stringValue":
            return str(held)
        case "arrayValue":
            return tuple(int(each["intValue"]) for each in held["values"])
    raise ValueError(kind)
