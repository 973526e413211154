"""The plugin starts only behind a LiteLLM that it fits, and says in one line what is off."""

import asyncio
import sqlite3
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import litellm
import pytest
from litellm.integrations.custom_logger import CustomLogger
from sqlalchemy.exc import OperationalError

from litellm_messplus.serving import litellm_fit
from litellm_messplus.serving.litellm_fit import (
    NEWEST,
    OLDEST,
    TAG,
    TRIALS,
    UnfitLitellmError,
    check_litellm,
)
from litellm_messplus.serving.litellm_seam import flush_log_events
from tests.support.proxy import zoo_config


def refusal() -> str:
    with pytest.raises(UnfitLitellmError) as caught:
        check_litellm()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_the_installed_litellm_fits_and_nothing_of_the_trial_is_left() -> None:
    def global_state() -> dict[str, Any]:
        lists = {name: each for name, each in vars(litellm).items() if isinstance(each, list)}
        kept = {name: (id(each), list(each)) for name, each in lists.items() if "callback" in name}
        return {**kept, "model_cost": len(litellm.model_cost)}

    check_litellm()  # the first one imports LiteLLM's proxy, which has callbacks of its own
    before = global_state()
    assert check_litellm() is None
    assert global_state() == before


def test_no_logger_of_the_operator_hears_of_the_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[str] = []

    class Logger(CustomLogger):  # type: ignore[misc]
        async def async_filter_deployments(self, *given: Any, **named: Any) -> Any:
            heard.append("filter")

        async def async_log_success_event(self, *given: Any, **named: Any) -> None:
            heard.append("success")

        async def async_log_failure_event(self, *given: Any, **named: Any) -> None:
            heard.append("failure")

    logger = Logger()
    for name in ("callbacks", "_async_success_callback", "_async_failure_callback"):
        monkeypatch.setattr(litellm, name, [*getattr(litellm, name), logger])
    check_litellm()
    asyncio.run(flush_log_events())

    assert heard == []
    assert litellm.callbacks[-1] is logger


@pytest.mark.parametrize("installed", ["1.108.3", "1.105.7", "1.100.0", "0.14.1"])
def test_a_litellm_too_old_is_refused(installed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "version", lambda name: installed)
    found = refusal()
    assert f"given {installed}, which is too old" in found
    assert f"{OLDEST} to {NEWEST}" in found


def test_the_release_of_an_attacker_is_refused_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "version", lambda name: "1.107.0")
    assert "given 1.107.0, which an attacker released" in refusal()


@pytest.mark.parametrize("installed", ["1.110.3", "1.112.0rc1", "2.0.0"])
def test_a_newer_litellm_is_named(installed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "version", lambda name: installed)
    found = check_litellm()
    assert found is not None
    assert f"LiteLLM {installed} is newer than {NEWEST}" in found
    assert "\n" not in found


async def wants_more(*arguments: Any, one_more: Any, **named: Any) -> None:
    """A function that LiteLLM has given one more argument."""


async def keeps_everyone(self: object, healthy_deployments: list[Any], **named: Any) -> list[Any]:
    """LiteLLM's call of the filters, as if it read nothing of what they return."""
    return healthy_deployments


async def tries_the_first_again(*given: Any, **named: Any) -> dict[str, Any]:
    """A call of LiteLLM's router that asks no filter at its second attempt."""
    for callback in litellm.callbacks:
        await callback.async_log_failure_event({}, None, None, None)
        await callback.async_log_success_event({}, None, None, None)
    return {"_hidden_params": {"model_id": f"{TAG}-0"}}


SEAM = "litellm_messplus.serving.litellm_seam"
FILTERS: tuple[str, object] = (
    ("litellm.Router.async_callback_filter_deployments", keeps_everyone)
    if find_spec("litellm.router_rust") is None
    else (
        "litellm.router_rust.steps.callbacks.filtered_ids",
        lambda remaining, candidates: list(candidates),
    )
)
"""Where LiteLLM reads what a filter returns: in Python, or behind its Rust core."""
BROKEN: dict[str, tuple[str, object]] = {
    "Router.registry() or Router.settings()": (f"{SEAM}._settings", wants_more),
    "Router.registry().router_model_info": (f"{SEAM}.router_model_info", wants_more),
    "get_deployments_for_tag": (f"{SEAM}.get_deployments_for_tag", wants_more),
    "async_get_available_deployments of a strategy": (
        "litellm.router_strategy.lowest_tpm_rpm_v2.LowestTPMLoggingHandler_v2"
        ".async_get_available_deployments",
        wants_more,
    ),
    "Logging.pre_call": (
        "litellm.litellm_core_utils.litellm_logging.Logging.pre_call",
        lambda self, input, api_key: None,
    ),
    "Router._count_pre_call_check_tokens": (
        "litellm.Router._count_pre_call_check_tokens",
        wants_more,
    ),
    "ModelResponse._hidden_params or a name next to it": (
        "litellm.ModelResponse._hidden_params",
        0,
    ),
    "CustomGuardrail.event_hook": (
        "litellm.integrations.custom_guardrail.CustomGuardrail",
        lambda **given: None,
    ),
    "ResponsesIDSecurity or ResponsesAPIRequestUtils": (
        "litellm.proxy.hooks.responses_id_security.ResponsesIDSecurity._decrypt_response_id",
        wants_more,
    ),
    "Cache.async_get_cache": ("litellm.Cache.async_get_cache", lambda self: None),
    "litellm.proxy.proxy_server": ("litellm.proxy.proxy_server.proxy_shutdown_event", None),
    "user_api_key_auth": (
        "litellm.proxy.auth.user_api_key_auth.user_api_key_auth",
        lambda request: None,
    ),
    "a hook of CustomLogger": (
        "litellm_messplus.serving.plugin.MessplusPlugin.async_log_success_event",
        lambda self, kwargs, response_obj: None,
    ),
    "the router's choice behind a filter": FILTERS,
    "the router's second attempt behind a filter": (
        "litellm.Router.acompletion",
        tries_the_first_again,
    ),
}
"""What is broken of each trial, and what stands there instead."""


@pytest.mark.parametrize("name", BROKEN)
def test_a_changed_name_is_refused_by_its_name(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check_litellm()  # it loads all that is broken next
    monkeypatch.setattr(*BROKEN[name])
    found = refusal()
    assert f"in which {name} is another" in found
    assert metadata.version("litellm") in found


def test_a_name_that_is_gone_from_a_module_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(made: object) -> None:
        raise ImportError("cannot import name 'all_litellm_params'")

    monkeypatch.setitem(TRIALS, "a name of the seam", gone)
    assert "all_litellm_params" in refusal()


def test_every_trial_has_been_broken_once() -> None:
    assert {*BROKEN, "a name of the seam"} == set(TRIALS)


def test_a_router_that_reads_no_filter_stops_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the version says, and with all names there."""
    check_litellm()
    monkeypatch.setattr(*FILTERS)
    monkeypatch.setattr(metadata, "version", lambda name: "1.112.0")
    found = refusal()
    assert "given 1.112.0, in which the router's choice behind a filter is another" in found
    assert f"'{TAG}-0' in place of '{TAG}-1'" in found
    assert f"allowed: {OLDEST} to {NEWEST}" in found


def test_the_start_logs_that_a_litellm_is_untested(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(litellm_fit, "check_litellm", lambda: "LiteLLM 1.112.0 is newer")
    monkeypatch.setattr("litellm_messplus.serving.startup.start", lambda learner: learner)
    monkeypatch.setattr(litellm_fit, "_launched", lambda: None)
    assert litellm_fit.start() is None
    assert [each.message for each in caplog.records] == ["LiteLLM 1.112.0 is newer"]


class ExitError(BaseException):
    """In place of the end of the process."""


def ended(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    """The one line with which a start ends the process."""

    def end(status: int) -> None:
        assert status != 0
        raise ExitError

    monkeypatch.setattr("os._exit", end)
    monkeypatch.setattr(litellm_fit, "_launched", lambda: None)
    with pytest.raises(ExitError):
        litellm_fit.start()
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert "`litellm_messplus.plugin.instance` is taken out of `litellm_settings.callbacks`" in line
    return str(line)


def test_a_litellm_that_does_not_fit_ends_the_start(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(metadata, "version", lambda name: "1.99.0")
    assert "given 1.99.0" in ended(monkeypatch, capsys)


STARTUP = "litellm_messplus.serving.startup"
BRAIN = "litellm_messplus.brain.brain"
OPENING = "litellm_messplus.brain.opening"
STEPS = {
    STARTUP: ("show_log", "threadpool_limits", "honoured", "PromptTokens", "capabilities.warm_up"),
    "litellm_messplus.serving.inside": ("check_place", "new_brain", "Parts"),
    BRAIN: ("load_encoder", "Engine", "LiveModes"),
    OPENING: (
        *("migrate", "save_rules", "adopt", "log.mend_head", "restore", "keep_new"),
        "read_conversation_key",
    ),
}


@pytest.mark.parametrize(
    ("step", "error"),
    [
        *(
            (f"{module}.{step}", RuntimeError("two\nlines"))
            for module, steps in STEPS.items()
            for step in steps
        ),
        ("litellm_messplus.serving.litellm_fit.check_litellm", ImportError("two lines")),
        (f"{OPENING}.migrate", OperationalError("", {}, sqlite3.OperationalError("two lines"))),
        (f"{BRAIN}.load_encoder", PermissionError(13, "two lines")),
    ],
)
def test_any_error_of_a_start_is_one_line(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    step: str,
    error: Exception,
) -> None:
    config = zoo_config("http://127.0.0.1:9/v1", tmp_path, brain="inside")
    monkeypatch.setattr(f"{STARTUP}.proxy_configuration", lambda: config)
    monkeypatch.setattr(litellm_fit, "check_litellm", lambda: None)

    def broken(*arguments: object, **named: object) -> None:
        raise error

    monkeypatch.setattr(step, broken)
    assert "two lines" in ended(monkeypatch, capsys)
