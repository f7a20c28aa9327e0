"""How fast llama.cpp computes with each number type on this machine: prompts and answers.

Writes a llama of a few layers with rows as a 1B has them, in F16 and of random weights, makes one file of
each type of it with the native quantiser, loads all of them, and lets them take turns: in each round every
type reads one prompt and writes some tokens. Prints a Markdown table of medians over the rounds, and how long
a token of an answer takes for the bytes it reads, against Q4_0: what `llmrun/store/kernels.py` weighs.

    .venv/bin/python scripts/bench/kernels.py [--rounds 15] [--threads 2 | --alone]

Wants 4 GB of memory and of room in the temporary folder, and a machine that does nothing else: the load
average is printed, and the share by which the rounds differ. `--alone` computes on one thread and counts the
CPU's time, not the clock's, which holds beside busy neighbours too.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles

import gguf
import numpy as np
import psutil

from llmrun.llama import Batch, Context, ContextSettings, DecodeStatus, Model
from llmrun.llama.library import lib
from llmrun.store.gguf import read_header
from llmrun.store.hardware import cpu_features
from llmrun.store.kernels import repacks

# llama.cpp's numbers of the file types that have one type throughout, when it is told to be pure.
TYPES = {
    "F16": 1,
    "BF16": 32,
    "Q8_0": 7,
    "Q6_K": 18,
    "Q5_K": 17,
    "Q5_1": 9,
    "Q5_0": 8,
    "Q4_K": 15,
    "Q4_1": 3,
    "Q4_0": 2,
    "IQ4_NL": 25,
    "IQ4_XS": 30,
    "Q3_K": 12,
    "Q2_K": 10,
}
BASE = "Q4_0"
EMBD, FF, HEADS, KV_HEADS, LAYERS, VOCAB = 2048, 8192, 32, 8, 3, 1024
PROMPT, ANSWER = 128, 12  # tokens of one round


@dataclass
class Subject:
    """A type's model, and the seconds that its rounds took for the prompt and for one token."""

    name: str
    repacked: bool
    read: int
    context: Context
    prompt: list[float] = field(default_factory=list)
    token: list[float] = field(default_factory=list)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=psutil.cpu_count(logical=False) or 1)
    parser.add_argument("--alone", action="store_true")
    options = parser.parse_args()
    threads, clock = options.threads, time.perf_counter
    if options.alone:
        threads, clock = 1, time.thread_time  # on one thread the caller's computes
    with tempfile.TemporaryDirectory() as folder:
        plain = write_plain(Path(folder) / "F16.gguf")
        subjects = [prepared(plain, name, threads) for name in TYPES]
        before = os.getloadavg()[0]
        turn(subjects, clock)  # warm: what is mapped is read, what is repacked is in place
        for subject in subjects:
            subject.prompt.clear()
            subject.token.clear()
        for _ in range(options.rounds):
            turn(subjects, clock)
        show(subjects, threads, (before, os.getloadavg()[0]))


def write_plain(path: Path) -> Path:
    rng = np.random.default_rng(0)
    some = (rng.standard_normal(1 << 20) / np.sqrt(EMBD)).astype(np.float16)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(1024)
    writer.add_embedding_length(EMBD)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(FF)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(["<unk>", "<s>", "</s>", *(f"t{i}" for i in range(VOCAB - 3))])
    writer.add_token_scores([0.0] * VOCAB)
    writer.add_token_types([2, 3, 3] + [1] * (VOCAB - 3))

    def tensor(name: str, rows: int, columns: int) -> None:
        writer.add_tensor(f"{name}.weight", np.resize(some, (rows, columns)))

    tensor("token_embd", VOCAB, EMBD)
    for i in range(LAYERS):
        for norm in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"blk.{i}.{norm}.weight", np.ones(EMBD, np.float32))
        tensor(f"blk.{i}.attn_q", EMBD, EMBD)
        tensor(f"blk.{i}.attn_k", EMBD // HEADS * KV_HEADS, EMBD)
        tensor(f"blk.{i}.attn_v", EMBD // HEADS * KV_HEADS, EMBD)
        tensor(f"blk.{i}.attn_output", EMBD, EMBD)
        tensor(f"blk.{i}.ffn_gate", FF, EMBD)
        tensor(f"blk.{i}.ffn_up", FF, EMBD)
        tensor(f"blk.{i}.ffn_down", EMBD, FF)
    writer.add_tensor("output_norm.weight", np.ones(EMBD, np.float32))
    tensor("output", VOCAB, EMBD)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def prepared(plain: Path, name: str, threads: int) -> Subject:
    """The model in the type `name`, loaded."""
    path = plain.with_name(f"{name}.gguf")
    if path != plain:
        params = lib.llama_model_quantize_default_params()
        params.ftype, params.pure, params.nthread = TYPES[name], True, threads
        if lib.llama_model_quantize(str(plain).encode(), str(path).encode(), ctypes.byref(params)):
            raise SystemExit(f"llama.cpp cannot make {name}")
    context = Context(
        Model(path, gpu_layers=0),
        ContextSettings(ctx=1024, batch=512, slots=1, threads=threads, threads_batch=threads),
    )
    tensors = [one for one in read_header(path).tensors if one.name != "token_embd.weight"]
    return Subject(
        name=name,
        repacked=any(repacks(one, cpu_features()) for one in tensors),
        read=sum(one.size for one in tensors),
        context=context,
    )


def turn(subjects: list[Subject], clock: Callable[[], float]) -> None:
    """One round of every subject."""
    batch = Batch(PROMPT)
    words = np.arange(3, 3 + PROMPT, dtype=np.int32)
    for subject in subjects:
        subject.prompt.append(timed(clock, subject.context, batch, words, 0))
        steps = [timed(clock, subject.context, batch, words[:1], PROMPT + i) for i in range(ANSWER)]
        subject.token.append(median(steps))
        subject.context.drop(0)


def timed(
    clock: Callable[[], float], context: Context, batch: Batch, tokens: np.ndarray, start: int
) -> float:
    batch.clear()
    batch.add(tokens, start, 0, outputs=1)
    began = clock()
    status = context.decode(batch)
    took = clock() - began
    assert status is DecodeStatus.OK
    return took


def show(subjects: list[Subject], threads: int, load: tuple[float, float]) -> None:
    base = next(subject for subject in subjects if subject.name == BASE)
    per_byte = median(base.token) / base.read
    print(f"{threads} threads; load average {load[0]:.2f} before, {load[1]:.2f} after\n")
    print("| type | repacked | prompt tokens/s | answer tokens/s | GB/s | time a byte | spread |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for subject in subjects:
        prompt, token = median(subject.prompt), median(subject.token)
        low, _, high = quantiles(subject.token, n=4)
        row = (
            subject.name,
            "yes" if subject.repacked else "",
            f"{PROMPT / prompt:.0f}",
            f"{1 / token:.0f}",
            f"{subject.read / token / 1e9:.1f}",
            f"{token / subject.read / per_byte:.2f}",
            f"{(high - low) / token:.0%}",
        )
        print(f"| {' | '.join(row)} |")


if __name__ == "__main__":
    main()
