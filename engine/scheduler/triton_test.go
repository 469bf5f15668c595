package scheduler_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"tuner/engine/scheduler"
)

// The batches are those that a real Triton 2.51 formed of these arrivals ("instant in ms:rows"),
// with a model whose executions take 100 ms. lab/conformance asks it again.
func TestBatchesAreTritons(t *testing.T) {
	t.Parallel()
	const delay = 50 * time.Millisecond
	for _, tc := range []struct {
		name      string
		instances int
		settings  scheduler.Settings
		arrivals  string
		want      []int
	}{
		{"no delay", 1, scheduler.Settings{MaxBatch: 8},
			"0:2 32:1 52:1 64:1 76:2 116:1 176:2 236:2 248:1 260:1 272:2 284:1 344:1 384:1 396:2 456:1", []int{2, 5, 3, 7, 4, 1}},
		{"delay", 1, scheduler.Settings{MaxBatch: 8, Delay: delay},
			"0:1 20:1 40:1 80:1 120:1 180:2 192:2 204:1 216:2 276:1 288:2 300:1", []int{3, 2, 7, 4}},
		{"long delay", 1, scheduler.Settings{MaxBatch: 4, Delay: 3 * delay},
			"0:1 12:1 72:1 132:1 144:1 176:1 188:1 200:1 212:1 244:1 304:1 316:1 376:1 396:1 436:1 448:2", []int{4, 4, 4, 3, 2}},
		{"preferred sizes", 1, scheduler.Settings{MaxBatch: 8, Preferred: []int{4, 8}},
			"0:1 60:2 120:1 132:2 152:2 172:1 232:1 244:1 284:2 296:1 308:2 328:2 348:2 368:2 408:1 420:2", []int{1, 2, 6, 4, 7, 5}},
		{"preferred sizes, longer", 1, scheduler.Settings{MaxBatch: 8, Preferred: []int{4, 8}},
			"0:2 20:2 30:1 80:2 150:1 160:1 170:1 220:1 230:1 240:1 250:1 270:2 300:2 310:1 330:1 340:1 370:1 400:1 410:1 420:1 450:2 500:1 510:2 520:1",
			[]int{2, 5, 3, 4, 4, 4, 8, 1}},
		{"preferred sizes and delay", 1, scheduler.Settings{MaxBatch: 8, Preferred: []int{4, 8}, Delay: delay},
			"0:1 32:1 92:1 104:1 116:1 128:1 148:1 180:1 192:2 204:2 224:1 244:2 304:1 324:2 344:1 404:1", []int{2, 4, 7, 6, 1}},
		{"preferred sizes and delay, longer", 1, scheduler.Settings{MaxBatch: 8, Preferred: []int{4, 8}, Delay: delay},
			"0:1 10:1 20:2 50:1 60:2 70:1 80:1 130:2 140:1 150:2 170:1 180:1 210:1 240:1 250:1 270:2 280:1 300:1 370:1 380:1 450:1 470:1 490:1 540:1",
			[]int{4, 4, 8, 7, 2, 3, 1}},
		{"two instances", 2, scheduler.Settings{MaxBatch: 8},
			"0:2 12:1 24:1 44:1 56:1 116:2 128:1 140:1 152:1 172:2 184:2 196:2 208:2 248:2 268:1 280:2", []int{2, 1, 3, 2, 7, 4, 5}},
		{"two instances, delay", 2, scheduler.Settings{MaxBatch: 8, Delay: delay},
			"0:1 40:1 60:1 72:2 84:1 96:1 128:2 140:2 152:2 164:1 196:1 236:2 256:1 276:2 288:1 348:1", []int{2, 5, 7, 3, 4, 1}},
		{"two instances, preferred size and delay", 2, scheduler.Settings{MaxBatch: 8, Preferred: []int{4}, Delay: delay},
			"0:2 12:1 32:1 92:1 112:1 152:1 212:2 232:1 244:2 256:2 268:1 280:2 292:2 332:2 344:1 356:1", []int{4, 2, 1, 3, 5, 6, 2}},
		{"two instances, preferred size", 2, scheduler.Settings{MaxBatch: 6, Preferred: []int{3}},
			"0:2 12:1 24:1 36:1 56:1 76:2 88:1 100:1 112:1 124:2 144:1 184:1 196:1 208:1 248:1 288:1", []int{2, 1, 3, 3, 4, 3, 3}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				tc.settings.Dynamic, tc.settings.Gather = true, true
				if d := gocmp.Diff(tc.want, play(t, tc.instances, tc.settings, tc.arrivals)); d != "" {
					t.Errorf("rows of the executions (-Triton +tuner):\n%s", d)
				}
			})
		})
	}
}

// sizes records the rows of each execution. An execution takes 100 ms and slightly more, as on a
// real system.
type sizes struct {
	mu  *sync.Mutex
	ran *[]int
}

func (e sizes) Execute(items []scheduler.Item[int]) {
	rows := 0
	for _, it := range items {
		rows += it.Rows
	}
	e.mu.Lock()
	*e.ran = append(*e.ran, rows)
	e.mu.Unlock()
	time.Sleep(101 * time.Millisecond)
}

// play enqueues the arrivals and returns the rows of the executions in the order of their
// beginning.
func play(t *testing.T, instances int, set scheduler.Settings, arrivals string) []int {
	var (
		mu        sync.Mutex
		ran       []int
		executors []scheduler.Executor[int]
	)
	for range instances {
		executors = append(executors, sizes{&mu, &ran})
	}
	s := scheduler.New(set, executors, scheduler.GoTimer)
	synctest.Wait()
	start := time.Now()
	var tickets []*scheduler.Ticket[int]
	for _, word := range strings.Fields(arrivals) {
		var ms, rows int
		if _, err := fmt.Sscanf(word, "%d:%d", &ms, &rows); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Until(start.Add(time.Duration(ms) * time.Millisecond)))
		ticket, err := s.Enqueue(scheduler.Item[int]{Rows: rows})
		if err != nil {
			t.Fatal(err)
		}
		tickets = append(tickets, ticket)
		synctest.Wait()
	}
	for _, ticket := range tickets {
		if err := ticket.Wait(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	s.Close()
	return ran
}
