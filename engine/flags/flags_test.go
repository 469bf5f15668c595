package flags

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"tuner/engine/api"
)

// tritonOptions returns the options of tritonserver 2.51, and http-max-input-size, allow-client-shm
// and others that later releases added. It has the defaults of those with a meaning here.
func tritonOptions() map[string]string {
	options := map[string]string{
		"id": "triton", "exit-timeout-secs": "30", "log-verbose": "0", "log-info": "true", "log-warning": "true", "log-error": "true",
		"model-store": "[]", "model-repository": "[]", "exit-on-error": "true", "disable-auto-complete-config": "false",
		"strict-model-config": "false", "strict-readiness": "true", "model-control-mode": "none", "load-model": "[]",
		"model-load-thread-count": "4", "backend-config": "[]", "host-policy": "[]",
		"repository-poll-secs": "15", "model-config-name": "", "model-load-retry-count": "0", "model-namespacing": "false",
		"rate-limit": "off", "rate-limit-resource": "[]",
		"allow-http": "true", "http-port": "8000", "http-restricted-api": "[]", "http-max-input-size": "67108864",
		"allow-grpc": "true", "grpc-port": "8001", "grpc-use-ssl": "false", "grpc-use-ssl-mutual": "false", "grpc-server-cert": "",
		"grpc-server-key": "", "grpc-root-cert": "", "grpc-infer-response-compression-level": "none", "grpc-restricted-protocol": "[]",
		"grpc-keepalive-time": "7200000", "grpc-keepalive-timeout": "20000", "grpc-keepalive-permit-without-calls": "false",
		"grpc-http2-min-recv-ping-interval-without-data": "300000", "grpc-max-connection-age": "0", "grpc-max-connection-age-grace": "0",
		"allow-metrics": "true", "allow-gpu-metrics": "true", "allow-cpu-metrics": "true", "metrics-port": "8002",
		"metrics-interval-ms": "2000", "log-file": "", "log-format": "default", "metrics-config": "[]", "trace-file": "", "trace-rate": "", "trace-count": "", "trace-log-frequency": "", "allow-client-shm": "false", "response-cache-byte-size": "0",
		"allow-sagemaker": "false", "sagemaker-port": "8080", "sagemaker-safe-port-range": "", "allow-vertex-ai": "false", "vertex-ai-port": "8080",
		"vertex-ai-default-model": "",
		"http-address":            loopback, "grpc-address": loopback, "metrics-address": loopback, // tritonserver: 0.0.0.0
	}
	for name := range strings.FieldsSeq(`
		enable-peer-access reuse-http-port http-header-forward-pattern http-thread-count reuse-grpc-port
		grpc-header-forward-pattern grpc-infer-allocation-pool-size grpc-infer-thread-count grpc-max-response-pool-size
		grpc-http2-max-pings-without-data grpc-http2-max-ping-strikes
		sagemaker-thread-count vertex-ai-thread-count trace-config
		trace-level backend-directory repoagent-directory cache-config
		cache-directory pinned-memory-pool-byte-size
		cuda-memory-pool-byte-size cuda-virtual-address-size min-supported-compute-capability buffer-manager-thread-count
		model-load-gpu-limit`) {
		options[name] = "[]"
	}
	return options
}

func parse(t *testing.T, args ...string) (*Options, *pflag.FlagSet, error) {
	t.Helper()
	o := &Options{}
	flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	flags.SetOutput(io.Discard)
	o.Add(flags)
	return o, flags, flags.Parse(args)
}

// Both names of the option add repositories. Neither drops those of the other.
func TestModelStoreAddsRepositories(t *testing.T) {
	t.Parallel()
	o, _, err := parse(t, "--model-repository=a", "--model-store=b", "--model-repository=c")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, o.repositories); diff != "" {
		t.Error(diff)
	}
}

func TestServeTakesTritonsOptions(t *testing.T) {
	t.Parallel()
	_, flags, err := parse(t)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range tritonOptions() {
		if flag := flags.Lookup(name); flag == nil || flag.DefValue != want {
			t.Errorf("--%s: got %+v, want the default %q", name, flag, want)
		}
	}
}

// Both forms of giving a value are tritonserver's, and so are the words for booleans.
func TestServeReadsValues(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{"true": true, "on": true, "1": true, "True": true, "false": false, "off": false, "0": false} {
		for _, args := range [][]string{{"--strict-readiness=" + text}, {"--strict-readiness", text}} {
			if o, _, err := parse(t, args...); err != nil || o.strictReadiness != want {
				t.Errorf("%v: got %v, %v", args, o.strictReadiness, err)
			}
		}
	}
	for text, want := range map[string]int{"0": 0, "1": 1, "3": 3, "true": 1, "false": 0} {
		if o, _, err := parse(t, "--log-verbose", text); err != nil || o.log.verbose != want {
			t.Errorf("--log-verbose %s: got %d, %v", text, o.log.verbose, err)
		}
	}
	if o, _, err := parse(t, "--disable-auto-complete-config", "--id=x"); err != nil || !o.disableAutoComplete || o.id != "x" {
		t.Errorf("an option without a value: got %+v, %v", o, err)
	}
	if o, _, err := parse(t, "--model-control-mode", "EXPLICIT"); err != nil || !o.IsExplicit() {
		t.Errorf("modes in capitals: got %v, %v", o.controlMode, err)
	}
}

// An option without a meaning here is ignored. Values that cannot work are refused.
func TestUnsupportedOptions(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"--model-config-name=../h100":   "must be the name of a file in the folder configs of models",
		"--repository-poll-secs=-1":     "--repository-poll-secs=-1 must be between 0 and",
		"--model-load-retry-count=1001": "must be between 0 and 1000",
		"--allow-client-shm=true":       "",
		"--allow-sagemaker=true":        "",
		"--model-control-mode=poll":     "",
		"--allow-client-shm=0":          "",
		"--http-thread-count=4":         "",
		"--backend-directory=/backends": "",
	} {
		o, _, err := parse(t, "--model-repository=.", text)
		if err != nil {
			t.Fatal(err)
		}
		err = o.Validate()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
	o, _, err := parse(t, "--http-thread-count=4", "--rate-limit=off", "--reuse-http-port=1")
	if diff := cmp.Diff([]string{"--reuse-http-port", "--http-thread-count"}, o.unsupported.ignored()); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
}

// As in Triton, Vertex AI's environment opens its port alone. SageMaker's range bounds the other ports.
func TestClouds(t *testing.T) {
	t.Parallel()
	environment := func(pairs ...string) func(string) string {
		return func(name string) string {
			for i := 0; i < len(pairs); i += 2 {
				if pairs[i] == name {
					return pairs[i+1]
				}
			}
			return ""
		}
	}
	o := &Options{clouds: cloudOptions{environment: environment("AIP_MODE", "PREDICTION", "AIP_HTTP_PORT", "9999", "AIP_STORAGE_URI", "gs://bucket/models")}}
	flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	o.Add(flags)
	if err := o.Validate(); err != nil {
		t.Error(err)
	}
	if o.http.Enabled || o.grpc.Enabled || !o.metrics.Enabled || !o.clouds.vertexAI.Enabled || o.clouds.vertexAI.Port != 9999 {
		t.Errorf("ports with AIP_MODE=PREDICTION: %v %v %v %+v", o.http.Enabled, o.grpc.Enabled, o.metrics.Enabled, o.clouds.vertexAI)
	}
	if diff := cmp.Diff([]string{"gs://bucket/models"}, o.repositories); diff != "" {
		t.Error(diff)
	}
	for text, want := range map[string]string{
		"--allow-sagemaker=true --sagemaker-safe-port-range=8000-8001":                                              "The server cannot listen to metrics requests at port 8002, allowed port range is [8000, 8001]",
		"--allow-sagemaker=true --sagemaker-safe-port-range=8000-8002":                                              "",
		"--allow-sagemaker=true --sagemaker-safe-port-range=8000":                                                   "must be two ports",
		"--sagemaker-safe-port-range=1-2":                                                                           "",
		"--allow-sagemaker=true --allow-vertex-ai=true":                                                             "--sagemaker-port and --vertex-ai-port are the same port 8080",
		"--allow-sagemaker=true --sagemaker-port=8000":                                                              "--http-port and --sagemaker-port are the same port 8000",
		"--allow-sagemaker=true --sagemaker-port=70000":                                                             "--sagemaker-port=70000 is not a port",
		"--allow-vertex-ai=true --allow-sagemaker=true --vertex-ai-port=8090":                                       "",
		"--allow-vertex-ai=true --allow-sagemaker=true --vertex-ai-port=8090 --sagemaker-safe-port-range=8000-8089": "The server cannot listen to Vertex AI requests at port 8090",
	} {
		o, _, err := parse(t, append(strings.Fields(text), "--model-repository=.")...)
		if err != nil {
			t.Fatal(err)
		}
		err = o.Validate()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
	for want, variables := range map[string][]string{
		"API_PREDICT_ROUTE is not defined":     {"AIP_HEALTH_ROUTE", "/h"},
		"AIP_HEALTH_ROUTE is not defined":      {"AIP_PREDICT_ROUTE", "/p"},
		"is not a regular expression":          {"AIP_PREDICT_ROUTE", "(", "AIP_HEALTH_ROUTE", "/h"},
		"SAGEMAKER_TRITON_PING_MODE is \"up\"": {"AIP_PREDICT_ROUTE", "/p", "AIP_HEALTH_ROUTE", "/h", "SAGEMAKER_TRITON_PING_MODE", "up"},
	} {
		c := cloudOptions{environment: environment(variables...)}
		c.sageMaker.Enabled, c.vertexAI.Enabled = true, true
		if _, err := c.clouds(loopback); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got %v, want %q", variables, err, want)
		}
	}
}

func TestParseRestrictions(t *testing.T) {
	t.Parallel()
	got, err := parseRestrictions("o", []string{"health,model-repository:k=v=w", "trace:other=x:y"}, "p-")
	want := api.Restrictions{
		api.CategoryHealth: {Header: "p-k", Value: "v=w"}, api.CategoryModelRepository: {Header: "p-k", Value: "v=w"},
		api.CategoryTrace: {Header: "p-other", Value: "x:y"},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	for _, text := range []string{"", "health", "health:", "health:k", "health:k=", "health:=v", ":k=v", "health,:k=v", "Health:k=v"} {
		if _, err := parseRestrictions("o", []string{text}, ""); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}

func TestMetricsConfig(t *testing.T) {
	t.Parallel()
	log := slog.New(slog.DiscardHandler)
	for text, want := range map[string]struct{ totals, summaries bool }{
		"": {true, false}, "summary_latencies=true": {true, true}, "summary_latencies=true counter_latencies=false": {false, true},
		"summary_latencies=true summary_latencies=false": {true, false}, "summary_quantiles=0.5:0.05": {true, false},
		"summary_latencies=true --allow-metrics=false": {true, false},
	} {
		var args []string
		for part := range strings.FieldsSeq(text) {
			if !strings.HasPrefix(part, "--") {
				part = "--metrics-config=" + part
			}
			args = append(args, part)
		}
		o, _, err := parse(t, args...)
		if err != nil {
			t.Fatal(err)
		}
		got, err := o.figures(log)
		if err != nil || got.NoTotals == want.totals || (got.Summaries != nil) != want.summaries {
			t.Errorf("%s: got %+v, %v", text, got, err)
		}
	}
	quantiles, err := parseQuantiles("0.5:0.05,0.99:0.001")
	if diff := cmp.Diff(map[float64]float64{0.5: 0.05, 0.99: 0.001}, quantiles); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	for _, bad := range []string{"", "0.5", "x:0.1", "0.5:x", "1.1:0.1", "NaN:0.1", "0.5:0.05,"} {
		if _, err := parseQuantiles(bad); err == nil {
			t.Errorf("quantiles %q were accepted", bad)
		}
	}
}

// Old options get tritonserver's warnings.
func TestDeprecatedOptions(t *testing.T) {
	t.Parallel()
	for args, want := range map[string][]string{
		"--disable-auto-complete-config --cache-config=local,size=1": nil,
		"--strict-model-config=true":                                 {"Warning: '--strict-model-config' has been deprecated! Please use '--disable-auto-complete-config' instead."},
		"--disable-auto-complete-config --strict-model-config=false": {
			"Warning: '--strict-model-config' has been deprecated! Please use '--disable-auto-complete-config' instead.",
			"Warning: Overriding deprecated '--strict-model-config' from False to True in favor of '--disable-auto-complete-config'!",
		},
		"--response-cache-byte-size=7": {"Warning: '--response-cache-byte-size' has been deprecated! This will default to the 'local' cache implementation with the provided byte size for its config. " +
			"Please use '--cache-config' instead. The equivalent --cache-config CLI args would be: '--cache-config=local,size=7'"},
		"--trace-rate=5": {"Warning: '--trace-rate' has been deprecated and will be removed in future releases. Please use '--trace-config rate=<rate value> instead."},
	} {
		o, _, err := parse(t, strings.Fields(args)...)
		if err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		o.Warn(slog.New(slog.NewJSONHandler(&log, nil)))
		var got []string
		for line := range strings.Lines(log.String()) {
			var entry struct{ Msg string }
			if err := json.Unmarshal([]byte(line), &entry); err != nil {
				t.Fatal(err)
			}
			got = append(got, entry.Msg)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s:\n%s", args, diff)
		}
	}
}

func TestResponseCache(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		size    int64
		problem string
	}{
		"":                                                         {0, ""},
		"--cache-config=local,size=1048576":                        {1 << 20, ""},
		"--response-cache-byte-size=4096":                          {4096, ""},
		"--response-cache-byte-size=0":                             {0, ""},
		"--response-cache-byte-size=-1":                            {0, "must be 0 or more"},
		"--cache-config=local,size=0":                              {0, "1 or more"},
		"--cache-config=local,size=1MB":                            {0, "1 or more"},
		"--cache-config=local,size=99999999999999999999":           {0, "1 or more"},
		"--cache-config=local":                                     {0, "No cache specified"},
		"--cache-config=size=1":                                    {0, "No cache specified"},
		"--cache-config=,size=1":                                   {0, "No cache specified"},
		"--cache-config=local,size":                                {0, "option format"},
		"--cache-config=local,=1":                                  {0, "option format"},
		"--cache-config=redis,host=db":                             {0, "only the cache local"},
		"--cache-config=local,size=1 --response-cache-byte-size=1": {0, "Incompatible flags"},
		"--cache-config=local,size=1 --cache-config=redis,k=v":     {0, "found multiple cache configurations, but only a single cache is currently supported"},
		"--cache-config=local,size=1 --cache-config=local,size=2":  {2, ""},
	} {
		o, _, err := parse(t, strings.Fields(text)...)
		if err != nil {
			t.Fatal(err)
		}
		size, err := o.responseCache()
		if size != want.size || (err == nil) != (want.problem == "") || err != nil && !strings.Contains(err.Error(), want.problem) {
			t.Errorf("%s: %d, %v; want %+v", text, size, err, want)
		}
	}
}

func TestBackendConfig(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		batch   int
		threads GlobalThreads
		problem string
	}{
		"": {},
		"--backend-config=default-max-batch-size=8":                   {batch: 8},
		"--backend-config=onnxruntime,default-max-batch-size=0":       {batch: -1},
		"--backend-config=onnxruntime,default-max-batch-size=-1":      {problem: "must be a number from 0"},
		"--backend-config=onnxruntime,enable-global-threadpool=1":     {threads: GlobalThreads{Enabled: true}},
		"--backend-config=onnxruntime,enable-global-threadpool=False": {},
		"--backend-config=onnxruntime,enable-global-threadpool=yes":   {problem: "expected 1, true, 0 or false"},
		"--backend-config=onnxruntime,intra_op_thread_count=2":        {problem: "add --backend-config=onnxruntime,enable-global-threadpool=1"},
		"--backend-config=tensorrt,enable-global-threadpool=1":        {},
		"--backend-config=onnxruntime,enable-global-threadpool":       {problem: "expected [BACKEND,]KEY=VALUE"},
		"--backend-config=onnxruntime,unknown=1":                      {},
		"--backend-config=onnxruntime,enable-global-threadpool=true --backend-config=onnxruntime,intra_op_thread_count=2 --backend-config=onnxruntime,inter_op_thread_count=3": {
			threads: GlobalThreads{Enabled: true, IntraOp: 2, InterOp: 3}},
		"--backend-config=onnxruntime,enable-global-threadpool=1 --backend-config=onnxruntime,intra_op_thread_count=1025": {problem: "from 0 to 1024"},
	} {
		o, _, err := parse(t, strings.Fields(text)...)
		if err != nil {
			t.Fatal(err)
		}
		got, err := o.backend(slog.New(slog.DiscardHandler))
		if (err == nil) != (want.problem == "") || err != nil && !strings.Contains(err.Error(), want.problem) ||
			err == nil && (got.maxBatch != want.batch || got.threads != want.threads) {
			t.Errorf("%s: %+v, %v; want %+v", text, got, err, want)
		}
	}
}

func TestLimiter(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", "--rate-limit=OFF": "", "--rate-limit=Execution_Count": "on", "--rate-limit=execution_count --rate-limit-resource=R:3": "on",
		"--rate-limit=execution_count --rate-limit-resource=R:3:1": "on",
		"--rate-limit=often":      "use execution_count or off",
		"--rate-limit-resource=R": "option format is", "--rate-limit-resource=R:x": "option format is",
		"--rate-limit-resource=R:1:2:3": "option format is", "--rate-limit-resource=:1": "option format is",
		"--rate-limit-resource=R:-1": "option format is", "--rate-limit-resource=R:1:x": "option format is",
	} {
		o, _, err := parse(t, strings.Fields(text)...)
		if err != nil {
			t.Fatal(err)
		}
		limiter, err := o.models.limiter()
		got := ""
		if limiter != nil {
			got = "on"
		}
		if err != nil {
			got = err.Error()
		}
		if got != want && (err == nil || !strings.Contains(got, want)) {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

// Clients may register regions of shared memory only if the server is asked to allow it.
func TestSharedMemory(t *testing.T) {
	t.Parallel()
	for _, want := range []bool{false, true} {
		o, _, err := parse(t, "--model-repository=.", fmt.Sprintf("--allow-client-shm=%t", want))
		if err != nil {
			t.Fatal(err)
		}
		log := slog.New(slog.DiscardHandler)
		listeners, errListen := o.Frontends(log, 1)
		models, errModels := o.Engine(log, listeners.Figures)
		if errListen != nil || errModels != nil || listeners.SharedMemory != want || models.SharedMemory != want {
			t.Errorf("got %t and %t, %v and %v, want %t", listeners.SharedMemory, models.SharedMemory, errListen, errModels, want)
		}
	}
}
