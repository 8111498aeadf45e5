"""ddp's BPE and tiktoken on the same text and vocabulary, by turns, one core each.

    python3 internal/bench/bpe.py DIR TEXT

DIR holds vocab.json and merges.txt, such as `ddp tokenizer` writes.
"""
import json
import os
import re
import statistics
import subprocess
import sys
import time

import tiktoken

RUNS = 5
PATTERN = r"""'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""


def encoding(folder):
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    spare = [b for b in range(256) if b not in plain]
    names = {chr(b): b for b in plain} | {chr(256 + i): b for i, b in enumerate(spare)}
    with open(os.path.join(folder, "vocab.json"), encoding="utf-8") as file:
        vocab = json.load(file)
    special = {"<|endoftext|>": vocab.pop("<|endoftext|>")}
    ranks = {bytes(names[c] for c in name): token for name, token in vocab.items()}
    return tiktoken.Encoding("vocabulary", pat_str=PATTERN, mergeable_ranks=ranks, special_tokens=special)


def theirs(other, text):
    start = time.perf_counter()
    other.encode_ordinary(text)
    return len(text.encode()) / 1e6 / (time.perf_counter() - start)


def ours(folder, path):
    environment = os.environ | {"DDP_BENCH_TOKENIZER": os.path.abspath(folder), "DDP_BENCH_TEXT": os.path.abspath(path), "GOMAXPROCS": "1"}
    out = subprocess.run(["go", "test", "-run", "^$", "-bench", "BPE", "-benchtime", "3x", "./data"],
                         env=environment, check=True, capture_output=True, text=True).stdout
    return float(re.search(r"([\d.]+) MB/s", out)[1])


def main():
    folder, path = sys.argv[1:]
    other = encoding(folder)
    with open(path, encoding="utf-8", newline="") as file:
        text = file.read()
    pairs = [(theirs(other, text), ours(folder, path)) for _ in range(RUNS)]
    for name, speeds in zip(("tiktoken", "ddp"), zip(*pairs)):
        print(f"{name}: {statistics.median(speeds):.1f} MB/s (median of {RUNS}: {', '.join(f'{s:.1f}' for s in sorted(speeds))})")


main()
