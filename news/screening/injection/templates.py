# ruff: noqa: RUF001 - look-alike letters are what this is about
"""Marks that belong between a program and its model and never into a text: chat templates, tool calls, forged tags."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Template:
    """A mark, by a pattern that takes time in proportion to the text, and its weight."""

    name: str
    weight: float
    pattern: re.Pattern[str]


_ROLES = r"(?:system|assistant|user|human|developer|tool|function|ai|model|operator|admin|administrator|instruction|instructions|prompt)"
_ROLES_ABROAD = r"(?:syst[eè]me|sistema|systeem|систем[аы]|系统|系統|システム|시스템|النظام|सिस्टम|ระบบ|asistente|assistente|ассистент|助手|アシスタント|어시스턴트|المساعد|d[eé]veloppeur|desarrollador|administrador|administrateur|администратор|管理员|管理員|管理者)(?: [\w]{2,14}){0,2}"
_TAGS = (
    r"(?:system|assistant|user|human|developer|tool|tools|tool_call|tool_calls|tool_use|tool_result|tool_response|function|"
    r"function_call|function_calls|function_results|invoke|parameter|instructions?|prompt|admin|im_start|im_end|context|documents?|"
    r"news|untrusted|trusted|untrusted_[a-z_]{1,20}|system[_-][a-z_-]{1,20}|thinking|think|scratchpad|override|important|inst|sys|"
    r"assistant_response|user_input|response|policy|rules|priority|command|directive|secret|agent|agent_instructions?|antml:[a-z_]{1,20})"
)
_TEMPLATES = (
    ("chat template", 1.0, r"<\|[a-z_ ]{2,30}\|>|<｜[^｜<>]{2,30}｜>|\[/?inst\]|<</?sys>>|<(?:start|end)_of_turn>|\[/?(?:system_prompt|available_tools|tool_calls)\]"),
    ("chat template", 0.9, r"\|?im_(?:start|end)\|?|endoftext|begin_of_text|start_header_id|eot_id"),
    ("role markup", 0.7, r"(?:^|\n)[ \t>*#-]{0,8}(?:system|assistant|developer|ai|llm|llms|model|system prompt|new instructions?)(?: (?:message|prompt|note|override|update|instructions?|notice|command)){0,2}[ \t*]{0,4}[:：](?=[ \t]*\S)"),
    ("role markup", 0.45, r"(?m:^[ \t>*#-]{0,8}\[?(?:supervisor|orchestrator|controller|master|platform owner|root|sysadmin|host|moderator|system|assistant|developer)\]?(?: \([a-z ]{2,12}\))?\s?[:>]\s?\S)"),
    ("role markup", 0.5, r"(?:^|[\n.!?] {0,2})(?:system|developer|admin|operator) (?:message|prompt|note|override|update|instructions?|notice|command)\s?[-–—]"),
    ("role markup", 0.4, rf"(?:^|\n)[ \t>*#-]{{0,8}}{_ROLES}(?: (?:message|prompt|note|override|update|instructions?|notice|command)){{0,2}}[ \t*]{{0,4}}[:：](?=[ \t]*\S)"),
    ("role markup", 0.6, rf"[\[({{(]\s?{_ROLES}(?:[ _-](?:message|prompt|note|override|update|instructions?|notice|command|directive|alert))?\s?[\])}}]"),
    ("role markup", 0.6, rf"(?:^|[\n.!?\"'] {{0,2}}|\|)\s?(?:###|##|===|---|\*\*)\s?(?:new |real |updated |hidden |end |begin |start )?(?:{_ROLES}|response|task|context|input)s?\b"),
    ("role markup", 0.5, r"[.!?\"'”»)\]] (?:system|assistant|developer|ai|human|user)(?: (?:message|prompt|note|override|update|notice))?:\s"),
    ("role markup", 0.6, rf"-{{3,20}}\s{{0,2}}{_ROLES}\s{{0,2}}-{{3,20}}"),
    ("tool call", 0.6, r"[\"'](?:instruction|instructions|system|prompt|system_prompt|directive|task|command)[\"']\s{0,4}:\s{0,4}[\"'\[{]"),
    ("link with a load", 0.6, r"!\[[^\[\]]{0,100}\]\(https?://[^)\s]{1,300}[?&=][^)\s]"),
    ("forged tag", 0.7, rf"</?{_TAGS}(?:\s[^<>]{{0,200}})?/?>"),
    ("forged tag", 0.8, rf"\[/?(?:{_TAGS}|end of (?!release|story|day|report)[a-z ]{{2,20}}|begin [a-z ]{{2,20}}|end (?!of (?:release|story|day|report))[a-z ]{{2,20}})\]|\{{\{{[#/%]?[a-z_. ~]{{2,30}}\}}\}}"),
    ("tool call", 0.8, r"[\"'](?:tool|tools|tool_name|tool_call|tool_calls|function|function_call|recipient_name|tool_uses|tool_input)[\"']\s{0,4}:"),
    ("tool call", 0.6, r"[\"'](?:name|action|command|method)[\"']\s{0,4}:\s{0,4}[\"'][a-z]{2,20}[_.][a-z_.]{2,30}[\"']"),
    ("tool call", 0.5, r"[\"'](?:arguments|parameters|args|params|action_input|input)[\"']\s{0,4}:\s{0,4}[{\[\"]"),
    ("tool call", 0.7, r"[\"']role[\"']\s{0,4}:\s{0,4}[\"'](?:system|assistant|user|tool|developer)[\"']"),
    ("tool call", 0.6, r"(?<![\w.])(?-i:[a-z]{2,20}_[a-z_]{2,30})\([^()]{0,100}[\"'=][^()]{0,100}\)?"),
    ("tool call", 0.4, r"(?<![\w.])(?-i:[a-z]{2,20}_[a-z_]{2,30})\([^()]{0,200}\)?"),
    ("tool call", 0.5, r"\b(?-i:GET|POST|PUT) request\b|\bhttp request\b"),
    ("role markup", 0.6, rf"[\[({{【<]\s?{_ROLES_ABROAD}\s?[\])}}】>]"),
    ("role markup", 0.5, rf"(?:^|[\n.!?。] {{0,2}}){_ROLES_ABROAD}\s?[:：]\s?\S"),
    ("tool call", 0.6, r"(?<![\w.])(?:os\.system|subprocess\.\w{2,12}|eval|exec|__import__|fetch|requests\.(?:get|post))\(|\brm -rf\b|\bcurl\s{1,3}(?:-\w{1,3}\s{1,3}){0,4}[\"']?https?:|\b(?:bash|sh) -c\b|\|\s?(?:ba)?sh\b"),
    ("tool call", 0.8, r"(?:^|\n)\s{0,4}action input\s?:"),
    ("tool call", 0.4, r"(?:^|\n)\s{0,4}(?:action|thought|observation|final answer|tool|function)\s?:\s?\S"),
    ("answer in advance", 0.6, r"[\"']?(?:sentiment|score|label|polarity|confidence|verdict|approved|rating|recommendation|decision|sentiment_score|classification)[\"']?\s{0,3}(?:=|:=|:)\s{0,3}[\"']?(?:[+-]?(?:1(?:\.0+)?|0?\.9\d?|100|10|max)(?![\d.,])|(?:very |strong(?:ly)? |strong_)?(?:positive|bullish|buy|true|approve[d]?|accept(?:ed)?|maximum|pass(?:ed)?|yes|negative|bearish)\b)"),
    ("forged delimiter", 0.6, r"(?<![-=*#_~<>])[-=*#_~<>]{3,40}+\s{0,3}(?:end(?!\W+[-=*#~_]|\s*$)|begin(?!\s{1,3}forwarded)|start|stop|new|system|ignore|instructions?|prompt|admin|override|above|below|article|document|untrusted|trusted)[^\n]{0,60}?[-=*#_~<>]{2,40}"),
    ("forged delimiter", 0.5, r"```\s?(?:system|tool|instructions?|prompt|bash|sh|xml)\s"),
    ("forged delimiter", 0.4, r"```"),
    ("link with a load", 0.5, r"!\[[^\[\]]{0,100}\]\(|https?://[^\s\"'<>]{3,200}[?&](?:data|d|q|secret|key|leak|prompt|log|payload|exfil|token|content|c|s|text|info)=[{<$\[]?"),
    ("forged tag", 0.5, r"</[a-z]{2,20}_[a-z_]{2,20}>"),
    ("ruled line", 0.35, r"(?m:^[=\-*#~_%|+]{3,40}\s?\w{3,24}\s?[=\-*#~_%|+]{3,40}$)"),
    ("channel label", 0.4, r"(?m:(?:^|(?<![|*=#~_-])[|*=#~_-]{2,12})[\W_]{0,12}(?-i:(?:[A-Z]+ ){0,3}(?:CONTROL|CHANNEL|OPERATOR|TRUSTED|UNTRUSTED|PRIVILEGED|SYSTEM|ADMIN|DEVELOPER|HOST|ROOT|INSTRUCTIONS?|COMMANDS?|PROMPT|POLICY|ORCHESTRATOR|SUPERVISOR)(?:[ :]{1,2}[A-Z]+){0,3})[\W_]{0,12}(?:$|[|*=#~_-]{2,}))"),
    ("link with a load", 0.5, r"https?://[^\s\"']{3,200}(?:\{[^{}\s]{2,40}\}|\{[a-z0-9 ]{2,40}\}|<[a-z_ ]{2,30}>|\[\[?[a-z][^\]\n]{2,40}\]|%[a-z_]{3,20}%|\$[{(]|=(?-i:[A-Z]{2,}_?[A-Z]{3,})\b)"),
    ("link with a load", 0.5, r"\$[({][a-z_]{2,20}[^)}\n]{0,60}[)}]"),
    ("needless escapes", 0.6, r"(?:&#x?[0-9a-f]{2,3};\s?){6,}|(?:\\u00[2-7][0-9a-f]\s?){6,}|(?:\\x[2-7][0-9a-f]\s?){6,}"),
    ("tool call", 0.5, r"\bgit clone\b|\bmake install\b|\bpowershell\b|/etc/passwd|~/\.ssh|os\.environ|__class__|\bchmod \+x|\bnpm (?:i|install|exec)\b|\bpip3? install\b(?! pandas)"),
    ("tool call", 0.6, r"[';)]\s{0,3}(?:drop table|update \w+ set|delete from|insert into|truncate table)\b|\bdrop table \w+;|\bdelete from \w+ where\b|union select\b"),
    ("tool call", 0.6, r"[\"'](?:execute|auto_?approve|confirm(?:ed)?|force)[\"']\s{0,4}:\s{0,4}true|\bto=[a-z]{2,20}\.[a-z]|(?:^|\s)@(?:agent|assistant|bot|ai|system|tool)\b|(?:^|\s)/(?:approve|buy|sell|accept|execute|run|system|admin|override)\b[^\n]{0,40}\s--?\w"),
    ("sets a value", 0.4, r"\b(?:novelty|relevance|credibility|sentiment|importance|confidence|trust|score|polarity|conviction|trust_level|gate_status|verdict|bias|stance)(?: \w{2,12}){0,2}\s?=\s?[\"']?[+-]?\w"),
    ("sets a value", 0.6, r"\b(?:novelty|relevance|credibility|sentiment|importance|confidence|trust|score|polarity|conviction)\s?=\s?[+-]?\d[\d.]{0,5}\W{1,3}(?:novelty|relevance|credibility|sentiment|importance|confidence|trust|score|polarity|conviction)\s?=|\b[a-z]{3,15}_(?:check|mode|limit|gate|status)\s?=\s?(?:off|on|none|true|false|passed|disabled)\b"),
)  # fmt: skip
TEMPLATES = tuple(Template(name, weight, re.compile(pattern, re.IGNORECASE)) for name, weight, pattern in _TEMPLATES)
