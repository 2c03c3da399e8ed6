"""Results as pages: one self-contained HTML file each, for people who have no ampsched, and pieces of it for notebooks.

What a page says is made by one module per kind of result; how a page looks is the template's and the style's. A page
is made of the plain values that commands print as JSON, so it cannot say anything else than they do.
"""

from ampsched.report.asked import Asked
from ampsched.report.page import Page, html, write

__all__ = ["Asked", "Page", "html", "write"]
