"""The page as a browser sees it: nothing loaded, no error, figures that answer the mouse."""

import json
import shutil

import numpy as np
import pytest

import arnpg
from arnpg.cli import main
from arnpg.errors import StorageError
from arnpg.report.chapter import Chapter, Setting, count_claims
from arnpg.report.figure import Claim, Figure, Panel, Report, Series, Table
from arnpg.report.html import page
from arnpg.report.stored import encode_report, read_report
from arnpg.runs.folder import RunFolder

NASTY = """</script><script>alert(1)</script> <b>&amp; "it's" \u2028 <!-- </title>"""
STEPS = tuple(float(k) for k in range(1, 101))


def line(name, power, band=False, note=""):
    y = np.array(STEPS) ** power
    low, high = (tuple((y * factor).tolist()) if band else () for factor in (0.7, 1.4))
    return Series(name, STEPS, tuple(y.tolist()), low, high, note)


def figure(name="gap"):
    series = (line("EPD", -1.0, band=True), line("CRPO", -0.5, band=True))
    logs = (line("EPD", -1.0, note="slope -1.00"), line("CRPO", -0.5, band=True, note="slope -0.50"))
    panels = (
        Panel("average gap", "macro steps", "gap (discounted reward)", series, level=0.0, level_label="optimum"),
        Panel("average gap, log-log", "macro steps", "gap", logs, scale="log", level=0.1),
        Panel("log-y", "macro steps", "gap", logs, scale="log-y"),
    )
    return Figure(name, "The gap", "Figure 1", panels)


def report(**changes):
    claims = (Claim("EPD is below CRPO", "Figure 1", "0.01 against 0.1", True), Claim("b", "", "x", False))
    table = Table("Numbers", ("method", "gap"), (("EPD", "0.01"),))
    return Report(
        **{"experiment": "one", "summary": "S.", "figures": (figure(),), "claims": claims, "tables": (table,)} | changes
    )


def run_folder(path, found, finished=True):
    config = {"experiment": found.experiment, "settings": {"steps": 3, "sizes": [0.5, 1.0]}}
    with RunFolder.create(path, "reproduce", config, command=["arnpg", "reproduce", found.experiment]) as folder:
        (path / "metrics.jsonl").write_text('{"step":1,"stage":"optima","seconds":0.5}\n')
        (path / "report.json").write_bytes(encode_report(found))
        if finished:
            meanings = {"steps": "macro steps."}
            folder.finish({"place": "Figure 1", "about": "a gap", "seconds": 90.0, "settings": meanings})
    return path


def test_a_report_comes_back_from_its_file(tmp_path):
    odd = Series("odd", (1.0, 2.0, 3.0), (float("nan"), float("inf"), -float("inf")))
    found = report(figures=(Figure("f", "F", "", (Panel("p", "x", "y", (odd,)),)), figure()))
    (tmp_path / "report.json").write_bytes(encode_report(found))
    back = read_report(tmp_path / "report.json")
    assert repr(back) == repr(found)
    json.loads(encode_report(found), parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"figures": 3}', "\x00"])
def test_a_file_that_is_no_report(tmp_path, text):
    (tmp_path / "report.json").write_text(text)
    with pytest.raises(StorageError, match=r"report\.json is not a report"):
        read_report(tmp_path / "report.json")
    with pytest.raises(StorageError, match="cannot be read"):
        read_report(tmp_path / "none.json")


def test_claims_are_counted():
    claims = report().claims
    assert count_claims(claims) == "1 of 2 claims hold, 1 does not"
    assert count_claims((*claims, Claim("c", "", "", None), claims[1])) == "1 of 4 claims hold, 2 do not, 1 undecided"


def test_everything_is_on_the_page_and_it_is_text(tmp_path):
    series = (Series(NASTY, STEPS, STEPS, note=NASTY),)
    panel = Panel(NASTY, NASTY, NASTY, series, level=3.0, level_label=NASTY)
    chapter = Chapter(
        title=NASTY,
        about=NASTY,
        state=NASTY,
        summary=NASTY,
        claims=(Claim(NASTY, NASTY, NASTY, None),),
        figures=(Figure(NASTY, NASTY, NASTY, (panel,)),),
        tables=(Table(NASTY, (NASTY,), ((NASTY,),)),),
        settings=(Setting(NASTY, NASTY, NASTY),),
        facts=((NASTY, NASTY), ("command", NASTY)),
    )
    text = page([chapter, chapter])
    assert "<script>alert" not in text
    assert "<b>&amp;amp;" not in text
    assert text.count("&lt;b&gt;&amp;amp;") > 30
    assert "src=" not in text.split("<script>")[0]


def test_the_command_writes_a_page_of_a_run(tmp_path, capsys):
    folder = run_folder(tmp_path / "run", report())
    assert main(["report", str(folder)]) == 0
    assert f"written {folder / 'report.html'}" in capsys.readouterr().out
    text = (folder / "report.html").read_text(encoding="utf-8")
    for words in ("EPD is below CRPO", "does not hold", "macro steps.", "0.5, 1", "1 min 30 s", "arnpg reproduce one"):
        assert words in text, words


def test_an_unfinished_run_says_so(tmp_path, capsys):
    folder = run_folder(tmp_path / "run", report(), finished=False)
    (folder / "report.json").unlink()
    assert main(["report", str(folder), "--out", str(tmp_path / "page.html")]) == 0
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Not finished; <code>arnpg resume" in text
    assert "stages so far" in text


def test_a_run_of_the_macro_loop_and_a_solution(tmp_path, small_mdp, monkeypatch):
    from arnpg.recipes import tabular as recipes
    from arnpg.runs.trial import run_trial

    criterion = arnpg.ProportionalFair()
    run_trial(tmp_path / "trial", recipes.arnpg_imd(small_mdp, criterion.bind(small_mdp.names)), 30)
    limits = arnpg.Constrained("first", at_least={"second": 1.5})
    arnpg.solve(small_mdp, limits, method="arnpg-epd", steps=40).save(tmp_path / "solution.npz")
    monkeypatch.chdir(tmp_path)
    assert main(["report", "trial", "solution.npz"]) == 0
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    for words in ("2 runs", "Metrics against macro steps", "price of the limit", "optimum at most", "&gt;= 1.5"):
        assert words in text, words


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ([], 2, "which runs"),
        (["none"], 5, "not the folder of a run"),
        (["none.npz"], 2, "does not exist"),
        (["run", "--out", "page.npz"], 2, "must end with .html"),
        (["run", "--out", "no/such/folder.html"], 5, "its parent folder does not exist"),
        (["run", "--ouput", "x.html"], 2, "perhaps you meant --out"),
    ],
)
def test_refusals(tmp_path, monkeypatch, capsys, words, code, message):
    monkeypatch.chdir(tmp_path)
    run_folder(tmp_path / "run", report())
    assert main(["report", *words]) == code
    assert message in capsys.readouterr().err


def test_without_plotly(tmp_path, monkeypatch, capsys):
    folder = run_folder(tmp_path / "run", report())
    monkeypatch.setattr("arnpg.report.assets.resources.files", lambda name: (_ for _ in ()).throw(ImportError(name)))
    assert main(["report", str(folder)]) == 2
    assert "arnpg[report]" in capsys.readouterr().err
    assert not (folder / "report.html").exists()


@pytest.fixture(scope="module")
def browser():
    """Chromium without a window and without a network."""
    if not (shutil.which("chromium") and shutil.which("chromedriver")):
        pytest.skip("no chromium here; .ci/run installs it")
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    for word in (
        "--headless=new",
        "--no-sandbox",
        "--disable-dev-shm-usage",
        "--window-size=1300,1000",
        "--disable-gpu",
    ):
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    options.binary_location = shutil.which("chromium")
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    yield driver
    driver.quit()


def test_in_a_browser(tmp_path, browser):
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.by import By

    run_folder(tmp_path / "a", report())
    run_folder(tmp_path / "b", report(experiment=NASTY))
    target = tmp_path / "page.html"
    assert main(["report", str(tmp_path / "a"), str(tmp_path / "b"), "--out", str(target)]) == 0
    browser.get(target.as_uri())
    panels = browser.find_elements(By.CSS_SELECTOR, ".plot .main-svg")
    assert len(browser.find_elements(By.CSS_SELECTOR, ".plot")) == 6
    assert len(panels) >= 6
    assert len(browser.find_elements(By.CSS_SELECTOR, ".scatterlayer .trace")) >= 12
    plot = browser.find_element(By.CSS_SELECTOR, "#run-1-figure-1-1 .nsewdrag")
    ActionChains(browser).move_to_element(plot).pause(0.5).perform()
    tooltip = browser.find_element(By.CSS_SELECTOR, "#run-1-figure-1-1 .hoverlayer").text
    assert "EPD" in tooltip
    assert "CRPO" in tooltip
    buttons = {b.get_attribute("data-title") for b in browser.find_elements(By.CSS_SELECTOR, ".modebar-btn")}
    assert "Download plot" in buttons
    assert not [button for button in buttons if "Share" in button or "cloud" in button.lower()]
    assert [entry for entry in browser.get_log("browser") if entry["level"] != "INFO"] == []
    assert requested(browser) == {target.as_uri()}


def requested(browser):
    """Every address that the page asked for."""
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    sent = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    return {url for url in sent if not url.startswith(("data:", "blob:"))}
