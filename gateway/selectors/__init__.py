"""JMS message selectors: conditions on properties and headers, in a subset of SQL-92 (JMS 2.0, 3.8.1).

A selector is parsed once into an expression, which is evaluated for each message. For any input, parsing raises
only ``SelectorError`` and evaluation raises nothing; both have bounded time and stack.
"""

from gateway.selectors.errors import SelectorError
from gateway.selectors.selector import Selector

__all__ = ["Selector", "SelectorError"]
