package flags

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"tuner/engine/api"
	"tuner/engine/metrics"
	"tuner/engine/statistics"
	"tuner/internal/exit"
	"tuner/model/modelconfig"
	"tuner/ort/addon"
)

// categoryNames lists the APIs that can be restricted.
func categoryNames() string {
	var names []string
	for _, c := range api.Categories() {
		names = append(names, string(c))
	}
	return "APIs: " + strings.Join(names, ", ")
}

// parseRestrictions reads values such as API[,API...]:KEY=VALUE. It puts prefix in front of each
// key. Texts are Triton's, which calls the APIs of gRPC protocols.
func parseRestrictions(option string, values []string, prefix string) (api.Restrictions, error) {
	out, noun := api.Restrictions{}, "api"
	if strings.HasPrefix(option, "grpc") {
		noun = "protocol"
	}
	for _, value := range values {
		apis, header, _ := strings.Cut(value, ":")
		key, secret, _ := strings.Cut(header, "=")
		if apis == "" || key == "" || secret == "" {
			return nil, exit.Usagef("--%s option format is '<api>[,<api>...]:<key>=<value>'. Got %s", option, value)
		}
		for name := range strings.SplitSeq(apis, ",") {
			category := api.Category(name)
			if !slices.Contains(api.Categories(), category) {
				return nil, exit.Usagef("--%s: unknown restricted %s '%s'; %s", option, noun, name, categoryNames())
			}
			if _, twice := out[category]; twice {
				return nil, exit.Usagef("--%s: %s '%s' can not be specified in multiple config groups", option, noun, name)
			}
			out[category] = api.Restriction{Header: prefix + key, Value: secret}
		}
	}
	return out, nil
}

// Libraries returns the libraries that the server opens beside ONNX Runtime.
func (o *Options) Libraries() (addon.Libraries, error) {
	l, err := o.libraries.Resolve(addon.OfServe())
	return l, exit.With(exit.Usage, err)
}

// GlobalThreads are the thread pools of ONNX Runtime that all models share. 0 threads are one for
// each core.
type GlobalThreads struct {
	Enabled          bool
	IntraOp, InterOp int
}

// backend has the settings of --backend-config.
type backend struct {
	maxBatch int // of auto-completion; 0: not given; -1: no batching
	threads  GlobalThreads
	counts   []string // the entries with numbers of threads
}

// GlobalThreads reads the thread pools from --backend-config.
func (o *Options) GlobalThreads() (GlobalThreads, error) {
	b, err := o.backend(slog.New(slog.DiscardHandler))
	return b.threads, err
}

// backend reads --backend-config.
func (o *Options) backend(log *slog.Logger) (b backend, err error) {
	for _, entry := range o.backendConfig {
		setting := entry
		if name, rest, found := strings.Cut(entry, ","); found {
			setting = rest
			if name != "onnxruntime" {
				log.Warn("option ignored: only the onnxruntime backend has settings", "option", "--backend-config="+entry)
				continue
			}
		}
		key, value, _ := strings.Cut(setting, "=")
		if key == "" || value == "" {
			return b, exit.Usagef("--backend-config=%q: expected [BACKEND,]KEY=VALUE", entry)
		}
		known, err := b.set(key, value)
		if err != nil {
			return b, exit.Usagef("--backend-config=%q: %v", entry, err)
		}
		if !known {
			log.Warn("option ignored: unknown setting", "option", "--backend-config="+entry)
		}
	}
	if len(b.counts) > 0 && !b.threads.Enabled {
		return b, exit.Usagef("--backend-config=onnxruntime,%s sizes the thread pool that all models share: add --backend-config=onnxruntime,enable-global-threadpool=1, or put %s in the config.pbtxt of each model", b.counts[0], b.counts[0])
	}
	return b, nil
}

// set reads one setting. known is false for an unknown key.
func (b *backend) set(key, value string) (known bool, err error) {
	switch key {
	case "default-max-batch-size":
		b.maxBatch, err = wholeNumber(value, math.MaxInt32)
		if b.maxBatch == 0 {
			b.maxBatch = -1
		}
	case "enable-global-threadpool":
		b.threads.Enabled, err = strconv.ParseBool(strings.ToLower(value))
		if err != nil {
			err = errors.New("expected 1, true, 0 or false")
		}
	case "intra_op_thread_count":
		b.threads.IntraOp, err = wholeNumber(value, mostThreads)
		b.counts = append(b.counts, key)
	case "inter_op_thread_count":
		b.threads.InterOp, err = wholeNumber(value, mostThreads)
		b.counts = append(b.counts, key)
	default:
		return false, nil
	}
	return true, err
}

// mostThreads bounds the threads of a pool, as in a model's configuration: ONNX Runtime starts all at
// once, and ends the process where the system has too few.
const mostThreads = 1024

func wholeNumber(text string, most int) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > most {
		return 0, fmt.Errorf("%q must be a number from 0 to %d", text, most)
	}
	return n, nil
}

// responseCache reads the size of the response cache in bytes. 0: no cache. Texts are
// tritonserver's where it has them.
func (o *Options) responseCache() (int64, error) {
	if o.given("response-cache-byte-size") && len(o.cacheConfig) > 0 {
		return 0, exit.Usagef("Error: Incompatible flags --response-cache-byte-size and --cache-config both provided. Please provide one or the other.")
	}
	if o.cacheBytes < 0 {
		return 0, exit.Usagef("--response-cache-byte-size=%d must be 0 or more", o.cacheBytes)
	}
	size := o.cacheBytes
	for _, entry := range o.cacheConfig {
		cache, setting, found := strings.Cut(entry, ",")
		key, value, _ := strings.Cut(setting, "=")
		switch {
		case cache == "" || !found:
			return 0, exit.Usagef("No cache specified. --cache-config option format is <cache name>,<setting>=<value>. Got %s", entry)
		case key == "" || value == "":
			return 0, exit.Usagef("--cache-config option format is '<cache name>,<setting>=<value>'. Got %s", entry)
		case slices.ContainsFunc(o.cacheConfig, func(other string) bool { return !strings.HasPrefix(other, cache+",") }):
			return 0, exit.Usagef("found multiple cache configurations, but only a single cache is currently supported")
		case cache != "local" || key != "size":
			return 0, exit.Usagef("--cache-config=%s is not supported: there is only the cache local, and its setting size", entry)
		}
		var err error
		if size, err = strconv.ParseInt(value, 10, 64); err != nil || size < 1 {
			return 0, exit.Usagef("--cache-config=%s: size must be a number of bytes, 1 or more", entry)
		}
	}
	return size, nil
}

// figures reads the choice of metrics.
func (o *Options) figures(log *slog.Logger) (metrics.Options, error) {
	out := metrics.Options{
		CPU: o.cpuMetrics, GPU: o.gpuMetrics, Interval: time.Duration(o.metricsInterval * float64(time.Millisecond)),
	}
	quantiles, wanted := metrics.DefaultQuantiles(), false
	for _, entry := range o.metricsConfig {
		key, value, _ := strings.Cut(entry, "=")
		if key == "" || value == "" || strings.Contains(key, ",") {
			return out, exit.Usagef("--metrics-config option format is <setting>=<value>. Got %s", entry)
		}
		var err error
		switch key {
		case "counter_latencies":
			out.NoTotals = value == "false"
		case "summary_latencies":
			wanted = value == "true"
		case "histogram_latencies":
			out.Histograms = nil
			if value == "true" && o.metrics.Enabled {
				out.Histograms = metrics.NewHistograms()
			}
		case "summary_quantiles":
			quantiles, err = parseQuantiles(value)
		default:
			log.Warn("option ignored: unknown setting", "option", "--metrics-config="+entry)
		}
		if err != nil {
			return out, exit.Usagef("--metrics-config=%s: %v", entry, err)
		}
	}
	if wanted && o.metrics.Enabled {
		out.Summaries = metrics.NewSummaries(quantiles)
	}
	return out, nil
}

// parseQuantiles reads pairs of a quantile and its allowed error, such as 0.5:0.05,0.9:0.01.
func parseQuantiles(text string) (map[float64]float64, error) {
	out := map[float64]float64{}
	for pair := range strings.SplitSeq(text, ",") {
		left, right, found := strings.Cut(pair, ":")
		if !found {
			return nil, fmt.Errorf("invalid option: [%s]. No ':' delimiter found. Expected format is <quantile>:<error>", pair)
		}
		quantile, err := parseShare(left)
		if err != nil {
			return nil, err
		}
		if out[quantile], err = parseShare(right); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func parseShare(text string) (float64, error) {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || !(x >= 0 && x <= 1) {
		return 0, fmt.Errorf("%q is not a number from 0 to 1", text)
	}
	return x, nil
}

// observer returns the engine's observer of a model's requests, nil if no figure needs one.
func observer(o metrics.Options) func(namespace, model string, version int64, c *modelconfig.Config) statistics.Observer {
	switch {
	case o.Summaries == nil && o.Histograms == nil:
		return nil
	case o.Summaries == nil:
		return o.Histograms.Observe
	case o.Histograms == nil:
		return o.Summaries.Observe
	}
	return func(namespace, model string, version int64, c *modelconfig.Config) statistics.Observer {
		summarize, sort := o.Summaries.Observe(namespace, model, version, c), o.Histograms.Observe(namespace, model, version, c)
		return func(t statistics.Timing) {
			summarize(t)
			sort(t)
		}
	}
}
