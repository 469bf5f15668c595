"""The part of an export that all frameworks share: request, examples, names, dimensions, result.

Package framework embeds this file, and one program for each framework, which it runs as
`python3 export.py FOLDER`. FOLDER/request.json has the input (type request in framework.go). The
program writes these files into FOLDER: result.json (type result), model.onnx and, for each example,
exampleN.in.npz and exampleN.out.npz. The standard streams are for people.

A program calls main with a function that loads the model. The function returns an object with

    version, kind, inputs   texts, and a list of inputs as in the request, in the model's order
    run(arrays)             the outputs as (name, array) for one array per input; the name may be ""
    export(path, arrays, names, axes)   writes the ONNX file, and returns the exporter's name
"""

import json
import pathlib
import sys

# Sizes of a dimension that is open. The model is exported with the first size and tried with both.
# Batches start at 2 because exporters treat 1 specially. Other dimensions are large enough for a few
# poolings, and small enough for any position table.
SIZES = {0: (2, 3)}
OTHER_SIZES = (64, 96)


class Refusal(Exception):
    """Ends the work with a status that the caller knows, and a text for people."""

    def __init__(self, status, message=""):
        super().__init__(message)
        self.status, self.message = status, str(message)


def symbol(axis):
    """Names an open dimension. Open dimensions with the same index have the same size in all inputs."""
    return "batch" if axis == 0 else f"dim_{axis}"


def open_axes(inputs):
    return sorted({axis for i in inputs for axis, size in enumerate(i["shape"]) if size < 0})


def example(random, model, larger=()):
    """Makes inputs. The open axes in larger get their second size.

    Integers are 0 or 1, unless the model says otherwise. These are valid rows of any table, and valid
    masks.
    """
    import numpy

    values = []
    for i in model.inputs:
        shape = [getattr(model, "sizes", SIZES).get(axis, OTHER_SIZES)[axis in larger] if size < 0 else size for axis, size in enumerate(i["shape"])]
        if i["type"].startswith("float"):
            values.append(numpy.asarray(random.standard_normal(shape), i["type"]) * numpy.asarray(getattr(model, "scale", 1), i["type"]))
        else:
            values.append(numpy.asarray(random.integers(0, 2, shape), i["type"]))
    return values


def output_names(given, outputs):
    if given:
        if len(given) != len(outputs):
            raise Refusal("outputs", f"the model has {len(outputs)} outputs, {len(given)} names are given")
        return given
    names = [name or ("output" if len(outputs) == 1 else f"output_{n}") for n, (name, _) in enumerate(outputs)]
    return names if len(set(names)) == len(names) else [f"output_{n}" for n in range(len(names))]


def dynamic_axes(random, model, names, outputs):
    """Finds the outputs' dimensions that change with the open dimensions of the inputs."""
    axes = {i["name"]: {axis: symbol(axis) for axis, size in enumerate(i["shape"]) if size < 0} for i in model.inputs}
    for changed in open_axes(model.inputs):
        sizes = getattr(model, "sizes", SIZES).get(changed, OTHER_SIZES)
        for name, (_, one), (_, other) in zip(names, outputs, model.run(example(random, model, (changed,)))):
            for axis, (before, after) in enumerate(zip(one.shape, other.shape)):
                if before != after:
                    same = (before, after) == sizes
                    axes.setdefault(name, {})[axis] = symbol(changed) if same else f"{name}_dim_{axis}"
    return {name: found for name, found in axes.items() if found}


def finish(onnx_model, model, names, outputs, axes):
    """Gives the graph's inputs and outputs their names, and the shapes that were seen.

    Converters name outputs after their own nodes, and leave dimensions without a name, or with a wrong
    size. Some write an operator set twice.
    """
    graph = onnx_model.graph
    wanted = {old.name: new for old, new in zip(graph.output, names)}
    wanted.update({old.name: new["name"] for old, new in zip(graph.input, model.inputs)})
    taken = {name for node in graph.node for name in list(node.input) + list(node.output)} - set(wanted)
    inner = {name: name + "_inner" for name in set(wanted.values()) & taken}
    wanted.update(inner)
    for node in graph.node:
        node.input[:] = [wanted.get(name, name) for name in node.input]
        node.output[:] = [wanted.get(name, name) for name in node.output]
    for tensor in graph.initializer:
        tensor.name = wanted.get(tensor.name, tensor.name)
    shapes = {i["name"]: i["shape"] for i in model.inputs}
    shapes.update({name: array.shape for name, (_, array) in zip(names, outputs)})
    for value in list(graph.input) + list(graph.output):
        value.name = wanted[value.name]
        dims = value.type.tensor_type.shape.dim
        del dims[:]
        for axis, size in enumerate(shapes[value.name]):
            dim = dims.add()
            if axis in axes.get(value.name, {}):
                dim.dim_param = axes[value.name][axis]
            else:
                dim.dim_value = size
    del graph.value_info[:]
    versions = {}
    for one in onnx_model.opset_import:
        versions[one.domain] = max(one.version, versions.get(one.domain, 0))
    del onnx_model.opset_import[:]
    for domain, version in versions.items():
        onnx_model.opset_import.add(domain=domain, version=version)
    return onnx_model


def check_converted(onnx_model, model, names):
    """Refuses what the server cannot serve: values that are no tensors, other inputs or outputs."""
    for value in list(onnx_model.graph.input) + list(onnx_model.graph.output):
        if not value.type.HasField("tensor_type"):
            raise Refusal("export", f"the converter makes {value.type.WhichOneof('value')} of {value.name}, which no server takes")
    if len(onnx_model.graph.input) != len(model.inputs) or len(onnx_model.graph.output) != len(names):
        raise Refusal("export", f"the converter makes {len(onnx_model.graph.input)} inputs and {len(onnx_model.graph.output)} outputs "
                      f"of {len(model.inputs)} and {len(names)}")


def work(folder, load):
    request = json.loads((folder / "request.json").read_text(encoding="utf-8"))
    try:
        import numpy
        import onnx  # noqa: F401 (the exporters need it, and fail late without it)

        model = load(request)
    except ImportError as error:
        raise Refusal("packages", error) from error
    random = numpy.random.default_rng(1)
    first = example(random, model)
    outputs = model.run(first)
    names = output_names(request["outputs"], outputs)
    axes = dynamic_axes(random, model, names, outputs)
    exporter = model.export(str(folder / "model.onnx"), first, names, axes, outputs)
    cases = [first] + [example(random, model, larger) for larger in [tuple(open_axes(model.inputs))] if larger]
    for n, inputs in enumerate(cases):
        expected = [value for _, value in model.run(inputs)]
        numpy.savez(folder / f"example{n}.in.npz", **{i["name"]: value for i, value in zip(model.inputs, inputs)})
        numpy.savez(folder / f"example{n}.out.npz", **dict(zip(names, expected)))
    return {"status": "ok", "version": model.version, "kind": model.kind, "exporter": exporter, "examples": len(cases)}


def main(load):
    folder = pathlib.Path(sys.argv[1])
    try:
        result = work(folder, load)
    except Refusal as refusal:
        result = {"status": refusal.status, "message": refusal.message}
    (folder / "result.json").write_text(json.dumps(result), encoding="utf-8")
