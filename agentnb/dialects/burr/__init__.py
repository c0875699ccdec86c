"""The Burr dialect: an Application as a recipe that is stepped one action at a time.

`nb.load(application)` reads it; actions and conditions are called unchanged. Burr is imported only if one of its
applications is loaded.
"""
