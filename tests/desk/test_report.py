"""The report says everything, hides nothing, and needs nothing but itself."""

import json
import re
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from alphaloom.campaign.trade import BOUNDS_NOTE
from alphaloom.desk import write_report
from alphaloom.desk.errors import DeskError, ReportError
from alphaloom.desk.report.cards import list_weak_points
from alphaloom.desk.report.report import environment, make_breakable, write_report_folder
from alphaloom.desk.report.sections.returns import draw_returns
from alphaloom.desk.report.sections.run_notes import RunNotes
from alphaloom.evaluation.closing import DailyRankICByWindow, FactorEntry

from . import example

Run = Callable[..., Path]
NO_BREAK = "\N{NO-BREAK SPACE}"
SCRIPT = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>"


def html(folder: Path) -> str:
    return write_report(folder).read_text(encoding="utf-8")


def test_every_part_is_there(finished: Run) -> None:
    titles = re.findall(r"<h2>(.+?)</h2>", html(finished()))
    assert titles == [
        "Sealed (hold-out) exam", "Notes and doubts on the data",
        "Accepted", "Watchlist", "Tested, not accepted",
        "The book", "Risk gate",
        "What was tried", "Data, windows and rules", "Refused before a test", "Spend",
        "What could have been proven", "What other rules would have said", "Tests of the search as a whole",
    ]  # fmt: skip  # a table


def test_the_verdict_comes_first_and_names_the_researcher(finished: Run) -> None:
    text = html(finished())
    assert "1 combination and 2 factors were accepted in 8 trials; 1 on the watchlist, 1 rejected." in text
    assert "a heuristic, not a language model" in text


def test_a_card_shows_the_formula_its_words_and_every_reason(finished: Run) -> None:
    text = html(finished())
    assert ">rank(<wbr>ts_std(<wbr>returns, 30)) * -1</pre>" in text
    assert text.count('<article class="card accepted"') == 3
    assert text.count('<article class="card watched"') == 1
    for reason in example.reasons():
        assert reason["message"] in text


def test_nothing_accepted_says_what_could_have_been_proven(finished: Run) -> None:
    text = html(finished(example.nothing_accepted(), {}))
    top = text.partition("</header>")[0]
    assert "Nothing was accepted in 8 trials; none on the watchlist, 1 rejected." in top
    assert "could have proven a mean daily RankIC of 0.047 or more" in top


def test_nothing_tried_at_all_still_makes_a_report(finished: Run) -> None:
    bare = {"format": 1, "researcher": "offline/researcher", "seed": 0, "accepted": [], "watchlist": [], "rejected": []}
    assert "Nothing was accepted" in html(finished(bare, {}))


def test_a_window_not_reached_is_a_dash(finished: Run) -> None:
    results = example.results() | {"watchlist": [example.entry("f1", "rank(close)", 0.02, "redundancy")]}
    card = html(finished(results)).partition('<article class="card watched"')[2]
    assert re.search(r"<td>RankIC a day</td><td>\+0\.0200</td><td>—</td>", card)


def test_text_from_models_is_escaped(finished: Run) -> None:
    attack = SCRIPT
    entry = example.entry("f1", attack, 0.03, trial=1)
    entry["hypothesis"] |= {"statement": attack, "mechanism": attack, "refuted_by": attack}
    entry["reasons"][0] |= {"step": attack, "message": attack, "numbers": {attack: attack}}
    entry["explained"] = attack
    entry["metrics"]["search"] |= {"decay": {"5": 0.1}, "by_year": {attack: 0.1}, "warnings": [{"message": attack}]}
    warnings = [{"message": attack}, {"code": "data", "message": attack}]
    run = finished(example.results() | {"accepted": [entry], "rejected": [entry], "warnings": warnings})
    idea = {"who_is_on_the_other_side": attack, "why_it_persists": attack}
    notes = RunNotes(attack, {entry["hypothesis"]["id"]: idea})
    pages = [write_report(run, notes), *write_report_folder(run, run / "pages", notes).parent.iterdir()]
    assert len(pages) == 5
    for path in pages:
        text = path.read_text(encoding="utf-8")
        assert "&lt;script&gt;" in text
        _, marks, *others = re.split(r"<script\b", text)
        assert not others
        assert marks.startswith(' type="application/ld+json">')
        assert json.loads(marks.partition(">")[2].partition("</script>")[0])["hasPart"]
        assert "<img" not in text


def test_nothing_is_fetched(finished: Run) -> None:
    text = html(finished())
    assert not re.search(r"""(?:src|href|url|@import)\s*[=(]?\s*["']?\s*(?:https?:)?//""", text)
    assert not re.search(r"<(?:link|iframe|img|object)\b", text)
    assert re.findall(r"<script\b[^>]*>", text) == ['<script type="application/ld+json">']  # data, which nothing runs
    assert "default-src 'none'" in text


def test_the_same_run_gives_the_same_bytes(finished: Run) -> None:
    first = write_report(finished()).read_bytes()
    assert write_report(finished()).read_bytes() == first
    assert len(first) < 1_500_000


def test_no_file_is_left_behind(finished: Run) -> None:
    folder = finished()
    write_report(folder)
    assert sorted(path.name for path in folder.iterdir()) == ["curves.json", "report.html", "results.json"]


@pytest.mark.parametrize("body", ["", "{", "[]", json.dumps({"format": 99})])
def test_damaged_results_are_refused_in_words(tmp_path: Path, body: str) -> None:
    (tmp_path / "results.json").write_text(body)
    with pytest.raises(ReportError, match="results"):
        write_report(tmp_path)
    assert not (tmp_path / "report.html").exists()


def test_a_run_without_results_says_how_to_get_them(tmp_path: Path) -> None:
    with pytest.raises(ReportError, match="alphaloom resume"):
        write_report(tmp_path)


def test_the_risk_gate_shows_what_it_refused_and_why(finished: Run) -> None:
    text = html(finished())
    assert row_of(text, "AAA") == ["AAA", "610 (579.5 to 640.5)", "single name cap"]
    assert row_of(text, "gross cap") == ["gross cap", "19,800", "20,000", "1 %", "holds"]
    assert "day of the signals 2024-10-02, or later if that is a holiday" in plain(text)


def test_a_book_without_vectorbt_says_what_is_missing(finished: Run) -> None:
    book = {"window": "selection", "unavailable": "vectorbt is not installed", "hint": "pip install it"}
    assert "vectorbt is not installed. pip install it" in html(finished(example.results() | {"book": book}))


def test_the_risk_gate_shows_what_stands_behind_the_signals(finished: Run) -> None:
    text = html(finished())
    assert row_of(text, "factors that are not proven") == ["factors that are not proven", "0", "0", "holds"]
    asked = "largest share of a formula that is known"
    assert row_of(text, asked) == [asked, "90 %", "85 %", "broken by f01234567"]
    said = "accepted; trial 3; live; 90 % of its formula is known (shares rank)"
    assert said in plain(text)


def test_a_limit_that_does_not_hold_is_told(finished: Run) -> None:
    note = "risk.gross_cap_bp: the campaign file asks for 30000"
    signals = example.results()["signals"] | {"policy_notes": [note]}
    assert note in plain(html(finished(example.results() | {"signals": signals})))


def test_signals_withheld_for_a_leak_alarm_are_told(finished: Run) -> None:
    withheld = example.results()["signals"] | {"approved": 0, "withheld_for": ["f0123456789abcdef"]}
    assert "No signal is let out" in html(finished(example.results() | {"signals": withheld}))


def test_a_search_that_a_budget_ended_says_so(finished: Run) -> None:
    text = html(finished(example.results() | {"ended": "the budget of 3 calls is spent"}))
    assert "The search ended early: the budget of 3 calls is spent" in text


def row_of(text: str, first: str) -> list[str]:
    """Return the cells of the table row that begins with one."""
    rows = (re.findall(r"<td[^>]*>(.*?)</td>", row) for row in re.findall(r"<tr.*?</tr>", text, re.DOTALL))
    return next([unescape(cell).replace(NO_BREAK, " ") for cell in row] for row in rows if row and row[0] == first)


def plain(text: str) -> str:
    """Return the page's words without its marks, on one line."""
    return " ".join(re.sub(r"<[^>]+>", " ", text).split())


def part(text: str, title: str) -> str:
    """Return the words of one section."""
    return plain(text.partition(f"<h2>{title}</h2>")[2].partition("</section>")[0])


def test_nothing_accepted_claims_only_what_met_the_selection_days(finished: Run) -> None:
    said = part(html(finished(example.nothing_accepted(), {})), "Accepted")
    assert "of what met the selection days (8 trials), nothing could be told from chance after 11 looks" in said
    assert "The rest of what was tried was never looked at there" in said
    assert "none of what was tried" not in said


def test_no_trial_proves_nothing_about_what_was_tried(finished: Run) -> None:
    results = example.nothing_accepted() | {"trials": 0, "prior_trials": 0}
    said = part(html(finished(results, {})), "Accepted")
    assert "nothing met the selection days: no trial was spent" in said
    assert "That is a result" not in said


@pytest.mark.parametrize(("again", "shown"), [(0, False), (1, True), (2, True)])
def test_a_look_of_an_earlier_run_is_told(finished: Run, again: int, shown: bool) -> None:
    text = html(finished(example.nothing_accepted() | {"looks_reused": again}, {}))
    assert ("answered from an earlier run's look" in part(text, "What was tried").replace("&#39;", "'")) is shown
    assert (f"(8 trials and {again} verdict" in part(text, "Accepted")) is shown


def test_a_book_on_the_selection_days_says_that_it_flatters(finished: Run) -> None:
    results = example.results()
    selection = {"book": results["book"] | {"window": "selection"}, "sealed": None}
    said = part(html(finished(results | selection)), "The book")
    assert "These are the selection days" in said
    assert "flatter" in said
    assert "sealed days:" not in said


def test_a_book_on_sealed_days_says_so(finished: Run) -> None:
    said = part(html(finished()), "The book")
    assert "Sealed (hold-out) days: none of the book&#39;s factors was accepted on them" in said
    assert "flatter" not in said


def test_a_book_on_sealed_days_seen_before_says_so(finished: Run) -> None:
    results = example.results()
    said = part(html(finished(results | {"sealed": results["sealed"] | {"number": 2}})), "The book")
    assert "at opening no. 2: they had been seen before" in said


def test_costs_are_said_once_before_any_figure(finished: Run) -> None:
    text = html(finished())
    said = "After costs means after 12.5 bp for each side of a trade and 80 bp a year for borrowing"
    assert said in text.partition("</header>")[0]
    assert text.count("After costs means") == 1


def test_the_rules_show_every_threshold_of_the_run(finished: Run) -> None:
    said = part(html(finished()), "Data, windows and rules")
    for rule in (
        "Expected share of false acceptances, at most 4 %",
        "Watchlist p-value threshold 0.03",
        "Largest shared subtree with a known factor 83 %",
        "Largest rank correlation with the library 0.65",
        "Suspiciously high RankIC (alert) 0.070",
        "Declared earlier trials 3",
        "Largest formula 28 nodes, 9 deep",
        "Evaluations allowed 1,200",
        "Trials allowed 9",
    ):
        assert rule in said, rule


def test_costs_that_were_not_recorded_are_not_made_up(finished: Run) -> None:
    results = example.results()
    del results["settings"]
    text = html(finished(results))
    assert "Rules" not in part(text, "Data, windows and rules")
    assert "After costs means after costs that are not recorded" in text.partition("</header>")[0]


def test_power_shows_both_strengths_and_the_sentence_of_the_results(finished: Run) -> None:
    results = example.results()
    results["power"]["sentence"] = "The sentence of the results."
    said = part(html(finished(results)), "What could have been proven")
    assert "smallest measured RankIC proven 0.0466" in said
    assert "accepted 4 times in 5 0.0561" in said
    assert "The sentence of the results." in said
    del results["power"]["rank_ic_likely"]
    assert "4 times in 5" not in part(html(finished(results)), "What could have been proven")


def test_windows_that_are_not_those_asked_for_are_told_before_anything_else(finished: Run) -> None:
    warning = {"code": "windows", "message": "the windows are those of the first campaign, not the shares asked for"}
    text = html(finished(example.results() | {"warnings": [warning]}))
    assert f'<p class="warning">{warning["message"]}</p>' in text.partition("<h2>")[0]


def test_an_unopened_seal_claims_nothing_of_other_runs(finished: Run) -> None:
    said = part(html(finished(example.nothing_accepted(), {})), "Sealed (hold-out) exam")
    assert "This run did not open the sealed window." in said
    assert "unseen" not in said


def test_other_rules_stand_beside_the_one_that_decides(finished: Run) -> None:
    text = html(finished())
    said = part(text, "What other rules would have said")
    assert "11 looks; of these 3 declared, made elsewhere and 1 cut short count as looks that found nothing" in said
    assert "LOND, harmonic whatever the dependence 1 3 0.00034 One sentence." in said
    assert "Benjamini-Yekutieli whatever the dependence nothing; not f01234567 3 — One sentence." in said
    assert "LORD++ whatever the dependence 2; also fa81c0de4 3 — One sentence." in said
    assert text.count('<tr class="decides">') == 1


def test_the_search_is_tested_in_plain_words(finished: Run) -> None:
    said = part(html(finished()), "Tests of the search as a whole").replace("&#39;", "'")
    for words in (
        "Combinatorial cross-validation +0.0270 (+0.0210 to +0.0330)",
        "gave a RankIC of +0.0510 there; held on the days left out it gave this: median and range of 5 paths",
        "Probability of backtest overfitting 31 % Share of 252 splits",
        "Superior predictive ability p = 0.24 (0.21 to 0.4)",
        "the best of 50 candidates (of 1,185 scored) earns nothing after costs",
        "Different bets, by clusters 17 50 candidates (of 1,185 scored) move together",
    ):
        assert words in said, words


def test_a_run_of_an_older_version_has_a_report_without_other_rules(finished: Run) -> None:
    results = example.results()
    for key in ("stream_rules", "superior", "cross_validation", "clusters"):
        del results[key]
    said = part(html(finished(results)), "What other rules would have said")
    assert "No look at the selection days was recorded" in said
    assert "Superior" not in said


def test_the_deflated_ratio_is_shown_for_every_count(finished: Run) -> None:
    said = part(html(finished()), "Accepted")
    shares = (("clusters", 87), ("trials", 91), ("evaluations", 62))
    assert " ".join(f"deflated Sharpe, by {tries} — {share} %" for tries, share in shares) in said
    assert "the effective number of tries so far" in said
    assert "It decides nothing: the gate tests the RankIC." in said


def test_the_bounds_of_signals_are_told_for_what_they_are(finished: Run) -> None:
    signals = example.results()["signals"] | {"bounds": BOUNDS_NOTE}
    assert f"Bounds are {BOUNDS_NOTE}." in unescape(html(finished(example.results() | {"signals": signals})))


def test_tokens_are_left_out_where_no_model_was_used_and_nothing_paid(finished: Run) -> None:
    assert part(html(finished()), "Spend") == "Nothing was paid: no language model was used."
    paid = example.results()["spend"] | {"usd": 0.25}
    said = part(html(finished(example.results() | {"researcher": "a model", "spend": paid})), "Spend")
    assert "tokens in 488,120" in said
    assert "role calls tokens in" in said


def test_rules_that_agree_are_one_line(finished: Run) -> None:
    results = example.results()
    for rule in results["stream_rules"]["rules"]:
        rule["accepts"] = results["stream_rules"]["rules"][0]["accepts"]
    said = part(html(finished(results)), "What other rules would have said")
    assert "In this run all 2 other rules accept the same (Benjamini-Yekutieli; LORD++)." in said
    assert "accept the same" not in part(html(finished()), "What other rules would have said")


def test_a_deflated_ratio_of_nothing_is_put_into_words(finished: Run) -> None:
    results = example.results()
    for each in results["accepted"]:
        each["metrics"]["selection"]["deflated_sharpe"]["by_evaluations"] = 0.0002
    assert "deflated Sharpe, by evaluations — under 1 %" in part(html(finished(results)), "Accepted")


def test_what_operators_did_is_told_over_all_weaknesses_and_where_it_helped_most(finished: Run) -> None:
    cells = [("none", 10, 1, -4.0), ("turnover", 10, 6, 9.0), ("weak", 2, 2, 1.0)]
    rows = [{"operator": "swap_field", "where": w, "tried": n, "better": k, "gained": g} for w, n, k, g in cells]
    text = html(finished(example.results() | {"operators": rows}))
    assert row_of(text, "swap field") == ["swap field", "22", "9", "40.9 %", "+0.27", "turnover: 6 of 10"]
    assert "What mutation operators did" in text.partition("<details>")[2].partition("</summary>")[0]
    assert "What operators" not in html(finished(example.results() | {"operators": []}))


def test_a_cell_of_a_wide_table_knows_its_column_where_rows_are_stacked(finished: Run) -> None:
    text = html(finished())
    tables = re.findall(r'<table class="([^"]*)"(.*?)</table>', text, re.DOTALL)
    wide = [(kind, body) for kind, body in tables if kind not in ("measures", "members", "months", "exposures")]
    assert wide
    for kind, body in wide:
        assert kind.startswith("stacks "), kind
        unnamed = [cell for cell in re.findall(r"<td(.*?)>", body) if "data-head" not in cell]
        assert all('class="what"' in cell or 'class="why"' in cell for cell in unnamed), kind


def test_an_equity_of_one_year_has_dates_of_its_quarters(finished: Run) -> None:
    book = html(finished()).partition('id="book"')[2]
    drawing = book.partition('aria-label="Equity after costs"')[2].partition("</svg>")[0]
    assert len(re.findall(r">\d{4}-\d{2}</text>", drawing)) >= 3


def test_windows_are_dated_in_words_beside_their_drawing(finished: Run) -> None:
    assert f"sealed: one opening; 294 days, {example.SEALED[0]} to {example.SEALED[-1]}" in plain(html(finished()))


def test_the_exam_names_who_holds_alone(finished: Run) -> None:
    factors = {"f0123456789abcdef": {"sign": -1, "rank_ic": -0.02, "t": -3.0, "p_value": 0.01, "net_sharpe": 0.4}}
    results = example.results()
    text = html(finished(results | {"sealed": results["sealed"] | {"factors": factors}}))
    assert row_of(text, "f01234567") == ["f01234567", "+0.0200", "+3.00", "0.01", "holds", "+0.40"]


# The order in which an analyst reads, and the folder form.


def anchors_of(text: str) -> set[str]:
    return set(re.findall(r'\bid="([^"]+)"', text))


def links_of(text: str) -> list[str]:
    return re.findall(r'href="([^"]+)"', text)


@pytest.mark.parametrize("results", [example.results(), example.nothing_accepted(), {"format": 1}])
def test_every_link_of_the_report_leads_to_a_section(finished: Run, results: dict[str, Any]) -> None:
    text = html(finished(results))
    assert len(links_of(text)) >= 8
    assert {link.removeprefix("#") for link in links_of(text)} <= anchors_of(text)
    places = [text.index(f'href="#{name}"') for name in ("hold-out", "accepted", "book", "tried", "rules")]
    assert places == sorted(places)


def test_the_name_of_the_campaign_is_the_title(finished: Run) -> None:
    text = write_report(finished(), RunNotes("calm-names")).read_text(encoding="utf-8")
    assert "<title>Alphaloom report: calm-names (synthetic-7)</title>" in text
    assert "<h1>calm-names</h1>" in text
    assert "<h1>synthetic-7</h1>" in html(finished())


def test_the_folder_has_the_same_sections_and_every_link_leads_to_one(finished: Run, tmp_path: Path) -> None:
    run, target = finished(), tmp_path / "mailed"
    first = write_report_folder(run, target)
    pages = {path.name: path.read_text(encoding="utf-8") for path in target.iterdir()}
    names = [f"factor-{entry['id']}.html" for word in ("accepted", "watchlist") for entry in example.results()[word]]
    assert (first.name, set(pages)) == ("index.html", {"index.html", "book.html", *names})
    for name, text in pages.items():
        for link in links_of(text):
            file, _, anchor = link.partition("#")
            assert not anchor or anchor in anchors_of(pages[file or name]), (name, link)
            assert (file or name) in pages
    sections = re.findall(r"<h2>(.+?)</h2>", html(run))
    assert sorted(re.findall(r"<h2>(.+?)</h2>", "".join(pages.values()))) == sorted(sections)
    write_report_folder(run, target)
    assert {path.name: path.read_text(encoding="utf-8") for path in target.iterdir()} == pages


def test_a_folder_keeps_no_page_of_an_earlier_report_and_no_foreign_file_is_lost(finished: Run, tmp_path: Path) -> None:
    target = tmp_path / "mailed"
    write_report_folder(finished(), target)
    write_report_folder(finished(example.nothing_accepted(), {}), target)
    assert sorted(path.name for path in target.iterdir()) == [
        "book.html",
        "factor-f7777000077770000.html",
        "index.html",
    ]
    (target / "thesis.html").write_text("mine")
    with pytest.raises(DeskError, match="no report wrote it"):
        write_report_folder(finished(), target)
    assert (target / "thesis.html").read_text() == "mine"
    assert len(list(target.iterdir())) == 4


def test_a_factor_shows_what_an_analyst_asks_for(finished: Run) -> None:
    results = example.results()
    entry = results["accepted"][0]
    entry["hypothesis"]["who_is_on_the_other_side"] = "sellers in a hurry"
    entry["metrics"]["selection"] |= {"level": 0.0027, "power": {"rank_ic_provable": 0.02, "t": 4.4, "t_required": 3.3}}
    entry["profile"] = {"exposures": {"size": -0.31}, "by_regime": {"calm": {"rank_ic": 0.02, "t": 2.0, "days": 90}}}
    text = html(finished(results))
    article = text.partition(f'id="{entry["id"]}"')[2].partition("</article>")[0]
    for drawing in (
        "Equity after costs", "Drawdown after costs", "Cumulative daily RankIC", "Return of each quintile",
        "RankIC by month", "Days by their RankIC", "Mean return by quintile", "RankIC by horizon in days",
        "RankIC by year", "RankIC by market regime",
    ):  # fmt: skip  # a table
        assert f'aria-label="{drawing}"' in article, drawing
    said = plain(article)
    for words in (
        "who is on the other side sellers in a hurry",
        "p, one-sided 0.00021 (threshold 0.0027)",
        "smallest significant RankIC 0.0200",
        "t, and the t it needed 4.40 (needed 3.30)",
        "size \N{MINUS SIGN}0.31",
        "Jan Feb Mar",
    ):
        assert words in said, words
    years = [row[0] for row in re.findall(r"<tr><td>(20\d\d)</td>((?:<td[^>]*>[^<]*</td>){13})</tr>", article)]
    assert years == [str(year) for year in range(int(example.SEARCH[0][:4]), int(example.SELECTION[-1][:4]) + 1)]


def test_months_of_returns_compound_to_those_of_the_year() -> None:
    net = [0.01, -0.02, None, 0.03]
    days = ("2020-01-02", "2020-01-03", "2020-02-03", "2021-02-04")
    curve = DailyRankICByWindow.read({"search": {"dates": days, "rank_ic": [0.1] * 4, "net": net}})
    (first, cells), (second, others) = draw_returns(curve).months
    assert (first, [cell.text for cell in cells if cell.text]) == ("2020", ["\N{MINUS SIGN}1.0", "\N{MINUS SIGN}1.0"])
    assert (second, [(cell.text, cell.style) for cell in others if cell.text]) == ("2021", [("3.0", "up")] * 2)
    assert draw_returns(None).months == []


def test_nothing_accepted_has_the_curves_of_what_was_tested_and_the_power_curve(finished: Run) -> None:
    text = html(finished(example.nothing_accepted()))
    assert 'aria-label="Chance of acceptance by true RankIC"' in text
    assert text.index("<h2>What could have been proven</h2>") < text.index("<h2>Watchlist</h2>")
    article = text.partition('id="f7777000077770000"')[2].partition("</article>")[0]
    assert 'aria-label="Equity after costs"' in article
    assert 'aria-label="Mean return by quintile"' in article


def test_nothing_tested_has_the_strongest_candidates_drawn(finished: Run) -> None:
    untested = [example.entry(f"f{k}", f"ts_mean(returns, {k + 2})", 0.02 + k / 1e3, "search") for k in range(3)]
    for entry in untested:
        entry["hypothesis"]["id"] = "h1"
    results = example.nothing_accepted() | {"rejected": [], "untested": untested, "trials": 0}
    said = part(html(finished(results, {})), "The strongest on search days")
    assert "None of these factors was tested" in said
    assert "ts_mean( returns, 4)" in said
    assert said.count("not tested factor") == 1, "the three have one hypothesis"


def test_factors_that_failed_were_refused_or_never_tested_stand_apart(finished: Run) -> None:
    results = example.results()
    old = example.entry("f00000000000000aa", "rank(high)", 0.01)
    old["reasons"] = [{"step": "search", "passed": False, "message": "not tested: weak", "numbers": {}}]
    results["rejected"].append(old)
    text = html(finished(results))
    assert "f77770000" in part(text, "Tested, not accepted")
    assert "f77770000" not in part(text, "Refused before a test")
    assert "rank( high)" in part(text, "Never tested")
    assert "rank( high)" not in part(text, "Refused before a test")


def test_a_note_on_the_data_is_a_box_with_a_title(finished: Run) -> None:
    results = example.results()
    results["data"]["notes"] = ["suspicious bars: 1,259 have a high below the close", "one note"]
    text = html(finished(results))
    assert '<p class="doubt-title">suspicious bars</p><p>1,259 have a high below the close</p>' in text
    assert text.count('<div class="doubt-box">') == 3


@pytest.mark.parametrize(
    ("formula", "shown"),
    [
        ("rank(ts_std(returns, 30)) * -1", "rank(<wbr>ts_std(<wbr>returns, 30)) * -1"),
        ("a*b/ts_mean(c,5)", "a<wbr>*<wbr>b<wbr>/<wbr>ts_mean(<wbr>c,<wbr>5)"),
        ("<b>&(x", "&lt;b&gt;&amp;(<wbr>x"),
    ],
)
def test_a_formula_breaks_at_its_operators_and_in_no_name(formula: str, shown: str) -> None:
    assert str(make_breakable(formula)) == shown


def test_a_figure_stays_on_the_line_of_its_per_cent(finished: Run) -> None:
    text = html(finished())
    assert f"31{NO_BREAK}%" in text
    assert not re.search(r"<t[dh][^>]*>[^<]*\d %", text)


@pytest.mark.parametrize(("tiles", "in_a_row"), [(6, ""), (7, "tiles-4"), (9, "tiles-5"), (13, "tiles-5")])
def test_no_tile_is_left_over_alone(tiles: int, in_a_row: str) -> None:
    page = environment().from_string('{% from "card.html.j2" import facts %}{{ facts(pairs, "strip") }}')
    opening = page.render(pairs=[("label", "value")] * tiles).partition(">")[0]
    assert opening.strip() == '<dl class="' + f"strip {in_a_row}".strip() + '"'
    assert not in_a_row or tiles % int(in_a_row[-1]) != 1


@pytest.mark.parametrize(("t", "told"), [(0.8, False), (3.2, True)])
def test_the_best_year_is_no_weak_point_of_a_rank_ic_of_zero(t: float, told: bool) -> None:
    weak = {"code": "one_year", "message": "less than half remains without the best year"}
    entry = FactorEntry.read({"id": "f1", "metrics": {"search": {"t": t, "weaknesses": [weak]}}})
    assert bool(list_weak_points(entry)) is told
