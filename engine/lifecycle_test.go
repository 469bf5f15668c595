package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tuner/engine"
	"tuner/engine/api"
	"tuner/engine/enginetest"
	"tuner/engine/fault"
	"tuner/engine/sequence"
	"tuner/model/modelconfig"
	"tuner/model/modelconfig/configpb"
)

// checkEcho sends a request and checks the answer: the fake model repeats its inputs.
func checkEcho(ctx context.Context, s *engine.Server, rows int64, mark byte) error {
	r := request(rows)
	for i := range r.Inputs {
		for k := range r.Inputs[i].Data {
			r.Inputs[i].Data[k] = mark + byte(i)
		}
	}
	response, err := s.Infer(ctx, r)
	if err != nil {
		return err
	}
	defer response.Release()
	for i, out := range response.Outputs {
		if !bytes.Equal(out.Data, r.Inputs[i].Data) {
			return fmt.Errorf("output %s is not input %s", out.Name, r.Inputs[i].Name)
		}
	}
	return nil
}

// Reloads of every kind happen one after the other, under requests from several clients. Each
// request is answered correctly.
func TestReloadLosesNoRequest(t *testing.T) {
	t.Parallel()
	b := &enginetest.Backend{}
	s, _ := open(t, b, "max_batch_size: 4")
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	var answered atomic.Int64
	for worker := range 4 {
		wg.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				if err := checkEcho(t.Context(), s, int64(1+i%3), byte(17*worker+i)); err != nil {
					t.Error(err)
					return
				}
				answered.Add(1)
			}
		})
	}
	for i := range 200 {
		config := fmt.Sprintf(`{"max_batch_size":%d,"dynamic_batching":{"max_queue_delay_microseconds":%d},"instance_group":[{"count":%d}]}`, 3+i%5, 50*(i%2), 1+i/4%3)
		if i%50 == 49 {
			config = "" // back to the file
		}
		if err := s.Load(t.Context(), "m", engine.Override{Config: config}); err != nil {
			t.Fatalf("load %d: %v", i, err)
		}
	}
	cancel()
	wg.Wait()
	if answered.Load() == 0 {
		t.Error("no request was answered meanwhile")
	}
}

// Loads, unloads and requests happen at the same time. Each request is answered correctly, or told
// that the model is not available.
func TestConcurrentLifecycle(t *testing.T) {
	t.Parallel()
	s, _ := open(t, &enginetest.Backend{}, "max_batch_size: 4")
	var wg sync.WaitGroup
	for worker := range 3 {
		wg.Go(func() {
			for range 40 {
				if err := s.Load(t.Context(), "m", engine.Override{}); err != nil {
					t.Error(err)
				}
				if worker == 0 {
					if err := errors.Join(s.Unload("m"), s.Unload("m")); err != nil {
						t.Error(err)
					}
				}
			}
		})
		wg.Go(func() {
			for i := range 400 {
				if err := checkEcho(t.Context(), s, 1, byte(i)); err != nil && fault.CodeOf(err) != fault.NotFound {
					t.Error(err)
				}
				if _, err := s.Index(i%2 == 0); err != nil {
					t.Error(err)
				}
				s.Ready()
				s.Metrics()
			}
		})
	}
	wg.Wait()
}

// While a model is being freed its state is UNLOADING, also after a second unload.
func TestUnloadTwice(t *testing.T) {
	t.Parallel()
	running, finish := make(chan struct{}), make(chan struct{})
	b := &enginetest.Backend{ServiceTime: func(int, int) time.Duration { close(running); <-finish; return 0 }}
	s, _ := open(t, b, "max_batch_size: 4")
	answer := make(chan error, 1)
	go func() { answer <- checkEcho(context.WithoutCancel(t.Context()), s, 1, 9) }()
	<-running
	state := func() string {
		entries, err := s.Index(false)
		if err != nil || len(entries) != 1 {
			t.Fatalf("index %v, %v", entries, err)
		}
		return entries[0].State + entries[0].Reason
	}
	for range 2 {
		if err := s.Unload("m"); err != nil {
			t.Error(err)
		}
		if got := state(); got != api.StateUnloading {
			t.Errorf("state %s, want %s: a request is still running", got, api.StateUnloading)
		}
	}
	close(finish)
	if err := <-answer; err != nil {
		t.Errorf("the request that was running: %v", err)
	}
	for deadline := time.Now().Add(10 * time.Second); state() != "UNAVAILABLEunloaded"; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("state %s", state())
		}
	}
}

// A reload resets the statistics, unless only instances were changed. An unload resets the metrics.
func TestStatisticsAcrossReloads(t *testing.T) {
	t.Parallel()
	s, _ := open(t, &enginetest.Backend{}, "max_batch_size: 4")
	check := func(what string, load string, statistics, metrics uint64) {
		t.Helper()
		if load != "-" {
			if err := s.Load(t.Context(), "m", engine.Override{Config: load}); err != nil {
				t.Fatal(err)
			}
		}
		if err := checkEcho(t.Context(), s, 2, 1); err != nil {
			t.Fatal(err)
		}
		got, err := s.Statistics("m", 1)
		if err != nil {
			t.Fatal(err)
		}
		shown := s.Metrics()[0].Statistics
		counts := []uint64{got.ModelStats[0].InferenceCount, got.ModelStats[0].BatchStats[0].ComputeInfer.Count, shown.InferenceCount, shown.BatchStats[0].ComputeInfer.Count}
		if d := cmp.Diff([]uint64{2 * statistics, statistics, 2 * metrics, metrics}, counts); d != "" {
			t.Errorf("%s: statistics and metrics (-want +got):\n%s", what, d)
		}
	}
	check("at first", "-", 1, 1)
	check("batching changed", `{"max_batch_size":8}`, 1, 2)
	check("instances changed", `{"max_batch_size":8,"instance_group":[{"count":1}]}`, 2, 3)
	check("sessions changed", `{"max_batch_size":8,"parameters":{"intra_op_thread_count":{"string_value":"1"}}}`, 1, 4)
	if err := s.Unload("m"); err != nil {
		t.Fatal(err)
	}
	check("loaded again", "", 1, 1)
}

// A reload that keeps the sessions keeps what the server adds to requests: inputs that are made of the shapes of
// a batch's requests, and the check of what a control must tell.
func TestReloadKeepsWhatIsAdded(t *testing.T) {
	t.Parallel()
	tensor := func(name string, dataType configpb.DataType, dims ...int64) modelconfig.Tensor {
		return modelconfig.Tensor{Name: name, DataType: dataType, Dims: dims}
	}
	const integer = configpb.DataType_TYPE_INT32
	for name, tc := range map[string]struct {
		io      modelconfig.ModelIO
		config  string
		request engine.Request
		want    string // an error, or the data of output N
	}{
		// The fake model returns its second input as N: one element in the only request.
		"ragged": {
			modelconfig.ModelIO{
				Inputs:  []modelconfig.Tensor{tensor("X", integer, -1), tensor("COUNT", integer, -1)},
				Outputs: []modelconfig.Tensor{tensor("Y", integer, -1, 1), tensor("N", integer, -1, 1)},
			},
			`max_batch_size: 4 input { name: "X" data_type: TYPE_INT32 dims: [ -1 ] allow_ragged_batch: true }
			output [ { name: "Y" data_type: TYPE_INT32 dims: [ 1 ] }, { name: "N" data_type: TYPE_INT32 dims: [ 1 ] } ]
			batch_input { kind: BATCH_ELEMENT_COUNT target_name: "COUNT" data_type: TYPE_INT32 source_input: "X" }`,
			engine.Request{}, "\x01\x00\x00\x00",
		},
		"sequences": {
			modelconfig.ModelIO{
				Inputs:  []modelconfig.Tensor{tensor("X", integer, -1, 1), tensor("ID", configpb.DataType_TYPE_UINT64, -1, 1)},
				Outputs: []modelconfig.Tensor{tensor("Y", integer, -1, 1)},
			},
			`max_batch_size: 4 input { name: "X" data_type: TYPE_INT32 dims: [ 1 ] } output { name: "Y" data_type: TYPE_INT32 dims: [ 1 ] }
			sequence_batching { control_input { name: "ID" control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 } } }`,
			engine.Request{Sequence: sequence.ID{Text: "a text"}, Start: true},
			"[request id: <id_unknown>] sequence batching control 'ID' data-type is 'BYTES', but model 'm' expects 'UINT64'",
		},
	} {
		b := &enginetest.Backend{IO: tc.io}
		s, root := open(t, b, tc.config)
		created := b.Created()
		for when, comment := range []string{"", "# another text"} {
			write(t, filepath.Join(root, "m", "config.pbtxt"), tc.config+"\n"+comment)
			if err := s.Load(t.Context(), "m", engine.Override{}); err != nil {
				t.Fatal(err)
			}
			r := tc.request
			r.Model, r.Inputs = "m", []engine.Tensor{{Name: "X", DataType: integer, Shape: []int64{1, 1}, Data: []byte("data")}}
			response, err := s.Infer(t.Context(), &r)
			got := ""
			if err != nil {
				got = err.Error()
			} else {
				n, _ := byName(response, "N")
				got = string(n.Data)
				response.Release()
			}
			if got != tc.want {
				t.Errorf("%s, after reload %d: got %q, want %q", name, when, got, tc.want)
			}
		}
		if b.Created() != created {
			t.Errorf("%s: the reloads made %d sessions", name, b.Created()-created)
		}
	}
}

// A changed model_warmup is run, although the sessions could have stayed.
func TestChangedWarmupIsRun(t *testing.T) {
	t.Parallel()
	b := &enginetest.Backend{}
	s, _ := open(t, b, "max_batch_size: 4")
	warm := func(rows int) string {
		return fmt.Sprintf(`{"max_batch_size":4,"model_warmup":[{"name":"w","batch_size":%d,"inputs":{"INPUT0":{"data_type":"TYPE_INT32","dims":[16],"zero_data":true},"INPUT1":{"data_type":"TYPE_INT32","dims":[16],"zero_data":true}}}]}`, rows)
	}
	for i, rows := range []int{2, 3, 3} {
		if err := s.Load(t.Context(), "m", engine.Override{Config: warm(rows)}); err != nil {
			t.Fatal(err)
		}
		if got, want := b.Created(), []int{4, 6, 6}[i]; got != want {
			t.Errorf("load %d: %d sessions were made, want %d", i, got, want)
		}
	}
	if err := s.Load(t.Context(), "m", engine.Override{Config: strings.Replace(warm(3), `"max_batch_size":4`, `"max_batch_size":2`, 1)}); err == nil {
		t.Error("a sample of 3 rows was accepted for batches of at most 2")
	}
}

// The files of an override exist as long as the model.
func TestFileOverrideIsRemoved(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	s, _ := open(t, &enginetest.Backend{}, "")
	files := map[string][]byte{"1/model.onnx": {1}, "1/sub/dir/weights.bin": {2}, "labels.txt": {3}}
	for _, model := range []string{"m", "nowhere"} { // the second is in no repository
		if err := s.Load(t.Context(), model, engine.Override{Config: `{}`, Files: files}); err != nil {
			t.Fatalf("%s: %v", model, err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(temp, "tuner-models-*", "*", "*", "1", "sub", "dir", "weights.bin")); len(left) != 2 {
		t.Errorf("files %v, want those of two models", left)
	}
	for _, path := range []string{"../x", "/etc/x", "1/../../x", `..\x`, ""} {
		err := s.Load(t.Context(), "m", engine.Override{Config: `{}`, Files: map[string][]byte{path: nil}})
		if err == nil || err.Error() != "failed to load 'm', failed to poll from model repository" {
			t.Errorf("file %q: got %v, want a refusal", path, err)
		}
	}
	if err := errors.Join(s.Unload("m"), s.Unload("nowhere")); err != nil {
		t.Error(err)
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		// a model that is in no repository disappears with its last version
		got, err := s.Index(false)
		if err == nil && len(got) == 1 && got[0].Name == "m" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("index %v, %v", got, err)
		}
	}
	s.Close()
	if left, _ := os.ReadDir(temp); len(left) != 0 {
		t.Errorf("%d folders are left", len(left))
	}
}

func TestSeveralRepositories(t *testing.T) {
	t.Parallel()
	first, second := t.TempDir(), t.TempDir()
	for name, roots := range map[string][]string{"a": {first}, "b": {second}, "both": {first, second}} {
		for _, root := range roots {
			enginetest.WriteModel(t, root, name, "")
		}
	}
	s, err := engine.Open(t.Context(), engine.Options{
		Repositories: []string{first, second}, Explicit: true, LoadModels: []string{"a", "b"}, StrictReadiness: true, ExitOnError: true,
		Backend: &enginetest.Backend{}, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Load(t.Context(), "both", engine.Override{}); err == nil || err.Error() != "failed to load 'both', failed to poll from model repository" {
		t.Errorf("model in two repositories: got %v", err)
	}
	ready := []api.IndexEntry{{Name: "a", Version: "1", State: "READY"}, {Name: "b", Version: "1", State: "READY"}}
	all := append(ready[:2:2], api.IndexEntry{Name: "both", State: "UNAVAILABLE", Reason: "model appears in two or more repositories"})
	for onlyReady, want := range map[bool][]api.IndexEntry{true: ready, false: all} {
		got, err := s.Index(onlyReady)
		if d := cmp.Diff(want, got); d != "" || err != nil {
			t.Errorf("index, only ready %v: %v (-want +got):\n%s", onlyReady, err, d)
		}
	}
}

// The failures at the start, and their effect on the server's readiness, are those of a real
// Triton. A folder that is not a model does not count. A model that cannot be loaded, or has no
// version, does.
func TestStartFailures(t *testing.T) {
	t.Parallel()
	good := api.IndexEntry{Name: "good", Version: "1", State: "READY"}
	for name, tc := range map[string]struct {
		config string
		spoil  func(dir string) error
		ready  bool
		index  []api.IndexEntry
	}{
		"no model": {"no_such_field: 1", nil, true, []api.IndexEntry{{Name: "bad"}, good}},
		"no session": {"max_batch_size: 3", nil, false,
			[]api.IndexEntry{{Name: "bad", Version: "1", State: "UNAVAILABLE", Reason: "Internal: broken"}, good}},
		"no version": {`backend: "onnxruntime"`, func(dir string) error { return os.RemoveAll(filepath.Join(dir, "1")) }, false, []api.IndexEntry{good}},
	} {
		root := t.TempDir()
		enginetest.WriteModel(t, root, "good", "")
		enginetest.WriteModel(t, root, "bad", tc.config)
		if tc.spoil != nil {
			if err := tc.spoil(filepath.Join(root, "bad")); err != nil {
				t.Fatal(err)
			}
		}
		o := engine.Options{Repositories: []string{root}, ExitOnError: true, Log: slog.New(slog.DiscardHandler), Backend: &enginetest.Backend{
			FailLoad: func(c *modelconfig.Config) error {
				if c.GetMaxBatchSize() == 3 {
					return errors.New("broken")
				}
				return nil
			}}}
		if _, err := engine.Open(t.Context(), o); err == nil || !strings.HasPrefix(err.Error(), "creating server: Internal - failed to load all models") {
			t.Errorf("%s: got %v, want the failure", name, err)
		}
		o.ExitOnError = false
		for _, o.StrictReadiness = range []bool{true, false} {
			s, err := engine.Open(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			if want := tc.ready || !o.StrictReadiness; s.Ready() != want || s.ModelReady("good", 0) != nil {
				t.Errorf("%s: ready %v, want %v; good model %v", name, s.Ready(), want, s.ModelReady("good", 0))
			}
			got, err := s.Index(false)
			if d := cmp.Diff(tc.index, got); d != "" || err != nil {
				t.Errorf("%s: %v, index (-want +got):\n%s", name, err, d)
			}
			s.Close()
		}
	}
}

// A load request for a model without versions makes the server unready until the model is unloaded.
func TestModelWithoutVersions(t *testing.T) {
	t.Parallel()
	s, root := open(t, &enginetest.Backend{}, "")
	if err := os.MkdirAll(filepath.Join(root, "none"), 0o755); err != nil {
		t.Fatal(err)
	}
	want := "load failed for model 'none': at least one version must be available under the version policy of model 'none'\n"
	if err := s.Load(t.Context(), "none", engine.Override{Config: `{"backend":"onnxruntime"}`}); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if s.Ready() {
		t.Error("ready")
	}
	if err := s.Unload("none"); err != nil || !s.Ready() {
		t.Errorf("after unloading: %v, ready %v", err, s.Ready())
	}
}

// A server answers before its models are loaded, and is not ready then.
func TestNewIsNotReady(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	o := engine.Options{Repositories: []string{root}, Backend: &enginetest.Backend{}, Log: slog.New(slog.DiscardHandler)}
	s, err := engine.New(o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if s.Ready() {
		t.Error("ready before LoadAll")
	}
	if err := s.LoadAll(t.Context()); err != nil || !s.Ready() {
		t.Errorf("an empty repository: %v, ready %v; want ready, as a real Triton is", err, s.Ready())
	}
	o.Repositories, o.ExitOnError = append(o.Repositories, filepath.Join(root, "none")), true
	if _, err := engine.New(o); err == nil || err.Error() != "creating server: Internal - failed to stat file "+filepath.Join(root, "none") {
		t.Errorf("missing repository: got %v", err)
	}
}

// Where a missing repository is no error, the server answers. As in Triton, it has no models, and is
// neither live nor ready.
func TestMissingRepository(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	enginetest.WriteModel(t, root, "m", "")
	o := engine.Options{Repositories: []string{root, filepath.Join(root, "none")}, Backend: &enginetest.Backend{}, Log: slog.New(slog.DiscardHandler)}
	s, err := engine.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if index, err := s.Index(false); err != nil || len(index) != 0 || s.Live() || s.Ready() {
		t.Errorf("models %v, %v; live %v, ready %v", index, err, s.Live(), s.Ready())
	}
}

// An interrupted start is not a failure of the models: the error is the context's.
func TestInterruptedStart(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	enginetest.WriteModel(t, root, "m", "")
	for _, exitOnError := range []bool{true, false} {
		ctx, interrupt := context.WithCancel(t.Context())
		b := &enginetest.Backend{FailLoad: func(*modelconfig.Config) error { interrupt(); return ctx.Err() }}
		_, err := engine.Open(ctx, engine.Options{Repositories: []string{root}, ExitOnError: exitOnError, Backend: b, Log: slog.New(slog.DiscardHandler)})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("exit on error %v: got %v, want %v", exitOnError, err, context.Canceled)
		}
	}
}

// Names that are not folders of a repository reach no file in any request.
func TestOddModelNames(t *testing.T) {
	t.Parallel()
	s, _ := open(t, &enginetest.Backend{}, "")
	for _, name := range []string{"", " ", ".", "..", "../m", "m/1", "/m", `..\m`, "m\x00", "stats", strings.Repeat("m", 1<<16)} {
		_, inferred := s.Infer(t.Context(), &engine.Request{Model: name})
		_, described := s.ModelMetadata(name, 0)
		_, configured := s.ModelConfig(name, 1)
		for _, err := range []error{inferred, described, configured, s.ModelReady(name, 0)} {
			if fault.CodeOf(err) != fault.NotFound {
				t.Errorf("%.20q: got %.80v, want not found", name, err)
			}
		}
		if _, err := s.Statistics(name, 1); name != "" && fault.CodeOf(err) != fault.InvalidArgument {
			t.Errorf("statistics of %.20q: got %.80v, want invalid argument", name, err)
		}
		if err := s.Load(t.Context(), name, engine.Override{}); fault.CodeOf(err) != fault.Internal {
			t.Errorf("load of %.20q: got %.80v, want a failed poll", name, err)
		}
		if err := s.Unload(name); err != nil {
			t.Errorf("unload of %.20q: %.80v", name, err)
		}
	}
	if got, err := s.Index(false); err != nil || len(got) != 1 || !s.Ready() {
		t.Errorf("index %v, %v, ready %v; want the one model, as before", got, err, s.Ready())
	}
}

// A link must not lead a reader out of the repository.
func TestLinksStayInside(t *testing.T) {
	t.Parallel()
	outside := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(outside, []byte(`max_batch_size: 4`), 0o644); err != nil {
		t.Fatal(err)
	}
	for path, config := range map[string]string{
		"config.pbtxt":  "",
		"1/model.onnx":  "max_batch_size: 4",
		"1/weights.bin": "max_batch_size: 4",
		"labels.txt":    `output { name: "OUTPUT0" data_type: TYPE_INT32 dims: 16 label_filename: "labels.txt" } max_batch_size: 4`,
	} {
		s, root := open(t, &enginetest.Backend{}, "")
		enginetest.WriteModel(t, root, "linked", config)
		link := filepath.Join(root, "linked", path)
		_ = os.Remove(link) // most do not exist
		if err := os.Symlink(outside, link); err != nil {
			t.Fatal(err)
		}
		if err := s.Load(t.Context(), "linked", engine.Override{}); err == nil || !strings.Contains(err.Error(), "leads out of the model repository") {
			t.Errorf("%s: got %v, want a refusal", path, err)
		}
		// The same link is allowed if it stays inside.
		inside := filepath.Join(root, "inside")
		if err := errors.Join(os.WriteFile(inside, []byte("max_batch_size: 4"), 0o644), os.Remove(link), os.Symlink(inside, link)); err != nil {
			t.Fatal(err)
		}
		if err := s.Load(t.Context(), "linked", engine.Override{}); err != nil {
			t.Errorf("%s, link to the inside: %v", path, err)
		}
	}
}

// Files that are not regular are not read: reading a pipe would never end.
func TestOnlyRegularFilesAreRead(t *testing.T) {
	t.Parallel()
	s, root := open(t, &enginetest.Backend{}, "")
	enginetest.WriteModel(t, root, "odd", "")
	if err := os.Mkdir(filepath.Join(root, "odd", "config.pbtxt"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := s.Load(t.Context(), "odd", engine.Override{}); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("got %v", err)
	}
	large := make([]byte, modelconfig.MaxText+1)
	enginetest.WriteModel(t, root, "large", string(large))
	if err := s.Load(t.Context(), "large", engine.Override{}); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("large configuration: got %v", err)
	}
}
