from __future__ import annotations

import pytest

from obsidian_agent.errors import ObsidianAgentError


def rendered(bench, template, **args):
    vault = bench({"t.md": template})
    return vault.run("template.render", path="t.md", **args), vault


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("# {{title}} {{ Title }}\n", "# Trip Trip\n"),
        ("{{date}} {{time}}", "2026-03-14 09:30"),
        ("{{date:DD.MM.YYYY}} {{time:HH}}h", "14.03.2026 09h"),
        ("{{date:gggg-[W]ww}}", "2026-W11"),
        ("{{client}} {{ unknown }} {{}}", "Acme {{ unknown }} {{}}"),
        (
            "<% tp.file.title %> <% tp.date.now(\"YYYY\") %> <%tp.date.tomorrow('DD')%> <% tp.date.yesterday() %>",
            "Trip 2026 15 2026-03-13",
        ),
        ("${literal} $steps.x {single}", "${literal} $steps.x {single}"),
    ],
)
def test_variables(bench, template, text):
    answer, _ = rendered(bench, template, title="Trip", values={"Client": "Acme"})
    assert answer["text"] == text


def test_what_nothing_is_known_of_is_told(bench):
    answer, vault = rendered(bench, "{{who}} <% await tp.system.prompt('?') %>")
    assert answer["unknown"] == ["who"]
    assert vault.warnings == ["TEMPLATE_COMMANDS"]


def test_formats_and_another_day(bench):
    answer, _ = rendered(
        bench, "{{date}} {{time}}", when="2026-12-24", dateFormat="D MMM", timeFormat="H.mm"
    )
    assert answer["text"] == "24 Dec 0.00"


def test_text_that_is_put_in_is_not_looked_at_again(bench):
    answer, _ = rendered(bench, "{{title}} {{a}}", title="{{a}}", values={"a": "{{title}}"})
    assert answer["text"] == "{{a}} {{title}}"


def test_a_missing_template_is_an_error(bench):
    with pytest.raises(ObsidianAgentError):
        bench({}).run("template.render", path="t.md")
