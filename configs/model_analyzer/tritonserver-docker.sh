#!/bin/sh
# A tritonserver in a container, as triton_server_path. The working folder is the same inside and outside, since the models that tuner
# serves lie below it. Add --gpus=all for the GPUs; TRITON_IMAGE names another image.
exec docker run --rm --network=host -v "$PWD:$PWD" -w "$PWD" "${TRITON_IMAGE:-nvcr.io/nvidia/tritonserver:26.04-py3}" tritonserver "$@"
