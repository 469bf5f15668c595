//go:build conformance

package conformance

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tuner/internal/peers"
)

// pair is a real Triton and our engine on one model repository.
type pair struct {
	triton, tuner *peers.Server
	http          *HTTPClient
	grpc          [2]*GRPCClient // Triton's, ours
	ended         bool           // Triton has, because of a request
}

// newPair starts both servers on a repository.
func newPair(t *testing.T, repository string, args ...string) *pair {
	t.Helper()
	p, started := find(t), &pair{http: NewHTTPClient()}
	var err error
	if started.triton, err = p.StartTriton(t.Context(), repository, args...); err != nil {
		t.Fatal(err)
	}
	stopAtEnd(t, started.triton)
	if started.tuner, err = p.StartTuner(t.Context(), environment(t, "TUNER_BINARY"), repository, args...); err != nil {
		t.Fatal(err)
	}
	stopAtEnd(t, started.tuner)
	for i, server := range []*peers.Server{started.triton, started.tuner} {
		if started.grpc[i], err = NewGRPCClient(server.GRPC); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { started.grpc[i].Close() })
	}
	t.Cleanup(started.http.Close)
	return started
}

// newRepository makes one of the repositories of testdata.
func newRepository(t *testing.T, name string) string {
	t.Helper()
	models, err := ReadModels(filepath.Join("testdata", "repositories", name+".txtar"))
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := WriteRepository(models, folder, environment(t, "TUNER_MODELS")); err != nil {
		t.Fatal(err)
	}
	return folder
}

// stopAtEnd stops a server when the test ends, and shows what it printed when the test failed.
func stopAtEnd(t *testing.T, s *peers.Server) {
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Errorf("cannot stop the server: %v", err)
		}
		if t.Failed() && testing.Verbose() {
			lines := strings.Split(s.Output(), "\n")
			t.Logf("the last that %s printed:\n%s", s.HTTP, strings.Join(lines[max(0, len(lines)-30):], "\n"))
		}
	})
}

func find(t *testing.T) *peers.Peers {
	t.Helper()
	p, err := peers.Find()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func environment(t *testing.T, name string) string {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		t.Fatalf("%s is not set: run make conformance", name)
	}
	return value
}

// ask makes a request of both servers at the same time.
func (p *pair) ask(ctx context.Context, c Case) (answers [2]Answer, errs [2]error) {
	var both sync.WaitGroup
	for i, server := range []*peers.Server{p.triton, p.tuner} {
		both.Go(func() {
			if c.Verb != "" {
				answers[i], errs[i] = p.http.Do(ctx, server.HTTP, c)
			} else {
				answers[i], errs[i] = p.grpc[i].Do(ctx, c)
			}
		})
	}
	both.Wait()
	return answers, errs
}

// verdict collects the known differences, as knownDifference names them.
type verdict struct {
	mu   sync.Mutex
	met  map[string]bool // a case of theirs ran
	seen map[string]bool // and differed
}

// compare asks both servers and judges their answers. A Triton that gives no answer has ended, as some requests make it:
// nothing can be compared with it.
func (v *verdict) compare(t *testing.T, p *pair, c Case) {
	t.Helper()
	known := knownDifference(c.Name)
	answers, errs := p.ask(t.Context(), c)
	for tries := 0; tries < 20 && known == "" && c.Settles() && answers[0].String() != answers[1].String(); tries++ {
		time.Sleep(100 * time.Millisecond)
		answers, errs = p.ask(t.Context(), c)
	}
	if errs[0] != nil {
		p.ended = true
		t.Fatalf("Triton does not answer: %v; take this case out if Triton ends whenever it is asked", errs[0])
	}
	if errs[1] != nil {
		answers[1] = Answer{Status: "no answer", Text: errs[1].Error()}
	}
	v.judge(t, c.Name, answers)
}

// judge fails the test for answers that differ without being known to.
func (v *verdict) judge(t *testing.T, name string, answers [2]Answer) {
	t.Helper()
	differ := answers[0].String() != answers[1].String()
	known := knownDifference(name)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.met[known] = true
	switch {
	case differ && known == "":
		t.Errorf("answers differ\nTriton: %s\ntuner:  %s", answers[0].Summary(), answers[1].Summary())
		t.Logf("-Triton +tuner:\n%s", cmp.Diff(strings.Split(answers[0].String(), "\n"), strings.Split(answers[1].String(), "\n")))
	case differ:
		v.seen[known] = true
	}
}

// differences is what TestRequests and TestLoad find; TestMain judges it.
var differences = &verdict{seen: map[string]bool{}, met: map[string]bool{}}

func TestMain(m *testing.M) {
	code := m.Run()
	for known := range differences.met {
		if known != "" && !differences.seen[known] {
			fmt.Fprintf(os.Stderr, "a known difference is gone, take it off the list: %s\n", known)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

func TestRequests(t *testing.T) {
	for _, mode := range []struct {
		name string
		args []string
	}{
		{"explicit", []string{"--model-control-mode=explicit", "--load-model=*"}},
		{"none", nil},
	} {
		t.Run(mode.name, func(t *testing.T) {
			p := newPair(t, newRepository(t, mode.name), mode.args...)
			cases, err := ReadCases(filepath.Join("testdata", "requests", mode.name))
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range cases {
				if !p.ended {
					t.Run(c.Name, func(t *testing.T) { differences.compare(t, p, c) })
				}
			}
		})
	}
}
