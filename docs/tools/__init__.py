"""Writers of the documentation: reference pages from the code, and the site from all pages. Not installed."""
