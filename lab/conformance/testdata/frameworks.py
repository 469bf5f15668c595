"""Makes models of a framework, with inputs and the framework's own outputs, for TestFrameworks.

usage: frameworks.py torch|tensorflow|sklearn FOLDER

FOLDER/cases.json lists the models: file, arguments of tuner run, and requests with tensors as in
Triton's JSON.
"""

import json
import os
import pathlib
import pickle
import sys

os.environ["CUDA_VISIBLE_DEVICES"] = "-1"

import numpy as np

random = np.random.default_rng(11)
folder = pathlib.Path(sys.argv[2])
cases = []


def tensor(name, array):
    array = np.asarray(array)
    kinds = {"float32": "FP32", "float64": "FP64", "int64": "INT64", "int32": "INT32"}
    datatype = "BYTES" if array.dtype.kind in "UO" else kinds[array.dtype.name]
    return {"name": name, "shape": list(array.shape), "datatype": datatype, "data": array.ravel().tolist()}


def case(file, inputs, outputs, *arguments):
    rows = range(len(next(iter(inputs.values()))))  # one by one, since the answer of a search may take batches of 1
    requests = [{side: [tensor(n, a[i:i + 1]) for n, a in tensors.items()] for side, tensors in (("inputs", inputs), ("outputs", outputs))} for i in rows]
    cases.append({"file": file, "arguments": list(arguments), "requests": requests})


def torch_models():
    import torch

    torch.manual_seed(3)
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(8, 4)).eval()
    x = torch.from_numpy(random.standard_normal((5, 3, 16, 16)).astype("float32"))
    with torch.no_grad():
        y = net(x).numpy()
        torch.jit.save(torch.jit.script(net), folder / "script.pt")
    torch.save(net, folder / "pickled.pth")
    describes = ["--in-names", "image", "--in-shapes", "[-1,3,16,16]", "--out-names", "scores"]
    case("script.pt", {"image": x.numpy()}, {"scores": y}, *describes)
    case("pickled.pth", {"image": x.numpy()}, {"scores": y}, "--allow-pickle", *describes)


def tensorflow_models():
    import keras
    import tensorflow as tf
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

    keras.utils.set_random_seed(3)
    image = keras.layers.Input((16, 16, 3), name="image")
    size = keras.layers.Input((1,), name="size")
    y = keras.layers.Conv2D(8, 3, activation="relu")(image)
    y = keras.layers.Concatenate()([keras.layers.GlobalAveragePooling2D()(y), size])
    net = keras.Model([image, size], [keras.layers.Dense(4, activation="softmax", name="probabilities")(y), keras.layers.Dense(1, name="score")(y)])
    x = {"image": random.standard_normal((5, 16, 16, 3)).astype("float32"), "size": random.standard_normal((5, 1)).astype("float32")}
    p, s = (t.numpy() for t in net([x["image"], x["size"]], training=False))
    net.save(folder / "functional.keras")
    net.save(folder / "legacy.h5")
    case("functional.keras", x, {"probabilities": p, "score": s})
    case("legacy.h5", x, {"probabilities": p, "score": s})

    class Module(tf.Module):
        def __init__(self):
            super().__init__()
            self.table = tf.Variable(random.standard_normal((10, 6)).astype("float32"))

        @tf.function(input_signature=[tf.TensorSpec((None, None), tf.int64, name="ids")])
        def serve(self, ids):
            return {"sum": tf.reduce_sum(tf.gather(self.table, ids), axis=1), "length": tf.reduce_sum(tf.ones_like(ids), axis=1)}

    module = Module()
    tf.saved_model.save(module, str(folder / "module"), signatures=module.serve)
    ids = random.integers(0, 10, (4, 7))
    case("module", {"ids": ids}, {name: value.numpy() for name, value in module.serve(tf.constant(ids)).items()}, "--shape", "ids:7")

    weights = random.standard_normal((8, 3)).astype("float32")
    frozen = convert_variables_to_constants_v2(tf.function(lambda x: tf.nn.relu(x @ weights)).get_concrete_function(tf.TensorSpec((None, 8), tf.float32, name="x")))
    tf.io.write_graph(frozen.graph, str(folder), "frozen.pb", as_text=False)
    x = random.standard_normal((5, 8)).astype("float32")
    case("frozen.pb", {"x": x}, {"y": np.maximum(x @ weights, 0)}, "--out-names", "y")


def sklearn_models():
    import joblib
    import lightgbm
    import xgboost
    from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    features, classes = load_iris(return_X_y=True)
    features = features.astype("float32")
    named = np.array(["setosa", "versicolor", "virginica"])[classes]
    rows = {"input": features[::10]}

    def classifier(file, model, *arguments):
        case(file, rows, {"label": model.predict(rows["input"]), "probabilities": model.predict_proba(rows["input"]).astype("float32")}, *arguments)

    forest = make_pipeline(StandardScaler(), RandomForestClassifier(20, random_state=1)).fit(features, classes)
    with open(folder / "forest.pkl", "wb") as file:
        pickle.dump(forest, file)
    classifier("forest.pkl", forest, "--allow-pickle")
    texts = make_pipeline(StandardScaler(), RandomForestClassifier(20, random_state=1)).fit(features, named)
    joblib.dump(texts, folder / "named.joblib")
    classifier("named.joblib", texts, "--allow-pickle")
    boosted = make_pipeline(StandardScaler(), lightgbm.LGBMClassifier(n_estimators=20, verbose=-1)).fit(features, classes)
    joblib.dump(boosted, folder / "boosted.joblib")
    classifier("boosted.joblib", boosted, "--allow-pickle")
    light = lightgbm.LGBMClassifier(n_estimators=20, verbose=-1).fit(features, classes)
    light.booster_.save_model(folder / "light.txt")
    classifier("light.txt", light)
    extreme = xgboost.XGBClassifier(n_estimators=20).fit(features, classes)
    extreme.save_model(folder / "extreme.ubj")
    with open(folder / "extreme.pkl", "wb") as file:
        pickle.dump(extreme, file)
    classifier("extreme.ubj", extreme)
    classifier("extreme.pkl", extreme, "--allow-pickle")
    features, values = load_diabetes(return_X_y=True)
    features = features.astype("float32")
    regression = xgboost.XGBRegressor(n_estimators=20).fit(features, values)
    regression.save_model(folder / "regression.json")
    case("regression.json", {"input": features[::40]}, {"variable": regression.predict(features[::40]).reshape(-1, 1)})
    features, classes = load_breast_cancer(return_X_y=True)
    features = features.astype("float32")
    rows = {"input": features[::50]}
    binary = xgboost.XGBClassifier(n_estimators=20).fit(features, classes)
    binary.save_model(folder / "binary.json")
    classifier("binary.json", binary)


{"torch": torch_models, "tensorflow": tensorflow_models, "sklearn": sklearn_models}[sys.argv[1]]()
(folder / "cases.json").write_text(json.dumps(cases), encoding="utf-8")
