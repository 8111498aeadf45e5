"""What Hugging Face's tokenizers and tiktoken make of texts, as JSON for the tests.

    python3 testdata/bpegolden.py SEED STRINGS | gzip -9n > testdata/bpegolden.json.gz

Trains byte-level BPEs on a text made from the seed, and encodes random strings
with them. Ends with an error where the two libraries do not agree.
"""
import json
import random
import sys

import tiktoken
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

END = "<|endoftext|>"
PATTERN = r"""'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""
SPACES = " \t\n\v\f\r\x1c\x85\xa0\u1680\u2003\u2028\u202f\u3000\u200b\ufeff"
SIZES = [(257, 0), (300, 0), (700, 0), (1000, 3), (100_000, 2)]  # tokens, least frequency


def words(draw):
    """A lexicon whose words share their parts, so that pairs tie."""
    parts = ["".join(draw.choice("aabcdeeehinorst") for _ in range(draw.randint(1, 3))) for _ in range(40)]
    parts += ["é", "ß", "日", "本", "ﷺ", "я", "λό", "12", "7", "aa", "aaa", "\U0001f600", "'s", "''"]
    return ["".join(draw.choices(parts, k=draw.randint(1, 4))) for _ in range(300)]


def text(draw):
    lexicon = words(draw)
    gaps = [" "] * 12 + ["\n", "\n\n", "  ", ", ", ". ", "\t", " - ", "\r\n", "   \n "]
    return "".join(lexicon[int(len(lexicon) * draw.random() ** 3)] + draw.choice(gaps) for _ in range(3000))


def character(draw):
    """A character of a random kind, of the newest ones too."""
    kind = draw.randrange(12)
    if kind < 3:
        return draw.choice("abcdehinorst")
    if kind < 5:
        return draw.choice(SPACES + "     ")
    if kind == 5:
        return draw.choice(["'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "'", "'S", "'RE", "'l"])
    if kind == 6:
        return draw.choice("0123456789½Ⅷ٣²〇")
    if kind == 7:
        return draw.choice([".", ",", "!", "<|", "|>", END, "endoftext", "_", "\u0301", "\u200d"])
    if kind == 8:
        return draw.choice("éßя日本λא한ǅªʰ\u1c89\ua7da\U00010d4a\U00010d70\U000116d0\U00016130")
    while True:
        c = draw.randrange([0x100, 0x3000, 0x20000, 0x110000][draw.randrange(4)])
        if not 0xD800 <= c < 0xE000:
            return chr(c)


def string(draw, lexicon):
    if draw.randrange(4) == 0:
        return " ".join(draw.choices(lexicon, k=draw.randint(1, 4)))
    return "".join(character(draw) for _ in range(draw.randint(0, 14)))


def train(corpus, size, least):
    hub = Tokenizer(models.BPE())
    hub.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    hub.decoder = decoders.ByteLevel()
    hub.train_from_iterator([corpus], trainers.BpeTrainer(
        vocab_size=size, min_frequency=least, special_tokens=[END], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    hub.encode_special_tokens = True  # ordinary text unless allowed
    return hub


def name_bytes():
    """The byte of each character that stands for one."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    spare = [b for b in range(256) if b not in plain]
    return {chr(b): b for b in plain} | {chr(256 + i): b for i, b in enumerate(spare)}


def openai(hub):
    """The same vocabulary in tiktoken."""
    names = name_bytes()
    ranks = {bytes(names[c] for c in name): i for name, i in hub.get_vocab().items() if name != END}
    return tiktoken.Encoding("trained", pat_str=PATTERN, mergeable_ranks=ranks, special_tokens={END: hub.token_to_id(END)})


def main():
    seed, count = int(sys.argv[1]), int(sys.argv[2])
    draw = random.Random(seed)
    corpus = text(draw)
    lexicon = words(draw) + corpus.split(" ")[:300]
    trained = [train(corpus, size, least) for size, least in SIZES]
    both = [(hub, openai(hub)) for hub in trained]
    strings = []
    for i in range(count):
        s = string(draw, lexicon)
        hub, other = both[i % len(both)]
        tokens = hub.encode(s).ids
        assert tokens == other.encode_ordinary(s), (s, tokens, other.encode_ordinary(s))
        assert hub.decode(tokens) == s == other.decode(tokens), s
        strings.append([s, tokens, other.encode(s, allowed_special="all")])
    json.dump({"text": corpus, "strings": strings,
               "trained": [{"size": size, "least": least, "file": hub.to_str(pretty=False)} for (size, least), hub in zip(SIZES, trained)]},
              sys.stdout)


main()
