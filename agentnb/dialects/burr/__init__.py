"""Burr: an Application as a recipe that is stepped one action at a time.

`nb.load(application)` reads it; actions and conditions are called unchanged. Nothing of Burr is imported unless an
application of it is loaded.
"""
