-- index ix_calls_request_id
CREATE INDEX ix_calls_request_id ON calls (request_id)
-- index ix_calls_response_id
CREATE INDEX ix_calls_response_id ON calls (response_id)
-- index ix_gradings_created_at
CREATE INDEX ix_gradings_created_at ON gradings (created_at)
-- index ix_gradings_request_id
CREATE INDEX ix_gradings_request_id ON gradings (request_id)
-- index ix_labels_call_id_source_position
CREATE INDEX ix_labels_call_id_source_position ON labels (call_id, source, position)
-- index ix_labels_created_at
CREATE INDEX ix_labels_created_at ON labels (created_at)
-- index ix_labels_request_id
CREATE INDEX ix_labels_request_id ON labels (request_id)
-- index ix_outcomes_failure
CREATE INDEX ix_outcomes_failure ON outcomes (failure, position) WHERE failure IS NOT NULL
-- index ix_requests_created_at_level_key
CREATE INDEX ix_requests_created_at_level_key ON requests (created_at, zoo, service_level, key_hash)
-- index ix_requests_level_position
CREATE INDEX ix_requests_level_position ON requests (zoo, service_level, position)
-- index ix_requests_level_t
CREATE UNIQUE INDEX ix_requests_level_t ON requests (zoo, service_level, t)
-- index ix_requests_litellm_call_id
CREATE INDEX ix_requests_litellm_call_id ON requests (litellm_call_id)
-- index ix_requests_session
CREATE INDEX ix_requests_session ON requests (session, position) WHERE session IS NOT NULL
-- index sqlite_autoindex_alembic_version_1
None
-- index sqlite_autoindex_call_hours_1
None
-- index sqlite_autoindex_calls_1
None
-- index sqlite_autoindex_calls_2
None
-- index sqlite_autoindex_candidate_events_1
None
-- index sqlite_autoindex_candidate_events_2
None
-- index sqlite_autoindex_candidate_events_3
None
-- index sqlite_autoindex_gradings_1
None
-- index sqlite_autoindex_gradings_2
None
-- index sqlite_autoindex_hours_1
None
-- index sqlite_autoindex_label_days_1
None
-- index sqlite_autoindex_labels_1
None
-- index sqlite_autoindex_labels_2
None
-- index sqlite_autoindex_outcomes_1
None
-- index sqlite_autoindex_outcomes_2
None
-- index sqlite_autoindex_page_sign_ins_1
None
-- index sqlite_autoindex_requests_1
None
-- index sqlite_autoindex_requests_2
None
-- index sqlite_autoindex_snapshots_1
None
-- index sqlite_autoindex_zoo_modes_1
None
-- table alembic_version
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
)
-- table call_hours
CREATE TABLE call_hours (
	day DATE NOT NULL, 
	zoo VARCHAR(255) NOT NULL, 
	service_level VARCHAR(255) NOT NULL, 
	hour INTEGER NOT NULL, 
	candidate VARCHAR(255) NOT NULL, 
	model VARCHAR(255) NOT NULL, 
	role VARCHAR(16) NOT NULL, 
	calls INTEGER NOT NULL, 
	failures INTEGER NOT NULL, 
	cost FLOAT NOT NULL, 
	calls_without_cost INTEGER NOT NULL, 
	prompt_tokens BIGINT NOT NULL, 
	completion_tokens BIGINT NOT NULL, 
	PRIMARY KEY (day, zoo, service_level, hour, candidate, model, role)
)
-- table calls
CREATE TABLE calls (
	call_id VARCHAR(80) NOT NULL, 
	position INTEGER NOT NULL, 
	request_id VARCHAR(64) NOT NULL, 
	ended_at DATETIME NOT NULL, 
	role VARCHAR(16) NOT NULL, 
	status VARCHAR(16) NOT NULL, 
	candidate VARCHAR(255), 
	deployment_id VARCHAR(255), 
	model VARCHAR(255), 
	response_id VARCHAR(255), 
	prompt_tokens INTEGER, 
	completion_tokens INTEGER, 
	cached_tokens INTEGER, 
	reasoning_tokens INTEGER, 
	cost FLOAT, 
	cost_source VARCHAR(16) NOT NULL, 
	cost_largest FLOAT, 
	seconds FLOAT, 
	is_cache_hit BOOLEAN NOT NULL, 
	served_not_chosen BOOLEAN NOT NULL, 
	error TEXT, 
	answer TEXT, 
	written_tokens INTEGER, 
	failure VARCHAR(16), 
	answer_surface BLOB, 
	answer_version VARCHAR(64), 
	prompt_said FLOAT, 
	answer_said FLOAT, 
	PRIMARY KEY (call_id), 
	UNIQUE (position)
)
-- table candidate_events
CREATE TABLE candidate_events (
	event_id VARCHAR(64) NOT NULL, 
	position INTEGER NOT NULL, 
	zoo VARCHAR(255) NOT NULL, 
	candidate VARCHAR(255) NOT NULL, 
	number INTEGER NOT NULL, 
	created_at DATETIME NOT NULL, 
	change VARCHAR(16) NOT NULL, 
	price JSON, 
	PRIMARY KEY (event_id), 
	CONSTRAINT uq_candidate_events_number UNIQUE (zoo, candidate, number), 
	UNIQUE (position)
)
-- table gradings
CREATE TABLE gradings (
	grading_id VARCHAR(64) NOT NULL, 
	position INTEGER NOT NULL, 
	request_id VARCHAR(64) NOT NULL, 
	created_at DATETIME NOT NULL, 
	judge VARCHAR(255) NOT NULL, 
	status VARCHAR(16) NOT NULL, 
	answers INTEGER NOT NULL, 
	cost FLOAT, 
	prompt_tokens INTEGER, 
	completion_tokens INTEGER, 
	seconds FLOAT, 
	error TEXT, 
	preferred VARCHAR(16), 
	zoo_cost FLOAT, 
	PRIMARY KEY (grading_id), 
	UNIQUE (position)
)
-- table hours
CREATE TABLE hours (
	day DATE NOT NULL, 
	zoo VARCHAR(255) NOT NULL, 
	service_level VARCHAR(255) NOT NULL, 
	hour INTEGER NOT NULL, 
	alpha FLOAT NOT NULL, 
	requests INTEGER NOT NULL, 
	alphas FLOAT NOT NULL, 
	succeeded INTEGER NOT NULL, 
	failed INTEGER NOT NULL, 
	failed_upstream INTEGER NOT NULL, 
	failed_no_deployment INTEGER NOT NULL, 
	failed_deadline INTEGER NOT NULL, 
	failed_client_gone INTEGER NOT NULL, 
	failed_refused INTEGER NOT NULL, 
	failed_unknown INTEGER NOT NULL, 
	labelled INTEGER NOT NULL, 
	judged INTEGER NOT NULL, 
	weight FLOAT NOT NULL, 
	weight_squared FLOAT NOT NULL, 
	weighted_satisfaction FLOAT NOT NULL, 
	weighted_alpha FLOAT NOT NULL, 
	cost FLOAT NOT NULL, 
	priced INTEGER NOT NULL, 
	priced_cost FLOAT NOT NULL, 
	explorations INTEGER NOT NULL, 
	exploration_cost FLOAT NOT NULL, 
	judging_cost FLOAT NOT NULL, 
	compared INTEGER NOT NULL, 
	compared_cost FLOAT NOT NULL, 
	compared_cost_largest FLOAT NOT NULL, 
	unstated INTEGER NOT NULL, 
	timed INTEGER NOT NULL, 
	late INTEGER NOT NULL, 
	predicting_seconds FLOAT NOT NULL, 
	deciding_seconds FLOAT NOT NULL, 
	call_seconds FLOAT NOT NULL, 
	queue FLOAT NOT NULL, 
	PRIMARY KEY (day, zoo, service_level, hour, alpha)
)
-- table label_days
CREATE TABLE label_days (
	day DATE NOT NULL, 
	zoo VARCHAR(255) NOT NULL, 
	service_level VARCHAR(255) NOT NULL, 
	kind VARCHAR(16) NOT NULL, 
	source VARCHAR(64) NOT NULL, 
	labelled INTEGER NOT NULL, 
	satisfaction FLOAT NOT NULL, 
	counting INTEGER NOT NULL, 
	PRIMARY KEY (day, zoo, service_level, kind, source)
)
-- table labels
CREATE TABLE labels (
	label_id VARCHAR(64) NOT NULL, 
	position INTEGER NOT NULL, 
	call_id VARCHAR(80) NOT NULL, 
	request_id VARCHAR(64) NOT NULL, 
	created_at DATETIME NOT NULL, 
	kind VARCHAR(16) DEFAULT 'feedback' NOT NULL, 
	source VARCHAR(64) NOT NULL, 
	value FLOAT NOT NULL, 
	weight FLOAT NOT NULL, 
	comment TEXT, 
	probability FLOAT, 
	counts BOOLEAN DEFAULT 0 NOT NULL, 
	PRIMARY KEY (label_id), 
	UNIQUE (position)
)
-- table log_head
CREATE TABLE log_head (
	id INTEGER NOT NULL, 
	position INTEGER NOT NULL, 
	start INTEGER DEFAULT '0' NOT NULL, 
	summed INTEGER DEFAULT '0' NOT NULL, 
	precedence JSON DEFAULT '{}' NOT NULL, 
	conversation_key VARCHAR(64) NOT NULL, 
	PRIMARY KEY (id)
)
-- table outcomes
CREATE TABLE outcomes (
	request_id VARCHAR(64) NOT NULL, 
	position INTEGER NOT NULL, 
	day DATE NOT NULL, 
	hour INTEGER NOT NULL, 
	zoo VARCHAR(255) NOT NULL, 
	service_level VARCHAR(255) NOT NULL, 
	alpha FLOAT NOT NULL, 
	arm VARCHAR(16) NOT NULL, 
	is_exploration BOOLEAN NOT NULL, 
	queue FLOAT NOT NULL, 
	encode_seconds FLOAT, 
	deciding_seconds FLOAT NOT NULL, 
	exploration_cost FLOAT NOT NULL, 
	judging_cost FLOAT NOT NULL, 
	cost FLOAT, 
	unstated INTEGER NOT NULL, 
	served VARCHAR(255), 
	status VARCHAR(16), 
	failure VARCHAR(16), 
	is_cache_hit BOOLEAN, 
	seconds FLOAT, 
	served_cost FLOAT, 
	cost_largest FLOAT, 
	is_labelled BOOLEAN NOT NULL, 
	satisfaction FLOAT, 
	satisfaction_weight FLOAT, 
	satisfaction_kind VARCHAR(16), 
	PRIMARY KEY (request_id), 
	UNIQUE (position)
)
-- table page_sign_ins
CREATE TABLE page_sign_ins (
	token_hash VARCHAR(64) NOT NULL, 
	kind VARCHAR(16) NOT NULL, 
	expires_at DATETIME NOT NULL, 
	PRIMARY KEY (token_hash)
)
-- table requests
CREATE TABLE requests (
	request_id VARCHAR(64) NOT NULL, 
	position INTEGER NOT NULL, 
	created_at DATETIME NOT NULL, 
	zoo VARCHAR(255) NOT NULL, 
	service_level VARCHAR(255) NOT NULL, 
	t BIGINT NOT NULL, 
	alpha FLOAT NOT NULL, 
	policy VARCHAR(64) NOT NULL, 
	litellm_call_id VARCHAR(255) NOT NULL, 
	key_hash VARCHAR(255), 
	team_id VARCHAR(255), 
	call_type VARCHAR(64) NOT NULL, 
	is_stream BOOLEAN NOT NULL, 
	encoder VARCHAR(255) NOT NULL, 
	features BLOB, 
	prompt_characters INTEGER NOT NULL, 
	estimated_cost JSON NOT NULL, 
	estimated_satisfaction JSON NOT NULL, 
	estimated_cost_largest FLOAT, 
	queue FLOAT NOT NULL, 
	chosen VARCHAR(255) NOT NULL, 
	largest VARCHAR(255) NOT NULL, 
	is_exploration BOOLEAN NOT NULL, 
	exploration_probability FLOAT NOT NULL, 
	reason TEXT NOT NULL, 
	decision_seconds FLOAT NOT NULL, 
	prompt TEXT, 
	aim FLOAT, 
	expected_satisfaction FLOAT, 
	price FLOAT, 
	propensity FLOAT, 
	exploration_calls INTEGER, 
	encode_seconds FLOAT, 
	surface BLOB, 
	surface_version VARCHAR(64), 
	expected_t BIGINT, 
	is_within_reach BOOLEAN DEFAULT 1 NOT NULL, 
	label_probability FLOAT, 
	eligible JSON, 
	gated_by JSON, 
	arm VARCHAR(16) DEFAULT 'routed' NOT NULL, 
	would_choose VARCHAR(255), 
	would_cost FLOAT, 
	sample_probability FLOAT, 
	conversation_draw FLOAT, 
	key_alias VARCHAR(255), 
	user_id VARCHAR(255), 
	end_user VARCHAR(255), 
	tags JSON, 
	conversation VARCHAR(64), 
	line VARCHAR(64), 
	prefix VARCHAR(32), 
	turn INTEGER, 
	hold VARCHAR(16), 
	session VARCHAR(32), 
	is_alone BOOLEAN NOT NULL, 
	PRIMARY KEY (request_id), 
	UNIQUE (position)
)
-- table snapshots
CREATE TABLE snapshots (
	zoo VARCHAR(255) NOT NULL, 
	position INTEGER NOT NULL, 
	fingerprint VARCHAR(64) NOT NULL, 
	created_at DATETIME NOT NULL, 
	state BLOB NOT NULL, 
	PRIMARY KEY (zoo, position)
)
-- table zoo_modes
CREATE TABLE zoo_modes (
	zoo VARCHAR(255) NOT NULL, 
	revision INTEGER NOT NULL, 
	mode VARCHAR(16) NOT NULL, 
	share FLOAT NOT NULL, 
	"before" VARCHAR(255), 
	"by" VARCHAR(255) NOT NULL, 
	reason TEXT NOT NULL, 
	at DATETIME NOT NULL, 
	file_fingerprint VARCHAR(64) NOT NULL, 
	forecast JSON, 
	happened JSON, 
	PRIMARY KEY (zoo, revision)
)
-- view calls_per_model
CREATE VIEW calls_per_model AS 
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
                calls.role, 1, CASE WHEN calls.status <> 'success' THEN 1 ELSE 0 END, COALESCE(calls.cost, 0),
                CASE WHEN calls.cost IS NULL THEN 1 ELSE 0 END, COALESCE(calls.prompt_tokens, 0),
                COALESCE(calls.completion_tokens, 0)
            FROM calls JOIN outcomes ON outcomes.request_id = calls.request_id
            WHERE outcomes.position > (SELECT summed FROM log_head) AND calls.position > (SELECT summed FROM log_head)
        ) AS every_call
        GROUP BY zoo, NULLIF(candidate, ''), NULLIF(model, ''), role
-- view conversations
CREATE VIEW conversations AS 
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
            REPLACE(MIN(service_level), ':before', '') AS level,
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
-- view current_labels
CREATE VIEW current_labels AS 
        SELECT label_id, call_id, request_id, created_at, kind, source, value, weight, comment
        FROM labels
        WHERE position = (
            SELECT MAX(newer.position) FROM labels AS newer
            WHERE newer.call_id = labels.call_id AND newer.source = labels.source
        )
-- view daily_service_levels
CREATE VIEW daily_service_levels AS 
        SELECT
            day,
            zoo,
            REPLACE(service_level, ':before', '') AS level,
            CASE WHEN service_level LIKE '%:before' THEN 'incumbent' ELSE 'router' END
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
            SELECT day, zoo, service_level, alpha, 1, CASE WHEN status = 'success' THEN 1 ELSE 0 END,
                CASE WHEN status = 'failure' THEN 1 ELSE 0 END, CASE WHEN failure = 'upstream' THEN 1 ELSE 0 END,
                CASE WHEN failure = 'no_deployment' THEN 1 ELSE 0 END, CASE WHEN failure = 'deadline' THEN 1 ELSE 0 END,
                CASE WHEN failure = 'client_gone' THEN 1 ELSE 0 END, CASE WHEN failure = 'refused' THEN 1 ELSE 0 END,
                CASE WHEN failure = 'unknown' THEN 1 ELSE 0 END, CASE WHEN satisfaction IS NOT NULL THEN 1 ELSE 0 END,
                COALESCE(satisfaction_weight, 0), COALESCE(satisfaction_weight, 0)
                * COALESCE(satisfaction_weight, 0), COALESCE(satisfaction_weight * satisfaction, 0),
                COALESCE(satisfaction_weight * alpha, 0), COALESCE(cost, 0),
                CASE WHEN served_cost IS NOT NULL THEN 1 ELSE 0 END,
                CASE WHEN served_cost IS NOT NULL THEN cost ELSE 0 END,
                CASE WHEN outcomes.status = 'success' AND outcomes.served_cost IS NOT NULL AND outcomes.cost_largest IS NOT NULL THEN 1 ELSE 0 END, CASE WHEN outcomes.status = 'success' AND outcomes.served_cost IS NOT NULL AND outcomes.cost_largest IS NOT NULL THEN served_cost ELSE 0 END
                + exploration_cost + judging_cost,
                CASE WHEN outcomes.status = 'success' AND outcomes.served_cost IS NOT NULL AND outcomes.cost_largest IS NOT NULL THEN cost_largest ELSE 0 END
            FROM outcomes WHERE position > (SELECT summed FROM log_head)
        ) AS every_hour
        GROUP BY day, zoo, service_level
-- view forecasts
CREATE VIEW forecasts AS 
        SELECT
            own.zoo,
            own.revision,
            own.mode,
            own.share,
            own.at,
            next.at AS until,
            next.by AS ended_by,
            json_extract(own.forecast, '$.requests') AS forecast_requests,
            json_extract(own.forecast, '$.satisfaction.estimate') AS forecast_satisfaction,
            json_extract(own.forecast, '$.satisfaction.low') AS lowest_satisfaction,
            json_extract(own.forecast, '$.satisfaction.high') AS highest_satisfaction,
            json_extract(next.happened, '$.satisfaction') AS satisfaction,
            json_extract(own.forecast, '$.cost.estimate') AS forecast_cost,
            json_extract(own.forecast, '$.cost.low') AS lowest_cost,
            json_extract(own.forecast, '$.cost.high') AS highest_cost,
            json_extract(next.happened, '$.cost') AS cost,
            json_extract(next.happened, '$.requests') AS requests
        FROM zoo_modes AS own
        LEFT JOIN zoo_modes AS next
            ON next.zoo = own.zoo AND next.revision = own.revision + 1
        WHERE own.mode <> 'watch'
-- view requests_v
CREATE VIEW requests_v AS 
        SELECT
            requests.request_id,
            requests.created_at,
            outcomes.day,
            requests.zoo,
            REPLACE(requests.service_level, ':before', '') AS level,
            requests.alpha,
            CASE WHEN requests.arm = 'routed' THEN 'router' ELSE 'incumbent' END AS served_by,
            outcomes.served AS model,
            requests.chosen,
            requests.reason,
            CASE
                WHEN outcomes.status = 'success' THEN 'answered'
                WHEN outcomes.status = 'failure' OR outcomes.status IS NULL AND requests.created_at < datetime('now', '-1 day') THEN 'failed'
                ELSE 'open'
            END AS outcome,
            CASE WHEN outcomes.status IS NULL AND requests.created_at < datetime('now', '-1 day') THEN 'unknown' ELSE outcomes.failure END AS failure,
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
                CASE WHEN outcomes.status = 'success' AND outcomes.served_cost IS NOT NULL AND outcomes.cost_largest IS NOT NULL THEN outcomes.cost_largest - outcomes.served_cost ELSE 0 END
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
-- view savings
CREATE VIEW savings AS 
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
