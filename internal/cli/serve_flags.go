//go:build !noengine

package cli

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"tuner/engine/frontends"
	"tuner/engine/rest"
)

// loopback is the address of the front ends unless told otherwise. tritonserver's is 0.0.0.0; but there is no authentication,
// and who starts a server to look at a model does not mean to open it to the network.
const loopback = "127.0.0.1"

// longestDelay bounds --drain-delay: whoever balances load looks more often.
const longestDelay = 24 * time.Hour

// serveOptions are the options of serve: tritonserver's, and a few of our own.
type serveOptions struct {
	repositories        []string
	id                  string
	controlMode         string
	loadModels          []string
	exitOnError         bool
	strictReadiness     bool
	exitTimeout         int // seconds
	drainDelay          time.Duration
	disableAutoComplete bool
	strictModelConfig   bool
	backendConfig       []string
	hostPolicies        []string
	loadThreads         int

	http, grpc, metrics frontends.Listen
	httpMaxInput        int64
	httpRestricted      []string
	rpc                 rpcOptions

	cpuMetrics, gpuMetrics bool
	metricsInterval        float64 // milliseconds
	metricsConfig          []string

	logVerbose                   int
	logInfo, logWarning, logErrs bool
	logFile                      string

	ortLibrary string
	announceFD int
	parentFD   int
	slowdown   slowdown

	unsupported unsupportedValues
}

// flags defines all options.
func (o *serveOptions) flags(flags *pflag.FlagSet) {
	flags.SortFlags = false
	o.serverFlags(flags)
	o.frontendFlags(flags)
	o.rpc.flags(flags)
	boolFlag(flags, &o.cpuMetrics, "allow-cpu-metrics", true, "show processors and memory in the metrics")
	boolFlag(flags, &o.gpuMetrics, "allow-gpu-metrics", true, "show GPUs in the metrics")
	flags.Float64Var(&o.metricsInterval, "metrics-interval-ms", 2000, "milliseconds between readings of processors, memory and GPUs")
	flags.StringArrayVar(&o.metricsConfig, "metrics-config", nil, "SETTING=VALUE; known: counter_latencies, summary_latencies, summary_quantiles")

	flags.Var(verbosity{&o.logVerbose}, "log-verbose", "0: off; 1 and more: debug messages")
	boolFlag(flags, &o.logInfo, "log-info", true, "print messages of level info")
	boolFlag(flags, &o.logWarning, "log-warning", true, "print warnings")
	boolFlag(flags, &o.logErrs, "log-error", true, "print errors")
	flags.StringVar(&o.logFile, "log-file", "", "file for messages, in place of standard error; SIGHUP opens it anew")

	flags.StringVar(&o.ortLibrary, "ort-library", "", "ONNX Runtime library to use (default $TUNER_ORT_LIBRARY, then the installed builds: cpu before others)")
	flags.IntVar(&o.announceFD, "announce-fd", 0, "file descriptor to write a line of JSON to when the models are loaded (used by profile)")
	flags.IntVar(&o.parentFD, "parent-fd", 0, "file descriptor whose end of file ends the server (used by profile)")
	flags.Var(&o.slowdown, "test-slowdown", "FACTOR[@SHARE] of the time that executions take, for tests of tuner gate")
	_ = flags.MarkHidden("test-slowdown") // fails only for a name that is not defined
	o.unsupported = unsupportedValues{}
	o.unsupported.flags(flags)
}

// serverFlags defines what concerns models.
func (o *serveOptions) serverFlags(flags *pflag.FlagSet) {
	flags.StringArrayVar(&o.repositories, "model-repository", nil, "model repository folder; may be given several times")
	flags.StringArrayVar(&o.repositories, "model-store", nil, "the same as --model-repository")
	flags.StringVar(&o.id, "id", "triton", "the server's name")
	flags.StringVar(&o.controlMode, "model-control-mode", "none", "none: all models are loaded at start; explicit: by request")
	flags.StringArrayVar(&o.loadModels, "load-model", nil, "with --model-control-mode=explicit: model to load at start, or *; may be given several times")
	boolFlag(flags, &o.exitOnError, "exit-on-error", true, "end if a model fails to load at start")
	boolFlag(flags, &o.strictReadiness, "strict-readiness", true, "ready means that every model is ready")
	flags.IntVar(&o.exitTimeout, "exit-timeout-secs", 30, "seconds to wait for requests when asked to end")
	flags.DurationVar(&o.drainDelay, "drain-delay", 0, "time to go on accepting connections when asked to end, while not ready, so that load balancers notice; then --exit-timeout-secs begins")
	boolFlag(flags, &o.disableAutoComplete, "disable-auto-complete-config", false, "do not complete model configurations from the models")
	flags.Lookup("disable-auto-complete-config").NoOptDefVal = "true"
	boolFlag(flags, &o.strictModelConfig, "strict-model-config", false, "the same as --disable-auto-complete-config")
	flags.StringArrayVar(&o.backendConfig, "backend-config", nil, "[BACKEND,]KEY=VALUE; known: default-max-batch-size")
	flags.StringArrayVar(&o.hostPolicies, "host-policy", nil, "POLICY,SETTING=VALUE: where instances with that host_policy work; settings: cpu-cores=0-3,8-11 and numa-node=0")
	flags.IntVar(&o.loadThreads, "model-load-thread-count", 4, "models loaded at the same time")
}

// frontendFlags defines what concerns the listeners.
func (o *serveOptions) frontendFlags(flags *pflag.FlagSet) {
	listen := func(l *frontends.Listen, name string, port int) {
		l.Flag = name + "-port"
		boolFlag(flags, &l.Enabled, "allow-"+name, true, "serve "+name)
		flags.StringVar(&l.Address, name+"-address", loopback, "address of "+name+"; 0.0.0.0: all of this machine's, as tritonserver has it")
		flags.IntVar(&l.Port, name+"-port", port, "port of "+name+"; 0: any free one")
	}
	listen(&o.http, "http", 8000)
	listen(&o.grpc, "grpc", 8001)
	listen(&o.metrics, "metrics", 8002)
	flags.Int64Var(&o.httpMaxInput, "http-max-input-size", rest.DefaultMaxInput, "bytes of JSON that an HTTP request may have")
	flags.StringArrayVar(&o.httpRestricted, "http-restricted-api", nil, "API[,API...]:HEADER=VALUE: these need that HTTP header; "+categoryNames())
}

// validate reports everything that is wrong with the options.
func (o *serveOptions) validate() error {
	problems := o.unsupported.refused()
	complain := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	if len(o.repositories) == 0 {
		complain("--model-repository must be specified")
	}
	if !slices.Contains([]string{"none", "explicit"}, strings.ToLower(o.controlMode)) {
		complain("--model-control-mode=%q is not supported: use none or explicit", o.controlMode)
	}
	if len(o.loadModels) > 0 && !o.explicit() {
		complain("--load-model needs --model-control-mode=explicit")
	}
	if len(o.loadModels) > 1 && slices.Contains(o.loadModels, "*") {
		complain("--load-model=* is every model: no other --load-model may stand beside it")
	}
	if o.exitTimeout < 0 || o.exitTimeout > math.MaxInt32 {
		complain("--exit-timeout-secs=%d must be between 0 and %d", o.exitTimeout, math.MaxInt32)
	}
	if o.drainDelay < 0 || o.drainDelay > longestDelay {
		complain("--drain-delay=%v must be between 0 and %v", o.drainDelay, longestDelay)
	}
	if o.loadThreads < 1 {
		complain("--model-load-thread-count=%d must be at least 1", o.loadThreads)
	}
	if o.httpMaxInput < 1 || o.httpMaxInput > 1<<31-1 {
		complain("--http-max-input-size=%d must be between 1 and %d", o.httpMaxInput, 1<<31-1)
	}
	if !(o.metricsInterval >= 0 && o.metricsInterval < 1e9) {
		complain("--metrics-interval-ms=%v must be between 0 and 1e9", o.metricsInterval)
	}
	listens := []frontends.Listen{o.http, o.grpc, o.metrics}
	for i, l := range listens {
		if l.Port < 0 || l.Port > 65535 {
			complain("--%s=%d is not a port: use 0 to 65535", l.Flag, l.Port)
		}
		for _, other := range listens[:i] {
			if l.Enabled && other.Enabled && l.Port != 0 && l.Port == other.Port && l.Address == other.Address {
				complain("--%s and --%s are the same port %d on %s", other.Flag, l.Flag, l.Port, l.Address)
			}
		}
	}
	if len(problems) > 0 {
		return usageErrorf("%s", strings.Join(problems, "\n"))
	}
	return nil
}

func (o *serveOptions) explicit() bool { return strings.EqualFold(o.controlMode, "explicit") }

func (o *serveOptions) exitTime() time.Duration { return time.Duration(o.exitTimeout) * time.Second }

// tritonBool is a flag's value that takes booleans as tritonserver does.
type tritonBool struct{ value *bool }

func (b tritonBool) String() string {
	if b.value == nil {
		return "false"
	}
	return strconv.FormatBool(*b.value)
}

func (b tritonBool) Type() string { return "bool" }

// Set reads true, on, 1, false, off, 0.
func (b tritonBool) Set(text string) error {
	switch strings.ToLower(text) {
	case "true", "on", "1":
		*b.value = true
	case "false", "off", "0":
		*b.value = false
	default:
		return fmt.Errorf("%q is not a boolean: use true, on, 1, false, off or 0", text)
	}
	return nil
}

func boolFlag(flags *pflag.FlagSet, value *bool, name string, byDefault bool, usage string) {
	*value = byDefault
	flags.Var(tritonBool{value}, name, usage)
}

// verbosity is a flag's value that is a number, or a boolean that stands for 0 or 1.
type verbosity struct{ level *int }

func (v verbosity) String() string {
	if v.level == nil {
		return "0"
	}
	return strconv.Itoa(*v.level)
}

func (v verbosity) Type() string { return "int" }

// Set reads a number, true or false.
func (v verbosity) Set(text string) error {
	switch strings.ToLower(text) {
	case "true":
		*v.level = 1
	case "false":
		*v.level = 0
	default:
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return fmt.Errorf("%q is no level: use 0 or more, true or false", text)
		}
		*v.level = n
	}
	return nil
}
