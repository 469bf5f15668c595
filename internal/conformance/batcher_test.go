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
	"tuner/internal/peers"
	"tuner/onnx/build"
)

const (
	execution = 100 * time.Millisecond // of one batch, whatever its size
	steady    = execution / 16         // an execution may take so much more or less
	punctual  = 5 * time.Millisecond   // a request may be sent so late
	attempts  = 12                     // to play a trace undisturbed
)

// The configurations of the comparison, each with its arrivals, "instant in ms:rows". The instants were chosen among random
// ones so that the batches stay the same if an execution takes 5 % more or less and each request comes up to 6 ms late.
var batcherCases = []struct {
	name, batching   string
	maxBatch, serves int // serves: the number of instances
	arrivals         string
}{
	{"max8", ``, 8, 1,
		"0:1 20:1 40:1 110:2 130:1 140:1 160:1 170:2 180:1 190:1 220:2 230:1 240:1 250:1 260:1 270:2 280:1 290:1 300:1 310:2 320:1 330:1 400:2 410:1"},
	{"max8_two", ``, 8, 2,
		"0:2 10:1 20:1 30:2 40:2 50:1 60:1 70:2 90:1 100:2 140:2 150:2 160:1 180:1 230:1 250:2 260:2"},
	{"max8_delay", `max_queue_delay_microseconds: 50000`, 8, 1,
		"0:2 10:1 80:1 150:1 220:2 230:2 240:1 250:2 300:2 310:2 360:1 370:1 380:2 390:1 400:2 410:2 420:1 490:1 500:1 520:2 530:1 580:1 590:2 620:1"},
	{"max8_delay_two", `max_queue_delay_microseconds: 50000`, 8, 2,
		"0:2 10:1 20:1 40:2 110:2 140:2 190:2 260:2 270:1 280:1 290:2 300:1 330:1 340:2 390:1 400:2 410:2 480:1 550:2 560:1 570:1 620:2 630:1 640:1"},
	{"preferred", `preferred_batch_size: [4, 8]`, 8, 1,
		"0:2 20:2 30:1 80:2 150:1 160:1 170:1 220:1 230:1 240:1 250:1 270:2 300:2 310:1 330:1 340:1 370:1 400:1 410:1 420:1 450:2 500:1 510:2 520:1"},
	{"preferred_delay", `preferred_batch_size: [4, 8] max_queue_delay_microseconds: 50000`, 8, 1,
		"0:1 10:1 20:2 50:1 60:2 70:1 80:1 130:2 140:1 150:2 170:1 180:1 210:1 240:1 250:1 270:2 280:1 300:1 370:1 380:1 450:1 470:1 490:1 540:1"},
	{"max4_long_delay", `max_queue_delay_microseconds: 150000`, 4, 1,
		"0:1 30:1 50:1 100:2 110:1 130:1 180:1 190:1 220:1 270:1 280:1 300:1 350:1 420:1 430:1 450:1 470:1 480:1 490:1 510:1 580:1 630:1 640:1 650:1"},
	{"preferred4_delay_two", `preferred_batch_size: [4] max_queue_delay_microseconds: 50000`, 8, 2,
		"0:1 10:1 60:2 70:2 80:2 110:2 120:1 190:2 200:1 210:2 220:1 290:1 320:1 330:1 380:1 390:1 440:2 460:1 470:2 480:1 490:1 500:2 510:2 580:1"},
	{"preferred6_12_delay", `preferred_batch_size: [6, 12] max_queue_delay_microseconds: 30000`, 16, 1,
		"0:2 70:1 80:1 90:2 140:1 150:1 180:1 190:1 210:1 220:1 250:1 260:2 270:1 280:1 290:1 310:1 320:1 330:1 380:1 390:1 400:1 470:1 480:1 550:1"},
	{"preferred3_two", `preferred_batch_size: [3]`, 6, 2,
		"0:1 10:1 30:2 40:1 50:2 60:2 70:1 80:1 90:1 100:1 110:2 120:1 130:1 200:1 210:1 240:1 250:1 260:1 310:1 360:1 370:1 380:2 430:1 440:1"},
}

// TestBatcher plays the same arrivals to a real Triton and to our engine, which serve the same model of constant time, and
// compares the sizes of the batches that they executed; of one instance also their order.
func TestBatcher(t *testing.T) {
	p, binary := find(t), environment(t, "TUNER_BINARY")
	repository := batcherRepository(t, iterations(t, p))
	starts := []func() (*peers.Server, error){
		func() (*peers.Server, error) { return p.StartTriton(t.Context(), repository) },
		func() (*peers.Server, error) { return p.StartTuner(t.Context(), binary, repository) },
	}
	var executed [2][]string
	for i, start := range starts { // one after the other: they would take each other's time
		server, err := start()
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range batcherCases {
			sizes, err := settled(t.Context(), server, c.name, c.arrivals, c.serves)
			if err != nil {
				sizes = "? " + err.Error()
			}
			executed[i] = append(executed[i], sizes)
		}
		if err := server.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	for k, c := range batcherCases {
		t.Run(c.name, func(t *testing.T) {
			triton, tuner := executed[0][k], executed[1][k]
			if strings.HasPrefix(triton, "?") || strings.HasPrefix(tuner, "?") {
				t.Skipf("the machine is too busy: Triton %s, tuner %s", triton, tuner)
			}
			t.Logf("%s", triton)
			if d := gocmp.Diff(triton, tuner); d != "" {
				t.Errorf("executed batches (-Triton +tuner):\n%s", d)
			}
		})
	}
}

// iterations finds how many of the constant-time model's take one execution on this machine.
func iterations(t *testing.T, p *peers.Peers) int64 {
	t.Helper()
	const first = 2000
	repository := t.TempDir()
	writeBatcherModel(t, repository, "calibration", "", 1, 1, first)
	server, err := p.StartTriton(t.Context(), repository)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	}()
	c := api.NewHTTP(server.HTTP)
	defer c.Close()
	best := time.Hour
	for range 20 {
		before := batches(t.Context(), c, "calibration")
		if err := send(t.Context(), c, "calibration", 1); err != nil {
			t.Fatal(err)
		}
		best = min(best, batches(t.Context(), c, "calibration").since(before)[1].time)
	}
	return int64(first * float64(execution) / float64(best))
}

// batcherRepository makes a repository with a model for each case.
func batcherRepository(t *testing.T, iterations int64) string {
	t.Helper()
	repository := t.TempDir()
	for _, c := range batcherCases {
		writeBatcherModel(t, repository, c.name, c.batching, c.maxBatch, c.serves, iterations)
	}
	return repository
}

func writeBatcherModel(t *testing.T, repository, name, batching string, maxBatch, instances int, iterations int64) {
	t.Helper()
	config := fmt.Sprintf(`backend: "onnxruntime" max_batch_size: %d dynamic_batching { %s }
instance_group { count: %d kind: KIND_CPU }
parameters { key: "intra_op_thread_count" value { string_value: "1" } }
`, maxBatch, batching, instances)
	dir := filepath.Join(repository, name)
	err := os.MkdirAll(filepath.Join(dir, "1"), 0o755)
	err = errors.Join(err, os.WriteFile(filepath.Join(dir, "config.pbtxt"), []byte(config), 0o644))
	if err = errors.Join(err, build.ConstantTime(iterations).Write(filepath.Join(dir, "1", "model.onnx"), 0)); err != nil {
		t.Fatal(err)
	}
}

// settled plays arrivals until two undisturbed plays gave the same batches.
func settled(ctx context.Context, server *peers.Server, model, arrivals string, instances int) (string, error) {
	c := api.NewHTTP(server.HTTP)
	defer c.Close()
	if err := send(ctx, c, model, 1); err != nil { // the first is slower
		return "", err
	}
	seen := map[string]int{}
	var disturbed error
	for range attempts {
		sizes, err := play(ctx, c, model, arrivals, instances)
		if err != nil {
			disturbed = err
			continue
		}
		if seen[sizes]++; seen[sizes] == 2 {
			return sizes, nil
		}
	}
	return "", fmt.Errorf("no two of %d plays gave the same batches undisturbed: %v, the last disturbance: %w", attempts, seen, disturbed)
}

// play sends the arrivals and tells which batches were executed. It fails if a request was sent late, or an execution did not
// take its time.
func play(ctx context.Context, c api.Client, model, arrivals string, instances int) (string, error) {
	type answer struct {
		at   time.Duration
		rows int
	}
	var (
		mu       sync.Mutex
		answers  []answer
		failed   error
		requests sync.WaitGroup
	)
	before, begin := batches(ctx, c, model), time.Now().Add(50*time.Millisecond)
	for _, word := range strings.Fields(arrivals) {
		var ms, rows int
		if _, err := fmt.Sscanf(word, "%d:%d", &ms, &rows); err != nil {
			return "", fmt.Errorf("arrival %q: %w", word, err)
		}
		requests.Go(func() {
			at := begin.Add(time.Duration(ms) * time.Millisecond)
			time.Sleep(time.Until(at))
			late := time.Since(at)
			err := send(ctx, c, model, rows)
			if late > punctual {
				err = fmt.Errorf("the request of %d ms was sent %v late", ms, late)
			}
			mu.Lock()
			defer mu.Unlock()
			answers, failed = append(answers, answer{time.Since(begin), rows}), cmp.Or(failed, err)
		})
	}
	requests.Wait()
	executed := batches(ctx, c, model).since(before)
	if failed == nil {
		failed = executed.steady()
	}
	if failed != nil || instances > 1 {
		return executed.String(), failed
	}
	slices.SortFunc(answers, func(a, b answer) int { return cmp.Compare(a.at, b.at) })
	var order []int // of one instance, batches end an execution apart
	for i, a := range answers {
		if i == 0 || a.at-answers[i-1].at > execution/2 {
			order = append(order, 0)
		}
		order[len(order)-1] += a.rows
	}
	return fmt.Sprintf("%v in order %v", executed, order), nil
}

// send makes a request and waits for the answer.
func send(ctx context.Context, c api.Client, model string, rows int) error {
	request, err := c.Encode(api.InferRequest{Model: model, Inputs: []api.Tensor{
		{Name: "INPUT", Datatype: "FP32", Shape: []int64{int64(rows), 16}, Data: make([]byte, rows*64)},
	}})
	if err != nil {
		return err
	}
	_, err = c.Infer(ctx, request)
	return err
}

// executions are the batches that a model has executed, by size.
type executions map[int]struct {
	count uint64
	time  time.Duration // inside the model, of one; all of them in what batches returns
}

// batches reads a server's statistics; a server that does not give them has executed none.
func batches(ctx context.Context, c api.Client, model string) executions {
	out := executions{}
	stats, err := c.Statistics(ctx, model)
	if err != nil || len(stats.ModelStats) == 0 {
		return out
	}
	for _, b := range stats.ModelStats[0].BatchStats {
		e := out[int(b.BatchSize)]
		e.count, e.time = b.ComputeInfer.Count, time.Duration(b.ComputeInfer.NS)
		out[int(b.BatchSize)] = e
	}
	return out
}

// since is what was executed between two states.
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

// steady says which batches did not take the time of an execution.
func (e executions) steady() error {
	for size, b := range e {
		if b.time < execution-steady || b.time > execution+steady {
			return fmt.Errorf("batches of %d took %v", size, b.time)
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
