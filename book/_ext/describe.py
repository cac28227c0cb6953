"""Sphinx extension: every page tells search engines, link previews and the search what it is about.

- A description: that of the page's own metadata, else the question of a chapter's card, else its
  first paragraph.
- What a link to the page shows where links are previewed (Open Graph), with the book's picture. The
  address of the site is ``html_baseurl``, or follows from that of the repository.
- Terms of ``search_terms`` in _config.yml lead to their page in the search and the index, also
  where the chapter writes them in outputs of its cells, which Sphinx does not search.
"""

import html
import re

from docutils import nodes
from sphinx import addnodes

LONGEST = 200
"""Letters of a description; search engines show fewer."""

IMAGE = "_static/social.png"


def setup(app):
    app.add_config_value("search_terms", {}, "env")
    app.add_config_value("social_image_alt", "", "html")
    app.connect("doctree-read", describe)
    app.connect("doctree-read", add_terms)
    app.connect("env-check-consistency", keep_terms)
    app.connect("html-page-context", add_tags)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def describe(app, doctree) -> None:
    """Keep the description of a page with its metadata."""
    app.env.metadata[app.env.docname]["description"] = description(doctree)


def description(doctree) -> str:
    """Return the description of a page, or an empty text."""
    for meta in doctree.findall(nodes.meta):
        if meta.get("name") == "description":
            return meta["content"]
    paragraphs = [each for each in doctree.findall(nodes.paragraph) if each.astext().strip()]
    questions = [p.astext() for p in paragraphs if p.astext().startswith("Question.")]
    plain = [p.astext() for p in paragraphs if isinstance(p.parent, nodes.section | nodes.document)]
    found = [text.removeprefix("Question.") for text in questions] + plain
    return shortened(found[0]) if found else ""


def shortened(text: str) -> str:
    """Return the sentences of a text that fit, or as many words as do.

    >>> shortened("One.  Two\\nwords. " + "x" * 300)
    'One. Two words.'
    """
    text = " ".join(text.split())
    if len(text) <= LONGEST:
        return text
    whole = re.match(rf".{{40,{LONGEST}}}[.?!](?= )|.{{1,{LONGEST}}}[.?!](?= )", text)
    return whole[0] if whole else text[: LONGEST - 2].rsplit(" ", 1)[0] + " …"


def add_terms(app, doctree) -> None:
    """Put a page's search terms into the index."""
    terms = app.config.search_terms.get(app.env.docname, [])
    section = next(doctree.findall(nodes.section), None)
    if terms and section is not None:
        target = section["ids"][0]
        entries = [("single", term, target, "main", None) for term in terms]
        section.insert(1, addnodes.index(entries=entries, inline=False))
        app.env.metadata[app.env.docname]["search_target"] = target


def keep_terms(app, env) -> None:
    """Give the search the terms of pages that are not written again: Sphinx forgets those."""
    for name, terms in app.config.search_terms.items():
        target = env.metadata.get(name, {}).get("search_target", "")
        env._search_index_index_entries[name] = [(term, target, "main") for term in terms]


def add_tags(app, pagename, templatename, context, doctree) -> None:
    """Add the description and what a preview shows to the head of a page."""
    told = app.env.metadata.get(pagename, {}).get("description", "")
    title = html.unescape(re.sub(r"<[^>]*>", "", context.get("title", "")))
    base = address(app)
    tags = {
        "og:title": re.sub(r"^[\d.]+\s+", "", title) or app.config.html_title,
        "og:site_name": app.config.html_title,
        "og:type": "website" if pagename == app.config.root_doc else "article",
        "og:description": told,
        "og:url": f"{base}{app.builder.get_target_uri(pagename)}",
        "og:image": f"{base}{IMAGE}",
        "og:image:alt": app.config.social_image_alt,
        "twitter:card": "summary_large_image",
    }
    lines = [f'<meta property="{k}" content="{html.escape(v)}" />' for k, v in tags.items() if v]
    own = context.get("metatags", "")
    if told and 'name="description"' not in own:
        lines.append(f'<meta name="description" content="{html.escape(told)}" />')
    context["metatags"] = "\n".join([own, *lines, ""])


def address(app) -> str:
    """Return the address of the published site."""
    if app.config.html_baseurl:
        return app.config.html_baseurl.rstrip("/") + "/"
    repository = app.config.html_theme_options.get("repository_url", "")
    found = re.fullmatch(r"https://github\.com/([\w.-]+)/([\w.-]+?)/?", repository)
    return f"https://{found[1].lower()}.github.io/{found[2]}/" if found else ""
