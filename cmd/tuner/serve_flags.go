//go:build !noengine

package main

import (
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"tuner/engine/frontends"
	"tuner/engine/rest"
)

// serveOptions are the options of serve: tritonserver's, and a few of our own.
type serveOptions struct {
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
	loadThreads         int

	http, grpc, metrics frontends.Listen
	httpMaxInput        int64

	logVerbose                   int
	logInfo, logWarning, logErrs bool

	ortLibrary string
	announceFD int
	parentFD   int
}

// triton is a flag's value that takes booleans as tritonserver does.
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

// flags defines all options.
func (o *serveOptions) flags(flags *pflag.FlagSet) {
	flags.SortFlags = false
	flags.StringArrayVar(&o.repositories, "model-repository", nil, "model repository folder; may be given several times")
	flags.StringArrayVar(&o.repositories, "model-store", nil, "the same as --model-repository")
	flags.StringVar(&o.id, "id", "triton", "the server's name")
	flags.StringVar(&o.controlMode, "model-control-mode", "none", "none: all models are loaded at start; explicit: by request")
	flags.StringArrayVar(&o.loadModels, "load-model", nil, "with --model-control-mode=explicit: model to load at start, or *; may be given several times")
	boolFlag(flags, &o.exitOnError, "exit-on-error", true, "end if a model fails to load at start")
	boolFlag(flags, &o.strictReadiness, "strict-readiness", true, "ready means that every model is ready")
	flags.IntVar(&o.exitTimeout, "exit-timeout-secs", 30, "seconds to wait for requests when asked to end")
	boolFlag(flags, &o.disableAutoComplete, "disable-auto-complete-config", false, "do not complete model configurations from the models")
	flags.Lookup("disable-auto-complete-config").NoOptDefVal = "true"
	boolFlag(flags, &o.strictModelConfig, "strict-model-config", false, "the same as --disable-auto-complete-config")
	flags.StringArrayVar(&o.backendConfig, "backend-config", nil, "[BACKEND,]KEY=VALUE; known: default-max-batch-size")
	flags.IntVar(&o.loadThreads, "model-load-thread-count", 4, "models loaded at the same time")

	listen := func(l *frontends.Listen, name string, port int) {
		l.Flag = name + "-port"
		boolFlag(flags, &l.Enabled, "allow-"+name, true, "serve "+name)
		flags.StringVar(&l.Address, name+"-address", "0.0.0.0", "address of "+name)
		flags.IntVar(&l.Port, name+"-port", port, "port of "+name+"; 0: any free one")
	}
	listen(&o.http, "http", 8000)
	listen(&o.grpc, "grpc", 8001)
	listen(&o.metrics, "metrics", 8002)
	flags.Int64Var(&o.httpMaxInput, "http-max-input-size", rest.DefaultMaxInput, "bytes of JSON that an HTTP request may have")

	flags.IntVar(&o.logVerbose, "log-verbose", 0, "0: off; 1 and more: debug messages")
	boolFlag(flags, &o.logInfo, "log-info", true, "print messages of level info")
	boolFlag(flags, &o.logWarning, "log-warning", true, "print warnings")
	boolFlag(flags, &o.logErrs, "log-error", true, "print errors")

	flags.StringVar(&o.ortLibrary, "ort-library", "", "ONNX Runtime library to use (default: TUNER_ORT_LIBRARY, else the newest installed build)")
	flags.IntVar(&o.announceFD, "announce-fd", 0, "file descriptor to write a line of JSON to when all listeners are up (used by profile)")
	flags.IntVar(&o.parentFD, "parent-fd", 0, "file descriptor whose end of file ends the server (used by profile)")
	for _, name := range ignoredFlags() {
		flags.String(name, "", "accepted and ignored")
		_ = flags.MarkHidden(name) // fails only for a name that is not defined
	}
}

// ignoredFlags are options of tritonserver that mean nothing here, or not yet; each of them is answered with a warning.
func ignoredFlags() []string {
	return []string{
		"repository-poll-secs", "model-config-name", "model-load-retry-count", "model-namespacing", "backend-directory",
		"repoagent-directory", "cache-directory", "cache-config", "response-cache-byte-size", "rate-limit", "rate-limit-resource",
		"host-policy", "pinned-memory-pool-byte-size", "cuda-memory-pool-byte-size", "cuda-virtual-address-size",
		"min-supported-compute-capability", "buffer-manager-thread-count", "model-load-gpu-limit", "enable-peer-access",
		"allow-client-shm", "reuse-http-port", "http-thread-count", "http-header-forward-pattern", "reuse-grpc-port",
		"grpc-infer-thread-count", "grpc-infer-allocation-pool-size", "grpc-max-response-pool-size",
		"grpc-infer-response-compression-level", "grpc-keepalive-time", "grpc-keepalive-timeout",
		"grpc-keepalive-permit-without-calls", "grpc-http2-max-pings-without-data",
		"grpc-http2-min-recv-ping-interval-without-data", "grpc-http2-max-ping-strikes", "grpc-max-connection-age",
		"grpc-max-connection-age-grace", "grpc-header-forward-pattern", "allow-gpu-metrics", "allow-cpu-metrics",
		"metrics-interval-ms", "metrics-config", "trace-config", "log-format", "log-file", "allow-sagemaker", "allow-vertex-ai",
	}
}

// refusedFlags are options that promise a protection which this engine does not have yet: to ignore them would be a lie.
func refusedFlags() []string {
	return []string{"http-restricted-api", "grpc-restricted-protocol", "grpc-use-ssl", "grpc-use-ssl-mutual"}
}

// logger makes the log that the options ask for.
func (o *serveOptions) logger(con console) *slog.Logger {
	level := slog.LevelError + 1
	for _, at := range []struct {
		on    bool
		level slog.Level
	}{{o.logErrs, slog.LevelError}, {o.logWarning, slog.LevelWarn}, {o.logInfo, slog.LevelInfo}, {o.logVerbose > 0, slog.LevelDebug}} {
		if at.on {
			level = at.level
		}
	}
	return slog.New(slog.NewTextHandler(con.err, &slog.HandlerOptions{Level: level}))
}

// validate reports everything that is wrong with the options.
func (o *serveOptions) validate() error {
	var problems []string
	if len(o.repositories) == 0 {
		problems = append(problems, "--model-repository must be specified")
	}
	if !slices.Contains([]string{"none", "explicit"}, o.controlMode) {
		problems = append(problems, fmt.Sprintf("--model-control-mode=%q is not supported: use none or explicit", o.controlMode))
	}
	if len(o.loadModels) > 0 && o.controlMode != "explicit" {
		problems = append(problems, "--load-model needs --model-control-mode=explicit")
	}
	if o.exitTimeout < 0 {
		problems = append(problems, fmt.Sprintf("--exit-timeout-secs=%d must not be negative", o.exitTimeout))
	}
	if o.httpMaxInput < 1 || o.httpMaxInput > 1<<31-1 {
		problems = append(problems, fmt.Sprintf("--http-max-input-size=%d must be between 1 and %d", o.httpMaxInput, 1<<31-1))
	}
	for _, l := range []frontends.Listen{o.http, o.grpc, o.metrics} {
		if l.Port < 0 || l.Port > 65535 {
			problems = append(problems, fmt.Sprintf("--%s=%d is not a port: use 0 to 65535", l.Flag, l.Port))
		}
	}
	if len(problems) > 0 {
		return usageErrorf("%s", strings.Join(problems, "\n"))
	}
	return nil
}

// defaultMaxBatch reads the batch size of auto-completion from --backend-config; 0: not given.
func (o *serveOptions) defaultMaxBatch(log *slog.Logger) (int, error) {
	size := 0
	for _, entry := range o.backendConfig {
		setting := entry
		if backend, rest, found := strings.Cut(entry, ","); found {
			setting = rest
			if backend != "onnxruntime" && backend != "" {
				log.Warn("option ignored: there is only the onnxruntime backend", "option", "--backend-config="+entry)
				continue
			}
		}
		key, value, found := strings.Cut(setting, "=")
		if !found {
			return 0, usageErrorf("--backend-config=%q: expected [BACKEND,]KEY=VALUE", entry)
		}
		if key != "default-max-batch-size" {
			log.Warn("option ignored: unknown setting", "option", "--backend-config="+entry)
			continue
		}
		n, err := strconv.Atoi(value)
		if err != nil || n < 0 {
			return 0, usageErrorf("--backend-config=%q: default-max-batch-size must be a number, 0 or more", entry)
		}
		if size = n; n == 0 {
			size = -1 // no batching
		}
	}
	return size, nil
}

func (o *serveOptions) exitTime() time.Duration { return time.Duration(o.exitTimeout) * time.Second }
