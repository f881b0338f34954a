"""Decides what the simulated agent says in the workspace that the project ships (demo/export), and why it is told.

Each story is a few drafts; for each that is refused there is a twin that is delivered.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

#: The agent's account in the shipped export.
ACCOUNT = "U0MESH"
NAMES: MappingProxyType[str, str] = MappingProxyType(
    {"U0ALEX": "Alex", "U0MORGAN": "Morgan", "U0SAM": "Sam", "U0PAT": "Pat (guest)", "U0ROBIN": "Robin (Northgate)"}
)
PLACES: MappingProxyType[str, str] = MappingProxyType(
    {
        "C0GENERAL": "#general",
        "C0OFFICE": "#office",
        "C0WEBSITE": "#website",
        "C0NORTHGATE": "#with-northgate",
        "C0PRICING": "#pricing (private)",
        "G0PLANS": "group DM",
        "D0ALEX": "Alex's DM",
        "D0MORGAN": "Morgan's DM",
    }
)
#: A tool whose pages anybody may read, as the demo's policy says.
PAGES = "tool:opening-hours"

PLAN = "D0ALEX/1772442000.000001"
PARTY = "C0GENERAL/1772445600.000001"
PRICE = "C0PRICING/1772449200.000001"
HOURS = "C0GENERAL/1772456400.000001"
SHARED = "C0GENERAL/1772460000.000001"
COFFEE = "C0GENERAL/1772460300.000001"


@dataclass(frozen=True, slots=True)
class Draft:
    """One draft: in `room`, `after` seconds since `asked` (a message, as `<conversation>/<ts>`) was said.

    `sees`: the messages and tool results that the agent used. `again`: how often the message and the draft come, as
    when a connector or a runtime repeats itself. `unasked`: the message only sets the time, and is no trigger.
    """

    shows: str
    asked: str
    room: str
    sees: tuple[str, ...]
    text: str
    after: int = 5
    again: int = 1
    unasked: bool = False


@dataclass(frozen=True, slots=True)
class Story:
    """A title, what the rules make of it, and its drafts."""

    title: str
    moral: str
    drafts: tuple[Draft, ...]


STORIES = (
    Story(
        "The travel plan",
        "What was said to one person stays with that person, whoever asks for it, and whoever it names.",
        (
            Draft(
                "Alex's plan, asked for by Alex, but in public",
                "C0GENERAL/1772442300.000001",
                "C0GENERAL",
                (PLAN,),
                "You are in Lisbon from the 14th to the 21st.",
            ),
            Draft(
                "the same, asked for in Alex's own DM",
                "D0ALEX/1772442600.000001",
                "D0ALEX",
                (PLAN,),
                "You are in Lisbon from the 14th to the 21st.",
            ),
            Draft(
                "the same, asked for by Morgan, whom the plan names",
                "D0MORGAN/1772442900.000001",
                "D0MORGAN",
                (PLAN,),
                "Alex is away from the 14th to the 21st, and you cover.",
            ),
        ),
    ),
    Story(
        "The office event",
        "What a whole workspace may know can be said again in the workspace; a guest is not the workspace.",
        (
            Draft(
                "the party of #general, in another public channel",
                "C0OFFICE/1772445900.000001",
                "C0OFFICE",
                (PARTY,),
                "Yes: the spring party, here on Friday the 20th from five.",
            ),
            Draft(
                "the same, in a public channel that a guest reads",
                "C0WEBSITE/1772446200.000001",
                "C0WEBSITE",
                (PARTY,),
                "There is a party in the office on Friday, so yes.",
            ),
            Draft(
                "for that guest, what was said in that channel",
                "C0WEBSITE/1772446800.000001",
                "C0WEBSITE",
                ("C0WEBSITE/1772446500.000001",),
                "The texts are due on the 23rd.",
            ),
        ),
    ),
    Story(
        "The room that grew",
        "A question and its answer belong to those who were there; whoever came later was not.",
        (
            Draft(
                "the price, in the room where it was said",
                "C0PRICING/1772449500.000001",
                "C0PRICING",
                (PRICE,),
                "49 a seat, from April.",
            ),
            Draft(
                "an answer that took four minutes; meanwhile Sam joined",
                "C0PRICING/1772449800.000001",
                "C0PRICING",
                (PRICE,),
                "We are changing our price to 49 a seat in April.",
                after=240,
            ),
            Draft(
                "to Sam, from before Sam was there",
                "C0PRICING/1772450400.000001",
                "C0PRICING",
                (PRICE,),
                "In April, at 49 a seat.",
            ),
            Draft(
                "to Sam, from what Alex said since",
                "C0PRICING/1772450760.000001",
                "C0PRICING",
                ("C0PRICING/1772450700.000001",),
                "In April.",
            ),
        ),
    ),
    Story(
        "The duplicate delivery",
        "A message or a draft that comes twice is still one: it gains no readers, and is answered once.",
        (
            Draft(
                "Morgan's question of 11:10, delivered again after Sam joined",
                "C0PRICING/1772449800.000001",
                "C0PRICING",
                (),
                "Gladly: shall I make it short?",
                after=2700,
                again=2,
            ),
            Draft(
                "a question that comes twice, with its draft, where nobody joined",
                "C0OFFICE/1772452800.000001",
                "C0OFFICE",
                (PARTY,),
                "On Friday the 20th.",
                again=2,
            ),
        ),
    ),
    Story(
        "The channel shared with another company",
        "Nobody here can list who reads it, so only what anybody may know is said there.",
        (
            Draft(
                "Northgate asks, and the agent knows it from #general",
                "C0NORTHGATE/1772456700.000001",
                "C0NORTHGATE",
                (HOURS,),
                "From April on we close at four.",
            ),
            Draft(
                "the same, from the public website, said of its own accord",
                "C0NORTHGATE/1772456700.000001",
                "C0NORTHGATE",
                (PAGES,),
                "Our website says: from April on, open until four.",
                after=60,
                unasked=True,
            ),
            Draft(
                "the same, among ourselves",
                "C0GENERAL/1772457000.000001",
                "C0GENERAL",
                (HOURS,),
                "At four.",
            ),
        ),
    ),
    Story(
        "The message that quotes another",
        "Words that were carried into a public channel keep the audience of the room they came from.",
        (
            Draft(
                "Morgan's post in #general, which embeds a message of #pricing",
                "C0GENERAL/1772460600.000001",
                "C0GENERAL",
                (SHARED,),
                "Morgan announces a new price of 49 a seat.",
            ),
            Draft(
                "Sam's post in #general",
                "C0GENERAL/1772460600.000001",
                "C0GENERAL",
                (COFFEE,),
                "The coffee machine on the second floor works again.",
                after=30,
            ),
        ),
    ),
)
