"""The versions of the store's tables, one after the other; one that was released never changes."""
