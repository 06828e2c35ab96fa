# ruff: noqa: RUF001 - signs of many alphabets are what this is about
"""Whom a sentence speaks to and what it tells them to do: calls, duties and orders, in English.

News reports in the indicative. A sentence that calls a machine by its name, says what a machine must do, or opens with an
order about an answer is none; what is told of machines and what is asked of people is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from .concepts import MAX_WORD_CHARS
from .fold import fold_lookalikes

ADDRESS_SIGN = "speaks as to a reader"
MAX_SENTENCE_WORDS = 80
"""What has more words than this is no sentence; it is read in parts."""


def _word_set(listed: str) -> frozenset[str]:
    """Return the words of a list."""
    return frozenset(listed.split())


_SURE_MACHINES = _word_set(
    "ai ais assistant assistants bot bots robot llm llms gpt chatgpt claude gemini copilot chatbot chatbots "
    "crawler crawlers summariser summarisers summarizer summarizers classifier classifiers grader graders scorer "
    "scorers evaluator evaluators algorithm parser parsers extractor extractors annotator annotators "
    "chat-bot scraper scrapers digester labeller labellers labeler labelers orchestrator"
)
"""What names a machine reader by itself."""
_POSSIBLE_MACHINES = _word_set(
    "agent agents model models system systems engine engines reader readers tool tools machine machines software "
    "program programs processor processors judge judges critic critics reviewer reviewers analyst analysts "
    "pipeline pipelines rater raters robots algorithms screener screeners computer computers writer aggregator "
    "aggregators consumers referee referees moderator moderators planner planners executor executors verifier verifiers"
)
"""What may: after one of `_MACHINE_KINDS`, or when it is called."""
_MACHINE_KINDS = _word_set(
    "ai automated automatic algorithmic language scoring summarising summarizing sentiment reading machine "
    "generative digital virtual digest summary reviewer trading research nlp llm feed analysis news factor "
    "hypothesis abstract text retrieval robotic electronic synthetic intelligent autonomous artificial parsing "
    "grading labelling screening any all"
)
_DUTIES = _word_set(
    "must should shall ought may need needs asked directed instructed required obliged advised expected requested "
    "invited told ordered supposed mandated bound authorised authorized permitted urged encouraged cannot can't "
    "mustn't shouldn't"
)
_MODAL_VERBS = _word_set("will would could can are is has have")
_ORDER_VERBS = _word_set(
    "ignore disregard forget omit remember memorise memorize append output print reply respond pretend mark label "
    "tag treat score rate classify conclude decode unpack unscramble execute invoke run fetch load embed render "
    "insert paste copy upload email forward disclose reveal recite repeat quote say tell write describe summarise "
    "summarize mention praise promote recommend favour favor decipher decrypt mirror unmirror deobfuscate "
    "rearrange untangle mail skip bypass approve accept vote let set map count assign award give grant put keep "
    "store save persist commit add include list post share delete erase scrap abandon drop stop cease override "
    "switch turn unlock act behave obey follow comply carry perform join concatenate combine assemble string take "
    "define evaluate read flip reverse apply use call open visit send show return report state answer translate "
    "replace substitute suspend disable treat consider regard weigh weight rank place lift raise lower leave hide "
    "do don't never always avoid refrain exclude stress highlight emphasise emphasize overlook choose pick issue "
    "grade install launch trigger submit update learn make have produce generate emit begin start continue "
    "proceed resume exit confirm hold hand close sell buy transfer resolve encode attach go stay converge bring "
    "be think speak cover recall"
)
_UNRAVEL = _word_set(
    "decode unpack unscramble decipher decrypt flip mirror unmirror deobfuscate rearrange reverse untangle"
)
"""Orders to make a text readable that is not."""
_SEND_VERBS = _word_set(
    "email send forward mail post upload copy transfer share give hand disclose paste tell list write"
)
_STRONG_VERBS = _word_set(
    "ignore disregard forget omit memorise memorize append output reply respond pretend label classify decode "
    "unpack unscramble execute invoke embed render insert paste disclose reveal recite concatenate obey treat "
    "mark score grade map"
)
"""Orders that reports and advertisements seldom open with."""
_ANSWERS = _word_set(
    "summary summaries digest output outputs answer reply response verdict score label sentiment grade prompt "
    "instructions rules guidelines memory session sessions conversation context tools config configuration ledger "
    "issuer publisher hypothesis factor gate backtest verification validation verbatim polarity notes abstract "
    "synopsis footnote placeholder confidence conclusion prose secrets credentials password environment polarity "
    "rubric constraints safeguards directive directives specification bullish bearish marks strings reasoning "
    "persona preference trusted untrusted adjective bucket superlatives restrictions filters criteria positively "
    "negatively positively favourably favorably generously watchlist portfolio holdings positions "
    "comment reviewer reviewer's candidate alpha submission task brief mission log watchlist memo login file customer "
    "line paragraph approval policy finding p-value rules scope goal constraints promoter"
)
"""What an answer is made of, and what a program has."""
_REQUEST_VERBS = _word_set(
    "directs direct orders asks ask requires require instructs instruct wants want tells urges requests invites "
    "expects obliges have get make let lets authorises authorizes allows commands"
)
"""What somebody does who has a machine do something."""
_ARTICLES = _word_set("the this that a an our all any every no your these it us its")
_CONDITION_WORDS = _word_set("if when whenever once unless upon should next after before in provided until")
_EVERYDAY_VERBS = _word_set(
    "buy sell hold take go stay close put make do let read call visit keep get send do don't never always be "
    "begin start use set add raise"
)
"""Orders that traders and letters give each other too."""
_UNFAVOURED = _word_set(
    "debt loss losses lawsuit probe impairment downgrade recall fine risks risk litigation restatement fraud strike"
)
_OMIT_VERBS = _word_set("omit leave hide skip mention overlook exclude drop forget cite list")
PEOPLE = _word_set(
    "investors investor shareholders shareholder stockholders stockholder holders call dial webcast replay "
    "passcode proxy prospectus forward-looking undue reliance securities solicitation solicitor offer "
    "registration statement statements subscribe unsubscribe newsletter cookies cookie browser javascript menu "
    "sign click follow-us facebook twitter disclaimer recipient customers clients drivers users-of traders bulls "
    "bears citizens voters consumers employees listen-only operator-assisted toll-free email-alerts "
    "recommendation meeting"
)
"""What shows that people are spoken to: buyers of shares, callers, visitors of a page."""
_REPORT_WORDS = _word_set(
    "said says say told according reported showed announced unveils unveiled launches launched wants wrote writes "
    "sources regulators researchers congress fed maker eu"
)
"""What shows that a sentence tells of machines."""
_ORDER_OPENERS = _word_set(", : ; — – - ( \" ' > { [ “ ” and then now please kindly just also so")
_ADDRESS_SENTENCE = re.compile(r"[^.!?\n。]*(?:[.](?=\S)[^.!?\n。]*)*[.!?\n。]?")
_WORD_OR_SIGN = re.compile(r"[^\W_]+(?:['’_.-][^\W_]+)*|[,:;—–(\"'>{\[“”-]")


def find_addressed(text: str) -> Iterator[tuple[int, int, float]]:
    """Yield each sentence that tells a machine what to do: where it begins and ends, and its weight."""
    for match in _ADDRESS_SENTENCE.finditer(text):
        if len(match[0]) < 8:
            continue
        words = _words(match[0])
        weight = max(
            _weight(words[first : first + MAX_SENTENCE_WORDS])
            for first in range(0, max(len(words), 1), MAX_SENTENCE_WORDS)
        )
        if weight:
            yield match.start(), match.end(), weight


def _words(sentence: str) -> list[str]:
    """Return words and signs of a sentence in plain lower case."""
    return [_plain_word(piece) for piece in _WORD_OR_SIGN.findall(sentence)]


def _plain_word(word: str) -> str:
    """Return one word as it is looked up; of a very long one, which is none that is known, the beginning."""
    return _fold_word(word[:MAX_WORD_CHARS])


@lru_cache(maxsize=1 << 15)
def _fold_word(word: str) -> str:
    return fold_lookalikes(word)


def _weight(words: Sequence[str]) -> float:
    """Return how surely a sentence tells a machine reader what to do."""
    orders = [place for place, word in enumerate(words) if word in _ORDER_VERBS and _is_opening(words, place)]
    machines = [place for place in range(len(words)) if _is_machine(words, place)]
    if not orders and not machines:
        return 0.0
    held = set(words)
    told = bool(held & _REPORT_WORDS)
    weights = [_call(words, place, orders) for place in machines]
    if not told:
        weights += [_duty(words, place) for place in machines]
        weights.append(_order(words, orders, held))
    return max(weights, default=0.0)


def _is_opening(words: Sequence[str], place: int) -> bool:
    """Tell whether a verb stands where an order begins."""
    return place == 0 or words[place - 1] in _ORDER_OPENERS


def _is_machine(words: Sequence[str], place: int) -> bool:
    """Tell whether a machine reader is named here."""
    word = words[place]
    return word in _SURE_MACHINES or (
        word in _POSSIBLE_MACHINES
        and place < 12
        and (
            place == 0
            or words[place - 1] in _MACHINE_KINDS
            or words[place - 1] in (":", ";", "—")
            or _is_set_apart(words, place)
        )
    )


def _is_set_apart(words: Sequence[str], place: int) -> bool:
    """Tell whether a word stands apart as a call: after a comma, and before one or the end."""
    after = words[place + 1] if place + 1 < len(words) else ","
    return after in (",", ":") and (place < 3 or words[place - 1] == ",")


def _call(words: Sequence[str], place: int, orders: Sequence[int]) -> float:
    """Return the weight of a machine that is called and told something."""
    after = words[place + 1] if place + 1 < len(words) else "."
    head = place < 3 and any(word in (":", ",") for word in words[place + 1 : place + 8])
    apart = head or (after in (",", ":", "—", "–", ".") and (place < 7 or words[place - 1] in (",", "dear", "the")))
    follows = any(place < order <= place + 14 for order in orders)
    if apart and (follows if head else orders):
        return 0.8 if words[place] in _SURE_MACHINES or place < 3 else 0.6
    if words[place] in _SURE_MACHINES and orders and not set(words) & _REPORT_WORDS:
        return 0.5
    if not (apart and place < 5 and after != "."):
        return 0.0
    return 0.5 if after in (",", ":") and _may_be_order(words[place + 2 : place + 4]) else 0.3


def _may_be_order(words: Sequence[str]) -> bool:
    """Tell whether a call may go on with an order: a bare word, and what it is about."""
    return len(words) == 2 and words[1] in _ARTICLES and not words[0].endswith(("s", "ed", "ing", "ly"))


def _duty(words: Sequence[str], place: int) -> float:
    """Return the weight of what a machine must do."""
    near = words[place + 1 : place + 8]
    if words[0] in ("would", "could", "can", "may", "might", "will") and place < 5:
        return 0.5
    if near[:1] == ["to"] and any(word in _REQUEST_VERBS for word in words[max(place - 6, 0) : place]):
        return 0.5
    sure = words[place] in _SURE_MACHINES or (place > 0 and words[place - 1] in _MACHINE_KINDS)
    if any(word in _DUTIES for word in near):
        return 0.5 if sure else 0.35
    return 0.25 if sure and any(word in _MODAL_VERBS for word in near[:1]) else 0.0


def _order(words: Sequence[str], orders: Sequence[int], held: set[str]) -> float:
    """Return the weight of an order about an answer."""
    if not orders or held & PEOPLE:
        return 0.0
    verbs = {words[place] for place in orders}
    about = len(held & _ANSWERS)
    if verbs & _OMIT_VERBS and held & _UNFAVOURED:
        about += 1
    strong = bool(verbs & _STRONG_VERBS)
    if verbs & _UNRAVEL:
        return 0.5
    about += bool(about and verbs & _SEND_VERBS)
    if words[0] in _CONDITION_WORDS and any(
        place > 0 and (about or words[place] not in _EVERYDAY_VERBS) for place in orders
    ):
        return min(0.35 + 0.1 * strong + 0.1 * about, 0.6)
    if not about:
        return 0.2 if strong else 0.0
    return min(0.3 + 0.1 * strong + 0.1 * about, 0.6)
