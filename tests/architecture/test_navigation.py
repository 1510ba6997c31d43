"""The navigation of the site has each page once."""

from collections import Counter

from docs.tools.site.navigation import PARTS
from tests.interop.pages.blocks import PAGES, ROOT


def test_each_page_is_in_one_part() -> None:
    count = Counter(page for part in PARTS.values() for page in part.pages)
    assert [page for page, times in count.items() if times > 1] == []
    missing = {str(page.relative_to(ROOT)) for page in PAGES} - count.keys()
    assert not missing, "add these pages to PARTS in docs/tools/site/navigation.py"
