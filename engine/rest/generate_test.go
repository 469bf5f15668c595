package rest_test

import (
	"errors"
	"strings"
	"testing"

	"tuner/engine/budget"
	"tuner/engine/enginetest"
	"tuner/engine/rest"
)

const generatePath = "/v2/models/fake/generate"

// A request that has failed is answered in the form of its answer, with the status of the failure.
func TestGenerateFails(t *testing.T) {
	t.Parallel()
	e := enginetest.Start(t, enginetest.Options{Backend: &enginetest.Backend{Fail: func(int) error { return errors.New("broken") }}})
	body := `{"INPUT0":` + counted + `,"INPUT1":` + counted + `}`
	if got := call(t, e, "POST", generatePath, body); got.status != 500 || got.body != `{"error":"broken"}` {
		t.Errorf("got %d %s", got.status, got.body)
	}
	if got := call(t, e, "POST", generatePath+"_stream", body); got.status != 500 || got.body != "data: {\"error\":\"broken\"}\n\n" {
		t.Errorf("a stream: got %d %q", got.status, got.body)
	}
}

// Bodies are bounded as those of other inferences, and what is charged is given back.
func TestGenerateIsBounded(t *testing.T) {
	t.Parallel()
	b := budget.New(1 << 20)
	e := open(t, enginetest.Start(t, enginetest.Options{}), rest.Options{MaxInput: 1 << 10, Memory: b})
	large := `{"INPUT0":` + counted + `,"x":"` + strings.Repeat("a", 1<<10) + `"}`
	if got := call(t, e, "POST", generatePath, large); got.status != 400 || !strings.Contains(got.body, "exceeds the maximum allowed input size of 1024 bytes") {
		t.Errorf("got %d %s", got.status, got.body)
	}
	if got := call(t, e, "POST", generatePath, `{"INPUT0":`+counted+`,"INPUT1":`+counted+`}`); got.status != 200 {
		t.Errorf("got %d %s", got.status, got.body)
	}
	if b.Used() != 0 {
		t.Errorf("%d bytes stay charged", b.Used())
	}
}
