"""Writes the shapes that ONNX's own shape inference finds in a model: {"value": "FLOAT[batch,3]"}.

The tests of package shapes read them.

    python infer.py MODEL.onnx > NAME.json        (needs: pip install onnx==1.23.2)

A "?" is a size that ONNX does not know. A value with an unknown shape is "FLOAT[…]".
"""

import json
import sys

import onnx


def dim(d):
    if d.HasField("dim_value"):
        return str(d.dim_value)
    if d.HasField("dim_param") and not d.dim_param.startswith("unk__"):
        return d.dim_param
    return "?"


def text(tensor):
    name = onnx.TensorProto.DataType.Name(tensor.elem_type)
    if not tensor.HasField("shape"):
        return name + "[…]"
    return name + "[" + ",".join(dim(d) for d in tensor.shape.dim) + "]"


model = onnx.shape_inference.infer_shapes(onnx.load(sys.argv[1]), strict_mode=True, data_prop=True)
graph = model.graph
values = {v.name: text(v.type.tensor_type) for v in [*graph.input, *graph.value_info, *graph.output]}
json.dump(values, sys.stdout, indent=0, sort_keys=True, ensure_ascii=False)
print()
