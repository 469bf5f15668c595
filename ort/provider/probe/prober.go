// Package probe finds out which ONNX Runtime builds open on this machine, and which of their
// execution providers run a model. It stands between the installed builds (package ortlib) and a
// campaign. Its answers become facts of the search space and lines of `tuner doctor`.
//
// A child process, `tuner probe`, answers each question, since a broken library or provider may
// crash. Package probe/child is the child's side. This package never opens ONNX Runtime itself.
package probe

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"tuner/internal/children"
	"tuner/internal/words"
	"tuner/ort/addon"
	"tuner/ort/ortlib"
)

// Answer is the JSON that a child process prints.
type Answer struct {
	Version      string   `json:"version,omitempty"`   // version of the library
	Providers    []string `json:"providers,omitempty"` // providers that it was compiled with
	Milliseconds float64  `json:"milliseconds,omitempty"`
	// nodes of each provider, in order of preference
	Assigned   []Nodes `json:"assigned,omitempty"`
	Unassigned string  `json:"unassigned,omitempty"` // reason why Assigned is unknown
	// outputs of the model as the session declares them
	Outputs []Output `json:"outputs,omitempty"`
	Error   string   `json:"error,omitempty"` // "": it works
	// cause of Error in ONNX Runtime's log; "": none
	Log     string `json:"-"`
	Crashed bool   `json:"-"` // the child gave no answer: it crashed, hung, or could not start
}

// Nodes is the part of a model that an execution provider took (package ort, Assigned).
type Nodes struct {
	Provider string         `json:"provider"`
	Nodes    int            `json:"nodes"`
	Ops      map[string]int `json:"ops"` // nodes by operator
}

// Output is an output of a session with its shape, -1 for an open size.
type Output struct {
	Name  string  `json:"name"`
	Shape []int64 `json:"shape"`
}

// Prober starts the child processes. Its methods may be called concurrently.
type Prober struct {
	Program string // file of the program that has the verb probe: this one
	// argument 0 of the child, since some programs act by the name with which they are called
	Name    string
	Timeout time.Duration // limit for one child
	// Libraries are opened beside ONNX Runtime for every model that is tried
	Libraries addon.Libraries
}

// New returns a prober that runs this program itself.
func New() (Prober, error) {
	// A GPU provider takes tens of seconds to build its first engine.
	const timeout = 90 * time.Second
	program, err := os.Executable()
	if err != nil {
		return Prober{}, fmt.Errorf("cannot find this program's own file: %w", err)
	}
	return Prober{Program: program, Name: os.Args[0], Timeout: timeout}, nil
}

// Try reports whether a build creates a session with a provider for a model. Without a provider
// ("") the child only opens the library. Without a model ("") it uses a tiny one, and runs it too.
// If the child gives no answer, the result says how it ended.
func (p Prober) Try(ctx context.Context, build ortlib.Build, provider, model string) Answer {
	return p.ask(ctx, build, "--provider", provider, "--model", model)
}

// Optimize lets a child process write the graph that ONNX Runtime makes of a model at an
// optimization level, and open the written file. The answer has no error if both succeed. If
// external is true, the weights go into a second file, which models above 2 GiB need.
func (p Prober) Optimize(ctx context.Context, build ortlib.Build, model, level, file string, external bool) Answer {
	return p.ask(ctx, build, "--model", model, "--optimized", file, "--level", level,
		"--external="+strconv.FormatBool(external))
}

// ask starts the child with these flags.
func (p Prober) ask(ctx context.Context, build ortlib.Build, flags ...string) Answer {
	ctx, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()
	cmd := children.Command(ctx, p.Program, slices.Concat([]string{"probe", "--library", build.Library}, flags, p.Libraries.Flags())...)
	cmd.Args[0] = p.Name
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Env = build.Environment(os.Environ())
	if err := children.Run(cmd); err != nil {
		return Answer{Error: p.failure(ctx, err, stderr.String()), Crashed: true}
	}
	var answer Answer
	if err := json.Unmarshal(stdout.Bytes(), &answer); err != nil {
		return Answer{Error: fmt.Sprintf("unreadable answer of the child process: %v", err), Crashed: true}
	}
	if answer.Error != "" {
		answer.Log = nativeReason(stderr.String())
	}
	return answer
}

// nativeError matches the start of an error in ONNX Runtime's log: terminal colours, time, and
// place in its source.
var nativeError = regexp.MustCompile(`(?m)^\S*\d{4}-\d\d-\d\d \S+ \[[EF]:[^\]]*\] (?:.*\[ONNXRuntimeError\] : \d+ : \w+ : )?`)

// nativeReason returns the last error in ONNX Runtime's log. The program itself only gets the error
// that a provider failed to load. The log names the missing library or the refused option.
func nativeReason(stderr string) string {
	starts := nativeError.FindAllStringIndex(stderr, -1)
	if len(starts) == 0 {
		return ""
	}
	text, _, _ := strings.Cut(stderr[starts[len(starts)-1][1]:], "\x1b")
	return strings.Join(strings.Fields(text), " ")
}

// failure describes the end of a child that gave no answer, with its last output.
func (p Prober) failure(ctx context.Context, err error, stderr string) string {
	var exit *exec.ExitError
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Sprintf("failed: no answer within %v", p.Timeout)
	case ctx.Err() != nil:
		return "failed: interrupted"
	case !errors.As(err, &exit):
		return fmt.Sprintf("failed: %v", err)
	}
	text := "failed: " + exit.String()
	if last := words.Last(stderr); last != "" {
		text += ": " + last
	}
	return text
}
