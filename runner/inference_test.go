package runner

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tuner/engine/api"
	"tuner/measure"
)

// wired launches engines that answer on an HTTP server of the test.
type wired struct {
	lab
	address string
}

func (w *wired) Launch(ctx context.Context, s Server) (Engine, error) {
	e, err := w.lab.Launch(ctx, s)
	return addressed{e, w.address}, err
}

// addressed is an engine with an address.
type addressed struct {
	Engine
	address string
}

func (a addressed) Address() api.Announcement { return api.Announcement{HTTP: a.address} }

// TestInference uses a real connection. The request carries the job's model, and the outputs are
// decoded.
func TestInference(t *testing.T) {
	t.Parallel()
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Path)
		if !strings.HasSuffix(r.URL.Path, "/infer") {
			return
		}
		header := `{"outputs":[{"name":"y","datatype":"INT8","shape":[2],"parameters":{"binary_data_size":2}}]}`
		w.Header().Set(api.HeaderLength, strconv.Itoa(len(header)))
		_, _ = w.Write([]byte(header + "\x01\x02"))
	}))
	defer server.Close()
	w := &wired{address: strings.TrimPrefix(server.URL, "http://")}
	i, err := OpenInference(t.Context(), Options{Launcher: w, Dial: HTTP}, InferenceJob{Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	outputs, err := i.Infer(t.Context(), api.InferRequest{Inputs: []api.Tensor{{Name: "x", Datatype: "INT8", Shape: []int64{1}, Data: []byte{1}}}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]api.Tensor{{Name: "y", Datatype: "INT8", Shape: []int64{2}, Data: []byte{1, 2}}}, outputs); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	i.Close(t.Context())
	i.Close(t.Context())
	if diff := cmp.Diff([]string{"/v2/repository/models/m/load", "/v2/models/m/infer"}, asked); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if w.last().stops == 0 {
		t.Error("the engine was not stopped")
	}
}

// TestInferenceFailures checks that faults of the engine are EngineErrors, and that no engine stays
// behind.
func TestInferenceFailures(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(*lab)
		want  measure.Failure
	}{
		"does not start":    {func(l *lab) { l.startError = &StartError{"not ready"} }, measure.Failure{Stage: measure.StageStart, Reason: "not ready"}},
		"refuses the model": {func(l *lab) { l.loadError = &api.StatusError{Status: 3, Text: "no such operator; "} }, measure.Failure{Stage: measure.StageLoad, Reason: "no such operator"}},
		"loads for ever": {func(l *lab) { l.loadTakes = time.Hour },
			measure.Failure{Stage: measure.StageHang, Reason: "loading the model took more than 2m0s; its last output:\nlast words"}},
		"dies while loading": {func(l *lab) {
			l.loadError = errors.New("connection reset")
			// after its load failed, which happens at 400 ms
			time.AfterFunc(450*ms, func() { l.last().die(Exit{Text: "signal: aborted"}) })
		}, measure.Failure{Stage: measure.StageCrash, Reason: "the engine ended by itself (signal: aborted); its last output:\nlast words"}},
		"refuses the request": {func(l *lab) {
			l.send = func(*engine, int) error { return &api.StatusError{Status: 3, Text: "out of range"} }
		},
			measure.Failure{Stage: measure.StageErrors, Reason: "out of range"}},
		"answers never": {func(l *lab) { l.service = time.Hour },
			measure.Failure{Stage: measure.StageHang, Reason: "an inference took more than 2m0s; its last output:\nlast words"}},
		"dies in the request": {func(l *lab) {
			l.send = func(e *engine, _ int) error { e.die(Exit{Text: "signal: killed", OutOfMemory: true}); return nil }
		}, measure.Failure{Stage: measure.StageMemory, Reason: "the system killed the engine since memory ran out (signal: killed)"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := &lab{service: 20 * ms, loadTakes: 100 * ms}
				c.spoil(l)
				err := inferOnce(t.Context(), l)
				var engineError *EngineError
				if !errors.As(err, &engineError) {
					t.Fatalf("error %v", err)
				}
				if diff := cmp.Diff(c.want, engineError.Failure); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
				for _, e := range l.engines {
					if e.stops == 0 {
						t.Error("the engine was not stopped")
					}
				}
			})
		})
	}
}

// TestInferenceEndsWithItsContext checks that an interruption does not count as a fault of the
// engine.
func TestInferenceEndsWithItsContext(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*lab){
		"while loading":     func(l *lab) { l.loadTakes = time.Hour },
		"while it computes": func(l *lab) { l.service = time.Hour },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := &lab{}
				spoil(l)
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if err := inferOnce(ctx, l); !errors.Is(err, context.DeadlineExceeded) || errors.As(err, new(*EngineError)) {
					t.Errorf("error %v", err)
				}
				if l.last().stops == 0 {
					t.Error("the engine was not stopped")
				}
			})
		})
	}
}

// inferOnce opens an engine of the lab, sends one request and closes it.
func inferOnce(ctx context.Context, l *lab) error {
	i, err := OpenInference(ctx, Options{Launcher: l, Dial: l.dial}, InferenceJob{Model: "m"})
	if err != nil {
		return err
	}
	defer i.Close(context.WithoutCancel(ctx))
	_, err = i.Infer(ctx, api.InferRequest{})
	return err
}
