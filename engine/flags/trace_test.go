package flags

import (
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"tuner/engine/trace"
	"tuner/engine/trace/otlp"
)

func tracing(args ...string) (trace.Config, otlp.Options, error) {
	o := &Options{}
	flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	flags.SetOutput(io.Discard)
	o.Add(flags)
	if err := flags.Parse(args); err != nil {
		return trace.Config{}, otlp.Options{}, err
	}
	return o.Trace(slog.New(slog.DiscardHandler))
}

// An older option and --trace-config add their levels. A level OFF of the older one turns all off, and
// one of --trace-config nothing: both as in tritonserver.
func TestTrace(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]trace.Config{
		"": trace.Default(),
		"--trace-config=level=TIMESTAMPS --trace-config=level=tensors --trace-config=rate=7 --trace-config=count=3": {Level: trace.LevelTimestamps | trace.LevelTensors, Rate: 7, Count: 3},
		"--trace-config=triton,file=a,b=c --trace-config=TRITON,log-frequency=5":                                    {Rate: 1000, Count: -1, File: "a,b=c", LogFrequency: 5},
		"--trace-config=level=OFF --trace-config=level=max":                                                         {Level: trace.LevelTimestamps, Rate: 1000, Count: -1},
		"--trace-level=OFF --trace-config=level=TIMESTAMPS":                                                         {Rate: 1000, Count: -1},
		"--trace-file=f --trace-level=min --trace-rate=1 --trace-count=2 --trace-log-frequency=3":                   {Level: trace.LevelTimestamps, Rate: 1, Count: 2, File: "f", LogFrequency: 3},
		"--trace-rate=1 --trace-config=rate=2":                                                                      {Rate: 2, Count: -1},
		"--trace-config=unknown=1 --trace-config=opentelemetry,url=u":                                               trace.Default(),
	} {
		got, _, err := tracing(strings.Fields(args)...)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", args, err, diff)
		}
	}
}

// Settings that no option has come from the environment, then from OpenTelemetry's specification.
func TestOpenTelemetry(t *testing.T) {
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "70")
	config, options, err := tracing("--trace-config=mode=opentelemetry", "--trace-config=opentelemetry,url=host:1/v1/traces", "--trace-config=opentelemetry,resource=a=b=c",
		"--trace-config=opentelemetry,resource=d=e", "--trace-config=opentelemetry,bsp_max_queue_size=100", "--trace-config=opentelemetry,unknown=x")
	if err != nil {
		t.Fatal(err)
	}
	// an export cannot have more spans than wait: 100 in place of 512
	want := otlp.Options{URL: "host:1/v1/traces", Resource: []trace.Option{{Name: "a", Value: "b=c"}, {Name: "d", Value: "e"}}, Queue: 100, Delay: 70 * time.Millisecond, Batch: 100}
	if diff := cmp.Diff(want, options); diff != "" {
		t.Error(diff)
	}
	shown := trace.Config{Mode: trace.ModeOpenTelemetry, Rate: 1000, Count: -1, Options: []trace.Option{
		{Name: "url", Value: "host:1/v1/traces"}, {Name: "resource", Value: "a=b=c"}, {Name: "resource", Value: "d=e"},
		{Name: "bsp_max_queue_size", Value: "100"}, {Name: "bsp_schedule_delay", Value: "70"}, {Name: "bsp_max_export_batch_size", Value: "512"},
	}}
	if diff := cmp.Diff(shown, config); diff != "" {
		t.Error(diff)
	}
	if _, options, err := tracing("--trace-config=mode=opentelemetry", "--trace-config=opentelemetry,bsp_schedule_delay=0"); err != nil || options.Delay != 0 {
		t.Errorf("no delay: got %v, %v", options.Delay, err)
	}
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "soon")
	if _, _, err := tracing("--trace-config=mode=opentelemetry"); err == nil || !strings.Contains(err.Error(), "OTEL_BSP_SCHEDULE_DELAY=soon") {
		t.Errorf("got %v", err)
	}
}

func TestBadTrace(t *testing.T) {
	t.Parallel()
	for arg, want := range map[string]string{
		"--trace-config=":                                            "the format is <trace mode>,<setting>=<value>",
		"--trace-config=rate":                                        "the format is <trace mode>,<setting>=<value>",
		"--trace-config=rate=":                                       "the format is <trace mode>,<setting>=<value>",
		"--trace-config=,rate=1":                                     "no trace mode specified",
		"--trace-config=jaeger,url=x":                                "invalid value for trace mode option: jaeger",
		"--trace-config=mode=jaeger":                                 "invalid value for trace mode option: jaeger",
		"--trace-config=level=all":                                   "invalid value for trace level option: all",
		"--trace-config=rate=-1":                                     "must be a number from 0 to",
		"--trace-config=count=-2":                                    "must be a number from -1 to",
		"--trace-config=triton,log-frequency=1x":                     "must be a number from 0 to",
		"--trace-config=opentelemetry,resource=a":                    "a resource is <key>=<value>",
		"--trace-level=all":                                          "--trace-level: invalid value",
		"--trace-rate=x":                                             "--trace-rate: ",
		"--trace-log-frequency=x":                                    "--trace-log-frequency: ",
		"--trace-config=opentelemetry,bsp_max_queue_size=4294967295": "must be a number from 1 to",
	} {
		if _, _, err := tracing(arg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", arg, err, want)
		}
	}
}

// What is accepted is within the bounds on which the tracer and the exporter rely.
func FuzzTraceConfig(f *testing.F) {
	for _, seed := range []string{"level=TIMESTAMPS", "rate=5", "count=-1", "mode=opentelemetry", "triton,file=f", "triton,log-frequency=1", "opentelemetry,resource=a=b", "opentelemetry,bsp_schedule_delay=1", ",", "=", "triton,=", "opentelemetry,url=,="} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, entry string) {
		p := traceParser{config: trace.Default(), otlp: otlp.Options{Queue: -1, Delay: -1, Batch: -1}, log: slog.New(slog.DiscardHandler)}
		if p.parse(&traceOptions{config: []string{"mode=opentelemetry", entry}}) != nil {
			return
		}
		o := p.otlp
		if p.config.Count < -1 || p.config.Mode == trace.ModeOpenTelemetry && (o.Queue < 1 || o.Queue > mostSpans || o.Batch < 1 || o.Batch > o.Queue || o.Delay < 0) {
			t.Errorf("%q gives %+v and %+v", entry, p.config, o)
		}
		if p.config.Level&^(trace.LevelTimestamps|trace.LevelTensors) != 0 {
			t.Errorf("%q gives level %d", entry, p.config.Level)
		}
	})
}
