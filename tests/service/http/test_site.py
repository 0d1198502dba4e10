"""The switch to the visitor's device: offered where the static site has been built."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service.serving import Service, running, settings

_HIDDEN = '<nav class="place" id="place" aria-label="Where models compute" hidden>'


@pytest.fixture(scope="module")
def built(letters: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service beside which a site has been built."""
    site = tmp_path_factory.mktemp("site")
    (site / "index.html").write_text("the page on the device")
    (site / "device").mkdir()
    (site / "device" / "worker.js").write_text("// the worker")
    with running(settings(letters, site=site)) as service:
        yield service


def test_the_page_offers_the_device_where_the_site_is(built: Service) -> None:
    page = built.client.get("/").text
    assert _HIDDEN not in page
    assert _HIDDEN.replace(" hidden", "") in page
    assert 'href="static/device/?server"' in page
    assert built.client.get("/static/device/?server").text == "the page on the device"


def test_the_page_with_the_offer_is_not_sent_again_to_who_has_it(built: Service) -> None:
    had = built.client.get("/")
    for tag, status in ((had.headers["etag"], 304), ('"another"', 200)):
        again = built.client.get("/", headers={"If-None-Match": tag})
        assert (again.status_code, again.content) == (status, b"" if status == 304 else had.content)


def test_the_page_with_the_offer_is_asked_for_again_when_it_may_have_changed(
    built: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    had = built.client.get("/")
    assert had.headers["cache-control"] == "no-cache"
    (tmp_path / "index.html").write_text("another page")
    monkeypatch.setattr("service.http.page.WEB", tmp_path)
    again = built.client.get("/", headers={"If-None-Match": had.headers["etag"]})
    assert (again.status_code, again.text) == (200, "another page")


def test_a_file_of_the_site_that_was_built_again_is_sent_again_whatever_its_time(
    letters: Path, tmp_path: Path
) -> None:
    for name, content in (("index.html", "a page"), ("model.bin", "old")):
        (tmp_path / name).write_text(content)
        os.utime(tmp_path / name, (0, 0))
    with running(settings(letters, site=tmp_path)) as service:
        url = "/static/device/model.bin"
        headers = {"If-None-Match": service.client.get(url).headers["etag"]}
        assert service.client.get(url, headers=headers).status_code == 304
        (tmp_path / "model.bin").write_text("new")
        os.utime(tmp_path / "model.bin", (0, 0))
        again = service.client.get(url, headers=headers)
    assert (again.status_code, again.text) == (200, "new")


def test_no_device_is_offered_without_a_site(letters: Path, tmp_path: Path) -> None:
    with running(settings(letters, site=tmp_path / "none")) as service:
        assert _HIDDEN in service.client.get("/").text
        assert service.client.get("/static/device/").status_code == 404


@pytest.mark.parametrize("path", ["/static/device/", "/static/device/device/worker.js"])
def test_the_site_may_compile_webassembly_and_nothing_else_may(built: Service, path: str) -> None:
    theirs = built.client.get(path).headers["content-security-policy"]
    ours = built.client.get("/").headers["content-security-policy"]
    wider = "; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self' blob:"
    assert theirs == ours + wider
    assert built.client.get("/static/page.js").headers["content-security-policy"] == ours


@pytest.mark.parametrize("path", ["/static/device/", "/static/device/device/worker.js"])
def test_so_may_the_site_that_a_browser_has_already(built: Service, path: str) -> None:
    """It takes the headers of a 304 for those of what it has (RFC 9111 §3.2)."""
    had = built.client.get(path)
    again = built.client.get(path, headers={"If-None-Match": had.headers["etag"]})
    assert again.status_code == 304
    its_own = {"x-request-id", "date"}
    assert {*again.headers} - its_own < {*had.headers}
    for name in {*again.headers} - its_own:
        assert again.headers[name] == had.headers[name], name


def test_files_of_the_site_are_in_no_log_and_no_count(
    built: Service, caplog: pytest.LogCaptureFixture
) -> None:
    for path in ("", "none.js", "device/worker.js"):
        built.client.get(f"/static/device/{path}")
    assert "/static/device" not in caplog.text
    assert 'requests_rejected_total{status="404"}' not in built.client.get("/metrics").text
