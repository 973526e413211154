"""Where the log begins since it was pruned: the state of each zoo that the fold goes on from."""

from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.store import base
from litellm_messplus.upkeep.finding import Finding, Outcome

CHECK = "bases"


async def check_bases(database: AsyncEngine) -> list[Finding]:
    """Tell of those that a start goes on from; nothing where nothing was pruned."""
    found = [await base.read(database, zoo) for zoo in sorted(await base.positions(database))]
    return [
        Finding(
            CHECK,
            Outcome.SOUND,
            f"{each.zoo}: the fold begins at {each.position}, with the state that the log was "
            f"pruned to on {each.created_at:%Y-%m-%d}",
        )
        for each in found
        if each is not None
    ]
