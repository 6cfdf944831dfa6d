"""Conflict copies are merged with their original: no line is lost silently."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from obsidian_agent.health.finding import HealthFinding
from obsidian_agent.health.merge import common_base, merge_texts
from obsidian_agent.health.repair_plan import preselected, repair_plan
from obsidian_agent.health.report import examine
from obsidian_agent.health.survey import HealthSettings
from obsidian_agent.vault.views.changes import content_hash
from obsidian_agent.vault.views.disk import DiskView
from support import MakeVault

NOW = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)
NAMES = ("Plan.md", "Plan copy.md")
COPY = "Plan.sync-conflict-20240101-120000-ABCDEF7.md"
BASE = "one\ntwo\nthree\nfour\nfive\n"

LINES = st.lists(st.sampled_from("abcdefgh"), max_size=12).map(lambda ls: [f"{x}\n" for x in ls])


@settings(max_examples=500, deadline=None)
@given(LINES, LINES, st.none() | LINES)
def test_a_line_is_lost_only_if_one_side_removed_it_from_the_base(own, copy, base):
    old = None if base is None else "".join(base)
    merged = merge_texts("".join(own), "".join(copy), old, NAMES)
    result = merged.text.splitlines(keepends=True)
    for line in {*own, *copy}:
        most = max(own.count(line), copy.count(line))
        least = min(own.count(line), copy.count(line))
        if base is None:
            assert result.count(line) >= most
        elif least >= base.count(line):
            # Neither side removed one.
            assert result.count(line) >= least
            assert line in result
        elif line not in result:
            assert line in base
            assert least < base.count(line)


SENTENCES = st.lists(st.sampled_from(["A.", "B.", "C.", "D.", "E."]), min_size=1, unique=True)


@settings(max_examples=300, deadline=None)
@given(SENTENCES, SENTENCES, SENTENCES)
def test_a_sentence_is_lost_only_if_one_side_removed_it(own, copy, base):
    merged = merge_texts(" ".join(own), " ".join(copy), " ".join(base), NAMES)
    for sentence in {*own, *copy} - {*base}:
        assert sentence in merged.text
    if merged.is_clean:
        assert {*own} & {*copy} <= {*merged.text.split()}


def edited(rng: random.Random, base: Sequence[str]) -> list[str]:
    lines = list(base)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(lines))
        match rng.choice(["insert", "insert", "change", "remove", "tick"]):
            case "insert":
                lines.insert(at, f"New {rng.random()}\n")
            case "change":
                lines[at] = f"Changed {rng.random()}\n"
            case "remove":
                del lines[at]
            case _:
                lines[at] = lines[at].replace("[ ]", "[x]")
    return lines


def test_of_500_conflicts_with_a_base_nine_in_ten_are_no_question_and_no_line_is_lost():
    clean = 0
    for seed in range(500):
        rng = random.Random(seed)
        base = [f"- [ ] Line {rng.random()}\n" for _ in range(rng.randint(10, 60))]
        own, copy = edited(rng, base), edited(rng, base)
        merged = merge_texts("".join(own), "".join(copy), "".join(base), NAMES)
        result = merged.text.splitlines(keepends=True)
        assert {*own, *copy} - {*result} <= {*base}
        assert {*own} & {*copy} <= {*result}
        clean += merged.is_clean
    assert clean >= 450


def test_of_500_conflicts_with_a_history_only_removed_lines_are_lost():
    """The copy comes from any version of the note, the present one included."""
    known = clean = 0
    for seed in range(500):
        rng = random.Random(seed)
        history = [[f"- [ ] Line {rng.random()}\n" for _ in range(rng.randint(10, 60))]]
        for _ in range(rng.randint(1, 4)):
            history.append(edited(rng, history[-1]))
        ancestor = rng.randrange(len(history))
        own, copy = history[-1], edited(rng, history[ancestor])
        versions = ["".join(lines) for lines in reversed(history)]
        base = common_base(versions, "".join(own), "".join(copy))
        merged = merge_texts("".join(own), "".join(copy), base, NAMES)
        lost = {*own, *copy} - {*merged.text.splitlines(keepends=True)}
        if base is None:
            assert not lost
            assert not merged.is_clean
            continue
        # A line of the note is lost only if the copy's author removed it, and the other way around.
        assert not lost & ({*copy} - {*history[ancestor]})
        assert lost & {*own} <= {*history[ancestor]}
        known += 1
        clean += merged.is_clean
    assert known > 250
    assert clean >= 0.9 * known


LIST = "- [ ] one\n- [ ] two\n"


@pytest.mark.parametrize(
    ("base", "own", "copy", "expected"),
    [
        pytest.param(
            BASE,
            BASE.replace("two", "2"),
            BASE.replace("three", "3\nnew"),
            "one\n2\n3\nnew\nfour\nfive\n",
            id="neighbouring lines",
        ),
        pytest.param(
            LIST,
            "- [ ] one\n- zero\n- [x] two\n",
            "- [x] one\n- [ ] two\n",
            "- [x] one\n- zero\n- [x] two\n",
            id="a line before one that both have",
        ),
        pytest.param(
            LIST,
            "- [x] two\n",
            "- [ ] one\n- new\n- [ ] two\n",
            "- new\n- [x] two\n",
            id="a line removed beside a new one",
        ),
        pytest.param(
            LIST, LIST + "- a\n", LIST + "- b\n  - b2\n", LIST + "- a\n- b\n  - b2\n", id="items"
        ),
        pytest.param(
            LIST, LIST + "- a\n- b\n", LIST + "- a\n- c\n", LIST + "- a\n- b\n- c\n", id="one equal"
        ),
        pytest.param(
            LIST,
            LIST + "\n## Day\n\nWent home.\n",
            LIST + "\n## Day\n\nCalled Anna about it.\n",
            LIST + "\n## Day\n\nWent home.\nCalled Anna about it.\n",
            id="paragraphs below one heading",
        ),
        pytest.param(
            "We met Ada. She left.\n",
            "We met Ada Lovelace. She left.\n",
            "We met Ada. She left. It rained.\n",
            "We met Ada Lovelace. She left. It rained.\n",
            id="sentences of a paragraph",
        ),
        pytest.param(
            LIST,
            LIST.replace("one", "1"),
            LIST.replace("[ ] one", "[x] one"),
            "- [x] 1\n- [ ] two\n",
            id="a checkbox and its task",
        ),
    ],
)
def test_changes_that_do_not_contradict_are_merged(base, own, copy, expected):
    merged = merge_texts(own, copy, base, NAMES)
    assert (merged.text, merged.is_clean) == (expected, True)


@pytest.mark.parametrize(
    ("base", "own", "copy"),
    [
        pytest.param(
            BASE, BASE + "It will be Monday.\n", BASE + "It will be Tuesday.\n", id="alike"
        ),
        pytest.param(
            "```\na\n```\n", "```\na\nfrom here\n```\n", "```\na\nwhere x\n```\n", id="code"
        ),
        pytest.param(LIST, "- [x] one\n- [ ] two\n", "- [ ] two\n", id="changed and removed"),
        pytest.param("At 5. Go.\n", "At 6. Go.\n", "At 7. Go.\n", id="one sentence"),
    ],
)
def test_changes_that_may_contradict_are_marked(base, own, copy):
    merged = merge_texts(own, copy, base, NAMES)
    assert not merged.is_clean
    assert {*own.splitlines(), *copy.splitlines()} <= {*merged.text.splitlines()}


def test_changes_of_different_lines_are_merged():
    own = BASE.replace("one", "ONE")
    copy = BASE.replace("five\n", "").replace("two\n", "two\nnew\n")
    merged = merge_texts(own, copy, BASE, NAMES)
    assert (merged.text, merged.is_clean) == ("ONE\ntwo\nnew\nthree\nfour\n", True)


def test_changes_of_the_same_line_stay_both_and_are_marked():
    merged = merge_texts(BASE.replace("two", "2"), BASE.replace("two", "zwei"), BASE, NAMES)
    assert merged.text == (
        "one\n<<<<<<< Plan.md\n2\n=======\nzwei\n>>>>>>> Plan copy.md\nthree\nfour\nfive\n"
    )
    assert not merged.is_clean


def test_without_a_base_everything_stays_and_nothing_is_certain():
    merged = merge_texts("a\nb\n", "b\nc", None, NAMES)
    assert (merged.text, merged.is_clean) == ("a\nb\nc", False)


def test_line_ends_are_those_of_the_file():
    merged = merge_texts("one\r\ntwo\r\n", "one\ntwo\nthree\n", "one\ntwo\n", NAMES)
    assert (merged.text, merged.is_clean) == ("one\r\ntwo\r\nthree\r\n", True)


def test_properties_are_merged_by_key():
    base = "---\nrating: 1\ntags: [a, b]\nold: x\n---\ntext\n"
    own = "---\nrating: 2\ntags: [a, b, c]\nold: x\n---\ntext\n"
    copy = "---\nrating: 1\ntags: [a, d]\nnew: 2024-01-01\n---\ntext\nmore\n"
    merged = merge_texts(own, copy, base, NAMES)
    assert merged.is_clean
    assert merged.text.endswith("---\ntext\nmore\n")
    assert "rating: 2\n" in merged.text
    assert "new: 2024-01-01\n" in merged.text
    assert "old" not in merged.text
    assert [name for name in "abcd" if name in merged.text.split("tags:")[1].split("new")[0]] == [
        *"acd"
    ]


@pytest.mark.parametrize("other", ["3", "[", "2 # mine"])
def test_properties_that_cannot_be_merged_stay_without_marks(other):
    text = "---\nrating: {}\n---\n{}text\n"
    merged = merge_texts(text.format(2, "own\n"), text.format(other, ""), None, NAMES)
    assert merged.text == text.format(2, "own\n")
    assert (merged.is_clean, merged.has_marks, merged.has_other_properties) == (False, False, True)


def test_blanks_at_the_ends_of_lines_are_those_of_the_file():
    merged = merge_texts("one  \ntwo\nthree\n", "one\ntwo \n3\n", "one\ntwo\nthree\n", NAMES)
    assert (merged.text, merged.is_clean) == ("one  \ntwo\n3\n", True)


def test_the_base_is_the_version_that_the_copy_resembles_most():
    old, new = "one\ntwo\n", "one\ntwo\nthree\nfour\n"
    assert common_base([new, old], new, "one\ntwo\nmine\n") == old
    assert common_base([new, old], new, "something\nelse\n") is None


def test_the_present_text_is_no_base(conflict: Repairs) -> None:
    # As in a git vault in which the note is committed.
    own, copy = "apples\nbread\neggs\n", "apples\nbread\nflour\n"
    finding = conflict(own, copy, own.replace("\n", "\r\n"))
    assert finding.repair is not None
    assert not finding.repair.preselected
    content = finding.repair.choices[0].steps[0].args["content"]
    assert "=======" in content
    assert {*own.split(), *copy.split()} <= {*content.split()}


Repairs = Callable[..., HealthFinding]


@pytest.fixture
def conflict(make_vault: MakeVault) -> Repairs:
    """Return the finding about a copy of `Plan.md`, with earlier versions of that note."""

    def find(own: str, copy: str, *versions: str) -> HealthFinding:
        view = DiskView(make_vault({"Plan.md": own, COPY: copy}))
        known = HealthSettings(
            now=NOW, old_versions=lambda path: [text.encode() for text in versions]
        )
        (finding,) = examine(view, known, only=["conflict-copy"]).findings
        return finding

    return find


def test_a_clean_merge_is_preselected_and_written_with_the_hash(conflict: Repairs) -> None:
    own = BASE.replace("one", "ONE")
    finding = conflict(own, BASE + "six\n", own, BASE)
    (choice,) = preselected([finding])
    write, delete = choice.steps
    assert dict(write.args) == {
        "path": "Plan.md",
        "content": own + "six\n",
        "ifMatch": content_hash(own.encode()),
    }
    assert (delete.tool, dict(delete.args)) == ("vault.delete", {"path": COPY})
    plan = repair_plan([choice])
    assert plan is not None
    assert [step["tool"] for step in plan["steps"]] == ["vault.writeFile", "vault.delete"]


@pytest.mark.parametrize(
    ("own", "copy", "versions"),
    [
        (BASE, BASE + "six\n", []),
        (BASE.replace("two", "2"), BASE.replace("two", "zwei"), [BASE]),
        (BASE + "the day is sunny\n", BASE + "the day is rainy\n", [BASE]),
        # The note as it is now cannot be the base: the copy may be older than it.
        (BASE + "six\n", BASE, [BASE + "six\n"]),
    ],
)
def test_a_doubtful_merge_is_offered_only(conflict: Repairs, own, copy, versions) -> None:
    finding = conflict(own, copy, *versions)
    assert finding.repair is not None
    assert not finding.repair.preselected


KEEP = f"Keep Plan.md and delete {COPY}"
REPLACE = f"Replace Plan.md with {COPY}"
BOTH = f"Keep both texts in Plan.md{{}}, and delete {COPY}"
STATUS = "---\nstatus: {}\n---\n{}"
WAYS = {
    "blanks": (
        "one\ntwo  \n",
        "one\r\ntwo\r\n\r\n",
        True,
        [f"Delete {COPY}, the text is the same"],
    ),
    "an addition": ("one\n", "one\ntwo\n", False, [REPLACE, KEEP]),
    "a removal": ("one\ntwo\n", "one\n", False, [KEEP, REPLACE]),
    "two additions": (
        "one\nx\n",
        "two\nx\nthree\n",
        False,
        [BOTH.format(", marked where they differ"), KEEP, REPLACE],
    ),
    "both ends": ("one\nx\n", "x\ntwo\n", False, [BOTH.format(""), KEEP, REPLACE]),
    "properties": (STATUS.format("open", "x"), STATUS.format("done", "x"), False, [KEEP, REPLACE]),
    "all": (
        STATUS.format("open", "x\ny\n"),
        STATUS.format("done", "y\nz\n"),
        False,
        [BOTH.format(", with its own properties"), KEEP, REPLACE],
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_either_side_of_a_conflict_can_be_kept(conflict: Repairs, way: str) -> None:
    own, copy, is_clear, titles = WAYS[way]
    repair = conflict(own, copy).repair
    assert repair is not None
    assert (repair.preselected, [choice.title for choice in repair.choices]) == (is_clear, titles)
    for choice in repair.choices:
        contents = [step.args["content"] for step in choice.steps if "content" in step.args]
        if choice.title == REPLACE:
            assert contents == [copy]
        elif choice.title == KEEP or is_clear:
            assert contents == []
        else:
            assert contents[0].count("status:") <= 1


def test_a_text_with_a_placeholder_is_not_merged(conflict: Repairs) -> None:
    assert conflict("a\n", "a\n${b}\n", "a\n").repair is None
