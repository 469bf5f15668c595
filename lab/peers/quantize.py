"""Makes an int8 variant of a model: quantize.py FROM TO.

Dynamic quantization of the matrix products alone, with a scale for each channel: that keeps the embedding's cosine above
0.99, which the defaults (one scale for each tensor, the embedding table quantized too) do not.
"""

import sys

from onnxruntime.quantization import QuantType, quantize_dynamic

quantize_dynamic(
    sys.argv[1],
    sys.argv[2],
    op_types_to_quantize=["MatMul"],
    per_channel=True,
    weight_type=QuantType.QInt8,
)
