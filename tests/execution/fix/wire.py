"""Messages for tests: strategies, and a small way to write one."""

from hypothesis import strategies as st

from alphaloom.execution.fix import FixMessage

AT = "20260105-14:30:00.000"
US = 1_767_623_400_000_000
HEAD = ((49, "DESK"), (56, "VENUE"), (34, "7"), (52, AT))
ORDER = ((11, "0f3a-1"), (55, "AAA"), (54, "1"), (60, AT), (38, "100"), (40, "2"), (44, "10.5"), (59, "0"))

TEXTS = st.text(st.characters(codec="latin-1", exclude_characters="\x01"), min_size=1, max_size=12)
DATA = st.text(st.characters(codec="latin-1"), max_size=12)
PARTIES = st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=3)


def order(*extra: tuple[int, str], begin: str = "FIX.4.4", fields: tuple[tuple[int, str], ...] = ORDER) -> FixMessage:
    """Return a NewOrderSingle with further fields behind it."""
    return FixMessage(begin, "D", (*HEAD, *fields, *extra))


@st.composite
def messages(draw: st.DrawFn) -> FixMessage:
    """Return valid messages of both versions, with texts, a data field, a group and tags of a venue's own."""
    extra: list[tuple[int, str]] = []
    if draw(st.booleans()):
        extra.append((58, draw(TEXTS)))
    if draw(st.booleans()):
        data = draw(DATA)
        extra += [(354, str(len(data))), (355, data)]
    if draw(st.booleans()):
        parties = draw(PARTIES)
        extra.append((453, str(len(parties))))
        extra += [pair for one, two in parties for pair in ((448, one), (447, two))]
    extra += [(tag, draw(TEXTS)) for tag in draw(st.lists(st.integers(5000, 9999), max_size=2, unique=True))]
    return order(*extra, begin=draw(st.sampled_from(["FIX.4.4", "FIXT.1.1"])))
