package flags

import (
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"tuner/engine/api"
	"tuner/engine/metrics"
	"tuner/engine/statistics"
	"tuner/internal/exit"
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
// key.
func parseRestrictions(option string, values []string, prefix string) (api.Restrictions, error) {
	out := api.Restrictions{}
	for _, value := range values {
		apis, header, _ := strings.Cut(value, ":")
		key, secret, _ := strings.Cut(header, "=")
		if apis == "" || key == "" || secret == "" {
			return nil, exit.Usagef("--%s option format is '<api>[,<api>...]:<key>=<value>'. Got %s", option, value)
		}
		for name := range strings.SplitSeq(apis, ",") {
			category := api.Category(name)
			if !slices.Contains(api.Categories(), category) {
				return nil, exit.Usagef("--%s: unknown restricted api %q; %s", option, name, categoryNames())
			}
			if _, twice := out[category]; twice {
				return nil, exit.Usagef("--%s: restricted api %q can not be specified in multiple config groups", option, name)
			}
			out[category] = api.Restriction{Header: prefix + key, Value: secret}
		}
	}
	return out, nil
}

// defaultMaxBatch reads the batch size of auto-completion from --backend-config. 0: not given.
func (o *Options) defaultMaxBatch(log *slog.Logger) (int, error) {
	size := 0
	for _, entry := range o.backendConfig {
		setting := entry
		if backend, rest, found := strings.Cut(entry, ","); found {
			setting = rest
			if backend != "onnxruntime" {
				log.Warn("option ignored: there is only the onnxruntime backend", "option", "--backend-config="+entry)
				continue
			}
		}
		key, value, _ := strings.Cut(setting, "=")
		if key == "" || value == "" {
			return 0, exit.Usagef("--backend-config=%q: expected [BACKEND,]KEY=VALUE", entry)
		}
		switch key {
		case "default-max-batch-size":
			n, err := strconv.Atoi(value)
			if err != nil || n < 0 {
				return 0, exit.Usagef("--backend-config=%q: default-max-batch-size must be a number, 0 or more", entry)
			}
			if size = n; n == 0 {
				size = -1 // no batching
			}
		case "enable-global-threadpool":
			if value != "0" {
				return 0, exit.Usagef("--backend-config=%q: a thread pool that all models share is not supported: give each model intra_op_thread_count in its config.pbtxt", entry)
			}
		case "intra_op_thread_count", "inter_op_thread_count":
			return 0, exit.Usagef("--backend-config=%q sizes the thread pool that all models share, which is not supported: put %s in the config.pbtxt of each model", entry, key)
		default:
			log.Warn("option ignored: unknown setting", "option", "--backend-config="+entry)
		}
	}
	return size, nil
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

// observer returns the engine's observer of a model's requests, nil if they are not summarized.
func observer(s *metrics.Summaries) func(string, int64) statistics.Observer {
	if s == nil {
		return nil
	}
	return s.Observe
}
