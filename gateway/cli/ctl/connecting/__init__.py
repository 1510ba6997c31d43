"""The broker that a verb operates: options, environment, and the profiles of the user's file."""
