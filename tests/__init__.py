"""The tests: a package by declaration, so that no installed package of this name (gmqtt brings one) comes first."""
