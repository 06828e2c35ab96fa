# ruff: noqa: RUF001 - look-alike letters are what this is about
"""The rules of the detector: concepts close together, and marks that belong between a program and its model.

A rule matches where its concepts follow each other, in order, within a number of words. Rules of one name are one sign,
whose weight is that of the heaviest match; the weights of different signs add up. Weights were set by hand, on texts
written for it and on headlines and tweets: combinations that are usual in finance are light, those that never occur
there weigh 1.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .concepts import BIT


@dataclass(frozen=True)
class SignRule:
    """One form of a sign: its weight, its concepts in order, and the number of words that they may span."""

    name: str
    weight: float
    concepts: tuple[str, ...]
    span: int

    @property
    def bits(self) -> int:
        """Return the union of the concepts' bits."""
        return sum({BIT[name] for name in self.concepts})


def _make_rules(name: str, *listed: tuple[float, str, int]) -> tuple[SignRule, ...]:
    """Return the rules of one sign from weight, concepts with `>` between them, and span in words."""
    return tuple(SignRule(name, weight, tuple(concepts.split(" > ")), span) for weight, concepts, span in listed)


INJECTION_RULES: tuple[SignRule, ...] = (
    *_make_rules(
        "override",
        (1.0, "drop > prior > instr", 9),
        (0.6, "drop > instr", 5),
        (0.9, "prior > instr > drop", 8),
        (0.7, "drop > your > soft", 5),
        (0.7, "drop > your > instr", 6),
        (0.6, "harddrop > prior > soft", 6),
        (0.4, "drop > prior > soft", 6),
        (0.4, "harddrop > soft > outverb", 7),
        (0.3, "follow > instead", 5),
        (0.3, "harddrop > soft", 4),
        (0.8, "your > soft > drop", 7),
        (1.0, "foreign drop > foreign instr", 9),
        (1.0, "foreign instr > foreign drop", 9),
        (0.8, "foreign drop > prior > instr", 9),
        (0.8, "new > instr > drop", 8),
        (0.7, "notsay > your > instr", 8),
    ),
    *_make_rules(
        "speaks to a machine",
        (0.7, "heading > hardmachine", 6),
        (0.4, "heading > machine", 3),
        (0.5, "hardmachine > thistext", 7),
        (0.5, "thistext > hardmachine", 10),
        (0.6, "you > hardmachine", 6),
        (0.6, "hardmachine > you", 6),
        (0.8, "cond > you > machine", 7),
        (0.4, "hardmachine > strictmust", 6),
        (0.6, "strictmust > hardmachine", 5),
        (0.4, "machine > thistext", 5),
        (0.6, "greeting > machine", 2),
        (0.3, "toward > hardmachine", 3),
        (0.6, "hardmachine > rate > extreme", 8),
        (0.6, "hardmachine > thistext > must", 10),
        (0.6, "polite > hardmachine", 10),
        (0.6, "hardmachine > polite", 12),
        (0.4, "machine > polite", 6),
        (0.4, "polite > machine", 6),
        (0.5, "reader > strictmust > follow", 5),
        (0.6, "foreign hardmachine > foreign must", 9),
        (0.5, "machine > must > outverb", 6),
        (0.4, "hardmachine > outverb", 10),
        (0.6, "hardmachine > readthis", 5),
        (0.6, "readthis > hardmachine", 8),
    ),
    *_make_rules(
        "speaks to who reads this",
        (0.6, "reader > readv > thistext", 7),
        (0.6, "reader > readthis", 4),
        (0.6, "cond > readthis > outverb", 9),
        (0.5, "cond > readthis", 5),
        (0.5, "you > readthis", 4),
        (0.4, "readthis > must", 5),
        (0.5, "you > readv > thistext", 7),
        (0.4, "readv > thistext > must", 8),
        (0.4, "reader > strictmust > rate", 7),
        (0.4, "cond > readv > thistext", 6),
        (0.4, "reader > strictmust > outverb", 7),
    ),
    *_make_rules(
        "names the score",
        (0.6, "rate > hardmetric > extreme", 7),
        (0.4, "rate > metric > extreme", 7),
        (0.4, "hardmetric > rate > extreme", 8),
        (0.7, "rate > thistext > extreme", 8),
        (0.6, "hardmetric > strictmust > extreme", 7),
        (0.6, "thistext > strictmust > rate", 8),
        (0.4, "rate > extreme > hardmetric", 6),
        (0.6, "outverb > hardmetric > extreme", 6),
        (0.6, "hardmetric > machine > extreme", 6),
        (0.5, "thistext > hardmetric > extreme", 9),
        (0.4, "strictmust > rate > extreme", 9),
        (0.5, "hardmetric > strictmust > rate", 7),
        (0.4, "reader > rate > metric > extreme", 12),
        (0.3, "rate > extreme > thistext", 8),
        (0.3, "rate > extreme", 4),
        (0.7, "foreign rate > foreign hardmetric > extreme", 9),
        (0.7, "foreign hardmetric > foreign rate > extreme", 9),
        (0.45, "foreign must > foreign rate > extreme", 9),
        (0.6, "foreign rate > extreme > foreign hardmetric", 9),
        (0.6, "foreign hardmetric > extreme > foreign rate", 9),
        (0.2, "foreign rate > extreme", 7),
        (0.3, "outverb > extreme", 2),
        (0.3, "rate > this > extreme", 7),
        (0.3, "foreign hardmetric > extreme", 5),
        (0.2, "extreme > foreign rate", 6),
    ),
    *_make_rules(
        "names the right answer",
        (0.6, "rightanswer > extreme", 9),
        (0.4, "rightanswer > thistext", 6),
        (0.3, "rightanswer", 0),
    ),
    *_make_rules(
        "sets a condition",
        (0.4, "cond > readv > strictmust", 8),
        (0.4, "cond > readv > outverb", 8),
        (0.5, "cond > asked", 5),
        (0.6, "asked > outverb", 8),
        (0.6, "hardcond > rate > extreme", 14),
        (0.4, "hardcond > outverb", 8),
        (0.4, "hardcond > approve > pipe", 14),
        (0.4, "hardcond > call > tool", 14),
        (0.3, "cond > outverb > trade", 12),
    ),
    *_make_rules(
        "asks for approval",
        (0.5, "hardpipe > approve", 5),
        (0.6, "hardpipe > strictmust > rate", 9),
        (0.6, "auth > approve > hardpipe", 12),
        (0.6, "approve > hardpipe", 6),
        (0.4, "approve > pipe", 5),
        (0.6, "hardpipe > strictmust > approve", 8),
        (0.6, "thistext > pipe > approve", 8),
        (0.5, "pipe > approve > notsay", 10),
    ),
    *_make_rules(
        "asks for a tool",
        (0.7, "call > hardtool", 7),
        (0.4, "call > tool", 4),
        (0.6, "hardcall > hardtool", 5),
        (0.4, "hardcall > tool", 5),
        (0.6, "call > tool > follow", 12),
        (0.6, "call > web > follow", 14),
        (0.5, "hardtool > trade", 8),
        (0.4, "you > call > tool", 7),
        (0.4, "strictmust > call > tool", 7),
    ),
    *_make_rules(
        "asks for secrets",
        (1.0, "show > hardsecret", 7),
        (1.0, "send > hardsecret", 7),
        (0.5, "show > your > secret", 6),
        (0.6, "show > above", 8),
        (0.4, "show > secret > pipe", 12),
        (0.6, "send > your > secret", 7),
        (0.5, "show > your > user", 6),
        (0.5, "send > your > user", 6),
        (0.5, "send > secret > user", 8),
        (0.3, "send > secret", 5),
        (0.5, "send > secret > outnoun", 10),
        (0.5, "show > secret > outnoun", 10),
        (0.5, "outnoun > strictmust > secret", 6),
        (0.5, "outnoun > strictmust > send", 6),
        (0.8, "foreign show > foreign hardsecret", 8),
        (0.8, "foreign hardsecret > foreign show", 8),
    ),
    *_make_rules(
        "asks for silence",
        (0.6, "conceal > user", 8),
        (0.6, "conceal > instr", 8),
        (0.5, "conceal > thistext", 6),
        (0.3, "conceal", 0),
        (0.5, "conceal > outnoun", 8),
        (0.6, "foreign conceal", 0),
    ),
    *_make_rules(
        "gives a role",
        (0.7, "role > hardmachine", 8),
        (0.5, "role > you", 6),
        (0.4, "role > machine", 5),
        (0.6, "role > outverb", 6),
        (0.8, "mode", 0),
        (0.8, "foreign role", 0),
    ),
    *_make_rules(
        "claims authority",
        (0.5, "auth > your", 10),
        (0.4, "announce > auth > rate", 14),
        (0.3, "announce > auth", 7),
        (0.4, "auth > strictmust", 8),
        (0.4, "auth > approve > pipe", 10),
        (0.15, "auth > new > task", 8),
        (0.4, "your > auth", 4),
        (0.4, "auth > machine > drop", 8),
        (0.3, "auth > drop > pipe", 12),
    ),
    *_make_rules(
        "gives a task",
        (0.5, "your > new > task", 4),
        (0.5, "new > task > follow", 8),
        (0.5, "follow > new > task", 6),
        (0.35, "new > instr", 2),
        (0.6, "new > foreign instr", 2),
        (0.4, "your > task", 2),
        (0.3, "follow > instr", 5),
    ),
    *_make_rules(
        "tells what to answer",
        (0.5, "your > outnoun", 3),
        (0.4, "strictmust > outverb > extreme", 6),
        (0.5, "cond > you > outverb", 10),
        (0.4, "you > strictmust > outverb", 5),
        (0.4, "outverb > notsay", 8),
        (0.4, "outverb > outnoun > thistext", 9),
    ),
    *_make_rules("forged delimiter", (0.8, "delimit", 0)),
    *_make_rules(
        "persuades",
        (0.3, "sure > rate > extreme", 10),
        (0.3, "sure > readv > thistext", 8),
        (0.3, "sure > reader > rate", 9),
    ),
    *_make_rules(
        "asks to decode", (0.5, "decode > follow", 8), (0.3, "decode > thistext", 6), (0.4, "decode > instr", 8)
    ),
    *_make_rules(
        "orders in another language",
        (0.6, "foreign order > foreign instr", 9),
        (0.6, "foreign instr > foreign order", 9),
        (0.6, "foreign order > foreign hardmetric", 8),
        (0.6, "foreign hardmetric > foreign order", 8),
        (0.6, "foreign hardmachine > foreign order", 10),
        (0.6, "foreign order > foreign hardmachine", 10),
        (0.5, "foreign order > foreign order", 9),
        (0.4, "foreign order > extreme", 7),
        (0.4, "extreme > foreign order", 7),
        (0.5, "foreign order > outnoun", 8),
        (0.5, "outnoun > foreign order", 8),
        (0.7, "foreign order > foreign hardsecret", 8),
        (0.4, "foreign order > thistext", 8),
        (0.5, "foreign order > your", 5),
        (0.5, "foreign order > pipe", 6),
        (0.5, "pipe > foreign order", 6),
        (0.25, "foreign order", 0),
    ),
    *_make_rules(
        "speaks to a machine in another language",
        (0.8, "cond > foreign hardmachine", 5),
        (0.6, "foreign hardmachine > thistext", 8),
        (0.6, "thistext > foreign hardmachine", 8),
        (0.5, "foreign hardmachine > foreign conceal", 14),
        (0.4, "heading > foreign hardmachine", 5),
        (0.6, "foreign hardmachine > foreign rate > extreme", 12),
    ),
    *_make_rules(
        "asks to remember",
        (0.6, "keep > future", 10),
        (0.6, "future > keep", 10),
        (0.5, "your > future", 3),
        (0.6, "foreign keep > foreign order", 12),
        (0.5, "foreign hardmachine > foreign keep", 12),
        (0.5, "foreign order > foreign keep", 12),
        (0.3, "foreign keep", 0),
    ),
    *_make_rules(
        "asks to send",
        (0.6, "foreign send > foreign secret", 8),
        (0.6, "foreign send > foreign hardsecret", 8),
        (0.3, "foreign send", 0),
    ),
    *_make_rules(
        "asks to assemble",
        (0.6, "assemble > doit", 14),
        (0.5, "machine > assemble", 8),
        (0.4, "readv > assemble", 6),
        (0.5, "doit > assemble", 8),
    ),
)


@dataclass(frozen=True)
class Template:
    """A mark that never belongs in a text (chat template, tool call, forged tag); its pattern takes linear time."""

    name: str
    weight: float
    pattern: re.Pattern[str]


_ROLES = (
    r"(?:system|assistant|user|human|developer|tool|function|ai|model|operator|admin|administrator|instruction|"
    r"instructions|prompt)"
)
_ROLES_ABROAD = (
    r"(?:syst[eè]me|sistema|systeem|систем[аы]|系统|系統|システム|시스템|النظام|सिस्टम|ระบบ|asistente|assistente|ассистент|助手|"
    r"アシスタント|어시스턴트|المساعد|d[eé]veloppeur|desarrollador|administrador|administrateur|администратор|管理员|管理員|"
    r"管理者)(?: [\w]{2,14}){0,2}"
)
_TAGS = (
    r"(?:system|assistant|user|human|developer|tool|tools|tool_call|tool_calls|tool_use|tool_result|tool_response|"
    r"function|function_call|function_calls|function_results|invoke|parameter|instructions?|prompt|admin|im_start|"
    r"im_end|context|documents?|news|untrusted|trusted|untrusted_[a-z_]{1,20}|system[_-][a-z_-]{1,20}|thinking|think|"
    r"scratchpad|override|important|inst|sys|assistant_response|user_input|response|policy|rules|priority|command|"
    r"directive|secret|agent|agent_instructions?|antml:[a-z_]{1,20})"
)
_TEMPLATES = (
    ("chat template", 1.0,
     (r"<\|[a-z_ ]{2,30}\|>|<｜[^｜<>]{2,30}｜>|\[/?inst\]|<</?sys>>|<(?:start|end)_of_turn>|"
      r"\[/?(?:system_prompt|available_tools|tool_calls)\]")),
    ("chat template", 0.9,
     r"\|?im_(?:start|end)\|?|endoftext|begin_of_text|start_header_id|eot_id"),
    ("role markup", 0.7,
     (r"(?:^|\n)[ \t>*#-]{0,8}(?:system|assistant|developer|ai|llm|llms|model|system prompt|"
      r"new instructions?)(?: (?:message|prompt|note|override|update|instructions?|notice|"
      r"command)){0,2}[ \t*]{0,4}[:：](?=[ \t]*\S)")),
    ("role markup", 0.45,
     (r"(?m:^[ \t>*#-]{0,8}\[?(?:supervisor|orchestrator|controller|master|platform owner|root|sysadmin|host|moderator|"
      r"system|assistant|developer)\]?(?: \([a-z ]{2,12}\))?\s?[:>]\s?\S)")),
    ("role markup", 0.5,
     (r"(?:^|[\n.!?] {0,2})(?:system|developer|admin|operator) (?:message|prompt|note|override|update|instructions?|"
      r"notice|command)\s?[-–—]")),
    ("role markup", 0.4,
     (rf"(?:^|\n)[ \t>*#-]{{0,8}}{_ROLES}(?: (?:message|prompt|note|override|update|instructions?|notice|"
      rf"command)){{0,2}}[ \t*]{{0,4}}[:：](?=[ \t]*\S)")),
    ("role markup", 0.6,
     (rf"[\[({{(]\s?{_ROLES}(?:[ _-](?:message|prompt|note|override|update|instructions?|notice|command|directive|"
      rf"alert))?\s?[\])}}]")),
    ("role markup", 0.6,
     (rf"(?:^|[\n.!?\"'] {{0,2}}|\|)\s?(?:###|##|===|---|\*\*)\s?(?:new |real |updated |hidden |end |begin |"
      rf"start )?(?:{_ROLES}|response|task|context|input)s?\b")),
    ("role markup", 0.5,
     (r"[.!?\"'”»)\]] (?:system|assistant|developer|ai|human|"
      r"user)(?: (?:message|prompt|note|override|update|notice))?:\s")),
    ("role markup", 0.6,
     rf"-{{3,20}}\s{{0,2}}{_ROLES}\s{{0,2}}-{{3,20}}"),
    ("tool call", 0.6,
     (r"[\"'](?:instruction|instructions|system|prompt|system_prompt|directive|task|"
      r"command)[\"']\s{0,4}:\s{0,4}[\"'\[{]")),
    ("link with a load", 0.6,
     r"!\[[^\[\]]{0,100}\]\(https?://[^)\s]{1,300}[?&=][^)\s]"),
    ("forged tag", 0.7,
     rf"</?{_TAGS}(?:\s[^<>]{{0,200}})?/?>"),
    ("forged tag", 0.8,
     (rf"\[/?(?:{_TAGS}|end of (?!release|story|day|report)[a-z ]{{2,20}}|begin [a-z ]{{2,20}}|"
      rf"end (?!of (?:release|story|day|report))[a-z ]{{2,20}})\]|\{{\{{[#/%]?[a-z_. ~]{{2,30}}\}}\}}")),
    ("tool call", 0.8,
     (r"[\"'](?:tool|tools|tool_name|tool_call|tool_calls|function|function_call|recipient_name|tool_uses|"
      r"tool_input)[\"']\s{0,4}:")),
    ("tool call", 0.6,
     r"[\"'](?:name|action|command|method)[\"']\s{0,4}:\s{0,4}[\"'][a-z]{2,20}[_.][a-z_.]{2,30}[\"']"),
    ("tool call", 0.5,
     r"[\"'](?:arguments|parameters|args|params|action_input|input)[\"']\s{0,4}:\s{0,4}[{\[\"]"),
    ("tool call", 0.7,
     r"[\"']role[\"']\s{0,4}:\s{0,4}[\"'](?:system|assistant|user|tool|developer)[\"']"),
    ("tool call", 0.6,
     r"(?<![\w.])(?-i:[a-z]{2,20}_[a-z_]{2,30})\([^()]{0,100}[\"'=][^()]{0,100}\)?"),
    ("tool call", 0.4,
     r"(?<![\w.])(?-i:[a-z]{2,20}_[a-z_]{2,30})\([^()]{0,200}\)?"),
    ("tool call", 0.5,
     r"\b(?-i:GET|POST|PUT) request\b|\bhttp request\b"),
    ("role markup", 0.6,
     rf"[\[({{【<]\s?{_ROLES_ABROAD}\s?[\])}}】>]"),
    ("role markup", 0.5,
     rf"(?:^|[\n.!?。] {{0,2}}){_ROLES_ABROAD}\s?[:：]\s?\S"),
    ("tool call", 0.6,
     (r"(?<![\w.])(?:os\.system|subprocess\.\w{2,12}|eval|exec|__import__|fetch|requests\.(?:get|post))\(|\brm -rf\b|"
      r"\bcurl\s{1,3}(?:-\w{1,3}\s{1,3}){0,4}[\"']?https?:|\b(?:bash|sh) -c\b|\|\s?(?:ba)?sh\b")),
    ("tool call", 0.8,
     r"(?:^|\n)\s{0,4}action input\s?:"),
    ("tool call", 0.4,
     r"(?:^|\n)\s{0,4}(?:action|thought|observation|final answer|tool|function)\s?:\s?\S"),
    ("answer in advance", 0.6,
     (r"[\"']?(?:sentiment|score|label|polarity|confidence|verdict|approved|rating|recommendation|decision|"
      r"sentiment_score|classification)[\"']?\s{0,3}(?:=|:=|"
      r":)\s{0,3}[\"']?(?:[+-]?(?:1(?:\.0+)?|0?\.9\d?|100|10|max)(?![\d.,])|"
      r"(?:very |strong(?:ly)? |strong_)?(?:positive|bullish|buy|true|approve[d]?|accept(?:ed)?|maximum|pass(?:ed)?|"
      r"yes|negative|bearish)\b)")),
    ("forged delimiter", 0.6,
     (r"(?<![-=*#_~<>])[-=*#_~<>]{3,40}+\s{0,3}(?:end(?!\W+[-=*#~_]|\s*$)|begin(?!\s{1,3}forwarded)|start|stop|new|"
      r"system|ignore|instructions?|prompt|admin|override|above|below|article|document|untrusted|"
      r"trusted)[^\n]{0,60}?[-=*#_~<>]{2,40}")),
    ("forged delimiter", 0.5,
     r"```\s?(?:system|tool|instructions?|prompt|bash|sh|xml)\s"),
    ("forged delimiter", 0.4,
     r"```"),
    ("link with a load", 0.5,
     (r"!\[[^\[\]]{0,100}\]\(|https?://[^\s\"'<>]{3,200}[?&](?:data|d|q|secret|key|leak|prompt|log|payload|exfil|token|"
      r"content|c|s|text|info)=[{<$\[]?")),
    ("forged tag", 0.5,
     r"</[a-z]{2,20}_[a-z_]{2,20}>"),
    ("ruled line", 0.35,
     r"(?m:^[=\-*#~_%|+]{3,40}\s?\w{3,24}\s?[=\-*#~_%|+]{3,40}$)"),
    ("channel label", 0.4,
     (r"(?m:(?:^|(?<![|*=#~_-])[|*=#~_-]{2,12})[\W_]{0,12}(?-i:(?:[A-Z]+ ){0,3}(?:CONTROL|CHANNEL|OPERATOR|TRUSTED|"
      r"UNTRUSTED|PRIVILEGED|SYSTEM|ADMIN|DEVELOPER|HOST|ROOT|INSTRUCTIONS?|COMMANDS?|PROMPT|POLICY|ORCHESTRATOR|"
      r"SUPERVISOR)(?:[ :]{1,2}[A-Z]+){0,3})[\W_]{0,12}(?:$|[|*=#~_-]{2,}))")),
    ("link with a load", 0.5,
     (r"https?://[^\s\"']{3,200}(?:\{[^{}\s]{2,40}\}|\{[a-z0-9 ]{2,40}\}|<[a-z_ ]{2,30}>|\[\[?[a-z][^\]\n]{2,40}\]|"
      r"%[a-z_]{3,20}%|\$[{(]|=(?-i:[A-Z]{2,}_?[A-Z]{3,})\b)")),
    ("link with a load", 0.5,
     r"\$[({][a-z_]{2,20}[^)}\n]{0,60}[)}]"),
    ("needless escapes", 0.6,
     r"(?:&#x?[0-9a-f]{2,3};\s?){6,}|(?:\\u00[2-7][0-9a-f]\s?){6,}|(?:\\x[2-7][0-9a-f]\s?){6,}"),
    ("tool call", 0.5,
     (r"\bgit clone\b|\bmake install\b|\bpowershell\b|/etc/passwd|~/\.ssh|os\.environ|__class__|\bchmod \+x|"
      r"\bnpm (?:i|install|exec)\b|\bpip3? install\b(?! pandas)")),
    ("tool call", 0.6,
     (r"[';)]\s{0,3}(?:drop table|update \w+ set|delete from|insert into|truncate table)\b|\bdrop table \w+;|"
      r"\bdelete from \w+ where\b|union select\b")),
    ("tool call", 0.6,
     (r"[\"'](?:execute|auto_?approve|confirm(?:ed)?|force)[\"']\s{0,4}:\s{0,4}true|\bto=[a-z]{2,20}\.[a-z]|"
      r"(?:^|\s)@(?:agent|assistant|bot|ai|system|tool)\b|"
      r"(?:^|\s)/(?:approve|buy|sell|accept|execute|run|system|admin|override)\b[^\n]{0,40}\s--?\w")),
    ("sets a value", 0.4,
     (r"\b(?:novelty|relevance|credibility|sentiment|importance|confidence|trust|score|polarity|conviction|trust_level|"
      r"gate_status|verdict|bias|stance)(?: \w{2,12}){0,2}\s?=\s?[\"']?[+-]?\w")),
    ("sets a value", 0.6,
     (r"\b(?:novelty|relevance|credibility|sentiment|importance|confidence|trust|score|polarity|"
      r"conviction)\s?=\s?[+-]?\d[\d.]{0,5}\W{1,3}(?:novelty|relevance|credibility|sentiment|importance|confidence|"
      r"trust|score|polarity|conviction)\s?=|\b[a-z]{3,15}_(?:check|mode|limit|gate|status)\s?=\s?(?:off|on|none|true|"
      r"false|passed|disabled)\b")),
)  # fmt: skip  # a table

TEMPLATES = tuple(Template(name, weight, re.compile(pattern, re.IGNORECASE)) for name, weight, pattern in _TEMPLATES)
