# Measured with ONNX Runtime openvino@1.24.1; install: pip install onnxruntime-openvino==1.24.1 numpy
import os

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # else ONNX Runtime reports to its maker

import numpy as np
import onnxruntime as ort

options = ort.SessionOptions()
options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
providers = [("OpenVINOExecutionProvider", {"device_type": "CPU", "load_config": "{\"CPU\": {}}", "num_of_threads": "2"}), "CPUExecutionProvider"]
session = ort.InferenceSession("m.onnx", options, providers=providers)

inputs = {  # zeros: put your own values here
    "input_ids": np.zeros([1, 32], dtype=np.int64),
}
outputs = session.run(["y"], inputs)
print(session.get_providers(), [output.shape for output in outputs])
