"""Exports a PyTorch model to ONNX, and writes examples of its inputs and outputs (tuner_export.py)."""

import os
import pickle
import re
import sys
import zipfile

import tuner_export
from tuner_export import Refusal, symbol


def is_old(torch):
    """Reports whether PyTorch is older than 2.6. There, weights_only ran code in the file (CVE-2025-32434)."""
    numbers = re.match(r"(\d+)\.(\d+)", torch.__version__)
    return not numbers or (int(numbers[1]), int(numbers[2])) < (2, 6)


def load_module(torch, request):
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


def export(torch, request, model, inputs, names, axes, path):
    """Exports with the TorchScript exporter, which accepts both kinds of models, or else with the newer one."""
    options = {"input_names": [i["name"] for i in request["inputs"]], "output_names": names}
    old = dict(options, opset_version=request["opset"], dynamic_axes=axes, do_constant_folding=True)
    if hasattr(torch.onnx, "ONNXProgram"):  # versions that have two exporters
        old["dynamo"] = False
    try:
        torch.onnx.export(model, inputs, path, **old)
        return "the TorchScript exporter"
    except Exception as error:
        failures = [f"TorchScript exporter: {error}"]
    if not isinstance(model, torch.jit.ScriptModule):
        dims = {axis: torch.export.Dim(symbol(axis)) for axis in tuner_export.open_axes(request["inputs"])}
        shapes = tuple({axis: dims[axis] for axis, size in enumerate(i["shape"]) if size < 0} for i in request["inputs"])
        try:
            torch.onnx.export(
                model, inputs, path, opset_version=max(18, request["opset"]), dynamic_shapes=shapes, dynamo=True, external_data=False, **options
            )
            return "the torch.export exporter"
        except Exception as error:
            failures.append(f"torch.export exporter: {error}")
    raise Refusal("export", "\n".join(failures))


class Model:
    """A module with the inputs of the request."""

    def __init__(self, torch, request):
        self.torch, self.request, self.version, self.inputs = torch, request, torch.__version__, request["inputs"]
        self.module, self.kind = load_module(torch, request)

    def run(self, arrays):
        try:
            with self.torch.no_grad():
                outputs = flatten(self.torch, self.module(*self.tensors(arrays)))
        except Refusal:
            raise
        except Exception as error:
            raise Refusal("run", error) from error
        return [(name, value.numpy()) for name, value in outputs]

    def tensors(self, arrays):
        return tuple(self.torch.from_numpy(array) for array in arrays)

    def export(self, path, arrays, names, axes, outputs):
        return export(self.torch, self.request, self.module, self.tensors(arrays), names, axes, path)


def load(request):
    import torch

    torch.manual_seed(1)
    return Model(torch, request)


tuner_export.main(load)
