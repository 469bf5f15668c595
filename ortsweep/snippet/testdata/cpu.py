# Measured with ONNX Runtime cpu@1.31.1; install: pip install onnxruntime==1.31.1 numpy
# minilm: 2 threads, parallel.
import os

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # else ONNX Runtime reports to its maker

import numpy as np
import onnxruntime as ort

options = ort.SessionOptions()
options.intra_op_num_threads = 2
options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
options.execution_mode = ort.ExecutionMode.ORT_PARALLEL
options.inter_op_num_threads = 4
options.enable_cpu_mem_arena = False
options.enable_mem_pattern = False
options.add_session_config_entry("session.dynamic_block_base", "4")
options.add_session_config_entry("session.intra_op.allow_spinning", "0")
providers = ["CPUExecutionProvider"]
session = ort.InferenceSession("out/minilm \"int8\".onnx", options, providers=providers)

inputs = {  # zeros: put your own values here
    "input_ids": np.zeros([1, 32], dtype=np.int64),
    "image": np.zeros([1, 3, 8, 8], dtype=np.float32),
}
outputs = session.run(["a", "b"], inputs)
print(session.get_providers(), [output.shape for output in outputs])
