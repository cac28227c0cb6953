"""Sphinx extension: the launch buttons of a chapter open its copy that reads well everywhere.

The theme makes their addresses from the page's own notebook, whose text is MyST. Colab and Binder
show that as raw markup, so they get the copy of the same name in ``colab/`` instead
(``tools/notebook_copies.py``).
"""

FOLDER = "colab"


def setup(app):
    # After the theme's own add_launch_buttons, which has the priority 501.
    app.connect("html-page-context", lead_to_copies, priority=502)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def lead_to_copies(app, pagename, templatename, context, doctree) -> None:
    """Change the addresses of a page's launch buttons."""
    for group in context.get("header_buttons", []):
        if group.get("label") == "launch-buttons":
            for button in group["buttons"]:
                if "url" in button:
                    button["url"] = of_copy(button["url"], pagename)


def of_copy(address: str, pagename: str) -> str:
    """Return the address with the copy in place of the page's notebook.

    >>> of_copy("https://host.example/main/notebooks/foundations.ipynb", "notebooks/foundations")
    'https://host.example/main/colab/foundations.ipynb'
    """
    copy = f"{FOLDER}/{pagename.rpartition('/')[2]}"
    return address.replace(f"{pagename}.ipynb", f"{copy}.ipynb")
