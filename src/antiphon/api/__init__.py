"""The database as an application sees it: a store, its parties, and items that feel like Python."""
