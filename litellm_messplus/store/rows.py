"""Records to table rows."""

from dataclasses import fields
from typing import Any

import numpy as np

from litellm_messplus.prediction.encoder import Features
from litellm_messplus.prediction.surface import NUMBERS, VERSION, Surface
from litellm_messplus.records import (
    CallRecord,
    EnergyRecord,
    GradingRecord,
    LabelRecord,
    LessonRecord,
    Record,
    RequestRecord,
)
from litellm_messplus.store import tables

Row = dict[str, Any]

TABLE_OF = {
    RequestRecord: tables.requests,
    CallRecord: tables.calls,
    LabelRecord: tables.labels,
    GradingRecord: tables.gradings,
    EnergyRecord: tables.call_energy,
    LessonRecord: tables.lessons,
}

COLUMNS_OF = {record: [field.name for field in fields(record)] for record in TABLE_OF}


def row(record: Record, position: int) -> Row:
    """The row of any record. Unpaired surrogates, which no database takes, become marks."""
    values = {
        name: storable(value) if isinstance(value := getattr(record, name), str) else value
        for name in COLUMNS_OF[type(record)]
    }
    if isinstance(record, RequestRecord | LessonRecord):
        if record.features is not None:
            values["features"] = features_to_bytes(record.features)
        if record.surface is not None:
            values["surface"] = features_to_bytes(record.surface)
    if isinstance(record, RequestRecord):
        values["estimated_cost_largest"] = record.estimated_cost.get(record.largest)
    values["position"] = position
    return values


def features_to_bytes(features: Features) -> bytes:
    """Little-endian float32."""
    return features.astype("<f4").tobytes()


def features_from_bytes(data: bytes) -> Features:
    """The vector that ``features_to_bytes`` wrote."""
    return np.frombuffer(data, dtype="<f4")


def logged_surface(data: bytes | None, version: str | None) -> Surface | None:
    """The numbers of a prompt that were logged; None where there are none, or not those of this
    version."""
    if data is None or version != VERSION:
        return None
    numbers = features_from_bytes(data)
    return numbers if numbers.shape == (len(NUMBERS),) else None


def storable(text: str) -> str:
    """The text as every database keeps it: zero characters and unpaired surrogates are marked."""
    if text.isascii() and "\0" not in text:
        return str(text)
    return str(text).replace("\0", "�").encode("utf-8", "replace").decode()
