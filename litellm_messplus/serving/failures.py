"""Who failed, by the error that ended a call: the one table of it.

A provider refuses a request for its account or key with the status of a bad one, too. A message may
quote the client, who must not decide by it who failed: only codes count, and the words with which
the provider's own sentence begins."""

import ast
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from fastapi import HTTPException
from litellm import exceptions

from litellm_messplus.runtime.errors import REFUSALS
from litellm_messplus.runtime.vocabulary import Failure
from litellm_messplus.serving.litellm_seam import finds_no_deployment

GONE_STATUS = 499
"""The HTTP status that LiteLLM's proxy uses when its client has disconnected."""
TIMEOUT_STATUS = 408
"""The HTTP status of LiteLLM's timeouts."""
OF_A_KEY = frozenset({401, 402, 403, 429})
"""The HTTP statuses that tell of the key and its account."""
OF_THE_CLIENT = (
    exceptions.CallerCredentialAuthenticationError,
    exceptions.CallerCredentialRateLimitError,
    exceptions.BudgetExceededError,
    exceptions.ModifyResponseException,
    exceptions.SensitiveDataRouteException,
)
"""Errors of a request that is itself at fault, whatever their status."""
# What providers say of their own account, with the statuses 400 and 422 too:
#
# - OpenAI: `insufficient_quota`, `billing_hard_limit_reached`, "You exceeded your current quota"
# - Anthropic: "Your credit balance is too low", "You have reached your specified API usage limits"
# - Gemini: "API key expired", "API key not valid" (`API_KEY_INVALID`), `SERVICE_DISABLED`
# - Bedrock: "Operation not allowed", "The provided model identifier is invalid"
# - DeepSeek: "Insufficient Balance"; OpenRouter: "This request requires more credits"
# - Groq: `organization_restricted`; xAI: "Incorrect API key provided"; DashScope: `Arrearage`
# - LiteLLM as a provider: `budget_exceeded`
#
# What a client sent is quoted behind a colon or in quotation marks, or a provider's sentence does
# not begin with it: neither is matched. Most providers write other statuses too: 401, 402, 403 and
# 429, which are theirs whatever they say, but for a request that they forbid for its words.

CODES = re.compile(
    r"""(?ix)(?:insufficient|not_enough)_(?:balance|credits?|funds|quota)
    |(?:access|account|api_key|billing|consumer|key|organization|service|user)_\w*(?:blocked
       |deactivated|denied|disabled|expired|invalid|not_active|restricted|suspended|terminated)
    |(?:expired|incorrect|invalid)_(?:api_key|authentication)\w*|authentication_error
    |(?:exceeded_current_quota|billing)_error|(?:quota|budget)_exceeded|payment_required|arrearage
    |billing_(?:hard_limit_reached|limit_user_error)|blocked_api_access
    |model_(?:decommissioned|not_found)|unsupported_country_region_territory"""
)
"""Codes with which providers tell of their account, key or model."""
_WORDS = r"(?:[^.:;{}\[\]'\"`]|(?<=\w)'(?=\w))"
ACCOUNT = re.compile(
    rf"""(?ix)(?:the|this|your|our)?\s*(?:[\w-]+\s){{0,3}}?(?:account|organi[sz]ation|workspace
       |subscription|balance|credits?|quota|api[ _-]?key|billing
       |(?:spend(?:ing)?|usage|credit|billing|monthly)\s(?:hard\s|soft\s)?(?:limit|cap)s?)\b
       {_WORDS}{{0,60}}?\b(?:too\slow|insufficient|not\senough|exceeded|exhausted|expired|disabled
       |deactivated|suspended|restricted|revoked|blocked|inactive|invalid|not\s(?:valid|active|found)
       |depleted|used\sup|r[au]n\sout|reached|terminated|overdue|past\sdue|arrears|closed|locked
       |frozen|banned|must\sbe\sverified|(?:is|are|was|been)\srequired)\b(?!{_WORDS}*:)
    |you\b{_WORDS}{{0,60}}?\b(?:quota|usage\slimits?|credits?|(?:account|enough)\sbalance|billing
       |spend(?:ing)?\s(?:limit|cap)|payment\smethod|monthly\slimit|free\stier|subscription)\b
       (?!{_WORDS}*:)
    |(?:the|this|your)\b{_WORDS}{{0,60}}?\b(?:have|has)\s(?:any|enough|no)\s(?:credit|balance|fund)
    |(?:insufficient|not\senough|no|out\sof|low)\s(?:\w+\s)?(?:balance|credits?|funds|quota)\b
    |(?:invalid|incorrect|expired|disabled|missing|unknown)\s(?:\w+\s)?api[ _-]?key\b
    |(?:this\srequest\s)?requires\smore\scredits\b|payment\srequired\b|operation\snot\sallowed\b
    |access\sdenied,\s{_WORDS}{{0,40}}\b(?:account|billing)\b|budget\shas\sbeen\sexceeded\b
    |please\b{_WORDS}{{0,60}}\b(?:billing|credits?|payment|recharge)\b
    |user\slocation\sis\snot\ssupported\b|the\s(?:provided\s)?model\sidentifier\sis\sinvalid\b
    |[\w./:@-]+\sis\snot\sa\svalid\smodel\sid\b|\S{{0,20}}(?:余额不足|欠费)"""
)
"""The beginnings of sentences in which providers tell of their account, key or model."""
MODERATED = re.compile(r"(?i)\bmoderation\b|\bflagged\b|usage guidelines|content polic|safety")
"""Words of a provider that forbids a request for what it says."""
_PREFIX = re.compile(
    r"\A(?:[\w.]*(?:Error|Exception)(?:\s\w+Error)?\s?[:-]\s|Error code: \d{3} - |HTTP \d{3}: )+"
)
_OF_LITELLM = "\n\nLiteLLM:"
"""What LiteLLM's router adds to a message begins with this."""
_SAYING = ("message", "error", "detail", "msg")
_CODED = ("code", "type", "status", "reason")


def who_failed(
    error: BaseException, *, is_called: bool = False, is_own: bool = False, is_unread: bool = False
) -> Failure:
    """Classify the error that ended a call by who failed; ``is_called`` if a model was called
    before no deployment was left, ``is_own`` if the key or endpoint was the client's own, and
    ``is_unread`` if LiteLLM called no model at all."""
    status = getattr(error, "status_code", None)
    if finds_no_deployment(error) and not is_called:
        return Failure.NO_DEPLOYMENT
    if isinstance(error, HTTPException) and status == GONE_STATUS:  # an endpoint's is upstream
        return Failure.CLIENT_GONE
    if isinstance(error, TimeoutError) or status == TIMEOUT_STATUS:
        return Failure.DEADLINE
    is_clients = (
        isinstance(error, OF_THE_CLIENT)
        or (is_own and status in OF_A_KEY | REFUSALS)
        or (status in REFUSALS and not tells_of_account(error))
        or (status == 403 and MODERATED.search(str(error)))
        or (is_unread and _is_of_python(error))
    )
    return Failure.REFUSED if is_clients else Failure.UPSTREAM


def tells_of_account(error: BaseException) -> bool:
    """Tell whether a provider says that its account, its key or its model cannot be used."""
    if isinstance(error, exceptions.LiteLLMUnknownProvider | exceptions.VectorStoreSearchError):
        return True
    text = _PREFIX.sub("", str(getattr(error, "message", None) or error), count=1)
    text = text.partition(_OF_LITELLM)[0].strip()
    parts = [_parsed(text), getattr(error, "body", None), vars(error)]
    said = list(_strings(parts[:2], _SAYING)) or [text]
    is_coded = any(map(CODES.fullmatch, _strings(parts, _CODED)))
    return is_coded or any(ACCOUNT.match(each.strip()) for each in said)


def _parsed(text: str) -> object:
    """Return the object that a message consists of, in JSON or as Python shows it; else None."""
    for read in (json.loads, ast.literal_eval) if text.startswith(("{", "[")) else ():
        with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
            found: object = read(text)
            return found
    return None


def _strings(found: object, names: Sequence[str]) -> Iterator[str]:
    """Yield the strings under these names in a provider's error, and in what it holds."""
    if isinstance(found, Mapping):
        yield from (v for k, v in found.items() if k in names and isinstance(v, str))
        found = [found.get("error"), found.get("details")]
    if isinstance(found, list):
        for each in found:
            yield from _strings(each, names) if isinstance(each, Mapping | list) else ()


def _is_of_python(error: BaseException) -> bool:
    """Tell whether an error began as one of Python's own in LiteLLM, not of a file or a package."""
    while (before := error.__cause__ or error.__context__) is not None:
        error = before
    is_own = type(error).__module__ == "builtins"
    return is_own and not isinstance(error, OSError | ImportError)
