package conformance

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseCase(t *testing.T) {
	t.Parallel()
	check := func(text string, want Case) {
		t.Helper()
		got, err := parseCase(text)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
	check("GET /v2\n", Case{Verb: "GET", Target: "/v2", Parts: []string{""}})
	check("POST /v2/x\nA: b: c\n\n{\n}\n\n", Case{Verb: "POST", Target: "/v2/x", Headers: []Header{{"A", "b: c"}}, Parts: []string{"{\n}"}})
	check("POST /v2/x\n\n{<<list 3 7>>}\n---\n<<int16 258>>\n", Case{Verb: "POST", Target: "/v2/x", Parts: []string{"{7,8,9}", "\x02\x01"}})
	check("ServerLive", Case{Target: "ServerLive", Parts: []string{""}})
	check("ModelStreamInfer\nid: \"1\"\n---\nraw: <<quote (int8 1 255)>>\n",
		Case{Target: "ModelStreamInfer", Parts: []string{`id: "1"`, `raw: "\001\377"`}})
}

func TestParseCaseRefuses(t *testing.T) {
	t.Parallel()
	check := func(text, want string) {
		t.Helper()
		if _, err := parseCase(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v does not say %q", text, err, want)
		}
	}
	check("GET v2", "neither an HTTP method and a path nor a gRPC method")
	check("GET /v2\nno header", `"no header" is not a header`)
	check("GET /v2\n\n<<nope>>", "nope")
}

func TestEndpoint(t *testing.T) {
	t.Parallel()
	check := func(c Case, want string) {
		t.Helper()
		if got := c.Endpoint(); got != want {
			t.Errorf("%+v: %q, want %q", c, got, want)
		}
	}
	check(Case{Verb: "GET", Target: "/v2/models/a/versions/1/stats?x"}, "/v2/models/M/stats")
	check(Case{Verb: "GET", Target: "/v2/models/stats"}, "/v2/models/stats")
	check(Case{Verb: "POST", Target: "/v2/repository/models/a/load"}, "/v2/repository/models/M/load")
	check(Case{Target: "ModelInfer"}, "ModelInfer")
}

// endpoints are the endpoints of the engine. Each gets at least ten different requests, except
// those whose requests have no fields.
var endpoints = map[string]int{
	"/v2": 10, "/v2/health/live": 10, "/v2/health/ready": 10, "/v2/models/M": 10, "/v2/models/M/config": 10,
	"/v2/models/M/ready": 10, "/v2/models/M/stats": 10, "/v2/models/stats": 10, "/v2/models/M/infer": 10,
	"/v2/repository/index": 10, "/v2/repository/models/M/load": 10, "/v2/repository/models/M/unload": 10,
	"Check": 10, "ServerLive": 1, "ServerReady": 1, "ServerMetadata": 1, "ModelReady": 10, "ModelMetadata": 10,
	"ModelConfig": 10, "ModelStatistics": 10, "ModelInfer": 10, "ModelStreamInfer": 10, "RepositoryIndex": 10,
	"RepositoryModelLoad": 10, "RepositoryModelUnload": 10,
}

func TestEveryEndpointIsAsked(t *testing.T) {
	t.Parallel()
	asked := map[string]map[string]bool{}
	for _, mode := range []string{"explicit", "none", "cache", "sequences", "ensembles"} {
		state := 0 // the same request counts again after a model was loaded or unloaded
		for _, c := range readCases(t, mode) {
			endpoint := c.Endpoint()
			if asked[endpoint] == nil {
				asked[endpoint] = map[string]bool{}
			}
			request := fmt.Sprintf("%q", []any{c.Verb, c.Target, c.Headers, c.Parts})
			if changing := strings.ToLower(endpoint); strings.HasSuffix(changing, "load") {
				state++
			} else if strings.HasSuffix(changing, "index") {
				request += fmt.Sprint(mode, state)
			}
			asked[endpoint][request] = true
		}
	}
	for endpoint, want := range endpoints {
		if got := len(asked[endpoint]); got < want {
			t.Errorf("%s is asked %d things only", endpoint, got)
		}
	}
}

// errorClasses are the kinds of refusals by the engine. At least five requests cause each.
var errorClasses = []string{
	"400", "404", "405", "500", "501", "503", "NotFound", "InvalidArgument", "Internal", "Unavailable", "Unimplemented",
}

func TestEveryClassOfErrorIsMet(t *testing.T) {
	t.Parallel()
	statuses, err := readGolden(statusesFile)
	if err != nil {
		t.Fatal(err)
	}
	answered := map[string]int{}
	for _, mode := range []string{"explicit", "none", "cache", "sequences", "ensembles"} {
		for _, c := range readCases(t, mode) {
			status, ok := statuses[c.Name]
			if !ok {
				t.Errorf("%s lacks %q: go test -tags conformance -update", statusesFile, c.Name)
			}
			answered[status]++
		}
	}
	for _, class := range errorClasses {
		if answered[class] < 5 {
			t.Errorf("%s is the answer to %d requests only", class, answered[class])
		}
	}
}

func readCases(t *testing.T, mode string) []Case {
	t.Helper()
	cases, err := ReadCases(filepath.Join("testdata", "requests", mode))
	if err != nil {
		t.Fatal(err)
	}
	return cases
}
