"""The gate in process, for tests of agents: rooms, people and the real engine, without a server and without waiting.

In a conftest.py:  `pytest_plugins = ["turngate.client.testing"]`, then a test asks for `workplace`:

    async def test_nothing_private_is_said_in_public(workplace):
        workplace.room("slack:T1/D1", "slack:T1/UALEX", kind="direct")
        workplace.room("slack:T1/C1", "slack:T1/UALEX", "slack:T1/UBO")
        private = workplace.said("slack:T1/D1", "I fly on the 14th", by="slack:T1/UALEX")
        asked = workplace.said("slack:T1/C1", "when am I away?", by="slack:T1/UALEX")
        memories = {private: "Alex flies on the 14th"}
        await my_agent(workplace.gate(), room="slack:T1/C1", trigger=asked, memories=memories)
        assert workplace.sent == []
"""

from __future__ import annotations

from contextlib import suppress

from turngate.client.testing.workplace import Sent, Workplace

with suppress(ModuleNotFoundError):  # a workplace needs no pytest, as the examples do not
    from turngate.client.testing.fixture import workplace

__all__ = ["Sent", "Workplace", "workplace"]
