"""Makes an ONNX model with the inputs and outputs of Triton's repeat_int32, for L0_trace.

usage: repeat.py FOLDER

The original, of a backend that Triton's image of its tests has, answers each element of IN by an answer of
its own. L0_trace turns that off, and asks for one element.
"""

import os
import sys

from onnx import TensorProto, helper, save

folder = sys.argv[1]
inputs = {"IN": TensorProto.INT32, "DELAY": TensorProto.UINT32, "WAIT": TensorProto.UINT32}
nodes = [helper.make_node("Identity", ["IN"], ["OUT"]), helper.make_node("Concat", ["DELAY", "WAIT"], ["IDX"], axis=0)]
graph = helper.make_graph(
    nodes,
    "repeat",
    [helper.make_tensor_value_info(name, kind, ["n" + name]) for name, kind in inputs.items()],
    [helper.make_tensor_value_info("OUT", TensorProto.INT32, ["nOUT"]), helper.make_tensor_value_info("IDX", TensorProto.UINT32, ["nIDX"])],
)
os.makedirs(os.path.join(folder, "1"))
save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=7), os.path.join(folder, "1", "model.onnx"))
with open(os.path.join(folder, "config.pbtxt"), "w", encoding="utf-8") as config:
    config.write('name: "repeat_int32"\nbackend: "onnxruntime"\nmax_batch_size: 0\nmodel_transaction_policy { decoupled: True }\n')
    for side, names in (("input", inputs), ("output", {"OUT": TensorProto.INT32, "IDX": TensorProto.UINT32})):
        for name, kind in names.items():
            config.write(f'{side} [ {{ name: "{name}" data_type: TYPE_{TensorProto.DataType.Name(kind)} dims: [ -1 ] }} ]\n')
