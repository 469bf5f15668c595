package cli

import (
	"strings"
	"testing"

	"tuner/internal/exit"
)

// runFlags returns the options for flags.
func runFlags(t *testing.T, flags ...string) runOptions {
	t.Helper()
	var o runOptions
	cmd := newRun(console{})
	cmd.ResetFlags()
	o.addFlags(cmd)
	if err := cmd.ParseFlags(flags); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestRunChecksItsFlags(t *testing.T) {
	t.Parallel()
	check := func(want, flags string, args ...string) {
		t.Helper()
		err := runFlags(t, strings.Fields(flags)...).check(args)
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", flags, err)
		case want != "" && (exit.CodeOf(err) != exit.Usage || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: error %v, want %q with exit code 2", flags, err, want)
		}
	}
	check("", "--p99 30ms --budget 5m --until 2% --objective latency_p99.9 --accuracy 0.995 --precision int8,fp32 -o out", "m.onnx")
	check(`--p99 "30": is a duration without a unit; write 30ms`, "--p99 30", "m.onnx")
	check("", "--mode online --p99 30ms", "m.onnx")
	check(`--mode "fast": is not known; allowed: online, offline`, "--mode fast", "m.onnx")
	check("--mode contradicts -f: the profile says it", "-f p.yaml --mode online")
	check("", "--shape ids:128 --shape mask:128", "m.onnx")
	check("", "-f p.yaml --format json")
	check("", "--in-names x", "m.pt")
	check("name a model", "")
	check("the profile names its own", "-f p.yaml", "m.onnx")
	check("takes one model (2 given)", "", "a.onnx", "b.onnx")
	check(`--format "xml": allowed are text and json`, "--output xml", "m.onnx")
	check("--p99 contradicts -f: the profile says it; edit p.yaml", "-f p.yaml --p99 30ms")
	check("--in-names contradicts -f", "-f p.yaml --in-names x")
	check("--in-names is for models of PyTorch", "--in-names x", "m.onnx")
	check(`--p99 "fast": is not a duration; allowed: a number with a unit`, "--p99 fast", "m.onnx")
	check(`--budget "5": is a duration without a unit`, "--budget 5", "m.onnx")
	check(`--budget "1ms": is out of range; allowed: 1s to 720h0m0s`, "--budget 1ms", "m.onnx")
	check("", "--until 0.02", "m.onnx")
	check("--until \"2\": is not a share; allowed: 0% to 100%, or 0 to 1\n    hint: write 2%", "--until 2", "m.onnx")
	check(`--until "0": must be above 0 and below 1: without it the search continues while anything is worth a trial; allowed: a share: 2%, 0.02`, "--until 0", "m.onnx")
	check("--until contradicts -f: the profile says it; edit p.yaml", "-f p.yaml --until 2%")
	check(`--objective "speed": is not a metric`, "--objective speed", "m.onnx")
	check(`--objective "cost": needs the price of the machine`, "--objective cost", "m.onnx")
	check(`--accuracy "high": must be a number`, "--accuracy high", "m.onnx")
	check(`--precision "fp32, int9": is not a precision that tuner makes; allowed: fp32, fp16, int8, int8_static`, "--precision fp32,int9", "m.onnx")
	check(`--p99 "1ms},memory:{max:1}": expected one value`, "--p99 1ms},memory:{max:1}", "m.onnx")
	check(`--budget "": expected one value`, "--budget=", "m.onnx")
	// All errors at once.
	check(`--budget "soon"`, "--p99 fast --budget soon", "m.onnx")
}
