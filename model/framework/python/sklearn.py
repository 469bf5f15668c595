"""Exports models of scikit-learn, XGBoost and LightGBM to ONNX, and writes examples (tuner_export.py).

All of them take one matrix of float32, a row for each example. A classifier has two outputs, label
and probabilities; ONNX's maps of probabilities (ZipMap) are left out, since no server returns maps.
"""

import os
import sys
import warnings

import tuner_export
from tuner_export import Refusal

# The operator sets: tree ensembles need ai.onnx.ml 3 at most, which every supported ONNX Runtime has.
ML_OPSET = 3

# Rows of an example: enough to reach many leaves.
ROWS = (48, 64)


class Matrix:
    """A model whose only input is a matrix."""

    sizes = {0: ROWS}

    def __init__(self, request, kind, version, features):
        import numpy

        self.request, self.kind, self.version = request, kind, version
        self.inputs = [{"name": "input", "type": "float32", "shape": [-1, int(features)]}]
        # Columns of several magnitudes reach other leaves than one magnitude alone would.
        self.scale = numpy.float32(10) ** numpy.linspace(-1, 2, int(features)).astype("float32")

    def run(self, arrays):
        import numpy

        try:
            outputs = self.predict(arrays[0])
        except Exception as error:
            raise Refusal("run", error) from error
        return [(name, self.servable(name, numpy.asarray(value))) for name, value in outputs]

    def servable(self, name, value):
        if value.dtype.kind == "f":
            return value.astype("float32")
        if value.dtype.kind == "b":
            return value.astype("int64")
        if value.dtype.kind in "iu":
            return value.astype("int64")
        if value.dtype.kind in "UO" and all(isinstance(v, str) for v in value.flat):
            return value.astype("U")
        raise Refusal("run", f"its output {name} has values of {value.dtype}: only numbers and texts can be served")

    def export(self, path, arrays, names, axes, outputs):
        import onnx

        try:
            made, exporter = self.convert()
        except Refusal:
            raise
        except ImportError as error:
            raise Refusal("packages", error) from error
        except Exception as error:
            raise Refusal("export", f"{type(error).__name__}: {error}") from error
        tuner_export.check_converted(made, self, names)
        onnx.save(tuner_export.finish(made, self, names, outputs, axes), path)
        return exporter

    def initial_types(self, types):
        return [("input", types.FloatTensorType([None, self.inputs[0]["shape"][1]]))]


def column(values):
    return values.reshape(-1, 1) if values.ndim == 1 else values


class Estimator(Matrix):
    """An estimator or pipeline of scikit-learn, with models of XGBoost and LightGBM inside."""

    def __init__(self, request, estimator):
        import sklearn

        check_columns(estimator)
        super().__init__(request, type(estimator).__name__, sklearn.__version__, estimator.n_features_in_)
        self.estimator = estimator

    def predict(self, matrix):
        from sklearn.base import is_classifier

        e = self.estimator
        if is_classifier(e) and hasattr(e, "predict_proba"):
            return [("label", e.predict(matrix)), ("probabilities", e.predict_proba(matrix))]
        if is_classifier(e):
            return [("label", e.predict(matrix)), ("scores", e.decision_function(matrix))]
        if hasattr(e, "predict"):
            return [("variable", column(e.predict(matrix)))]
        return [("variable", e.transform(matrix))]

    def convert(self):
        import skl2onnx
        from skl2onnx.common import data_types
        from sklearn.base import is_classifier

        register()
        options = {id(self.estimator): {"zipmap": False}} if is_classifier(self.estimator) else None
        made = skl2onnx.convert_sklearn(self.estimator, initial_types=self.initial_types(data_types), options=options,
                                        target_opset={"": self.request["opset"], "ai.onnx.ml": ML_OPSET})
        return made, f"skl2onnx {skl2onnx.__version__}"


def check_columns(estimator):
    """Refuses estimators that take anything but one matrix of numbers."""
    if not hasattr(estimator, "n_features_in_"):
        raise Refusal("no_module", f"{type(estimator).__name__}, which does not know its number of features (it is not fitted, or takes texts)")
    steps = [estimator]
    while steps:
        one = steps.pop()
        steps += [step for _, step in getattr(one, "steps", [])]
        for _, transformer, columns in getattr(one, "transformers_", []):
            if any(isinstance(c, str) for c in (columns if isinstance(columns, (list, tuple)) else [columns])):
                raise Refusal("columns", "a ColumnTransformer selects columns by their names")
            if transformer not in ("drop", "passthrough"):
                steps.append(transformer)
        for categories in getattr(one, "categories_", []):
            if getattr(categories, "dtype", None) is not None and categories.dtype.kind in "UO":
                raise Refusal("columns", f"{type(one).__name__} takes columns of texts")


def register():
    """Makes skl2onnx know the models of XGBoost and LightGBM, as far as they are installed."""
    from skl2onnx import update_registered_converter
    from skl2onnx.common.shape_calculator import calculate_linear_classifier_output_shapes, calculate_linear_regressor_output_shapes

    options = {"nocl": [True, False], "zipmap": [True, False, "columns"]}
    if "lightgbm" in sys.modules:
        import lightgbm
        from onnxmltools.convert.lightgbm.operator_converters.LightGbm import convert_lightgbm

        update_registered_converter(lightgbm.LGBMClassifier, "TunerLGBMClassifier", calculate_linear_classifier_output_shapes, convert_lightgbm, options=options)
        update_registered_converter(lightgbm.LGBMRegressor, "TunerLGBMRegressor", calculate_linear_regressor_output_shapes, convert_lightgbm)
    if "xgboost" in sys.modules:
        import xgboost
        from onnxmltools.convert.xgboost.operator_converters.XGBoost import convert_xgboost

        update_registered_converter(xgboost.XGBClassifier, "TunerXGBClassifier", calculate_linear_classifier_output_shapes, convert_xgboost, options=options)
        update_registered_converter(xgboost.XGBRegressor, "TunerXGBRegressor", calculate_linear_regressor_output_shapes, convert_xgboost)


def labelled(scores):
    """Returns label and probabilities of a classifier that gives one number for two classes, or one for each class."""
    import numpy

    if scores.ndim == 1:
        scores = numpy.stack([1 - scores, scores], axis=1)
    return [("label", scores.argmax(axis=1)), ("probabilities", scores)]


class XGBoost(Matrix):
    def __init__(self, request, booster):
        import json

        import xgboost

        super().__init__(request, "XGBoost model", xgboost.__version__, booster.num_features())
        self.booster = booster
        self.objective = json.loads(booster.save_config())["learner"]["objective"]["name"]
        if self.objective in ("multi:softmax", "binary:hinge", "binary:logitraw") or self.objective.startswith(("rank:", "survival:")):
            raise Refusal("export", f"the objective {self.objective} is not converted; train with multi:softprob or binary:logistic")

    def predict(self, matrix):
        import xgboost

        scores = self.booster.predict(xgboost.DMatrix(matrix), validate_features=False)
        return labelled(scores) if self.objective.startswith(("binary:", "multi:")) else [("variable", column(scores))]

    def convert(self):
        import onnxmltools
        from onnxmltools.convert.common import data_types

        self.booster.feature_names = None
        made = onnxmltools.convert_xgboost(self.booster, initial_types=self.initial_types(data_types), target_opset=min(self.request["opset"], 15))
        return made, f"onnxmltools {onnxmltools.__version__}"


class LightGBM(Matrix):
    def __init__(self, request, booster):
        import lightgbm

        super().__init__(request, "LightGBM model", lightgbm.__version__, booster.num_feature())
        self.booster = booster
        self.objective = (booster.params.get("objective") or objective_of(booster)).split(" ")[0]

    def predict(self, matrix):
        scores = self.booster.predict(matrix)
        return labelled(scores) if self.objective in ("binary", "multiclass", "multiclassova") else [("variable", column(scores))]

    def convert(self):
        import onnxmltools
        from onnxmltools.convert.common import data_types

        made = onnxmltools.convert_lightgbm(self.booster, initial_types=self.initial_types(data_types), zipmap=False,
                                            target_opset=min(self.request["opset"], 15))
        return made, f"onnxmltools {onnxmltools.__version__}"


def objective_of(booster):
    return next((line.split("=", 1)[1] for line in booster.model_to_string(num_iteration=1).splitlines() if line.startswith("objective=")), "")


def unpickle(path):
    """Loads a pickle, which runs the code that it names. The caller has the user's permission."""
    sys.path[:0] = [os.getcwd(), os.path.dirname(os.path.abspath(path))]
    import joblib

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", category=version_warning())
            return joblib.load(path)  # also what pickle.dump has written
    except (AttributeError, ModuleNotFoundError) as error:
        is_library = (getattr(error, "name", None) or "").split(".")[0] in ("sklearn", "lightgbm", "xgboost", "scipy", "pandas", "numpy")
        raise Refusal("packages" if is_library else "classes", error) from error
    except UserWarning as error:
        raise Refusal("version", str(error).splitlines()[0]) from error
    except Exception as error:
        raise Refusal("unreadable", error) from error


def version_warning():
    from sklearn.exceptions import InconsistentVersionWarning

    return InconsistentVersionWarning


def load(request):
    path, ending = request["path"], os.path.splitext(request["path"])[1].lower()
    if ending in (".json", ".ubj"):
        import onnxmltools  # noqa: F401 (the converter)
        import xgboost

        return XGBoost(request, read(lambda: xgboost.Booster(model_file=path)))
    if ending == ".txt":
        import lightgbm
        import onnxmltools  # noqa: F401 (the converter)

        return LightGBM(request, read(lambda: lightgbm.Booster(model_file=path)))
    if not request["allow_pickle"]:
        raise Refusal("pickle")
    import skl2onnx  # noqa: F401 (the converter)

    return of_object(request, unpickle(path))


def read(open_model):
    try:
        return open_model()
    except Exception as error:
        raise Refusal("unreadable", str(error).splitlines()[0]) from error


def of_object(request, found):
    from sklearn.base import BaseEstimator

    if isinstance(found, BaseEstimator):
        return Estimator(request, found)
    for module, name, adapter in (("xgboost", "Booster", XGBoost), ("lightgbm", "Booster", LightGBM)):
        if module in sys.modules and isinstance(found, getattr(sys.modules[module], name)):
            return adapter(request, found)
    raise Refusal("no_module", f"{type(found).__module__}.{type(found).__name__}")


tuner_export.main(load)
