"""Records to table rows."""

from dataclasses import fields
from typing import Any

import numpy as np

from litellm_messplus.prediction.encoder import Features
from litellm_messplus.records import CallRecord, LabelRecord, Record, RequestRecord
from litellm_messplus.store import tables

Row = dict[str, Any]

TABLE_OF = {
    RequestRecord: tables.requests,
    CallRecord: tables.calls,
    LabelRecord: tables.labels,
}


def row(record: Record, position: int) -> Row:
    """The row of any record. Unpaired surrogates, which no database takes, become marks."""
    values = {field.name: getattr(record, field.name) for field in fields(record)}
    if isinstance(record, RequestRecord):
        values["features"] = features_to_bytes(record.features)
        values["estimated_cost_largest"] = record.estimated_cost.get(record.largest)
    clean = {name: _storable(value) for name, value in values.items()}
    return {**clean, "position": position}


def features_to_bytes(features: Features) -> bytes:
    """Little-endian float32."""
    return features.astype("<f4").tobytes()


def features_from_bytes(data: bytes) -> Features:
    """The vector that ``features_to_bytes`` wrote."""
    return np.frombuffer(data, dtype="<f4")


def _storable(value: Any) -> Any:
    if isinstance(value, str):
        return str(value).replace("\0", "�").encode("utf-8", "replace").decode()
    return value
