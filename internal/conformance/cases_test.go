package conformance

import (
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

// The surface that the engine has; each endpoint is asked at least ten different things.
func TestEveryEndpointIsAsked(t *testing.T) {
	t.Parallel()
	asked := map[string]int{}
	for _, mode := range []string{"explicit", "none"} {
		cases, err := ReadCases(filepath.Join("testdata", "requests", mode))
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range cases {
			asked[c.Endpoint()]++
		}
	}
	for _, endpoint := range []string{
		"/v2", "/v2/health/live", "/v2/health/ready", "/v2/models/M", "/v2/models/M/config", "/v2/models/M/ready",
		"/v2/models/M/stats", "/v2/models/stats", "/v2/models/M/infer", "/v2/repository/index", "/v2/repository/models/M/load",
		"/v2/repository/models/M/unload",
		"Check", "ServerLive", "ServerReady", "ServerMetadata", "ModelReady", "ModelMetadata", "ModelConfig", "ModelStatistics",
		"ModelInfer", "ModelStreamInfer", "RepositoryIndex", "RepositoryModelLoad", "RepositoryModelUnload",
	} {
		if asked[endpoint] < 10 {
			t.Errorf("%s is asked %d things only", endpoint, asked[endpoint])
		}
	}
}
