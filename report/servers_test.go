package report

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"tuner/analyze"
	"tuner/journal"
)

// Every report says which server was measured, and nothing of an ONNX Runtime that did not serve.
func TestServersAreNamed(t *testing.T) {
	t.Parallel()
	triton := &journal.ServerInfo{Mode: "local", Where: "/opt/tritonserver", Name: "triton", Version: "2.51.0"}
	remote := &journal.ServerInfo{Mode: "remote", Where: "gpu7:8001", Name: "triton", Version: "2.51.0"}
	bundled := &journal.ServerInfo{Mode: "bundled"}
	markdown := func(w io.Writer, r analyze.Result) error { return WriteMarkdown(w, r, false) }
	page := func(w io.Writer, r analyze.Result) error { return WriteHTML(w, r, false) }
	for _, c := range []struct {
		name           string
		server, finals *journal.ServerInfo
		write          func(io.Writer, analyze.Result) error
		want           []string
		never          string
	}{
		{"table", triton, nil, WriteTable, []string{"Measured on triton 2.51.0 (/opt/tritonserver)."}, "ONNX Runtime"},
		{"table of two", nil, triton, WriteTable,
			[]string{"Two servers: the search was measured on the bundled engine, what is confirmed on triton 2.51.0 (/opt/tritonserver)."}, "Measured on"},
		{"table of two, the other way round", triton, bundled, WriteTable, []string{"what is confirmed on the bundled engine"}, "Measured on"},
		{"table of finals on a server that runs already", triton, remote, WriteTable,
			[]string{"Confirmed with the model loaded anew", "confirmed: measured again with the model loaded anew"}, "fresh engine launch"},
		{"markdown", triton, nil, markdown, []string{"- server: triton 2.51.0 (/opt/tritonserver)\n"}, "ONNX Runtime"},
		{"markdown of two", nil, triton, markdown, []string{"- server: the bundled engine\n", "- server of the finals: triton 2.51.0", "- ONNX Runtime 1.31.1 (cpu)"}, "Measured on"},
		{"stages of two", nil, triton, markdown, []string{"Stage 1 by itself was measured on the bundled engine alone, and the best configuration on triton 2.51.0 " +
			"(/opt/tritonserver): their figures do not compare."}, "a larger budget measures it"},
		{"JSON", triton, nil, WriteJSON, []string{`"server": "triton 2.51.0 (/opt/tritonserver)"`, `"where": "/opt/tritonserver"`, `"runtimes": []`}, "bundled"},
		{"JSON of two", nil, triton, WriteJSON, []string{`"server": "the bundled engine"`, `"server": "triton 2.51.0 (/opt/tritonserver)"`, `"finals": {`}, "Measured on"},
		{"page", triton, nil, page, []string{">Measured on triton 2.51.0 (/opt/tritonserver).<"}, "Two servers"},
		{"page of two", nil, triton, page, []string{">Two servers: the search was measured on the bundled engine, what is confirmed on triton 2.51.0 (/opt/tritonserver)."}, "Measured on triton"},
		{"config", nil, triton, WriteConfig, []string{"seed 1, triton 2.51.0 (/opt/tritonserver), 2026-05-04"}, "ONNX Runtime"},
	} {
		b := typical(t).Campaign()
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
