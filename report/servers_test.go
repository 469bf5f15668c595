package report_test

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"tuner/analyze"
	"tuner/profile/journal"
	"tuner/report"
	"tuner/report/html"
	resultjson "tuner/report/json"
	"tuner/report/markdown"
	"tuner/report/reporttest"
	"tuner/report/text"
)

// Every report names the measured server. It does not mention an ONNX Runtime that did not serve.
func TestServersAreNamed(t *testing.T) {
	t.Parallel()
	triton := &journal.ServerInfo{Mode: "local", Where: "/opt/tritonserver", Name: "triton", Version: "2.51.0"}
	remote := &journal.ServerInfo{Mode: "remote", Where: "gpu7:8001", Name: "triton", Version: "2.51.0"}
	bundled := &journal.ServerInfo{Mode: "bundled"}
	summary := func(w io.Writer, r analyze.Result) error { return markdown.Write(w, r, false) }
	page := func(w io.Writer, r analyze.Result) error { return html.Write(w, r, false) }
	for _, c := range []struct {
		name           string
		server, finals *journal.ServerInfo
		write          func(io.Writer, analyze.Result) error
		want           []string
		never          string
	}{
		{"table", triton, nil, text.WriteTable, []string{"Measured on triton 2.51.0 (/opt/tritonserver)."}, "ONNX Runtime"},
		{"table of two", nil, triton, text.WriteTable,
			[]string{"The search was measured on the bundled engine, and the finals on triton 2.51.0 (/opt/tritonserver)."}, "Measured on"},
		{"table of two, the other way round", triton, bundled, text.WriteTable, []string{"and the finals on the bundled engine"}, "Measured on"},
		{"table of finals on a server that runs already", triton, remote, text.WriteTable,
			[]string{"; measured again with the model reloaded", "✓ measured again with the model reloaded"}, "fresh process"},
		{"markdown", triton, nil, summary, []string{"- server: triton 2.51.0 (/opt/tritonserver)\n"}, "ONNX Runtime"},
		{"markdown of two", nil, triton, summary, []string{"- server: the bundled engine\n", "- server of the finals: triton 2.51.0", "- ONNX Runtime 1.31.1 (cpu)"}, "Measured on"},
		{"stages of two", nil, triton, summary, []string{"Stage 1 alone was measured on the bundled engine, and the best configuration on triton 2.51.0 " +
			"(/opt/tritonserver), so their figures do not compare."}, "a larger budget measures it"},
		{"JSON", triton, nil, resultjson.Write, []string{`"server": "triton 2.51.0 (/opt/tritonserver)"`, `"where": "/opt/tritonserver"`, `"runtimes": []`}, "bundled"},
		{"JSON of two", nil, triton, resultjson.Write, []string{`"server": "the bundled engine"`, `"server": "triton 2.51.0 (/opt/tritonserver)"`, `"finals": {`}, "Measured on"},
		{"page", triton, nil, page, []string{">Measured on triton 2.51.0 (/opt/tritonserver).<"}, "and the finals on"},
		{"page of two", nil, triton, page, []string{">The search was measured on the bundled engine, and the finals on triton 2.51.0 (/opt/tritonserver)."}, "Measured on triton"},
		{"config", nil, triton, report.WriteConfig, []string{"seed 1, triton 2.51.0 (/opt/tritonserver), 2026-05-04"}, "ONNX Runtime"},
	} {
		b := reporttest.Typical(t).Campaign()
		b.Header.Server, b.Header.Finals = c.server, c.finals
		if c.server != nil {
			b.Header.Runtime = journal.RuntimeInfo{}
		}
		r, err := analyze.Analyze(b, analyze.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := c.write(&out, r); err != nil {
			t.Fatal(err)
		}
		text := strings.Join(strings.Fields(out.String()), " ")
		for _, want := range c.want {
			if !strings.Contains(text, strings.TrimSpace(want)) {
				t.Errorf("%s: no %q in\n%s", c.name, want, out.String())
			}
		}
		if strings.Contains(text, c.never) {
			t.Errorf("%s: %q in\n%s", c.name, c.never, out.String())
		}
	}
}
