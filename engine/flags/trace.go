package flags

import (
	"fmt"
	"log/slog"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"tuner/engine/trace"
	"tuner/engine/trace/otlp"
	"tuner/internal/exit"
)

// mostSpans bounds the queue of spans. The SDK allocates the queue at once, 16 bytes a span.
const mostSpans = 1 << 20

// longestSpanDelay bounds the time between two exports of spans, in milliseconds.
const longestSpanDelay = 24 * 3600 * 1000

// The batch processor's settings, with the variables and defaults of OpenTelemetry's specification.
const (
	spanQueue = "bsp_max_queue_size"
	spanDelay = "bsp_schedule_delay"
	spanBatch = "bsp_max_export_batch_size"
)

// traceOptions are the options that say which requests are traced, and where to.
type traceOptions struct {
	config []string
	// tritonserver's older options for some of the settings; empty: not given
	file, rate, count, frequency string
	levels                       []string
}

func (o *traceOptions) flags(flags *pflag.FlagSet) {
	flags.StringArrayVar(&o.config, "trace-config", nil, "[MODE,]SETTING=VALUE: trace requests; settings: mode, level, rate, count; of mode triton: file, log-frequency; of mode opentelemetry: url, resource, bsp_max_queue_size, bsp_schedule_delay, bsp_max_export_batch_size")
	for _, old := range []struct {
		value      *string
		name, like string
	}{
		{&o.file, "trace-file", "triton,file"}, {&o.rate, "trace-rate", "rate"},
		{&o.count, "trace-count", "count"}, {&o.frequency, "trace-log-frequency", "triton,log-frequency"},
	} {
		flags.StringVar(old.value, old.name, "", "the same as --trace-config="+old.like)
		_ = flags.MarkHidden(old.name) // it is defined
	}
	flags.StringArrayVar(&o.levels, "trace-level", nil, "the same as --trace-config=level")
	_ = flags.MarkHidden("trace-level") // it is defined
}

// Trace makes the settings of traces, and those of the exporter in mode opentelemetry.
func (o *Options) Trace(log *slog.Logger) (trace.Config, otlp.Options, error) {
	p := traceParser{config: trace.Default(), otlp: otlp.Options{Queue: -1, Delay: -1, Batch: -1}, log: log}
	if err := p.parse(&o.tracing); err != nil {
		return trace.Config{}, otlp.Options{}, exit.With(exit.Usage, err)
	}
	return p.config, p.otlp, nil
}

// traceParser reads the options of traces.
type traceParser struct {
	config trace.Config
	otlp   otlp.Options
	log    *slog.Logger
}

// parse reads the older options first, so that --trace-config has precedence, as in tritonserver.
func (p *traceParser) parse(o *traceOptions) error {
	isOff := false
	for _, text := range o.levels {
		level, err := parseLevel(text)
		if err != nil {
			return fmt.Errorf("--trace-level: %w", err)
		}
		p.config.Level |= level
		isOff = isOff || level == trace.LevelOff
	}
	for _, old := range [][3]string{{"", "rate", o.rate}, {"", "count", o.count}, {"triton", "file", o.file}, {"triton", "log-frequency", o.frequency}} {
		if old[2] == "" {
			continue
		}
		if err := p.set(old[0], old[1], old[2]); err != nil {
			return fmt.Errorf("--trace-%s: %w", old[1], err)
		}
	}
	for _, entry := range o.config {
		mode, setting, value, err := splitTraceConfig(entry)
		if err == nil {
			err = p.set(mode, setting, value)
		}
		if err != nil {
			return fmt.Errorf("--trace-config=%s: %w", entry, err)
		}
	}
	if isOff {
		p.config.Level = trace.LevelOff
	}
	return p.complete()
}

// splitTraceConfig reads [MODE,]SETTING=VALUE.
func splitTraceConfig(entry string) (mode, setting, value string, err error) {
	setting = entry
	if before, after, found := strings.Cut(entry, ","); found {
		if before == "" {
			return "", "", "", fmt.Errorf("no trace mode specified: the format is <trace mode>,<setting>=<value> or <setting>=<value>")
		}
		parsed, err := parseMode(before)
		if err != nil {
			return "", "", "", err
		}
		mode, setting = parsed.String(), after
	}
	setting, value, _ = strings.Cut(setting, "=")
	if setting == "" || value == "" {
		return "", "", "", fmt.Errorf("the format is <trace mode>,<setting>=<value> or <setting>=<value>")
	}
	return mode, setting, value, nil
}

// set reads one setting. mode is "" for those of all modes.
func (p *traceParser) set(mode, setting, value string) (err error) {
	switch mode + "," + setting {
	case ",level":
		var level trace.Level
		level, err = parseLevel(value)
		p.config.Level |= level
	case ",mode":
		p.config.Mode, err = parseMode(value)
	case ",rate":
		var n int
		n, err = numberFrom(value, 0, math.MaxInt32)
		p.config.Rate = uint32(n)
	case ",count":
		var n int
		n, err = numberFrom(value, -1, math.MaxInt32)
		p.config.Count = int32(n)
	case "triton,file":
		p.config.File = value
	case "triton,log-frequency":
		var n int
		n, err = numberFrom(value, 0, math.MaxInt32)
		p.config.LogFrequency = uint32(n)
	default:
		if mode != trace.ModeOpenTelemetry.String() {
			p.ignore(mode, setting)
			return nil
		}
		return p.setOTLP(setting, value)
	}
	return err
}

// setOTLP reads a setting of mode opentelemetry.
func (p *traceParser) setOTLP(setting, value string) (err error) {
	switch setting {
	case "url":
		p.otlp.URL = value
	case "resource":
		name, text, found := strings.Cut(value, "=")
		if name == "" || !found {
			return fmt.Errorf("a resource is <key>=<value>")
		}
		p.otlp.Resource = append(p.otlp.Resource, trace.Option{Name: name, Value: text})
	case spanQueue:
		p.otlp.Queue, err = numberFrom(value, 1, mostSpans)
	case spanBatch:
		p.otlp.Batch, err = numberFrom(value, 1, mostSpans)
	case spanDelay:
		var n int
		n, err = numberFrom(value, 0, longestSpanDelay)
		p.otlp.Delay = time.Duration(n) * time.Millisecond
	default:
		p.ignore(trace.ModeOpenTelemetry.String(), setting)
		return nil
	}
	if err == nil {
		p.config.Options = append(p.config.Options, trace.Option{Name: setting, Value: value})
	}
	return err
}

// complete adds the settings of spans that no option has: those of the environment, then the
// defaults. Settings of the other mode are not shown to clients.
func (p *traceParser) complete() error {
	if p.config.Mode != trace.ModeOpenTelemetry {
		p.config.Options = nil
		return nil
	}
	for _, one := range []struct {
		setting, variable, byDefault string
		isMissing                    bool
	}{
		{spanQueue, "OTEL_BSP_MAX_QUEUE_SIZE", "2048", p.otlp.Queue < 0},
		{spanDelay, "OTEL_BSP_SCHEDULE_DELAY", "5000", p.otlp.Delay < 0},
		{spanBatch, "OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "512", p.otlp.Batch < 0},
	} {
		if !one.isMissing {
			continue
		}
		value := os.Getenv(one.variable)
		if value == "" {
			value = one.byDefault
		}
		if err := p.setOTLP(one.setting, value); err != nil {
			return fmt.Errorf("%s=%s: %w", one.variable, value, err)
		}
	}
	if p.otlp.Batch > p.otlp.Queue { // it would never be full
		p.otlp.Batch = p.otlp.Queue
	}
	return nil
}

func (p *traceParser) ignore(mode, setting string) {
	if mode != "" {
		setting = mode + "," + setting
	}
	p.log.Warn("option ignored: unknown setting", "option", "--trace-config="+setting)
}

// parseLevel reads a level, with the names that tritonserver takes for TIMESTAMPS.
func parseLevel(text string) (trace.Level, error) {
	switch strings.ToLower(text) {
	case "false", "off":
		return trace.LevelOff, nil
	case "true", "on", "min", "max", "timestamps":
		return trace.LevelTimestamps, nil
	case "tensors":
		return trace.LevelTensors, nil
	}
	return 0, fmt.Errorf("invalid value for trace level option: %s; use OFF, TIMESTAMPS or TENSORS", text)
}

func parseMode(text string) (trace.Mode, error) {
	for _, m := range []trace.Mode{trace.ModeTriton, trace.ModeOpenTelemetry} {
		if strings.EqualFold(text, m.String()) {
			return m, nil
		}
	}
	return 0, fmt.Errorf(`invalid value for trace mode option: %s. Available options are "triton" and "opentelemetry"`, text)
}

// numberFrom reads a number within bounds.
func numberFrom(text string, least, most int) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		return 0, fmt.Errorf("%q must be a number from %d to %d", text, least, most)
	}
	return n, nil
}
