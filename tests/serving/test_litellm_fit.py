"""The plugin starts only behind a LiteLLM that it fits, and says in one line what is off."""

from importlib import metadata
from typing import Any

import litellm
import pytest

from litellm_messplus.serving import litellm_fit
from litellm_messplus.serving.litellm_fit import (
    NEWEST,
    OLDEST,
    TRIALS,
    UnfitLitellmError,
    check_litellm,
)


def refusal() -> str:
    with pytest.raises(UnfitLitellmError) as caught:
        check_litellm()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_the_installed_litellm_fits_and_nothing_of_the_trial_is_left() -> None:
    def global_state() -> list[int]:
        lists = ("callbacks", "success_callback", "failure_callback", "_async_success_callback")
        return [len(litellm.model_cost), *(len(getattr(litellm, name)) for name in lists)]

    check_litellm()  # the first one imports LiteLLM's proxy, which has callbacks of its own
    before = global_state()
    check_litellm()
    assert global_state() == before


@pytest.mark.parametrize("installed", ["1.105.7", "1.100.0", "0.14.1"])
def test_a_litellm_that_is_not_supported_any_more_is_refused(
    installed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metadata, "version", lambda name: installed)
    found = refusal()
    assert f"given {installed}" in found
    assert f"{OLDEST} to {NEWEST}" in found


async def wants_more(*arguments: Any, one_more: Any, **named: Any) -> None:
    """A function that LiteLLM has given one more argument."""


SEAM = "litellm_messplus.serving.litellm_seam"
BROKEN: dict[str, tuple[str, object]] = {
    "Router.registry() or Router.settings()": (f"{SEAM}._settings", wants_more),
    "Router.registry().router_model_info": (f"{SEAM}.router_model_info", wants_more),
    "get_deployments_for_tag": (f"{SEAM}.get_deployments_for_tag", wants_more),
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
    "GLOBAL_LOGGING_WORKER.flush": (
        "litellm.litellm_core_utils.logging_worker.GLOBAL_LOGGING_WORKER.flush",
        lambda timeout: None,
    ),
    "litellm.proxy.proxy_server": ("litellm.proxy.proxy_server.proxy_shutdown_event", None),
    "user_api_key_auth": (
        "litellm.proxy.auth.user_api_key_auth.user_api_key_auth",
        lambda request: None,
    ),
    "a hook of CustomLogger": (
        "litellm_messplus.serving.plugin.MessplusPlugin.async_log_success_event",
        lambda self, kwargs, response_obj: None,
    ),
}
"""What is broken of each trial, and what stands there instead."""


@pytest.mark.parametrize("name", BROKEN)
def test_a_name_that_litellm_has_changed_is_refused_by_its_name(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_the_start_ends_the_process_before_any_other_module_is_loaded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said: list[str] = []

    def end(reason: str) -> None:
        said.append(reason)
        raise SystemExit

    monkeypatch.setattr(litellm_fit, "end_process", end)
    monkeypatch.setattr(metadata, "version", lambda name: "1.99.0")
    with pytest.raises(SystemExit):
        litellm_fit.start()
    assert "given 1.99.0" in said[0]
