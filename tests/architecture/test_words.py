"""Plain words: what a reader of any country knows, in the docs and in what the code says."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CODE = ("litellm_messplus", "migrations", "benchmarks", "examples")
PLAIN = {
    "dear": "expensive",
    "dearer": "more expensive",
    "dearest": "most expensive",
    "oftener": "more often",
    "heed": "follow",
    "heeds": "follows",
    "heeded": "followed",
    "seldom": "rarely",
    "whilst": "while",
    "hitherto": "so far",
    "beside": "next to",
    "nobody": "no one",
    "everybody": "everyone",
}
"""What not to write, and what to write instead."""
NOT_BEFORE_A_NOUN = frozenset(
    re.findall(
        r"\w+",
        """
    After As At Before By During For From How If In Into Nobody Nothing Of On Once Per Since That
    These This Those Through To Under Until What When Where Whether Which While Who Whom Whose Why
    With Without
    Asks Builds Counts Finds Follows Gives Hands Holds Keeps Knows Learns Listens Looks Measures
    Pauses Reads Reports Runs Sends Starts Takes Tells Waits Watches Writes
    """,
    )
)
"""What no docstring of a class begins with: a class is a thing, so its docstring names it."""
VERBS = frozenset(
    re.findall(
        r"\w+",
        """
    Accept Add Alter Analyse Answer Append Apply Archive Arrange Ask Assert Assign Average Begin
    Bind Block Bound Break Bring Build Cache Call Cancel Carry Certify Change Charge Check Choose
    Classify Clean Clear Close Collect Combine Compare Compute Connect Consume Continue Convert
    Copy Correct Count Create Cut Decide Decode Define Delete Deliver Demand Derive Describe
    Detect Discard Divide Do Drain Draw Drop Dump Emit Encode End Enter Erase Escape Estimate
    Exclude Expect Explain Explore Export Extend Fail Fetch Fill Filter Find Finish Fit Flush Fold
    Follow Forget Format Free Freeze Gather Generate Get Give Go Grade Group Hand Handle Hash
    Have Hear Hold Ignore Import Increase Initialise Insert Install Invoke Join Judge Keep Kill
    Label Lay Learn Leave Lengthen Let Limit List Listen Load Lock Log Look Lower Make Map Mark
    Mask Match Measure Merge Meter Migrate Move Multiply Name Narrow Normalise Note Notify
    Number Observe Open Order Own Pack Parse Pass Pause Permit Pick Place Plan Poll Post Predict
    Prepare Print Produce Profile Project Protect Prune Publish Pull Push Put Query Queue Quote
    Raise Rank Reach React Read Rebuild Receive Record Reduce Refuse Register Reject Release
    Reload Remember Remove Render Repeat Replace Replay Report Require Reserve Reset Resolve
    Respond Restart Restore Resume Retry Return Reuse Reverse Revise Rewrite Round Run Sample
    Save Say Scale Schedule Score Search See Select Send Separate Serve Set Settle Share Shorten
    Show Simulate Skip Sleep Solve Sort Split Stand Start State Stop Store Stream Strip Submit
    Subtract Sum Summarise Swap Switch Take Teach Tell Test Total Train Translate Trim Try Turn
    Undo Unpack Update Use Validate Verify Visit Wait Wake Walk Warm Watch Weigh Work Wrap Write
    Yield
    """,
    )
)
"""What a function's docstring may begin with; a new verb is added here."""
UNPLAIN = re.compile(rf"\b({'|'.join(PLAIN)})\b", re.IGNORECASE)


def pages() -> list[Path]:
    above = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")]
    return [*above, *sorted((ROOT / "docs").rglob("*.md"))]


def modules() -> list[Path]:
    return sorted(module for room in CODE for module in (ROOT / room).rglob("*.py"))


def texts(module: Path) -> Iterator[tuple[int, str]]:
    """Every docstring, message and help text of a module, with its line."""
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def unplain(line: int, text: str) -> list[str]:
    return [
        f"line {line + text.count(chr(10), 0, found.start())}: "
        f"{found[0]!r}, write {PLAIN[found[0].lower()]!r}"
        for found in UNPLAIN.finditer(text)
    ]


@pytest.mark.parametrize("page", pages(), ids=lambda path: str(path.relative_to(ROOT)))
def test_pages_use_plain_words(page: Path) -> None:
    assert unplain(1, page.read_text(encoding="utf-8")) == []


def test_docstrings_messages_and_help_texts_use_plain_words() -> None:
    found = {
        str(module.relative_to(ROOT)): words
        for module in modules()
        if (words := [word for line, text in texts(module) for word in unplain(line, text)])
    }

    assert found == {}


DIALECT = frozenset({"told", "said", "asked", "beside", "nobody", "everybody", "heard"})
"""Words that no name has: a label is reported, a row is logged, a level is requested."""
SHOWN = frozenset({"asked", "prompt_said", "answer_said", "told", "said", "beside_status"})
"""Columns, and fields of JSON, which others read."""


def named(module: Path) -> Iterator[str]:
    """Every name that a module defines or reads."""
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        for kind in ("id", "attr", "arg", "name"):
            if isinstance(name := getattr(node, kind, None), str):
                yield name


def test_names_are_the_fields_words() -> None:
    found = {
        name
        for module in (ROOT / "litellm_messplus").rglob("*.py")
        for name in named(module)
        if DIALECT & {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)}
    }

    assert found == {*SHOWN, "ASKED_AGAIN"}


Documented = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def documented(module: str) -> Iterator[tuple[Documented, str]]:
    """Every function, method and class that has a docstring, and the first word of it."""
    for node in ast.walk(ast.parse(module)):
        if isinstance(node, Documented) and (text := ast.get_docstring(node)):
            yield node, text.split()[0].rstrip(",.:;")


def is_property(node: Documented) -> bool:
    names = [ast.unparse(decorator) for decorator in node.decorator_list]
    return any(name.split(".")[-1] in ("property", "cached_property", "once") for name in names)


def begins_well(node: Documented, word: str) -> bool:
    """A function does something, a class or a property is something; a property may be a yes."""
    if isinstance(node, ast.ClassDef):
        return word not in NOT_BEFORE_A_NOUN and not word.startswith("`")
    if is_property(node):
        return word == "Whether" or word not in NOT_BEFORE_A_NOUN
    return word in VERBS


def ill_begun(module: str) -> list[str]:
    return [
        f"line {node.lineno}: {node.name} begins with {word!r}"
        for node, word in documented(module)
        if not begins_well(node, word)
    ]


def test_a_functions_docstring_begins_with_a_verb_and_a_classs_with_a_noun() -> None:
    found = {
        str(module.relative_to(ROOT)): names
        for module in modules()
        if (names := ill_begun(module.read_text(encoding="utf-8")))
    }

    assert found == {}


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('def f():\n    """Count the rows."""', []),
        ('def f():\n    """The number of rows."""', ["line 1: f begins with 'The'"]),
        ('def f():\n    """Counts rows."""', ["line 1: f begins with 'Counts'"]),
        ('class A:\n    """The rows."""', []),
        ('class A:\n    """Of rows."""', ["line 1: A begins with 'Of'"]),
        ('class A:\n    """``rows`` of it."""', ["line 1: A begins with '``rows``'"]),
        (
            'class A:\n    """A row."""\n    @property\n    def b(self):\n        """Whether b."""',
            [],
        ),
        (
            'class A:\n    """A row."""\n    @property\n    def b(self):\n        """How wide."""',
            ["line 4: b begins with 'How'"],
        ),
    ],
)
def test_the_first_word_of_a_docstring_is_judged(source: str, found: list[str]) -> None:
    assert ill_begun(source) == found


def test_a_word_is_found_with_its_line() -> None:
    assert unplain(3, "first\nA dear Dearer year, dearly.") == [
        "line 4: 'dear', write 'expensive'",
        "line 4: 'Dearer', write 'more expensive'",
    ]
