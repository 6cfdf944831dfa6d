"""Ways to say the same that the phrases of many recipes share: a phrase names a group as `@name`.

A group is written in the notation of phrases and stands for all its ways.
"""

from __future__ import annotations

from collections.abc import Mapping

import regex

_BROKEN = "broken|dead|unresolved|dangling|orphaned|nonexistent|faulty"
_SAME = "same|identical|equal"

GROUPS: Mapping[str, str] = {
    "should": "should|must|shall|ought to|has to|have to|needs to|need to|is to|are to|is supposed to|are supposed to",
    "everywhere": "everywhere|vault-wide|across|wherever (it|they) (is|are|occurs|appears)|(in|across) [each of|the whole of] [the|my|this] [whole|entire] (vault|notes)|in each note",
    "from-now": "from now on|now|instead|henceforth",
    "no-longer": "any more|anymore|any longer|no longer|no more",
    "please-take-it": "[and|so|please] (take|remove|drop|delete|strip|clear) (it|them|that|those) [off|away|out|there]",
    "broken-links": (
        f"({_BROKEN}|missing) (links|link|wikilinks|references|link targets)"
        "|links [that|which] (lead|leads|go|goes|point|points) (nowhere|to nothing|into the void|into nothing)"
        "|links [that|which] (do not|don't|does not|doesn't|no longer|cannot|can't) (resolve|work|exist|function|lead anywhere|go anywhere)"
        f"|links [that|which] are ({_BROKEN}|missing)"
        "|links (without|with no|lacking) [a|an] [existing] (target|targets|note|destination|page|file)"
        "|links to (notes|note|files|pages|something|anything) [that|which] (do not|don't|does not|doesn't|is not|isn't|are not|aren't|no longer) [there|exist|exists]"
        "|links to (missing|nonexistent) notes|links whose (target|note|targets|notes) (is|are) missing"
    ),
    "duplicates": (
        f"duplicates|dupes|doubles|twins|duplicate (notes|files)|duplicated notes|double notes|({_SAME}) notes"
        f"|notes (with|of|having|that have|which have) [exactly|precisely] [the] ({_SAME}) (text|content|contents|body|wording|words)"
        f"|notes (that|which) (are|is) (duplicates|copies|identical|the same) [(of|to) (each other|one another)]"
        "|copies of (each other|one another)"
    ),
    "same-name": "[exactly] the (same|identical) (name|title|names|titles|file name|filename)|(identical|equal|same) (names|titles|file names|filenames)",
    "wikilinks": "wikilinks|wikilink|wiki links|wiki-links|wiki link|obsidian links|obsidian style links|internal links|double bracket links|double-bracket links",
    "markdown-links": "markdown links|markdown link|md links|markdown-style links|markdown style links|markdown-style link|internal markdown links|"
    "internal markdown-style links|standard links|markdown ones",
    "plain-text": "[just|only] [the] [plain|normal|simple|ordinary|regular|mere] (text|words)",
    "text-stays": (
        "(but|and) (keep|keeping|leave|leaving) [the|their|its] [link|visible|shown] (text|texts|words|word|name|names|label|labels|titles) [there|as it is|as they are|in place|standing]"
        "|(keep|keeping|leaving|leave) [the|their|its|her|his] [link|visible|shown] (text|texts|words|word|name|names)"
        "|[the|their|its|her|his] [link|visible|shown] (text|words|name|names) (stay|stays|remain|remains|should stay|should remain|can stay) [as [plain] text|there|in place]"
    ),
    "properties": "properties|property|frontmatter|front matter|metadata|meta data|fields|yaml|yaml properties|attributes|frontmatter fields|yaml fields",
    "there-are": "are there|there are|are (used|set|in use|filled|filled in)|exist|are|is|occur|i use|do i (use|have)|have i|i have",
    "show": "^list|show|give|tell|display|print|read out|name",
    "inline-fields": (
        "[dataview] inline (fields|metadata|properties|attributes)|inline dataview (fields|properties)|dataview (fields|properties|metadata|attributes)"
        "|key : : value (lines|pairs|fields|notation)|fields [that are] (written|noted) with : :|double colon fields|fields with : :"
    ),
    "put": "append|put|insert|write|place|enter|add|jot down|^note down|log|include|stick|tack|squeeze|slip|paste",
    "under-heading": "(under|in|of|from|on|to|for|within|inside) [the] [heading|section|part|list] {heading} [heading|section|part|list]|[the] {heading} (heading|section|part|list)",
    "of-note": "(in|of|on|from|to|into|within|for|at) [the note|the page|note] {note}",
    "gets": "gets|get|needs|need|wants|want|should get|should have|must have|deserves|could use|could do with|should be given|would like|shall have|must get",
    "as-it-is": "[the original|the note itself|the note|it|the chapter|the source|the old one|the first] (stays|remains|should stay|is left|must stay) [as it is|untouched|unchanged|there]",
    "more": "another|one more|a further|a new|an additional|an extra|a",
    "own-note": "[a|an|its|their|one] [own|new|separate|fresh|standalone|independent|extra] note [of its own]",
    "grouped-by": "[,] (grouped|organised|organized|divided|split|broken down|in groups|with headings|with a heading|grouped together|"
    "sorted into headings) [under headings|into headings] (by|per|for each|according to|for|for their)"
    "|[,] [with] [a|one] heading (per|for each|for)|[under|with|into] headings (for|by|per) [their|each]|by|per",
}


def expanded(text: str) -> str:
    """A phrase with the groups that it names written out. KeyError for an unknown one."""
    return str(_NAMED.sub(lambda found: f"({GROUPS[found['name']]})", text))


_NAMED = regex.compile(r"@(?P<name>[a-z]+(?:-[a-z]+)*)")
