"""All tables, the rows that they begin with, and the views that people ask."""

import os
import re
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from alembic import op

from litellm_messplus.store.tables import metadata

revision = "0001"
down_revision = None

# Tables, a line for each column: `?` may be NULL, `key` is of the primary key, a number is the
# longest text. Comments are the code's.

TYPES: dict[str, Any] = {
    "position": sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
    "their_id": sa.String(255).with_variant(sa.String(1024), "postgresql"),
    "time": sa.DateTime(timezone=True),
    "date": sa.Date(),
    "bigint": sa.BigInteger(),
    "int": sa.Integer(),
    "float": sa.Float(),
    "bool": sa.Boolean(),
    "text": sa.Text(),
    "bytes": sa.LargeBinary(),
    "json": sa.JSON(),
    "json_none": sa.JSON(none_as_null=True),
}

DEFAULTS: dict[str, Any] = {"true": sa.true(), "false": sa.false()}

TALLY = """
    requests int
    alphas float
    succeeded int
    failed int
    failed_upstream int
    failed_no_deployment int
    failed_deadline int
    failed_client_gone int
    failed_refused int
    failed_unknown int
    labelled int
    judged int
    weight float
    weight_squared float
    weighted_satisfaction float
    weighted_alpha float
    cost float
    priced int
    priced_cost float
    explorations int
    exploration_cost float
    judging_cost float
    compared int
    compared_cost float
    compared_cost_largest float
    unstated int
    timed int
    late int
    predicting_seconds float
    deciding_seconds float
    call_seconds float
    queue float
"""
"""The sums over requests."""

TABLES = {
    "call_hours": """
        day date key
        zoo 255 key
        service_level 255 key
        hour int key
        candidate 255 key
        model 255 key
        role 16 key
        calls int
        failures int
        cost float
        calls_without_cost int
        prompt_tokens bigint
        completion_tokens bigint
    """,
    "calls": """
        call_id 80 key
        position position unique
        request_id 64
        ended_at time
        role 16
        status 16
        candidate 255?
        deployment_id 255?
        model 255?
        response_id their_id?
        prompt_tokens int?
        completion_tokens int?
        cached_tokens int?
        reasoning_tokens int?
        cost float?
        cost_source 16
        cost_largest float?
        seconds float?
        is_cache_hit bool
        served_not_chosen bool
        error text?
        answer text?
        written_tokens int?
        failure 16?
        answer_surface bytes?
        answer_version 64?
        prompt_said float?
        answer_said float?
    """,
    "candidate_events": """
        event_id 64 key
        position position unique
        zoo 255
        candidate 255
        number int
        created_at time
        change 16
        price json_none?
    """,
    "gradings": """
        grading_id 64 key
        position position unique
        request_id 64
        created_at time
        judge 255
        status 16
        answers int
        cost float?
        prompt_tokens int?
        completion_tokens int?
        seconds float?
        error text?
        preferred 16?
        zoo_cost float?
    """,
    "hours": """
        day date key
        zoo 255 key
        service_level 255 key
        hour int key
        alpha float key
        {tally}
    """,
    "label_days": """
        day date key
        zoo 255 key
        service_level 255 key
        kind 16 key
        source 64 key
        labelled int
        satisfaction float
        counting int
    """,
    "labels": """
        label_id 64 key
        position position unique
        call_id 80
        request_id 64
        created_at time
        kind 16 = feedback
        source 64
        value float
        weight float
        comment text?
        probability float?
        counts bool = false
    """,
    "log_head": """
        id int key
        position position
        start position = 0
        summed position = 0
        precedence json = {}
        conversation_key 64
    """,
    "outcomes": """
        request_id 64 key
        position position unique
        day date
        hour int
        zoo 255
        service_level 255
        alpha float
        arm 16
        is_exploration bool
        queue float
        encode_seconds float?
        deciding_seconds float
        exploration_cost float
        judging_cost float
        cost float?
        unstated int
        served 255?
        status 16?
        failure 16?
        is_cache_hit bool?
        seconds float?
        served_cost float?
        cost_largest float?
        is_labelled bool
        satisfaction float?
        satisfaction_weight float?
        satisfaction_kind 16?
    """,
    "page_sign_ins": """
        token_hash 64 key
        kind 16
        expires_at time
    """,
    "requests": """
        request_id 64 key
        position position unique
        created_at time
        zoo 255
        service_level 255
        t bigint
        alpha float
        policy 64
        litellm_call_id their_id
        key_hash 255?
        team_id 255?
        call_type 64
        is_stream bool
        encoder 255
        features bytes?
        prompt_characters int
        estimated_cost json
        estimated_satisfaction json
        estimated_cost_largest float?
        queue float
        chosen 255
        largest 255
        is_exploration bool
        exploration_probability float
        reason text
        decision_seconds float
        prompt text?
        aim float?
        expected_satisfaction float?
        price float?
        propensity float?
        exploration_calls int?
        encode_seconds float?
        surface bytes?
        surface_version 64?
        expected_t bigint?
        is_within_reach bool = true
        label_probability float?
        eligible json_none?
        gated_by json_none?
        arm 16 = routed
        would_choose 255?
        would_cost float?
        sample_probability float?
        conversation_draw float?
        key_alias 255?
        user_id 255?
        end_user 255?
        tags json_none?
        conversation 64?
        line 64?
        prefix 32?
        turn int?
        hold 16?
        session 32?
        is_alone bool
    """,
    "snapshots": """
        zoo 255 key
        position position key
        fingerprint 64
        created_at time
        state bytes
    """,
    "zoo_modes": """
        zoo 255 key
        revision int key
        mode 16
        share float
        before 255?
        by 255
        reason text
        at time
        file_fingerprint 64
        forecast json_none?
        happened json_none?
    """,
}

INDEXES = {
    "calls": ("request_id", "response_id"),
    "gradings": ("created_at", "request_id"),
    "labels": ("created_at", "request_id"),
    "requests": ("litellm_call_id",),
}
"""Those of one column."""


def upgrade() -> None:
    for name, columns in TABLES.items():
        op.create_table(name, *_columns(name, columns), comment=metadata.tables[name].comment)
        for column in INDEXES.get(name, ()):
            op.create_index(f"ix_{name}_{column}", name, [column])
    level = ["zoo", "service_level"]
    op.create_index("ix_requests_level_t", "requests", [*level, "t"], unique=True)
    op.create_index("ix_requests_level_position", "requests", [*level, "position"])
    op.create_index(
        "ix_requests_created_at_level_key", "requests", ["created_at", *level, "key_hash"]
    )
    op.create_index(
        "ix_labels_call_id_source_position", "labels", ["call_id", "source", "position"]
    )
    for table, column in (
        ("requests", "session"),
        ("outcomes", "failure"),
    ):
        known = sa.text(f"{column} IS NOT NULL")
        where: dict[str, Any] = {"sqlite_where": known, "postgresql_where": known}
        op.create_index(f"ix_{table}_{column}", table, [column, "position"], **where)
    own = DIALECTS[op.get_context().dialect.name]
    for name, query in VIEWS.items():
        for mark, meaning in {**FRAGMENTS, **own}.items():
            query = query.replace(mark, meaning)
        query = re.sub(r"\{1 if ([^{}]+)\}", r"CASE WHEN \1 THEN 1 ELSE 0 END", query)
        op.execute(f"CREATE VIEW {name} AS {query}")
    op.execute(
        "INSERT INTO log_head (id, position, start, conversation_key) "
        f"VALUES (1, 0, 0, '{os.urandom(32).hex()}')"
    )


def _columns(table: str, columns: str) -> Iterator[Any]:
    for written in columns.replace("{tally}", TALLY.strip()).strip().splitlines():
        declared, _, default = written.partition(" = ")
        name, kind, *options = declared.split()
        yield sa.Column(
            name,
            sa.String(int(kind.strip("?"))) if kind[0].isdigit() else TYPES[kind.strip("?")],
            nullable=kind.endswith("?"),
            primary_key="key" in options,
            unique="unique" in options or None,
            server_default=DEFAULTS.get(default, default or None),
            comment=metadata.tables[table].columns[name].comment,
        )
    if table == "candidate_events":
        number = ("zoo", "candidate", "number")
        yield sa.UniqueConstraint(*number, name="uq_candidate_events_number")


# Views. Each comes after those that it reads.

FRAGMENTS = {
    "{is compared}": "outcomes.status = 'success' "
    "AND outcomes.served_cost IS NOT NULL AND outcomes.cost_largest IS NOT NULL",
    "{is lost}": "outcomes.status IS NULL AND requests.created_at < {a day ago}",
    "{summed}": "(SELECT summed FROM log_head)",
}

DIALECTS = {
    "sqlite": {
        "{a day ago}": "datetime('now', '-1 day')",
        "{forecast: ": "json_extract(own.forecast, '$.",
        "{happened: ": "json_extract(next.happened, '$.",
        " of it}": "')",
    },
    "postgresql": {
        "{a day ago}": "CURRENT_TIMESTAMP - INTERVAL '1 day'",
        "{forecast: ": "CAST(own.forecast #>> string_to_array('",
        "{happened: ": "CAST(next.happened #>> string_to_array('",
        " of it}": "', '.') AS double precision)",
    },
}
"""What each database says its own way."""

VIEWS = {
    "requests_v": """
        SELECT
            requests.request_id,
            requests.created_at,
            outcomes.day,
            requests.zoo,
            REPLACE(requests.service_level, '\\:before', '') AS level,
            requests.alpha,
            CASE WHEN requests.arm = 'routed' THEN 'router' ELSE 'incumbent' END AS served_by,
            outcomes.served AS model,
            requests.chosen,
            requests.reason,
            CASE
                WHEN outcomes.status = 'success' THEN 'answered'
                WHEN outcomes.status = 'failure' OR {is lost} THEN 'failed'
                ELSE 'open'
            END AS outcome,
            CASE WHEN {is lost} THEN 'unknown' ELSE outcomes.failure END AS failure,
            served.error,
            outcomes.satisfaction_kind AS judged,
            outcomes.satisfaction AS satisfied,
            outcomes.satisfaction_weight AS weight,
            CASE WHEN outcomes.served_cost IS NOT NULL THEN outcomes.cost END AS cost,
            outcomes.served_cost,
            outcomes.exploration_cost,
            outcomes.judging_cost,
            outcomes.cost_largest,
            CASE WHEN requests.arm = 'routed' THEN
                CASE WHEN {is compared} THEN outcomes.cost_largest - outcomes.served_cost ELSE 0 END
                - outcomes.exploration_cost - outcomes.judging_cost
            END AS saved,
            served.prompt_tokens,
            served.completion_tokens,
            outcomes.seconds,
            requests.decision_seconds,
            outcomes.is_exploration,
            outcomes.is_cache_hit,
            requests.is_stream AS stream,
            requests.key_hash,
            requests.key_alias,
            requests.team_id,
            requests.user_id,
            requests.end_user,
            requests.tags
        FROM outcomes
        JOIN requests ON requests.request_id = outcomes.request_id
        LEFT JOIN calls AS served ON served.call_id = outcomes.request_id || '.0'
    """,
    "calls_per_model": """
        SELECT
            zoo,
            NULLIF(candidate, '') AS candidate,
            NULLIF(model, '') AS model,
            role,
            SUM(calls) AS calls,
            SUM(failures) AS failures,
            CASE WHEN SUM(calls) > SUM(calls_without_cost) THEN SUM(cost) END AS cost,
            SUM(calls_without_cost) AS calls_without_cost,
            CAST(NULLIF(SUM(prompt_tokens), 0) AS BIGINT) AS prompt_tokens,
            CAST(NULLIF(SUM(completion_tokens), 0) AS BIGINT) AS completion_tokens
        FROM (
            SELECT zoo, candidate, model, role,
                calls, failures, cost, calls_without_cost, prompt_tokens, completion_tokens
            FROM call_hours WHERE role <> 'judging'
            UNION ALL
            SELECT outcomes.zoo, COALESCE(calls.candidate, ''), COALESCE(calls.model, ''),
                calls.role, 1, {1 if calls.status <> 'success'}, COALESCE(calls.cost, 0),
                {1 if calls.cost IS NULL}, COALESCE(calls.prompt_tokens, 0),
                COALESCE(calls.completion_tokens, 0)
            FROM calls JOIN outcomes ON outcomes.request_id = calls.request_id
            WHERE outcomes.position > {summed} AND calls.position > {summed}
        ) AS every_call
        GROUP BY zoo, NULLIF(candidate, ''), NULLIF(model, ''), role
    """,
    "current_labels": """
        SELECT label_id, call_id, request_id, created_at, kind, source, value, weight, comment
        FROM labels
        WHERE position = (
            SELECT MAX(newer.position) FROM labels AS newer
            WHERE newer.call_id = labels.call_id AND newer.source = labels.source
        )
    """,
    "daily_service_levels": """
        SELECT
            day,
            zoo,
            REPLACE(service_level, '\\:before', '') AS level,
            CASE WHEN service_level LIKE '%\\:before' THEN 'incumbent' ELSE 'router' END
                AS served_by,
            MAX(alpha) AS alpha,
            SUM(requests) AS requests,
            SUM(succeeded) AS answered,
            1.0 * SUM(succeeded) / NULLIF(SUM(succeeded) + SUM(failed), 0) AS answered_share,
            SUM(failed) AS failed,
            SUM(failed_upstream) AS failed_upstream,
            SUM(failed_no_deployment) AS failed_no_deployment,
            SUM(failed_deadline) AS failed_deadline,
            SUM(failed_client_gone) AS failed_client_gone,
            SUM(failed_refused) AS failed_refused,
            SUM(failed_unknown) AS failed_unknown,
            SUM(judged) AS judged,
            SUM(weighted_satisfaction) / NULLIF(SUM(weight), 0) AS satisfaction,
            SUM(cost) AS cost,
            SUM(priced_cost) / NULLIF(SUM(priced), 0) AS cost_per_request,
            SUM(weight) AS weight,
            SUM(weight_squared) AS weight_squared,
            SUM(weighted_alpha) / NULLIF(SUM(weight), 0) AS promised,
            SUM(compared) AS compared,
            SUM(paid) AS paid,
            SUM(paid_at_largest) AS paid_at_largest
        FROM (
            SELECT day, zoo, service_level, alpha, requests, succeeded, failed, failed_upstream,
                failed_no_deployment, failed_deadline, failed_client_gone, failed_refused,
                failed_unknown, judged, weight, weight_squared, weighted_satisfaction,
                weighted_alpha, cost, priced, priced_cost, compared,
                compared_cost + exploration_cost + judging_cost AS paid,
                compared_cost_largest AS paid_at_largest
            FROM hours
            UNION ALL
            SELECT day, zoo, service_level, alpha, 1, {1 if status = 'success'},
                {1 if status = 'failure'}, {1 if failure = 'upstream'},
                {1 if failure = 'no_deployment'}, {1 if failure = 'deadline'},
                {1 if failure = 'client_gone'}, {1 if failure = 'refused'},
                {1 if failure = 'unknown'}, {1 if satisfaction IS NOT NULL},
                COALESCE(satisfaction_weight, 0), COALESCE(satisfaction_weight, 0)
                * COALESCE(satisfaction_weight, 0), COALESCE(satisfaction_weight * satisfaction, 0),
                COALESCE(satisfaction_weight * alpha, 0), COALESCE(cost, 0),
                {1 if served_cost IS NOT NULL},
                CASE WHEN served_cost IS NOT NULL THEN cost ELSE 0 END,
                {1 if {is compared}}, CASE WHEN {is compared} THEN served_cost ELSE 0 END
                + exploration_cost + judging_cost,
                CASE WHEN {is compared} THEN cost_largest ELSE 0 END
            FROM outcomes WHERE position > {summed}
        ) AS every_hour
        GROUP BY day, zoo, service_level
    """,
    "conversations": """
        WITH turns AS (
            SELECT
                requests.conversation,
                requests.line,
                requests.zoo,
                requests.service_level,
                requests.created_at,
                requests.position,
                requests.hold,
                outcomes.served,
                outcomes.cost,
                outcomes.satisfaction,
                LAG(outcomes.served)
                    OVER (PARTITION BY requests.line ORDER BY requests.turn, requests.position)
                    AS served_before,
                MAX(CASE WHEN outcomes.satisfaction IS NOT NULL THEN requests.position END)
                    OVER (PARTITION BY requests.conversation) AS judged_last
            FROM requests
            JOIN outcomes ON outcomes.request_id = requests.request_id
            WHERE requests.conversation IS NOT NULL
        )
        SELECT
            conversation,
            zoo,
            REPLACE(MIN(service_level), '\\:before', '') AS level,
            MIN(created_at) AS began_at,
            MAX(created_at) AS last_at,
            COUNT(*) AS turns,
            COUNT(DISTINCT line) AS lines,
            SUM(CASE WHEN hold IN ('tool_loop', 'state', 'warm') THEN 1 ELSE 0 END) AS held,
            SUM(CASE WHEN served <> served_before THEN 1 ELSE 0 END) AS switches,
            SUM(cost) AS cost,
            MAX(CASE WHEN position = judged_last THEN satisfaction END) AS verdict
        FROM turns
        GROUP BY conversation, zoo
    """,
    "savings": """
        SELECT
            zoo,
            level,
            SUM(compared) AS requests,
            SUM(paid) AS cost,
            SUM(paid_at_largest) AS cost_largest,
            SUM(paid_at_largest - paid) AS saved,
            SUM(paid_at_largest - paid) / NULLIF(SUM(paid_at_largest), 0) AS saved_share
        FROM daily_service_levels
        WHERE served_by = 'router'
        GROUP BY zoo, level
        HAVING SUM(compared) > 0
    """,
    "forecasts": """
        SELECT
            own.zoo,
            own.revision,
            own.mode,
            own.share,
            own.at,
            next.at AS until,
            next.by AS ended_by,
            {forecast: requests of it} AS forecast_requests,
            {forecast: satisfaction.estimate of it} AS forecast_satisfaction,
            {forecast: satisfaction.low of it} AS lowest_satisfaction,
            {forecast: satisfaction.high of it} AS highest_satisfaction,
            {happened: satisfaction of it} AS satisfaction,
            {forecast: cost.estimate of it} AS forecast_cost,
            {forecast: cost.low of it} AS lowest_cost,
            {forecast: cost.high of it} AS highest_cost,
            {happened: cost of it} AS cost,
            {happened: requests of it} AS requests
        FROM zoo_modes AS own
        LEFT JOIN zoo_modes AS next
            ON next.zoo = own.zoo AND next.revision = own.revision + 1
        WHERE own.mode <> 'watch'
    """,
}
