"""An encoder for a real proxy, whose requests then have their numbers as ids, as in a replay: draws
go by the id, so both draw the same."""

from itertools import count

from litellm_messplus.core.hashed_ngrams import HashedNgrams
from litellm_messplus.serving import router


class Numbered(HashedNgrams):
    """The usual encoder."""

    def __init__(self) -> None:
        super().__init__()
        numbers = count()
        vars(router)["new_id"] = lambda: str(next(numbers))
