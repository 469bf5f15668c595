// Package flags has the options of `tuner serve`: those of tritonserver, with its names and
// meanings, and a few of our own.
//
// It stands between the command line and packages engine and engine/frontends: it turns flags into
// their options. It accepts options that concern only parts that do not exist here, with a warning.
// It refuses options that would change the service. It opens nothing and serves nothing.
package flags

import (
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"tuner/engine"
	"tuner/engine/frontends"
	"tuner/engine/hostpolicy"
	"tuner/engine/metrics"
	"tuner/engine/rest"
	"tuner/internal/exit"
	"tuner/ort/addon"
)

// protocolVersion is the Triton release whose protocol the server speaks.
const protocolVersion = "2.51.0"

// loopback is the default address. tritonserver's default is 0.0.0.0. But there is no
// authentication. A user who starts a server to look at a model does not want to open it to the
// network.
const loopback = "127.0.0.1"

// longestDelay bounds --drain-delay. Load balancers check more often.
const longestDelay = 24 * time.Hour

// Options are the values of the flags.
type Options struct {
	ORTLibrary string
	DrainDelay time.Duration
	AnnounceFD int // file descriptor to which the server writes its addresses; 0: none
	ParentFD   int // file descriptor whose end of file ends the server; 0: none

	models              modelOptions
	repositories        []string
	id                  string
	controlMode         string
	loadModels          []string
	exitOnError         bool
	strictReadiness     bool
	exitTimeout         int // seconds
	disableAutoComplete bool
	strictModelConfig   bool
	backendConfig       []string
	hostPolicies        []string
	libraries           addon.Libraries
	loadThreads         int
	cacheConfig         []string
	cacheBytes          int64

	http, grpc, metrics frontends.Listen
	httpMaxInput        int64
	httpRestricted      []string
	rpc                 rpcOptions
	sharedMemory        bool // with clients
	tls                 tlsOptions
	clouds              cloudOptions

	cpuMetrics, gpuMetrics bool
	metricsInterval        float64 // milliseconds
	metricsConfig          []string

	log logOptions

	tracing     traceOptions
	unsupported unsupportedValues
	given       func(flag string) bool // reports whether a flag was on the command line
}

// Add defines all flags.
func (o *Options) Add(flags *pflag.FlagSet) {
	flags.SortFlags = false
	o.given = flags.Changed
	o.serverFlags(flags)
	o.frontendFlags(flags)
	o.rpc.flags(flags)
	o.tls.flags(flags)
	boolFlag(flags, &o.cpuMetrics, "allow-cpu-metrics", true, "show processors and memory in the metrics")
	boolFlag(flags, &o.gpuMetrics, "allow-gpu-metrics", true, "show GPUs in the metrics")
	flags.Float64Var(&o.metricsInterval, "metrics-interval-ms", 2000, "milliseconds between readings of processors, memory and GPUs")
	flags.StringArrayVar(&o.metricsConfig, "metrics-config", nil, "SETTING=VALUE; known: counter_latencies, histogram_latencies, summary_latencies, summary_quantiles")

	o.log.flags(flags)

	o.tracing.flags(flags)
	flags.StringVar(&o.ORTLibrary, "ort-library", "", "ONNX Runtime library to use (default $TUNER_ORT_LIBRARY, then the installed builds: cpu before others)")
	flags.IntVar(&o.AnnounceFD, "announce-fd", 0, "file descriptor that gets a line of JSON when the models are loaded (used by profile)")
	flags.IntVar(&o.ParentFD, "parent-fd", 0, "file descriptor whose end of file ends the server (used by profile)")
	o.unsupported = unsupportedValues{}
	o.unsupported.flags(flags)
	flags.SetNormalizeFunc(abbreviated)
}

// abbreviated returns the flag that a name means: itself, or the only one that begins with it, as
// tritonserver's command line has it.
func abbreviated(flags *pflag.FlagSet, name string) pflag.NormalizedName {
	var longer []string
	isWhole := false
	flags.VisitAll(func(f *pflag.Flag) {
		isWhole = isWhole || f.Name == name
		if strings.HasPrefix(f.Name, name) {
			longer = append(longer, f.Name)
		}
	})
	if !isWhole && len(longer) == 1 {
		name = longer[0]
	}
	return pflag.NormalizedName(name)
}

// serverFlags defines the flags of models.
func (o *Options) serverFlags(flags *pflag.FlagSet) {
	flags.StringArrayVar(&o.repositories, "model-repository", nil, "model repository: a folder, or s3://[HOST:PORT/]BUCKET/PATH, gs://BUCKET/PATH or as://ACCOUNT/CONTAINER/PATH, which are only read; may be repeated")
	// both flags share one value, to which both add
	flags.Var(flags.Lookup("model-repository").Value, "model-store", "the same as --model-repository")
	flags.StringVar(&o.id, "id", "triton", "name of the server")
	flags.StringVar(&o.controlMode, "model-control-mode", "none", "none: all models are loaded at start; poll: and again when their files change; explicit: by request")
	flags.StringArrayVar(&o.loadModels, "load-model", nil, "with --model-control-mode=explicit: model to load at start, or *; may be repeated")
	boolFlag(flags, &o.exitOnError, "exit-on-error", true, "end if a repository is missing, or a model fails to load at start")
	boolFlag(flags, &o.strictReadiness, "strict-readiness", true, "be ready only when every model is ready")
	flags.IntVar(&o.exitTimeout, "exit-timeout-secs", 30, "seconds to wait for requests when asked to end")
	flags.DurationVar(&o.DrainDelay, "drain-delay", 0, "time between the request to end and the closing of ports: the server is not ready, so that load balancers notice; then --exit-timeout-secs begins")
	boolFlag(flags, &o.disableAutoComplete, "disable-auto-complete-config", false, "do not complete model configurations from the models")
	flags.Lookup("disable-auto-complete-config").NoOptDefVal = "true"
	boolFlag(flags, &o.strictModelConfig, "strict-model-config", false, "the same as --disable-auto-complete-config")
	flags.StringArrayVar(&o.backendConfig, "backend-config", nil, "[BACKEND,]KEY=VALUE; known: default-max-batch-size, enable-global-threadpool, intra_op_thread_count, inter_op_thread_count")
	flags.StringArrayVar(&o.libraries.Operators, addon.OperatorFlag, nil, "library with operators that models may name in model_operations; its code runs in the server; may be repeated")
	flags.StringVar(&o.libraries.Provider, addon.ProviderFlag, "", "`library` with an execution provider beside those of ONNX Runtime, which models use by the accelerator plugin; its code runs in the server")
	flags.StringArrayVar(&o.hostPolicies, "host-policy", nil, "POLICY,SETTING=VALUE: where instances with that host_policy work; settings: cpu-cores=0-3,8-11 and numa-node=0")
	flags.IntVar(&o.loadThreads, "model-load-thread-count", 4, "models loaded at the same time")
	o.models.flags(flags)
	flags.StringArrayVar(&o.cacheConfig, "cache-config", nil, "local,size=BYTES: keep answers of models whose response_cache is enabled")
	flags.Int64Var(&o.cacheBytes, "response-cache-byte-size", 0, "`bytes` of the response cache, as the size in --cache-config; 0: no cache")
}

// frontendFlags defines the flags of the listeners.
func (o *Options) frontendFlags(flags *pflag.FlagSet) {
	o.clouds.flags(flags)
	listen := func(l *frontends.Listen, name string, port int) {
		l.Flag = name + "-port"
		boolFlag(flags, &l.Enabled, "allow-"+name, name == "metrics" || !o.clouds.isPrediction(), "serve "+name)
		flags.StringVar(&l.Address, name+"-address", loopback, "address of "+name+"; 0.0.0.0: all of this machine's, which is tritonserver's default")
		flags.IntVar(&l.Port, name+"-port", port, "port of "+name+"; 0: any free one")
	}
	listen(&o.http, "http", 8000)
	listen(&o.grpc, "grpc", 8001)
	listen(&o.metrics, "metrics", 8002)
	flags.Int64Var(&o.httpMaxInput, "http-max-input-size", rest.DefaultMaxInput, "most bytes of JSON in an HTTP request")
	boolFlag(flags, &o.sharedMemory, "allow-client-shm", false, "let clients register files in /dev/shm, from which and to which the server copies their tensors")
	flags.StringArrayVar(&o.httpRestricted, "http-restricted-api", nil, "API[,API...]:HEADER=VALUE: these APIs need that HTTP header; "+categoryNames())
}

// listens returns the listeners. The address of metrics defaults to that of HTTP.
func (o *Options) listens() (http, grpc, metrics frontends.Listen) {
	metrics = o.metrics
	if !o.given("metrics-address") {
		metrics.Address = o.http.Address
	}
	return o.http, o.grpc, metrics
}

// Validate finds all mistakes in the options.
func (o *Options) Validate() error {
	var problems []string
	complain := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	if len(o.repositories) == 0 {
		if uri := o.clouds.environment("AIP_STORAGE_URI"); uri != "" { // as in Triton, Vertex AI's own
			o.repositories = []string{uri}
		}
	}
	if len(o.repositories) == 0 {
		complain("--model-repository must be specified")
	}
	if !slices.Contains([]string{"none", "poll", "explicit"}, strings.ToLower(o.controlMode)) {
		complain("--model-control-mode=%q is not supported: use none, poll or explicit", o.controlMode)
	}
	if len(o.loadModels) > 0 && !o.IsExplicit() {
		complain("--load-model needs --model-control-mode=explicit")
	}
	if len(o.loadModels) > 1 && slices.Contains(o.loadModels, "*") {
		complain("--load-model=* is every model: leave out any other --load-model")
	}
	if o.exitTimeout < 0 || o.exitTimeout > math.MaxInt32 {
		complain("--exit-timeout-secs=%d must be between 0 and %d", o.exitTimeout, math.MaxInt32)
	}
	if o.DrainDelay < 0 || o.DrainDelay > longestDelay {
		complain("--drain-delay=%v must be between 0 and %v", o.DrainDelay, longestDelay)
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
	problems = append(problems, o.log.problems()...)
	problems = append(problems, o.models.problems()...)
	problems = append(problems, o.tls.problems()...)
	problems = append(problems, o.portProblems()...)
	if len(problems) > 0 {
		return exit.Usagef("%s", strings.Join(problems, "\n"))
	}
	return nil
}

// portProblems finds ports that cannot be opened, or that two listeners would share.
func (o *Options) portProblems() (problems []string) {
	http, grpc, metrics := o.listens()
	sageMaker, vertexAI := o.clouds.listens(o.http.Address)
	problems = o.clouds.problems(map[string]frontends.Listen{"HTTP": http, "GRPC": grpc, "metrics": metrics, "Vertex AI": vertexAI})
	listens := []frontends.Listen{http, grpc, metrics, sageMaker, vertexAI}
	for i, l := range listens {
		if l.Port < 0 || l.Port > 65535 {
			problems = append(problems, fmt.Sprintf("--%s=%d is not a port: use 0 to 65535", l.Flag, l.Port))
		}
		for _, other := range listens[:i] {
			if l.Enabled && other.Enabled && l.Port != 0 && l.Port == other.Port && l.Address == other.Address {
				problems = append(problems, fmt.Sprintf("--%s and --%s are the same port %d on %s", other.Flag, l.Flag, l.Port, l.Address))
			}
		}
	}
	return problems
}

// IsExplicit reports whether models are loaded by request alone.
func (o *Options) IsExplicit() bool { return strings.EqualFold(o.controlMode, "explicit") }

// ExitTime returns the time for which the server waits for requests when it is asked to end.
func (o *Options) ExitTime() time.Duration { return time.Duration(o.exitTimeout) * time.Second }

// Engine makes the options of the engine, without its backend.
func (o *Options) Engine(log *slog.Logger, figures metrics.Options) (engine.Options, error) {
	backend, err := o.backend(log)
	if err != nil {
		return engine.Options{}, err
	}
	cacheBytes, err := o.responseCache()
	if err != nil {
		return engine.Options{}, err
	}
	policies, err := hostpolicy.Parse(o.hostPolicies)
	if err != nil {
		return engine.Options{}, exit.With(exit.Usage, err)
	}
	limiter, err := o.models.limiter()
	if err != nil {
		return engine.Options{}, err
	}
	return engine.Options{
		ConfigName: o.models.configName, LoadRetries: int(o.models.retries), Namespacing: o.models.namespacing, Limiter: limiter,
		ID: o.id, Version: protocolVersion, Repositories: o.repositories,
		Explicit: o.IsExplicit(), LoadModels: o.loadModels,
		StrictReadiness: o.strictReadiness, ExitOnError: o.exitOnError, LoadThreads: o.loadThreads,
		DisableAutoComplete: o.disableAutoComplete || o.strictModelConfig, DefaultMaxBatchSize: backend.maxBatch, ResponseCache: cacheBytes,
		SharedMemory: o.sharedMemory, HostPolicies: policies, Observe: observer(figures), Log: log,
	}, nil
}

// Frontends makes the options of the front ends, without certificates. maxMemory bounds the bytes
// that clients may make the server hold.
func (o *Options) Frontends(log *slog.Logger, maxMemory int64) (frontends.Options, error) {
	figures, err := o.figures(log)
	if err != nil {
		return frontends.Options{}, err
	}
	rpc, err := o.rpc.options()
	if err != nil {
		return frontends.Options{}, err
	}
	restricted, err := parseRestrictions("http-restricted-api", o.httpRestricted, "")
	if err != nil {
		return frontends.Options{}, err
	}
	clouds, err := o.clouds.clouds(o.http.Address)
	if err != nil {
		return frontends.Options{}, err
	}
	http, grpc, metrics := o.listens()
	return frontends.Options{
		HTTP: http, GRPC: grpc, Metrics: metrics, Clouds: clouds, Figures: figures, RPC: rpc, DrainDelay: o.DrainDelay, Log: log,
		MaxMemory: maxMemory, SharedMemory: o.sharedMemory,
		REST: rest.Options{MaxInput: int(o.httpMaxInput), Restricted: restricted, Log: log},
	}, nil
}
