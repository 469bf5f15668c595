package rest_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"runtime"
	"testing"
	"time"

	"tuner/engine/budget"
	"tuner/engine/enginetest"
	"tuner/engine/rest"
	"tuner/model/modelconfig"
	"tuner/model/modelconfig/configpb"
)

// large serves a model with answers of size bytes, by a front end with a budget.
func large(t *testing.T, size int64, b *budget.Budget) *enginetest.Engine {
	t.Helper()
	return open(t, enginetest.Start(t, enginetest.Options{Backend: &enginetest.Backend{IO: modelconfig.ModelIO{
		Inputs:  []modelconfig.Tensor{{Name: "X", DataType: configpb.DataType_TYPE_UINT8, Dims: []int64{1}}},
		Outputs: []modelconfig.Tensor{{Name: "Y", DataType: configpb.DataType_TYPE_UINT8, Dims: []int64{size}}},
	}}}), rest.Options{Memory: b})
}

// settled waits until no byte is charged any more.
func settled(t *testing.T, b *budget.Budget) {
	t.Helper()
	for end := time.Now().Add(patience); b.Used() != 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d bytes stay charged", b.Used())
		}
	}
}

const tiny = "Inference-Header-Content-Length: 0\r\nContent-Length: 1\r\n"

// Clients that do not read their answers take no more memory than the budget. Beside them a client
// that reads is answered. Their memory is given back when they go.
func TestUnreadAnswersAreBounded(t *testing.T) { // not parallel: it measures what the process allocates
	const size, clients = 8 << 20, 40
	b := budget.New(64 << 20)
	e := large(t, size, b)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	accepted, refused := 0, 0
	var conns []net.Conn
	for range clients {
		conn := dial(t, e, post(inferPath, tiny)+"x")
		conns = append(conns, conn)
		// little more than the headers
		response, err := http.ReadResponse(bufio.NewReaderSize(conn, 512), nil)
		if err != nil {
			t.Fatal(err)
		}
		switch response.StatusCode {
		case 200:
			accepted++
		case 503:
			refused++
		}
	}
	runtime.ReadMemStats(&after)
	// An answer needs 8 MiB for the model's memory and 8 MiB for itself, and as much must stay
	// free. So there is room beside 3 others.
	if accepted != 4 || refused != clients-4 {
		t.Errorf("%d answers were accepted and %d refused, want 4 and %d", accepted, refused, clients-4)
	}
	if used := b.Used(); used < 4*size || used > 5*size {
		t.Errorf("%d bytes are charged", used)
	}
	// includes garbage of the refused ones
	if held := int64(after.HeapAlloc) - int64(before.HeapAlloc); held > 3*b.Max() {
		t.Errorf("the heap grew by %d bytes", held)
	}
	for _, conn := range conns {
		_ = conn.Close()
	}
	settled(t, b)
	if got := call(t, e, "POST", inferPath, "x", "Inference-Header-Content-Length", "0"); got.status != 200 {
		t.Errorf("afterwards: %d %.200s", got.status, got.body)
	}
	settled(t, b)
}

// The charge for an answer is given back when it has been written, while its connection stays.
func TestWrittenAnswersAreGivenBack(t *testing.T) {
	t.Parallel()
	for _, size := range []int64{100, 64 << 10, 3 << 20} {
		b := budget.New(64 << 20)
		e := large(t, size, b)
		// the second is pipelined
		conn := dial(t, e, post(inferPath, tiny)+"x"+post(inferPath, tiny)+"x")
		r := bufio.NewReader(conn)
		for range 2 {
			response, err := http.ReadResponse(r, nil)
			if err != nil {
				t.Fatal(err)
			}
			if n, err := io.Copy(io.Discard, response.Body); err != nil || n < size {
				t.Fatalf("%d bytes, %v", n, err)
			}
		}
		settled(t, b)
	}
}

// JSON is bounded before it is made, by its largest possible size.
func TestJSONAnswersAreBounded(t *testing.T) {
	t.Parallel()
	const size = 1 << 20 // zeros: 2 MiB of JSON, at most 5
	ask := `{"inputs":[{"name":"X","datatype":"UINT8","shape":[1],"data":[1]}]}`
	// 1 MiB of the model's memory and 5 of JSON, and as much must stay free
	for max, want := range map[int64]int{10 << 20: 503, 13 << 20: 200} {
		b := budget.New(max)
		e := large(t, size, b)
		if got := call(t, e, "POST", inferPath, ask); got.status != want {
			t.Errorf("of %d bytes: %d %.100s", max, got.status, got.body)
		}
		settled(t, b)
	}
}
