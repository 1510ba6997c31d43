"""The tests, declared as a package, so that no installed package named ``tests`` is imported instead (gmqtt has
one).
"""
