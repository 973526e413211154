"""The `messplus:` section: defaults, inheritance, and refusals that say what to do."""

from typing import Any

import pytest

from benchmarks.settings_tables import every_setting
from litellm_messplus.runtime.errors import ConfigurationError
from litellm_messplus.settings.load import load_settings
from litellm_messplus.settings.promise import READ_BY, Promise
from litellm_messplus.settings.schema import MessplusSettings, ZooSettings

NAN = float("nan")


def load(zoo: dict[str, Any] | None = None, **section: Any) -> MessplusSettings:
    """A whole configuration with one zoo `llama`; what is given is added or replaced."""
    zoos = {"llama": {"alpha": 0.9, **(zoo or {})}}
    return load_settings({"model_list": [], "messplus": {"zoos": zoos, **section}})


def load_paper(zoo: dict[str, Any]) -> MessplusSettings:
    """With the policy that reads V, c and the settings of the SGD."""
    return load({"policy": "paper", **zoo})


def refusal(config: dict[str, Any]) -> ConfigurationError:
    with pytest.raises(ConfigurationError) as caught:
        load_settings(config)
    return caught.value


def refusal_of(zoo: dict[str, Any] | None = None, **section: Any) -> ConfigurationError:
    with pytest.raises(ConfigurationError) as caught:
        load(zoo, **section)
    return caught.value


def test_the_defaults_are_the_papers() -> None:
    zoo = load().zoos["llama"]
    assert (zoo.V, zoo.c) == (1e-4, 0.1)
    assert zoo.learning_rate == 0.06
    assert (zoo.cost_unit, zoo.largest, zoo.service_levels) == ("usd", None, {})


def test_a_zoo_needs_nothing_but_its_alpha() -> None:
    """`adaptive` reads no other setting of the decision."""
    assert load().zoos["llama"].policy == "adaptive"


def test_the_defaults_of_the_section_need_nothing_but_a_zoo() -> None:
    settings = load()
    assert settings.database == "sqlite+aiosqlite:///messplus.db"
    assert settings.encoder == "hashed-ngrams"
    assert settings.seed == 0
    assert settings.store_text is False


def test_every_setting_is_described() -> None:
    assert [each.key for each in every_setting() if not each.field.description] == []


def test_a_level_takes_what_it_leaves_out_from_its_zoo() -> None:
    zoo = load_paper({"V": 2.0, "c": 0.3, "service_levels": {"gold": {"alpha": 0.99}}}).zoos[
        "llama"
    ]
    gold = zoo.level("gold")
    assert (gold.name, gold.alpha, gold.V, gold.c) == ("gold", 0.99, 2.0, 0.3)


def test_a_level_keeps_what_it_sets_even_a_zero() -> None:
    zoo = load_paper({"c": 0.3, "service_levels": {"gold": {"V": 5, "c": 0}}}).zoos["llama"]
    assert (zoo.level("gold").alpha, zoo.level("gold").V, zoo.level("gold").c) == (0.9, 5.0, 0.0)


def test_the_default_level_is_the_zoo_itself() -> None:
    zoo = load_paper({"V": 2.0, "service_levels": {"gold": {"V": 9}}}).zoos["llama"]
    default = zoo.level("default")
    assert (default.name, default.alpha, default.V, default.c) == ("default", 0.9, 2.0, 0.1)


def test_a_level_that_is_not_configured_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        load().zoos["llama"].level("gold")


def test_settings_cannot_be_changed_after_they_were_checked() -> None:
    with pytest.raises(ValueError, match="frozen"):
        setattr(load().zoos["llama"], "alpha", 2.0)  # noqa: B010 - mypy refuses it too


@pytest.mark.parametrize("given", [0, 1, 1.5, -0.1, "x", NAN, float("inf"), None, [0.9]])
def test_an_alpha_outside_the_open_interval_is_refused(given: object) -> None:
    error = refusal_of({"alpha": given})
    assert error.key == "messplus.zoos.llama.alpha"
    assert error.given is given
    assert error.allowed == "a share greater than 0 and less than 1"
    assert str(error) == f"{error.key}: given {given!r}; allowed: {error.allowed}"


@pytest.mark.parametrize("given", [0, 1, 1.5, "x"])
def test_an_alpha_of_a_level_is_held_to_the_same(given: object) -> None:
    error = refusal_of({"service_levels": {"gold": {"alpha": given}}})
    assert error.key == "messplus.zoos.llama.service_levels.gold.alpha"
    assert error.given == given
    assert error.allowed == "a share greater than 0 and less than 1"


@pytest.mark.parametrize(
    ("key", "given", "allowed"),
    [
        ("V", 0, "a number greater than 0"),
        ("V", -1, "a number greater than 0"),
        ("V", NAN, "a number greater than 0"),
        ("V", "dear", "a number greater than 0"),
        ("c", -0.1, "a number of at least 0"),
        ("c", NAN, "a number of at least 0"),
        ("learning_rate", 0, "greater than 0"),
        ("cost_unit", "eur", "'usd' or 'joule'"),
        ("policy", "best", "'adaptive' or 'paper'"),
    ],
)
def test_a_bad_value_of_a_zoo_is_refused(key: str, given: object, allowed: str) -> None:
    error = refusal_of({key: given})
    assert error.key == f"messplus.zoos.llama.{key}"
    assert error.given is given
    assert error.allowed == allowed


@pytest.mark.parametrize(
    ("key", "given", "allowed"),
    [
        ("deadline_seconds", 0, "greater than 0"),
        ("encoder", 7, "a valid string"),
        ("encoder", "", "String should have at least 1 character"),
        ("seed", "x", "a valid integer"),
        ("store_text", "maybe", "a valid boolean"),
    ],
)
def test_a_bad_value_of_the_section_is_refused(key: str, given: object, allowed: str) -> None:
    section: dict[str, Any] = {key: given}
    error = refusal_of(None, **section)
    assert error.key == f"messplus.{key}"
    assert error.given == given
    assert error.allowed.startswith(allowed)


@pytest.mark.parametrize("key", sorted(READ_BY["paper"]))
def test_a_setting_that_the_policy_does_not_read_is_refused(key: str) -> None:
    """Left in, it would look as if it counted."""
    value = 0.5
    assert getattr(load_paper({key: value}).zoos["llama"], key) == value
    error = refusal_of({key: value})
    assert error.key == "messplus.zoos.llama"
    assert error.allowed.startswith(f"without {key}, which only `policy: paper` reads")
    assert error.allowed == refusal_of({"policy": "adaptive", key: value}).allowed


@pytest.mark.parametrize("key", ["V", "c"])
def test_a_setting_of_a_level_that_the_policy_does_not_read_is_refused(key: str) -> None:
    levels = {"gold": {"alpha": 0.99}, "batch": {key: 0.5}}
    error = refusal_of({"service_levels": levels})
    assert error.key == "messplus.zoos.llama"
    assert error.allowed.startswith(f"without {key}, which only `policy: paper` reads")
    assert load_paper({"service_levels": levels}).zoos["llama"].level("batch")


def test_conversations_are_held_unless_the_paper_decides() -> None:
    assert load({}).zoos["llama"].hold == "warm"
    assert load({"conversations": {"hold": "tool_loop"}}).zoos["llama"].hold == "tool_loop"
    assert load_paper({}).zoos["llama"].hold == "never"
    assert load_paper({"conversations": {"hold": "never"}}).zoos["llama"].hold == "never"


@pytest.mark.parametrize("hold", ["warm", "tool_loop"])
def test_the_paper_holds_nothing(hold: str) -> None:
    error = refusal_of({"policy": "paper", "conversations": {"hold": hold}})
    assert error.key == "messplus.zoos.llama"
    assert error.allowed.startswith(f"without `conversations.hold: {hold}`, which only")


def test_another_way_to_hold_is_refused() -> None:
    error = refusal_of({"conversations": {"hold": "always"}})
    assert error.key == "messplus.zoos.llama.conversations.hold"
    assert (error.given, error.allowed) == ("always", "'never', 'tool_loop' or 'warm'")


def test_every_setting_that_is_not_read_is_named_at_once() -> None:
    error = refusal_of({"learning_rate": 0.1, "c": 0.5, "service_levels": {"gold": {"V": 2}}})
    assert error.allowed.startswith("without V and c and learning_rate, which")


def test_a_zoo_must_state_its_alpha() -> None:
    error = refusal({"messplus": {"zoos": {"llama": {}}}})
    assert (error.key, error.given) == ("messplus.zoos.llama.alpha", "nothing")
    assert error.allowed == "a share greater than 0 and less than 1"


@pytest.mark.parametrize(
    ("zoo", "section", "key", "model"),
    [
        ({}, {"sede": 1}, "messplus.sede", MessplusSettings),
        ({"aplha": 0.9}, {}, "messplus.zoos.llama.aplha", ZooSettings),
        (
            {"service_levels": {"gold": {"aplha": 0.9}}},
            {},
            "messplus.zoos.llama.service_levels.gold.aplha",
            Promise,
        ),
    ],
)
def test_an_unknown_key_is_refused_with_the_keys_known_at_its_place(
    zoo: dict[str, Any], section: dict[str, Any], key: str, model: type[Any]
) -> None:
    error = refusal_of(zoo, **section)
    assert error.key == key
    assert error.allowed.startswith("no such key")
    assert error.allowed.endswith("known here: " + ", ".join(sorted(model.model_fields)))
    assert repr(error.given) in str(error)


@pytest.mark.parametrize(
    ("zoo", "section", "meant"),
    [
        ({"aplha": 0.9}, {}, "alpha"),
        ({"Alpha": 0.9}, {}, "alpha"),
        ({"service_levels": {"gold": {"alfa": 0.9}}}, {}, "alpha"),
        ({"buy_labels": {"jugde": {}}}, {}, "judge"),
        ({}, {"data_base": "x"}, "database"),
    ],
)
def test_the_nearest_known_key_is_suggested_for_an_unknown_one(
    zoo: dict[str, Any], section: dict[str, Any], meant: str
) -> None:
    assert f"(did you mean `{meant}`?)" in refusal_of(zoo, **section).allowed


def test_no_key_is_suggested_where_none_is_near() -> None:
    assert refusal_of({"xyz": 1}).allowed.startswith("no such key; known here: ")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"response_bias": "audit"}, "a number greater than 0, which you state: no audit"),
        ({"first": []}, "LiteLLM's tags of deployments and keys"),
        ({"budget_per_day": 5}, "LiteLLM's budgets of a key"),
        ({"p95_seconds": 4}, "LiteLLM's `timeout`"),
        ({"service_levels": {"gold": {"p95_seconds": 4}}}, "LiteLLM's `timeout`"),
        ({"unmet": "refuse"}, "nothing: a request chooses a service level"),
        ({"teams": "include"}, "nothing: a team's own models"),
        ({"buy_labels": {"gradings_per_day": 5}}, "`label_rate`, or `buy_labels.budget_per_day`"),
        ({"answer_logprobs": True}, "`answer_score`: a function of your own"),
        ({"electricity": {"price_per_kwh": 0.3, "carbon_per_kwh": 300}}, "nothing: joules times"),
        ({"conversations": {"unit": "conversation"}}, "nothing: a verdict on a conversation"),
        ({"failures": "count"}, "nothing: a failed request is a figure of its own"),
        ({"label_noise": 0.1}, "nothing: verdicts are taken as they are"),
        ({"labels": {"implicit": {}}}, "feedback, `checks` or `labels: auto`"),
    ],
)
def test_a_past_setting_is_refused_with_its_successor(given: dict[str, Any], words: str) -> None:
    assert refusal_of(given).allowed.startswith(words)


def test_a_former_setting_of_the_section_is_refused_too() -> None:
    given = {"keep_days": 90, "archive": "/srv/archive"}
    assert refusal_of({}, retention=given).allowed.startswith("`COPY` or DuckDB")
    assert refusal_of({}, webhook="https://alerts").allowed.startswith("Alertmanager")


def test_the_default_level_may_not_be_configured_twice() -> None:
    error = refusal_of({"service_levels": {"default": {"alpha": 0.5}}})
    assert error.key == "messplus.zoos.llama"
    assert "the service level 'default' is the zoo's own" in error.allowed


@pytest.mark.parametrize(
    "config", [{}, {"messplus": None}, {"messplus": []}, {"messplus": "on"}], ids=repr
)
def test_a_missing_section_is_refused(config: dict[str, Any]) -> None:
    error = refusal(config)
    assert error.key == "messplus"
    assert error.given == config.get("messplus")
    assert "zoos:" in error.allowed


@pytest.mark.parametrize("place", ["litellm_settings", "general_settings", "router_settings"])
def test_a_section_below_one_of_litellms_is_refused_with_where_it_belongs(place: str) -> None:
    error = refusal({place: {"messplus": {"zoos": {"llama": {"alpha": 0.9}}}}})
    assert error.key == f"{place}.messplus"
    assert error.given == f"a section below `{place}:`"
    assert error.allowed == f"`messplus:` at the top level of the file, next to `{place}:`"


@pytest.mark.parametrize("section", [{}, {"zoos": {}}, {"zoos": None}, {"zoos": []}], ids=repr)
def test_a_section_without_a_zoo_is_refused(section: dict[str, Any]) -> None:
    error = refusal({"messplus": section})
    assert error.key == "messplus.zoos"
    assert error.given == section.get("zoos", "nothing")


@pytest.mark.parametrize("name", ["c", "V", "alpha"])
def test_what_is_allowed_for_a_zoo_does_not_depend_on_its_name(name: str) -> None:
    named = refusal({"messplus": {"zoos": {name: 5}}})
    other = refusal({"messplus": {"zoos": {"llama": 5}}})
    assert named.key == f"messplus.zoos.{name}"
    assert named.allowed == other.allowed


def test_electricity_turns_joules_into_dollars() -> None:
    stated = {"price_per_kwh": 0.36}
    electricity = load({"cost_unit": "joule", "electricity": stated}).zoos["llama"].electricity
    assert electricity is not None
    assert electricity.dollars_per_joule == pytest.approx(1e-7)


@pytest.mark.parametrize(
    ("electricity", "key"),
    [
        ({}, "price_per_kwh"),
        ({"price_per_kwh": 0}, "price_per_kwh"),
        ({"price_per_kwh": -0.1}, "price_per_kwh"),
        ({"price_per_kwh": NAN}, "price_per_kwh"),
        ({"price_per_kwh": 0.3, "carbon": 1}, "carbon"),
    ],
    ids=str,
)
def test_senseless_electricity_is_refused(electricity: dict[str, float], key: str) -> None:
    error = refusal_of({"electricity": electricity})
    assert error.key == f"messplus.zoos.llama.electricity.{key}"
