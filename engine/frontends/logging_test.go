package frontends_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	pb "tuner/engine/api/inferencepb"
	"tuner/engine/enginetest"
	"tuner/engine/frontends"
	"tuner/engine/logging"
)

// logged is a front end of each protocol whose log is set and written.
type logged struct {
	log    *logging.Log
	access string // path
	http   string // address
	grpc   pb.GRPCInferenceServiceClient
	end    func() // ends everything, so that all lines are written
}

func newLogged(t *testing.T) *logged {
	t.Helper()
	l := &logged{access: filepath.Join(t.TempDir(), "access")}
	var err error
	if l.log, err = logging.New(io.Discard, "", logging.Settings{Info: true, Warning: true, Error: true, Format: logging.Default}); err != nil {
		t.Fatal(err)
	}
	requests, err := logging.NewRequests(l.log, l.access)
	if err != nil {
		t.Fatal(err)
	}
	local := frontends.Listen{Enabled: true, Address: "127.0.0.1"}
	o := frontends.Options{HTTP: local, GRPC: local, Log: l.log.Logger()}
	o.REST.Settings, o.REST.Requests, o.REST.Log = l.log, requests, o.Log
	o.RPC.Settings, o.RPC.Requests = l.log, requests
	f, err := frontends.Open(server(t, &enginetest.Backend{}), o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	served, written := make(chan error, 1), make(chan struct{})
	go func() { served <- f.Serve(ctx, time.Minute) }()
	go func() { defer close(written); requests.Write() }()
	l.http = "http://" + f.Addresses().HTTP
	conn, err := grpc.NewClient(f.Addresses().GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	l.grpc = pb.NewGRPCInferenceServiceClient(conn)
	ended := false
	l.end = func() {
		if ended {
			return
		}
		ended = true
		_ = conn.Close()
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
		requests.Close()
		<-written
	}
	t.Cleanup(l.end)
	return l
}

func (l *logged) call(t *testing.T, method, path, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, l.http+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// tensors are an inference's inputs over gRPC.
func tensors() *pb.ModelInferRequest {
	r := &pb.ModelInferRequest{ModelName: "fake", Id: "over gRPC"}
	for _, name := range []string{"INPUT0", "INPUT1"} {
		r.Inputs = append(r.Inputs, &pb.ModelInferRequest_InferInputTensor{Name: name, Datatype: "INT32", Shape: []int64{1, 16}})
		r.RawInputContents = append(r.RawInputContents, make([]byte, 64))
	}
	return r
}

// Each request has one line in the access log, whatever its protocol and its outcome.
func TestAccessLog(t *testing.T) {
	t.Parallel()
	l := newLogged(t)
	zeros := "[" + strings.Repeat("0,", 15) + "0]"
	body := `{"id":"over HTTP","inputs":[{"name":"INPUT0","datatype":"INT32","shape":[1,16],"data":` + zeros + `},` +
		`{"name":"INPUT1","datatype":"INT32","shape":[1,16],"data":` + zeros + `}]}`
	l.call(t, "GET", "/v2/health/live", "")
	l.call(t, "POST", "/v2/models/fake/infer", body)
	l.call(t, "POST", "/v2/models/none/versions/3/infer", body)
	l.call(t, "POST", "/nowhere?x=1", "")
	if _, err := l.grpc.ModelInfer(t.Context(), tensors()); err != nil {
		t.Fatal(err)
	}
	unknown := tensors()
	unknown.ModelName = "none"
	if _, err := l.grpc.ModelInfer(t.Context(), unknown); status.Code(err) != codes.NotFound {
		t.Fatal(err)
	}
	if _, err := l.grpc.ServerLive(t.Context(), &pb.ServerLiveRequest{}); err != nil {
		t.Fatal(err)
	}
	stream, err := l.grpc.ModelStreamInfer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []*pb.ModelInferRequest{tensors(), unknown} {
		if err := stream.Send(r); err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); err != nil {
			t.Fatal(err)
		}
	}
	_ = stream.CloseSend()
	l.end()
	text, err := os.ReadFile(l.access)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(string(text)) {
		var a struct {
			Client, Protocol, Call, Model, Version, ID, Status string
			Took                                               float64 `json:"request_time"`
		}
		if err := json.Unmarshal([]byte(line), &a); err != nil || a.Took <= 0 || !strings.HasPrefix(a.Client, "127.0.0.1:") {
			t.Errorf("%s: %v", line, err)
		}
		got = append(got, strings.Join([]string{a.Protocol, a.Call, a.Model, a.Version, a.ID, a.Status}, "|"))
	}
	const unary, streamed = "grpc|/inference.GRPCInferenceService/ModelInfer", "grpc|/inference.GRPCInferenceService/ModelStreamInfer"
	want := []string{
		"http|GET /v2/health/live||||200",
		"http|POST /v2/models/fake/infer|fake|1|over HTTP|200",
		"http|POST /v2/models/none/versions/3/infer|none|3|over HTTP|404",
		"http|POST /nowhere?x=1||||404",
		unary + "|fake|1|over gRPC|OK",
		unary + "|none||over gRPC|NotFound",
		"grpc|/inference.GRPCInferenceService/ServerLive||||OK",
		streamed + "|fake|1|over gRPC|OK",
		streamed + "|none||over gRPC|NotFound",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("lines (-want +got):\n%s", d)
	}
}

// Both protocols show and change the same settings. A setting that is wrong ends the change, and those
// before it stay changed, as in Triton.
func TestLogSettings(t *testing.T) {
	t.Parallel()
	l := newLogged(t)
	const shown = `{"log_file":"","log_info":true,"log_warning":true,"log_error":true,"log_verbose_level":0,"log_format":"default"}`
	if code, text := l.call(t, "GET", "/v2/logging", ""); code != 200 || text != shown {
		t.Errorf("%d %s, want %s", code, text, shown)
	}
	for _, c := range []struct{ body, want string }{
		{`{"log_info":false,"log_warning":7,"log_error":false}`, `500 {"error":"attempt to access JSON non-boolean as boolean"}`},
		{`{"log_format":"json","log_error":null,"x":1}`, `200 {"log_file":"","log_info":false,"log_warning":true,"log_error":true,"log_verbose_level":0,"log_format":"json"}`},
		{`{"log_verbose_level":2147483648}`, `400 {"error":"log_verbose_level 2147483648 is larger than 2147483647"}`},
		{`{"log_format":"xml"}`, `503 {"error":"invalid argument for --log_format, got: xml"}`},
		{`{"log_file":"/etc/passwd"}`, `501 {"error":"log file location can not be updated through network protocol"}`},
	} {
		code, text := l.call(t, "POST", "/v2/logging", c.body)
		if got := strconv.Itoa(code) + " " + text; got != c.want {
			t.Errorf("%s: %s, want %s", c.body, got, c.want)
		}
	}
	number := func(n uint32) map[string]*pb.LogSettingsRequest_SettingValue {
		return map[string]*pb.LogSettingsRequest_SettingValue{"log_verbose_level": {ParameterChoice: &pb.LogSettingsRequest_SettingValue_Uint32Param{Uint32Param: n}}}
	}
	if _, err := l.grpc.LogSettings(t.Context(), &pb.LogSettingsRequest{Settings: number(1 << 31)}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("a level that is too large: %v", err)
	}
	answer, err := l.grpc.LogSettings(t.Context(), &pb.LogSettingsRequest{Settings: number(3)})
	if err != nil {
		t.Fatal(err)
	}
	all := answer.GetSettings()
	if all["log_verbose_level"].GetUint32Param() != 3 || all["log_info"].GetBoolParam() || !all["log_error"].GetBoolParam() || all["log_format"].GetStringParam() != "json" {
		t.Errorf("got %v", all)
	}
}
