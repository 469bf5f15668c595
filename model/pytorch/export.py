"""Exports a PyTorch model to ONNX, and writes examples of its inputs and outputs.

usage: python3 export.py FOLDER

Package pytorch embeds this file. FOLDER/request.json has the input (type request in pytorch.go).
The script writes these files into FOLDER: result.json (type result), model.onnx and, for each
example, exampleN.in.npz and exampleN.out.npz. The standard streams are for people.
"""

import json
import os
import pathlib
import pickle
import re
import sys
import zipfile

# Sizes of a dimension that the user leaves open. The model is exported with the first size and
# tried with both. Batches start at 2 because exporters treat 1 specially. Other dimensions are
# large enough for a few poolings, and small enough for any position table.
SIZES = {0: (2, 3)}
OTHER_SIZES = (64, 96)


class Refusal(Exception):
    """Ends the work with a status that the caller knows, and a text for people."""

    def __init__(self, status, message=""):
        super().__init__(message)
        self.status, self.message = status, str(message)


def is_old(torch):
    """Reports whether PyTorch is older than 2.6. There, weights_only ran code in the file (CVE-2025-32434)."""
    numbers = re.match(r"(\d+)\.(\d+)", torch.__version__)
    return not numbers or (int(numbers[1]), int(numbers[2])) < (2, 6)


def load(torch, request):
    """Returns the model and the kind of its file.

    TorchScript contains its own program, which PyTorch interprets. A pickled module runs the Python
    code that it names, so it needs permission. With a PyTorch that may run code in any file
    (is_old), every file needs permission.
    """
    path = request["path"]
    if is_old(torch) and not request["allow_pickle"]:
        raise Refusal("old", torch.__version__)
    try:
        return torch.jit.load(path, map_location="cpu").eval(), "TorchScript"
    except RuntimeError:
        pass  # not TorchScript; other kinds are tried below
    if not holds_pickle(path):
        raise Refusal("unreadable", "it is neither TorchScript nor of torch.save")
    try:
        torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError:
        pass  # more than weights
    except Exception as error:
        raise Refusal("unreadable", error) from error
    else:
        raise Refusal("weights")
    if not request["allow_pickle"]:
        raise Refusal("pickle")
    # Python searches the module's classes in the working folder and beside the file.
    sys.path[:0] = [os.getcwd(), os.path.dirname(os.path.abspath(path))]
    try:
        model = torch.load(path, map_location="cpu", weights_only=False)
    except (AttributeError, ImportError) as error:
        raise Refusal("classes", error) from error
    except Exception as error:
        raise Refusal("unreadable", error) from error
    if not isinstance(model, torch.nn.Module):
        raise Refusal("no_module", type(model).__name__)
    return model.eval(), "pickled module"


def holds_pickle(path):
    """Reports whether a file is from torch.save: a zip archive with a pickle, or a pickle before PyTorch 1.6."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            return any(name.endswith("/data.pkl") for name in archive.namelist())
    with open(path, "rb") as file:
        return file.read(1) == b"\x80"


def symbol(axis):
    """Names an open dimension. Open dimensions with the same index have the same size in all inputs."""
    return "batch" if axis == 0 else f"dim_{axis}"


def open_axes(request):
    return sorted({axis for i in request["inputs"] for axis, size in enumerate(i["shape"]) if size < 0})


def example(torch, request, larger=()):
    """Makes inputs. The open axes in larger get their second size.

    Integers are 0 or 1. These are valid rows of any table, and valid masks.
    """
    values = []
    for i in request["inputs"]:
        shape = [SIZES.get(axis, OTHER_SIZES)[axis in larger] if size < 0 else size for axis, size in enumerate(i["shape"])]
        kind = getattr(torch, i["type"])
        if kind.is_floating_point:
            values.append(torch.randn(shape).to(kind))
        else:
            values.append(torch.randint(0, 2, shape).to(kind))
    return tuple(values)


def flatten(torch, value, name=""):
    """Lists the tensors that the model returns as (name, tensor). The name is empty outside of a dict."""
    if isinstance(value, torch.Tensor):
        return [(name, value)]
    if isinstance(value, dict):
        return [pair for key, one in value.items() for pair in flatten(torch, one, str(key))]
    if isinstance(value, (tuple, list)):
        return [pair for one in value for pair in flatten(torch, one)]
    if value is None:
        return []
    raise Refusal("run", f"the model returns {type(value).__name__}; a wrapper module can return its tensors alone")


def run(torch, model, inputs):
    try:
        with torch.no_grad():
            return flatten(torch, model(*inputs))
    except Refusal:
        raise
    except Exception as error:
        raise Refusal("run", error) from error


def output_names(request, outputs):
    if request["outputs"]:
        if len(request["outputs"]) != len(outputs):
            raise Refusal("outputs", f"the model has {len(outputs)} outputs, {len(request['outputs'])} names are given")
        return request["outputs"]
    names = [name or ("output" if len(outputs) == 1 else f"output_{n}") for n, (name, _) in enumerate(outputs)]
    return names if len(set(names)) == len(names) else [f"output_{n}" for n in range(len(names))]


def dynamic_axes(torch, request, model, names, outputs):
    """Finds the outputs' dimensions that change with the open dimensions of the inputs."""
    axes = {i["name"]: {axis: symbol(axis) for axis, size in enumerate(i["shape"]) if size < 0} for i in request["inputs"]}
    for changed in open_axes(request):
        sizes = SIZES.get(changed, OTHER_SIZES)
        for name, (_, one), (_, other) in zip(names, outputs, run(torch, model, example(torch, request, (changed,)))):
            for axis, (before, after) in enumerate(zip(one.shape, other.shape)):
                if before != after:
                    same = (before, after) == sizes
                    axes.setdefault(name, {})[axis] = symbol(changed) if same else f"{name}_dim_{axis}"
    return {name: found for name, found in axes.items() if found}


def export(torch, request, model, inputs, names, axes, path):
    """Exports with the TorchScript exporter, which accepts both kinds of models, or else with the newer one."""
    options = {"input_names": [i["name"] for i in request["inputs"]], "output_names": names}
    old = dict(options, opset_version=request["opset"], dynamic_axes=axes, do_constant_folding=True)
    if hasattr(torch.onnx, "ONNXProgram"):  # versions that have two exporters
        old["dynamo"] = False
    try:
        torch.onnx.export(model, inputs, path, **old)
        return "TorchScript exporter"
    except Exception as error:
        failures = [f"TorchScript exporter: {error}"]
    if not isinstance(model, torch.jit.ScriptModule):
        dims = {axis: torch.export.Dim(symbol(axis)) for axis in open_axes(request)}
        shapes = tuple({axis: dims[axis] for axis, size in enumerate(i["shape"]) if size < 0} for i in request["inputs"])
        try:
            torch.onnx.export(
                model, inputs, path, opset_version=max(18, request["opset"]), dynamic_shapes=shapes, dynamo=True, external_data=False, **options
            )
            return "torch.export exporter"
        except Exception as error:
            failures.append(f"torch.export exporter: {error}")
    raise Refusal("export", "\n".join(failures))


def work(folder):
    request = json.loads((folder / "request.json").read_text(encoding="utf-8"))
    try:
        import numpy
        import onnx  # noqa: F401 (the exporters need it, and fail late without it)
        import torch
    except ImportError as error:
        raise Refusal("packages", error) from error
    torch.manual_seed(1)
    model, kind = load(torch, request)
    first = example(torch, request)
    outputs = run(torch, model, first)
    names = output_names(request, outputs)
    axes = dynamic_axes(torch, request, model, names, outputs)
    exporter = export(torch, request, model, first, names, axes, str(folder / "model.onnx"))
    cases = [first] + [example(torch, request, larger) for larger in [tuple(open_axes(request))] if larger]
    for n, inputs in enumerate(cases):
        expected = [value for _, value in run(torch, model, inputs)]
        numpy.savez(folder / f"example{n}.in.npz", **{i["name"]: value.numpy() for i, value in zip(request["inputs"], inputs)})
        numpy.savez(folder / f"example{n}.out.npz", **{name: value.numpy() for name, value in zip(names, expected)})
    return {"status": "ok", "torch": torch.__version__, "kind": kind, "exporter": exporter, "examples": len(cases)}


def main():
    folder = pathlib.Path(sys.argv[1])
    try:
        result = work(folder)
    except Refusal as refusal:
        result = {"status": refusal.status, "message": refusal.message}
    (folder / "result.json").write_text(json.dumps(result), encoding="utf-8")


main()
