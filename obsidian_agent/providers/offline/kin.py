"""Words for the same sort of note: what a person calls "papers" may be the folder Literature, and "recipes" the folder Rezepte."""

from __future__ import annotations

from functools import cache

from obsidian_agent.providers.offline.lexicon import stem

_GROUPS = (
    "paper article literature publication reference bibliography reading lektüre artikel papier artículo",
    "recipe rezept recette receta ricetta cooking dish gericht",
    "meeting minute besprechung protokoll réunion reunión",
    "person people contact personen leute kontakt persona gente friend team colleague",
    "project projekt projet proyecto progetto",
    "book buch bücher livre libro reading",
    "trip travel journey reise urlaub voyage viaje vacation holiday",
    "client customer kunde kunden cliente",
    "journal diary tagebuch logbook daily day diario",
    "zettel slip permanent",
    "moc map overview",
    "concept idea begriff konzept",
    "course class kurs cours curso subject",
    "invoice rechnung bill facture factura",
    "shopping einkauf grocery groceries compras courses",
    "template vorlage modèle plantilla",
    "garden garten jardin",
    "house home haus household haushalt maison casa",
    "family familie famille familia",
    "source quelle",
    "archive archiv",
    "inbox eingang posteingang",
    "attachment anhang anhänge asset file media",
    "movie film",
    "song music musik",
    "quote zitat citation",
    "weekly week woche semaine",
    "experiment versuch lab",
    "lecture vorlesung",
    "assignment homework hausaufgabe",
    "company firma organisation organization",
    "place location ort lieu",
    "health gesundheit santé",
    "game spiel",
    "chapter kapitel chapitre",
)


@cache
def _table() -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for group in _GROUPS:
        words = frozenset(form for word in group.split() for form in (word, stem(word)))
        for word in words:
            found[word] = found.get(word, frozenset()) | words
    return found


def kin(word: str) -> frozenset[str]:
    """Other words for what a noun means, singular and plural alike; none for most."""
    folded = word.casefold()
    table = _table()
    for form in (folded, stem(folded), folded.removesuffix("en"), folded.removesuffix("e"), folded.removesuffix("n")):
        if form in table:
            others = table[form] - {folded, stem(folded)}
            return others | {other + ending for other in others for ending in ("e", "en", "n", "s")}
    return frozenset()
