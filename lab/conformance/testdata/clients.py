"""Uses a server through the real tritonclient, over HTTP or gRPC, and prints the answers.

Two servers with equal behaviour give equal output. It omits times and addresses. It sorts tensors by
name if their order has no meaning."""

import json
import queue
import sys

import numpy as np
from google.protobuf import json_format

protocol, address, model_file = sys.argv[1:]
if protocol == "http":
    import tritonclient.http as tc
else:
    import tritonclient.grpc as tc
from tritonclient.utils import InferenceServerException

client = tc.InferenceServerClient(address)


def plain(answer):
    """Both protocols' answers as JSON values."""
    return json_format.MessageToDict(answer, preserving_proto_field_name=True) if hasattr(answer, "DESCRIPTOR") else answer


def by_name(answer, *keys):
    for key in keys:
        answer[key] = sorted(answer.get(key, []), key=lambda tensor: tensor["name"])
    return answer


def show(title, answer):
    print(title + ":", json.dumps(plain(answer), sort_keys=True, default=str))


def attempt(title, call, *args, **kwargs):
    try:
        show(title, call(*args, **kwargs))
    except InferenceServerException as e:
        print(title + " raises:", e.status(), e.message())


def tensors(start, rows=1, **options):
    inputs = []
    for i in range(2):
        data = (np.arange(rows * 16, dtype=np.int32) * (i + 1) + start).reshape(rows, 16)
        tensor = tc.InferInput(f"INPUT{i}", data.shape, "INT32")
        tensor.set_data_from_numpy(data, **options)
        inputs.append(tensor)
    return inputs


def show_result(title, result):
    print(title + ":", {name: result.as_numpy(name).tolist() for name in ("OUTPUT0", "OUTPUT1") if result.as_numpy(name) is not None})


def health():
    show("live", client.is_server_live())
    show("ready", client.is_server_ready())
    show("model ready", client.is_model_ready("simple"))
    show("version ready", client.is_model_ready("simple", "1"))
    show("unknown model ready", client.is_model_ready("nope"))


def metadata():
    show("model metadata", by_name(plain(client.get_model_metadata("simple")), "inputs", "outputs"))
    config = plain(client.get_model_config("simple"))
    show("config", by_name(config.get("config", config), "input", "output"))
    attempt("metadata of an unknown model", client.get_model_metadata, "nope")
    attempt("config of an unknown version", client.get_model_config, "simple", "7")
    attempt("statistics of an unknown model", client.get_inference_statistics, "nope")


def infer():
    show_result("infer", client.infer("simple", tensors(0)))
    result = client.infer("simple", tensors(5, rows=3), request_id="id-1", model_version="1", outputs=[tc.InferRequestedOutput("OUTPUT1")])
    show_result("one output", result)
    response = plain(result.get_response())
    show("response", {key: response[key] for key in ("id", "model_name", "model_version")})
    show_result("priority and timeout", client.infer("simple_priorities", tensors(1), priority=1, timeout=10_000_000))
    show_result("parameters", client.infer("simple", tensors(1), parameters={"a": 1, "b": "x", "c": True}))
    attempt("batch too large", client.infer, "simple", tensors(0, rows=9))
    attempt("missing input", client.infer, "simple", tensors(0)[:1], request_id="id-2")
    attempt("unknown output", client.infer, "simple", tensors(0), outputs=[tc.InferRequestedOutput("X")])
    if protocol == "http":
        show_result("JSON tensors", client.infer("simple", tensors(0, binary_data=False), outputs=[tc.InferRequestedOutput("OUTPUT0", binary_data=False)]))
        for sent, wanted in (("gzip", None), (None, "deflate"), ("deflate", "gzip")):
            result = client.infer("simple", tensors(2), request_compression_algorithm=sent, response_compression_algorithm=wanted)
            show_result(f"compressed by {sent}, answer by {wanted}", result)


def strings():
    data = np.array([["a", "", "bcd", "日本"]], dtype=object)
    tensor = tc.InferInput("INPUT0", data.shape, "BYTES")
    tensor.set_data_from_numpy(data)
    print("strings:", client.infer("identity_string", [tensor]).as_numpy("OUTPUT0").tolist())
    half = np.array([[1.5, -0.25, 65504]], dtype=np.float16)
    tensor = tc.InferInput("INPUT0", half.shape, "FP16")
    tensor.set_data_from_numpy(half)
    print("FP16:", client.infer("identity_float16", [tensor]).as_numpy("OUTPUT0").tolist())


def asynchronous():
    if protocol == "http":
        pending = [client.async_infer("simple", tensors(i)) for i in range(8)]
        for i, request in enumerate(pending):
            show_result(f"asynchronous {i}", request.get_result())
        return
    done = queue.Queue()
    for i in range(8):
        client.async_infer("simple", tensors(i), request_id=str(i), callback=lambda result, error: done.put((result, error)))
    results = sorted((done.get(timeout=30)[0] for _ in range(8)), key=lambda r: int(r.get_response().id))
    for result in results:
        show_result("asynchronous " + result.get_response().id, result)


def stream():
    answers = queue.Queue()
    client.start_stream(lambda result, error: answers.put((result, error)))
    for i in range(8):
        client.async_stream_infer("simple", tensors(i), request_id=str(i))
    client.async_stream_infer("nope", tensors(0), request_id="bad")
    for _ in range(8):
        result, error = answers.get(timeout=30)
        show_result("stream " + result.get_response().id, result) if error is None else print("stream raises:", error.message())
    print("stream's end raises:", answers.get(timeout=30)[1].message())
    client.stop_stream()


def statistics():
    counts = plain(client.get_inference_statistics("simple", "1"))["model_stats"][0]
    show("statistics", {"name": counts["name"], "version": counts["version"], "inferences": counts["inference_count"]})


def control():
    def config(title):
        answer = plain(client.get_model_config("loadable"))
        answer = answer.get("config", answer)
        show(title, {key: answer.get(key) for key in ("max_batch_size", "instance_group", "dynamic_batching")})

    show("index", sorted(plain(client.get_model_repository_index()).get("models", []) if protocol == "grpc" else client.get_model_repository_index(), key=lambda m: m["name"]))
    client.load_model("loadable", config=json.dumps({"backend": "onnxruntime", "max_batch_size": 2, "instance_group": [{"count": 1, "kind": "KIND_CPU"}]}))
    config("config override")
    show_result("after the override", client.infer("loadable", tensors(0, rows=2)))
    with open(model_file, "rb") as f:
        content = f.read()
    client.load_model("loadable", config=json.dumps({"backend": "onnxruntime"}), files={"file:1/model.onnx": content})
    show("file override", by_name(plain(client.get_model_metadata("loadable")), "inputs", "outputs"))
    client.load_model("loadable")
    config("loaded again")
    client.unload_model("loadable")
    attempt("infer after unload", client.infer, "loadable", tensors(0))
    client.load_model("loadable")
    show_result("infer after load", client.infer("loadable", tensors(0)))
    attempt("load an unknown model", client.load_model, "nope")
    attempt("bad override", client.load_model, "loadable", config=json.dumps({"backend": "onnxruntime", "max_batch_size": -1}))


health()
metadata()
infer()
strings()
asynchronous()
if protocol == "grpc":
    stream()
statistics()
control()
client.close()
