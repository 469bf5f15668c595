package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"

	"tuner/internal/children"
	"tuner/modelconfig"
	"tuner/ortlib"
)

// probeAnswer is what the child process `tuner probe` finds out.
type probeAnswer struct {
	Version      string          `json:"version,omitempty"`   // of the library
	Providers    []string        `json:"providers,omitempty"` // that it was compiled with
	Milliseconds float64         `json:"milliseconds,omitempty"`
	Assigned     []assignedNodes `json:"assigned,omitempty"`   // which provider took which nodes, in order of preference
	Unassigned   string          `json:"unassigned,omitempty"` // why Assigned is unknown
	Error        string          `json:"error,omitempty"`      // "": it works
	Log          string          `json:"-"`                    // with an error: what ONNX Runtime's log says of it, "" when nothing
}

// prober asks child processes what works: a library or provider that crashes takes only the child along.
type prober struct {
	program string // this program's file
	name    string // what it was called; kept, since links to a program may mean something
	timeout time.Duration
}

// newProber makes a prober of this program itself.
func newProber() (prober, error) {
	// Building a first engine for a GPU takes tens of seconds.
	const timeout = 90 * time.Second
	program, err := os.Executable()
	if err != nil {
		return prober{}, fmt.Errorf("cannot find this program's own file: %w", err)
	}
	return prober{program, os.Args[0], timeout}, nil
}

// probe asks whether a build works with a provider ("": whether the library opens at all) and a model ("": a tiny one).
// However the child ends, the answer says so.
func (p prober) probe(ctx context.Context, build ortlib.Build, provider, model string) probeAnswer {
	return p.ask(ctx, build, "--provider", provider, "--model", model)
}

// optimize has a child process write the graph that ONNX Runtime serves a model with at a level of optimization, and open the
// file again; its answer says whether both succeeded. With external, weights go into a file of their own beside it, as they must
// where a model exceeds 2 GiB.
func (p prober) optimize(ctx context.Context, build ortlib.Build, model string, level modelconfig.GraphLevel, file string, external bool) probeAnswer {
	return p.ask(ctx, build, "--model", model, "--optimized", file, "--level", strconv.Itoa(int(level)), "--external="+strconv.FormatBool(external))
}

// ask starts the child with flags. However it ends, the answer says so.
func (p prober) ask(ctx context.Context, build ortlib.Build, flags ...string) probeAnswer {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	cmd := children.Command(ctx, p.program, append([]string{"probe", "--library", build.Library}, flags...)...)
	cmd.Args[0] = p.name
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Env = build.Environment(os.Environ())
	if err := children.Run(cmd); err != nil {
		return probeAnswer{Error: p.endOfChild(ctx, err, stderr.String())}
	}
	var answer probeAnswer
	if err := json.Unmarshal(stdout.Bytes(), &answer); err != nil {
		return probeAnswer{Error: fmt.Sprintf("unreadable answer of the child process: %v", err)}
	}
	if answer.Error != "" {
		answer.Log = nativeReason(stderr.String())
	}
	return answer
}

// nativeError matches the start of an error in ONNX Runtime's log, with the colours of a terminal and the place in its source.
var nativeError = regexp.MustCompile(`(?m)^\S*\d{4}-\d\d-\d\d \S+ \[[EF]:[^\]]*\] (?:.*\[ONNXRuntimeError\] : \d+ : \w+ : )?`)

// nativeReason returns the last error in ONNX Runtime's log: of a provider whose library does not load, or that refuses an
// option, the error that a program gets says nothing more than that it failed to load.
func nativeReason(stderr string) string {
	starts := nativeError.FindAllStringIndex(stderr, -1)
	if len(starts) == 0 {
		return ""
	}
	text, _, _ := strings.Cut(stderr[starts[len(starts)-1][1]:], "\x1b")
	return strings.Join(strings.Fields(text), " ")
}

// endOfChild says how a child that gave no answer ended, with its last words.
func (p prober) endOfChild(ctx context.Context, err error, stderr string) string {
	var exit *exec.ExitError
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Sprintf("failed: no answer within %v", p.timeout)
	case ctx.Err() != nil:
		return "failed: interrupted"
	case !errors.As(err, &exit):
		return fmt.Sprintf("failed: %v", err)
	}
	text := "failed: " + exit.String()
	if words := lastWords(stderr); words != "" {
		text += ": " + words
	}
	return text
}

// lastWords returns the last line that says something; of Go's report of a crash, the line that says what happened.
func lastWords(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for _, line := range lines {
		if strings.HasPrefix(line, "SIG") || strings.HasPrefix(line, "fatal error: ") {
			return line
		}
	}
	return strings.TrimSpace(lines[len(lines)-1])
}
