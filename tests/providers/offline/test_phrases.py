from __future__ import annotations

import pytest

from obsidian_agent.providers.offline.phrases import Choice, Maybe, PhraseError, Sequence, Slot, Word, needed, parse


def test_a_phrase_is_read_as_segments():
    phrase = parse("add {text} / [(in|to) the note] {note!}")
    assert len(phrase.segments) == 2
    first, second = phrase.segments
    assert isinstance(first, Sequence)
    assert repr(first.parts[1]) == repr(Slot("text"))
    assert isinstance(second, Sequence)
    assert isinstance(second.parts[0], Maybe)
    assert repr(second.parts[1]) == repr(Slot("note", "any"))
    assert first.parts[1] is parse("take {text}").segments[0].parts[1]  # equal parts are one object
    assert phrase.slots == {"text", "note"}


def test_a_word_stands_for_its_class():
    word = parse("tasks").segments[0]
    assert isinstance(word, Word)
    assert {"task", "todo", "to-do"} <= word.stems


def test_marks_of_a_phrase():
    assert parse("~ do").vague
    must = parse("rename!").segments[0]
    assert isinstance(must, Word)
    assert must.must
    assert must.text == "rename"


def test_words_that_are_required():
    segment = parse("(zap|zip) [zop] zup {slot}").segments[0]
    assert [sorted(each.stems) for each in needed(segment)] == [["zap", "zip"], ["zup"]]
    assert isinstance(parse("(a|b c)").segments[0], Choice)


@pytest.mark.parametrize("text", ["(a", "a)", "[a|b", "a / / b", "/ a", "{a b}", "{}", "a } b"])
def test_broken_phrases_are_refused(text):
    with pytest.raises(PhraseError) as caught:
        parse(text)
    assert repr(text) in str(caught.value)
