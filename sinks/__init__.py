"""Results: what was authorized goes out, once, or is withheld, and the log says which (rules DLV)."""
