"""Wishes that are no imperatives."""

from __future__ import annotations

import pytest

from obsidian_agent.providers.offline.statements import imperative


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("The drafts should be moved to Old", "move The drafts to Old"),
        ("Soup has to be renamed to Stew", "rename Soup to Stew"),
        ("All drafts need to be tagged #old", "tag All drafts #old"),
        ("I'd like Soup moved to Old", "move Soup to Old"),
        ("Could you have Soup archived?", "archive Soup"),
        ("I want the drafts to be deleted", "delete the drafts"),
        ("I'd like Rome and Bonn in a new folder Trips", "move Rome and Bonn to a new folder Trips"),
        ("My drafts should live in their own folder, Old/Drafts", "move My drafts to the folder Old/Drafts"),
        ("All drafts go to Old", "move All drafts to Old"),
        ("Soup should be called Stew", "rename Soup to Stew"),
        ("Rename her note from A to B", "rename note A to B"),
        ("Take A and rename it B", "rename A B"),
        ("Reset the list: untick everything", "untick everything in the list"),
        ("Start the review: a note W1 in Weekly", "create a new note W1 in Weekly"),
        ("New project note: Shed", "create a New project note called Shed"),
        ("Merge the tag a into b: whatever has a gets b", "Merge the tag a into b"),
        ("Everything tagged #a should be tagged #b instead", "rename the tag #a to #b"),
    ],
)
def test_wishes_become_imperatives(message: str, said: str) -> None:
    assert imperative(message) == said


@pytest.mark.parametrize(
    "message",
    [
        "I'd like a note called X in Projects",
        "I want a new folder in Projects",
        "Move A to B",
        "What should be moved to Old?",
        "If it should be deleted, tell me",
        "You should be ashamed",
        "Set a: b in C",
        "Add 'I want A moved to B' to C",
    ],
)
def test_other_sentences_stay(message: str) -> None:
    assert imperative(message) == message
