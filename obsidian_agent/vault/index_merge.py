"""A snapshot with some of its files replaced, as records for the next one: nothing of the others is read again."""

from __future__ import annotations

from array import array
from collections.abc import Set

from obsidian_agent.vault.index_columns import IDS
from obsidian_agent.vault.index_facts import target_name
from obsidian_agent.vault.index_records import Records, Sources, Tagged, ids_of, moved_ids
from obsidian_agent.vault.index_snapshot import Snapshot


def merged(snapshot: Snapshot, stale: Set[str], fresh: Records) -> Records:
    """The files of a snapshot but the stale ones, and the fresh ones."""
    old = [(text, False, file) for file, text in enumerate(snapshot.paths) if text not in stale]
    files = sorted([*old, *((text, True, file) for file, text in enumerate(fresh.paths))])
    old_places, new_places = array("q", [-1]) * len(snapshot), array("q", [-1]) * len(fresh.paths)
    stamps, facts = [], []
    fresh_ends = _ends(fresh.fact_sizes)
    for place, (_, is_fresh, file) in enumerate(files):
        if is_fresh:
            new_places[file] = place
            stamps.append(fresh.stamps[file])
            facts.append(fresh.facts[fresh_ends[file] : fresh_ends[file + 1]])
        else:
            old_places[file] = place
            stamps.append(snapshot.stamp(file))
            facts.append(snapshot.raw_facts(file))
    made = Records.blank([text for text, _, _ in files], stamps)
    made.facts, made.fact_sizes = b"".join(facts), array(IDS, map(len, facts))
    for place, (_, is_fresh, file) in enumerate(files):
        row = tuple(column[file] for column in fresh.packed) if is_fresh else snapshot.packed(file)
        made.flags[place] = fresh.flags[file] if is_fresh else snapshot.flags[file]
        for column, value in zip(made.packed, row, strict=True):
            column[place] = value
    kept = ((old_places[file], alias) for file, alias in snapshot.alias_rows() if old_places[file] >= 0)
    made.aliases = sorted([*kept, *((new_places[file], alias) for file, alias in fresh.aliases)])
    made.tagged = _merged_tags(snapshot, fresh, old_places, new_places)
    made.sources = _merged_sources(snapshot, fresh, old_places, new_places)
    return made


def _ends(sizes: array[int]) -> list[int]:
    ends = [0]
    for size in sizes:
        ends.append(ends[-1] + size)
    return ends


def _merged_tags(snapshot: Snapshot, fresh: Records, old: array[int], new: array[int]) -> list[Tagged]:
    found = {key: list(moved_ids(ids, old)) for key, ids in snapshot.tag_rows()}
    for key, ids in fresh.tagged:
        found.setdefault(key, []).extend(moved_ids(ids_of(ids), new))
    return sorted(Tagged(key, array(IDS, sorted(ids)).tobytes()) for key, ids in found.items() if ids)


def _merged_sources(snapshot: Snapshot, fresh: Records, old: array[int], new: array[int]) -> list[Sources]:
    found = {target: list(moved_ids(ids, old)) for target, ids in snapshot.links()}
    names = {each.target: each.name for each in fresh.sources}
    for _, target, ids in fresh.sources:
        found.setdefault(target, []).extend(moved_ids(ids_of(ids), new))
    made = ((target, array(IDS, sorted(ids)).tobytes()) for target, ids in found.items() if ids)
    return sorted(Sources(names.get(target) or target_name(target), target, ids) for target, ids in made)
