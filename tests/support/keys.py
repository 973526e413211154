"""Written beside a test proxy's configuration: keys without LiteLLM's own database."""

CUSTOM_AUTH = """
from fastapi import Request
from litellm.proxy._types import LitellmUserRoles, ProxyException, UserAPIKeyAuth

LEVELS = {"sk-alice": {}, "sk-bob": {}, "sk-gold": {"messplus_service_level": "gold"},
          "sk-typo": {"messplus_service_level": "glod"}, "sk-operator": {}}


async def authenticate(request: Request, api_key: str) -> UserAPIKeyAuth:
    if api_key not in LEVELS:
        raise ProxyException(message="unknown key", type="auth_error", param="key", code=401)
    operates = api_key == "sk-operator"
    role = LitellmUserRoles.PROXY_ADMIN if operates else LitellmUserRoles.INTERNAL_USER
    return UserAPIKeyAuth(api_key=api_key, metadata=LEVELS[api_key], user_role=role)
"""
