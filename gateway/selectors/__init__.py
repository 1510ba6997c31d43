"""The language of JMS message selectors: conditions on properties and headers, in a subset of SQL-92 (JMS 2.0, 3.8.1).

A selector is parsed once into an expression, which is then asked for its value in each message. Whatever the text says,
parsing raises nothing but ``SelectorError`` and evaluating raises nothing; both take time and stack within bounds.
"""

from gateway.selectors.errors import SelectorError
from gateway.selectors.selector import Selector

__all__ = ["Selector", "SelectorError"]
