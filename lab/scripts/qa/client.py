#!/usr/bin/env python3
"""Sends one request to the model simple, and checks the answer.

It stands for Triton's clients in C++, simple_http_infer_client and simple_grpc_infer_client, which no
package has: the scripts count the requests that these send. Its own name says which protocol it speaks.
"""

import sys

import numpy


def main():
    if "grpc" in sys.argv[0]:
        import tritonclient.grpc as protocol

        url = "localhost:8001"
    else:
        import tritonclient.http as protocol

        url = "localhost:8000"
    if "-u" in sys.argv:
        url = sys.argv[sys.argv.index("-u") + 1]
    client = protocol.InferenceServerClient(url, verbose="-v" in sys.argv)
    first = numpy.arange(16, dtype=numpy.int32).reshape(1, 16)
    second = numpy.ones((1, 16), dtype=numpy.int32)
    inputs = []
    for name, values in (("INPUT0", first), ("INPUT1", second)):
        tensor = protocol.InferInput(name, values.shape, "INT32")
        tensor.set_data_from_numpy(values)
        inputs.append(tensor)
    outputs = [protocol.InferRequestedOutput(name) for name in ("OUTPUT0", "OUTPUT1")]
    answer = client.infer("simple", inputs, outputs=outputs)
    numpy.testing.assert_array_equal(answer.as_numpy("OUTPUT0"), first + second)
    numpy.testing.assert_array_equal(answer.as_numpy("OUTPUT1"), first - second)
    print("PASS : Infer")


main()
