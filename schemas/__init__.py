"""What a record is: the shapes that cross a topic, how they are coded, and the policy document.

`inputs` and `outputs` are the records (docs/contract.md), `shapes` what they are made of, `catalog` which topic each
lies on. `codec` reads and writes their bytes, `policy` reads a policy document, and `digests` makes the digests of the
audit trail (docs/audit.md).
"""
