package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"tuner/fleet"
	"tuner/fleet/record"
	"tuner/internal/exit"
	"tuner/internal/hostinfo"
	"tuner/internal/programtest"
	"tuner/internal/transcript"
)

// apiServer keeps ConfigMaps as the real one does: a name can be created once.
type apiServer struct {
	*httptest.Server
	mu    sync.Mutex
	kept  map[string]record.ConfigMap
	fails int // so many requests fail first
	asked int
}

func newAPIServer(t *testing.T) *apiServer {
	s := &apiServer{kept: map[string]record.ConfigMap{}}
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.asked++
		var m record.ConfigMap
		switch err := json.NewDecoder(r.Body).Decode(&m); {
		case r.Header.Get("Authorization") != "Bearer secret" || r.Method != http.MethodPost || r.URL.Path != "/api/v1/namespaces/tuning/configmaps":
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprintf(w, `{"message": "%s %s is forbidden"}`, r.Method, r.URL.Path)
		case err != nil || m.Metadata.Name == "" || !m.Immutable:
			w.WriteHeader(http.StatusUnprocessableEntity)
		case s.asked <= s.fails:
			w.WriteHeader(http.StatusServiceUnavailable)
		case s.kept[m.Metadata.Name].Metadata.Name != "":
			w.WriteHeader(http.StatusConflict)
		case r.URL.Query().Get("dryRun") == "All": // tried, and not kept
			w.WriteHeader(http.StatusCreated)
		default:
			s.kept[m.Metadata.Name] = m
			w.WriteHeader(http.StatusCreated)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// join joins what the server keeps.
func (s *apiServer) join(t *testing.T) []record.Delivery {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []record.ConfigMap
	for _, m := range s.kept {
		list = append(list, m)
	}
	d, err := record.Join(list)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// pod makes the options of a worker whose campaign is a shell script. The script gets the profile's
// path as $2.
func pod(t *testing.T, s *apiServer, script string) Options {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	model := write("model.onnx", "a model")
	part := fleet.Part{Format: fleet.PlanFormat, Run: "q3-1", Machine: "c7i", CPUs: 1, Exclusive: fleet.Shared,
		Models: []fleet.PodPlan{{Model: "m", File: model, SHA256: record.Digest([]byte("a model")), Profile: "model: m\noutput: /work/out\n"}}, Items: []fleet.Item{{Model: "m", Repeat: 1}}}
	text, err := part.JSON()
	if err != nil {
		t.Fatal(err)
	}
	write("token", "secret\n")
	write("namespace", "tuning")
	write("ca.crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})))
	host, port, err := net.SplitHostPort(s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	environment := map[string]string{"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port, "JOB_COMPLETION_INDEX": "0", "POD_UID": "11112222-3333", "POD_NAME": "q3-1-s1-c7i-0-abcde"}
	work := filepath.Join(dir, "work")
	if err := os.MkdirAll(filepath.Join(work, "out"), 0o700); err != nil {
		t.Fatal(err)
	}
	return Options{
		Plan: write("plan.json", string(text)), Program: programtest.Write(t, filepath.Join(dir, "program.sh"), "#!/bin/sh\nout=$(dirname $2)/out\n"+script), Work: work, Account: dir,
		Environment: func(name string) string { return environment[name] }, Output: &bytes.Buffer{}, Messages: &transcript.Text{}, Version: "tuner test",
		Every: 20 * time.Millisecond, Patience: time.Minute,
	}
}

// The journal of a campaign arrives as it grows, and is whole at the end. The file says where the pod
// writes.
func TestWorkerDelivers(t *testing.T) {
	t.Parallel()
	for code, script := range map[int]string{
		exit.OK:         `grep -q "output: $out" $2 || exit 9; echo '{"header"}' > $out/journal.jsonl; sleep 0.2; echo '{"a"}' >> $out/journal.jsonl; printf '{"tor' >> $out/journal.jsonl`,
		exit.Infeasible: `echo '{"header"}' > $out/journal.jsonl; echo '{"a"}' >> $out/journal.jsonl; exit 5`,
	} {
		s := newAPIServer(t)
		s.fails = 2 // the first answers are lost: whether there is a result, and the first segment's
		o := pod(t, s, script)
		if err := Run(t.Context(), o); err != nil {
			t.Fatalf("%v; %s", err, o.Messages)
		}
		d := s.join(t)
		if len(d) != 1 || d[0].Result == nil || d[0].Result.Exit != code || string(d[0].Journal) != "{\"header\"}\n{\"a\"}\n" || d[0].Result.Pod != "q3-1-s1-c7i-0-abcde" {
			t.Errorf("exit %d: %+v", code, d)
		}
	}
}

// The first result counts. A second attempt ends without a failure, and changes nothing.
func TestSuperseded(t *testing.T) {
	t.Parallel()
	s := newAPIServer(t)
	const script = `echo '{"header"}' > $out/journal.jsonl`
	if err := Run(t.Context(), pod(t, s, script)); err != nil {
		t.Fatal(err)
	}
	// A second attempt that begins later measures nothing.
	o := second(pod(t, s, script))
	if err := Run(t.Context(), o); err != nil || !strings.Contains(fmt.Sprint(o.Messages), "superseded") {
		t.Errorf("%v; %s", err, o.Messages)
	}
	d := s.join(t)
	if d[0].Result.Attempt != "11112222-3333" || string(d[0].Journal) != "{\"header\"}\n" || len(d[0].Discarded) != 0 {
		t.Errorf("%+v", d[0])
	}
}

// second returns the options of another pod of the same item.
func second(o Options) Options {
	first := o.Environment
	o.Environment = func(name string) string {
		if name == "POD_UID" {
			return "99998888-7777"
		}
		return first(name)
	}
	return o
}

// An attempt during which another one delivers ends at once, and changes nothing.
func TestSupersededWhileItMeasures(t *testing.T) {
	t.Parallel()
	s := newAPIServer(t)
	late := second(pod(t, s, `echo '{"late"}' > $out/journal.jsonl; exec sleep 1000`))
	ended := make(chan error)
	go func() { ended <- Run(t.Context(), late) }()
	for len(s.join(t)) == 0 { // its first segment
		time.Sleep(time.Millisecond)
	}
	s.mu.Lock()
	result, err := record.Result{Job: "q3-1-s1-c7i", Attempt: "11112222-3333", SHA256: record.Digest(nil)}.ConfigMap("q3-1")
	s.kept[result.Metadata.Name] = result
	s.mu.Unlock()
	if second := <-ended; err != nil || second != nil {
		t.Errorf("%v, %v", err, second)
	}
	if d := s.join(t); d[0].Result.Attempt != "11112222-3333" || len(d[0].Discarded) != 1 {
		t.Errorf("%+v", d[0])
	}
}

// What cannot work is not tried again; what may pass is. What was measured is delivered in both cases.
func TestWorkerFails(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]int{
		`echo '{"header"}' > $out/journal.jsonl; exit 2`:     exit.Rejected,
		`echo '{"header"}' > $out/journal.jsonl; exit 1`:     exit.Failure,
		`echo '{"header"}' > $out/journal.jsonl; kill -9 $$`: exit.Failure,
	} {
		s := newAPIServer(t)
		err := Run(t.Context(), pod(t, s, script))
		d := s.join(t)
		if exit.CodeOf(err) != want || len(d) != 1 || d[0].Result != nil || d[0].Attempts[0].Bytes != 11 {
			t.Errorf("%q: %v (%d), %+v", script, err, exit.CodeOf(err), d)
		}
	}
	for name, change := range map[string]func(o *Options){
		"another model": func(o *Options) {
			_ = os.WriteFile(filepath.Join(filepath.Dir(o.Plan), "model.onnx"), []byte("b"), 0o600)
		},
		"no model": func(o *Options) { _ = os.Remove(filepath.Join(filepath.Dir(o.Plan), "model.onnx")) },
		"no plan":  func(o *Options) { o.Plan += "x" },
		"no index": func(o *Options) { o.Environment = func(string) string { return "" } },
	} {
		o := pod(t, newAPIServer(t), "exit 0")
		change(&o)
		if err := Run(t.Context(), o); exit.CodeOf(err) != exit.Rejected {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A pod that is asked to end delivers what was measured, and is no result.
func TestWorkerIsAskedToEnd(t *testing.T) {
	t.Parallel()
	s := newAPIServer(t)
	o := pod(t, s, `trap 'echo "{\"last\"}" >> $out/journal.jsonl; exit 130' TERM; echo '{"header"}' > $out/journal.jsonl; while :; do sleep 0.05; done`)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for _, err := os.Stat(filepath.Join(o.Work, "out", "journal.jsonl")); err != nil; _, err = os.Stat(filepath.Join(o.Work, "out", "journal.jsonl")) {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	err := Run(ctx, o)
	d := s.join(t)
	if exit.CodeOf(err) != exit.Interrupted || len(d) != 1 || d[0].Result != nil || d[0].Attempts[0].Bytes != int64(len("{\"header\"}\n{\"last\"}\n")) {
		t.Errorf("%v, %+v", err, d)
	}
}

// An answer that another attempt would not change ends the delivery at once.
func TestRefused(t *testing.T) {
	t.Parallel()
	s := newAPIServer(t)
	o := pod(t, s, `echo '{"header"}' > $out/journal.jsonl`)
	_ = os.WriteFile(filepath.Join(o.Account, "token"), []byte("other"), 0o600)
	err := Run(t.Context(), o)
	if refused := new(refusedError); !errors.As(err, &refused) || refused.status != http.StatusForbidden || !strings.Contains(err.Error(), "is forbidden") {
		t.Errorf("%v", err)
	}
}

func TestCheckPlace(t *testing.T) {
	t.Parallel()
	host := func(cpus int, quota float64) hostinfo.Host {
		return hostinfo.Host{CPU: hostinfo.CPU{Allowed: make([]int, cpus), Quota: quota}}
	}
	for name, c := range map[string]struct {
		exclusive string
		host      hostinfo.Host
		want      string
	}{
		"cores of its own":            {fleet.ExclusiveCores, host(4, 0), ""},
		"and the quota of them":       {fleet.ExclusiveCores, host(4, 4), ""},
		"the shared cores":            {fleet.ExclusiveCores, host(64, 4), "asks for 4 cores of its own, and may run on 64"},
		"a quota below them":          {fleet.ExclusiveCores, host(4, 0.5), "a quota of 0.5 cores' time stops it in every period; let the administrator set cpuManagerPolicy: static"},
		"a node that nobody looks at": {fleet.ExclusiveNode, host(64, 0.5), ""},
		"shared":                      {fleet.Shared, host(64, 0.5), ""},
		"unknown":                     {fleet.ExclusiveCores, host(0, 0), ""},
	} {
		err := checkPlace(fleet.Part{CPUs: 4, Exclusive: c.exclusive}, c.host)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A journal that does not fit into one segment is cut at its lines, and a line at its bytes.
func TestPack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	noise := make([]byte, 3<<20)
	state := uint32(1)
	for i := range noise { // xorshift: no compression makes it smaller
		state ^= state << 13
		state ^= state >> 17
		state ^= state << 5
		noise[i] = byte(state>>8) | 1<<5 // never a newline
	}
	text := append(append([]byte("{header}\n"), noise...), "\n{end}\n"...)
	path := filepath.Join(dir, "journal.jsonl")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	s := newAPIServer(t)
	o := pod(t, s, "")
	to, err := newClient(o.Environment, o.Account)
	if err != nil {
		t.Fatal(err)
	}
	send := &sender{to: to, run: "r", machine: "m", attempt: record.Attempt{Item: record.Item{Job: "j"}, UID: "u"}, journal: path}
	if err := send.finish(t.Context()); err != nil {
		t.Fatal(err)
	}
	if d := s.join(t); send.sent != int64(len(text)) || send.segments < 4 || d[0].Attempts[0].Bytes != int64(len(text)) {
		t.Errorf("%d bytes in %d segments; %+v", send.sent, send.segments, d[0].Attempts)
	}
}

// F11 of docs/design/fleet.md: a journal of 40 MB arrives whole, and no segment is larger than a ConfigMap holds. Its lines become
// a quarter by gzip, as those of real journals do.
func TestLongJournal(t *testing.T) {
	t.Parallel()
	const size = 40_000_000
	r := rand.New(rand.NewPCG(1, 2))
	var text bytes.Buffer
	for seq := 1; text.Len() < size; seq++ {
		fmt.Fprintf(&text, `{"seq":%d,"kind":"trial","windows":[`, seq)
		for range 20 { // figures, and the names of their fields
			fmt.Fprintf(&text, `{"duration":500000000,"requests":%d,"latency_mean":%.6g,"server":{"inferences":%d,"queue":0},"flags":[]},`, 1000+r.IntN(99), r.Float64(), 4000+r.IntN(99))
		}
		text.WriteString("{}]}\n")
	}
	s := newAPIServer(t)
	o := pod(t, s, `cp "$(dirname $(dirname $out))/long.jsonl" $out/journal.jsonl`)
	if err := os.WriteFile(filepath.Join(filepath.Dir(o.Work), "long.jsonl"), text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Run(t.Context(), o); err != nil {
		t.Fatalf("%v; %s", err, o.Messages)
	}
	d := s.join(t)
	if len(d) != 1 || d[0].Result == nil || !bytes.Equal(d[0].Journal, text.Bytes()) {
		t.Fatalf("%d deliveries", len(d))
	}
	// A segment takes longestTry at most, and half of that if it does not fit.
	if n := d[0].Result.Segments; n < size/longestTry || n > 2*size/longestTry+2 {
		t.Errorf("%d segments", n)
	}
	for name, m := range s.kept {
		if packed := len(m.BinaryData["journal.gz"]); packed > record.MostBytes {
			t.Errorf("%s has %d bytes", name, packed)
		}
	}
}
