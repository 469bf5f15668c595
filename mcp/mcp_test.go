package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"tuner/internal/children"
	"tuner/internal/exit"
	"tuner/mcp/roots"
	"tuner/model/onnx/build"
)

// TestMain answers when a tool asks this binary about ONNX Runtime, as tuner asks itself: there is
// none.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "probe" {
		os.Exit(1)
	}
	m.Run()
}

// connect serves the tools in memory, with a folder that has a model, and returns a client's session.
func connect(t *testing.T) (session *sdk.ClientSession, dir string) {
	t.Helper()
	folders, err := roots.Open([]string{t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	s := &server{Options: Options{Program: "/nonexistent"}, roots: folders, closed: make(chan struct{})}
	if err := build.MLP().Write(filepath.Join(folders[0], "mlp.onnx"), 1<<20); err != nil {
		t.Fatal(err)
	}
	protocol := sdk.NewServer(&sdk.Implementation{Name: "tuner", Version: "test"}, nil)
	s.addTools(protocol)
	here, there := sdk.NewInMemoryTransports()
	if _, err := protocol.Connect(t.Context(), here, nil); err != nil {
		t.Fatal(err)
	}
	session, err = sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), there, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return session, folders[0]
}

// Every tool describes itself and its arguments. Its schemas are valid, and those of arguments have
// one type each and no others than those that are named.
func TestToolsDescribeThemselves(t *testing.T) {
	t.Parallel()
	session, _ := connect(t)
	list, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
		if tool.Title == "" || len(tool.Description) < 50 || tool.Annotations == nil || *tool.Annotations.OpenWorldHint {
			t.Errorf("%s: title %q, description %q, annotations %+v", tool.Name, tool.Title, tool.Description, tool.Annotations)
		}
		compiler := jsonschema.NewCompiler()
		for name, schema := range map[string]any{"in": tool.InputSchema, "out": tool.OutputSchema} {
			if err := compiler.AddResource(name+".json", schema); err != nil {
				t.Fatal(err)
			}
			if _, err := compiler.Compile(name + ".json"); err != nil {
				t.Errorf("%s: %s: %v", tool.Name, name, err)
			}
		}
		in := tool.InputSchema.(map[string]any)
		if in["type"] != "object" || in["additionalProperties"] != false {
			t.Errorf("%s takes %v", tool.Name, in)
		}
		properties, _ := in["properties"].(map[string]any)
		for name, p := range properties {
			p := p.(map[string]any)
			if _, isOne := p["type"].(string); !isOne || p["description"] == "" {
				t.Errorf("%s: %s is %v", tool.Name, name, p)
			}
		}
	}
	want := []string{"campaign_status", "compare", "explain", "export", "inspect_model", "read_answer", "start_campaign", "stop_campaign"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
}

// call calls a tool. A failure of the protocol ends the test.
func call(t *testing.T, session *sdk.ClientSession, name string, arguments any) (text string, isError bool) {
	t.Helper()
	result, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: arguments})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return result.Content[0].(*sdk.TextContent).Text, result.IsError
}

// A call that cannot be done is an error of the tool, with a message that says what to change.
func TestRefusedCalls(t *testing.T) {
	t.Parallel()
	session, dir := connect(t)
	for name, text := range map[string]string{
		"torch.pt": "", "text.onnx": "no model", "command.yaml": "model: mlp.onnx\noutput: out\nspace: {precision: [fp32, int8]}\nconstraints: {accuracy: {metric: command, min: 1}}\naccuracy: {command: touch x}\n",
		"wrong.yaml": "model: mlp.onnx\nserch: {}\n", "beside/profile.yaml": "model: ../mlp.onnx\noutput: out\n", "beside/analyze.yaml": "input: out\noutput: /tmp/elsewhere\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	type object = map[string]any
	for _, c := range []struct {
		tool      string
		arguments object
		want      string
	}{
		{"inspect_model", object{"model": "/etc/passwd"}, "outside of the folders that are open here"},
		{"inspect_model", object{"model": "none.onnx"}, "cannot read the model"},
		{"inspect_model", object{"model": "text.onnx"}, "is not an ONNX file but text"},
		{"inspect_model", object{"model": "torch.pt"}, "convert it in a shell: tuner convert"},
		{"inspect_model", object{"model": "mlp.onnx", "allow_pickle": true}, "allow_pickle"},
		{"inspect_model", object{}, "model"},
		{"start_campaign", object{}, "give either a model or a profile"},
		{"start_campaign", object{"model": "mlp.onnx", "profile": "command.yaml"}, "give either a model or a profile"},
		{"start_campaign", object{"profile": "command.yaml", "budget": "5m"}, "contradicts the other arguments"},
		{"start_campaign", object{"profile": "command.yaml"}, "accuracy.command: is a program"},
		{"start_campaign", object{"profile": "wrong.yaml"}, "did you mean"},
		{"start_campaign", object{"profile": "beside/profile.yaml"}, "/tmp/elsewhere"},
		{"start_campaign", object{"profile": "."}, "it is no file"},
		{"start_campaign", object{"model": "mlp.onnx", "output": "/tmp/elsewhere"}, "outside of the folders"},
		{"start_campaign", object{"model": "mlp.onnx", "data": "/etc/passwd"}, "outside of the folders"},
		{"start_campaign", object{"model": "mlp.onnx", "mix": "batch=/etc/passwd.csv"}, "outside of the folders"},
		{"start_campaign", object{"model": "mlp.onnx", "mode": "fast"}, "enum"},
		{"start_campaign", object{"model": "mlp.onnx", "precision": []string{"int4"}}, "enum"},
		{"start_campaign", object{"model": "mlp.onnx"}, "cannot start tuner"}, // the program is none
		{"campaign_status", object{}, "no campaign was started in this session"},
		{"campaign_status", object{"id": "campaign-7"}, `no campaign "campaign-7"`},
		{"stop_campaign", object{}, "no campaign was started in this session"},
		{"read_answer", object{"folder": "."}, "there is no result in"},
		{"explain", object{"folder": "."}, "no campaign in"},
		{"compare", object{"runs": []string{"a"}}, "give 2 to 20"},
		{"compare", object{"runs": []string{"a", "../b"}}, "outside of the folders"},
		{"export", object{"target": "floppy", "folders": []string{"a"}, "output": "b"}, "enum"},
		{"export", object{"target": "helm", "folders": []string{"/tmp"}, "output": "b"}, "outside of the folders"},
		{"export", object{"target": "helm", "folders": []string{"a"}, "output": "/tmp/b"}, "outside of the folders"},
	} {
		if text, isError := call(t, session, c.tool, c.arguments); !isError || !strings.Contains(text, c.want) {
			t.Errorf("%s %v: error %t: %s", c.tool, c.arguments, isError, text)
		}
	}
	if text, isError := call(t, session, "inspect_model", object{"model": "mlp.onnx"}); isError || !strings.Contains(text, "input   INPUT FLOAT[batch,64]") {
		t.Errorf("error %t: %s", isError, text)
	}
}

// Arguments become flags with their values in one word, so that none can be another flag.
func TestRunArguments(t *testing.T) {
	t.Parallel()
	folders, err := roots.Open([]string{t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	s := &server{roots: folders, closed: make(chan struct{})}
	root := folders[0]
	model := filepath.Join(root, "--evil.onnx")
	if err := os.WriteFile(model, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	got, analysis, budget, err := s.runArguments(startIn{Model: "--evil.onnx", Budget: "90s", P99: "--allow-pickle", Precision: []string{"fp32", "int8"},
		Shape: map[string][]int64{"b": {1, 2}, "a": {3}}, Objective: "throughput"})
	want := []string{"run", "--ui=plain", "--within=" + root, "--output-folder=" + filepath.Join(root, "out/evil"), "--budget=90s", "--p99=--allow-pickle", "--objective=throughput",
		"--precision=fp32,int8", "--shape=a:3", "--shape=b:1,2", "--", model}
	if diff := cmp.Diff(want, got); diff != "" || err != nil || budget != 90*time.Second || analysis.Input != filepath.Join(root, "out/evil") || analysis.Output != analysis.Input {
		t.Errorf("%v, %+v, %v (-want +got):\n%s", budget, analysis, err, diff)
	}
}

// The answer of a campaign is that of the analyze.yaml beside its profile, as in the reports of `tuner
// run`: while it is measured, of its folder of results, and later of its own folder.
func TestAnswersFollowTheAnalysis(t *testing.T) {
	t.Parallel()
	folders, err := roots.Open([]string{t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	s := &server{roots: folders, closed: make(chan struct{})}
	at := func(path string) string { return filepath.Join(folders[0], path) }
	measured, err := os.ReadFile("../testdata/journals/guided/journal.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	const impossible = "constraints: {latency_p99: 1us}\n"
	for path, text := range map[string]string{
		"profile.yaml": "model: mlp.onnx\noutput: out\n", "analyze.yaml": "input: out\noutput: results\n" + impossible,
		"out/journal.jsonl": string(measured), "results/report.md": "",
		"own/journal.jsonl": string(measured), "own/analyze.yaml": "input: .\n" + impossible,
		"plain/journal.jsonl": string(measured), "plain/analyze.yaml": "input: ../out\n" + impossible, // of another campaign
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(at(path)), 0o700), os.WriteFile(at(path), []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	args, analysis, _, err := s.runArguments(startIn{Profile: "profile.yaml"})
	if err != nil || len(args) == 0 {
		t.Fatal(err)
	}
	c := &campaign{id: "campaign-1", analysis: analysis, ended: make(chan struct{}), started: time.Now()}
	s.campaigns = append(s.campaigns, c)
	const nothing = "Nothing satisfies p99 ≤ 1 µs"
	if out := c.status(); out.Output != at("results") || out.Answer == nil || !strings.Contains(out.Answer.Headline, nothing) {
		t.Errorf("status: %+v, %+v", out, out.Answer)
	}
	explained := map[string]string{}
	for _, folder := range []string{"out", "results", "own", "plain"} {
		result, _, err := s.explain(t.Context(), nil, folderIn{folder})
		if err != nil {
			t.Fatalf("%s: %v", folder, err)
		}
		explained[folder] = result.Content[0].(*sdk.TextContent).Text
	}
	if explained["out"] != explained["own"] || explained["results"] != explained["own"] || explained["plain"] == explained["own"] {
		t.Errorf("explanations differ, or do not:\n%s", explained)
	}
}

// Only two variables of tuner's own reach its children: the others stand for flags.
func TestVariables(t *testing.T) {
	t.Setenv("TUNER_ALLOW_PICKLE", "true")
	t.Setenv("TUNER_P99", "1ms")
	t.Setenv("TUNER_CACHE", "/cache")
	s := &server{Options: Options{Program: "/tuner"}, roots: roots.Roots{"/"}}
	env := s.command(t.Context(), "run").Env
	if slices.Contains(env, "TUNER_ALLOW_PICKLE=true") || slices.Contains(env, "TUNER_P99=1ms") || !slices.Contains(env, "TUNER_CACHE=/cache") || !slices.Contains(env, "PATH="+os.Getenv("PATH")) {
		t.Errorf("%q", env)
	}
}

// The message of a verb is that with which it ended, without warnings before it.
func TestVerbError(t *testing.T) {
	t.Parallel()
	ended := errors.New("exit status 2")
	for output, want := range map[string]string{
		"note: a\ntuner: cannot read x: gone\n  hint: y\n": "cannot read x: gone\n  hint: y",
		"tuner: one\ntuner: two\n":                         "two",
		"killed":                                           "killed",
		"\x1b[31mtuner: red":                               "\ufffd[31mtuner: red",
		"":                                                 "exit status 2",
	} {
		tail := new(children.Tail)
		_, _ = tail.Write([]byte(output))
		if got := verbError(tail, ended).Error(); got != want {
			t.Errorf("%q: %q, want %q", output, got, want)
		}
	}
}

// Texts are bounded, and stay valid.
func TestBounds(t *testing.T) {
	t.Parallel()
	long := bounded(strings.Repeat("ü", mostText))
	if len(long) > mostText+30 || !strings.HasSuffix(long, "ü\n… (shortened)") {
		t.Errorf("%d bytes, ends with %q", len(long), long[len(long)-30:])
	}
	l := &limited{most: 5}
	for _, part := range []string{"abc", "def", "ghi"} {
		if n, err := l.Write([]byte(part)); n != 3 || err != nil {
			t.Error(n, err)
		}
	}
	if string(l.text) != "abcde" || !l.isCut {
		t.Errorf("%q, cut %t", l.text, l.isCut)
	}
}

// The log finds the lines of steps, however they are cut into parts, and in no other lines.
func TestLogFindsSteps(t *testing.T) {
	t.Parallel()
	const text = "1/7 convert\n  skipped\n4/7 configuration search\n   1  1s  4/7 default\n" + "5/7 " + "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa 1\n6/7 reposi"
	for _, step := range []int{1, 3, len(text)} {
		l := &log{}
		for part := range slices.Chunk([]byte(text), step) {
			_, _ = l.Write(part)
		}
		if got := l.current(); got != "4/7 configuration search" {
			t.Errorf("in steps of %d: %q", step, got)
		}
		_, _ = l.Write([]byte("tory\n"))
		if got := l.current(); got != "6/7 repository" {
			t.Errorf("in steps of %d: %q", step, got)
		}
	}
}

// serve runs a whole server on an input, and returns what it wrote.
func serve(t *testing.T, input string) (out string, err error) {
	t.Helper()
	var b bytes.Buffer
	err = Serve(t.Context(), Options{Roots: []string{t.TempDir()}, Program: "/nonexistent", In: strings.NewReader(input), Out: &b, Messages: io.Discard})
	return b.String(), err
}

const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}` + "\n" +
	`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"

// Calls that were read before the end of the input are answered. Then the server ends.
func TestEndOfInput(t *testing.T) {
	t.Parallel()
	input := hello + `{"jsonrpc":"2.0","id":"a","method":"tools/list"}` + "\n" +
		`{"jsonrpc":"2.0","id":"b","method":"tools/call","params":{"name":"read_answer","arguments":{"folder":"."}}}` + "\n"
	out, err := serve(t, input)
	if err != nil {
		t.Fatal(err)
	}
	ids := map[any]bool{}
	for line := range strings.Lines(out) {
		var message struct {
			ID any `json:"id"`
		}
		if err := json.Unmarshal([]byte(line), &message); err != nil {
			t.Fatalf("%q is no message: %v", line, err)
		}
		ids[message.ID] = true
	}
	if !ids[1.0] || !ids["a"] || !ids["b"] {
		t.Errorf("answers: %v", ids)
	}
}

// What is no message ends the server with an error. Only messages are written before.
func TestMalformedMessages(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"x", "{", `{"jsonrpc":"2.0","id":{},"method":"ping"}`, "[]", `"` + strings.Repeat("a", longestMessage) + `"`, "\x00", `{"a":1}{`, "null"} {
		out, err := serve(t, hello+bad+"\n")
		if err == nil && bad != "null" {
			t.Errorf("%.40q: no error", bad)
		}
		for line := range strings.Lines(out) {
			if !json.Valid([]byte(line)) {
				t.Errorf("%.40q: wrote %q", bad, line)
			}
		}
	}
}

// The end of the context ends the server without an error, also while it reads.
func TestEndOfContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	in, _ := io.Pipe() // nobody writes
	ended := make(chan error)
	go func() {
		ended <- Serve(ctx, Options{Roots: []string{t.TempDir()}, In: in, Out: io.Discard, Messages: io.Discard})
	}()
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := Serve(t.Context(), Options{Roots: []string{"/nonexistent"}, In: in}); exit.CodeOf(err) != exit.Usage {
		t.Error(err)
	}
}

// A call without an answer does not keep the server for ever.
func TestSettle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var ids [2]jsonrpc.ID
		for i, name := range []string{"a", "b"} {
			var err error
			if ids[i], err = jsonrpc.MakeID(name); err != nil {
				t.Fatal(err)
			}
		}
		c := newConnection(silent{}, func() {})
		c.open[ids[0]], c.open[ids[1]] = true, true
		go func() {
			for _, id := range ids {
				time.Sleep(patience / 4)
				_ = c.Write(t.Context(), &jsonrpc.Response{ID: id})
			}
		}()
		begun := time.Now()
		c.settle(t.Context())
		if took := time.Since(begun); took != patience/2 {
			t.Errorf("settled after %v", took)
		}
		c.open[ids[0]] = true
		c.settle(t.Context())
		if took := time.Since(begun); took != patience/2+patience {
			t.Errorf("given up after %v", took)
		}
	})
}

// silent is a connection that takes everything.
type silent struct{ sdk.Connection }

func (silent) Write(context.Context, jsonrpc.Message) error { return nil }

// No input makes the server panic, hang, or write anything but messages.
func FuzzMessages(f *testing.F) {
	for _, seed := range []string{
		"", "x", "{}", `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`,
		`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"inspect_model","arguments":{"model":"../x"}}}`,
		`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"read_answer","arguments":{"folder":"."},"_meta":{"progressToken":1}}}`,
		`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"compare","arguments":{"runs":[".","."],"spread":-1}}}`,
		`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"campaign_status","arguments":{"wait_seconds":1e99}}}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var b bytes.Buffer
		_ = Serve(t.Context(), Options{Roots: []string{t.TempDir()}, Program: "/nonexistent", In: strings.NewReader(hello + text + "\n"), Out: &b, Messages: io.Discard})
		for line := range strings.Lines(b.String()) {
			if !json.Valid([]byte(line)) {
				t.Fatalf("wrote %q", line)
			}
		}
	})
}

// A campaign whose budget has no time says how long it has taken, and nothing of an end.
func TestStatusWithoutTime(t *testing.T) {
	t.Parallel()
	for budget, want := range map[float64]string{0: "a: running after 312 s; ", 600: "a: running after 312 s of 600 s; "} {
		if got := (statusOut{ID: "a", State: "running", Elapsed: 312, Budget: budget}).text(); !strings.HasPrefix(got, want) {
			t.Errorf("a budget of %v s: %q, want it to begin with %q", budget, got, want)
		}
	}
}
