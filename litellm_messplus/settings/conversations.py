"""Whether a conversation stays with the model that it is held on."""

from typing import Literal

from pydantic import Field

from litellm_messplus.settings.labels import Settings

HoldMode = Literal["never", "tool_loop", "warm"]


class ConversationsSettings(Settings):
    """The settings of conversations. What is left out depends on the policy."""

    hold: HoldMode | None = Field(
        default=None,
        description="When a request stays with the deployment that answered before it: `never`; "
        "`tool_loop`, while a tool loop is open or the prompt holds what no other model can read; "
        "`warm`, also while its prompt cache is warm and that saves money.",
    )
