"""A ready sensitivity assessor: memory writes are labelled by rules of its own or by an HTTP endpoint (rules SEN)."""
