package adapting

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"tuner/engine/enginetest"
)

// table is the text of a table with a configuration for low rates, and the static one for high rates.
func table(pays bool) string {
	config := func(batch int) string {
		return fmt.Sprintf(`{"name": "m", "backend": "onnxruntime", "max_batch_size": %d, "dynamic_batching": {},
			"input": [{"name": "INPUT0", "data_type": "TYPE_INT32", "dims": [16]}, {"name": "INPUT1", "data_type": "TYPE_INT32", "dims": [16]}],
			"output": [{"name": "OUTPUT0", "data_type": "TYPE_INT32", "dims": [16]}, {"name": "OUTPUT1", "data_type": "TYPE_INT32", "dims": [16]}]}`, batch)
	}
	latency := func(ms float64) string {
		return fmt.Sprintf(`{"value": %g, "low": %g, "high": %g}`, ms/1000, 0.95*ms/1000, 1.05*ms/1000)
	}
	return fmt.Sprintf(`{"format": 1, "model": "m", "pays": %v, "summary": "because", "quantile": 0.99, "static": "large", "rates": [100, 1000], "configurations": [
		{"name": "small", "setup": "a", "load": 0, "config": %s, "latencies": [%s, %s]},
		{"name": "large", "setup": "b", "load": 0, "config": %s, "latencies": [%s, %s]}]}`,
		pays, config(4), latency(10), latency(100), config(8), latency(20), latency(20))
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "adaptive.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// awaited is a log that tells when a text has been written.
type awaited struct {
	mu   sync.Mutex
	text strings.Builder
	want string
	seen chan struct{}
}

func (a *awaited) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	before := strings.Contains(a.text.String(), a.want)
	a.text.Write(p)
	if !before && strings.Contains(a.text.String(), a.want) {
		close(a.seen)
	}
	return len(p), nil
}

// An engine in explicit mode gets the static configuration, and without any request soon the one for low
// rates.
func TestAnEngineIsSteered(t *testing.T) {
	t.Parallel()
	e := enginetest.Start(t, enginetest.Options{Model: "m", Config: "max_batch_size: 2"})
	ctx, cancel := context.WithCancel(t.Context())
	log := &awaited{want: "configuration=small", seen: make(chan struct{})}
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, log, write(t, table(true)), e.Addresses.HTTP) }()
	select {
	case <-log.seen:
	case err := <-ended:
		t.Fatalf("ended with %v: %s", err, log.text.String())
	}
	c, err := e.Server.ModelConfig("m", 0)
	if err != nil || c.GetMaxBatchSize() != 4 {
		t.Errorf("%v, %v: want the configuration for low rates", c, err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if !strings.Contains(log.text.String(), "configuration=large") {
		t.Errorf("the static configuration is missing in\n%s", log.text.String())
	}
}

// Where changing does not pay, nothing changes and the command ends. Mistakes are told before anything
// changes.
func TestNothingChanges(t *testing.T) {
	t.Parallel()
	e := enginetest.Start(t, enginetest.Options{Model: "m", Config: "max_batch_size: 2"})
	check := func(text, want string, fails bool) {
		t.Helper()
		var log strings.Builder
		err := run(t.Context(), &log, write(t, text), e.Addresses.HTTP)
		if (err != nil) != fails || !strings.Contains(fmt.Sprint(log.String(), err), want) {
			t.Errorf("%v, %s; want %q", err, log.String(), want)
		}
		if c, err := e.Server.ModelConfig("m", 0); err != nil || c.GetMaxBatchSize() != 2 {
			t.Errorf("%v, %v: want the first configuration", c, err)
		}
	}
	check(table(false), "the model keeps its configuration", false)
	check(strings.Replace(table(true), `"model": "m"`, `"model": "other"`, 1), `cannot count the requests of the model "other"`, true)
	check(strings.Replace(table(true), `"format": 1`, `"format": 2`, 1), "format is 2", true)
	if err := run(t.Context(), &strings.Builder{}, "none.json", e.Addresses.HTTP); err == nil || !strings.Contains(err.Error(), `cannot read the table "none.json"`) {
		t.Error(err)
	}
}
