package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"tuner/engine/api"
	"tuner/internal/hostinfo"
	"tuner/internal/testserver"
	"tuner/measure"
	"tuner/model/onnx"
	"tuner/model/onnx/build"
	"tuner/runner/meter"
)

// TestMain makes `tuner` a command of the scripts. The test binary, called by that name, is the
// program.
func TestMain(m *testing.M) {
	// under nohup; the programs of tests would inherit that, and survive a hang-up
	if signal.Ignored(syscall.SIGHUP) {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
	if len(os.Args) > 1 && os.Args[1] == "probe" { // a test asks this binary, as tuner asks itself
		os.Exit(Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	testscript.Main(m, map[string]func(){"tuner": func() { os.Exit(Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }})
}

// TestScripts runs testdata/script. Each file is a session at a shell. A script that needs ONNX
// Runtime begins with [!ort] skip 'needs ONNX Runtime: run make test'. One that needs the built
// sample models begins with [!models] in the same way.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Setup:               setupScript,
		Condition:           scriptCondition,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exitcode": exitcode, "testserver": startTestServer, "startserver": startServer, "fill": fill, "replace": replaceText, "makemodel": makeModel,
		},
	})
}

// setupScript hides the user's settings from a script, except those that name resources of tests.
// $TUNER is the program's path, for scripts that change PATH. $JOURNALS is the folder of recorded
// campaigns, $CONFIGS that of the examples.
func setupScript(env *testscript.Env) error {
	program, err := exec.LookPath("tuner")
	if err != nil {
		return err
	}
	journals, err := filepath.Abs("../../testdata/journals")
	if err != nil {
		return err
	}
	env.Setenv("JOURNALS", journals)
	env.Setenv("CONFIGS", filepath.Join(journals, "../../configs"))
	env.Setenv("TUNER", program)
	env.Setenv("TUNER_CACHE", env.WorkDir+"/cache")
	for _, name := range []string{"TUNER_ORT_LIBRARY", "TUNER_MODELS"} {
		env.Setenv(name, os.Getenv(name))
	}
	return nil
}

// scriptCondition answers [ort] and [models], [energy] if the machine reports energy, and [cores] if it has two.
func scriptCondition(name string) (bool, error) {
	switch name {
	case "cores":
		cores, err := hostinfo.Cores()
		return len(cores) > 1, err
	case "energy":
		return meter.ReadSources().Lack(measure.Energy) == "", nil
	case "ort":
		return os.Getenv("TUNER_ORT_LIBRARY") != "", nil
	case "models":
		return os.Getenv("TUNER_MODELS") != "", nil
	}
	return false, errors.New("unknown condition")
}

// exitcode implements the script command "exitcode N command args…": the command must end with exit
// code N.
func exitcode(ts *testscript.TestScript, negated bool, args []string) {
	if negated || len(args) < 2 {
		ts.Fatalf("usage: exitcode N command args…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	var exit *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// startServer implements the script command "startserver REPOSITORY options…". It runs `tuner
// serve` until the script's end. $SERVER_HTTP, $SERVER_GRPC and $SERVER_METRICS are its addresses.
func startServer(ts *testscript.TestScript, negated bool, args []string) {
	if negated || len(args) == 0 {
		ts.Fatalf("usage: startserver REPOSITORY options…")
	}
	announce, child, err := os.Pipe()
	ts.Check(err)
	defer func() { _ = announce.Close() }()
	options := []string{"serve", "--http-port=0", "--grpc-port=0", "--metrics-port=0", "--announce-fd=3", "--model-repository", ts.MkAbs(args[0])}
	cmd := exec.Command(ts.Getenv("TUNER"), append(options, args[1:]...)...)
	cmd.ExtraFiles = []*os.File{child}
	ts.Check(cmd.Start())
	ts.Check(child.Close()) // so that its end closes the file
	ts.Defer(func() {
		if err := errors.Join(cmd.Process.Signal(syscall.SIGTERM), cmd.Wait()); err != nil {
			ts.Logf("startserver: %v", err)
		}
	})
	var at api.Announcement
	ts.Check(json.NewDecoder(announce).Decode(&at))
	ts.Setenv("SERVER_HTTP", at.HTTP)
	ts.Setenv("SERVER_GRPC", at.GRPC)
	ts.Setenv("SERVER_METRICS", at.Metrics)
}

// fill implements the script command "fill FILE.in…". It writes FILE with the values of the
// script's variables.
func fill(ts *testscript.TestScript, negated bool, args []string) {
	if negated || len(args) == 0 {
		ts.Fatalf("usage: fill FILE.in…")
	}
	for _, name := range args {
		text := os.Expand(ts.ReadFile(name), ts.Getenv)
		ts.Check(os.WriteFile(strings.TrimSuffix(ts.MkAbs(name), ".in"), []byte(text), 0o600))
	}
}

// makeModel implements the script command "makemodel FILE". It writes a small model with external
// data, FILE.data. $MODEL_SHA256 is its digest. "makemodel FILE MULTIPLICATIONS" writes a model
// that multiplies that many matrices in each run. "makemodel FILE convolution" writes a model that is
// a convolution alone, and "makemodel FILE scalar" one with an input without dimensions.
func makeModel(ts *testscript.TestScript, negated bool, args []string) {
	if negated || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: makemodel FILE [MULTIPLICATIONS]")
	}
	if len(args) == 2 && args[1] == "convolution" {
		g := build.NewGraph("convolution")
		x := g.Input("x", onnx.Float, onnx.Symbol("batch"), onnx.Fixed(1), onnx.Fixed(8), onnx.Fixed(8))
		y := g.Node("Conv", []string{x, g.Floats("w", []float32{1, 2, 3, 4}, 1, 1, 2, 2)})
		g.OutputAs("y", y, onnx.Float, onnx.Symbol("batch"), onnx.Fixed(1), onnx.Fixed(7), onnx.Fixed(7))
		ts.Check(g.Model().Write(ts.MkAbs(args[0]), 1<<10))
		return
	}
	if len(args) == 2 && args[1] == "scalar" {
		ts.Check(build.Scalar().Write(ts.MkAbs(args[0]), 1<<10))
		return
	}
	if len(args) == 2 {
		n, err := strconv.ParseInt(args[1], 10, 64)
		ts.Check(err)
		ts.Check(build.ConstantTime(n).Write(ts.MkAbs(args[0]), 0))
		return
	}
	path := ts.MkAbs(args[0])
	ts.Check(build.MLP().Write(path, 1))
	m, err := onnx.Read(path)
	ts.Check(err)
	sum, err := m.Digest()
	ts.Check(err)
	ts.Setenv("MODEL_SHA256", sum)
}

// replaceText implements the script command "replace FILE OLD NEW". The file must contain OLD.
func replaceText(ts *testscript.TestScript, negated bool, args []string) {
	if negated || len(args) != 3 {
		ts.Fatalf("usage: replace FILE OLD NEW")
	}
	text := ts.ReadFile(args[0])
	if !strings.Contains(text, args[1]) {
		ts.Fatalf("%s has no %q", args[0], args[1])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(strings.ReplaceAll(text, args[1], args[2])), 0o644))
}

// startTestServer implements the script command "testserver flags…". It runs an inference server
// with known service times until the script's end. $LAW_HTTP and $LAW_GRPC are its addresses.
func startTestServer(ts *testscript.TestScript, _ bool, args []string) {
	ctx, stop := context.WithCancel(context.Background())
	answer, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := testserver.Run(ctx, args, out, os.Stderr)
		_ = out.CloseWithError(err) // returns no error
		ended <- err
	}()
	ts.Defer(func() {
		stop()
		if err := <-ended; err != nil {
			ts.Logf("testserver: %v", err)
		}
	})
	var addresses testserver.Addresses
	ts.Check(json.NewDecoder(answer).Decode(&addresses))
	ts.Setenv("LAW_HTTP", addresses.HTTP)
	ts.Setenv("LAW_GRPC", addresses.GRPC)
}
