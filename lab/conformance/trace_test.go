//go:build conformance

package conformance

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"tuner/lab/peers"
)

// tracedRequests are requests that are traced: to a model, over gRPC, to an ensemble, twice to a model with a cache, one
// that cannot be read, and two that fail.
func tracedRequests(t *testing.T) []Case {
	t.Helper()
	input := func(name string) string {
		return fmt.Sprintf(`{"name":%q,"datatype":"INT32","shape":[1,16],"data":[%s]}`, name, strings.TrimSuffix(strings.Repeat("1,", 16), ","))
	}
	post := func(model, body string) Case {
		return Case{Verb: "POST", Target: "/v2/models/" + model + "/infer", Parts: []string{body}}
	}
	good := `{"id":"r","inputs":[` + input("INPUT0") + "," + input("INPUT1") + `]}`
	bad := `{"id":"f","inputs":[{"name":"INPUT","shape":[1,4],"datatype":"FP32","data":[1,2,3,4]}]}`
	tensor := `inputs { name: "INPUT%d" datatype: "INT32" shape: [1,16] contents { int_contents: [1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1] } } `
	return []Case{
		post("part", good), {Target: "ModelInfer", Parts: []string{`model_name: "part" id: "g" ` + fmt.Sprintf(tensor, 0) + fmt.Sprintf(tensor, 1)}},
		post("chain", good), post("part_cached", good), post("part_cached", good), post("part", "{"), post("failing", bad), post("fails", bad),
	}
}

// tracing is a server that traces each request.
type tracing struct {
	name   string
	server *peers.Server
	grpc   *GRPCClient
}

// startTracing starts both servers. args are the options for the one of a name.
func startTracing(t *testing.T, args func(name string) []string) []tracing {
	t.Helper()
	p, repository := find(t), newRepository(t, "ensembles")
	all := []tracing{{name: "triton"}, {name: "tuner"}}
	for i := range all {
		options := append(args(all[i].name), "--trace-config=level=TIMESTAMPS", "--trace-config=rate=1", "--model-control-mode=explicit", "--load-model=*",
			"--cache-config=local,size=4194304", "--cache-directory="+p.Caches)
		var err error
		if all[i].name == "triton" {
			all[i].server, err = p.StartTriton(t.Context(), repository, options...)
		} else {
			all[i].server, err = p.StartTuner(t.Context(), environment(t, "TUNER_BINARY"), repository, options...)
		}
		if err != nil {
			t.Fatal(err)
		}
		stopAtEnd(t, all[i].server)
		if all[i].grpc, err = NewGRPCClient(all[i].server.GRPC); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = all[i].grpc.Close() })
	}
	return all
}

// ask sends a request.
func (s *tracing) ask(ctx context.Context, t *testing.T, c Case) {
	t.Helper()
	client := NewHTTPClient()
	defer client.Close()
	var err error
	if c.Verb == "" {
		_, err = s.grpc.Do(ctx, c)
	} else {
		_, err = client.Do(ctx, s.server.HTTP, c)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestTraceFiles compares the files of traces: what is recorded of each request and of its steps, and in which
// order. In Triton the sending of an answer may come before or after the last moments of its model. Here it is last.
func TestTraceFiles(t *testing.T) {
	folder := t.TempDir()
	all := startTracing(t, func(name string) []string {
		return []string{"--trace-config=triton,file=" + filepath.Join(folder, name), "--trace-config=triton,log-frequency=1"}
	})
	for i, c := range tracedRequests(t) {
		var got [2][]string
		for k := range all {
			all[k].ask(t.Context(), t, c)
			got[k] = fileOf(t, filepath.Join(folder, fmt.Sprintf("%s.%d", all[k].name, i)))
		}
		if diff := cmp.Diff(got[0], got[1]); diff != "" || len(got[0]) == 0 {
			t.Errorf("%s %s (-Triton +tuner):\n%s", c.Target, c.Parts[0], diff)
		}
	}
}

// fileOf waits for a file of traces. It returns a line for each trace.
func fileOf(t *testing.T, name string) (lines []string) {
	t.Helper()
	var list []struct {
		ID         int
		Model      string `json:"model_name"`
		Version    int    `json:"model_version"`
		Request    string `json:"request_id"`
		Parent     int    `json:"parent_id"`
		Timestamps []struct{ Name string }
	}
	waitFor(t, name, func() bool {
		data, err := os.ReadFile(name)
		return err == nil && json.Unmarshal(data, &list) == nil
	})
	traces := map[int][]string{}
	for _, e := range list {
		if e.Model != "" {
			traces[e.ID] = append(traces[e.ID], fmt.Sprint(e.Model, " ", e.Version, " ", e.Request, " below another: ", e.Parent > 0))
		}
		for _, m := range e.Timestamps {
			traces[e.ID] = append(traces[e.ID], m.Name)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(traces)) {
		slices.SortStableFunc(traces[id], func(a, b string) int { return isSent(a) - isSent(b) })
		lines = append(lines, strings.Join(traces[id], ", "))
	}
	return lines
}

// isSent is 1 for the moments of an answer's sending over HTTP.
func isSent(moment string) int {
	if strings.HasPrefix(moment, "HTTP_SEND") {
		return 1
	}
	return 0
}

// waitFor waits until a condition holds.
func waitFor(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for range 100 {
		if holds() {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("there is no %s", what)
}

// TestTraceSpans compares the spans that a collector gets, each request as a tree.
func TestTraceSpans(t *testing.T) {
	collectors := map[string]chan []span{}
	all := startTracing(t, func(name string) []string {
		got := make(chan []span, 100)
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			spans, err := readSpans(r)
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			w.WriteHeader(http.StatusOK)
			got <- spans
		}))
		t.Cleanup(server.Close)
		collectors[name] = got
		return []string{"--trace-config=mode=opentelemetry", "--trace-config=opentelemetry,bsp_schedule_delay=50",
			"--trace-config=opentelemetry,url=" + strings.TrimPrefix(server.URL, "http://") + "/v1/traces"}
	})
	for _, c := range tracedRequests(t) {
		if c.Verb != "" {
			c.Headers = append(c.Headers, Header{"traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"})
		}
		var got [2]string
		for k := range all {
			all[k].ask(t.Context(), t, c)
			got[k] = treeOf(collectors[all[k].name])
		}
		if diff := cmp.Diff(strings.Split(got[0], "\n"), strings.Split(got[1], "\n")); diff != "" {
			t.Errorf("%s %s (-Triton +tuner):\n%s", c.Target, c.Parts[0], diff)
		}
	}
}

// span is a span as a collector gets it.
type span struct {
	trace, id, parent, text string
}

// readSpans reads an export: Triton's are JSON, and the engine's protobuf.
func readSpans(r *http.Request) (spans []span, err error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	if r.Header.Get("Content-Type") == "application/json" {
		return readJSON(body)
	}
	var export collector.ExportTraceServiceRequest
	if err := proto.Unmarshal(body, &export); err != nil {
		return nil, err
	}
	for _, resource := range export.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			for _, s := range scope.Spans {
				text := fmt.Sprint(scope.Scope.Name, " ", s.Name, " ", int(s.Kind))
				for _, a := range s.Attributes {
					text += attribute(a.Key, a.Value.GetStringValue(), a.Value.GetIntValue())
				}
				for _, e := range s.Events {
					text += " " + e.Name
				}
				spans = append(spans, span{hex.EncodeToString(s.TraceId), hex.EncodeToString(s.SpanId), hex.EncodeToString(s.ParentSpanId), text})
			}
		}
	}
	return spans, nil
}

func readJSON(body []byte) (spans []span, err error) {
	var export struct {
		ResourceSpans []struct {
			ScopeSpans []struct {
				Scope struct{ Name string }
				Spans []struct {
					TraceID, SpanID, ParentSpanID, Name string
					Kind                                int
					Attributes                          []struct {
						Key   string
						Value struct {
							StringValue string
							IntValue    int64 `json:",string"`
						}
					}
					Events []struct{ Name string }
				}
			}
		}
	}
	if err := json.Unmarshal(body, &export); err != nil {
		return nil, err
	}
	for _, resource := range export.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			for _, s := range scope.Spans {
				text := fmt.Sprint(scope.Scope.Name, " ", s.Name, " ", s.Kind)
				for _, a := range s.Attributes {
					text += attribute(a.Key, a.Value.StringValue, a.Value.IntValue)
				}
				for _, e := range s.Events {
					text += " " + e.Name
				}
				spans = append(spans, span{s.TraceID, s.SpanID, s.ParentSpanID, text})
			}
		}
	}
	return spans, nil
}

// attribute writes an attribute. Of the numbers of traces it keeps only whether they are zero.
func attribute(key, text string, number int64) string {
	if key == "triton.trace_id" || key == "triton.trace_parent_id" {
		return fmt.Sprint(" ", key, "=", number != 0)
	}
	return fmt.Sprint(" ", key, "=", text, number)
}

// treeOf waits for the spans of a request, and writes them as a tree. The root, which ends last, is exported last.
func treeOf(got chan []span) string {
	var all []span
	for {
		all = append(all, <-got...)
		for _, s := range all {
			if !slices.ContainsFunc(all, func(other span) bool { return other.id == s.parent }) && strings.Contains(s.text, " InferRequest ") {
				isOfCaller := s.parent == "b7ad6b7169203331" && s.trace == "0af7651916cd43dd8448eb211c80319c"
				return fmt.Sprintln("of the caller:", isOfCaller) + branch(all, s, "")
			}
		}
	}
}

func branch(all []span, s span, indent string) string {
	var below []string
	for _, other := range all {
		if other.parent == s.id {
			below = append(below, branch(all, other, indent+"  "))
		}
	}
	slices.Sort(below)
	return indent + s.text + "\n" + strings.Join(below, "")
}
