// Package paflags has the options of `tuner perf`: those of perf_analyzer, with its names and
// meanings, and some of our own.
//
// It stands between the command line and package perf/session: it turns flags into a Plan. It
// reports all mistakes of a command line at once, before it asks any server. It reads the few files
// that options name, and sends nothing.
package paflags

import (
	"time"

	"tuner/internal/terminal"

	"github.com/spf13/pflag"
)

// Options are the values of the flags.
type Options struct {
	model, version, serviceKind, composing string

	concurrency, rate, distribution, intervals string
	pattern                                    string // of arrivals
	maxThreads                                 int
	async, sync, streaming                     bool
	oldConcurrency, oldMost                    int
	oldRange                                   bool

	mode                       string
	interval, windowRequests   int // interval in ms
	stability                  float64
	trials, percentile         int
	threshold                  float64 // in ms
	goodput                    time.Duration
	binarySearch               bool
	requestCount, warmUpCount  int
	batch, stringLength        int
	data, shapes               []string
	stringData                 string
	inputFormat, outputFormat  string
	sharedMemory               string
	protocol, url, compression string
	headers, parameters        []string
	tls                        tlsOptions

	reports         Reports
	metricsURL      string
	metrics         bool
	metricsInterval int // in ms

	stop, precision, cpus, modelFile  string
	budget, deadline, timeout, warmUp time.Duration
	maxOutstanding, pid               int
	seed                              uint64
	ranges, with                      []string

	given func(flag string) bool // reports whether a flag was on the command line
}

// tlsOptions are perf_analyzer's options for TLS.
type tlsOptions struct {
	useGRPC                                   bool
	grpcRoots, grpcKey, grpcChain             string
	verifyPeer, verifyHost                    int
	ca, certificate, certificateType, key, kt string
}

// Reports describe the output of a run and its files.
type Reports struct {
	Output     string // output on stdout: "text", "json" or "benchstat"
	CSV        string // file with the levels; "": none
	VerboseCSV bool
	Export     string // file with every request; "": none
	Plot       string // PNG file; "": none
	Verbose    int    // above 0: also a line per window
}

// Add defines all flags.
func (o *Options) Add(f *pflag.FlagSet) {
	f.SortFlags = false
	o.given = f.Changed
	o.modelFlags(f)
	o.loadFlags(f)
	o.measureFlags(f)
	o.dataFlags(f)
	o.protocolFlags(f)
	o.reportFlags(f)
	for _, r := range refusedFlags() {
		f.String(r.name, "", "refused")
		if !r.valued {
			f.Lookup(r.name).NoOptDefVal = "true"
		}
		_ = f.MarkHidden(r.name) // fails only for an undefined name
	}
}

func (o *Options) modelFlags(f *pflag.FlagSet) {
	f.StringVarP(&o.model, "model-name", "m", "", "`model` to measure")
	f.StringVarP(&o.version, "model-version", "x", "", "`version` of the model (default: the server's choice)")
	f.StringVar(&o.modelFile, "model-file", "", "ONNX `file` of the model, so that generated inputs fit the graph")
	f.StringVar(&o.serviceKind, "service-kind", "triton", "triton: the server speaks the KServe v2 protocol; no other kind is supported")
	f.StringVar(&o.composing, "bls-composing-models", "", "MODEL[:VERSION],… that the model calls: their statistics are added up")
	f.StringArrayVar(&o.with, "with", nil, "MODEL[:VERSION],concurrency=N|rate=R[,batch=B][,input-data=D][,shape=NAME:SIZES]: load on another model during the whole run; may be repeated")
}

func (o *Options) loadFlags(f *pflag.FlagSet) {
	f.StringVar(&o.concurrency, "concurrency-range", "", "START[:END[:STEP]] requests in flight (closed loop); END 0: up to the latency limit (default 1)")
	f.StringVar(&o.rate, "request-rate-range", "", "START[:END[:STEP]] requests per second (open loop)")
	f.StringVar(&o.distribution, "request-distribution", "constant", "intervals of an open loop: constant or poisson")
	f.StringVar(&o.intervals, "request-intervals", "", "file of intervals between requests in microseconds, one a line (open loop)")
	f.StringVar(&o.pattern, "arrivals", "", "when the requests of an open loop are due, as in profile.yaml: poisson, constant, '{gamma: {cv: 2}}', '{on_off: {on: 2s, off: 8s}}', '{curve: {0s: 1, 30s: 3, 60s: 1}}' or '{trace: FILE}'; a trace needs no --request-rate-range")
	f.IntVar(&o.maxOutstanding, "max-outstanding", 4096, "most requests of an open loop that may be due and unanswered; the rest is dropped and counted")
	f.IntVar(&o.maxThreads, "max-threads", 0, "accepted, like --async; changes nothing: requests in flight do not depend on threads")
	f.BoolVarP(&o.async, "async", "a", false, "asynchronous calls: accepted and printed; changes nothing, like --sync")
	f.BoolVar(&o.sync, "sync", false, "synchronous calls: see --async")
	f.BoolVar(&o.streaming, "streaming", false, "send requests over gRPC streams")
	f.BoolVar(&o.binarySearch, "binary-search", false, "search for the highest level within the latency limit")
	f.Float64VarP(&o.threshold, "latency-threshold", "l", 0, "latency limit in ms: levels beyond it are not measured; exit code 5 if no level is within it")
	f.DurationVar(&o.goodput, "goodput", 0, "limit on the latency, such as 50ms: show the inferences per second whose request is answered within it")
	f.IntVarP(&o.oldConcurrency, "concurrent-requests", "t", 0, "the same as --concurrency-range N")
	f.IntVarP(&o.oldMost, "max-concurrency", "c", 0, "with -d: the last concurrency")
	f.BoolVarP(&o.oldRange, "dynamic-concurrency", "d", false, "concurrencies from -t to -c")
	for _, name := range []string{"concurrent-requests", "max-concurrency", "dynamic-concurrency"} {
		_ = f.MarkHidden(name) // fails only for an undefined name
	}
}

func (o *Options) measureFlags(f *pflag.FlagSet) {
	f.StringVar(&o.stop, "stop", "precision", "when a level ends: at precision (its intervals are narrow enough) or at stability (three windows agree, as in perf_analyzer); -s and -r imply stability")
	f.StringVar(&o.precision, "precision", "2%", "half-width of the 95 % intervals of throughput and latency")
	f.DurationVar(&o.budget, "budget", 30*time.Second, "with --stop precision: longest time per level")
	f.Float64VarP(&o.stability, "stability-percentage", "s", 10, "with --stop stability: how much three windows in a row may differ, in percent")
	f.IntVarP(&o.trials, "max-trials", "r", 10, "with --stop stability: most windows per level")
	f.StringVar(&o.mode, "measurement-mode", "time_windows", "time_windows or count_windows")
	f.IntVarP(&o.interval, "measurement-interval", "p", 0, "length of a window in ms (default 5000 for stability; for precision 1000, or 10 times the p99 latency)")
	f.IntVar(&o.windowRequests, "measurement-request-count", 50, "with count_windows: least requests in a window")
	f.IntVar(&o.percentile, "percentile", 0, "percentile of the latency that is judged, 1 to 99 (default: the mean)")
	f.IntVar(&o.requestCount, "request-count", 0, "send exactly this number of requests per level, as one window")
	f.IntVar(&o.warmUpCount, "warmup-request-count", 0, "warm up with this number of requests per level")
	f.DurationVar(&o.warmUp, "warm-up", 5*time.Second, "longest warm-up per level; it ends when the load is steady; 0: none, the default with --request-count")
	f.DurationVar(&o.timeout, "timeout", 10*time.Second, "time after which a request has failed")
	f.DurationVar(&o.deadline, "deadline", 0, "longest time of the whole run; 0: no limit")
	f.StringVar(&o.cpus, "client-cpus", "", "CPUs of the load generator, such as 0-1,4 (default: all)")
	f.Uint64Var(&o.seed, "seed", 0, "seed of schedules and inputs (default: from the clock; it is printed)")
}

func (o *Options) dataFlags(f *pflag.FlagSet) {
	f.IntVarP(&o.batch, "batch-size", "b", 1, "inferences in one request")
	f.StringArrayVar(&o.data, "input-data", nil, "random, zero, a folder, a JSON file, or NumPy's .npz or .npy; JSON files may be repeated (default random)")
	f.StringArrayVar(&o.shapes, "shape", nil, "NAME:SIZES of an input with open sizes, without the batch dimension, such as ids:128; may be repeated")
	f.StringArrayVar(&o.ranges, "input-range", nil, "NAME:LOWEST:BELOW of an input's random whole numbers, such as ids:0:30522; may be repeated")
	f.IntVar(&o.stringLength, "string-length", 0, "bytes of random text elements (default 128)")
	f.StringVar(&o.stringData, "string-data", "", "value of every element of generated text")
	f.StringVar(&o.inputFormat, "input-tensor-format", "binary", "HTTP: binary or json")
	f.StringVar(&o.outputFormat, "output-tensor-format", "binary", "HTTP: binary or json")
	f.StringVar(&o.sharedMemory, "shared-memory", "none", "none; no other value is supported")
	_ = f.MarkHidden("shared-memory") // fails only for an undefined name
}

func (o *Options) protocolFlags(f *pflag.FlagSet) {
	f.StringVarP(&o.protocol, "protocol", "i", "http", "http or grpc")
	f.StringVarP(&o.url, "url", "u", "", "HOST:PORT of the server (default localhost:8000; gRPC: localhost:8001); https://HOST:PORT: HTTP over TLS")
	f.StringArrayVarP(&o.headers, "header", "H", nil, "NAME:VALUE of every request (gRPC: metadata); may be repeated")
	f.StringArrayVar(&o.parameters, "request-parameter", nil, "NAME:VALUE:TYPE of every request, TYPE int, string or bool; may be repeated")
	f.StringVar(&o.compression, "grpc-compression-algorithm", "none", "none, gzip or deflate")
	t := &o.tls
	f.BoolVar(&t.useGRPC, "ssl-grpc-use-ssl", false, "gRPC over TLS")
	f.StringVar(&t.grpcRoots, "ssl-grpc-root-certifications-file", "", "PEM file of certificate authorities (default: the system's)")
	f.StringVar(&t.grpcKey, "ssl-grpc-private-key-file", "", "PEM file of the client's key")
	f.StringVar(&t.grpcChain, "ssl-grpc-certificate-chain-file", "", "PEM file of the client's certificate and its chain")
	f.IntVar(&t.verifyPeer, "ssl-https-verify-peer", 1, "0: accept a server's certificate of any authority")
	f.IntVar(&t.verifyHost, "ssl-https-verify-host", 2, "0: accept a server's certificate for any host")
	f.StringVar(&t.ca, "ssl-https-ca-certificates-file", "", "PEM file of certificate authorities (default: the system's)")
	f.StringVar(&t.certificate, "ssl-https-client-certificate-file", "", "file of the client's certificate")
	f.StringVar(&t.certificateType, "ssl-https-client-certificate-type", "PEM", "PEM or DER")
	f.StringVar(&t.key, "ssl-https-private-key-file", "", "file of the client's key")
	f.StringVar(&t.kt, "ssl-https-private-key-type", "PEM", "PEM or DER")
}

func (o *Options) reportFlags(f *pflag.FlagSet) {
	r := &o.reports
	terminal.AddFormat(f, &r.Output, "on stdout: text, json (docs/reference/perf.md) or benchstat")
	f.StringVarP(&r.CSV, "latency-report-file", "f", "", "CSV file of the levels")
	f.BoolVar(&r.VerboseCSV, "verbose-csv", false, "more columns in the CSV file")
	f.StringVar(&r.Export, "profile-export-file", "", "JSON file of every request; it must not exist")
	f.StringVar(&r.Plot, "plot", "", "PNG file: latency over time, and its distribution")
	f.BoolVar(&o.metrics, "collect-metrics", false, "read GPU figures from the server's metrics page")
	f.StringVar(&o.metricsURL, "metrics-url", "", "address of the metrics page (default: port 8002 of the server)")
	f.IntVar(&o.metricsInterval, "metrics-interval", 1000, "ms between readings of the metrics page")
	f.IntVar(&o.pid, "pid", 0, "process of the engine on this machine, whose CPU time and memory are read")
	f.CountVarP(&r.Verbose, "verbose", "v", "print a line per window too")
}

// refusedFlag is an option of perf_analyzer that tuner perf does not have.
type refusedFlag struct {
	name   string
	valued bool
	reason string
}

// refusedFlags lists the options of perf_analyzer that would change the measurement, so that tuner
// perf cannot ignore them.
func refusedFlags() []refusedFlag {
	const (
		sequences = "models with state (sequences) are not measured"
		sessions  = "only concurrencies, request rates and intervals make a load here"
		kinds     = "only servers of the KServe v2 protocol are measured"
		tracing   = "the server's tracing is set at the server"
	)
	return []refusedFlag{
		{"num-of-sequences", true, sequences},
		{"sequence-length", true, sequences},
		{"sequence-length-variation", true, sequences},
		{"sequence-id-range", true, sequences},
		{"serial-sequences", false, sequences},
		{"output-shared-memory-size", true, "tensors travel with the requests, not through shared memory"},
		{"fixed-schedule", false, sessions + ": --request-intervals follows a schedule"},
		{"periodic-concurrency-range", true, sessions},
		{"request-period", true, sessions},
		{"session-concurrency", true, sessions},
		{"endpoint", true, kinds},
		{"model-signature-name", true, kinds},
		{"grpc-method", true, kinds},
		{"triton-server-directory", true, kinds},
		{"model-repository", true, kinds + ": `tuner serve --model-repository` is one"},
		{"enable-mpi", false, "further models are loaded with --with, by the same process"},
		{"trace-level", true, tracing},
		{"trace-rate", true, tracing},
		{"trace-count", true, tracing},
		{"log-frequency", true, tracing},
	}
}
