package framework

import (
	"bytes"
	"fmt"
)

// scikitLearn is scikit-learn's row: pickles, which may hold models of XGBoost and LightGBM.
func scikitLearn() Framework {
	return Framework{
		Name: "scikit-learn", Files: ".pkl, .pickle, .joblib", program: "sklearn.py",
		is:       func(f file) bool { return !f.isFolder && f.has(".pkl", ".pickle", ".joblib") },
		runsCode: func(string) bool { return true },
		explain:  explainTables,
		byHand:   byHandOf("scikit-learn skl2onnx onnxmltools", "from skl2onnx import to_onnx; see https://onnx.ai/sklearn-onnx"),
	}
}

// xgBoost is XGBoost's row: its own files, which hold data alone.
func xgBoost() Framework {
	return Framework{
		Name: "XGBoost", Files: ".ubj, .json", program: "sklearn.py",
		is: func(f file) bool {
			return !f.isFolder && (f.has(".ubj") || f.has(".json") && bytes.Contains(f.head, []byte(`"learner"`)))
		},
		explain: explainTables,
		byHand:  byHandOf("xgboost onnxmltools skl2onnx", "import onnxmltools; onnxmltools.convert_xgboost(booster, initial_types=…)"),
	}
}

// lightGBM is LightGBM's row: its own files, which hold data alone.
func lightGBM() Framework {
	return Framework{
		Name: "LightGBM", Files: ".txt of Booster.save_model", program: "sklearn.py",
		is: func(f file) bool {
			return !f.isFolder && f.has(".txt") && bytes.HasPrefix(f.head, []byte("tree\nversion="))
		},
		explain: explainTables,
		byHand:  byHandOf("lightgbm onnxmltools skl2onnx", "import onnxmltools; onnxmltools.convert_lightgbm(booster, initial_types=…, zipmap=False)"),
	}
}

// explainTables explains what is special to models of tables; nil for everything else.
func explainTables(r result, python string, _ Source) error {
	switch r.Status {
	case "columns":
		return fmt.Errorf("%s, and tuner exports models that take one matrix of numbers; export the part behind its columns, "+
			"or convert the whole by hand, with an input for each column (https://onnx.ai/sklearn-onnx)", r.Message)
	case "version":
		return fmt.Errorf("another version of scikit-learn has written it, and may compute otherwise (%s); install that version, "+
			"or name a Python that has it with --python (this one is %s)", r.Message, python)
	}
	return nil
}

// byHandOf returns a function that describes how an export is made by hand.
func byHandOf(packages, code string) func(python string, s Source, out string) string {
	return func(python string, _ Source, _ string) string {
		return fmt.Sprintf("  %[1]s -m pip install %[2]s\n  %[1]s: %[3]s", python, packages, code)
	}
}
