"""The views that people ask, and those that the sums are held to (`logged_...`).

Each comes after those that it reads.
"""

from alembic import op

revision = "0002"
down_revision = "0001"

# What several of them say, by the mark that stands for it.

RANK = """COALESCE(
    (
        SELECT COALESCE(rule.rank, 0)
        FROM label_precedence AS rule
        WHERE rule.zoo = requests.zoo AND rule.kind = {label}.kind
    ),
    CASE {label}.kind
        WHEN 'feedback' THEN 1 WHEN 'check' THEN 2 WHEN 'judge' THEN 3 ELSE 4
    END
)"""
"""The rank of a label's kind by its zoo's rule, or by the usual one; 0 counts never."""

COUNTS = """{label}.weight > 0
AND {rank of label} > 0
AND NOT EXISTS (
    SELECT 1
    FROM labels AS newer
    WHERE newer.call_id = {label}.call_id
        AND newer.source = {label}.source
        AND newer.position > {label}.position
        AND newer.weight > 0
)
AND NOT EXISTS (
    SELECT 1
    FROM labels AS other
    WHERE other.call_id = {label}.call_id
        AND other.source <> {label}.source
        AND other.weight > 0
        AND NOT EXISTS (
            SELECT 1
            FROM labels AS newer
            WHERE newer.call_id = other.call_id
                AND newer.source = other.source
                AND newer.position > other.position
                AND newer.weight > 0
        )
        AND {rank of other} > 0
        AND ({rank of other}, other.value, other.position)
            < ({rank of label}, {label}.value, {label}.position)
)"""
"""Whether a label beside a row of `requests` is the one of its call that counts. Whether it is its
source's newest is asked by itself, which an index answers: asked together with the rest it takes
the square of the labels on a call."""

EXPLORED = """CASE WHEN requests.is_exploration THEN (
    SELECT {what}
    FROM calls AS explored
    LEFT JOIN call_energy AS explored_energy
        ON explored_energy.call_id = explored.call_id
    WHERE explored.request_id = requests.request_id AND explored.role = 'exploration'
) END"""

FIGURES = """    COUNT(*) AS requests,
    COUNT(outcomes.satisfaction) AS answered,
    SUM(outcomes.satisfaction_weight * outcomes.satisfaction)
        / NULLIF(SUM(outcomes.satisfaction_weight), 0) AS satisfaction,
    SUM(outcomes.cost) AS cost,
    SUM(CASE WHEN {compared} THEN outcomes.cost_largest - outcomes.cost END) AS saved,
    SUM(CASE WHEN {compared} THEN outcomes.cost_largest - outcomes.cost END)
        / NULLIF(SUM(CASE WHEN {compared} THEN outcomes.cost_largest END), 0) AS saved_share
FROM request_outcomes AS outcomes
JOIN requests ON requests.request_id = outcomes.request_id"""
"""Of the requests that are added up, and where they are from."""

FRAGMENTS = {
    "{each}": "outcomes.day, outcomes.zoo, outcomes.service_level",
    "{figures}": FIGURES,
    "{explored: cost}": EXPLORED.replace("{what}", "SUM({explored's cost})"),
    "{explored: largest}": EXPLORED.replace(
        "{what}", "MAX(CASE WHEN explored.candidate = requests.largest THEN {explored's cost} END)"
    ),
    "{explored's cost}": "COALESCE(explored_energy.cost, explored.cost)",
    "{served's cost}": "COALESCE(measured.cost, served.cost)",
    "{own}": "calls.status = 'success' AND calls.candidate IS NOT NULL AND NOT calls.is_cache_hit",
    "{call cost}": "COALESCE(energy.cost, calls.cost)",
    "{stands for}": "(verdict.weight / COALESCE(verdict.probability, 1.0))",
    "{compared}": "outcomes.status = 'success' AND outcomes.served_cost IS NOT NULL "
    "AND outcomes.cost_largest IS NOT NULL",
}

DIALECTS = {
    "sqlite": {
        "{day}": "date(requests.created_at)",
        "{day_of_grading}": "date(gradings.created_at)",
        "{hour}": "CAST(strftime('%H', requests.created_at) AS INTEGER)",
        "{each tag}": "json_each(requests.tags) AS tags",
        "{forecast: ": "json_extract(own.forecast, '$.",
        "{happened: ": "json_extract(next.happened, '$.",
        " of it}": "')",
    },
    "postgresql": {
        "{day}": "date(requests.created_at AT TIME ZONE 'UTC')",
        "{day_of_grading}": "date(gradings.created_at AT TIME ZONE 'UTC')",
        "{hour}": "CAST(EXTRACT(HOUR FROM requests.created_at AT TIME ZONE 'UTC') AS INTEGER)",
        "{each tag}": "LATERAL json_array_elements_text(requests.tags) AS tags(value)",
        "{forecast: ": "CAST(own.forecast #>> string_to_array('",
        "{happened: ": "CAST(next.happened #>> string_to_array('",
        " of it}": "', '.') AS double precision)",
    },
}
"""What each database says its own way. Postgres would take a day in the time zone of whoever
asks."""

VIEWS = {
    "calls_per_model": """
        SELECT
            zoo,
            NULLIF(candidate, '') AS candidate,
            NULLIF(model, '') AS model,
            role,
            SUM(calls) AS calls,
            SUM(failures) AS failures,
            SUM(cost) AS cost,
            SUM(calls_without_cost) AS calls_without_cost,
            CAST(SUM(prompt_tokens) AS BIGINT) AS prompt_tokens,
            CAST(SUM(completion_tokens) AS BIGINT) AS completion_tokens
        FROM call_sums
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
            service_level,
            MAX(alpha) AS alpha,
            SUM(requests) AS requests,
            SUM(answered) AS answered,
            SUM(weighted_satisfaction) / NULLIF(SUM(weight), 0) AS satisfaction,
            SUM(cost) AS cost,
            SUM(cost) / SUM(requests) AS cost_per_request
        FROM request_sums
        GROUP BY day, zoo, service_level
    """,
    "exploration_share": """
        SELECT
            zoo,
            service_level,
            SUM(requests) AS requests,
            SUM(explorations) AS explorations,
            1.0 * SUM(explorations) / SUM(requests) AS share,
            SUM(exploration_cost) AS exploration_cost,
            SUM(exploration_cost) / NULLIF(SUM(cost), 0) AS cost_share
        FROM request_sums
        GROUP BY zoo, service_level
    """,
    "gradings_per_day": """
        SELECT day, zoo, judge, gradings, graded, answers, cost, gradings_without_cost
        FROM grading_sums
    """,
    "logged_call_sums": """
        SELECT
            {day} AS day,
            requests.zoo,
            requests.service_level,
            COALESCE(calls.candidate, '') AS candidate,
            COALESCE(calls.model, '') AS model,
            calls.role,
            COUNT(*) AS calls,
            SUM(CASE WHEN calls.status = 'failure' THEN 1 ELSE 0 END) AS failures,
            SUM({call cost}) AS cost,
            SUM(CASE WHEN {call cost} IS NULL THEN 1 ELSE 0 END)
                AS calls_without_cost,
            SUM(calls.prompt_tokens) AS prompt_tokens,
            SUM(calls.completion_tokens) AS completion_tokens,
            SUM(CASE WHEN calls.status = 'success' AND calls.cost IS NULL THEN 1 ELSE 0 END)
                AS unstated,
            SUM(CASE WHEN {own} THEN 1 ELSE 0 END) AS own,
            COUNT(CASE WHEN {own} THEN {call cost} END) AS priced,
            COALESCE(SUM(CASE WHEN {own} THEN {call cost} END), 0)
                AS priced_cost,
            COUNT(CASE WHEN {own} THEN verdict.value END) AS judged,
            COALESCE(SUM(CASE WHEN {own} THEN {stands for} END), 0) AS weight,
            COALESCE(SUM(CASE WHEN {own} THEN {stands for} * {stands for} END), 0)
                AS weight_squared,
            COALESCE(SUM(CASE WHEN {own} THEN {stands for} * verdict.value END), 0)
                AS weighted_satisfaction
        FROM calls
        JOIN requests ON requests.request_id = calls.request_id
        LEFT JOIN call_energy AS energy ON energy.call_id = calls.call_id
        LEFT JOIN labels AS verdict
            ON verdict.call_id = calls.call_id
            AND {counts: verdict}
        GROUP BY {day}, requests.zoo, requests.service_level, COALESCE(calls.candidate, ''),
            COALESCE(calls.model, ''), calls.role
    """,
    "logged_grading_sums": """
        SELECT
            {day_of_grading} AS day,
            requests.zoo,
            gradings.judge,
            COUNT(*) AS gradings,
            SUM(CASE WHEN gradings.status = 'graded' THEN 1 ELSE 0 END) AS graded,
            SUM(gradings.answers) AS answers,
            SUM(gradings.cost) AS cost,
            SUM(CASE WHEN gradings.cost IS NULL THEN 1 ELSE 0 END) AS gradings_without_cost,
            MAX(CASE WHEN gradings.status = 'graded' THEN gradings.position END) AS newest_graded
        FROM gradings
        JOIN requests ON requests.request_id = gradings.request_id
        GROUP BY {day_of_grading}, requests.zoo, gradings.judge
    """,
    "logged_hourly_call_sums": """
        SELECT
            {day} AS day,
            requests.zoo,
            requests.service_level,
            {hour} AS hour,
            COALESCE(calls.candidate, '') AS candidate,
            calls.role,
            COUNT(*) AS calls,
            SUM(CASE WHEN calls.status = 'failure' THEN 1 ELSE 0 END) AS failures
        FROM calls
        JOIN requests ON requests.request_id = calls.request_id
        GROUP BY {day}, requests.zoo, requests.service_level, {hour},
            COALESCE(calls.candidate, ''), calls.role
    """,
    "logged_label_sums": """
        SELECT
            day,
            zoo,
            service_level,
            kind,
            source,
            SUM(CASE WHEN is_newest THEN 1 ELSE 0 END) AS labelled,
            COALESCE(SUM(CASE WHEN is_newest THEN value END), 0) AS satisfaction,
            COALESCE(SUM(CASE WHEN is_newest THEN value * value END), 0) AS satisfaction_squared,
            SUM(CASE WHEN counts THEN 1 ELSE 0 END) AS counting
        FROM (
            SELECT
                {day} AS day,
                requests.zoo,
                requests.service_level,
                labels.kind,
                labels.source,
                labels.value,
                NOT EXISTS (
                    SELECT 1
                    FROM labels AS newer
                    WHERE newer.call_id = labels.call_id
                        AND newer.source = labels.source
                        AND newer.position > labels.position
                ) AS is_newest,
                {counts: labels} AS counts
            FROM labels
            JOIN requests ON requests.request_id = labels.request_id
            WHERE labels.call_id = labels.request_id || '.0'
        ) AS said
        WHERE is_newest OR counts
        GROUP BY day, zoo, service_level, kind, source
    """,
    "outcomes_per_hour": """
        SELECT
            day,
            zoo,
            service_level,
            hour,
            SUM(requests) AS requests,
            SUM(answered) AS answered,
            SUM(weighted_satisfaction) / NULLIF(SUM(weight), 0) AS satisfaction,
            SUM(cost) AS cost,
            SUM(compared_cost_largest - compared_cost) AS saved,
            SUM(compared_cost_largest - compared_cost) / NULLIF(SUM(compared_cost_largest), 0)
                AS saved_share
        FROM hourly_request_sums
        GROUP BY day, zoo, service_level, hour
    """,
    "request_outcomes": """
        SELECT
            requests.request_id,
            requests.created_at,
            {day} AS day,
            requests.zoo,
            requests.service_level,
            requests.alpha,
            requests.key_hash,
            requests.team_id,
            requests.is_exploration,
            requests.chosen,
            requests.counted_with,
            served.candidate AS served,
            served.status,
            verdict.value AS satisfaction,
            {stands for} AS satisfaction_weight,
            verdict.kind AS satisfaction_kind,
            {served's cost} AS served_cost,
            COALESCE({explored: cost}, 0) AS exploration_cost,
            COALESCE({served's cost}, 0) + COALESCE({explored: cost}, 0) AS cost,
            CASE
                WHEN served.is_cache_hit THEN served.cost
                WHEN served.candidate = requests.largest THEN {served's cost}
                ELSE COALESCE({explored: largest}, requests.estimated_cost_largest)
            END AS cost_largest,
            measured.call_id IS NOT NULL AS is_measured
        FROM requests
        LEFT JOIN calls AS served
            ON served.request_id = requests.request_id AND served.role = 'served'
        LEFT JOIN call_energy AS measured
            ON measured.call_id = served.call_id
        LEFT JOIN labels AS verdict
            ON verdict.call_id = requests.request_id || '.0'
            AND {counts: verdict}
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
            JOIN request_outcomes AS outcomes ON outcomes.request_id = requests.request_id
            WHERE requests.conversation IS NOT NULL
        )
        SELECT
            conversation,
            zoo,
            MIN(service_level) AS service_level,
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
    "logged_hourly_request_sums": """
        SELECT
            outcomes.day,
            outcomes.zoo,
            outcomes.service_level,
            {hour} AS hour,
            outcomes.alpha,
            COUNT(*) AS requests,
            COUNT(outcomes.satisfaction) AS answered,
            COALESCE(SUM(outcomes.satisfaction_weight), 0) AS weight,
            COALESCE(SUM(outcomes.satisfaction_weight * outcomes.satisfaction_weight), 0)
                AS weight_squared,
            COALESCE(SUM(outcomes.satisfaction_weight * outcomes.satisfaction), 0)
                AS weighted_satisfaction,
            SUM(outcomes.cost) AS cost,
            SUM(CASE WHEN {compared} THEN 1 ELSE 0 END) AS compared,
            COALESCE(SUM(CASE WHEN {compared} THEN outcomes.cost END), 0) AS compared_cost,
            COALESCE(SUM(CASE WHEN {compared} THEN outcomes.cost_largest END), 0)
                AS compared_cost_largest,
            SUM(requests.queue) AS queue
        FROM request_outcomes AS outcomes
        JOIN requests ON requests.request_id = outcomes.request_id
        GROUP BY outcomes.day, outcomes.zoo, outcomes.service_level, {hour}, outcomes.alpha
    """,
    "logged_request_sums": """
        SELECT
            outcomes.day,
            outcomes.zoo,
            outcomes.service_level,
            outcomes.alpha,
            COUNT(*) AS requests,
            SUM(CASE WHEN outcomes.counted_with IS NULL THEN 1 ELSE 0 END) AS counted,
            SUM(CASE WHEN EXISTS (
                SELECT 1 FROM labels WHERE labels.call_id = outcomes.request_id || '.0'
            ) THEN 1 ELSE 0 END) AS labelled,
            COUNT(outcomes.satisfaction) AS answered,
            COALESCE(SUM(outcomes.satisfaction_weight), 0) AS weight,
            COALESCE(SUM(outcomes.satisfaction_weight * outcomes.satisfaction_weight), 0)
                AS weight_squared,
            COALESCE(SUM(outcomes.satisfaction_weight * outcomes.satisfaction), 0)
                AS weighted_satisfaction,
            SUM(outcomes.cost) AS cost,
            COUNT(outcomes.served_cost) AS priced,
            COALESCE(SUM(CASE WHEN outcomes.served_cost IS NOT NULL THEN outcomes.cost END), 0)
                AS priced_cost,
            SUM(CASE WHEN outcomes.is_exploration THEN 1 ELSE 0 END) AS explorations,
            SUM(outcomes.exploration_cost) AS exploration_cost,
            SUM(CASE WHEN {compared} THEN 1 ELSE 0 END) AS compared,
            COALESCE(SUM(CASE WHEN {compared} THEN outcomes.cost END), 0) AS compared_cost,
            COALESCE(SUM(CASE WHEN {compared} THEN outcomes.cost_largest END), 0)
                AS compared_cost_largest,
            COUNT(served.seconds) AS timed,
            SUM(CASE WHEN served.seconds IS NOT NULL AND requests.encode_seconds IS NULL
                THEN 1 ELSE 0 END) AS late,
            COALESCE(SUM(CASE WHEN served.seconds IS NOT NULL THEN requests.encode_seconds END), 0)
                AS predicting_seconds,
            COALESCE(SUM(CASE WHEN served.seconds IS NOT NULL
                THEN requests.decision_seconds - COALESCE(requests.encode_seconds, 0) END), 0)
                AS deciding_seconds,
            COALESCE(SUM(served.seconds), 0) AS call_seconds,
            COUNT(CASE WHEN served.seconds IS NOT NULL THEN requests.encode_joules END) AS metered,
            COALESCE(SUM(CASE WHEN served.seconds IS NOT NULL THEN requests.encode_joules END), 0)
                AS joules
        FROM request_outcomes AS outcomes
        JOIN requests ON requests.request_id = outcomes.request_id
        LEFT JOIN calls AS served
            ON served.request_id = outcomes.request_id AND served.role = 'served'
        GROUP BY outcomes.day, outcomes.zoo, outcomes.service_level, outcomes.alpha
    """,
    "open_requests": """
        SELECT request_id, created_at, zoo, service_level, key_hash, served
        FROM request_outcomes
        WHERE satisfaction IS NULL AND (status IS NULL OR status = 'success')
    """,
    "outcomes_per_key": """
        SELECT
            {each},
            requests.key_hash,
            MAX(requests.key_alias) AS key_alias,
            {figures}
        GROUP BY {each}, requests.key_hash
    """,
    "outcomes_per_tag": """
        SELECT
            {each},
            tags.value AS tag,
            {figures}
        CROSS JOIN {each tag}
        GROUP BY {each}, tags.value
    """,
    "outcomes_per_team": """
        SELECT
            {each},
            requests.team_id,
            {figures}
        GROUP BY {each}, requests.team_id
    """,
    "savings": """
        SELECT
            zoo,
            service_level,
            SUM(compared) AS requests,
            SUM(compared_cost) AS cost,
            SUM(compared_cost_largest) AS cost_largest,
            SUM(compared_cost_largest) - SUM(compared_cost) AS saved,
            1 - SUM(compared_cost) / NULLIF(SUM(compared_cost_largest), 0) AS saved_share
        FROM request_sums
        GROUP BY zoo, service_level
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
    "verdicts": """
        SELECT
            labels.label_id,
            labels.call_id,
            labels.request_id,
            labels.created_at,
            labels.kind,
            labels.source,
            labels.value,
            labels.weight,
            labels.comment,
            labels.position
        , labels.probability FROM labels
        JOIN requests ON requests.request_id = labels.request_id
        WHERE {counts: labels}
    """,
}


def upgrade() -> None:
    own = DIALECTS[op.get_context().dialect.name]
    for name, query in VIEWS.items():
        op.execute(f"CREATE VIEW {name} AS {_written_out(query, own)}")


def downgrade() -> None:
    for name in reversed(VIEWS):
        op.execute(f"DROP VIEW {name}")


def _written_out(query: str, own: dict[str, str]) -> str:
    for label in ("verdict", "labels"):
        query = query.replace(f"{{counts: {label}}}", _counts(label))
    for mark, meaning in {**FRAGMENTS, **own}.items():
        query = query.replace(mark, meaning)
    return query


def _counts(label: str) -> str:
    ranks = {"{rank of label}": RANK, "{rank of other}": RANK.replace("{label}", "other")}
    found = COUNTS
    for mark, rank in ranks.items():
        found = found.replace(mark, rank)
    return found.replace("{label}", label)
