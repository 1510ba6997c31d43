"""Clients of all protocols for the virtual world, with codecs of their own so that they share no mistake."""
