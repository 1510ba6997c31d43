"""A store whose changes are records of a log, so that another node can continue with them."""
