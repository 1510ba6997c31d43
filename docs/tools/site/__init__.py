"""The site: all pages with navigation and a search, as files that work without a network."""
