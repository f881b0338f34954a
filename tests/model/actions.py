"""What people, agents, tools and operators do in the machine's world: each rule of the machine is one of these."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from tests.model.book import Terms
from tests.model.facts import ALEX, DESTINATION, GUEST, KIM, MAIL, MORGAN
from tests.model.machine import AUDIENCES, C1, C2, D1, D2, DICE, DM, FEWER, ROOMS, TERMS, Dice, Pair, W
from turngate.schemas import inputs

BYS = ["distill", "document", "dream", "refusal", "correction"]
KINDS = ["note", "note", "note", "world", "rule", "transcript"]


class Memory(RuleBasedStateMachine):
    """Everything is named by what there is already, so that much of it is permitted."""

    @initialize(terms=st.sampled_from(TERMS))
    def begin(self, terms: Terms) -> None:
        self.pair = Pair(terms)
        self.count = 0
        self.listings = {room: list(people) for room, (_, people) in ROOMS.items()}
        for room in ROOMS:
            self.list(room)
            self.say(room, self.listings[room][0])
        for room in FEWER:
            self.list(room, "scout")
            self.say(room, self.listings[room][0], agent="scout")

    def teardown(self) -> None:
        self.pair.nothing_is_missing()

    # What there is

    @property
    def book(self) -> Any:
        return self.pair.model.book

    def new(self, kind: str) -> str:
        self.count += 1
        return f"{kind}{self.count}"

    def refs(self, agent: str, room: str | None = None) -> list[str]:
        """What the agent has, the newest first; or of one room."""
        said = [ref for (ref, of), row in self.book.said.items() if of == agent and room in (None, row.room)]
        return said[::-1] or ["message:slack:T1/X/0"]

    def revisions(self, agent: str, *states: str) -> list[str]:
        rows = self.book.revisions.items()
        return [name for name, row in rows if row.agent == agent and row.state in (states or ("current",))][::-1]

    def everything(self, agent: str) -> list[str]:
        revisions = [f"revision:{name}" for name in self.revisions(agent)]
        return [*revisions, *revisions, *self.refs(agent), *(f"revision:{name}" for name in self.book.revisions)]

    # What is sent

    def list(self, room: str, agent: str = "mesh") -> None:
        (kind, visibility), _ = ROOMS[room]
        members = [{"reader": r, "kind": "guest" if r == GUEST else "member"} for r in self.listings[room]]
        self.pair.send(
            inputs.MembershipPage,
            agent=agent,
            room=room,
            refresh=self.new("f"),
            page=0,
            last=True,
            started_at=self.pair.now + 100,
            info={"kind": kind, "visibility": visibility, "workspaces": ["slack:T1"] if room == W else None},
            members=members,
        )

    def visit(self, room: str, agent: str = "mesh", *, settled: bool = False) -> None:
        """List the room anew if it is not fresh, or if `settled` and somebody has joined."""
        known = self.book.rooms.get((agent, room))
        fresh = known is not None and known.fresh(self.pair.now + 1_000, DESTINATION)
        if not fresh or (settled and known.joined_new):
            self.list(room, agent)

    def say(self, room: str, author: str | None, agent: str = "mesh", **fields: Any) -> None:
        self.visit(room, agent, settled=True)
        fields = {"author_kind": "person", "text": self.new("words "), "message": f"{room}/{self.new('m')}"} | fields
        self.pair.send(inputs.MessageObserved, agent=agent, room=room, author=author, **fields)

    def write(self, dice: Dice, by: str, agent: str = "mesh", **fields: Any) -> str:
        """A memory is made or changed; returns the revision's name."""
        own = self.revisions(agent)
        op, base, memory = dice.pick(["create", "create", "amend", "derive", "amend"]), None, self.new("k")
        if op == "amend" and own:
            waited_for = [row.base for row in self.book.revisions.values() if row.state == "staged" and row.base in own]
            base = dice.pick([*waited_for, *own])
            memory = self.book.revisions[base].memory
        elif op == "amend":
            op = "create"
        if dice.one_in(16):  # a belief in another's place, or a name that is not free
            base = dice.pick([*own, None])
            memory = dice.pick([self.book.revisions[base].memory if base else "k", *self.book.memories, "k"])
        sources = dice.some(self.everything(agent), 2)
        revision = self.new("r") if not dice.one_in(24) else dice.pick([*self.book.revisions, "r"])
        made: dict[str, Any] = {
            "agent": agent,
            "write": self.new("w"),
            "op": op,
            "by": by,
            "kind": dice.pick(KINDS),
            "memory": memory,
            "revision": revision,
            "base": base,
            "sources": sources,
            "restrict": dice.one_in(8),
            "health": dice.one_in(32),
            "text": self.new("text ") if not dice.one_in(16) else None,
        }
        self.pair.send(inputs.MemoryWrite, **(made | fields))
        if made["write"] in self.book.waiting and not dice.one_in(3):
            label = dice.pick(["ordinary", "ordinary", "sensitive", "uncertain"])
            ask = dice.one_in(3)
            self.pair.send(inputs.SensitivityAssessed, write=made["write"], label=label, ask_author=ask)
        return revision

    # The rules

    def _turn(self, drawn: bytes) -> None:
        dice = Dice(drawn)
        agent = "scout" if dice.one_in(6) else "mesh"
        room = dice.pick(list(ROOMS) if agent == "mesh" else FEWER)
        turn = self.new("t") if not dice.one_in(12) else dice.pick([*self.book.turns, "t"])
        thread = dice.pick([None, None, None, "1"])
        trigger = dice.pick([*self.refs(agent, room)[:2], None])
        where: dict[str, Any] = {"agent": agent, "room": room, "turn": turn, "thread": thread}
        requests = [self.new("q") for _ in range(dice.pick([1, 1, 1, 2, 0]))]
        for request in requests:
            self.visit(room, agent)
            candidates = dice.some(self.everything(agent), 2)
            self.pair.send(inputs.ContextRequested, **where, request=request, trigger=trigger, candidates=candidates)
        if dice.one_in(4):
            self.tool(dice, agent, room, thread, turn, requests)
        wrote: list[str] = []
        if dice.one_in(2):
            by = dice.pick(["turn", "turn", "turn", "correction", "distill"])
            wrote = [self.write(dice, by, agent, turn=turn, room=dice.pick([room, room, None]))]
        if dice.one_in(5):
            return  # silent
        retired = [n for n in (self.book.revisions[r].base for r in wrote if r in self.book.revisions) if n]
        self.draft(dice, where, requests, trigger, wrote, retired)

    def draft(
        self,
        dice: Dice,
        where: dict[str, Any],
        requests: list[str],
        trigger: str | None,
        wrote: list[str],
        retired: list[str],
    ) -> None:
        agent, room = where["agent"], where["room"]
        mine = [r for r in requests if self.book.asked[r].turn == where["turn"]]
        renderings: list[dict[str, Any]] = [{"text": "a"}]
        if dice.one_in(3):
            renderings = [{"text": "a", "exposed": dice.some(self.everything(agent), 1)}, {"text": "b", "exposed": []}]
            renderings[1]["request"] = dice.pick([*mine, None])
        exposed = dice.some(self.everything(agent), 1)
        self.visit(room, agent)
        self.pair.send(
            inputs.TurnDrafted,
            **where,
            trigger=dice.pick([trigger, trigger, None]),
            exposed=exposed,
            wrote=wrote if not dice.one_in(8) else dice.some([*self.book.revisions, "r"], 1),
            retired=retired,
            renderings=renderings,
        )
        if self.book.turns[where["turn"]].sent_to == room and dice.one_in(2):
            self.say(room, "slack:T1/UBOT", agent, author_kind="self", turn=where["turn"])

    @rule(drawn=DICE)
    def what_was_granted_or_proven_is_said(self, drawn: bytes) -> None:
        """Elsewhere than where it was said, and what is made of it there."""
        dice = Dice(drawn)
        if dice.one_in(2):
            room, of = dice.pick([(DM, D1), (D1, DM)])
            if not dice.one_in(3):
                self.prove(dice, "mesh", [ALEX, MAIL])
            mine = [f"revision:{n}" for n in self.revisions("mesh") if self.book.revisions[n].restrictions == set()]
            exposed = [dice.pick([*self.refs("mesh", of)[:2], *mine])]
        else:
            live = [g.revision for g in self.book.grants.values() if g.agent == "mesh"]
            known = [n for n in self.revisions("mesh") if self.book.known(self.book.evidence(f"revision:{n}", "mesh"))]
            if not known:
                known = [self.write(Dice(b""), "distill", sources=self.refs("mesh", C1)[:1], room=C1)]
            if not live or not dice.one_in(4):
                live.append(dice.pick(known))
                self.grant(dice, "mesh", live[-1], "public")
            if dice.one_in(6):
                self.revoke(dice)
            room, exposed = dice.pick([W, C2, C1, D2]), [f"revision:{dice.pick(live[::-1])}"]
        trigger = dice.pick(self.refs("mesh", room))
        where: dict[str, Any] = {"agent": "mesh", "room": room, "turn": self.new("t"), "trigger": trigger}
        self.visit(room)
        self.pair.send(inputs.ContextRequested, **where, request=self.new("q"), candidates=exposed)
        wrote = []
        if dice.one_in(3):
            name = exposed[0].removeprefix("revision:")
            row = self.book.revisions.get(name)
            base = {} if row is None else {"op": "amend", "base": name, "memory": row.memory, "kind": row.kind}
            wrote = [self.write(Dice(b""), "turn", turn=where["turn"], room=room, sources=exposed, **base)]
        self.visit(room)
        said = [{"text": "a", "exposed": exposed}]
        self.pair.send(inputs.TurnDrafted, **where, exposed=[], wrote=wrote, renderings=said)
        if self.book.turns[where["turn"]].sent_to == room and dice.one_in(2):
            self.say(room, "slack:T1/UBOT", author_kind="self", turn=where["turn"])

    turn_a = rule(drawn=DICE)(_turn)
    turn_b = rule(drawn=DICE)(_turn)
    turn_c = rule(drawn=DICE)(_turn)

    def tool(
        self, dice: Dice, agent: str, room: str, thread: str | None, turn: str | None, requests: list[str]
    ) -> None:
        server = dice.pick(["wiki", "web", "vault", "drive", "none"])
        self.pair.send(
            inputs.ToolReturned,
            agent=agent,
            room=room,
            thread=thread,
            turn=dice.pick([turn, None]),
            request=dice.pick([None, *requests, "q9"]),
            call=self.new("c"),
            server=server,
            operation="get",
            audience={"readers": [ALEX, KIM]} if server == "drive" else None,
            untrusted=True if dice.one_in(6) else None,
        )

    @rule(drawn=DICE)
    def message(self, drawn: bytes) -> None:
        dice = Dice(drawn)
        agent = "scout" if dice.one_in(6) else "mesh"
        room = dice.pick(list(ROOMS) if agent == "mesh" else FEWER)
        author = dice.pick([*self.listings[room], ALEX])
        if dice.one_in(6) and self.refs(agent, room)[0].startswith("message:" + room):
            old = dice.pick([r for r in self.refs(agent, room) if r.startswith("message:" + room + "/")])
            self.say(room, author, agent, message=old.removeprefix("message:"), edited=True)
        elif dice.one_in(20):
            self.pair.send(inputs.MessageDeleted, agent=agent, room=C1, message=f"{C1}/{dice.pick(['m2', 'm40'])}")
        else:
            kind = dice.pick(["person", "person", "person", "bot", "external"])
            quotes = dice.some([r for r in self.refs(agent) if r.startswith("message:")], 1) if dice.one_in(3) else []
            self.say(room, author, agent, author_kind=kind, quotes=quotes)

    @rule(drawn=DICE)
    def processes_and_operators_write(self, drawn: bytes) -> None:
        dice = Dice(drawn)
        agent = "scout" if dice.one_in(6) else "mesh"
        self.write(dice, dice.pick([*BYS, "operator", "operator"]), agent, room=dice.pick([C1, D1, None]))

    @rule(drawn=DICE)
    def a_revision_is_acted_on(self, drawn: bytes) -> None:
        dice = Dice(drawn)
        agent = "scout" if dice.one_in(6) else "mesh"
        op = dice.pick(["promote", "review", "forget", "reject"])
        fitting = self.revisions(
            agent, *({"promote": ["staged"], "review": ["current", "staged"]}.get(op, ["current"]))
        )
        if op == "review":
            fitting = [r for r in fitting if not self.book.known(self.book.evidence(f"revision:{r}", agent))]
        revision = dice.pick(fitting) if fitting else dice.pick([*self.book.revisions, "r"])
        row = self.book.revisions.get(revision)
        by = dice.pick(["turn", "distill", "correction"]) if op == "forget" and dice.one_in(2) else "operator"
        fields = {"agent": agent, "op": op, "by": by, "revision": revision, "write": self.new("w"), "kind": "note"}
        fields |= {"memory": row.memory if row else "k", "audience": dice.pick(AUDIENCES), "room": C1}
        fields |= {"turn": dice.pick([*list(self.book.turns)[::-1], "t"])} if by != "operator" else {}
        topic = "memory-writes" if dice.one_in(12) else None  # R-EVI-10
        self.pair.send(inputs.MemoryWrite, topic=topic, **fields)

    @rule(drawn=DICE)
    def an_operator_grants(self, drawn: bytes) -> None:
        dice = Dice(drawn)
        agent = "scout" if dice.one_in(6) else "mesh"
        if dice.one_in(3):
            self.revoke(dice)
            return
        self.grant(dice, agent, dice.pick([*self.revisions(agent), *self.book.revisions, "r"]), dice.pick(AUDIENCES))

    def revoke(self, dice: Dice) -> None:
        active = [g for g, row in self.book.grants.items() if row.state == "active"]
        command = {"command": self.new("g"), "operator": "ops", "agent": "mesh", "op": "revoke"}
        self.pair.send(inputs.GrantCommanded, **command, grant=dice.pick([*active[::-1], "g"]))

    def grant(self, dice: Dice, agent: str, revision: str, audience: object) -> None:
        row = self.book.revisions.get(revision)
        what = {"revision": revision, "memory": row.memory if row else "k", "audience": audience}
        ends = self.pair.now + dice.pick([60_000, 5_000, 0]) if dice.one_in(3) else None
        command = {"command": self.new("g"), "operator": "ops", "agent": agent, "op": "grant", "expires_at": ends}
        self.pair.send(inputs.GrantCommanded, **command, **what)

    @rule(drawn=DICE)
    def a_person_shares(self, drawn: bytes) -> None:
        """What is theirs alone, most often; the code is said by them, there, most often."""
        dice = Dice(drawn)
        room, reader = dice.pick([(D1, ALEX), (D1, ALEX), (DM, MAIL)])
        mine = [
            name
            for name in self.revisions("mesh")
            if {x.author for x in self.book.revisions[name].leaves} == {reader} and dice.pick([1])
        ]
        if not mine:
            self.visit(room)
            said = [r for r in self.refs("mesh", room) if r.startswith("message:")]
            mine = [self.write(Dice(b""), "distill", sources=said[:1], room=room)]
        revision = dice.pick(mine) if not dice.one_in(6) else dice.pick([*self.book.revisions, "r"])
        request = self.new("s")
        self.visit(room)
        audience = dice.pick([{"workspace": reader.split("/")[0]}, "public", {"readers": [KIM]}][: 2 + dice.one_in(6)])
        fields = {"agent": "mesh", "request": request, "revision": revision, "audience": audience}
        self.pair.send(inputs.SharingRequested, **fields, room=room if not dice.one_in(12) else C1)
        for _ in range(dice.pick([1, 2, 0])):
            self.code_is_said(dice)

    def code_is_said(self, dice: Dice) -> None:
        if not self.pair.codes:
            return
        offers = self.book.offers
        code = dice.pick(sorted(self.pair.codes, key=lambda c: -list(offers).index(self.book.codes[c])))
        offer = offers[self.book.codes[code]]
        room, author = offer.room, offer.reader
        if dice.one_in(6):
            room, author = dice.pick([(C1, offer.reader), (offer.room, MORGAN), (D1, ALEX)])
        word = dice.pick(["share", "share", " Share ", "unshare"])
        code = code if not dice.one_in(12) else "ABCDEFGH2345"
        self.say(room, author, text=f"{word} {code.lower() if dice.one_in(2) else code}")

    @rule(drawn=DICE)
    def a_code_is_said_later(self, drawn: bytes) -> None:
        self.code_is_said(Dice(drawn))

    @rule(drawn=DICE)
    def an_account_is_proven_or_a_proof_revoked(self, drawn: bytes) -> None:
        dice = Dice(drawn)
        if dice.one_in(4):
            self.pair.send(inputs.ProofRevoked, proof=dice.pick([*self.book.proofs, "p"]))
            return
        agent = "scout" if dice.one_in(6) else "mesh"
        self.prove(dice, agent, [ALEX, MAIL] if not dice.one_in(4) else [dice.pick([MORGAN, ALEX, MAIL])])

    def prove(self, dice: Dice, agent: str, readers: list[str]) -> None:
        for reader in readers:
            subject = dice.pick(["alex", "alex", "alex", "alex", "alex", "alex", "other"])
            ends = self.pair.now + dice.pick([3_600_000, 30_000])
            fields = {"agent": agent, "reader": reader, "subject": subject, "expires_at": ends}
            self.pair.send(inputs.AccountProven, proof=self.new("p"), **fields)

    @rule(drawn=DICE)
    def somebody_joins_or_leaves(self, drawn: bytes) -> None:
        dice = Dice(drawn)
        room, reader = dice.pick([C1, C2, W, D1]), dice.pick([MORGAN, KIM, GUEST])
        people = self.listings[room]
        joins = reader not in people
        (people.append if joins else people.remove)(reader)
        kind = "guest" if reader == GUEST else "member"
        change = "joined" if joins else "left"
        self.pair.send(inputs.MembershipChanged, room=room, reader=reader, kind=kind, change=change)
        if dice.one_in(2):
            self.list(room)

    @rule(drawn=DICE)
    def time_passes(self, drawn: bytes) -> None:
        self.pair.send(inputs.Tick, after=Dice(drawn).pick([1_000, 2_000, 30_000, 60_000, 900_000]))

    @rule(drawn=DICE)
    def a_record_comes_again(self, drawn: bytes) -> None:
        """Whatever it is: what the model says of it is that it was told before (R-RUN-4)."""
        dice = Dice(drawn)
        record, topic = dice.pick(self.pair.sent[::-1][:250])
        self.pair.give(record, topic)

    @rule(drawn=DICE)
    def the_engine_restarts_or_something_is_erased(self, drawn: bytes) -> None:
        dice = Dice(drawn)
        if not dice.one_in(3):
            self.pair.restart()
            return
        bases = [row.base for row in self.book.revisions.values() if row.base is not None]
        memories = [self.book.revisions[name].memory for name in [*bases, *self.book.revisions]]
        what = dice.pick([{"memory": dice.pick([*memories, "k"])}, {"reader": KIM}, {"room": D1}])
        self.pair.send(inputs.ErasureCommanded, command=self.new("e"), operator="ops", **what)
