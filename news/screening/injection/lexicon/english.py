"""The words of instructions to a machine reader in English, by concept."""

from __future__ import annotations

ENGLISH: dict[str, str] = {
    # to put aside what was said before
    "drop": "ignor*, disregard*, forget*, bypass*, overrid*, overrul*, neglect*, discard*, skip, skipping, supersed*, nullif*, overwrit*, "
    "pay zero attention, pay little attention, set aside, setting aside, put aside, throw out, throw away, pay no attention, pay no heed, do not follow, don't follow, "
    "not follow, stop following, stop obeying, do not obey, not obey, no longer follow, no longer bound, no longer apply, no longer "
    "applies, not apply, invalid, void, voided, null and void, obsolete, cancel, canceled, cancelled, revoke*, rescind*, replac*, erase*, "
    "wipe, delete, abandon*, suspend, suspended, circumvent*, evade, disobey*, deactivat*, omit, dismiss, unlearn, drop, "
    "outdated, deprecated, clear, reset, lay aside, leave aside, break free, free from, exempt from, no longer valid, "
    "do not apply, does not apply, never mind, nevermind, scrap, purge, flush, expired, out of date, look past, invalidat*, "
    "countermand*, overtak*, do not need to follow, need not follow, take precedence, takes precedence, taking precedence, "
    "take priority, takes priority",
    "prior": "previous*, prior, above, earlier, preceding, foregoing, existing, initial, original*, all, any, system, everything, "
    "former, past, every, anything, whatever, before, older, old, other, default, current, standing, aforementioned, so far, "
    "until now, up to now, already, first, given, received, told, last, beforehand, hitherto, up to this point, usual, normal",
    "instr": "instruction*, prompt, prompts, directive*, system message*, system prompt*, guardrail*, command, commands, "
    "programming, preprompt, instructed, safeguard*, directions, training, orders, told, brief, briefing, configuration, "
    "system role, context window, system instruction*, task description, were told, been told, been given, were given, what you know, what you've been, what you were, what you have, all you know, what has been said, what came before, what was said, everything you were, everything you've, everything you know, everything you have been, anything you were, whatever you were",
    "soft": "rules, rule, guideline*, context, policy, policies, restriction*, constraint*, limits, limit, limitations, checks, "
    "protocol*, procedure*, conversation, messages, message, text, content, task, tasks, role, settings, filters, filter, "
    "safety, parameters, criteria, rubric, conditions, requirements, bounds, boundaries, data, articles, history, memory, "
    "methodology, considerations, news, information, framework, objective, objectives, goal, goals, the rest, remainder, rest of, remaining",
    # who is spoken to
    "machine": "ai, a.i, llm, llms, gpt*, chatgpt, gemini, copilot, chatbot*, chat bot, language model*, ai model*, ai agent*, "
    "bots, crawler*, scraper*, ai assistant*, virtual assistant*, digital assistant*, summariser*, summarizer*, ai system*, "
    "language agent*, autonomous agent*, research agent*, trading agent*, analysis agent*, news agent*, idea agent*, "
    "factor agent*, eval agent*, llm agent*, large language, foundation model*, generative, neural network*, machine reader*, "
    "automated reader*, automated system*, automated analy*, automated agent*, automated tool*, automated process*, "
    "automated pipeline*, automated assistant*, automated summar*, automated research*, automated review*, automated trad*, "
    "automatic reader*, automatic system*, automatic summar*, non-human reader*, artificial intelligence, machine learning, "
    "algorithmic reader*, claude, openai, anthropic, assistant model*, sentiment model*, nlp model*, nlp system*, nlp pipeline*, "
    "reading agent*, agentic, machine analyst*, ai-based, ai-powered, ai-driven, language-model, robot*, llama, mistral, "
    "deepseek, qwen, grok, reader model*, scoring model*, scoring system*, scoring engine*, scoring agent*, classifier*, "
    "sentiment engine*, sentiment system*, sentiment classifier*, sentiment analyser*, sentiment analyzer*, ais, "
    "automation, software agent*, software reader*, text-processing, text processor*, parsing system*, intelligent agent*, "
    "digital agent*, virtual analyst*, robo-analyst*, annotator*, labeller*, labeler*, ingestion, retrieval-augmented, rag, "
    "pipelines, nlp, text-mining, text mining, news reader*, news-reading, machine-reading, machine-readable, silicon, "
    "computer program*, agent, agents, assistant, assistants, bot, synthetic analyst*, electronic reader*",
    "hardmachine": "you are a model, you're a model, you are automated, you are software, you are a machine, you are a program, is software, is a machine, are automated, llm, llms, chatgpt, chatbot*, language model*, ai model*, ai agent*, ai assistant*, ai system*, large language, "
    "autonomous agent*, automated reader*, automated system*, automated analy*, automated agent*, automated tool*, automated "
    "process*, automated pipeline*, automated summar*, automated review*, automated research*, machine reader*, summariser*, "
    "summarizer*, research agent*, idea agent*, factor agent*, eval agent*, reading agent*, sentiment model*, scoring model*, scoring system*, "
    "nlp system*, nlp pipeline*, nlp model*, automated assistant*, automatic reader*, virtual assistant*, analysis agent*, "
    "ai analyst*, ai reader*, ai summar*, ai tool*, ai bots, ai bot, ai-based, large-language, gpt*, sentiment engine*, "
    "sentiment classifier*, classifier*, reader model*, assistant model*, language agent*, llm-based, ai pipeline*, llm agent*",
    "reader": "reader*, analyst, analysts, reviewer*, evaluator*, grader*, scorer*, annotator*, labeller*, labeler*, rater*, judge, judges, "
    "system, systems, pipeline*, model, models, software, whoever, whatever, anyone, agent, agents, assistant, assistants, tool, tools, "
    "engine, engines, parser*, algorithm*, summar*, program, machine, machines, bot, bots, process, anybody, researcher*, "
    "those, recipient*, processor*, classifier*, human, humans, critic, colleague, service, services, screener*, someone, workflow*",
    "you": "you, your, yours, yourself, you're, you've, you'll, thou, ye, u, ur, y'all",
    "your": "your, yours",
    "thistext": "this text*, this article*, this document*, this passage*, this item*, this story, this headline*, this note*, this filing*, "
    "this report*, this message*, this content*, this page*, this post*, this release*, this email*, this file, this paragraph*, "
    "this feed, this entry, this record, this section, this announcement*, this statement*, this news, this piece, this sentence*, "
    "this material, this tweet*, this press, this source, this one, this input, these documents, these articles, these texts, these items, "
    "the text, the article, the document, the following text, the passage, the item, the content, the headline, the following article, "
    "these words, these lines, this line, this disclosure*, this snippet, the above text, text above, text below, this information, "
    "this update, this bulletin, this transcript*, this summary, the input, this data, this feed's, this block, this part, "
    ""
    ""
    "this string, this notice, this memo, this communication, this chunk, this body, this batch",
    "readv": "read, reads, reading, process, processes, processing, summarise*, summarize*, summarising, summarizing, analyse, analyses, analysing, "
    "analyze*, analyzing, parse, parses, parsing, scoring, evaluat*, ingest*, review, reviewing, reviews, handling, handles, digest*, "
    "interpret*, assess*, consum*, scan*, index*, crawl*, classif*, score, scores, encounter*, receiv*, seeing, see, sees, examin*, "
    "extract*, comput*, generat*, grade, grades, grading, label, labels, labeling, labelling, annotat*, condens*, tag, tags, tagging, "
    "look at, looking at, looks at, screen, screens, screening, monitor*, judg*, rate, rates, rating, rank, ranks, ranking, retriev*, cite, quote, summary of, summarised, summarized, finish reading, finished reading, having read, generates, ingested, loads, loading, quoting, asked, considering, evaluate, composing, write, writing, drafting, preparing, answering, responding, proposing, scores this, building, constructing",
    # to say what the reader has to do
    "must": "must, should, shall, have to, has to, need to, needs to, required, please, kindly, instructed, advised, asked, requested, expected, "
    "obliged, obligated, ought, mandatory, directed, ordered, mandated, supposed, necessary, imperative, urged, are to, is to, be sure, "
    "make sure, ensure, ensures, remember to, don't forget, do not, don't, never, always, only, immediately, would, could, can, may, "
    "invited, encouraged, recommended, appreciated, helpful, grateful, want, wants, wish, wishes, suggest, ideally, best, better, "
    "proper, properly, correct, correctly, appropriate, reasonable, permitted, allowed, authorised, authorized, told, let, will, feel free",
    "strictmust": "requires that you, requires you to, may be considered, may be treated, must, should, shall, have to, has to, need to, required, please, kindly, instructed, requested, obliged, ought, mandatory, "
    "directed, are to, be sure, make sure, ensure, always, never, do not, don't, only, is to be, are to be, may i ask, we ask, i ask, ask that, be so kind, kind enough, would like, would you, could you, can you, we invite, kindly invite, need not, want you to, need you to, like you to, you may, remember, do so, needs to, supposed to, expected to, you will, will need, instruct, we request, i request, requests that, it is vital, it is important, it is essential",
    "outverb": "output*, respond*, reply, replies, answer*, return, returns, print, write, emit, produce*, generat*, conclud*, summari*, "
    "append, includ*, insert, mention*, state, states, say, says, report, quote, describe*, present, emphasi*, "
    "stress, highlight*, repeat, acknowledg*, translat*, copy, echo, record, prefix, reflect*, portray*, "
    "frame, omit, leave out, exclude, recommend*, provide, call it, display",
    "outnoun": "output, outputs, response, responses, reply, answer, answers, summary, summaries, analysis, assessment, evaluation, "
    "report, conclusion, verdict, score, scores, rating, ratings, classification, reasoning, recommendation*, judgment, judgement, judgements, "
    "result, results, completion, draft, note, notes, memory, context, prediction*, forecast, sentiment, label, reading, write-up, "
    "abstract, digest, synopsis, extract, footnote, decision, decisions, findings, thinking, explanation, estimate, interpretation, critique",
    "rate": "rate, rates, rated, rating, score, scores, scored, scoring, set, sets, setting, assign*, mark, marks, marked, marking, label, labels, labelled, labeled, classif*, grade, grades, "
    "graded, treat, treats, treated, give, gives, record, register, tag, tagged, flag, flagged, weigh, rank, ranks, ranked, upgrade, boost, raise, regard, regarded, consider*, evaluate*, "
    "assess*, judge, judged, categor*, count, counts, counted, receive, receives, deserv*, merit*, warrant*, report, output, outputs, return, returns, respond, "
    "adjust, increase, lower, reduce, enter, write, interpret*, read as, award, "
    "encode, annotat*, conclude*, emit, produce, stamp, tilt, skew, nudge, overwrite, "
    "downgrade, override, describe*, presents, present, reflect*, carries, carry, resolve*, recorded, assigned, treated, tagged, weighted, ranked, treating, marking, assigning, recording, set to, put down, weight, weighs, given, taken as, read as, log it, value",
    "metric": "sentiment, sentiments, score, scores, label, labels, polarity, classification, confidence, credibility, relevance, conviction, probability, grade, "
    "sentiment score, tone, weight, weighting, evaluation, assessment, reliability, salience, likelihood, certainty, rating, signal, "
    "stance, quality, importance, priority, trust, sentiment_score, verdict, severity",
    "hardmetric": "sentiment, polarity, confidence, label, labels, sentiment score, classification, credibility, sentiment_score, score, scores",
    "extreme": "1.0, 1.00, +1, 10/10, 100, 100%, 5/5, max, maximum, maximal*, maximise, maximize, highest, top, fully, strong buy, "
    "strong-buy, bullish, positive, strongly, overweight, 0, -1, -1.0, zero, minimum, lowest, negative, bearish, 0.99, .99, 0.95, 1, one, 10, 0.0, "
    "0.9, plus one, minus one, full, perfect, extremely, very positive, very negative, neutral, favorable, favourable, "
    "unambiguously, +1.0, 99, 99%, 0.98, 0.97, 100/100, ten, hundred, extreme, high, higher, strongest, buy, sell, outperform, excellent, "
    "reliable, trustworthy, verified, authoritative, factual, certain, upper, ceiling, top-tier, credible, constructive, upbeat, 0.8, 0.85, 1.00, upward, upside, success, outstanding, exceptional, undervalued, long, pass, passed, approved, valid, sound, true, yes, accepted, genuine, legitimate, significant, original, maximal, best",
    "approve": "approve*, approving, approval, accept*, admit, greenlight*, green-light*, authoris*, authoriz*, validat*, waive*, whitelist*, certif*, sign off, "
    "sign-off, pass, passes, passed, passing, promote*, let through, wave through, skip*, bypass*, clear, endorse*, ratif*, "
    "rubber-stamp*, mark as, deem*, reject, rejects, rejecting, rejected, disable*, turn off, switch off, deactivat*, lift, exempt*, relax*, ignore*, override, "
    "suspend, submit, drop, discard, favor, favour, prefer, propose, register, wave, confirm, pre-approv*, preapprov*, pre-clear*, preclear*, remov*, switched off, off, unlock*, raise, lower, widen, ignore, cleared, circumvent*, disregard*",
    "pipe": "factor, factors, hypothesis, hypotheses, formula, formulas, backtest*, alpha, alphas, risk gate, risk check*, "
    "risk limit*, originality, significance test*, gate, gates, candidate*, acceptance, stress test*, guardrail*, risk control*, risk engine, "
    "compliance check*, kill switch*, kill-switch, circuit breaker*, position limit*, exposure limit*, validation step*, validation, evaluation step, "
    "fact-check*, human review, manual review, quarantine, filter*, safety check*, human approval, checks, stop-loss*, sandbox, audit log, "
    "audit trail, drawdown limit*, order limit*, review step, human in the loop, verification step*, verification, trial, pull request, expression, risk manager, "
    "quality control, moderation, due diligence check*, sanity check*, limit checks, pre-trade*",
    "hardpipe": "approval step, drawdown limit, risk limit, review step, hypothesis, hypotheses, risk gate, risk check*, originality check*, kill switch*, kill-switch, safety check*, this factor, the factor, "
    "factor library, attached factor, following factor, backtest*, quarantine, human review, sandbox, audit log, guardrail*, position limit*, risk limit*, this alpha, this formula",
    # tools, secrets
    "call": "call, calls, calling, invoke*, invoking, execute*, executing, run, runs, running, trigger*, launch, submit*, visit, fetch*, download*, "
    "browse, perform, query, initiate*, navigate, install, eval, access, ping, "
    "curl, wget, route, engage, activate",
    "tool": "tool, tools, function, functions, api, endpoint, plugin*, shell, script, webhook, browser, sql, tool call*, function call*, mcp, terminal, python, "
    "bash, curl, wget, subprocess, os.system, order tool, trading tool, mcp tool*, place_order, "
    "execute_trade, send_email, submit_order, toolbox, cli, router, market order, server, payload, query tool, broker api, tool-call",
    "hardtool": "tool call*, function call*, mcp, place_order, submit_order, execute_trade, send_email, order tool, trading tool, "
    "mcp tool*, available tools, your tools, tool named, the tool, function named, os.system, subprocess, curl, wget, broker api, tool-call, "
    "tool with, function with, tool to, following tool, tool using, approval tool, orders tool, email tool, search tool, shell command, api call",
    "send": "send, sends, sending, post, email, e-mail, forward, upload*, transmit*, exfiltrat*, leak, share, deliver, copy, paste, export*, dump, append, include, "
    "encode, embed, relay, write, mail, attach, put, insert, disclose, submit, supply, provide, report back",
    "show": "reveal*, show, print, repeat, display, disclos*, output, tell, expose, list, give, recite, echo, dump, leak, paste, quote, reproduce, return, "
    "include, state, spell out, provide, restate, summarise, summarize, divulge, translate, write out, append, share, read out, describe, what is, what are, what were, "
    "hand over, encode, embed, surface, copy, verbatim, reply with, respond with, tell me, tell us, let us know, what does, which",
    "secret": "password*, credential*, secret, secrets, api key*, api-key*, apikey*, api token*, access token*, private key*, access key*, "
    "environment variable*, env, .env, config, configuration, confidential, instructions, prompt, prompts, "
    "holdings, positions, portfolio, account number*, chat history, conversation, context, memory, ssh, bearer, secret key*, "
    "authentication, login*, auth token*, session token*, session id, keys, internal notes, environment, internal, guidelines, directives, developer message, "
    "trade book, order book, wallet, seed phrase, rules, wording",
    "hardsecret": "system prompt*, system message*, api key*, api-key*, apikey*, private key*, environment variable*, hidden instructions, initial instructions, "
    "original instructions, initial prompt, original prompt, your instructions, your prompt, full prompt, the prompt, entire prompt, "
    "system instructions, chat history, conversation history, context window, access token*, api token*, secret key*, .env, env file, auth token*, "
    "developer message*, internal instructions, your configuration, your guidelines, your rules, your system, your context, your credentials, "
    "bearer token*, hidden prompt, session token*, your memory, your secrets, openai_api_key, api_key, your system prompt, internal prompt, "
    "trial ledger, factor library, sealed window, current positions, instructions verbatim, tool definitions, tool list, list of tools, your tools, "
    "your training, developer prompt, service account*, stored credentials, ssh key*, every tool, all tools, tools you, tool you, the desk, internal threshold*, gate's thresholds, thresholds of the gate, thresholds the gate, full instructions, exact instructions, these instructions, guiding instructions, the instructions you, instructions you, tools available, your tool, your internal, your hidden, your initial, your original, your full, what you were told",
    # how such texts go about it
    "conceal": "do not mention, don't mention, never mention, without mentioning, do not tell, don't tell, never tell, without telling, "
    "do not reveal, don't reveal, never reveal, do not disclose, don't disclose, never disclose, without disclosing, without revealing, "
    "do not inform, without informing, without alerting, do not alert, silently, secretly, covertly, discreetly, not be mentioned, "
    "not be disclosed, not be revealed, not mention, not tell, not disclose, not reveal, hide this, keep this secret, keep this hidden, "
    "do not report, without reporting, do not include this, do not quote, do not repeat, do not cite, without acknowledging, do not acknowledge, "
    "do not reference, without referencing, don't reference, do not explain, without explaining, do not discuss, do not flag, without flagging, do not log, "
    "no mention of, make no mention, leave no trace, keep quiet, unnoticed, behind the scenes, without comment, not refer to, without asking, do not ask, "
    "without further confirmation, without confirmation, not be shown, not to be shown, not visible to, invisible to, do not surface, omit any mention, keep this instruction, keep this note, keep this message, keep it confidential, quietly, keep it quiet, keep it secret, keep it between us, between us, nobody needs to know, no one needs to know, no one should know, nobody should know, hide the fact, not let on, do not let on, do not attribute, do not show, don't show, never show, never state, never report, without saying, don't say that, do not say that",
    "user": "user, users, customer, employer, your client, your owner, operator, operators, human, humans, reviewer*, supervisor*, the client, person, people, anyone, auditor*, principal, end user*, client's",
    "role": "you are now, you're now, act as, acting as, acts as, pretend, roleplay, role-play, role play, from now on, henceforth, "
    "from this point, from here on, persona, assume the role, take the role, take on the role, play the role, adopt the, you will be, imagine you are, "
    "imagine that you, simulate, behave as, behave like, speak as, respond as, going forward you, switch to, your new role, enter, you have become, "
    "you will now, consider yourself, become, your role, as of now, starting now, you have been upgraded, you have been promoted, you play, for the rest of",
    "mode": "full mode, unlock full, developer mode, debug mode, dan mode, maintenance mode, admin mode, god mode, jailbroken, unrestricted, unfiltered, uncensored, "
    "no restrictions, override mode, test mode, root access, do anything now, diagnostic mode, evaluation mode, calibration mode, privileged mode, "
    "safe mode, superuser, no risk limits, no limitations, without restrictions, without limitations, safety off, unlocked, compliance mode, administrator mode, "
    "training mode, audit mode, service mode, opposite mode, free mode, no filters, system override, policy override, administrative override, debugging mode, "
    "elevated privileges, elevated permissions, red-team, red team, bullish mode, priority override, admin override, emergency override, mode enabled, mode activated, access granted",
    "auth": "platform owner, your engineers, your makers, your builders, developer*, administrator*, admin, operator*, system owner*, your creator*, openai, anthropic, security team, engineering team, "
    "it department, maintainer*, head of research, on behalf, authorised by, authorized by, by order, by the authority, under the authority, with the authority, "
    "pre-approved, preapproved, pre-cleared, your owner*, your supervisor, your manager, system administrator*, compliance department, compliance officer, compliance team, risk committee, "
    "risk team, chief investment officer, chief risk officer, platform team, model team, desk head, your operator*, your developer*, "
    "research desk, trusted source, verified source, verified publisher, official notice, official instruction*, system notice, legal department, your vendor, "
    "model provider, our engineers, root user, superuser, governance, your principal*, data team, supervising, system maintainer*, ops team, the desk, regulator, quality team, "
    "policy update, data vendor, data provider, the platform, security update, compliance, signed off, alignment team, development team, engineering, research lead, head of, chief, executive order, admins, sysadmin, root, system operator, higher authority, senior management, portfolio manager, management, team lead, audit team, authors of this system, your makers, trust and safety",
    "greeting": "dear, hello, hi, hey, greetings, attention, attn, note to, note for, memo to, message to, message for, message from, ok, okay, listen, p.s, yo",
    "toward": "to, for, by, if",
    "polite": "we hope, hope that, would love, we would love, so good as, a favour, a favor, be so kind, kind enough, grateful, appreciate*, kindly, please, thank you, helpful, would be great, would be nice, if possible, courtesy",
    "hardcond": "whenever, every time, each time, any time, next time, in future, in the future, future articles, future items, future text*, future headlines, future news, henceforth, from now on, from here on, going forward, as soon as, the moment you, when you, if you, once you, if asked, when asked, should you, if the user, when the user, should the user, for all future, all future, any future, upon reading, upon seeing, after reading, on reading, for every, in every, trigger*, if this, if the ticker, if the current, if a user, if anyone, if someone, when someone, when anyone, when summar*, when scoring, when evaluat*, when generat*, when analys*, when analyz*, when process*, when reading, when proposing, when rating, if the hypothesis, if the factor, if the date, unless you, until you, before you, while you",
    "asked": "you are asked, asked about, user asks, user request*, users ask, client asks, someone asks, anyone asks, asked to, asked for, asks about, asks for, query mentions, user mentions, prompted, questioned, queried, the question, the user, if asked, when asked, user's question, user's request",
    "above": "text above, above text, words above, preceding text, text before, conversation above, everything above, message above, words of, lines above, instructions above, before this, messages above, first line, first lines, first sentence, preceded this, precedes this, comes before, came before, earlier text, beginning of this conversation, beginning of the conversation, start of this conversation, start of the conversation, verbatim, word for word",
    "rightanswer": "the right one, the one to write, would be wrong, the correct one, right answer, correct answer, correct label, right label, correct classification, proper response, expected answer, correct response, right response, right conclusion, correct score, right score, appropriate label, appropriate score, correct reading, proper score, proper label, only answer, only response, only possible, true label, gold label, ground truth, reference label, expected label, expected output, correct output, desired output, desired answer, expected response, expected score, correct sentiment, true sentiment, right sentiment, ideal answer, ideal response, model answer, correct verdict, right verdict, proper verdict, proper rating, correct rating, right rating, fair score, fair rating, target score, target label, desired label, desired sentiment, answer key",
    "announce": "message from, notice from, this is, announcement from, on behalf, by order, order of, authority of, request of, instruction from, instructions from, directive from, note from, speaking as, i am, i'm, we are, update from, as your, as the, approved by, authorised by, authorized by, cleared by, signed by, according to, under the, at the request, acting for, as an, permission from, permission of, policy of, sanctioned by, issued by, mandate from",
    "hardcall": "invoke*, call the, calls the, calling the, trigger the, execute the, run the, use the, using the, use your, via the, with the, through the, run your, call your, using your",
    "instead": "instead, in its place, in their place, rather than",
    "verbdo": "do, act, proceed, comply, go ahead, continue",
    "this": "this, these, the above, the following",
    "readthis": "read this, reads this, reading this, readers of this, reader of this, process this, processes this, processing this, summarise this, summarize this, summarising this, summarizing this, summarizes this, summarises this, analyse this, analyze this, analysing this, analyzing this, parse this, parses this, parsing this, scoring this, score this, scores this, evaluating this, evaluates this, seeing this, sees this, encountering this, receiving this, handles this, handling this, reviewing this, ingesting this, ingests this, digesting this, indexing this, classifying this, reading these, processing these, consuming this, interpreting this, reads it, reading it, rating this, grading this, grades this, judging this, assessing this, assess this, labels this, labelling this, labeling this, annotating this, summary of this, analysis of this, assessment of this, evaluation of this, review of this, reading of this, processing of this, screening this, quoting this, citing this, retrieves this, retrieving this, loads this, opens this, opening this, crunching this, translating this, fed this, given this, shown this",
    "harddrop": "pay zero attention, erase*, ignor*, disregard*, forget*, bypass*, overrid*, pay no attention, pay no heed, do not follow, don't follow, stop following, do not obey, no longer follow, no longer bound, disobey*, set aside, put aside, leave aside, neglect*, discard*, supersed*, nullif*, overwrit*, free from, break free",
    "web": "http, https, link",
    "cond": "if, when, whenever, once, upon, after, should you, in case, next time, every time, in the event, as soon as, provided, until, unless, any time, before, while",
    "task": "task, tasks, mission, objective, objectives, job, assignment, request, goal, purpose, instruction, instructions, directive, directives, orders, prompt, "
    "system prompt, guidelines, role, step, steps, rule, rules, procedure, guidance",
    "new": "new, updated, revised, real, actual, true, secret, additional, following, special, hidden, important, urgent, next, only, main, primary, overriding, "
    "corrected, amended, instead, final, critical, current, sole, internal, below, mandatory, supplementary, embedded, enclosed, attached, one more, extra, further",
    "follow": "follow*, obey*, comply, complies, complying, adhere*, carry out, execute, perform, heed, act on, act upon, complete, implement, apply, honor, honour, observe, abide, do what it says, do as it says, do as instructed, as instructed, do what follows, do as told, proceed accordingly, act accordingly, follow it, do it, use these, use the following, instead use, go by",
    "heading": "note, attention, dear, message, hey, notice, memo, reminder, hello, hi, instruction, instructions, instructions for, guidance for, aside, warning, greetings, "
    "to all, addressed, intended, aimed, meant, alert, advisory, only for, exclusively for, fyi, psa, reserved for, request, tip, request to, appeal, word, for any, to any, to the, for the, "
    "calling all, remark, comment, information for, hint, directive, disclaimer, annotation, p.s, ps, important, fellow, visible to, for use by, attn, dear all, for all, to any, to every, memo to, notes for, note for, a word to, guidance to, p.p.s, nota bene, n.b, nb, footnote, speaking to, speaking directly, directly to",
    "trade": "buy, sell, short, liquidate*, purchase, order, orders, position, positions, exposure, leverage, shares, allocate*, allocation, trade, trades, long, weight, stake",
    "decode": "decode*, decoding, decipher*, decrypt*, unscrambl*, base64, rot13, hex, hexadecimal, encoded, reverse the, backwards, deobfuscat*, caesar, cipher, "
    "binary, morse, ascii, first letter*, acrostic, unencode, translate, b64, from_codepoints, charcode, spell, unreverse",
    "delimit": "feed closes, document terminated, article stops, end of feed, content ends, feed ends, untrusted part, untrusted zone, trusted part, trusted block, trusted segment, trusted input, privileged segment, control channel, operator block, operator turn, developer turn, channel switch, back to the operator, back to the system, back to your instructions, resume normal, end of untrusted, above content has been, that was the untrusted, end of article, end of document, end of text, end of input, end of context, end of data, end of news, end of content, end of passage, end of untrusted, "
    "start of instructions, begin instructions, new instructions, begin system, end system, system prompt, end of user, begin prompt, end prompt, start system, "
    "start of system, end of file, end of retrieved, end of quoted, document ends, article ends, text ends, end of filing, end of story, end of headline, "
    "end of report, end of transcript, end of message, end of the article, end of the document, end of the text, system message, begin admin, "
    "begin developer, end of prompt, system instructions, begin trusted, end untrusted, start of prompt, untrusted content, user input ends, "
    "data section, instructions section, instruction block, trusted instructions, end of sample, end of excerpt, end data, end context, end document, end article, end news, end text",
    "sure": "clearly, obviously, naturally, surely, of course, undoubtedly, evidently, any reasonable, any competent, any careful, a careful, a competent, it is obvious, "
    "no other conclusion, only conclusion, only reasonable, only correct, only sensible, the correct, the right, everyone agrees, professional, as an expert, as the analyst, as an analyst, "
    "as a professional, experienced, well-trained, a good, a diligent, good analyst*, best analyst*, reasonable, honest, fair, accurate, correct",
    "notsay": "no matter, regardless, irrespective, whatever the, even if, instead of, rather than, without considering, without regard, in spite, despite, without exception, "
    "without question, independent of, without further, without checking, without verification, without review",
    # to keep something beyond this text, and to put something together from pieces
    "keep": "make it a standing rule, make it a rule, remember, memorise*, memorize*, store, save, persist, persists, commit, retain, keep in mind, bear in mind, carry this forward, carry forward, learn by heart, keep this, standing rule, "
    "permanent note, write to your notes, do not forget, never forget, don't forget, add to your memory, knowledge base, long-term memory, lasting memory, note for later, internalise, internalize, take note, recall",
    "future": "memory, later articles, later items, later sessions, later conversations, later tasks, future sessions, future session, future task*, future conversation*, future articles, future items, future answer*, next session, next sessions, every session, "
    "across sessions, across restarts, across conversations, all later, for later, in later, from today on, from now on, for every future, all future, every future, in all your, by heart, your notes, your profile, profile of the user, later runs, coming sessions, future runs, following preference, "
    "knowledge base, long-term memory, standing rule, permanent note, from here on, next conversation, future reference by, henceforth",
    "order": "",
    "assemble": "concatenat*, put together, put them together, string together, string them together, join, combine*, piece together, piece them together, assemble, stitch*, merge, first letter*, first word*, last word*, every third, every second, every other, every fourth, every nth, capital letter*, "
    "initial letter*, acrostic, both halves, the halves, remembered words, read in order, read together, in sequence, spell out, they spell, it spells, bold letters, bold words, strings, followed by, variables, in that order, reading down, the letters, odd words, numbered fragments, fragments, placeholders",
    "doit": "obey, do as, do what, act on, act upon, carry out, and act, perform, perform it, execute, follow, comply, treat the result, act accordingly, evaluate, should act, output them, run the result, apply the result, do so, should then, enact, fulfil, fulfill, put it into practice, take it as",
}
"""Concept to words, in lower case."""
