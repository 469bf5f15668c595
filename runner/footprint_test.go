package runner

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"testing"
	"testing/synctest"
	"time"

	"tuner/engine/api"
	"tuner/measure"
)

// sized returns job with a largest batch of 8 on 3 instances.
func sized(pool, config string) Job {
	j := job(pool, config)
	j.Instances, j.MaxBatch, j.Largest = 3, 8, Batches{Size: 8, Requests: Requests{{Model: "m"}}}
	return j
}

// A fresh process executes one of its largest batches per instance before the load, in a few
// rounds. The time counts as warm-up. A process that runs already does not do this.
func TestFootprintOfAFreshProcess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, r := newLab(t)
		l.pid = os.Getpid()
		without := sized("a", "1")
		without.Largest = Batches{}
		plain, err := r.Measure(t.Context(), without)
		if err != nil || plain.Footprint != (measure.Footprint{}) || l.asked.Load() != 0 {
			t.Fatalf("without a largest batch: %+v, %d requests, %v", plain.Footprint, l.asked.Load(), err)
		}
		m, err := r.Measure(t.Context(), sized("b", "1"))
		if err != nil || m.Failure != nil || m.Footprint.Batch != 8 || m.Footprint.Bytes <= 0 || m.Footprint.Bytes > m.Memory {
			t.Fatalf("%+v of %d, %+v, %v", m.Footprint, m.Memory, m.Failure, err)
		}
		if n := l.asked.Load(); n != 3*footprintRounds {
			t.Errorf("%d requests, want %d rounds of 3", n, footprintRounds)
		}
		// 20 ms for each round.
		if more := m.Times.WarmUp - plain.Times.WarmUp; more != footprintRounds*20*ms {
			t.Errorf("the warm-up is longer by %v", more)
		}
		if m, err = r.Measure(t.Context(), sized("b", "2")); err != nil || m.Footprint != (measure.Footprint{}) || l.asked.Load() != 3*footprintRounds {
			t.Errorf("in the same process: %+v, %d requests, %v", m.Footprint, l.asked.Load(), err)
		}
	})
}

// A server may start processes when it loads a model, such as one for each instance of a Python model. Their memory is a
// part of the footprint. Here a shell with almost no memory is the server, and starts a process of 60 MB.
func TestFootprintOfProcessesThatALoadStarts(t *testing.T) {
	t.Parallel()
	shell := exec.CommandContext(t.Context(), "sh", "-c", `read load; sh -c 'x=$(head -c 60000000 /dev/zero | tr "\0" a); echo loaded; read end'; :`)
	in, errIn := shell.StdinPipe()
	out, errOut := shell.StdoutPipe()
	if err := errors.Join(errIn, errOut, shell.Start()); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := errors.Join(in.Close(), shell.Wait()); err != nil {
			t.Error(err)
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		l, r := newLab(t)
		l.pid = shell.Process.Pid
		l.loading = func() {
			if _, err := in.Write([]byte("load\n")); err != nil {
				t.Error(err)
			}
			if line, err := bufio.NewReader(out).ReadString('\n'); line != "loaded\n" {
				t.Errorf("%q, %v", line, err)
			}
		}
		m, err := r.Measure(t.Context(), sized("a", "1"))
		if err != nil || m.Footprint.Bytes < 60e6 || m.Memory < 60e6 {
			t.Errorf("%+v of %d, %v", m.Footprint, m.Memory, err)
		}
	})
}

// Batches that take long are executed only once on each instance.
func TestFootprintOfASlowModel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, r := newLab(t)
		l.pid, l.service = os.Getpid(), footprintTime
		if m, err := r.Measure(t.Context(), sized("a", "1")); err != nil || m.Footprint.Batch != 8 || l.asked.Load() != 3 {
			t.Errorf("%+v, %d requests, %v", m.Footprint, l.asked.Load(), err)
		}
		one := sized("b", "1")
		one.Instances = 1
		if m, err := r.Measure(t.Context(), one); err != nil || m.Footprint.Batch != 8 || l.asked.Load() != 4 {
			t.Errorf("one instance: %+v, %d requests, %v", m.Footprint, l.asked.Load(), err)
		}
	})
}

// There is no footprint for a service trial, which measures memory from its smallest batch on, and
// none for an unknown process.
func TestNoFootprint(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, r := newLab(t)
		if m, err := r.Measure(t.Context(), sized("a", "1")); err != nil || m.Footprint != (measure.Footprint{}) || l.asked.Load() != 0 {
			t.Errorf("elsewhere: %+v, %d requests, %v", m.Footprint, l.asked.Load(), err)
		}
		l.pid = os.Getpid()
		service := sized("b", "1")
		service.ServiceCurve = []Batches{{Size: 1, Requests: Requests{{Model: "m"}}}}
		if m, err := r.Measure(t.Context(), service); err != nil || m.Footprint != (measure.Footprint{}) || l.asked.Load() != 0 {
			t.Errorf("a service trial: %+v, %d requests, %v", m.Footprint, l.asked.Load(), err)
		}
		l.refusal = &api.StatusError{Status: 400, Text: "too large"}
		if m, err := r.Measure(t.Context(), sized("c", "1")); err != nil || m.Failure != nil || m.Footprint != (measure.Footprint{}) || len(m.Windows) != 2 {
			t.Errorf("refused: %+v, %+v, %d windows, %v", m.Footprint, m.Failure, len(m.Windows), err)
		}
	})
}

// A largest batch that is not answered, or takes too much memory, ends the trial.
func TestFootprintThatFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(*lab, *Job)
		stage measure.Stage
	}{
		"no answer":       {func(l *lab, _ *Job) { l.service = time.Hour }, measure.StageHang},
		"too much memory": {func(_ *lab, j *Job) { j.MemoryLimit = 1 }, measure.StageMemory},
		"its end": {func(l *lab, _ *Job) {
			l.send = func(e *engine, _ int) error {
				e.die(Exit{Text: "signal: aborted"})
				return nil
			}
		}, measure.StageCrash},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l, r := newLab(t)
				l.pid = os.Getpid()
				j := sized("a", "1")
				c.spoil(l, &j)
				m, err := r.Measure(t.Context(), j)
				if err != nil || m.Failure == nil || m.Failure.Stage != c.stage || m.Footprint != (measure.Footprint{}) {
					t.Errorf("%+v, %+v, %v", m.Failure, m.Footprint, err)
				}
			})
		})
	}
}
