"""Makes an int8 variant of a model: quantize.py FROM TO.

It quantizes only the matrix products, dynamically, with a scale for each channel. This keeps the
embedding's cosine above 0.99. The defaults do not: one scale for each tensor, and a quantized
embedding table.
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
