"""Makes the models of TestPipelines, and the right answers by Python's onnxruntime.

usage: pipelines.py FOLDER MINILM SILERO VOCABULARY TOKENIZER

FOLDER gets tokenizer.onnx (text -> tokens, by an operator of onnxruntime-extensions), normalise.onnx, voice.onnx
(silero for 16 kHz, since Triton serves no model without batches whose input is a scalar), and answers.json. The right tokens come from another project's tokenizer, with its own file TOKENIZER.
"""

import json
import pathlib
import sys

import numpy as np
import onnx
import onnxruntime
import onnxruntime_extensions
import tokenizers
from onnx import TensorProto, helper

folder, minilm, silero, vocabulary, tokenizer = map(pathlib.Path, sys.argv[1:])
random = np.random.default_rng(5)
TOKENS = ["input_ids", "token_type_ids", "attention_mask"]  # in the order of the operator's outputs


def save(name, nodes, inputs, outputs, constants=(), domains=()):
    opsets = [helper.make_opsetid("", 17)] + [helper.make_opsetid(d, 1) for d in domains]
    graph = helper.make_graph(nodes, name, inputs, outputs, list(constants))
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), folder / f"{name}.onnx")


def tokenizer_model():
    nodes = [helper.make_node("BertTokenizer", ["text"], [f"flat_{n}" for n in TOKENS], domain="ai.onnx.contrib",
                              vocab_file=vocabulary.read_text(encoding="utf-8"), do_lower_case=1, strip_accents=1)]
    nodes += [helper.make_node("Unsqueeze", [f"flat_{n}", "axis"], [n]) for n in TOKENS]
    save("tokenizer", nodes, [helper.make_tensor_value_info("text", TensorProto.STRING, [1])],
         [helper.make_tensor_value_info(n, TensorProto.INT64, ["rows", "tokens"]) for n in TOKENS],
         [helper.make_tensor("axis", TensorProto.INT64, [1], [0])], ["ai.onnx.contrib"])


def normalise_model():
    """Makes y = (x - mean) / |x - mean| for each row: a step whose absence is seen, since MiniLM's rows have length 1."""
    nodes = [helper.make_node("ReduceMean", ["embedding"], ["mean"], axes=[1]), helper.make_node("Sub", ["embedding", "mean"], ["centred"]),
             helper.make_node("ReduceL2", ["centred"], ["length"], axes=[1]), helper.make_node("Div", ["centred", "length"], ["vector"])]
    save("normalise", nodes, [helper.make_tensor_value_info("embedding", TensorProto.FLOAT, ["batch", 384])],
         [helper.make_tensor_value_info("vector", TensorProto.FLOAT, ["batch", 384])])


def voice_model():
    model = onnx.load(silero)
    (rate,) = [i for i in model.graph.input if i.name == "sr"]
    model.graph.input.remove(rate)
    model.graph.initializer.append(helper.make_tensor("sr", TensorProto.INT64, [], [16000]))
    onnx.save(model, folder / "voice.onnx")


def sentences():
    subjects = ["The cat", "A server with two cores", "Nobody", "Zürich's mayor", "She", "An ONNX model", "THE QUEUE", "Él"]
    verbs = ["sleeps", "answers 32 requests, one after the other", "doesn't know why", "ran away!", "is café-owner no. 7"]
    return [f"{s} {v}." for s in subjects for v in verbs]


def embeddings():
    reference = tokenizers.Tokenizer.from_file(str(tokenizer))
    reference.no_padding()
    reference.no_truncation()
    session = onnxruntime.InferenceSession(str(minilm), providers=["CPUExecutionProvider"])
    answers = []
    for text in sentences():
        tokens = reference.encode(text)
        feed = {"input_ids": tokens.ids, "token_type_ids": tokens.type_ids, "attention_mask": tokens.attention_mask}
        (row,) = session.run(None, {k: np.array([v], np.int64) for k, v in feed.items()})
        row = row[0].astype(np.float64) - row[0].mean(dtype=np.float64)
        answers.append({"text": text, "vector": (row / np.linalg.norm(row)).tolist()})
    return answers


def streams():
    """Makes streams of sound with the probability of a voice in each chunk of 512 samples, and what it would be without
    the state. The model gets 64 samples of the chunk before in front of each."""
    session = onnxruntime.InferenceSession(str(silero), providers=["CPUExecutionProvider"])
    run = lambda x, state: session.run(None, {"input": x, "state": state, "sr": np.array(16000, np.int64)})
    fresh = np.zeros((2, 1, 128), np.float32)
    out = []
    for k in range(12):
        time = np.arange(40 * 512) / 16000
        pitch = 100 + 20 * k + 15 * np.sin(2 * np.pi * 3 * time)
        sound = sum(np.sin(n * 2 * np.pi * np.cumsum(pitch) / 16000) / n for n in range(1, 12))
        sound *= 0.3 * np.clip(np.sin(2 * np.pi * (2 + 0.3 * k) * time), 0, 1)
        sound = (sound + 0.01 * random.standard_normal(len(time))).astype(np.float32)
        state, context, chunks = fresh, np.zeros(64, np.float32), []
        for i in range(0, len(sound), 512):
            x = np.concatenate([context, sound[i:i + 512]])[None]
            context = sound[i + 512 - 64:i + 512]
            without = run(x, fresh)[0]
            probability, state = run(x, state)
            chunks.append({"sound": x[0].tolist(), "probability": float(probability[0, 0]), "without": float(without[0, 0])})
        out.append(chunks)
    return out


tokenizer_model()
normalise_model()
voice_model()
answers = {
    "library": onnxruntime_extensions.get_library_path(),
    "python": f"libpython{sys.version_info.major}.{sys.version_info.minor}.so.1.0",
    "sentences": embeddings(),
    "streams": streams(),
}
(folder / "answers.json").write_text(json.dumps(answers))
