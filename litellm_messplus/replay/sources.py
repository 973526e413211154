"""Where recordings come from."""

from pathlib import Path

from litellm_messplus.prediction.encoder import Encoder
from litellm_messplus.replay.database import is_database, read_database
from litellm_messplus.replay.files import read_file
from litellm_messplus.replay.recording import Recording


def load(source: str, encoder: Encoder) -> list[Recording]:
    """The recording in a file, or one for each zoo of a database.

    Raises ReplayError where there is none, and says what is wrong with it.
    """
    if is_database(source):
        return read_database(source, encoder)
    return [read_file(Path(source), encoder)]
