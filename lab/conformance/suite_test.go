//go:build conformance

package conformance

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"tuner/lab/peers"
)

// pair is a real Triton and our engine on one model repository.
type pair struct {
	triton, tuner *peers.Server
	http          *HTTPClient
	grpc          [2]*GRPCClient // Triton's, ours
	repository    string
	ended         bool // a request ended Triton
}

// newPair starts both servers on a repository.
func newPair(t *testing.T, repository string, args ...string) *pair {
	t.Helper()
	p, started := find(t), &pair{http: NewHTTPClient(), repository: repository}
	var err error
	if started.triton, err = p.StartTriton(t.Context(), repository, args...); err != nil {
		t.Fatal(err)
	}
	stopAtEnd(t, started.triton)
	// as in Triton 24.10, which has no such option
	if started.tuner, err = p.StartTuner(t.Context(), environment(t, "TUNER_BINARY"), repository, append(slices.Clone(args), "--allow-client-shm=true")...); err != nil {
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

// stopAtEnd stops a server when the test ends, and shows its output if the test failed.
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
		t.Fatalf("%s is not set: run make -C lab conformance", name)
	}
	return value
}

// ask sends a request to both servers at the same time.
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

var update = flag.Bool("update", false, "write the golden files")

// verdict compares the answers with each other and with the golden files.
type verdict struct {
	mu                    sync.Mutex
	statuses, differences map[string]string // golden
	met                   map[string]bool   // the cases that ran,
	status, different     map[string]string // the status of our answers to them, and the different answers
}

// compare asks both servers and judges their answers. A Triton without an answer has ended, as some
// requests cause; then there is no comparison.
func (v *verdict) compare(t *testing.T, p *pair, c Case) {
	t.Helper()
	id := knownDifference(c.Name)
	answers, errs := p.ask(t.Context(), c)
	for tries := 0; tries < 20 && id == "" && c.Settles() && answers[0].String() != answers[1].String(); tries++ {
		time.Sleep(100 * time.Millisecond)
		answers, errs = p.ask(t.Context(), c)
	}
	if errs[0] != nil {
		p.ended = true
		t.Fatalf("Triton does not answer: %v; take this case out if Triton ends whenever it is asked", errs[0])
	}
	if errs[1] != nil {
		t.Fatalf("tuner gives no answer: %v\nTriton: %s", errs[1], answers[0].Summary())
	}
	v.judge(t, c.Name, p.repository, answers)
}

// judge fails the test for unknown differences between the answers, and for a known difference that
// has gone or changed.
func (v *verdict) judge(t *testing.T, name, repository string, answers [2]Answer) {
	t.Helper()
	v.mu.Lock()
	defer v.mu.Unlock()
	v.met[name] = true
	if answers[1].Status != "" { // an entry of the index has none
		v.status[name] = answers[1].Status
	}
	if want := v.statuses[name]; !*update && answers[1].Status != want {
		t.Errorf("tuner's status is %q, %s has %q", answers[1].Status, statusesFile, want)
	}
	id := knownDifference(name)
	want, recorded := v.differences[name]
	if id == "" || !recorded && !*update {
		equal(t, answers)
		return
	}
	if answers[0].String() == answers[1].String() {
		if !*update {
			t.Errorf("the known difference %s is gone here: take this case out of %s", id, differencesFile)
		}
		return
	}
	t.Logf("known difference %s\nTriton: %s\ntuner:  %s", id, answers[0].Summary(), answers[1].Summary())
	if crashed := strconv.Itoa(http.StatusInternalServerError); answers[1].Status == crashed && answers[0].Status != crashed && !mayFail(id) {
		t.Errorf("status %s is no way to differ", crashed)
	}
	v.different[name] = golden(answers[1], repository)
	if !*update {
		if diff := cmp.Diff(want, v.different[name]); diff != "" {
			t.Errorf("the known difference %s is another one (-%s +tuner):\n%s", id, differencesFile, diff)
		}
	}
}

// mayFail returns Fails of the difference with an ID.
func mayFail(id string) bool {
	return slices.ContainsFunc(Differences, func(d Difference) bool { return d.ID == id && d.Fails })
}

// equal fails the test if the answers differ.
func equal(t *testing.T, answers [2]Answer) {
	t.Helper()
	if answers[0].String() == answers[1].String() {
		return
	}
	t.Errorf("answers differ\nTriton: %s\ntuner:  %s", answers[0].Summary(), answers[1].Summary())
	t.Logf("-Triton +tuner:\n%s", cmp.Diff(strings.Split(answers[0].String(), "\n"), strings.Split(answers[1].String(), "\n")))
}

// judged holds the findings of TestRequests and TestLoad.
var judged = &verdict{met: map[string]bool{}, status: map[string]string{}, different: map[string]string{}}

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

// run runs the tests with the golden files, and writes them if asked to.
func run(m *testing.M) int {
	var errs [2]error
	judged.statuses, errs[0] = readGolden(statusesFile)
	judged.differences, errs[1] = readGolden(differencesFile)
	if err := errors.Join(errs[:]...); err != nil && !*update {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if !*update {
		return code
	}
	errs[0] = updateGolden(statusesFile, judged.met, judged.status)
	errs[1] = updateGolden(differencesFile, judged.met, judged.different)
	if err := errors.Join(errs[:]...); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// updateGolden writes a golden file. It keeps the entries of cases that did not run, and adds
// answers.
func updateGolden(file string, met map[string]bool, answers map[string]string) error {
	all, err := readGolden(file)
	if err != nil {
		all = map[string]string{} // the file does not exist yet
	}
	maps.DeleteFunc(all, func(name, _ string) bool { return met[name] })
	maps.Copy(all, answers)
	text, err := indent(all)
	if err != nil {
		return fmt.Errorf("cannot write golden answers: %w", err)
	}
	return os.WriteFile(file, []byte(text+"\n"), 0o644)
}

// golden returns the beginning of an answer for the golden file. repository is the folder, which
// differs from run to run.
func golden(a Answer, repository string) string {
	const enough = 240
	text := a.Summary()
	if repository != "" {
		text = strings.ReplaceAll(text, repository, "<repository>")
	}
	if len(text) > enough {
		text = strings.TrimRightFunc(text[:enough], func(r rune) bool { return r == utf8.RuneError })
	}
	return text
}

func TestRequests(t *testing.T) {
	makeSharedFiles(t)
	for _, mode := range []struct {
		name string
		args []string
	}{
		{"explicit", []string{"--model-control-mode=explicit", "--load-model=*"}},
		{"none", nil},
		{"sequences", nil},
		{"steps", nil},
		{"cache", []string{"--cache-config=local,size=4194304", "--cache-directory=" + find(t).Caches}},
		{"tracing", []string{"--trace-config=triton,file=/dev/null"}}, // nothing is traced: both servers would write there
		{"ensembles", []string{"--model-control-mode=explicit", "--load-model=*", "--cache-config=local,size=4194304", "--cache-directory=" + find(t).Caches}},
	} {
		t.Run(mode.name, func(t *testing.T) {
			newPair(t, newRepository(t, mode.name), mode.args...).compare(t, mode.name)
		})
	}
	t.Run("namespaces", func(t *testing.T) {
		p := newPair(t, newRepository(t, "namespaces_a"), "--model-control-mode=explicit", "--model-namespacing=true",
			"--model-repository="+newRepository(t, "namespaces_b"), "--model-repository="+newRepository(t, "namespaces_c"))
		p.compare(t, "namespaces")
	})
}

// compare makes the requests of a folder.
func (p *pair) compare(t *testing.T, folder string) {
	t.Helper()
	cases, err := ReadCases(filepath.Join("testdata", "requests", folder))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		if !p.ended {
			t.Run(c.Name, func(t *testing.T) { judged.compare(t, p, c) })
		}
	}
}
