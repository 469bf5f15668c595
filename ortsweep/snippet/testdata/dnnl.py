# Measured with ONNX Runtime built@1.31.1
import os

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # else ONNX Runtime reports to its maker

import numpy as np
import onnxruntime as ort

options = ort.SessionOptions()
providers = [("DnnlExecutionProvider", {"use_arena": "0"}), "CPUExecutionProvider"]
session = ort.InferenceSession("m.onnx", options, providers=providers)

inputs = {  # zeros: put your own values here
    "input_ids": np.zeros([1, 32], dtype=np.int64),
}
outputs = session.run(["y"], inputs)
print(session.get_providers(), [output.shape for output in outputs])
