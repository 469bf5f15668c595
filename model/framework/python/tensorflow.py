"""Exports a TensorFlow or Keras model to ONNX with tf2onnx, and writes examples (tuner_export.py).

Each kind of file becomes a function of tensors that returns a list of tensors. tf2onnx converts that.
"""

import os
import re

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"  # the comparison is with the CPU's results

import tuner_export
from tuner_export import Refusal

# The first Keras without a known way around safe_mode (CVE-2025-1550, CVE-2025-9905, CVE-2026-1462).
SAFE_KERAS = (3, 13, 2)

# Operators with which a graph reads or writes files, or calls Python. A model needs none of them.
REACHING = re.compile(r"^(ReadFile|WriteFile|MatchingFiles|.*PyFunc.*|.*Reader(V2)?|LookupTable.*File.*|InitializeTableFromTextFile.*|"
                      r"PrintV2|Print|.*Dataset(V\d)?|Recv|Send|_Recv|_Send|.*RemoteCall|.*Summary.*Writer.*|Debug.*|Save|SaveSlices)$")

# These belong to every SavedModel, whose loader runs them on the folder's own variables. In the
# function that is served, they would reach other files.
CHECKPOINTS = re.compile(r"^(SaveV2|Restore.*|MergeV2Checkpoints|LoadAndRemapMatrix)$")


def numbers(version):
    return tuple(int(n) for n in re.findall(r"\d+", version)[:3])


def refuse_operators(graph, pattern):
    """Refuses a GraphDef with operators that reach out of the model."""
    nodes = list(graph.node) + [node for function in graph.library.function for node in function.node_def]
    found = sorted({node.op for node in nodes if pattern.match(node.op)})
    if found:
        raise Refusal("reaching", ", ".join(found))


def load_keras(tf, request):
    """Returns function, inputs and kind. safe_mode refuses Lambda layers, which hold Python code."""
    import keras

    allowed = request["allow_pickle"]
    if numbers(keras.__version__) < SAFE_KERAS and not allowed:
        raise Refusal("old", keras.__version__)
    try:
        model = keras.models.load_model(request["path"], compile=False, safe_mode=not allowed)
    except ImportError as error:
        raise Refusal("packages", error) from error
    except Exception as error:
        if "safe_mode" in str(error) or "unsafe" in str(error).lower():
            raise Refusal("lambda", error) from error
        if "custom_objects" in str(error) or "Could not locate" in str(error):
            raise Refusal("classes", str(error).splitlines()[0]) from error
        raise Refusal("unreadable", error) from error
    if not getattr(model, "inputs", None):
        raise Refusal("run", "it was saved before it was built, so it has no inputs; call it once, and save it again")
    struct = getattr(model, "_inputs_struct", None)
    names = {}

    def call(*tensors):
        packed = tf.nest.pack_sequence_as(struct, tensors) if struct is not None else (tensors[0] if len(tensors) == 1 else list(tensors))
        return named(tf, model(packed, training=False), names)

    layers = [getattr(getattr(t, "_keras_history", None), "operation", None) for t in tf.nest.flatten(model.outputs)]
    names["default"] = [layer.name if layer is not None else "" for layer in layers]
    specs = [tf.TensorSpec(t.shape, t.dtype, name=t.name.split(":")[0]) for t in tf.nest.flatten(model.inputs)]
    return call, specs, names, "Keras model", model


def named(tf, outputs, names):
    """Flattens what a model returns, and keeps the keys of a dict as names."""
    if isinstance(outputs, dict):
        names["found"] = [str(key) for key in sorted(outputs)]
        return [outputs[key] for key in sorted(outputs)]
    flat = tf.nest.flatten(outputs)
    if len(names.get("default", [])) == len(flat):
        names["found"] = names["default"]
    return flat


def load_saved_model(tf, request):
    from tensorflow.core.protobuf import saved_model_pb2

    description = saved_model_pb2.SavedModel()
    try:
        with open(os.path.join(request["path"], "saved_model.pb"), "rb") as file:
            description.ParseFromString(file.read())
    except Exception as error:
        raise Refusal("unreadable", error) from error
    if not request["allow_pickle"]:
        for part in description.meta_graphs:
            refuse_operators(part.graph_def, REACHING)
    try:
        loaded = tf.saved_model.load(request["path"])
    except Exception as error:
        raise Refusal("unreadable", error) from error
    signatures = dict(loaded.signatures)
    if "serving_default" not in signatures and len(signatures) != 1:
        raise Refusal("signature", ", ".join(sorted(signatures)) or "none")
    function = signatures.get("serving_default") or next(iter(signatures.values()))
    wanted = function.structured_input_signature[1]
    keys = sorted(wanted)
    names = {"found": sorted(function.structured_outputs)}

    def call(*tensors):
        outputs = function(**dict(zip(keys, tensors)))
        return [outputs[key] for key in names["found"]]

    specs = [tf.TensorSpec(wanted[key].shape, wanted[key].dtype, name=key) for key in keys]
    return call, specs, names, "SavedModel", loaded


def load_graph(tf, request):
    """Returns the function from all placeholders to all values that no other node reads."""
    graph = tf.compat.v1.GraphDef()
    try:
        with open(request["path"], "rb") as file:
            graph.ParseFromString(file.read())
    except Exception as error:
        raise Refusal("unreadable", error) from error
    if not request["allow_pickle"]:
        refuse_operators(graph, REACHING)
        refuse_operators(graph, CHECKPOINTS)
    read = {name.lstrip("^").split(":")[0] for node in graph.node for name in node.input}
    sources = [node.name for node in graph.node if node.op == "Placeholder"]
    sinks = [node.name for node in graph.node if node.name not in read and node.op not in ("Const", "NoOp", "Placeholder", "Assert")]
    if not sources or not sinks:
        raise Refusal("unreadable", f"the graph has {len(sources)} placeholders and {len(sinks)} results")
    if any(node.op in ("VariableV2", "VarHandleOp") for node in graph.node):
        raise Refusal("unreadable", "the graph has variables, whose values are elsewhere; freeze it, or give the SavedModel")
    try:
        wrapped = tf.compat.v1.wrap_function(lambda: tf.import_graph_def(graph, name=""), [])
        function = wrapped.prune([wrapped.graph.get_tensor_by_name(n + ":0") for n in sources],
                                 [wrapped.graph.get_tensor_by_name(n + ":0") for n in sinks])
    except Exception as error:
        raise Refusal("unreadable", error) from error
    specs = [tf.TensorSpec(t.shape, t.dtype, name=t.name.split(":")[0]) for t in function.inputs]
    names = {"found": [sink.split("/")[-1] for sink in sinks]}
    return lambda *tensors: tf.nest.flatten(function(*tensors)), specs, names, "frozen graph", function


class Model:
    """A function of TensorFlow with its inputs."""

    def __init__(self, tf, request):
        path = request["path"]
        loaders = {True: load_saved_model, ".pb": load_graph}
        loader = loaders.get(os.path.isdir(path)) or loaders.get(os.path.splitext(path)[1].lower()) or load_keras
        self.tf, self.request, self.version = tf, request, tf.__version__
        self.call, specs, self.names, self.kind, self.owner = loader(tf, request)
        unknown = {i["name"] for i in request["inputs"]} - {spec.name for spec in specs}
        if unknown:
            raise Refusal("inputs", f"it has no input {sorted(unknown)[0]!r}, but {', '.join(spec.name for spec in specs)}")
        self.specs = [self.complete(spec) for spec in specs]
        self.inputs = [{"name": s.name, "type": s.dtype.name, "shape": [-1 if d is None else d for d in s.shape]} for s in self.specs]
        self.function = tf.function(self.call, input_signature=self.specs)
        if not request["allow_pickle"]:
            refuse_operators(self.function.get_concrete_function().graph.as_graph_def(), CHECKPOINTS)

    def complete(self, spec):
        """Sets the shape of an input that the user gives, and refuses one that cannot be sent."""
        given = {i["name"]: i for i in self.request["inputs"]}
        if spec.dtype.name not in ("float16", "float32", "float64", "bool", "uint8", "int8", "int16", "int32", "int64"):
            raise Refusal("inputs", f"input {spec.name!r} is {spec.dtype.name}: texts and other values than numbers have no random examples; "
                          "save the part of the model behind its preprocessing")
        if spec.name in given:
            return self.tf.TensorSpec([None if d < 0 else d for d in given[spec.name]["shape"]], spec.dtype, name=spec.name)
        if spec.shape.rank is None:
            raise Refusal("inputs", f"the number of dimensions of input {spec.name!r} is unknown: give its shape with --in-names {spec.name} --in-shapes")
        return spec

    def run(self, arrays):
        try:
            outputs = [value.numpy() for value in self.function(*[self.tf.constant(a) for a in arrays])]
        except Exception as error:
            raise Refusal("run", error) from error
        names = self.names.get("found", [])
        return [(names[n] if n < len(names) else "", value) for n, value in enumerate(outputs)]

    def export(self, path, arrays, names, axes, outputs):
        import onnx
        import tf2onnx

        try:
            made, _ = tf2onnx.convert.from_function(self.function, input_signature=self.specs, opset=self.request["opset"])
        except Exception as error:
            raise Refusal("export", f"tf2onnx: {error}") from error
        tuner_export.check_converted(made, self, names)
        onnx.save(tuner_export.finish(made, self, names, outputs, axes), path)
        return f"tf2onnx {tf2onnx.__version__}"


def load(request):
    import tf2onnx  # noqa: F401 (it is missing more often than TensorFlow)
    import tensorflow as tf

    tf.random.set_seed(1)
    return Model(tf, request)


tuner_export.main(load)
