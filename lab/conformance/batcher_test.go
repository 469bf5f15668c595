//go:build conformance

package conformance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"tuner/engine/api"
	"tuner/engine/enginetest"
	"tuner/lab/peers"
	"tuner/model/modelconfig"
	"tuner/model/modelconfig/configpb"
)

const (
	execution = 100 * time.Millisecond // of one batch, for any size
	steady    = execution / 20         // allowed excess of an execution's time
	punctual  = 5 * time.Millisecond   // allowed delay of a request
	attempts  = 60                     // number of attempts to play a trace undisturbed …
	agreeing  = 3                      // … this number of times with the same batches
	counting  = 10 * time.Second       // longest delay of the statistics after the answers
)

// The configurations of the comparison, each with its arrivals, "instant in ms:rows". The instants
// were chosen among random ones so that the batches are stable. They stay the same if executions
// take up to 7 % longer and each request comes up to 9 ms late. They do not depend on the order of
// Triton's threads at the end of a batch: the instance takes the next, or the batcher acts first.
var batcherCases = []struct {
	name, batching   string
	maxBatch, serves int // serves: number of instances
	arrivals         string
}{
	{"max8", ``, 8, 1,
		"0:2 32:1 52:1 64:1 76:2 116:1 176:2 236:2 248:1 260:1 272:2 284:1 344:1 384:1 396:2 456:1"},
	{"max8_two", ``, 8, 2,
		"0:2 12:1 24:1 44:1 56:1 116:2 128:1 140:1 152:1 172:2 184:2 196:2 208:2 248:2 268:1 280:2"},
	{"max8_delay", `max_queue_delay_microseconds: 50000`, 8, 1,
		"0:1 20:1 40:1 80:1 120:1 180:2 192:2 204:1 216:2 276:1 288:2 300:1"},
	{"max8_delay_two", `max_queue_delay_microseconds: 50000`, 8, 2,
		"0:1 40:1 60:1 72:2 84:1 96:1 128:2 140:2 152:2 164:1 196:1 236:2 256:1 276:2 288:1 348:1"},
	{"preferred", `preferred_batch_size: [4, 8]`, 8, 1,
		"0:1 60:2 120:1 132:2 152:2 172:1 232:1 244:1 284:2 296:1 308:2 328:2 348:2 368:2 408:1 420:2"},
	{"preferred_delay", `preferred_batch_size: [4, 8] max_queue_delay_microseconds: 50000`, 8, 1,
		"0:1 32:1 92:1 104:1 116:1 128:1 148:1 180:1 192:2 204:2 224:1 244:2 304:1 324:2 344:1 404:1"},
	{"max4_long_delay", `max_queue_delay_microseconds: 150000`, 4, 1,
		"0:1 12:1 72:1 132:1 144:1 176:1 188:1 200:1 212:1 244:1 304:1 316:1 376:1 396:1 436:1 448:2"},
	{"preferred4_delay_two", `preferred_batch_size: [4] max_queue_delay_microseconds: 50000`, 8, 2,
		"0:2 12:1 32:1 92:1 112:1 152:1 212:2 232:1 244:2 256:2 268:1 280:2 292:2 332:2 344:1 356:1"},
	{"preferred6_12_delay", `preferred_batch_size: [6, 12] max_queue_delay_microseconds: 30000`, 16, 1,
		"0:1 20:1 40:1 52:1 64:1 76:1 88:1 100:2 112:1 124:2 164:2 184:1"},
	{"preferred3_two", `preferred_batch_size: [3]`, 6, 2,
		"0:2 12:1 24:1 36:1 56:1 76:2 88:1 100:1 112:1 124:2 144:1 184:1 196:1 208:1 248:1 288:1"},
}

// TestBatcher plays the same arrivals to a real Triton and to our engine, both with a model that
// sleeps. It compares the sizes of the executed batches, and with one instance also their order.
func TestBatcher(t *testing.T) {
	for _, c := range batcherCases {
		t.Run(c.name, func(t *testing.T) {
			triton, err := find(t).StartTriton(t.Context(), sleepRepository(t, c.batching, c.maxBatch, c.serves))
			if err != nil {
				t.Fatal(err)
			}
			stopAtEnd(t, triton)
			tuner := enginetest.Start(t, enginetest.Options{Model: sleepModel, Config: sleepConfig("onnxruntime", c.batching, c.maxBatch, c.serves),
				Backend: &enginetest.Backend{IO: sleepIO(), ServiceTime: func(int, int) time.Duration { return execution }}})
			var executed [2]string
			// one after the other, so that they do not disturb each other
			for i, address := range []string{triton.HTTP, tuner.Addresses.HTTP} {
				executed[i], err = settled(t.Context(), address, c.arrivals, c.serves)
				var open *undecided
				switch {
				case errors.As(err, &open) && i == 1 && len(open.seen) > 1:
					t.Fatalf("tuner does not do the same with the same arrivals: %v", err)
				case errors.As(err, &open):
					t.Fatalf("not decided, the machine is too busy: %s: %v", [2]string{"Triton", "tuner"}[i], err)
				case err != nil:
					t.Fatal(err)
				}
			}
			t.Log(executed[0])
			if d := gocmp.Diff(executed[0], executed[1]); d != "" {
				t.Errorf("executed batches (-Triton +tuner):\n%s", d)
			}
		})
	}
}

// disturbance is the reason why a play is invalid: a request was sent late, or an execution took
// another time.
type disturbance struct{ what string }

func (d *disturbance) Error() string { return d.what }

// undecided is the error after all attempts: no batches were seen often enough.
type undecided struct {
	seen map[string]int // batches of undisturbed plays
	last error          // disturbance
}

func (u *undecided) Error() string {
	return fmt.Sprintf("no %d of %d plays gave the same batches undisturbed: %v, the last disturbance: %v", agreeing, attempts, u.seen, u.last)
}

// sleepModel is a model that only sleeps for the time of an execution.
const sleepModel = "sleep"

// sleepRepository makes a repository for Triton, with the backend that sleeps.
func sleepRepository(t *testing.T, batching string, maxBatch, instances int) string {
	t.Helper()
	repository := t.TempDir()
	dir := filepath.Join(repository, sleepModel)
	if err := os.MkdirAll(filepath.Join(dir, "1"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.pbtxt"), []byte(sleepConfig(sleepModel, batching, maxBatch, instances)), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := peers.CompileBackend(t.Context(), filepath.Join("testdata", "sleep_backend.c"), dir, sleepModel); err != nil {
		t.Fatal(err)
	}
	return repository
}

func sleepConfig(backend, batching string, maxBatch, instances int) string {
	return fmt.Sprintf(`backend: "%s" max_batch_size: %d dynamic_batching { %s } instance_group { count: %d kind: KIND_CPU }
input { name: "INPUT" data_type: TYPE_FP32 dims: [1] } output { name: "OUTPUT" data_type: TYPE_FP32 dims: [1] }
`, backend, maxBatch, batching, instances)
}

func sleepIO() modelconfig.ModelIO {
	tensor := func(name string) []modelconfig.Tensor {
		return []modelconfig.Tensor{{Name: name, DataType: configpb.DataType_TYPE_FP32, Dims: []int64{-1, 1}}}
	}
	return modelconfig.ModelIO{Inputs: tensor("INPUT"), Outputs: tensor("OUTPUT")}
}

// settled plays arrivals until several undisturbed plays gave the same batches. Its error is an
// *undecided if they never did. Any other error is a failure of the server.
func settled(ctx context.Context, address, arrivals string, instances int) (string, error) {
	c := api.NewHTTP(address)
	defer c.Close()
	open := &undecided{seen: map[string]int{}}
	for range attempts {
		sizes, err := play(ctx, c, arrivals, instances)
		var d *disturbance
		if errors.As(err, &d) {
			open.last = d
			continue
		}
		if err != nil {
			return "", err
		}
		if open.seen[sizes]++; open.seen[sizes] == agreeing {
			return sizes, nil
		}
	}
	return "", open
}

// answer is the answer to a request of a play.
type answer struct {
	at   time.Duration // since the start of the play
	rows int
}

// play sends the arrivals and returns the executed batches. Its error is a *disturbance if a
// request was sent late, or an execution took another time.
func play(ctx context.Context, c api.Client, arrivals string, instances int) (string, error) {
	before, err := batches(ctx, c)
	if err != nil {
		return "", err
	}
	answers, late, err := sendAll(ctx, c, arrivals)
	if err != nil {
		return "", err
	}
	sent := 0
	for _, a := range answers {
		sent += a.rows
	}
	// also after disturbed plays, so that the next starts with complete statistics
	executed, err := counted(ctx, c, before, sent)
	if err != nil {
		return "", err
	}
	if err := cmp.Or(late, executed.steady()); err != nil {
		return "", err
	}
	if instances > 1 {
		return executed.String(), nil
	}
	slices.SortFunc(answers, func(a, b answer) int { return cmp.Compare(a.at, b.at) })
	var order []int // with one instance, batches end an execution apart
	for i, a := range answers {
		if i == 0 || a.at-answers[i-1].at > execution/2 {
			order = append(order, 0)
		}
		order[len(order)-1] += a.rows
	}
	return fmt.Sprintf("%v in order %v", executed, order), nil
}

// sendAll sends the arrivals at their instants and waits for the answers. late is nil, or names a
// request that was sent late. err is that of a failed request.
func sendAll(ctx context.Context, c api.Client, arrivals string) (answers []answer, late, err error) {
	var (
		mu       sync.Mutex
		requests sync.WaitGroup
	)
	begin := time.Now().Add(50 * time.Millisecond)
	for _, word := range strings.Fields(arrivals) {
		var ms, rows int
		if _, err := fmt.Sscanf(word, "%d:%d", &ms, &rows); err != nil {
			return nil, nil, fmt.Errorf("arrival %q: %w", word, err)
		}
		requests.Go(func() {
			at := begin.Add(time.Duration(ms) * time.Millisecond)
			time.Sleep(time.Until(at))
			delay := time.Since(at)
			failure := send(ctx, c, rows)
			mu.Lock()
			defer mu.Unlock()
			answers, err = append(answers, answer{time.Since(begin), rows}), cmp.Or(err, failure)
			if delay > punctual {
				late = &disturbance{fmt.Sprintf("the request of %d ms was sent %v late", ms, delay)}
			}
		})
	}
	requests.Wait()
	return answers, late, err
}

// send makes a request and waits for the answer.
func send(ctx context.Context, c api.Client, rows int) error {
	request, err := c.Encode(api.InferRequest{Model: sleepModel, Inputs: []api.Tensor{
		{Name: "INPUT", Datatype: "FP32", Shape: []int64{int64(rows), 1}, Data: make([]byte, rows*4)},
	}})
	if err != nil {
		return err
	}
	_, err = c.Infer(ctx, request)
	return err
}

// executions are the executed batches of a model, by size.
type executions map[int]struct {
	count uint64
	time  time.Duration // inside the model, of one; in the result of batches, of all
}

// batches reads a server's statistics.
func batches(ctx context.Context, c api.Client) (executions, error) {
	stats, err := c.Statistics(ctx, sleepModel)
	if err != nil {
		return nil, err
	}
	if len(stats.ModelStats) != 1 {
		return nil, fmt.Errorf("the statistics are of %d models", len(stats.ModelStats))
	}
	out := executions{}
	for _, b := range stats.ModelStats[0].BatchStats {
		e := out[int(b.BatchSize)]
		e.count, e.time = b.ComputeInfer.Count, time.Duration(b.ComputeInfer.NS)
		out[int(b.BatchSize)] = e
	}
	return out, nil
}

// counted waits until the statistics since before count the answered rows, since Triton's come
// after the answers.
func counted(ctx context.Context, c api.Client, before executions, rows int) (executions, error) {
	ctx, cancel := context.WithTimeout(ctx, counting)
	defer cancel()
	for {
		now, err := batches(ctx, c)
		if err != nil {
			return nil, err
		}
		executed, got := now.since(before), 0
		for size, b := range executed {
			got += size * int(b.count)
		}
		switch {
		case got == rows:
			return executed, nil
		case got > rows:
			return nil, fmt.Errorf("the statistics count %d rows, %d were sent", got, rows)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("the statistics count %d of %d rows that were answered %v ago", got, rows, counting)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// since returns the executions between two states.
func (e executions) since(before executions) executions {
	out := executions{}
	for size, now := range e {
		old := before[size]
		if n := now.count - old.count; n > 0 {
			old.count, old.time = n, (now.time-old.time)/time.Duration(n)
			out[size] = old
		}
	}
	return out
}

// steady returns nil, or a disturbance that names the batches with another execution time.
func (e executions) steady() error {
	for size, b := range e {
		if b.time > execution+steady {
			return &disturbance{fmt.Sprintf("batches of %d took %v", size, b.time)}
		}
	}
	return nil
}

// String lists the batches by size, as "3×2" for three of two rows.
func (e executions) String() string {
	var words []string
	for _, size := range slices.Sorted(maps.Keys(e)) {
		words = append(words, fmt.Sprintf("%d×%d", e[size].count, size))
	}
	return strings.Join(words, " ")
}
