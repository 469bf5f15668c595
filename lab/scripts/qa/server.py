"""Starts a server for Triton's QA, in place of /opt/tritonserver/bin/tritonserver.

usage: server.py triton|tuner PROGRAM FOLDER FLAG...

It takes out what neither server can run: models of other backends and of BF16, ensembles with such a
model as a step, and the flags that load them. Python models that only return their inputs become models
of the backend identity. Instances on a GPU become instances on the CPU. Flags that Triton 24.10 does not
know are left out for it. tuner listens where Triton does by default.
"""

import os
import re
import shutil
import sys

# What can be served here. Other names in a configuration make a model foreign.
SERVED = {"onnxruntime", "onnxruntime_onnx", "identity", "ensemble"}
# Names of models of other backends, which a repository lacks although ensembles name them.
OTHERS = re.compile(r"libtorch|plan_|openvino|python")
# Flags of newer Tritons.
NEWER = ("--allow-client-shm",)
# Triton's default addresses, where tuner's are on this machine alone. Flags of a test have precedence.
ADDRESSES = ["--http-address=0.0.0.0", "--grpc-address=0.0.0.0"]
# Folders whose subject is the models of other backends: their repositories stay as they are.
UNTOUCHED = ("L0_model_config",)


def value(text, field):
    found = re.search(rf'^\s*{field}\s*:\s*"([^"]*)"', text, re.MULTILINE)
    return found.group(1) if found else ""


def python_source(folder):
    for place, _, files in os.walk(folder):
        if "model.py" in files:
            with open(os.path.join(place, "model.py"), encoding="utf-8") as source:
                return source.read()
    return ""


def identity(folder, config, source):
    """Makes a Python model that returns its inputs one of the backend identity, if it is such a model."""
    body = re.sub(r'""".*?"""', "", source, flags=re.DOTALL)
    if 'pb_utils.Tensor("OUTPUT0", in' not in body or "INPUT1" in config or re.search(r"\.as_numpy\(\) *[-+*]", body):
        return False
    config = re.sub(r'^\s*backend\s*:.*$', 'backend: "identity"', config, flags=re.MULTILINE)
    delay = re.search(r"time\.sleep\((\d+)\)", body)
    if delay and "def initialize" in body:
        config += f'\nparameters [{{ key: "creation_delay_sec" value: {{ string_value: "{delay.group(1)}" }} }}]\n'
    with open(os.path.join(folder, "config.pbtxt"), "w", encoding="utf-8") as file:
        file.write(config)
    for place, _, files in os.walk(folder):
        if "model.py" in files:
            os.remove(os.path.join(place, "model.py"))
    os.makedirs(os.path.join(folder, "1"), exist_ok=True)
    return True


def read(repositories):
    """The configurations of all models, by their folders."""
    configs = {}
    for repository in repositories:
        for name in sorted(os.listdir(repository)):
            folder = os.path.join(repository, name)
            path = os.path.join(folder, "config.pbtxt")
            if os.path.isfile(path):
                with open(path, encoding="utf-8") as file:
                    configs[folder] = file.read()
            elif os.path.isdir(folder) and python_source(folder):
                configs[folder] = 'backend: "python"'
    return configs


def foreign(folder, config):
    """Whether neither server can run a model. It makes it one that they can, where that is possible."""
    backend = value(config, "backend") or value(config, "platform")
    if "TYPE_BF16" in config:
        return True
    if backend == "ensemble" and "PUT__" in config:  # the tensors of libtorch's models, whose twins have ONNX's names
        with open(os.path.join(folder, "config.pbtxt"), "w", encoding="utf-8") as file:
            file.write(config.replace("PUT__", "PUT"))
        return False
    if backend in SERVED or backend == "":
        if "KIND_GPU" in config:
            with open(os.path.join(folder, "config.pbtxt"), "w", encoding="utf-8") as file:
                file.write(config.replace("KIND_GPU", "KIND_CPU"))
        return False
    return backend != "python" or not identity(folder, config, python_source(folder))


def take_out(repositories):
    """Removes the foreign models of the repositories, and returns their names."""
    configs = read(repositories)
    gone = {folder for folder, config in configs.items() if foreign(folder, config)}
    there = {os.path.basename(folder) for folder in configs}
    while True:
        out = {os.path.basename(folder) for folder in gone}
        more = {
            folder
            for folder, config in configs.items()
            if folder not in gone
            for step in re.findall(r'model_name\s*:\s*"([^"]*)"', config)
            if step in out or (step not in there and OTHERS.search(step))
        }
        if not more:
            break
        gone |= more
    for folder in gone:
        shutil.rmtree(folder)
    return {os.path.basename(folder) for folder in gone | remembered(gone, repositories)}


def remembered(gone, repositories):
    """The models that earlier starts took out of the repositories and that are still gone. It notes those of this one."""
    with open("/opt/tritonserver/gone", "a+", encoding="utf-8") as notes:
        notes.writelines(folder + "\n" for folder in sorted(gone))
        notes.seek(0)
        folders = {line.strip() for line in notes}
    return {folder for folder in folders if os.path.dirname(folder) in repositories and not os.path.exists(folder)}


def flags(server, program, arguments, folder):
    """The flags for the server, without those of models that were taken out."""
    kept, gone, repositories = [], set(), []
    words = iter(arguments)
    for word in words:
        if word in ("--model-repository", "--model-store", "--load-model"):
            word += "=" + next(words, "")
        kept.append(word)
        name, _, argument = word.partition("=")
        if name in ("--model-repository", "--model-store"):
            repositories.append(argument)
    if folder not in UNTOUCHED:
        gone = take_out([repository for repository in repositories if os.path.isdir(repository)])
    kept = [word for word in kept if not (word.startswith("--load-model=") and word.partition("=")[2] in gone)]
    if server == "triton":
        kept = [word for word in kept if not word.startswith(NEWER)]
        kept.append("--cache-directory=" + os.path.join(os.path.dirname(program), "caches"))
        kept.insert(0, "--backend-directory=/opt/tritonserver/backends")  # a flag of the test has precedence
    return kept


def main():
    server, program, folder = sys.argv[1:4]
    arguments = flags(server, program, sys.argv[4:], folder)
    for name in ("PYTHONPATH", "QA_RESULTS"):
        os.environ.pop(name, None)
    command = [program] + (["serve"] + ADDRESSES if server == "tuner" else []) + arguments
    os.execv(program, command)


main()
