"""A Slack for the tests that behaves as Slack's documentation, and whoever tried it, says; slack-sdk talks to it.

    with Slack() as slack:                              # a real HTTP and Socket Mode server, on a thread of its own
        acme = slack.workspace("T1", bot="UBOT")        # one app is installed there; its token is acme.token
        acme.user("UALEX"), acme.user("UGUEST", guest=True), acme.user("UAPP", bot=True)
        acme.user("UGONE", deleted=True), slack.workspace("T2").user("UBO")   # UBO is a stranger to T1
        room = slack.channel("C1", acme, ["UALEX", "UBOT"])      # private=True, or slack.direct, slack.group
        client = AsyncWebClient(token=acme.token, base_url=slack.url, retry_handlers=[])

What a person does there changes the world and queues the events that Slack would tell of it, in `slack.queue`:
`slack.say(room, "UALEX", "hi")`, `edit`, `delete`, `join`, `leave`, `convert`, `share`, `unshare`, `archive`, `rename`,
`change_id`, `uninstall` (`world.py`). They are delivered when the test says so, in whatever order and as often as it
likes: `slack.post(envelope, url)` signs one and POSTs it as the Events API does, and returns the answer;
`slack.push(envelope)` sends it over a Socket Mode connection, and `slack.acknowledged` holds what was acknowledged.

What was asked: `slack.calls`, each with `method`, `team` and `args`. What was said through `chat.postMessage`:
`slack.posts`, in order, each with its arguments exactly as they came, and its `ts`. Something happens just before a
method is carried out: `slack.before["chat.postMessage"] = lambda call: slack.join(room, "UEVE")`.

What goes wrong: `slack.fail("conversations.members", Fault.RATE_LIMITED, times=1, after=1)` spoils the second call of
the method, whichever workspace's; `slack.faults = lambda call: …` decides for each call, for long runs under chance.
With `slack.limit("conversations.members", calls=2, seconds=0.2)` a method has a limit for each workspace and app, and
further calls get 429 with Retry-After. `slack.page = 2` is the most that a page holds, whatever was asked for. It is
as late in Slack as `slack.clock` says.

Where it is not known what Slack does, it does what is worse for the client.
"""

from tests.slack.faults import Call, Fault
from tests.slack.people import User, Workspace
from tests.slack.rooms import Conversation
from tests.slack.server import Slack

__all__ = ["Call", "Conversation", "Fault", "Slack", "User", "Workspace"]
